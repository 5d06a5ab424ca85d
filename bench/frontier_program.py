#!/usr/bin/env python3
"""The URL scheduler's program, `sava frontier run`, beside the document's linked lists.

The document (S1, chapter 3.1.4) has three scenarios: one host with all URLs, one URL per host, many
hosts with many URLs. Each is timed as a whole process on generated files, ours up to 1M URLs, the
literal port of the document's structures (sava_frontier_lists) as far as it gets in a second or
two. The five files of chapter 5.1 are timed too.

    bench/frontier_program.py [SERVER] [OUT]      draws them (docs/documents/s1-scenarios.svg)
"""

import dataclasses
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import harness
import report

LIMIT_SECONDS = 300
SCENARIOS = {
    "1": "one host, n URLs",
    "2": "n hosts, one URL each",
    "3": "√n hosts, √n URLs each",
}
PORT_STOPS = 1.0  # seconds: no larger size is tried behind one that takes longer


@dataclasses.dataclass
class Point:
    urls: int
    seconds: float  # from start to end
    cpu: float  # seconds of the process; steadier on a machine that others use too


def shape(scenario, urls):
    """Hosts and URLs per host."""
    if scenario == "1":
        return 1, urls
    if scenario == "2":
        return urls, 1
    hosts = round(math.sqrt(urls))
    return hosts, urls / hosts


def generate(program, folder, hosts, mean, variance, more=()):
    """A command file; returns its path and how many URLs are in it."""
    path = os.path.join(folder, f"load-{hosts}-{mean:.0f}.txt")
    subprocess.run([program, "frontier", "generate", "--hosts", str(hosts),
                    "--urls-mean", str(mean), "--urls-variance", str(variance), *more, "-o", path], check=True,
                   timeout=LIMIT_SECONDS)
    with open(path, encoding="ascii") as file:
        return path, int(file.readline().split()[1])


def clock(words, times):
    """The median of a whole process: seconds, and seconds of CPU."""
    seconds, cpu = [], []
    for _ in range(times):
        with tempfile.TemporaryFile() as complaints:
            began = time.perf_counter()
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=complaints)
            _, status, usage = os.wait4(process.pid, 0)
            seconds.append(time.perf_counter() - began)
            process.returncode = os.waitstatus_to_exitcode(status)
            complaints.seek(0)
            text = complaints.read()
        cpu.append(usage.ru_utime + usage.ru_stime)
        if process.returncode or text:
            raise harness.BenchError(f"{' '.join(words)}: {text[-300:]!r}")
    return statistics.median(seconds), statistics.median(cpu)


def same_output(path):
    """The lists and our structure schedule in the same order."""
    stem = path.removesuffix(".txt")
    with open(stem + "-out.txt", "rb") as ours, open(stem + "-lists-out.txt", "rb") as theirs:
        if ours.read() != theirs.read():
            raise harness.BenchError(f"{path}: the lists give another result")


def ours(program, path):
    return [program, "frontier", "run", path]


def measure(program, times, sizes, port_sizes):
    """{scenario: (our points, the lists' points)}"""
    lists = os.path.join(os.path.dirname(os.path.abspath(program)), "sava_frontier_lists")
    if not os.path.exists(lists):
        raise harness.BenchError(f"{lists} is not there; build it first (./dev build)")
    found = {}
    with tempfile.TemporaryDirectory(prefix="sava-frontier-") as folder:
        for scenario in SCENARIOS:
            mine, theirs = [], []
            for size in sizes:
                path, urls = generate(program, folder, *shape(scenario, size), 0)
                mine.append(Point(urls, *clock(ours(program, path), times)))
                harness.say(f"scenario {scenario}: {urls} URLs in {mine[-1].seconds:.4f} s, "
                            f"{mine[-1].cpu:.4f} s CPU")
                os.remove(path)
            for size in port_sizes:
                path, urls = generate(program, folder, *shape(scenario, size), 0)
                theirs.append(Point(urls, *clock([lists, path], min(times, 3))))
                clock(ours(program, path), 1)
                same_output(path)
                harness.say(f"scenario {scenario}, lists: {urls} URLs in "
                            f"{theirs[-1].seconds:.4f} s, {theirs[-1].cpu:.4f} s CPU")
                if theirs[-1].cpu > PORT_STOPS:
                    break
            found[scenario] = (mine, theirs)
        mine, theirs = [], []
        for mean in (10, 20, 30, 40, 50):
            path, urls = generate(program, folder, 10, mean, 5,
                                  ("--urls", str(10 * mean + 14)))
            mine.append(Point(urls, *clock(ours(program, path), times)))
            theirs.append(Point(urls, *clock([lists, path], times)))
            same_output(path)
        found["5.1"] = (mine, theirs)
    return found


def exponent(points):
    """By which power of n the time grows, from the last two sizes."""
    if len(points) < 2:
        return None
    a, b = points[-2], points[-1]
    return math.log(b.cpu / a.cpu) / math.log(b.urls / a.urls)


