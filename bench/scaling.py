"""Two threads against one inside the engine, without sockets.

The work is done by the in-process program sava_bench_engine, which prints a JSON list of rows
(name, one_thread_mops, two_threads_mops, ratio); here they are repeated, the median taken and
judged.
"""

import json
import statistics
import subprocess

import harness
import report

BARS = {"get_set_90_10": 1.8, "set_only": 1.7, "hot_key": 0.9}


def read_rows(text):
    """The program's rows: a JSON list, or one JSON object a line."""
    try:
        rows = json.loads(text)
    except json.JSONDecodeError:
        rows = [json.loads(line) for line in text.splitlines() if line.strip().startswith("{")]
    return rows if isinstance(rows, list) else rows.get("rows", [rows])


def engine_rows(session):
    try:
        done = subprocess.run([session.engine, "--json"], capture_output=True, text=True,
                              timeout=600, check=False)
    except FileNotFoundError as error:
        raise harness.BenchError(f"{session.engine} is not there; build it first") from error
    if done.returncode:
        raise harness.BenchError(f"{session.engine} failed: {done.stderr[-300:]}")
    try:
        return {row["name"]: row for row in read_rows(done.stdout)}
    except (ValueError, KeyError, TypeError) as error:
        raise harness.BenchError(f"cannot read {session.engine}'s output: {error}") from error


def run(session):
    runs = []
    for number in range(session.pairs):
        runs.append(engine_rows(session))
        harness.say(f"run {number + 1}: " + ", ".join(
            f"{name} {row['ratio']:.2f}" for name, row in runs[-1].items()))
    rows = []
    for name in dict.fromkeys([*BARS, *runs[0]]):
        taken = [run[name] for run in runs if name in run]
        if not taken:
            rows.append(report.Row(name, None, "×", bar=BARS[name], sense="min",
                                   note="not reported by the program"))
            continue
        ratios = [row["ratio"] for row in taken]
        one = statistics.median(row["one_thread_mops"] for row in taken)
        two = statistics.median(row["two_threads_mops"] for row in taken)
        rows.append(report.Row(
            name, statistics.median(ratios), "×", bar=BARS.get(name), sense="min",
            pairs=len(taken), note=f"1 thread {one:.2f}, 2 threads {two:.2f} Mops/s",
            details={"ratios": ratios, "one_thread_mops": one, "two_threads_mops": two}))
    return rows


BENCHMARK = harness.Benchmark("scaling", "two threads against one inside the engine", run)
