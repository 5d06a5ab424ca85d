"""Snapshots taken under load show one instant: money that moves between accounts is never there
twice and never missing, whatever else goes on: flushed and swapped databases, renamed, moved and
copied keys, expiry, eviction, large values that change in the middle.

Every dump is loaded by a server of its own, by a stock Redis too when it holds strings only.
"""

import os
import random
import shutil
import time

import durability
import resp
from durability import contents, durable
from harness import SLOW, check, eq, run_workers, test

NO_SAVE = ("--save", "")
NO_LOG = ("--appendonly", "no")
ACCOUNTS = [b"account:%d" % n for n in range(40)]
WANDERERS = 10  # keys with several possible names
ROAMERS = 10  # keys that are in database 0 or 4
SWAPPED = 30  # keys in each of the databases 2 and 3
FILLED = 9  # a database that only makes the snapshot long
BALANCE = 1000
LARGE = 300_000


def prepare(server, native, filler):
    with server.client() as client:
        commands = [("SET", name, BALANCE) for name in ACCOUNTS]
        commands += [("SET", b"wanderer:%d:0" % n, BALANCE) for n in range(WANDERERS)]
        commands += [("SET", b"roamer:%d" % n, BALANCE) for n in range(ROAMERS)]
        commands += [("SET", "large", bytes(LARGE)), ("SET", "large:sum", "0")]
        if native:
            commands += [("AFC.ADD", "afc", "first"), ("SET", "afc:total", "1")]
        for db in (2, 3):
            commands += [("SELECT", db)]
            commands += [("SET", b"swapped:%d" % n, BALANCE) for n in range(SWAPPED)]
        for reply in client.pipeline(commands):
            check(not resp.is_error(reply), resp.show(reply))
        if filler:
            client.call("SELECT", FILLED)
            eq(client.call("DEBUG", "POPULATE", filler, "filler", "50"), resp.OK)


def transaction(*commands):
    return [("MULTI",), *commands, ("EXEC",)]


def transfers(rng):
    a, b = rng.sample(ACCOUNTS, 2)
    amount = rng.randint(1, 30)
    return transaction(("DECRBY", a, amount), ("INCRBY", b, amount))


def there_and_back(rng):
    """An account under another name, within one transaction."""
    name = rng.choice(ACCOUNTS)
    amount = rng.randint(1, 9)
    other = rng.choice([one for one in ACCOUNTS if one != name])
    return transaction(
        ("RENAME", name, b"away"), ("INCRBY", b"away", amount), ("DECRBY", other, amount),
        ("RENAME", b"away", name),
    )


def between_databases(rng):
    a, b = rng.randrange(SWAPPED), rng.randrange(SWAPPED)
    amount = rng.randint(1, 30)
    return transaction(
        ("SELECT", 2), ("DECRBY", b"swapped:%d" % a, amount),
        ("SELECT", 3), ("INCRBY", b"swapped:%d" % b, amount), ("SELECT", 0),
    )


def swap(rng):
    return [("SWAPDB", 2, 3)]


def flush(rng):
    return [("SELECT", 1), ("FLUSHDB",), ("SELECT", 0)]


def elsewhere(rng):
    """What is flushed."""
    commands = [("SELECT", 1)]
    commands += [("SET", b"passing:%d" % rng.randrange(3000), b"x" * rng.choice((5, 500)))
                 for _ in range(20)]
    return commands + [("SELECT", 0)]


def expiring(rng):
    return [("SET", b"short:%d" % rng.randrange(300), b"x" * 50, "PX", rng.choice((1, 5, 50)))
            for _ in range(10)]


def copies(rng):
    return [("COPY", rng.choice(ACCOUNTS), b"copy:%d" % rng.randrange(20), "REPLACE"),
            ("COPY", rng.choice(ACCOUNTS), b"copy:%d" % rng.randrange(20), "DB", 5, "REPLACE")]


PORTABLE = [transfers] * 6 + [there_and_back, between_databases, between_databases, elsewhere, swap,
                              expiring, copies]


def mixed_work(address, rng, deadline, kinds):
    """Batches of the kinds until the time has come; how many."""
    done = 0
    with resp.Client(address, 60) as client:
        while time.time() < deadline:
            batch = [c for _ in range(rng.choice((1, 3, 8))) for c in rng.choice(kinds)(rng)]
            for command, reply in zip(batch, client.pipeline(batch)):
                parts = reply if type(reply) is list else [reply]
                check(
                    not any(map(resp.is_error, parts)), "%s: %s" % (command, resp.show(reply))
                )
            done += len(batch)
    return done


