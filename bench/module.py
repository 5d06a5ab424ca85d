"""sava.so in a stock server: what its commands cost beside what users do there today.

Both sides run in one stock redis-server with sava.so, in turns: CPU of the server for AFC.ADD against
ZINCRBY, BF.ADD against SADD of the same items, and RL.TAKE against a token bucket in a Lua script;
and the memory of associations, 100,000 counters of 100 UUIDs each out of 10,000, against sorted sets.
Then slots with native data move in a cluster: the errors that a client sees which follows redirections.
"""

import os
import random
import re
import statistics
import subprocess
import sys
import uuid

import harness
import report
import resp

PIPELINE = 16
KEYS = 1_000  # and as many different members
BUCKETS = 20_000
ITEMS = 1_000_000
MEMBERS = 100
DISTINCT = 10_000

# What applications write for a token bucket: read, refill by the clock, take, store, expire.
BUCKET = """
local limit, period, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local kept = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(kept[1]) or limit, tonumber(kept[2]) or now
tokens = math.min(limit, tokens + (now - at) * limit / period)
local allowed = tokens >= 1
if allowed then tokens = tokens - 1 end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('PEXPIRE', KEYS[1], period)
return {allowed and 1 or 0, limit, math.floor(tokens)}
"""


def module_of(session):
    path = os.path.join(os.path.dirname(os.path.abspath(session.server)), "sava.so")
    if not os.path.exists(path):
        raise harness.BenchError(f"there is no {path}")
    return path


def compare(session, server, name, bar, ours, theirs, prepare=None, **options):
    """A row of two commands measured in turns, on an empty server after the command `prepare`."""
    requests = session.pick(1_000_000, 200_000)
    pairs = []
    for number in range(session.pairs):
        readings = {}
        for side, words in (("ours", ours), ("theirs", theirs))[:: 1 if number % 2 else -1]:
            with server.connect() as connection:
                connection.command("FLUSHALL")
                if prepare is not None:
                    connection.command(*prepare)
            readings[side] = harness.redis_benchmark(
                server, words=words, requests=requests, pipeline=PIPELINE, **options).cpu_us
        pairs.append((readings["ours"], readings["theirs"]))
    row = report.Row(name, statistics.median(p[0] for p in pairs), "µs CPU",
                     statistics.median(p[1] for p in pairs), harness.median_ratio(pairs), bar,
                     judged="ratio", pairs=len(pairs), note=f"{ours[0]} against {theirs[0]}",
                     details={"ratios": [round(a / b, 4) for a, b in pairs]})
    harness.say(f"{name}: {row.value:.2f} against {row.redis:.2f} µs, ratio {row.ratio:.3f} ({bar})")
    return row


def cpu_rows(session, server):
    with server.connect() as connection:
        script = connection.command("SCRIPT", "LOAD", BUCKET)
        script = script.decode() if isinstance(script, bytes) else str(script)
    key, item = "key:__rand_int__", "item:__rand_int__"
    return [
        compare(session, server, "afc_add_against_zincrby", 0.6,
                ("AFC.ADD", key, item), ("ZINCRBY", key, "1", item), keyspace=KEYS),
        compare(session, server, "bf_add_against_sadd", 0.9,
                ("BF.ADD", "filter", item), ("SADD", "set", item),
                prepare=("BF.RESERVE", "filter", "0.01", str(ITEMS)), keyspace=ITEMS),
        compare(session, server, "rl_take_against_lua", 0.5,
                ("RL.TAKE", key, "TOKEN", "10000", "3600000"),
                ("EVALSHA", script, "1", key, "10000", "3600000", "1700000000000"),
                keyspace=BUCKETS),
    ]


def associations(session, server, command):
    """Bytes of memory for one association."""
    counters = session.pick(100_000, 5_000)
    rng = random.Random(1)
    known = [str(uuid.UUID(int=rng.getrandbits(128))) for _ in range(DISTINCT)]
    with server.connect() as connection:
        connection.command("FLUSHALL")
        before = server.used_memory()
        for first in range(0, counters, 50):
            batch = []
            for counter in range(first, first + 50):
                members = rng.sample(known, MEMBERS)
                if command == "ZADD":
                    members = [word for member in members for word in ("1", member)]
                batch.append(resp.pack(command, f"key:{counter}", *members))
            connection.send(b"".join(batch))
            for _ in batch:
                connection.read()
        used = server.used_memory() - before
        connection.command("FLUSHALL")
    return used / (counters * MEMBERS)


def memory_row(session, server):
    ours = associations(session, server, "AFC.ADD")
    theirs = associations(session, server, "ZADD")
    harness.say(f"bytes per association: {ours:.1f} against {theirs:.1f}")
    return report.Row("bytes_per_association", ours, "bytes", theirs, ours / theirs, 0.25,
                      judged="ratio", note=f"{MEMBERS} members a counter, against sorted sets")


def reshard_row(session):
    slots = session.pick(3_000, 500)
    tool = os.path.join(harness.ROOT, "tools", "cluster.py")
    done = subprocess.run([sys.executable, tool, "--module", module_of(session), "--reshard",
                           str(slots), "--tags", "200"], capture_output=True, text=True, check=False)
    found = re.search(r"(\d+) commands, (\d+) redirections, .* (\d+) errors", done.stdout)
    if found is None:
        raise harness.BenchError(f"tools/cluster.py: {done.stdout[-500:]}{done.stderr[-500:]}")
    commands, redirections, errors = map(int, found.groups())
    harness.say(done.stdout.strip().splitlines()[-1])
    return report.Row("errors_while_slots_move", errors, "errors", None, None, 0, judged="value",
                      note=f"{slots} slots there and back, {commands} commands, "
                           f"{redirections} redirections")


def run(session):
    with session.stock("--loadmodule", module_of(session)) as server:
        rows = [*cpu_rows(session, server), memory_row(session, server)]
    return [*rows, reshard_row(session)]


BENCHMARK = harness.Benchmark("module", "sava.so in redis-server beside what users do there", run)
