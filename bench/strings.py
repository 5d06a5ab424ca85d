"""Server CPU per string command against stock Redis, load from redis-benchmark.

1M keys of 16 bytes are there before the first reading; SET, GET and MSET use values of 64 bytes.
INCR works on 1M counters of its own, in an otherwise empty server, so that no run pays for the
creation of keys. Judged is the ratio of server CPU per command; throughput and latencies are given
beside it, but with one load generator on the same machine they mostly show the generator.
"""

import dataclasses
import statistics

import harness
import report


@dataclasses.dataclass
class Case:
    name: str
    test: str
    pipeline: int
    bar: float
    requests: int


ONE_THREAD = [
    Case("set_p16", "set", 16, 0.45, 1_000_000),
    Case("get_p16", "get", 16, 0.45, 1_000_000),
    Case("set_p64", "set", 64, 0.40, 1_500_000),
    Case("get_p64", "get", 64, 0.40, 1_500_000),
    Case("mset10_p16", "mset", 16, 0.40, 200_000),
    Case("set_p1", "set", 1, 0.90, 200_000),
    Case("get_p1", "get", 1, 0.90, 200_000),
]
COUNTERS = [Case("incr_p16", "incr", 16, 0.55, 1_000_000)]
DEFAULT_THREADS = [
    Case("set_p1_default_threads", "set", 1, 1.05, 200_000),
    Case("get_p1_default_threads", "get", 1, 1.05, 200_000),
]
KEYS = 1_000_000
VALUE_BYTES = 64


def judge(case, pairs):
    """The report row of a case from its pairs of redis-benchmark results."""
    def middle(side, field):
        values = [getattr(pair[side], field) for pair in pairs]
        return None if None in values else statistics.median(values)

    ratios = [ours.cpu_us / theirs.cpu_us for ours, theirs in pairs]
    throughput = harness.median_ratio([(ours.rps, theirs.rps) for ours, theirs in pairs])
    details = {"ratios": [round(x, 4) for x in ratios], "throughput_ratio": round(throughput, 4)}
    for field in ("rps", "p50_ms", "p99_ms"):
        details[field] = middle(0, field)
        details["redis_" + field] = middle(1, field)
    note = f"throughput {throughput:.2f} ×"
    if details["p99_ms"] is not None and details["redis_p99_ms"] is not None:
        note += (f"; p50 {details['p50_ms']:.2f} / {details['redis_p50_ms']:.2f} ms"
                 f", p99 {details['p99_ms']:.2f} / {details['redis_p99_ms']:.2f} ms")
    return report.Row(case.name, middle(0, "cpu_us"), "µs CPU", middle(1, "cpu_us"),
                      statistics.median(ratios), case.bar, judged="ratio", pairs=len(pairs),
                      note=note, details=details)


def measure_cases(session, sava, redis, cases):
    rows = []
    for case in cases:
        requests = session.pick(case.requests, case.requests // 4)

        def load(server, share=1):
            return harness.redis_benchmark(
                server, test=case.test, requests=requests // share, pipeline=case.pipeline,
                keyspace=KEYS, value_bytes=VALUE_BYTES)

        for server in (sava, redis):
            load(server, share=4)
        rows.append(judge(case, harness.interleave(session, sava, redis, load)))
        harness.say(f"{case.name}: {rows[-1].value:.2f} against {rows[-1].redis:.2f} µs, "
                    f"ratio {rows[-1].ratio:.3f} ({case.bar})")
    return rows


def run(session):
    rows = []
    harness.say("one thread: preloading 1M keys into both servers")
    with session.sava("--threads", "1") as sava, session.stock() as redis:
        for server in (sava, redis):
            harness.preload(server, KEYS, value_bytes=VALUE_BYTES)
        rows += measure_cases(session, sava, redis, ONE_THREAD)
    with session.sava("--threads", "1") as sava, session.stock() as redis:
        for server in (sava, redis):
            harness.preload(server, KEYS, prefix=b"counter:", fixed_value=b"0")
        rows += measure_cases(session, sava, redis, COUNTERS)
    harness.say("default threads: preloading 1M keys into both servers")
    with session.sava() as sava, session.stock() as redis:
        for server in (sava, redis):
            harness.preload(server, KEYS, value_bytes=VALUE_BYTES)
        rows += measure_cases(session, sava, redis, DEFAULT_THREADS)
    return rows


BENCHMARK = harness.Benchmark("strings", "server CPU per SET, GET, INCR, MSET against Redis", run)
