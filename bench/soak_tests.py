#!/usr/bin/env python3
"""The long form of tests that live by chance: the same tests, other seeds, until the time is up.

`bench/soak_tests.py [--part durability|differential] [--minutes N] [--seed N] [--server PROGRAM]
                     [--only NAME]`

durability: kills, snapshots under load, damaged files, bad disks. differential: random commands of
all families beside stock Redis, over the limits of the encodings, replies and contents compared;
payloads, files and logs both ways. `./dev soak` runs both after the mixed load. The closing table
counts kills, operations, snapshots and so on; docs/reliability.md says what they prove. Exit code 0
when everything held.
"""

import argparse
import importlib
import os
import random
import re
import shutil
import signal
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The tests' own modules have the names of some in this folder.
sys.path[0] = os.path.join(ROOT, "tests", "e2e")

import harness  # noqa: E402
import run  # noqa: E402

# Modules of each part, and of which only the tests with such a word in their names.
PARTS = {
    "durability": {"crash_tests": "", "snapshot_tests": "", "damaged_files_tests": "",
                   "disk_trouble_tests": ""},
    "differential": {"differential": "", "list_tests": "walk|sorting|estimators|log",
                     "set_tests": "walk|scanning", "sorted_set_tests": "walk|large",
                     "hash_tests": "walk|scanning", "stream_type_tests": "random|logs",
                     "geo_tests": "searches", "collection_files_tests": ""},
}
STREAM_SECONDS = 30.0
# How often in a round: what is decided by chance, often; what always goes the same way, once.
TIMES = {"crash": 3, "snapshot": 2}
COUNT = re.compile(r"(?<![\d.])(\d+) ([a-z]+(?: [a-z]+)*)")
OLDEST = re.compile(r"oldest ([\d.]+) s")


class SoakRunner(run.Runner):
    """Adds up what the tests say of themselves."""

    def __init__(self, options):
        super().__init__(options)
        self.totals = {}
        self.oldest = {}
        self.runs = {}

    def report(self, name, state, seconds, notes, messages):
        super().report(name, state, seconds, notes, messages)
        self.runs[name] = self.runs.get(name, 0) + 1
        for message in messages:
            for number, label in COUNT.findall(message):
                sums = self.totals.setdefault(name, {})
                sums[label] = sums.get(label, 0) + int(number)
            for seconds_before in OLDEST.findall(message):
                self.oldest[name] = max(self.oldest.get(name, 0.0), float(seconds_before))

    def table(self):
        for name in sorted(self.runs):
            parts = ["%d %s" % (n, label) for label, n in self.totals.get(name, {}).items()]
            if name in self.oldest:
                parts.append("oldest %.3f s before the kill" % self.oldest[name])
            text = ": " + ", ".join(parts) if parts else ""
            print("%-50s %4d times%s" % (name, self.runs[name], text))


def chosen(part, only):
    modules = PARTS[part]
    for module in modules:
        importlib.import_module(module)

    def wanted(entry):
        module = entry[1].__module__
        return (module in modules and re.search(modules[module], entry[1].__name__)
                and (not only or any(word in entry[0] for word in only)))

    return [entry for entry in harness.TESTS if wanted(entry)]


def rounds(runner, tests, seed, deadline):
    """Plays the tests in ever new orders until the time is up, once at least."""
    number = 0
    while number == 0 or time.monotonic() < deadline:
        plan = [entry for entry in tests for _ in range(TIMES.get(entry[0].split(".")[0], 1))]
        random.Random(seed + number).shuffle(plan)
        for name, function, timeout in plan:
            if number > 0 and time.monotonic() > deadline:
                break
            runner.options.seed = "%d:%d:%d" % (seed, number, len(runner.runs))
            runner.options.long = number % 2 == 1
            runner.run(name, function, timeout)
        number += 1


def parse_arguments():
    parser = argparse.ArgumentParser(prog="soak_tests", description=__doc__.split("\n")[0])
    parser.add_argument("--part", choices=sorted(PARTS), default="durability")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--server", default=os.path.join(ROOT, "build/release/sava"))
    parser.add_argument("--stock", default=shutil.which("redis-server"))
    parser.add_argument("--only", action="append", default=[], help="part of a test's name")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    seed = arguments.seed if arguments.seed is not None else random.randrange(1_000_000)
    tests = chosen(arguments.part, arguments.only)
    if not tests or not os.path.exists(arguments.server) or not arguments.stock:
        print("a test, a server and redis-server are needed", file=sys.stderr)
        return 1
    print("%s for %g minutes, seed %d" % (arguments.part, arguments.minutes, seed))
    signal.signal(signal.SIGALRM, run.on_alarm)
    signal.signal(signal.SIGTERM, run.on_term)
    copy = run.own_copy(os.path.abspath(arguments.server))
    runner = SoakRunner(harness.Options(copy, arguments.stock, 2, seed, STREAM_SECONDS,
                                        False))
    try:
        rounds(runner, tests, seed, time.monotonic() + arguments.minutes * 60)
    finally:
        runner.stop_servers()
        shutil.rmtree(os.path.dirname(copy), ignore_errors=True)
        print()
        runner.table()
    print("%d passed, %d failed, %d skipped" % (runner.passed, len(runner.failed), runner.skipped))
    print("%s %s" % (arguments.part, "FAILED" if runner.failed else "passed"))
    return 1 if runner.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
