#include "engine/locks.h"

#include <sched.h>

namespace sava::engine {

void Locks::BeginRound() {
  keyspace_.gate().Enter(lane_);
  inside_ = in_round_ = true;
}

void Locks::EndRound() {
  inside_ = in_round_ = false;
  keyspace_.gate().Leave(lane_);
  keyspace_.gate().epoch().Collect();
}

bool Locks::BeginBatch() {
  if (exclusive_) return false;  // inside already, and alone
  if (!inside_) {
    keyspace_.gate().Enter(lane_);
    inside_ = true;
    return false;
  }
  if (!keyspace_.gate().wanted()) return false;
  StepAside();
  return true;
}

void Locks::EndBatch() {
  ReleaseHeld();
  if (in_round_ || exclusive_) return;
  inside_ = false;
  keyspace_.gate().Leave(lane_);
  keyspace_.gate().epoch().Collect();
}

void Locks::StepAside() {
  ReleaseHeld();
  keyspace_.gate().Leave(lane_);
  keyspace_.gate().Enter(lane_);
  timer_.Restart();
}

void Locks::CloseGate() {
  ReleaseHeld();
  if (inside_) keyspace_.gate().Leave(lane_);
  keyspace_.gate().Close(lane_);
  timer_.Restart();
  exclusive_ = true;
  SeeAll();  // what it sees may come from any stripe
}

void Locks::OpenGate() {
  exclusive_ = false;
  keyspace_.gate().Open();
  if (inside_) keyspace_.gate().Enter(lane_);
}

bool Locks::Hold(size_t stripe) {
  if (holds(stripe)) return true;
  ReleaseHeld();
  if (!TryLock(stripe)) {
    // It spins: time of this thread's own, and not the command's.
    const bool locked = keyspace_.stripe(stripe).TryLockFor(kPatienceMicros, &seen_);
    timer_.Restart();
    if (!locked) return false;
  }
  held_ = static_cast<int>(stripe);
  return true;
}

bool Locks::Lock(const LockSet& set) {
  if (!set.all() && !set.many()) {
    if (!set.empty()) return Hold(set.first());
    ReleaseHeld();
  } else if (NeedsGate(set)) {
    CloseGate();
  } else {
    ReleaseHeld();
    LockInOrder(set);
  }
  return true;
}

// In ascending order; all over again after each time it gave way.
void Locks::LockInOrder(const LockSet& set) {
  size_t given_way;
  do {
    given_way = SIZE_MAX;
    set.ForEach([&](size_t stripe) {
      if (given_way == SIZE_MAX && !LockOrGiveWay(set, stripe)) given_way = stripe;
    });
  } while (given_way != SIZE_MAX);
}

// False: a thread waits for one more stripe, perhaps for one of these. They were given back, and it
// does not wait any more.
bool Locks::LockOrGiveWay(const LockSet& set, size_t stripe) {
  if (TryLock(stripe)) return true;
  keyspace::Gate& gate = keyspace_.gate();
  bool locked = false;
  while (!gate.extending() && !(locked = LockWithin(stripe))) gate.Serve(lane_);
  timer_.Restart();
  if (locked) return true;
  set.ForEach([&](size_t taken) {
    if (taken < stripe) Unlock(taken);
  });
  while (gate.extending()) {
    if (!gate.Serve(lane_)) sched_yield();
  }
  return false;
}

// A single stripe is the held one.
void Locks::AddHeld(LockSet* set, size_t stripe) {
  if (set->empty()) {
    held_ = static_cast<int>(stripe);
  } else if (!set->many()) {
    held_ = -1;
  }
  set->Add(stripe);
  timer_.Restart();
}

void Locks::Unlock(const LockSet& set) {
  if (exclusive_) {
    OpenGate();
  } else if (set.many()) {
    set.ForEach([this](size_t stripe) { Unlock(stripe); });
  }
}

LockSetGuard::LockSetGuard(Locks& locks, const LockSet& set)
    : locks_(locks), set_(set), nested_(locks.exclusive()) {
  if (nested_) return;
  locks.ReleaseHeld();
  if (Locks::NeedsGate(set)) {
    locks.CloseGate();
  } else {
    locks.LockInOrder(set);
  }
}

LockSetGuard::~LockSetGuard() {
  if (nested_) return;
  if (locks_.exclusive()) {
    locks_.OpenGate();
  } else {
    set_.ForEach([this](size_t stripe) { locks_.Unlock(stripe); });
  }
}

}  // namespace sava::engine
