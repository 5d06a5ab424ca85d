#!/usr/bin/env python3
"""Runs the outside test-suite against a server binary, with stock redis-server beside it.

    tests/e2e/run.py [--server PATH] [--only NAME] [--seconds N] [--seed S] [--threads N] [--long]
                     [--jobs N] [--host module]

See docs/testing.md. The last line is `N passed, N failed` (`, N skipped` follows when there are
any); the exit code is 1 when a test failed.
"""

import argparse
import importlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import harness  # noqa: E402

MODULES = [
    "protocol_tests",
    "limits_tests",
    "output_limit_tests",
    "rate_limit_tests",
    "directed_tests",
    "differential",
    "dump_tests",
    "check_command_tests",
    "export_command_tests",
    "afc_tests",
    "sketch_tests",
    "filter_tests",
    "frontier_program_tests",
    "frontier_tests",
    "transactions_tests",
    "list_tests",
    "set_tests",
    "sorted_set_tests",
    "geo_tests",
    "hash_tests",
    "blocking_tests",
    "examples_tests",
    "documentation_tests",
    "transcript_tests",
    "stream_type_tests",
    "expiry_tests",
    "pubsub_tests",
    "notifications_tests",
    "info_tests",
    "command_tests",
    "client_command_tests",
    "admin_tests",
    "memory_tests",
    "lifecycle_tests",
    "command_line_tests",
    "concurrency_tests",
    "clients_tests",
    "http_tests",
    "acl_tests",
    "tls_tests",
    "failover_tests",
    "replica_tests",
    "migrate_tests",
    "tracking_tests",
    "replication_tests",
    "client_memory_tests",
    "bench_command_tests",
    "comparison_tests",
    "persistence_tests",
    "data_set_tests",
    "log_effects_tests",
    "golden_log_tests",
    "snapshot_tests",
    "function_library_tests",
    "scripts_tests",
    "collection_files_tests",
    "damaged_files_tests",
    "disk_trouble_tests",
    "ring_tests",
    "always_tests",
    "crash_tests",
    "module_tests",
    "mixed_tests",
    "cluster_tests",
]
# Tests whose names begin so are run with --host module.
NATIVE = ("afc.", "sketch.", "filter.", "frontier.", "rate_limit.", "module.", "mixed.")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def default_server():
    for preset in ("release", "dev"):
        path = os.path.join(ROOT, "build", preset, "sava")
        if os.path.exists(path):
            return path
    return None


def parse_arguments():
    parser = argparse.ArgumentParser(description="The outside test-suite of Sava.")
    parser.add_argument("--server", default=default_server(), help="sava or redis-server")
    parser.add_argument(
        "--host",
        choices=("sava", "module"),
        default="sava",
        help="module: the native families' tests against the stock server with sava.so",
    )
    parser.add_argument("--stock", default=shutil.which("redis-server"), help="stock redis-server")
    parser.add_argument(
        "--only", action="append", default=[], help="part of a test's name; may be repeated"
    )
    parser.add_argument("--skip", action="append", default=[], help="part of a test's name")
    parser.add_argument("--seconds", type=float, default=0.0, help="time of the random streams")
    parser.add_argument("--seed", default=None, help="of everything random")
    parser.add_argument("--threads", type=int, default=2, help="of the server under test")
    parser.add_argument("--long", action="store_true", help="longer random and concurrency tests")
    parser.add_argument("--jobs", type=int, default=1, help="so many runs share the tests")
    parser.add_argument("--part", default="0/1", help="of --jobs: every Nth test, from the Kth on")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    return parser.parse_args()