def moving_work(address, rng, deadline):
    """Wanderers take other names, roamers other databases, flushes happen; one client alone, so
    that it knows where each of them is."""
    names = [0] * WANDERERS
    places = [0] * ROAMERS
    done = 0
    with resp.Client(address, 60) as client:
        while time.time() < deadline:
            n, m = rng.randrange(WANDERERS), rng.randrange(ROAMERS)
            target = (names[n] + rng.randint(1, 3)) % 4
            batch = [("RENAME", b"wanderer:%d:%d" % (n, names[n]), b"wanderer:%d:%d" % (n, target))]
            batch += [("SELECT", places[m]), ("MOVE", b"roamer:%d" % m, 4 - places[m])]
            batch += [("SELECT", 0)]
            names[n], places[m] = target, 4 - places[m]
            if rng.random() < 0.05:
                batch += flush(rng)
            replies = client.pipeline(batch)
            eq(replies[:4], [resp.OK, resp.OK, 1, resp.OK], "moving")
            done += len(batch)
    return done


def large_work(address, rng, deadline, native):
    """Bytes of a long string become 1, their number is counted in the same transaction; members of
    a counter likewise."""
    places = list(range(LARGE))
    rng.shuffle(places)
    done = 0
    with resp.Client(address, 60) as client:
        while time.time() < deadline and len(places) > 40:
            batch = []
            for _ in range(rng.choice((1, 4, 10))):
                batch += transaction(
                    ("SETRANGE", "large", places.pop(), b"\1"), ("INCR", "large:sum"))
                if native:
                    members = [b"m%d" % rng.randrange(20000) for _ in range(5)]
                    batch += transaction(
                        ("AFC.ADD", "afc", *members), ("INCRBY", "afc:total", len(members)))
            for reply in client.pipeline(batch):
                check(not resp.is_error(reply), resp.show(reply))
            done += len(batch)
    return done


def check_sums(found, native, what):
    """`found`: what a server loaded."""
    by_key = {}
    for (db, key), (value, _) in found.items():
        by_key.setdefault(key.split(b":")[0], []).append((db, key, value))

    def total(kind, dbs):
        rows = [row for row in by_key.get(kind, []) if row[0] in dbs]
        return len(rows), sum(int(row[2]) for row in rows)

    eq(total(b"account", (0,)), (len(ACCOUNTS), len(ACCOUNTS) * BALANCE), what + ": accounts")
    eq(total(b"wanderer", (0,)), (WANDERERS, WANDERERS * BALANCE), what + ": wanderers")
    eq(total(b"roamer", (0, 4)), (ROAMERS, ROAMERS * BALANCE), what + ": roamers")
    eq(total(b"swapped", (2, 3)), (2 * SWAPPED, 2 * SWAPPED * BALANCE), what + ": swapped")
    check((0, b"away") not in found, what + ": a name that only a transaction sees")
    eq(found[0, b"large"][0].count(1), int(found[0, b"large:sum"][0]), what + ": the long string")
    if native:
        total = sum(found[0, b"afc"][0].values())
        eq(total, int(found[0, b"afc:total"][0]), what + ": the counter")


def run_load(context, server, seconds, saver, native, extra=()):
    """All kinds of work for a time, and `saver(address, deadline)` beside; its result."""
    address = server.address
    deadline = time.time() + seconds
    seeds = [context.rng("load %d" % n).random() for n in range(8)]
    work = [
        lambda: saver(address, deadline),
        lambda: mixed_work(address, random.Random(seeds[0]), deadline, PORTABLE + list(extra)),
        lambda: mixed_work(address, random.Random(seeds[1]), deadline, PORTABLE + list(extra)),
        lambda: moving_work(address, random.Random(seeds[2]), deadline),
        lambda: large_work(address, random.Random(seeds[3]), deadline, native),
    ]
    results = run_workers(work, seconds + 60)
    return results[0], sum(results[1:])


def dump_saver(server, folder):
    """BGSAVE after BGSAVE; each dump is put aside."""

    def save(address, deadline):
        count = 0
        with resp.Client(address, 60) as client:
            while time.time() < deadline:
                before = info(client)["rdb_saves"]
                reply = client.call("BGSAVE")
                check(not resp.is_error(reply), resp.show(reply))
                while True:
                    fields = info(client)
                    if fields["rdb_bgsave_in_progress"] == "0" and fields["rdb_saves"] != before:
                        break
                    time.sleep(0.005)
                eq(fields["rdb_last_bgsave_status"], "ok")
                os.mkdir(os.path.join(folder, str(count)))
                shutil.copy(server.path("dump.rdb"), os.path.join(folder, str(count), "dump.rdb"))
                count += 1
        return count

    return save


def info(client):
    lines = client.call("INFO", "persistence").decode().split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)


def without_filler(server, filler):
    """`contents` without the keys that only make the snapshot long; they must all be there."""
    with server.client(db=FILLED) as client:
        eq(client.call("DBSIZE"), filler, "keys that nobody touches")
        client.call("FLUSHDB")
    return contents(server)


