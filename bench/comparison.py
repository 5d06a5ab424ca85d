#!/usr/bin/env python3
"""Chapter 7 of document S0: its counter, the same service over databases, and Redis, side by side.

    ./dev bench comparison [--size small|document] [--only WORD[,WORD…]] [--inserts N] [--fresh]

Every party (comparison_parties.py) gets every parameter set: associators x associated keys x R, in
the order of the document's program, each pair 1 to R - 1 times, since its random.Next(1, R) never
gives R. The first N associations go in one by one over one connection and are timed; the rest is
loaded in bulk. Then come the most frequent K, memory, snapshot and disk, a restart with the data
there, and deletes. What is read is compared with what was sent.

--only takes sets (100x100x5) and parties (sava-http, sqlite); a party is taken when its name begins
so. Results are kept in build/comparison/SIZE, so that a run that was ended goes on where it was;
--fresh forgets them; --report only writes down what there is. Tables and charts: build/comparison/SIZE/report.md, and with --docs in
docs/documents/s0-comparison.md.
"""

import argparse
import array
import itertools
import json
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
import uuid

import comparison_parties
import comparison_report
import harness

DOCUMENT = ("100x100x5", "100x100x10", "10000x100x5", "100000x100x5", "100x10000x5", "100x100000x5",
            "10x10000x10", "10000x10x10", "1000x1000x10")
SIZES = {"small": ("20x20x5", "60x5x5", "3x100x5"), "document": DOCUMENT}
INSERTS = {"small": 1_000_000, "document": 1_000_000}
TOPS = (20, 50, 100, 200, 1000, 2000)
READ_SECONDS = {"small": 0.1, "document": 5.0}
BUCKETS = 400
SEED = 7


class Load:
    """The associations of a set, in order. GUIDs and repetitions come from the seed."""

    def __init__(self, name):
        self.name = name
        self.associators, self.associated, self.most = (int(word) for word in name.split("x"))
        rng = random.Random(f"{SEED} {name}")
        self.keys = [self._guid(rng) for _ in range(self.associators)]
        self.members = [self._guid(rng) for _ in range(self.associated)]

    @staticmethod
    def _guid(rng):
        return str(uuid.UUID(int=rng.getrandbits(128), version=4)).encode()

    def repetitions(self, associator):
        """How often this associator has each member."""
        rng = random.Random(f"{SEED} {self.name} {associator}")
        return [rng.randrange(1, max(2, self.most)) for _ in self.members]

    def expected(self):
        return self.associators * self.associated * max(2, self.most) // 2

    def __iter__(self):
        for number, key in enumerate(self.keys):
            for member, times in zip(self.members, self.repetitions(number)):
                for _ in range(times):
                    yield key, member


class Progress:
    """A bar on a terminal, else a line every ten seconds."""

    def __init__(self, title, total):
        self.title = title
        self.total = max(1, total)
        self.began = self.told = time.monotonic()

    def show(self, done):
        now = time.monotonic()
        terminal = sys.stderr.isatty()
        if now - self.told < (0.2 if terminal else 10):
            return
        self.told = now
        share = min(1.0, done / self.total)
        left = (now - self.began) * (1 - share) / max(share, 1e-9)
        bar = "#" * int(share * 30)
        line = f"{self.title} [{bar:<30}] {share:4.0%}, {left:.0f} s left"
        print("\r" + line if terminal else line, end="" if terminal else "\n", file=sys.stderr,
              flush=True)

    def end(self):
        if sys.stderr.isatty():
            print("\r" + " " * 78 + "\r", end="", file=sys.stderr, flush=True)


def milliseconds(work):
    began = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - began) / 1e6


def insert(party, load, most):
    """The times of the first `most` inserts in ms, and which of them named a new associator; the rest
    goes in in bulk."""
    progress = Progress(f"{party.name} {load.name}", load.expected())
    times = array.array("d")
    new = bytearray()
    last = None
    waiting = []
    bulk_began = None
    done = 0
    for pair in load:
        if len(times) < most:
            times.append(milliseconds(lambda pair=pair: party.insert(*pair)))
            new.append(pair[0] is not last)
            last = pair[0]
        else:
            bulk_began = bulk_began or time.perf_counter()
            waiting.append(pair)
            if len(waiting) == party.bulk_size:
                party.bulk(waiting)
                waiting.clear()
        done += 1
        if done % 64 == 0:
            progress.show(done)
    if waiting:
        party.bulk(waiting)
    settling = milliseconds(party.settle)
    progress.end()
    return times, new, done, settling, time.perf_counter() - bulk_began if bulk_began else 0.0


def check(party, load, rng):
    """What is there is what was sent."""
    for _ in range(3):
        number = rng.randrange(load.associators)
        expected = dict(zip(load.members, load.repetitions(number)))
        rows = party.top(load.keys[number], min(load.associated, 10_000))
        wanted = sorted(expected.values(), reverse=True)[: len(rows)]
        if len(rows) != min(load.associated, 10_000) or [n for _, n in rows] != wanted:
            raise harness.BenchError(f"{party.name}: the frequencies of {load.name} are wrong")
        if any(expected[member.lower()] != n for member, n in rows):
            raise harness.BenchError(f"{party.name}: a count of {load.name} is wrong")


def several(work, seconds):
    """The median of as many runs as go into so many seconds: 3 to 200."""
    times = []
    began = time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - began < seconds and len(times) < 200):
        times.append(milliseconds(work))
    return statistics.median(times)


