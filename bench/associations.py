"""Association counters: memory per association, CPU per command against sorted sets of stock Redis.

Shapes are associators × members each. The load comes from sava_load_associations, which sends the
same pairs as AFC.ADD to Sava and as ZINCRBY to Redis. A figure per association is the growth of the
resident set since the empty server; members are counted 1 to 5 times, as by the document's client.
In process, without a server, sava_bench_afc compares increments of small and of large counters.
"""

import dataclasses
import json
import os
import statistics
import subprocess
import time

import harness
import memory
import report

SETTLE_SECONDS = 5.0
QUICK_SETTLE_SECONDS = 1.0
TOOL_SECONDS = 900
LARGE_MEMBERS = 100_000
FULL_ASSOCIATORS = 100_000


@dataclasses.dataclass
class Shape:
    associators: int
    members: int
    distinct: int  # 0: every member belongs to one associator
    kind: str = "uuid"

    @property
    def associations(self):
        return self.associators * self.members

    @property
    def arguments(self):
        return ["--associators", str(self.associators), "--members", str(self.members),
                "--distinct", str(self.distinct), "--kind", self.kind]


@dataclasses.dataclass
class Memory:
    name: str
    shape: Shape
    bar: float | None
    note: str
    order: str = "document"


@dataclasses.dataclass
class Reading:
    cpu_us: float
    rps: float


