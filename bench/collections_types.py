"""Lists, sets, sorted sets and hashes beside stock Redis on the same work.

Sections, each with servers of its own (SAVA_COLLECTIONS=memory,cpu takes some of them only):

memory     growth of VmRSS per member of one large value (1M members of 16 characters), and per key
           of 200,000 small hashes (with distinct values, and with repeated ones) and sorted sets of ten.
cpu        server CPU per command on values of 1M members, redis-benchmark, pipeline 16, one thread.
threads    two threads against one inside the engine (runs sava_bench_engine).
handover   1,000 clients wait in BLPOP on one list; one client pushes: server CPU per message.
release    DEL and UNLINK of a value of 1M members: the longest turn of an event loop.
save       one sorted set of 10M members, BGSAVE under ZINCRBY: extra memory, the longest turn.
"""

import os
import selectors
import statistics
import time

import harness
import report
import resp
import scaling
import stalls
from durability_tools import Load, attempt, pair_of, save, value_row

MEGA = 1_000_000
SETTLE_SECONDS = 2.0
PER_CHUNK = 1_000
WAITERS = 1_000


# ---- filling ----

def fill(server, commands):
    """Sends the commands in large pipelines; none may fail."""
    with server.connect() as connection:
        batch = []
        for command in commands:
            batch.append(command)
            if len(batch) == PER_CHUNK:
                check(server, connection.pipeline(batch))
                batch = []
        check(server, connection.pipeline(batch))


def check(server, replies):
    for reply in replies:
        if isinstance(reply, Exception):
            raise harness.BenchError(f"{server.role}: {reply}")


def member(number):
    return b"m%015d" % number


def field_value(number):
    return b"v%031d" % number


def scattered(count):
    """The numbers below `count`, once each, in an order without a pattern worth having."""
    step = 7_368_787
    return ((number * step) % count for number in range(count))


def in_groups(numbers, size):
    group = []
    for number in numbers:
        group.append(number)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def large_zset(key, count):
    for group in in_groups(scattered(count), 10):
        yield (b"ZADD", key, *(word for n in group for word in (b"%d" % (n % 100_003), member(n))))


def large_set(key, count):
    for group in in_groups(scattered(count), 10):
        yield (b"SADD", key, *(member(n) for n in group))


def large_hash(key, count):
    for group in in_groups(scattered(count), 10):
        yield (b"HSET", key, *(word for n in group for word in (member(n), field_value(n))))


def large_list(key, count):
    for group in in_groups(range(count), 10):
        yield (b"RPUSH", key, *(member(n) for n in group))


LARGE = {"zset": large_zset, "set": large_set, "hash": large_hash, "list": large_list}


# ---- memory ----

def growth(server, commands):
    with server.connect() as connection:
        connection.command("PING")
    time.sleep(SETTLE_SECONDS)
    before = server.rss()
    fill(server, commands)
    time.sleep(SETTLE_SECONDS)
    return server.rss() - before


def small_hashes(count):
    for n in range(count):
        words = (word for f in range(10) for word in (b"field:%d" % f, b"v%015d" % (n * 10 + f)))
        yield (b"HSET", b"key:%012d" % n, *words)


def repeating_hashes(count):
    """Long values out of a few hundred, as categories, places or agents of browsers are."""
    for n in range(count):
        words = (word for f in range(10)
                 for word in (b"field:%d" % f, b"a value that many have %06d" % ((n * 7 + f) % 300)))
        yield (b"HSET", b"key:%012d" % n, *words)


def small_zsets(count):
    for n in range(count):
        words = (word for f in range(10) for word in (b"%d" % f, member(n * 10 + f)))
        yield (b"ZADD", b"key:%012d" % n, *words)