class Runner:
    def __init__(self, options):
        self.options = options
        self.sut = None
        self.stock = None
        self.passed = 0
        self.failed = []
        self.skipped = 0

    def start_servers(self):
        if self.options.module:
            self.sut = harness.Server(self.options.stock, module=self.options.module)
        else:
            self.sut = harness.Server(self.options.server, threads=self.options.threads)
        self.sut.start()
        self.stock = harness.Server(self.options.stock)
        self.stock.start()

    def stop_servers(self):
        """Ends both; returns what is wrong with how the server under test ended."""
        problem = None
        for server in (self.sut, self.stock):
            if server is None:
                continue
            died = server.process is not None and server.process.poll() is not None
            code = server.stop()
            if server is self.sut:
                report = server.sanitizer_report()
                if report:
                    problem = "sanitizer report:\n" + report
                elif died or code != 0:
                    tail = server.log()[-2000:].decode("utf-8", "replace")
                    problem = "the server ended with code %s; its log ends:\n%s" % (code, tail)
            server.remove_files()
        self.sut = self.stock = None
        return problem

    def prepare(self):
        """Brings both servers to the same empty state; replaces those that do not answer."""
        for attempt in range(2):
            if self.sut is None:
                self.start_servers()
            if self.sut.alive() and self.stock.alive():
                for server in (self.sut, self.stock):
                    server.call("CLIENT", "UNPAUSE")
                    server.call("FLUSHALL")
                    wait_for_departures(server)
                return
            self.stop_servers()
        raise harness.Failure("the servers do not answer")

    def run(self, name, function, timeout):
        started = time.monotonic()
        notes, state, messages = [], "ok", []
        try:
            self.prepare()
            context = harness.Context(self.options, self.sut, self.stock)
            notes, state = self.guarded(context, function, timeout)
            messages = context.messages
            if state == "FAIL" or not self.sut.alive():
                problem = self.stop_servers()
                if problem:
                    notes.append(problem)
                    state = "FAIL"
        except harness.Failure as failure:
            notes, state = [str(failure)], "FAIL"
        self.report(name, state, time.monotonic() - started, notes, messages)

    def guarded(self, context, function, timeout):
        limit = timeout * harness.SLOW * (4 if self.options.long else 1)
        notes, state = [], "ok"
        signal.setitimer(signal.ITIMER_REAL, limit)
        try:
            function(context)
        except harness.Skip as skip:
            notes, state = [str(skip)], "skip"
        except harness.Failure as failure:
            notes, state = [str(failure), where(failure)], "FAIL"
        except harness.TestTimeout as failure:
            notes, state = ["not finished within %.0f s" % limit, where(failure)], "FAIL"
        except Exception as failure:
            notes, state = ["%s: %s" % (type(failure).__name__, failure), where(failure)], "FAIL"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            context.close()
        except harness.Failure as failure:
            notes, state = notes + [str(failure)], "FAIL"
        if context.notes:
            notes, state = context.notes + notes, "FAIL"
        return notes, state

    def report(self, name, state, seconds, notes, messages):
        print("%-5s %s (%.2f s)" % (state, name, seconds))
        for message in messages:
            print("        " + message)
        shown = notes if self.options.long else notes[:60]
        for note in shown:
            print("        " + note.replace("\n", "\n        "))
        if len(shown) < len(notes):
            print("        … and %d more" % (len(notes) - len(shown)))
        sys.stdout.flush()
        if state == "ok":
            self.passed += 1
        elif state == "skip":
            self.skipped += 1
        else:
            self.failed.append(name)


def own_copy(binary):
    """A copy of the binary, so that a build meanwhile does not disturb the run."""
    folder = tempfile.mkdtemp(prefix="sava-e2e-bin-")
    return shutil.copy2(binary, folder)


def wait_for_departures(server):
    """Gives the server a moment to notice that the previous test's clients have left."""
    deadline = time.monotonic() + 2 * harness.SLOW
    while time.monotonic() < deadline:
        listed = server.call("CLIENT", "LIST")
        if not isinstance(listed, bytes) or listed.count(b"\n") <= 1:
            return
        time.sleep(0.01)


def where(failure):
    frames = traceback.extract_tb(failure.__traceback__)
    here = os.path.dirname(os.path.abspath(__file__))
    frames = [
        f for f in frames if f.filename.startswith(here) and not f.filename.endswith("run.py")
    ]
    return " < ".join(
        "%s:%d %s" % (os.path.basename(f.filename), f.lineno, f.name)
        for f in reversed(frames[-4:])
    )


def on_alarm(signum, frame):
    raise harness.TestTimeout()


