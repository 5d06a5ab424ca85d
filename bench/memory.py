"""Resident memory: per key, empty, after churn, after FLUSHALL, and how honest used_memory is.

Keys are 16 bytes, values 32. A figure per key is the growth of the process's resident set since the
empty server, divided by the number of keys, so table, allocator and everything else count. Keys go
in through one pipelined connection; no command is under way when memory is read. The main figure
and the one with a TTL are read after a few idle seconds, the worst of a range is sampled without
any pause. Stock Redis is filled once, for the ratio of the main figure.
"""

import random
import time

import harness
import report
import resp

MEGA = 1_000_000
VALUE_BYTES = 32
CHURN_SIZES = (8, 512)
SETTLE_SECONDS = 2.0  # what was freed goes back to the system within a second or so
REST_SECONDS = 5.0
AFTER_FLUSH_SECONDS = 5.0


def empty_rss(server):
    """Resident memory of a server that has answered its first commands and is idle."""
    with server.connect() as connection:
        connection.command("PING")
    time.sleep(SETTLE_SECONDS)
    return server.rss()


def fill_and_sample(server, base, points, main, **options):
    """Fills up to each point in turn and reads the memory there, still warm from filling.

    Returns {keys: bytes per key} and, for the point `main`, the bytes per key after a pause.
    """
    samples = {}
    rested = None
    done = 0
    with server.connect() as connection:
        for point in points:
            resp.fill(connection, done, point, value_bytes=VALUE_BYTES, **options)
            done = point
            samples[point] = (server.rss() - base) / point
            if point == main:
                time.sleep(REST_SECONDS)
                rested = (server.rss() - base) / point
        if connection.command("DBSIZE") != done:
            raise harness.BenchError("DBSIZE is not what was filled in")
    return samples, rested


def per_key_rows(session):
    main = session.pick(10 * MEGA, MEGA)
    marks = [main * tenths // 10 for tenths in range(8, 17)]
    finest = main // 50
    points = list(range(finest, marks[-1] + 1, finest))
    with session.sava() as sava:
        base = empty_rss(sava)
        harness.say(f"filling {marks[-1] / MEGA:g}M keys")
        samples, ours = fill_and_sample(sava, base, points, main)
    harness.say(f"{ours:.1f} bytes a key at {main / MEGA:g}M; now Redis, then keys with a TTL")
    with session.stock() as redis:
        _, theirs = fill_and_sample(redis, empty_rss(redis), [main], main)
    with session.sava() as sava:
        _, ttl = fill_and_sample(sava, empty_rss(sava), [main], main, ttl=True)
    worst = max(marks, key=samples.get)
    finest_worst = max((p for p in points if p >= marks[0]), key=samples.get)
    details = {f"{mark / MEGA:g}M": round(samples[mark], 2) for mark in marks}
    return [
        report.Row("rss_empty", base / 2**20, "MB", bar=30),
        report.Row("rss_per_key", ours, "bytes", theirs, ours / theirs, 76,
                   note=f"{main / MEGA:g}M keys, payload 48"),
        report.Row("rss_per_key_worst", samples[worst], "bytes", bar=82, details=details,
                   note=f"of {marks[0] / MEGA:g}M to {marks[-1] / MEGA:g}M: at {worst / MEGA:g}M"),
        report.Row("rss_per_key_worst_fine", samples[finest_worst], "bytes",
                   note=f"sampled every {finest / MEGA:g}M: at {finest_worst / MEGA:g}M"),
        report.Row("rss_per_key_ttl", ttl, "bytes", bar=92,
                   note=f"{main / MEGA:g}M keys, every key with a TTL"),
    ]


def flush_row(session):
    keys = session.pick(10 * MEGA, MEGA)
    with session.sava() as sava, sava.connect() as connection:
        harness.say(f"FLUSHALL of {keys / MEGA:g}M keys")
        resp.fill(connection, 0, keys, value_bytes=VALUE_BYTES)
        peak = sava.rss_peak()
        began = time.monotonic()
        connection.command("FLUSHALL")
        took = time.monotonic() - began
        time.sleep(AFTER_FLUSH_SECONDS)
        after = sava.rss()
    return report.Row("rss_after_flushall", 100 * after / peak, "% of peak", bar=15,
                      note=f"{peak / 2**20:.0f} MB before, {after / 2**20:.0f} MB 5 s after; "
                           f"FLUSHALL answered after {took * 1000:.0f} ms")


def churn_chunks(keys, overwrites, per_chunk=10_000):
    """SETs of random keys with values of random size, the same ones in every run."""
    rng = random.Random(20240601)
    heads = [b"*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n" % key for key in range(keys)]
    tails = [b"$%d\r\n%s\r\n" % (size, b"v" * size)
             for size in range(CHURN_SIZES[0], CHURN_SIZES[1] + 1)]
    parts = [b""] * (2 * per_chunk)
    for _ in range(overwrites // per_chunk):
        parts[::2] = rng.choices(heads, k=per_chunk)
        parts[1::2] = rng.choices(tails, k=per_chunk)
        yield b"".join(parts)


def honesty(server):
    """How far used_memory is from resident memory, in percent, and both in bytes."""
    time.sleep(SETTLE_SECONDS)
    used, rss = server.used_memory(), server.rss()
    return 100 * abs(used - rss) / rss, used, rss


def churn_rows(session):
    keys = MEGA
    overwrites = session.pick(30 * MEGA, 5 * MEGA)
    with session.sava() as sava, sava.connect() as connection:
        resp.fill(connection, 0, keys, value_bytes=VALUE_BYTES)
        plain_gap, plain_used, plain_rss = honesty(sava)
        harness.say(f"{overwrites / MEGA:g}M overwrites of {CHURN_SIZES[0]} to {CHURN_SIZES[1]} "
                    f"bytes on {keys / MEGA:g}M keys")
        resp.stream_ok([connection], churn_chunks(keys, overwrites), 10_000)
        gap, used, rss = honesty(sava)
        payload = keys * (16 + sum(CHURN_SIZES) / 2)
    return [
        report.Row("rss_after_churn", rss / used, "× used", bar=1.35,
                   note=f"{rss / 2**20:.0f} MB resident, {used / 2**20:.0f} MB used, "
                        f"{rss / payload:.2f} × payload"),
        report.Row("used_memory_gap", plain_gap, "% of RSS", bar=10,
                   note=f"{keys / MEGA:g}M keys: {plain_used / 2**20:.1f} MB used, "
                        f"{plain_rss / 2**20:.1f} MB resident"),
        report.Row("used_memory_gap_churn", gap, "% of RSS", bar=10, note="after the overwrites"),
    ]


def run(session):
    harness.need_memory(session.pick(3, 1) * 2**30)
    return per_key_rows(session) + [flush_row(session)] + churn_rows(session)


BENCHMARK = harness.Benchmark("memory", "resident memory per key, empty, after churn, flush", run)