def small_shape(session, distinct=100_000, kind="uuid"):
    return Shape(session.pick(FULL_ASSOCIATORS, 10_000), 100,
                 session.pick(distinct, distinct // 10), kind)


def large_shape(session):
    return Shape(session.pick(100, 10), LARGE_MEMBERS, LARGE_MEMBERS)


def run_tool(session, name, arguments):
    """Runs a program that lies beside the server and prints JSON."""
    program = os.path.join(os.path.dirname(os.path.abspath(session.server)), name)
    if not os.path.exists(program):
        raise harness.BenchError(f"{program} is not there; build it first (./dev build)")
    done = subprocess.run([program, *arguments], capture_output=True, text=True,
                          timeout=TOOL_SECONDS, check=False)
    if done.returncode:
        raise harness.BenchError(f"{name} failed: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


def load(session, server, verb, mode, shape, *more):
    """One run of the load; returns the server's CPU per command and the throughput."""
    before = server.cpu_seconds()
    done = run_tool(session, "sava_load_associations",
                    ["--port", str(server.port), "--verb", verb, "--mode", mode,
                     *shape.arguments, *more])
    used = server.cpu_seconds() - before
    return Reading(used / done["commands"] * 1e6, done["commands"] / done["seconds"])


def add_verb(server):
    return "zincrby" if server.is_stock else "add"


def top_verb(server):
    return "zrevrange" if server.is_stock else "top"


def fill(session, server, shape, *more):
    """Fills an empty server; returns the resident bytes per association after a pause."""
    base = memory.empty_rss(server)
    load(session, server, add_verb(server), "fill", shape, "--repetitions", "5", *more)
    with server.connect() as connection:
        if connection.command("DBSIZE") != shape.associators:
            raise harness.BenchError("not every associator became a key")
        command = "ZCARD" if server.is_stock else "AFC.CARD"
        if connection.command(command, "assoc:000001") != shape.members:
            raise harness.BenchError("an associator does not have all its members")
    time.sleep(session.pick(SETTLE_SECONDS, QUICK_SETTLE_SECONDS))
    return (server.rss() - base) / shape.associations


def memory_rows(session, redis_bytes):
    cases = [
        Memory("rss_shared", small_shape(session), 8, "UUID text, each in 100 counters"),
        Memory("rss_shared_mixed", small_shape(session), None,
               "the same, all counters growing at once", "mixed"),
        Memory("rss_shared_less", small_shape(session, 1_000_000), 12,
               "UUID text, each in 10 counters"),
        Memory("rss_not_shared", small_shape(session, 0, "bytes"), 24, "16 random bytes each"),
        Memory("rss_large", large_shape(session), 30, "UUID text, each in all counters"),
    ]
    rows = []
    for case in cases:
        with session.sava() as sava:
            ours = fill(session, sava, case.shape, "--order", case.order)
        theirs = redis_bytes.get(case.name)
        shape = case.shape
        rows.append(report.Row(
            case.name, ours, "bytes", theirs, ours / theirs if theirs else None, case.bar,
            note=f"{shape.associators:,} × {shape.members:,}: {case.note}"))
        harness.say(f"{case.name}: {ours:.1f} bytes an association")
    return rows


def judge(name, bar, pairs, note):
    ratios = [ours.cpu_us / theirs.cpu_us for ours, theirs in pairs]
    throughput = harness.median_ratio([(ours.rps, theirs.rps) for ours, theirs in pairs])
    ours = statistics.median(pair[0].cpu_us for pair in pairs)
    theirs = statistics.median(pair[1].cpu_us for pair in pairs)
    ratio = statistics.median(ratios)
    harness.say(f"{name}: {ours:.2f} against {theirs:.2f} µs, ratio {ratio:.3f} ({bar})")
    return report.Row(name, ours, "µs CPU", theirs, ratio, bar, judged="ratio", pairs=len(pairs),
                      note=f"{note}; throughput {throughput:.2f} ×",
                      details={"ratios": [round(x, 4) for x in ratios]})


def against_redis(session, shape, label, add_bar, top_bar):
    """AFC.ADD against ZINCRBY, and AFC.TOP against ZREVRANGE, on the same counters."""
    rows = []
    requests = str(session.pick(1_000_000, 200_000))
    with session.sava("--threads", "1") as sava, session.stock() as redis:
        fill(session, sava, shape)
        redis_bytes = fill(session, redis, shape)
        harness.say(f"{label}: both filled, Redis took {redis_bytes:.1f} bytes an association")

        def measure(verb_of):
            return harness.interleave(session, sava, redis, lambda server: load(
                session, server, verb_of(server), "random", shape, "--requests", requests))

        note = f"{shape.associators:,} × {shape.members:,}, pipeline 16"
        rows.append(judge("add_" + label, add_bar, measure(add_verb), note))
        rows.append(judge("top20_" + label, top_bar, measure(top_verb), note))
    return rows, redis_bytes


def hot_rows(session):
    """50 clients on one associator against the same spread over all."""
    spread = small_shape(session)
    hot = dataclasses.replace(spread, associators=1)
    rows = []
    with session.sava() as sava:
        fill(session, sava, spread)
        for pipeline in (16, 1):
            requests = str(session.pick(1_000_000, 200_000) // (1 if pipeline > 1 else 4))

            def measure(shape):
                return load(session, sava, add_verb(sava), "random", shape, "--requests", requests,
                            "--pipeline", str(pipeline))

            pairs = []
            for _ in range(session.pairs):
                one = measure(hot)
                pairs.append((one, measure(spread)))
            ratio = statistics.median(one.cpu_us / all_.cpu_us for one, all_ in pairs)
            rows.append(report.Row(
                f"one_associator_p{pipeline}", ratio, "× spread", bar=1.4, pairs=len(pairs),
                note=f"{statistics.median(p[0].cpu_us for p in pairs):.2f} µs on one, "
                     f"{statistics.median(p[1].cpu_us for p in pairs):.2f} µs over "
                     f"{spread.associators:,}"))
            harness.say(f"one associator, pipeline {pipeline}: {ratio:.2f} × spread")
    return rows


def process_row(session):
    arguments = ["--json"]
    if session.quick:
        arguments += ["--associations", "1000000", "--increments", "500000"]
    row = run_tool(session, "sava_bench_afc", arguments)[0]
    return report.Row("increment_large", row["ratio"], "× small", bar=3,
                      note=f"in process: {row['small_ns']:.0f} ns at 100 members, "
                           f"{row['large_ns']:.0f} ns at 100,000", details=row)


def run(session):
    harness.need_memory(session.pick(4, 1) * 2**30)
    small, small_bytes = against_redis(session, small_shape(session), "100", 0.35, 0.35)
    large, large_bytes = against_redis(session, large_shape(session), "100000", 0.15, None)
    redis_bytes = {"rss_shared": small_bytes, "rss_large": large_bytes}
    rows = memory_rows(session, redis_bytes) + small + large
    return rows + [process_row(session)] + hot_rows(session)


BENCHMARK = harness.Benchmark(
    "associations", "association counters: memory, CPU against sorted sets", run)
