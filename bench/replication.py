"""Replication: what a replica costs its master, and how long a full copy takes.

The replica is stock redis-server on both sides, so that only the master differs. CPU per SET at
pipeline 16 is read on the master with and without a replica that keeps up; the figure is the ratio
of the two, for Sava and for Redis. A copy is timed from REPLICAOF until the replica says that its
link is up, and the master's memory is read at its peak meanwhile.
"""

import statistics
import time

import harness
import report

KEYS = 100_000


def replication(server):
    return server.info("replication")


def wait_for(condition, what, seconds=600):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise harness.BenchError(f"{what} did not come about")
        time.sleep(0.01)


def follow(replica, master):
    """Seconds until the copy is there."""
    start = time.monotonic()
    with replica.connect() as connection:
        connection.command("REPLICAOF", "127.0.0.1", str(master.port))
    wait_for(lambda: replication(replica).get("master_link_status") == "up", "the link")
    return time.monotonic() - start


def leave(replica, master):
    with replica.connect() as connection:
        connection.command("REPLICAOF", "NO", "ONE")
        connection.command("FLUSHALL")
    wait_for(lambda: replication(master)["connected_slaves"] == "0", "the end of the link")


def caught_up(master, replica):
    wait_for(lambda: replication(master)["master_repl_offset"]
             == replication(replica)["slave_repl_offset"], "the same offset")


def set_cpu(server, session):
    return harness.redis_benchmark(server, test="set", requests=session.pick(2_000_000, 400_000),
                                   pipeline=16, keyspace=KEYS).cpu_us


def cost_of_a_replica(session, sava, redis, replica):
    ratios = {"sava": [], "redis": []}
    figures = {"sava": [], "redis": []}
    lags = {"sava": [], "redis": []}
    for number in range(session.pairs):
        for master in (sava, redis) if number % 2 == 0 else (redis, sava):
            alone = set_cpu(master, session)
            follow(replica, master)
            followed = set_cpu(master, session)
            start = time.monotonic()
            caught_up(master, replica)
            lags[master.role].append(time.monotonic() - start)
            leave(replica, master)
            ratios[master.role].append(followed / alone)
            figures[master.role].append(followed)
    ours, theirs = (statistics.median(ratios[role]) for role in ("sava", "redis"))
    pairs = list(zip(figures["sava"], figures["redis"]))
    return [
        report.Row("master_cpu_with_replica_over_without", ours, "×", theirs, ours / theirs, 1.35,
                   pairs=session.pairs, note="SET, pipeline 16; a backlog is kept in both",
                   details={role: [round(x, 3) for x in ratios[role]] for role in ratios}),
        report.Row("master_cpu_per_set_with_replica", statistics.median(figures["sava"]), "µs CPU",
                   statistics.median(figures["redis"]), harness.median_ratio(pairs),
                   pairs=session.pairs, details={"lag_s": lags}),
    ]


def copy_rows(session, sava, redis, replica):
    keys = session.pick(5_000_000, 500_000)
    for master in (sava, redis):
        harness.preload(master, keys)
    seconds = []
    extra = []
    for number in range(session.pairs):
        readings = {}
        for master in (sava, redis) if number % 2 == 0 else (redis, sava):
            before = master.rss()
            readings[master.role] = follow(replica, master)
            if master.role == "sava":
                extra.append((master.rss_peak() - before) / before)
            leave(replica, master)
        seconds.append((readings["sava"], readings["redis"]))
    return [
        report.Row("copy_until_online", statistics.median(s[0] for s in seconds), "s",
                   statistics.median(s[1] for s in seconds), harness.median_ratio(seconds),
                   pairs=session.pairs, note=f"{keys} keys; most of it is the replica's loading"),
        report.Row("copy_extra_memory", 100 * max(extra), "%", bar=5.0,
                   note="of the master's resident memory, at its peak"),
    ]


def run(session):
    fast = ("--repl-diskless-sync-delay", "0")
    with session.sava("--threads", "1", *fast) as sava, session.stock(*fast) as redis, \
            session.stock() as replica:
        rows = cost_of_a_replica(session, sava, redis, replica)
    with session.sava("--threads", "1", *fast) as sava, session.stock(*fast) as redis, \
            session.stock() as replica:
        rows += copy_rows(session, sava, redis, replica)
    return rows


BENCHMARK = harness.Benchmark("replication", "what a replica costs its master; full copies", run)
