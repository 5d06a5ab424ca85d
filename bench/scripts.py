"""Scripts: what EVALSHA costs beside redis-server.

A lock's release (compare and delete, one declared key), and a counter whose key is not declared.
"""

import statistics

import harness
import report

RELEASE = ("if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end "
           "return 0")
COUNT = "return redis.call('INCR', 'counter:' .. ARGV[1])"
KEYSPACE = 100_000


def load_script(server, script):
    with server.connect() as connection:
        reply = connection.command("SCRIPT", "LOAD", script)
    return reply.decode() if isinstance(reply, bytes) else reply


def measure(session, server, script, words, pipeline):
    sha = load_script(server, script)
    requests = session.pick(1_000_000, 200_000) // (1 if pipeline > 1 else 5)
    return harness.redis_benchmark(server, words=("EVALSHA", sha, *words), requests=requests,
                                   pipeline=pipeline, keyspace=KEYSPACE)


def beside_redis(session, name, bar, threads, script, words, pipeline):
    def take(server):
        return measure(session, server, script, words, pipeline).cpu_us

    with session.sava("--threads", threads) as sava, session.stock() as redis:
        pairs = harness.interleave(session, sava, redis, take)
    row = report.Row(name, statistics.median(p[0] for p in pairs), "µs CPU",
                     statistics.median(p[1] for p in pairs), harness.median_ratio(pairs), bar,
                     judged="ratio", pairs=len(pairs),
                     details={"ratios": [round(a / b, 4) for a, b in pairs]})
    harness.say(f"{name}: {row.value:.2f} against {row.redis:.2f} µs, ratio {row.ratio:.3f} ({bar})")
    return row


def run(session):
    release = ("1", "lock:__rand_int__", "token")
    rows = [beside_redis(session, "release_p16", 0.75, "1", RELEASE, release, 16),
            beside_redis(session, "release_p1", None, "1", RELEASE, release, 1),
            beside_redis(session, "undeclared_p1", 1.1, "0", COUNT, ("0", "__rand_int__"), 1),
            beside_redis(session, "undeclared_p16", None, "0", COUNT, ("0", "__rand_int__"), 16)]
    return rows


BENCHMARK = harness.Benchmark("scripts", "EVALSHA with declared and undeclared keys", run)
