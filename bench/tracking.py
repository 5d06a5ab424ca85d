"""Client-side caching: the cost of noting which client reads which key.

CPU per GET of clients with CLIENT TRACKING ON against the same clients without it, on Sava. What the
same costs stock Redis stands beside it.
"""

import statistics

import harness
import report

KEYSPACE = 100_000


def measure(session, server, pipeline):
    """The medians of CPU per GET, tracked and not, and the median of their ratios."""
    requests = session.pick(1_000_000, 200_000) // (1 if pipeline > 1 else 5)

    def load(tracked):
        return harness.redis_benchmark(server, test="get", requests=requests, pipeline=pipeline,
                                       keyspace=KEYSPACE, tracking=tracked).cpu_us

    load(True), load(False)
    pairs = []
    for number in range(session.pairs):
        readings = {tracked: load(tracked) for tracked in (number % 2 == 0, number % 2 != 0)}
        pairs.append((readings[True], readings[False]))
    return (statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs),
            harness.median_ratio(pairs), pairs)


def run(session):
    rows = []
    with session.sava("--threads", "1") as sava, session.stock() as redis:
        for server in (sava, redis):
            harness.preload(server, KEYSPACE, value_bytes=64)
        for pipeline in (1, 16):
            tracked, plain, ratio, pairs = measure(session, sava, pipeline)
            theirs = measure(session, redis, pipeline)
            row = report.Row(f"get_p{pipeline}", tracked, "µs CPU", theirs[0], ratio, 1.3,
                             judged="ratio", pairs=len(pairs),
                             note=f"not tracked: {plain:.2f}; Redis {theirs[2]:.2f} × its own",
                             details={"ratios": [round(a / b, 4) for a, b in pairs],
                                      "redis_ratio": round(theirs[2], 4)})
            rows.append(row)
            harness.say(f"{row.name}: {tracked:.2f} against {plain:.2f} µs, ratio {ratio:.3f} "
                        f"(≤ 1.3); Redis {theirs[2]:.3f}")
    return rows


BENCHMARK = harness.Benchmark("tracking", "GET of clients that cache, against others", run)
