/* The locks of stripes when a script may ask for one more while it holds some: a model for spin.
 *
 * What it stands for: engine/locks.{h,cc} (Lock, LockInOrder, LockOrGiveWay, Extend) and
 * keyspace/gate.h (Enter, Close, BeginExtending). Threads take turns at
 *   Script   enters the gate, takes the stripe of its key, and then asks for another one or two, in
 *            any order: it tries; when that fails and nobody else is extending, it waits; when
 *            somebody is, it ends with an error.
 *   Several  enters the gate and takes two stripes in ascending order; when it has to wait and
 *            somebody is extending it gives back what it has and comes again.
 *   Both     does what Several does, and then asks for a third stripe as Script does.
 *   Alone    closes the gate, waits until all are outside, opens it.
 *
 * What is checked: nobody waits for ever (no invalid end state; every thread comes to its end, with
 * fair turns), a stripe has one owner, one thread extends at a time, and with the gate closed nobody
 * else holds a stripe. Without GIVE_WAY the model has a deadlock, which shows that it can find one.
 *
 *   spin -a tools/lock_extension.pml
 *   gcc -O2 -DNOREDUCE -DNOCLAIM -o pan pan.c && ./pan -m1000000
 *   gcc -O2 -DNFAIR=3 -o pan pan.c && ./pan -a -f -m1000000      (fair turns)
 *   spin -DNO_GIVE_WAY -a tools/lock_extension.pml, then as the first        (finds the deadlock)
 *
 * Result with spin 6.5.2: no errors, 1,558,451 states; no errors with fair turns, 1,110,720 states;
 * with NO_GIVE_WAY an invalid end state after 33 steps.
 */
#define STRIPES 3
#define FREE    255

byte owner[STRIPES] = FREE;
bool extending = false;
byte extender = FREE;
bool closed = false;
bool token = false;
byte inside = 0;
byte ended = 0;
byte failed = 0;

inline Enter() {
  do
  :: atomic { !closed -> inside++ }; break
  od
}

inline Leave() { atomic { inside-- } }

inline Take(s)   { atomic { owner[s] == FREE -> owner[s] = _pid } }
inline Give(s)   { atomic { assert(owner[s] == _pid); owner[s] = FREE } }

/* Several: the second stripe, or everything again. */
proctype Several(byte first, second) {
  Enter();
again:
  /* Nothing is held yet: it may wait. */
  Take(first);
  if
  :: atomic { owner[second] == FREE -> owner[second] = _pid }
#ifndef NO_GIVE_WAY
  :: extending ->
     Give(first);
     !extending;
     goto again
#endif
  fi;
  assert(owner[first] == _pid && owner[second] == _pid);
  Give(second);
  Give(first);
  Leave();
  atomic { ended++ }
}

/* Both: two stripes as Several takes them, then one more as a script takes it: a script with two
 * keys, or a transaction. */
proctype Both(byte first, second, other) {
  Enter();
again:
  Take(first);
  if
  :: atomic { owner[second] == FREE -> owner[second] = _pid }
#ifndef NO_GIVE_WAY
  :: extending ->
     Give(first);
     !extending;
     goto again
#endif
  fi;
  assert(owner[first] == _pid && owner[second] == _pid);
  if
  :: atomic { owner[other] == FREE -> owner[other] = _pid };
     Give(other)
  :: atomic { owner[other] != FREE && !extending -> extending = true; extender = _pid };
     Take(other);
     atomic { assert(extender == _pid); extender = FREE; extending = false };
     Give(other)
  :: atomic { owner[other] != FREE && extending -> failed++ }
  fi;
  Give(second);
  Give(first);
  Leave();
  atomic { ended++ }
}

proctype Script(byte own, other, third) {
  bool has_other = false, has_third = false;
  bool lost = false;
  Enter();
  Take(own);
  /* It has written, and asks for what it was not given. */
  if
  :: atomic { owner[other] == FREE -> owner[other] = _pid; has_other = true }
  :: atomic { owner[other] != FREE && !extending -> extending = true; extender = _pid };
     assert(extender == _pid);
     Take(other);
     has_other = true;
     atomic { assert(extender == _pid); extender = FREE; extending = false }
  :: atomic { owner[other] != FREE && extending -> lost = true }
  :: skip /* it keeps to its key this time */
  fi;
  if
  :: !lost && has_other ->
     if
     :: atomic { owner[third] == FREE -> owner[third] = _pid; has_third = true }
     :: atomic { owner[third] != FREE && !extending -> extending = true; extender = _pid };
        Take(third);
        has_third = true;
        atomic { assert(extender == _pid); extender = FREE; extending = false }
     :: atomic { owner[third] != FREE && extending -> lost = true }
     :: skip
     fi
  :: else
  fi;
  if
  :: lost -> atomic { failed++ }
  :: else
  fi;
  if
  :: has_third -> Give(third)
  :: else
  fi;
  if
  :: has_other -> Give(other)
  :: else
  fi;
  Give(own);
  Leave();
  atomic { ended++ }
}

proctype Alone() {
  atomic { !token -> token = true };
  closed = true;
  inside == 0;
  assert(owner[0] == FREE && owner[1] == FREE && owner[2] == FREE);
  closed = false;
  token = false;
  atomic { ended++ }
}

init {
  atomic {
    run Script(0, 1, 2);
    run Script(1, 0, 2);
    run Script(2, 1, 0);
    run Several(0, 1);
    run Both(1, 2, 0);
    run Alone()
  }
  ended == 6
}

ltl ends { <> (ended == 6) }