def memory(session):
    count = session.pick(MEGA, MEGA // 5)
    keys = session.pick(200_000, 50_000)
    cases = [
        ("rss_zset_member", lambda: large_zset(b"value", count), count, 60),
        ("rss_set_member", lambda: large_set(b"value", count), count, 34),
        ("rss_hash_field", lambda: large_hash(b"value", count), count, 68),
        ("rss_list_element", lambda: large_list(b"value", count), count, None),
        ("rss_small_hash", lambda: small_hashes(keys), keys, 330),
        ("rss_small_hash_repeated", lambda: repeating_hashes(keys), keys, None),
        ("rss_small_zset", lambda: small_zsets(keys), keys, 250),
    ]
    rows = []
    for name, commands, per, bar in cases:
        with session.sava("--threads", "1") as sava:
            ours = growth(sava, commands()) / per
        with session.stock() as redis:
            theirs = growth(redis, commands()) / per
        rows.append(report.Row(name, ours, "bytes", theirs, ours / theirs, bar,
                               note=f"{per:,} of them"))
        harness.say(f"{name}: {ours:.1f} against {theirs:.1f} bytes ({bar})")
    return rows


# ---- CPU ----

CPU_CASES = [
    ("zadd_p16", ("ZADD", "zset", "__rand_int__", "m000__rand_int__"), 0.45),
    ("zincrby_p16", ("ZINCRBY", "zset", "1", "m000__rand_int__"), 0.45),
    ("sadd_p16", ("SADD", "set", "m000__rand_int__"), 0.6),
    ("hset_p16", ("HSET", "hash", "m000__rand_int__", "w" * 32), 0.6),
    ("lpush_p16", ("LPUSH", "list", "m000__rand_int__"), 0.75),
    ("lpop_p16", ("LPOP", "list"), 0.75),
    ("lrange_100_p16", ("LRANGE", "list", "0", "99"), 0.5),
    ("zscore_p16", ("ZSCORE", "zset", "m000__rand_int__"), None),
    ("sismember_p16", ("SISMEMBER", "set", "m000__rand_int__"), None),
    ("hget_p16", ("HGET", "hash", "m000__rand_int__"), None),
    ("zrange_by_score_p16", ("ZRANGE", "zset", "__rand_int__", "+inf", "BYSCORE", "LIMIT", "0",
                             "10"), None),
]


def cpu(session):
    count = session.pick(MEGA, MEGA // 5)
    requests = session.pick(500_000, 100_000)
    rows = []
    with session.sava("--threads", "1") as sava, session.stock() as redis:
        harness.say(f"filling values of {count:,} members")
        for server in (sava, redis):
            for kind, commands in LARGE.items():
                fill(server, commands(kind.encode(), count))
        for name, words, bar in CPU_CASES:
            asked = requests // 10 if "range" in name else requests

            def load(server, share=1):
                return harness.redis_benchmark(server, words=words, requests=asked // share,
                                               pipeline=16, keyspace=count)

            for server in (sava, redis):
                load(server, share=4)
            pairs = harness.interleave(session, sava, redis, load)
            cpus = [(ours.cpu_us, theirs.cpu_us) for ours, theirs in pairs]
            ratio = harness.median_ratio(cpus)
            rows.append(report.Row(
                name, statistics.median(a for a, _ in cpus), "µs CPU",
                statistics.median(b for _, b in cpus), ratio, bar, judged="ratio",
                pairs=len(cpus), note=" ".join(words)[:40]))
            harness.say(f"{name}: ratio {ratio:.3f} ({bar})")
    return rows


# ---- threads ----

THREAD_BARS = {"zincrby_many": 1.7, "zincrby_one": 0.9}


def threads(session):
    runs = [scaling.engine_rows(session) for _ in range(session.pairs)]
    rows = []
    for name, bar in THREAD_BARS.items():
        ratios = [run[name]["ratio"] for run in runs if name in run]
        rows.append(report.Row(name, statistics.median(ratios) if ratios else None, "×", bar=bar,
                               sense="min", pairs=len(ratios),
                               note="" if ratios else "not reported by the program"))
    return rows


# ---- hand-over ----

def hand_over(server, messages):
    """Server CPU in µs for a message that goes to one of 1,000 waiting clients."""
    waiting = [server.connect() for _ in range(WAITERS)]
    blpop = resp.pack("BLPOP", "queue", "0")
    selector = selectors.DefaultSelector()
    for connection in waiting:
        connection.send(blpop)
        selector.register(connection.sock, selectors.EVENT_READ, connection)
    with server.connect() as pusher:
        while int(server.info("clients")["blocked_clients"]) < WAITERS:
            time.sleep(0.01)
        before = server.cpu_seconds()
        served = 0
        while served < messages:
            pusher.send(resp.pack("RPUSH", "queue", "message") * 50)
            for _ in range(50):
                pusher.read()
            got = 0
            while got < 50:
                for key, _ in selector.select(10):
                    key.data.read()
                    key.data.send(blpop)
                    got += 1
            served += got
        used = server.cpu_seconds() - before
    selector.close()
    for connection in waiting:
        connection.close()
    return used / served * 1e6


def handover(session):
    messages = session.pick(50_000, 10_000)
    rows = []
    for name, bar, options in (("blpop_handover", 1.0, ("--threads", "1")),
                               ("blpop_handover_default_threads", 1.5, ())):
        with session.sava(*options) as sava, session.stock() as redis:
            pairs = harness.interleave(session, sava, redis,
                                       lambda server: hand_over(server, messages))
        rows.append(report.Row(
            name, statistics.median(a for a, _ in pairs), "µs CPU",
            statistics.median(b for _, b in pairs), harness.median_ratio(pairs), bar,
            judged="ratio", pairs=len(pairs), note=f"a message, {WAITERS:,} clients wait"))
        harness.say(f"{name}: ratio {rows[-1].ratio:.3f} ({bar})")
    return rows


# ---- release ----

def release(session):
    count = session.pick(MEGA, MEGA // 5)
    longest, over = 0.0, 0
    with session.sava() as sava:
        for kind, commands in LARGE.items():
            for word in ("DEL", "UNLINK"):
                fill(sava, commands(b"value", count))

                def drop(word=word):
                    with sava.connect() as connection:
                        if connection.command(word, "value") != 1:
                            raise harness.BenchError(f"{kind}: {word} found nothing")
                    time.sleep(0.5)

                stall, many, _, _ = stalls.watch(sava, drop)
                harness.say(f"{word} of a {kind}: {stall} ms")
                longest, over = max(longest, stall or 0), over + (many or 0)
    return [report.Row("release_longest_stall", longest, "ms", bar=5,
                       note=f"DEL and UNLINK of {count:,} members, each kind"),
            report.Row("release_stalls_over_5ms", over, "", bar=0)]


# ---- save ----

def save_large(session, server, members):
    harness.say(f"{server.role}: filling a sorted set of {members / MEGA:g}M members")
    with Load(session, server, "--verb", "zincrby", "--order", "once", "--count",
              members) as filling:
        filling.finish(timeout=900)
    if server.command("ZCARD", "counter") != members:
        raise harness.BenchError("the sorted set does not have all its members")
    with Load(session, server, "--verb", "zincrby", "--rate", 20_000, "--tick-us", 1000,
              "--connections", 10, "--count", members):
        time.sleep(session.pick(3, 1))
        server.command("CONFIG", "RESETSTAT")
        done = save(server)
        stall = server.info("sava").get("loop_stall_max_us")
    return done, None if stall is None else float(stall) / 1000


def saving(session):
    members = session.pick(10 * MEGA, MEGA // 2)
    sava, redis = pair_of(session)
    with sava:
        ours, stall = save_large(session, sava, members)
    with redis:
        theirs, _ = save_large(session, redis, members)
    return [
        value_row("save_zset_memory", ours.extra_percent, "%", 10, theirs.extra_percent,
                  f"{members / MEGA:g}M members, 20,000 ZINCRBY/s; {ours.seconds:.1f} s, "
                  f"Redis {theirs.seconds:.1f} s"),
        value_row("save_zset_stall", stall, "ms", 10, note="longest turn of a loop"),
    ]


SECTIONS = {"memory": memory, "cpu": cpu, "threads": threads, "handover": handover,
            "release": release, "save": saving}


def run(session):
    wanted = [name for name in os.environ.get("SAVA_COLLECTIONS", "").split(",") if name]
    unknown = set(wanted) - set(SECTIONS)
    if unknown:
        raise harness.BenchError(f"SAVA_COLLECTIONS: no section {', '.join(sorted(unknown))}")
    rows = []
    for name in wanted or SECTIONS:
        rows += attempt(name, lambda name=name: SECTIONS[name](session))
    return rows


BENCHMARK = harness.Benchmark("collections", "lists, sets, sorted sets and hashes against Redis",
                              run)