def run(session):
    sizes = session.pick((10_000, 100_000, 1_000_000), (1_000, 10_000, 100_000))
    port_sizes = session.pick((125, 250, 500, 1000, 2000, 4000, 8000, 16000, 32000, 64000),
                              (125, 250, 500, 1000))
    found = measure(session.server, session.pairs, sizes, port_sizes)
    rows = []
    for scenario, what in SCENARIOS.items():
        mine, theirs = found[scenario]
        small, large = mine[-2], mine[-1]
        speed = large.urls / large.seconds
        judged = scenario == "3"  # 1,000 hosts
        rows.append(report.Row(f"scenario_{scenario}_speed", speed, "URLs/s",
                               bar=1e6 if judged else None, sense="min", pairs=session.pairs,
                               note=f"{what}, {large.urls} URLs, the whole program",
                               details={"ours": [dataclasses.astuple(p) for p in mine],
                                        "lists": [dataclasses.astuple(p) for p in theirs]}))
        rows.append(report.Row(f"scenario_{scenario}_growth", large.cpu / small.cpu, "×",
                               bar=12, pairs=session.pairs,
                               note=f"CPU time for {large.urls} URLs by that for {small.urls}"))
        last = theirs[-1]
        rows.append(report.Row(f"scenario_{scenario}_lists", last.urls / last.seconds, "URLs/s",
                               note=f"the document's lists, {last.urls} URLs; time grows with "
                               f"n^{exponent(theirs):.1f}"))
    mine, theirs = found["5.1"]
    for a, b in zip(mine, theirs, strict=True):
        rows.append(report.Row(f"chapter_5_1_{a.urls}", a.cpu * 1000, "ms CPU",
                               note=f"the document's lists: {b.cpu * 1000:.1f} ms; its paper: "
                               "80 to 280 ms"))
    return rows


BENCHMARK = harness.Benchmark("frontier_program",
                              "the URL scheduler's program beside the document's lists", run)


# ---- the figure ----

WIDTH, HEIGHT = 760, 460
LEFT, RIGHT, TOP, BOTTOM = 70, 200, 40, 50
COLOURS = {"1": "#b03030", "2": "#2f7d32", "3": "#2860a8"}
LEAST_URLS, MOST_URLS = 1e2, 1e6
LEAST_SECONDS, MOST_SECONDS = 1e-3, 1e1


def x_of(urls):
    share = math.log(urls / LEAST_URLS) / math.log(MOST_URLS / LEAST_URLS)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def y_of(seconds):
    seconds = min(max(seconds, LEAST_SECONDS), MOST_SECONDS)
    share = math.log(seconds / LEAST_SECONDS) / math.log(MOST_SECONDS / LEAST_SECONDS)
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def words(x, y, text, anchor="middle", colour="#333333"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="13" '
            f'fill="{colour}">{text}</text>')


def axes():
    out = []
    for power in range(2, 7):
        x = x_of(10**power)
        out.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#e4e4e4"/>')
        out.append(words(x, HEIGHT - BOTTOM + 18, f"{10**power:,}"))
    for power in range(-3, 2):
        y = y_of(10.0**power)
        out.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#e4e4e4"/>')
        out.append(words(LEFT - 8, y + 4, f"{10.0**power:g} s", "end"))
    out.append(words((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "URLs"))
    out.append(words(LEFT, 22, "CPU time of the whole program: lines ours, dashed the document's lists",
                     "start"))
    return out


def curve(points, colour, dashed):
    path = " ".join(f"{x_of(p.urls):.1f},{y_of(p.cpu):.1f}" for p in points)
    dash = ' stroke-dasharray="6 4"' if dashed else ""
    line = f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>'
    return [line] + [
        f'<circle cx="{x_of(p.urls):.1f}" cy="{y_of(p.cpu):.1f}" r="3" fill="{colour}"/>'
        for p in points]


def draw(found):
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
             f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', *axes()]
    for number, (scenario, what) in enumerate(SCENARIOS.items()):
        mine, theirs = found[scenario]
        lines += curve(mine, COLOURS[scenario], False) + curve(theirs, COLOURS[scenario], True)
        lines.append(words(WIDTH - RIGHT + 12, TOP + 20 + 24 * number, f"{scenario}: {what}",
                           "start", COLOURS[scenario]))
    lines.append("</svg>")
    return "\n".join(lines) + "\n"


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else os.path.join(harness.ROOT, "build/release/sava")
    target = sys.argv[2] if len(sys.argv) > 2 else os.path.join(
        harness.ROOT, "docs/documents/s1-scenarios.svg")
    found = measure(program, 5, (1_000, 10_000, 100_000, 1_000_000),
                    (125, 250, 500, 1000, 2000, 4000, 8000, 16000, 32000, 64000))
    with open(target, "w", encoding="utf-8") as file:
        file.write(draw(found))
    print(target)


if __name__ == "__main__":
    main()