def check_dumps(context, folder, count, native, filler, most):
    """Loads the dumps, at most `most` of them, evenly chosen."""
    chosen = sorted({int(n * count / most) for n in range(most)}) if count > most else range(count)
    for number in chosen:
        place = os.path.join(folder, str(number))
        binaries = [context.options.server]
        if not native and context.is_sava and number % 2 == 0:
            durability.passes(durability.CHECK_RDB, os.path.join(place, "dump.rdb"))
            binaries.append(context.options.stock)
        for binary in binaries:
            server = durable(context, *NO_SAVE, *NO_LOG, binary=binary, directory=place)
            what = "dump %d in %s" % (number, server.name)
            check_sums(without_filler(server, filler), native, what)
            server.kill()
    return len(chosen)


def snapshots(context, native, *options, filler=60_000, extra=()):
    long = 6 if context.options.long else 1
    seconds = 2.0 * long * max(1.0, SLOW / 2)
    server = durable(context, *NO_SAVE, *NO_LOG, *options)
    prepare(server, native, filler)
    folder = context.temp_dir()
    count, commands = run_load(
        context, server, seconds, dump_saver(server, folder), native, extra)
    check(count >= 2, "too few snapshots: %d" % count)
    check_sums(without_filler(server, filler), native, "the live server")
    loaded = check_dumps(context, folder, count, native, filler, 3 * long)
    context.say("%d snapshots, %d loaded, %d commands meanwhile" % (count, loaded, commands))


@test(timeout=90)
def of_strings(context):
    snapshots(context, False)


@test(timeout=90)
def of_native_types(context):
    context.sava_only()
    snapshots(context, True)


@test(timeout=60)
def of_values_of_every_size(context):
    """Nothing is left out, whatever the sizes; and again, because a second snapshot builds on the
    marks of the first."""
    server = durable(context, *NO_SAVE, *NO_LOG)
    rng = context.rng("sizes")
    with server.client() as client:
        for size in (10, 400, 5000, 20_000, 70_000, 300_000):
            count = min(2000, 3_000_000 // size)
            client.pipeline([("SET", b"%d:%d" % (size, n), rng.randbytes(size))
                             for n in range(count)])
    for number in range(3):
        expected = contents(server)
        if number == 1:
            durability.background_save(server)
        eq(server.call("SAVE"), resp.OK)
        server.kill()
        found = contents(server.restart())
        durability.same_contents(expected, found, "snapshot %d" % number)
        with server.client() as client:
            client.pipeline([("APPEND", key, b"more") for _, key in sorted(found)[:: 7]])
            client.pipeline([("DEL", key) for _, key in sorted(found)[:: 11]])


@test(timeout=90)
def under_eviction(context):
    """A cache in the same server is evicted all the time; what has no expiry stays."""

    def cached(rng):
        return [("SET", b"cached:%d" % rng.randrange(100_000), b"x" * 400, "PX", 600_000)
                for _ in range(30)]

    snapshots(
        context, False, "--maxmemory", "14mb", "--maxmemory-policy", "volatile-lru",
        filler=0, extra=[cached] * 4,
    )


@test(timeout=90)
def with_a_slow_walk(context):
    """Few changes, many keys: most pre-images are of keys the walker has not reached."""
    snapshots(context, context.is_sava, "--rdbcompression", "no", filler=200_000)


@test(timeout=90)
def of_the_log(context):
    """The same with the log: rewrites meanwhile, then SIGKILL, then the sums."""
    native = context.is_sava
    server = durable(context, *NO_SAVE, "--appendonly", "yes")
    prepare(server, native, 0)

    def rewriter(address, deadline):
        count = 0
        with resp.Client(address, 60) as client:
            while time.time() < deadline - 0.3:
                reply = client.call("BGREWRITEAOF")
                check(not resp.is_error(reply), resp.show(reply))
                while True:
                    fields = info(client)
                    if fields["aof_rewrite_in_progress"] + fields["aof_rewrite_scheduled"] == "00":
                        break
                    time.sleep(0.005)
                eq(fields["aof_last_bgrewrite_status"], "ok")
                count += 1
        return count

    total, kills = 0, 8 if context.options.long else 2
    for _ in range(kills):
        count, commands = run_load(context, server, 1.5, rewriter, native)
        total += count
        server.kill()
        server.restart()
        check_sums(contents(server), native, "after a kill")
        reset_movers(server)
    context.say("%d rewrites, %d kills" % (total, kills))


def reset_movers(server):
    """Names and places as the load expects them at its beginning; the long string empty again."""
    with server.client() as client:
        for key in durability.keys_of(client):
            if key.startswith(b"wanderer:"):
                client.call("RENAME", key, key.rsplit(b":", 1)[0] + b":0")
        client.pipeline([("SET", "large", bytes(LARGE)), ("SET", "large:sum", "0"), ("SELECT", 4)])
        for key in durability.keys_of(client):
            client.call("MOVE", key, 0)
