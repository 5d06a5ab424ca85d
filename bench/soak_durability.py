#!/usr/bin/env python3
"""The long form of the tests of durability: the same tests, other seeds, until the time is up.

`bench/soak_durability.py [--minutes N] [--seed N] [--server PROGRAM] [--only NAME]`

`./dev soak` runs it after the mixed load. The closing table counts kills, operations, snapshots and
so on; docs/reliability.md says what they prove. Exit code 0 when everything held.
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

MODULES = ("crash_tests", "snapshot_tests", "damaged_files_tests", "disk_trouble_tests")
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


def chosen(only):
    for module in MODULES:
        importlib.import_module(module)
    return [
        entry for entry in harness.TESTS
        if entry[0].split(".")[0] + "_tests" in MODULES
        and (not only or any(part in entry[0] for part in only))
    ]


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
    parser = argparse.ArgumentParser(prog="soak_durability", description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--server", default=os.path.join(ROOT, "build/release/sava"))
    parser.add_argument("--stock", default=shutil.which("redis-server"))
    parser.add_argument("--only", action="append", default=[], help="part of a test's name")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    seed = arguments.seed if arguments.seed is not None else random.randrange(1_000_000)
    tests = chosen(arguments.only)
    if not tests or not os.path.exists(arguments.server) or not arguments.stock:
        print("a test, a server and redis-server are needed", file=sys.stderr)
        return 1
    print("durability for %g minutes, seed %d" % (arguments.minutes, seed))
    signal.signal(signal.SIGALRM, run.on_alarm)
    signal.signal(signal.SIGTERM, run.on_term)
    copy = run.own_copy(os.path.abspath(arguments.server))
    runner = SoakRunner(harness.Options(copy, arguments.stock, 2, seed, 0.0, False))
    try:
        rounds(runner, tests, seed, time.monotonic() + arguments.minutes * 60)
    finally:
        runner.stop_servers()
        shutil.rmtree(os.path.dirname(copy), ignore_errors=True)
        print()
        runner.table()
    print("%d passed, %d failed, %d skipped" % (runner.passed, len(runner.failed), runner.skipped))
    print("durability %s" % ("FAILED" if runner.failed else "passed"))
    return 1 if runner.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
