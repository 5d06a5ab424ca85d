"""Many clients at once: what each command, each MSET and each EXEC promises must hold for all.

The clients are processes of their own, so the server's threads really meet on the same keys. Every
test is bounded by a count and by time; --long multiplies the work.
"""

import random
import time

import resp
from harness import check, eq, run_workers, test

WORKERS = 4


def scale(context, count):
    return count * (5 if context.options.long else 1)


def workers(context, function, count=WORKERS, seconds=45):
    """function(number, client, rng) in `count` processes; returns their results."""

    def work(number):
        rng = random.Random("%s:%d" % (context.options.seed, number))
        with context.sut.client(2 + number % 2) as client:
            return function(number, client, rng)

    return run_workers([lambda n=n: work(n) for n in range(count)], seconds)


@test(timeout=60)
def counters_lose_nothing(context):
    count = scale(context, 4000)

    def work(number, client, rng):
        for _ in range(count // 50):
            client.pipeline(
                [("INCR", "one"), ("INCRBY", "two", "3"), ("APPEND", "text", "x")] * 50
            )

    workers(context, work)
    client = context.client()
    eq(client.call("GET", "one"), str(WORKERS * count).encode())
    eq(client.call("GET", "two"), str(WORKERS * count * 3).encode())
    eq(client.call("STRLEN", "text"), WORKERS * count)


@test(timeout=60)
def every_increment_is_seen_once(context):
    """Replies of INCR are a permutation of 1…N."""
    count = scale(context, 3000)

    def work(number, client, rng):
        seen = []
        for _ in range(count // 30):
            seen += client.pipeline([("INCR", "n")] * 30)
        check(seen == sorted(seen), "a client saw the counter go back")
        return seen

    seen = sorted(value for part in workers(context, work) for value in part)
    check(seen == list(range(1, WORKERS * count + 1)), "a value was given twice or not at all")


@test(timeout=60)
def transfers_in_transactions_conserve_the_sum(context):
    accounts = ["account:%d" % i for i in range(20)]
    context.client().call("MSET", *[part for name in accounts for part in (name, "1000")])
    count = scale(context, 600)

    def work(number, client, rng):
        if number == 0:
            for _ in range(count):
                balances = [int(value) for value in client.call("MGET", *accounts)]
                eq(sum(balances), 20000, "MGET between transfers")
            return
        for _ in range(count):
            a, b = rng.sample(accounts, 2)
            amount = str(rng.randint(1, 50))
            replies = client.pipeline(
                [("MULTI",), ("DECRBY", a, amount), ("INCRBY", b, amount), ("EXEC",)]
            )
            check(type(replies[3]) is list and len(replies[3]) == 2, resp.show(replies))

    workers(context, work)
    eq(sum(int(v) for v in context.client().call("MGET", *accounts)), 20000)


@test(timeout=90)
def watched_transfers_conserve_the_sum(context):
    """Read, compute in the client, write if nobody else has written."""
    accounts = ["account:%d" % i for i in range(5)]
    context.client().call("MSET", *[part for name in accounts for part in (name, "1000")])
    wanted = scale(context, 250)

    def work(number, client, rng):
        done = tries = 0
        while done < wanted:
            tries += 1
            check(tries < wanted * 200, "no progress")
            a, b = rng.sample(accounts, 2)
            client.call("WATCH", a, b)
            left, right = (int(value) for value in client.call("MGET", a, b))
            amount = rng.randint(0, min(left, 50))
            replies = client.pipeline(
                [("MULTI",), ("SET", a, left - amount), ("SET", b, right + amount), ("EXEC",)]
            )
            if not resp.is_null(replies[3]):
                eq(replies[3], [resp.OK, resp.OK])
                done += 1
        return tries

    tries = sum(workers(context, work, seconds=75))
    balances = [int(v) for v in context.client().call("MGET", *accounts)]
    eq(sum(balances), 5000)
    check(min(balances) >= 0, "an account is below zero: %s" % balances)
    context.say("%d transfers in %d tries" % (WORKERS * wanted, tries))


@test(timeout=60)
def watch_guarded_increments(context):
    """GET, +1, SET under WATCH: as many successes as the counter says."""
    deadline = time.monotonic() + (12 if context.options.long else 4)
    context.client().call("SET", "n", "0")

    def work(number, client, rng):
        done = 0
        while time.monotonic() < deadline:
            client.call("WATCH", "n")
            value = int(client.call("GET", "n"))
            reply = client.pipeline([("MULTI",), ("SET", "n", value + 1), ("EXEC",)])[2]
            done += 0 if resp.is_null(reply) else 1
        return done

    done = workers(context, work)
    eq(int(context.client().call("GET", "n")), sum(done))
    check(sum(done) > 100, "only %d successes" % sum(done))


@test(timeout=60)
def no_write_skew(context):
    """WATCH a, write b against WATCH b, write a: never may both see the old state and succeed."""
    rounds = scale(context, 1200)
    a, b = context.client(), context.client()
    both = 0
    for number in range(rounds):
        a.pipeline([("MSET", "a", "0", "b", "0")])
        first = [("WATCH", "a"), ("GET", "a"), ("MULTI",), ("SET", "b", "1"), ("EXEC",)]
        second = [("WATCH", "b"), ("GET", "b"), ("MULTI",), ("SET", "a", "1"), ("EXEC",)]
        for commands, client in ((first, a), (second, b)):
            client.raw(b"".join(resp.encode(*command) for command in commands))
        replies = [[client.recv() for _ in range(5)] for client in (a, b)]
        saw_old = [reply[1] == b"0" for reply in replies]
        succeeded = [not resp.is_null(reply[4]) for reply in replies]
        if all(succeeded) and all(saw_old):
            check(False, "round %d: both read the old state and both wrote" % number)
        both += all(succeeded)
    context.say("%d rounds, in %d one came after the other" % (rounds, both))


@test(timeout=60)
def no_write_skew_interleaved(context):
    """The same in two processes, each at its own pace: a + b never exceeds one."""
    deadline = time.monotonic() + (12 if context.options.long else 4)
    context.client().call("MSET", "a", "0", "b", "0")

    def work(number, client, rng):
        mine, other = ("a", "b") if number % 2 else ("b", "a")
        taken = 0
        while time.monotonic() < deadline:
            client.call("WATCH", other, mine) if rng.random() < 0.5 else client.call(
                "WATCH", other
            )
            if client.call("GET", other) != b"0" or client.call("GET", mine) != b"0":
                client.call("UNWATCH")
                continue
            reply = client.pipeline(
                [("MULTI",), ("SET", mine, "1"), ("MGET", "a", "b"), ("EXEC",)]
            )[3]
            if resp.is_null(reply):
                continue
            state = reply[1]
            check(state != [b"1", b"1"], "both hold it")
            taken += 1
            eq(client.call("SET", mine, "0"), resp.OK)
        return taken

    # One client for each of the two keys: a key has one writer.
    taken = workers(context, work, count=2)
    check(sum(taken) > 20, "only %d successes" % sum(taken))


@test(timeout=60)
def mset_and_mget_are_atomic(context):
    names = ["m%d" % i for i in range(12)]
    context.client().call("MSET", *[part for name in names for part in (name, "start")])
    count = scale(context, 700)

    def work(number, client, rng):
        for index in range(count):
            if number % 2:
                value = "%d:%d" % (number, index)
                order = rng.sample(names, len(names))
                eq(
                    client.call("MSET", *[part for name in order for part in (name, value)]),
                    resp.OK,
                )
            else:
                values = client.call("MGET", *rng.sample(names, len(names)))
                check(len(set(values)) == 1, "MGET saw half an MSET: %s" % values)

    workers(context, work)


@test(timeout=60)
def transactions_are_isolated(context):
    """Nobody sees the state between two commands of an EXEC, in any database."""
    context.client().call("MSET", "x", "0", "y", "0")
    count = scale(context, 700)

    def work(number, client, rng):
        for index in range(count):
            if number == 0:
                value = str(index)
                client.pipeline([("MULTI",), ("SET", "x", value), ("SET", "y", value), ("EXEC",)])
            elif number == 1:
                client.pipeline([("MULTI",), ("INCR", "x"), ("INCR", "y"), ("EXEC",)])
            elif number == 2:
                values = client.call("MGET", "x", "y")
                eq(values[0], values[1], "MGET")
            else:
                reply = client.pipeline([("MULTI",), ("GET", "x"), ("GET", "y"), ("EXEC",)])[3]
                eq(reply[0], reply[1], "EXEC")

    workers(context, work)


@test(timeout=60)
def whole_database_commands_among_others(context):
    """FLUSHDB, SWAPDB, KEYS and RANDOMKEY between writers of one MSET."""
    count = scale(context, 400)

    def work(number, client, rng):
        for index in range(count):
            if number == 0:
                client.call(
                    *rng.choice([("FLUSHDB",), ("SWAPDB", "0", "1"), ("FLUSHALL", "ASYNC")])
                )
            elif number == 1:
                keys = client.call("KEYS", "*")
                check(sorted(keys) in ([], [b"p", b"q"]), "KEYS saw half an MSET: %s" % keys)
                check(client.call("RANDOMKEY") in (b"p", b"q", resp.NIL, resp.NULL), "RANDOMKEY")
            elif number == 2:
                values = client.call("MGET", "p", "q")
                check(
                    values[0] == values[1] or resp.is_null(values[0]) == resp.is_null(values[1]),
                    "MGET",
                )
                check(values[0] == values[1], "MGET saw two states: %s" % values)
            else:
                eq(client.call("MSET", "p", index, "q", index), resp.OK)

    workers(context, work)


@test(timeout=60)
def setnx_locks_exclude(context):
    """SET NX as a lock; inside, a read and a write that would lose updates without it."""
    wanted = scale(context, 120)
    context.client().call("SET", "value", "0")

    def work(number, client, rng):
        token = "owner%d" % number
        done = tries = 0
        while done < wanted:
            tries += 1
            check(tries < 200000, "the lock is never free")
            if tries % 2:
                got = client.call("SET", "lock", token, "NX", "EX", "1000") == resp.OK
            else:
                got = client.call("SETNX", "lock", token) == 1
            if not got:
                continue
            value = int(client.call("GET", "value"))
            client.call("SET", "value", value + 1)
            eq(client.call("GET", "lock"), token.encode())
            eq(client.call("DEL", "lock"), 1)
            done += 1

    workers(context, work)
    eq(context.client().call("GET", "value"), str(WORKERS * wanted).encode())


@test(timeout=60)
def getdel_gives_a_value_to_one(context):
    """GETDEL, GETSET and SET GET hand a token to exactly one client."""
    count = scale(context, 1500)
    client = context.client()
    client.pipeline([("SET", "t%d" % i, str(i)) for i in range(count)])

    def work(number, mine, rng):
        got = []
        for start in range(0, count, 50):
            replies = mine.pipeline([("GETDEL", "t%d" % i) for i in range(start, start + 50)])
            got += [reply for reply in replies if not resp.is_null(reply)]
        return got

    got = [value for part in workers(context, work) for value in part]
    eq(len(got), count)
    eq(len(set(got)), count)


@test(timeout=60)
def rename_never_loses_the_key(context):
    names = ["r%d" % i for i in range(4)]
    client = context.client()
    client.call("SET", "r0", "payload")
    count = scale(context, 800)

    def work(number, mine, rng):
        for _ in range(count):
            if number == 0:
                values = [v for v in mine.call("MGET", *names) if not resp.is_null(v)]
                eq(values, [b"payload"], "MGET saw the key twice or not at all")
            else:
                reply = mine.call("RENAME", *rng.sample(names, 2))
                check(
                    reply == resp.OK or resp.is_error(reply, "ERR no such key"), resp.show(reply)
                )

    workers(context, work)
    eq([v for v in client.call("MGET", *names) if not resp.is_null(v)], [b"payload"])


def scan_all(client, *options):
    found, cursor, steps = set(), b"0", 0
    while True:
        cursor, keys = client.call("SCAN", cursor, *options)
        found.update(keys)
        steps += 1
        check(steps < 300000, "SCAN does not end")
        if cursor == b"0":
            return found


@test(timeout=90)
def scan_finds_what_stays(context):
    """Keys that exist from start to end of an iteration are all reported, while others make the
    tables grow a hundredfold and shrink again."""
    stays = {b"stays:%d" % i for i in range(2000)}
    client = context.client()
    client.pipeline([("SET", name, "v") for name in sorted(stays)])
    deadline = time.monotonic() + (30 if context.options.long else 8)

    def write(number, mine, rng):
        rounds = 0
        while time.monotonic() < deadline:
            size = rng.choice([1000, 10000, 40000])
            for start in range(0, size, 1000):
                mine.pipeline(
                    [("SET", "w%d:%d" % (number, i), "v") for i in range(start, start + 1000)]
                )
            for start in range(0, size, 1000):
                mine.call("UNLINK", *["w%d:%d" % (number, i) for i in range(start, start + 1000)])
            rounds += 1
        return rounds

    def scan(number, mine, rng):
        rounds = 0
        while time.monotonic() < deadline or rounds == 0:
            options = rng.choice(
                [("COUNT", "10"), ("COUNT", "100"), ("COUNT", "1000"), ("MATCH", "stays:*")]
            )
            if options[0] == "MATCH":
                options += ("COUNT", "500")
            missing = stays - scan_all(mine, *options)
            check(not missing, "SCAN %s missed %d keys" % (" ".join(options), len(missing)))
            rounds += 1
        return rounds

    def work(number, mine, rng):
        return write(number, mine, rng) if number < 2 else scan(number, mine, rng)

    results = workers(context, work, seconds=80)
    context.say("%d rounds of writers, %d iterations" % (sum(results[:2]), sum(results[2:])))
    found = scan_all(client)
    eq(len(found), client.call("DBSIZE"))


@test(timeout=60)
def expiry_among_writers(context):
    """A lock with a short life: whoever gets it after its end finds no old value."""
    deadline = time.monotonic() + (12 if context.options.long else 4)

    def work(number, client, rng):
        got = 0
        while time.monotonic() < deadline:
            key = "e%d" % rng.randrange(20)
            reply = client.call("SET", key, "v", "PX", str(rng.choice([1, 2, 5])), "NX", "GET")
            check(resp.is_null(reply) or reply == b"v", resp.show(reply))
            got += resp.is_null(reply)
            remaining = client.call("PTTL", key)
            # A loop reads the clock once per batch, so another's key may seem a batch younger, and
            # a batch lasts as long as the machine keeps its thread from a core.
            check(-2 <= remaining <= 3000, "PTTL is %s" % remaining)
            check(remaining != -1, "a key without its time")
        return got

    check(sum(workers(context, work)) > 100, "too few keys expired")


@test(timeout=60)
def configuration_among_writers(context):
    """CONFIG SET, CLIENT LIST, CLIENT KILL and INFO while others work."""
    deadline = time.monotonic() + (12 if context.options.long else 4)

    def work(number, client, rng):
        done = 0
        while time.monotonic() < deadline:
            if number == 0:
                client.call("CONFIG", "SET", "maxmemory-samples", str(rng.randint(1, 10)))
                check(len(client.call("CONFIG", "GET", "*")) >= 20, "CONFIG GET")
                check(b" cmd=client|list " in bytes(client.call("CLIENT", "LIST")), "CLIENT LIST")
                check(b"# Server" in bytes(client.call("INFO", "everything")), "INFO")
                with context.sut.client() as victim:
                    number_of = victim.call("CLIENT", "ID")
                    eq(client.call("CLIENT", "KILL", "ID", number_of), 1)
            else:
                client.pipeline(
                    [("INCR", "n"), ("GET", "n"), ("SET", "k%d" % rng.randrange(100), "v")] * 20
                )
            done += 1
        return done

    results = workers(context, work)
    eq(int(context.client().call("GET", "n")), sum(results[1:]) * 20)
    context.sut.call("CONFIG", "SET", "maxmemory-samples", "5")


@test(timeout=60)
def many_connections(context):
    """Five hundred clients, each with its own conversation."""
    clients = [context.client() for _ in range(500)]
    for round_ in range(3):
        for number, client in enumerate(clients):
            client.raw(
                resp.encode("SET", "c%d" % number, round_) + resp.encode("GET", "c%d" % number)
            )
        for client in clients:
            eq([client.recv(), client.recv()], [resp.OK, str(round_).encode()])
    eq(context.client().call("DBSIZE"), 500)