def buckets(times):
    """Median and largest of each of up to BUCKETS stretches."""
    size = max(1, -(-len(times) // BUCKETS))
    parts = [times[at : at + size] for at in range(0, len(times), size)]
    return {"size": size, "median": [round(statistics.median(part), 4) for part in parts],
            "largest": [round(max(part), 4) for part in parts]}


def quantile(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def measure(party, load, options):
    rng = random.Random(SEED)
    seconds = READ_SECONDS[options.size]
    first_start = party.start()
    empty = party.memory()
    times, new, count, settling, bulk = insert(party, load, options.inserts)
    check(party, load, rng)
    result = {
        "party": party.name, "set": load.name, "associations": count, "timed": len(times),
        "insert_ms": {"mean": statistics.fmean(times), "p50": quantile(times, 0.5),
                      "p99": quantile(times, 0.99), "p999": quantile(times, 0.999),
                      "max": max(times)},
        "first_ms": statistics.median(itertools.compress(times, new)),
        "settle_ms": settling, "bulk_s": bulk, "series": buckets(times), "top_ms": {},
        "memory": party.memory() - empty, "resident": party.memory(), "empty_start_s": first_start,
    }
    for k in TOPS:
        if k <= max(20, load.associated) or (load.name, k) in comparison_report.TOP_DATABASE:
            result["top_ms"][str(k)] = several(
                lambda k=k: party.read_top(rng.choice(load.keys), k), seconds)
    party.save()
    party.stop()
    result["disk"] = party.disk()
    result["start_s"] = party.start()
    check(party, load, rng)
    left = rng.sample(load.keys, min(len(load.keys), 50))
    deletes = []
    began = time.perf_counter()
    while left and (len(deletes) < 3 or time.perf_counter() - began < seconds):
        key = left.pop()
        deletes.append(milliseconds(lambda key=key: party.delete(key)))
        if party.top(key, 20):
            raise harness.BenchError(f"{party.name}: a deleted associator is still there")
    result["delete_ms"] = statistics.median(deletes)
    party.stop()
    return result


def wanted(options):
    """The (party, set) that --only leaves."""
    words = [word for word in (options.only or "").split(",") if word]
    sets = [word for word in words if word[0].isdigit()]
    names = [word for word in words if not word[0].isdigit()]
    for name in sets or SIZES[options.size]:
        for party in comparison_parties.ALL:
            if not names or any(party.name.startswith(word) for word in names):
                yield party, name


def kept(party_type, name, folder):
    return os.path.join(folder, f"{name}-{party_type.name}.json")


def take(party_type, name, options, folder):
    path = kept(party_type, name, folder)
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        if options.report or found["inserts"] == options.inserts:
            return found
    harness.say(f"{name} {party_type.name}")
    data = os.path.join(folder, "data")
    shutil.rmtree(data, ignore_errors=True)
    # A socket's path may have 107 bytes only.
    sockets = tempfile.mkdtemp(prefix="sava-")
    beside = os.path.dirname(os.path.abspath(options.server))
    tools = {"server": options.server, "redis": options.redis, "sockets": sockets,
             "service": options.service or os.path.join(beside, "sava_comparison_service"),
             "template": os.path.join(folder, "mariadb-template")}
    party = None
    try:
        party = party_type(data, tools)
        result = measure(party, Load(name), options)
    finally:
        if party is not None:
            party.stop()
        shutil.rmtree(data, ignore_errors=True)
        shutil.rmtree(sockets, ignore_errors=True)
    result["inserts"] = options.inserts
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(result, file)
    os.replace(path + ".new", path)
    return result


def parse(words):
    parser = argparse.ArgumentParser(prog="comparison", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--only", help="sets and parties, with commas between them")
    parser.add_argument("--inserts", type=int, help="how many associations go in one by one")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    parser.add_argument("--report", action="store_true",
                        help="measure nothing; tables and charts of what was measured so far")
    parser.add_argument("--docs", action="store_true", help="write docs/documents/s0-comparison.md")
    parser.add_argument("--server", default=os.path.join(harness.ROOT, "build/release/sava"))
    parser.add_argument("--service", help="default: sava_comparison_service beside the server")
    parser.add_argument("--redis", default="redis-server")
    parser.add_argument("--out", default=os.path.join(harness.ROOT, "build/comparison"))
    options = parser.parse_args(words)
    options.inserts = options.inserts or INSERTS[options.size]
    if options.inserts < 1:
        parser.error("--inserts is a number from 1 on")
    return options


def main(words):
    options = parse(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended then, too
    folder = os.path.join(options.out, options.size)
    if options.fresh:
        shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder, exist_ok=True)
    jobs = list(wanted(options))
    if options.report:
        jobs = [job for job in jobs if os.path.exists(kept(*job, folder))]
        if not jobs:
            raise harness.BenchError("nothing was measured yet")
    if not jobs:
        raise harness.BenchError(f"nothing is called {options.only}")
    results = []
    for at, (party, name) in enumerate(jobs):
        if not options.report:
            harness.say(f"{at + 1} of {len(jobs)}")
        results.append(take(party, name, options, folder))
    comparison_report.write(results, folder)
    if options.docs:
        comparison_report.write_docs(results, os.path.join(harness.ROOT, "docs/documents"))
    print(os.path.join(folder, "report.md"))
    return 0


def run(words):
    try:
        return main(words)
    except harness.BenchError as error:
        print(f"comparison: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
