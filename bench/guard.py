#!/usr/bin/env python3
"""Compares the current tree with an earlier commit: `./dev bench guard [COMMIT] [--quick] [--only WORD]`.

Builds COMMIT (default HEAD) in a folder of its own under build/guard and puts the same load on both
servers: SET, GET, ZADD, HSET, LPUSH, LRANGE, XADD, XRANGE, AFC.ADD and BF.ADD at pipelines 1, 16 and
64, without a log and with `everysec`. With `--setting "dictionary-encoding no"` it compares a setting:
the earlier server is then the current program with that setting. Two figures for each case:

- instructions per command, counted by valgrind's callgrind: repeatable, whatever else the machine does;
- server CPU per command, in turns, the median of the pairs' ratios.

Up to 1.03 in instructions or 1.05 in CPU time counts as equal: a case fails when both are above.
The table is written to build/bench/guard.json too. Exit code 1 when a case fails.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import harness

COMMANDS = {
    "SET": ("SET", "key:__rand_int__", "x" * 64),
    "GET": ("GET", "key:__rand_int__"),
    "ZADD": ("ZADD", "board", "__rand_int__", "member:__rand_int__"),
    "HSET": ("HSET", "user:__rand_int__", "field", "value"),
    "LPUSH": ("LPUSH", "queue", "element:__rand_int__"),
    "LRANGE": ("LRANGE", "queue", "5000", "5099"),
    "XADD": ("XADD", "log", "*", "field", "value:__rand_int__"),
    "XRANGE": ("XRANGE", "log", "-", "+", "COUNT", "100"),
    "AFC.ADD": ("AFC.ADD", "assoc:__rand_int__", "member"),
    "BF.ADD": ("BF.ADD", "seen", "item:__rand_int__"),
}
# What fills the key of a command that reads.
FILLED_BY = {"LRANGE": "LPUSH", "XRANGE": "XADD"}
PIPELINES = (1, 16, 64)
LOGS = {"no log": ("--appendonly", "no"), "everysec": ("--appendonly", "yes", "--appendfsync", "everysec")}
EQUAL_INSTRUCTIONS = 1.03
EQUAL_CPU = 1.05
# Few keys, and all of them there before anything is counted: both servers then do the same work.
KEYSPACE = 10_000
WARM_UP = 20_000


def build(commit):
    """The server of that commit; built once."""
    full = subprocess.run(["git", "rev-parse", "--verify", commit + "^{commit}"], cwd=harness.ROOT,
                          capture_output=True, text=True, check=False)
    if full.returncode:
        raise harness.BenchError(f"no such commit: {commit}")
    name = full.stdout.strip()[:12]
    folder = os.path.join(harness.ROOT, "build", "guard", name)
    program = os.path.join(folder, "build", "release", "sava")
    if os.path.exists(program):
        return name, program
    harness.say(f"building {name}: a few minutes")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    archive = subprocess.Popen(["git", "archive", name], cwd=harness.ROOT, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", folder], stdin=archive.stdout, check=True)
    archive.wait()
    with open(os.path.join(folder, "build.log"), "wb") as log:
        for command in (
            ["cmake", "--preset", "release", "-DSAVA_TESTS=OFF", "-DSAVA_BENCH=OFF"],
            ["cmake", "--build", "--preset", "release", "--target", "sava"],
        ):
            if subprocess.run(command, cwd=folder, stdout=log, stderr=log, check=False).returncode:
                raise harness.BenchError(f"{name} does not build: {folder}/build.log")
    return name, program


def load(server, words, pipeline, requests, clients):
    return harness.redis_benchmark(server, words=words, requests=requests, pipeline=pipeline,
                                   clients=clients, keyspace=KEYSPACE)


def prepare(server, name):
    deadline = time.monotonic() + 60
    while server.info("persistence")["loading"] != "0" and time.monotonic() < deadline:
        time.sleep(0.1)
    with server.connect() as connection:
        connection.command("FLUSHALL")
    load(server, COMMANDS[FILLED_BY.get(name, name)], 64, WARM_UP, 10)


# ---- instructions ----


class Counted(harness.Server):
    """A server under callgrind, which counts only while it is told to."""

    def __init__(self, program, args):
        super().__init__(program, "sava", args)
        self.outputs = tempfile.mkdtemp(prefix="sava-guard-")
        self.number = 0

    def _command_line(self):
        return ["valgrind", "--tool=callgrind", "--instr-atstart=no",
                f"--callgrind-out-file={self.outputs}/out", *super()._command_line()]

    def stop(self):
        code = super().stop()
        shutil.rmtree(self.outputs, ignore_errors=True)
        return code

    def control(self, *words):
        done = subprocess.run(["callgrind_control", *words, str(self.pid)], capture_output=True,
                              text=True, timeout=120, check=False)
        if done.returncode:
            raise harness.BenchError(f"callgrind_control {words}: {done.stderr.strip()}")

    def instructions(self, work):
        self.control("--instr=on")
        self.control("--zero")
        work()
        self.control("--dump")
        self.control("--instr=off")
        self.number += 1
        totals = 0
        for name in os.listdir(self.outputs):
            with open(os.path.join(self.outputs, name), encoding="utf-8", errors="replace") as out:
                match = re.search(r"^(?:summary|totals): (\d+)", out.read(), re.M)
            totals += int(match.group(1)) if match else 0
            os.remove(os.path.join(self.outputs, name))
        if totals == 0:
            raise harness.BenchError("callgrind wrote nothing")
        return totals


def count_instructions(program, args, cases, requests):
    """Instructions per command of each case."""
    found = {}
    with Counted(program, args) as server:
        for name, pipeline in cases:
            prepare(server, name)
            done = server.instructions(
                lambda name=name, pipeline=pipeline: load(server, COMMANDS[name], pipeline, requests, 1))
            found[name, pipeline] = done / requests
    return found


# ---- CPU ----


def measure_cpu(sides, cases, pairs, seconds):
    """Ratios of CPU per command, now over before, of each case."""
    ratios = {case: [] for case in cases}
    with harness.Server(sides[0][0], "sava", sides[0][1]) as before, \
         harness.Server(sides[1][0], "sava", sides[1][1]) as now:
        for name, pipeline in cases:
            words = COMMANDS[name]
            requests = int(seconds * (40_000 if pipeline == 1 else 400_000))
            for server in (before, now):
                prepare(server, name)
            for number in range(pairs):
                readings = {}
                for server in (before, now) if number % 2 == 0 else (now, before):
                    readings[server is now] = load(server, words, pipeline, requests, 50).cpu_us
                ratios[name, pipeline].append(readings[True] / readings[False])
    return ratios


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench guard", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", default="HEAD")
    parser.add_argument("--setting", metavar='"NAME VALUE"', help="compare with this setting, not with a commit")
    parser.add_argument("--quick", action="store_true", help="instructions only")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", action="append", metavar="COMMAND", help="such as SET")
    parser.add_argument("--server", default=os.path.join(harness.ROOT, "build/release/sava"))
    parser.add_argument("--out", default=os.path.join(harness.ROOT, "build/bench"))
    return parser.parse_args(sys.argv[2:])


def main():
    options = parse()
    if shutil.which("callgrind_control") is None:
        raise harness.BenchError("valgrind is not there (Debian package valgrind)")
    other = []
    if options.setting:
        name, program = options.setting, options.server
        setting, *values = options.setting.split()
        other = ["--" + setting, *values]
    else:
        name, program = build(options.commit)
    names = [word for word in COMMANDS if not options.only or word in options.only]
    cases = [(word, pipeline) for word in names for pipeline in PIPELINES]
    rows, failed = [], []
    print(f"{'':<26}{'instructions ' + name:>26}{'now':>9}{'ratio':>8}{'CPU ratio':>11}")
    for log, args in LOGS.items():
        args = ("--threads", "1", *args)
        sides = ((program, (*args, *other)), (options.server, args))
        counts = [count_instructions(*side, cases, 10_000) for side in sides]
        cpu = {} if options.quick else measure_cpu(sides, cases, options.pairs, 1.0)
        for case in cases:
            ratio = counts[1][case] / counts[0][case]
            times = statistics.median(cpu[case]) if case in cpu else None
            equal = ratio <= EQUAL_INSTRUCTIONS or (times is not None and times <= EQUAL_CPU)
            label = f"{case[0]} P{case[1]} {log}"
            rows.append({"name": label, "before": counts[0][case], "now": counts[1][case],
                         "ratio": ratio, "cpu_ratio": times, "cpu_pairs": cpu.get(case), "ok": equal})
            failed += [] if equal else [label]
            print(f"{label:<26}{counts[0][case]:>26.0f}{counts[1][case]:>9.0f}{ratio:>8.3f}"
                  f"{times if times is None else format(times, '.3f')!s:>11}"
                  f"{'' if equal else '  SLOWER'}", flush=True)
    os.makedirs(options.out, exist_ok=True)
    with open(os.path.join(options.out, "guard.json"), "w", encoding="utf-8") as file:
        json.dump({"commit": name, "rows": rows}, file, indent=1)
    print(f"\nslower: {', '.join(failed)}" if failed else "\nno case is slower")
    return 1 if failed else 0
