#!/usr/bin/env python3
"""Takes the benchmarks: `bench/run.py [NAME…] [--quick]`; without a name, all of them.

`bench/run.py guard [COMMIT]` compares with an earlier commit instead (guard.py), `bench/run.py
comparison` with databases (comparison.py).

Each benchmark writes build/bench/NAME.json (a list of rows) and prints a table. Exit code 0 when
every bar is met, 1 when one is missed (never with --quick, whose sizes are not those of the bars),
2 when a benchmark could not be taken.
"""

import argparse
import importlib
import os
import re
import signal
import subprocess
import sys
import time

import comparison
import guard
import harness
import report
import resp


def find_benchmarks():
    """Every module of this folder that has a BENCHMARK, by its name."""
    folder = os.path.dirname(os.path.abspath(__file__))
    found = {}
    for file in sorted(os.listdir(folder)):
        name, extension = os.path.splitext(file)
        if extension != ".py" or name == "run" or name.startswith("soak"):
            continue  # soaks are programs of their own
        benchmark = getattr(importlib.import_module(name), "BENCHMARK", None)
        if benchmark is not None:
            found[benchmark.name] = benchmark
    return found


def parse_arguments(benchmarks):
    parser = argparse.ArgumentParser(
        prog="bench", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Takes Sava's benchmarks against stock redis-server.",
        epilog="benchmarks:\n" + "\n".join(
            f"  {b.name:<12}{b.summary}" for b in benchmarks.values()))
    parser.add_argument("names", nargs="*", metavar="NAME", help="which to take (default: all)")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, 3 pairs")
    parser.add_argument("--pairs", type=int, help="pairs of runs (default 5, quick 3)")
    parser.add_argument("--server", default=os.path.join(harness.ROOT, "build/release/sava"),
                        help="Sava's binary; a redis-server here shows the noise")
    parser.add_argument("--redis", default="redis-server", help="stock redis-server to compare to")
    parser.add_argument("--engine", help="the in-process benchmark's binary "
                        "(default: sava_bench_engine beside the server)")
    parser.add_argument("--out", default=os.path.join(harness.ROOT, "build/bench"),
                        help="where NAME.json is written")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    parser.add_argument("--list", action="store_true", help="name the benchmarks and leave")
    options = parser.parse_args()
    if "quick" in options.names:
        options.quick = True
    options.names = [name for name in options.names if name not in ("quick", "all")]
    for name in options.names:
        if name not in benchmarks:
            parser.error(f"no benchmark {name!r}; there are: {', '.join(benchmarks)}")
    return options


def redis_version(program):
    try:
        text = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10,
                              check=False).stdout
    except OSError as error:
        raise harness.BenchError(f"{program} does not run: {error}") from error
    match = re.search(r"v=(\S+)", text)
    return match.group(1) if match else "unknown"


def take(benchmark, session, options, version):
    """Takes one benchmark; returns its rows, or None if it could not be taken."""
    harness.say(f"== {benchmark.name}: {benchmark.summary}")
    began = time.monotonic()
    path = os.path.join(options.out, benchmark.name + ".json")
    if os.path.exists(path):
        os.remove(path)
    try:
        rows = benchmark.run(session)
    except (harness.BenchError, resp.ProtocolError, resp.ReplyError, OSError,
            subprocess.TimeoutExpired) as error:
        harness.say(f"{benchmark.name} could not be taken: {error}")
        return None
    report.write_json(path, rows, quick=session.quick, redis_version=version)
    title = f"{benchmark.name} ({time.monotonic() - began:.0f} s{', quick' * session.quick})"
    print(f"\n{'### ' if options.markdown else ''}{title}\n")
    print(report.table(rows, markdown=options.markdown), flush=True)
    return rows


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if sys.argv[1:2] == ["guard"]:
        return guard.main()
    if sys.argv[1:2] == ["comparison"]:
        return comparison.run(sys.argv[2:])
    benchmarks = find_benchmarks()
    options = parse_arguments(benchmarks)
    if options.list:
        for benchmark in benchmarks.values():
            print(f"{benchmark.name:<12}{benchmark.summary}")
        return 0
    engine = options.engine or os.path.join(
        os.path.dirname(os.path.abspath(options.server)), "sava_bench_engine")
    session = harness.Session(options.server, options.redis, options.quick,
                              options.pairs or (3 if options.quick else 5), engine)
    version = redis_version(options.redis)
    load = os.getloadavg()[0]
    if load > 0.5:
        harness.say(f"the machine is busy (load {load:.1f}): ratios will scatter")

    failed, missed = [], []
    for name in options.names or benchmarks:
        rows = take(benchmarks[name], session, options, version)
        if rows is None:
            failed.append(name)
            continue
        missed += [f"{name}/{row.name}" for row in rows if row.ok is False]
    print()
    if failed:
        print("could not be taken: " + ", ".join(failed))
    if missed:
        sizes = " (quick sizes are not those of the bars)" if options.quick else ""
        print(f"bars missed{sizes}: " + ", ".join(missed))
    if not failed and not missed:
        print("every bar is met")
    if failed:
        return 2
    return 1 if missed and not options.quick else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except harness.BenchError as error:
        sys.exit(f"bench: {error}")