def on_term(signum, frame):
    sys.exit(1)


def run_jobs(jobs, seed):
    """Shares the tests among runs of their own; their lines come as they are written."""
    words = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--jobs", "1"]
    words += ["--seed", str(seed)]
    runs = [
        subprocess.Popen(words + ["--part", "%d/%d" % (part, jobs)], stdout=subprocess.PIPE)
        for part in range(jobs)
    ]
    signal.signal(signal.SIGTERM, lambda *_: [run.terminate() for run in runs])
    totals = [0, 0, 0]

    def follow(run):
        for line in run.stdout:
            found = re.fullmatch(rb"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?", line.strip())
            if found:
                for i, number in enumerate(found.groups()):
                    totals[i] += int(number or 0)
            else:
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()

    started = time.monotonic()
    followers = [threading.Thread(target=follow, args=(run,), daemon=True) for run in runs]
    for follower in followers:
        follower.start()
    try:
        codes = [run.wait() for run in runs]
    finally:
        for run in runs:
            if run.poll() is None:
                run.terminate()
    for follower in followers:
        follower.join()
    print("%.0f s in %d runs" % (time.monotonic() - started, jobs))
    line = "%d passed, %d failed" % (totals[0], totals[1])
    print(line + (", %d skipped" % totals[2] if totals[2] else ""))
    return 1 if any(codes) else 0


def main():
    arguments = parse_arguments()
    if arguments.jobs > 1 and not arguments.list:
        seed = arguments.seed if arguments.seed is not None else random.randrange(1 << 32)
        return run_jobs(arguments.jobs, seed)
    part, parts = (int(number) for number in arguments.part.split("/"))
    for module in MODULES:
        importlib.import_module(module)
    tests = [
        entry
        for entry in harness.TESTS
        if (arguments.host == "sava" or entry[0].startswith(NATIVE))
        and (not arguments.only or any(wanted in entry[0] for wanted in arguments.only))
        and not any(skipped in entry[0] for skipped in arguments.skip)
    ][part::parts]
    if arguments.list:
        for name, _, _ in tests:
            print(name)
        return 0
    if not arguments.server or not os.path.exists(arguments.server):
        found = shutil.which(arguments.server) if arguments.server else None
        if not found:
            print("no server binary: build one or give --server PATH")
            print("0 passed, 1 failed")
            return 1
        arguments.server = found
    if not arguments.stock:
        print("redis-server is not installed (Debian package redis-server)")
        print("0 passed, 1 failed")
        return 1
    arguments.server = os.path.abspath(arguments.server)
    copy = own_copy(arguments.server)
    seed = arguments.seed if arguments.seed is not None else random.randrange(1 << 32)
    options = harness.Options(
        copy, arguments.stock, arguments.threads, seed, arguments.seconds, arguments.long
    )
    options.built = os.path.dirname(arguments.server)
    if arguments.host == "module":
        options.module = os.path.join(options.built, "sava.so")
        if not os.path.exists(options.module):
            print("there is no %s" % options.module)
            print("0 passed, 1 failed")
            return 1
    print("server %s, stock %s, seed %s" % (arguments.server, options.stock, seed))
    signal.signal(signal.SIGALRM, on_alarm)
    signal.signal(signal.SIGTERM, on_term)
    runner = Runner(options)
    started = time.monotonic()
    try:
        for name, function, timeout in tests:
            runner.run(name, function, timeout)
        problem = runner.stop_servers()
        if problem:
            runner.report("run.clean_end", "FAIL", 0.0, [problem], [])
    finally:
        runner.stop_servers()
        shutil.rmtree(os.path.dirname(copy), ignore_errors=True)
    if runner.failed:
        print("failed (seed %s):" % seed)
        for name in runner.failed:
            print("  " + name)
    print("%.0f s" % (time.monotonic() - started))
    line = "%d passed, %d failed" % (runner.passed, len(runner.failed))
    print(line + (", %d skipped" % runner.skipped if runner.skipped else ""))
    return 1 if runner.failed else 0


if __name__ == "__main__":
    sys.exit(main())
