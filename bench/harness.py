"""What every benchmark shares: servers to measure, CPU and memory readings, pairs, redis-benchmark.

A benchmark is a module in this folder with a top-level `BENCHMARK = harness.Benchmark(...)`; run.py
finds it by that name. Its function takes a `Session` and returns report rows.

A server is started on a free port of 127.0.0.1 in a directory of its own, without persistence, and
is ended by its process id. Where a figure is a ratio, Sava and stock Redis do the same work in
turns (`interleave`) and the median of the pairs' ratios counts: the speed of a shared machine
changes from minute to minute, but hardly between two neighbours of a pair.
"""

import csv
import dataclasses
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import resp

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
START_SECONDS = 20
STOP_SECONDS = 60


class BenchError(Exception):
    """A benchmark could not be taken; the text says why."""


@dataclasses.dataclass
class Benchmark:
    name: str
    summary: str
    run: object


@dataclasses.dataclass
class Session:
    """What the command line asked for. `server` and `redis` are programs."""

    server: str
    redis: str
    quick: bool
    pairs: int
    engine: str

    def pick(self, full, quick):
        return quick if self.quick else full

    def sava(self, *args):
        return Server(self.server, "sava", args)

    def stock(self, *args):
        return Server(self.redis, "redis", args)


def say(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server process under measurement; use it as a context manager.

    `role` is "sava" or "redis" and decides how rows are filled; how to start the program is seen
    from its name, so that stock Redis can stand on both sides to show the noise.
    """

    def __init__(self, program, role, args=()):
        self.program = program
        self.role = role
        self.args = list(args)
        self.process = None
        self.directory = None
        self.log_path = ""
        self.port = 0

    def __enter__(self):
        for attempt in range(3):
            try:
                self._start()
                return self
            except BenchError:
                self.stop()
                if attempt == 2:
                    raise
        raise AssertionError("unreachable")

    def __exit__(self, *exc_info):
        self.stop()

    @property
    def pid(self):
        return self.process.pid

    @property
    def is_stock(self):
        return "redis-server" in os.path.basename(self.program)

    def _command_line(self):
        common = ["--port", str(self.port), "--dir", self.directory, "--save", "",
                  "--appendonly", "no"]
        if not self.is_stock:
            return [self.program, "serve", *common, "--http-port", "0", *self.args]
        args = list(self.args)
        if "--threads" in args:
            at = args.index("--threads")
            del args[at : at + 2]
        return [self.program, *common, "--daemonize", "no", "--bind", "127.0.0.1", *args]

    def _start(self):
        if shutil.which(self.program) is None:
            raise BenchError(f"{self.program} is not there; build it first (./dev build)")
        self.port = free_port()
        self.directory = tempfile.mkdtemp(prefix="sava-bench-")
        self.log_path = os.path.join(self.directory, "log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(self._command_line(), stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + START_SECONDS
        while True:
            if self.process.poll() is not None:
                raise BenchError(f"{self.program} ended at once:\n{self.log_tail()}")
            try:
                if int(self.info("server")["process_id"]) != self.pid:
                    raise BenchError(f"port {self.port} belongs to another process")
                return
            except (OSError, resp.ProtocolError, resp.ReplyError, KeyError):
                if time.monotonic() > deadline:
                    raise BenchError(
                        f"{self.program} does not answer:\n{self.log_tail()}") from None
                time.sleep(0.05)

    def log_tail(self):
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as log:
                return "".join(log.readlines()[-15:])
        except OSError:
            return ""

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def stop(self):
        """Ends the process, removes its directory; returns the exit code, None if not started."""
        code = None
        if self.process is not None:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
                try:
                    self.process.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    say(f"{self.program} does not end after SIGTERM: killed")
                    self.process.kill()
                    self.process.wait()
            code = self.process.returncode
            self.process = None
        if self.directory is not None:
            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory = None
        return code

    def connect(self):
        return resp.Connection(self.port)

    def info(self, section="default"):
        """INFO as a dictionary of strings."""
        with self.connect() as connection:
            text = connection.command("INFO", section).decode()
        fields = (line.split(":", 1) for line in text.splitlines() if ":" in line)
        return {name: value for name, value in fields}

    def cpu_seconds(self):
        return cpu_seconds(self.pid)

    def rss(self):
        return _status_bytes(self.pid, "VmRSS")

    def rss_peak(self):
        return _status_bytes(self.pid, "VmHWM")

    def used_memory(self):
        return int(self.info("memory")["used_memory"])


def cpu_seconds(pid):
    """CPU time the process has used, all threads, user and kernel.

    The kernel's CPU clock of a process has nanoseconds and keeps what ended threads used. Where it
    is not to be had: the scheduler's sums of the living threads, else clock ticks of 10 ms.
    """
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        pass
    try:
        total = 0
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
        return total / 1e9
    except OSError:
        pass
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _status_bytes(pid, name):
    with open(f"/proc/{pid}/status", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    raise BenchError(f"/proc/{pid}/status has no {name}")


def available_memory():
    with open("/proc/meminfo", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


def need_memory(amount):
    have = available_memory()
    if have < amount:
        raise BenchError(f"needs {amount / 2**30:.1f} GB of free memory, there are "
                         f"{have / 2**30:.1f}; try --quick")


def preload(server, count, **options):
    """Fills a server with `count` keys and checks that they are there."""
    with server.connect() as connection:
        before = connection.command("DBSIZE")
        resp.fill(connection, 0, count, **options)
        if connection.command("DBSIZE") != before + count:
            raise BenchError(f"{server.program}: DBSIZE is not what was filled in")


def interleave(session, sava, redis, measure):
    """Measures both servers in turns; returns a list of (sava's reading, redis's reading).

    Every second pair begins with the other one, so that a slow drift of the machine favours
    neither.
    """
    pairs = []
    for number in range(session.pairs):
        readings = {}
        for server in (sava, redis) if number % 2 == 0 else (redis, sava):
            readings[server.role] = measure(server)
        pairs.append((readings["sava"], readings["redis"]))
    return pairs


def median_ratio(pairs):
    """The median of the pairs' ratios, sava's figure over redis's."""
    return statistics.median(ours / theirs for ours, theirs in pairs)


@dataclasses.dataclass
class LoadResult:
    """What one run of redis-benchmark gave; latencies in milliseconds as its clients saw them."""

    cpu_us: float
    rps: float
    p50_ms: float | None
    p99_ms: float | None


def redis_benchmark(server, *, test=None, words=(), requests, pipeline=1, clients=50,
                    keyspace=1_000_000, value_bytes=64, tls_port=None, tracking=False, user=None):
    """Runs redis-benchmark against a server and reads the server's CPU per command around it.

    The load is one of its tests, or the command `words`, in which __rand_int__ stands for twelve
    random digits below `keyspace`. `tls_port`: it is sent encrypted, to that port. `tracking`: the
    clients have CLIENT TRACKING on. `user`: their name and password.
    """
    if shutil.which("redis-benchmark") is None:
        raise BenchError("redis-benchmark is not there (Debian package redis-tools)")
    how = ["--tls", "--insecure"] if tls_port else []
    how += ["--enable-tracking"] if tracking else []
    how += ["--user", user[0], "-a", user[1]] if user else []
    command = ["redis-benchmark", "-h", "127.0.0.1", "-p", str(tls_port or server.port), *how,
               "-c", str(clients), "-n", str(requests), "-P", str(pipeline), "-r", str(keyspace),
               "-d", str(value_bytes), "--csv", *(["-t", test] if test else words)]
    before = server.cpu_seconds()
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    used = server.cpu_seconds() - before
    if done.returncode or not server.alive():
        raise BenchError(f"redis-benchmark {test or ' '.join(words)} failed: {done.stderr.strip()[-300:]}"
                         f"{done.stdout.strip()[-300:]}\n{server.log_tail()}")
    rows = list(csv.DictReader(done.stdout.splitlines()))
    if not rows or "rps" not in rows[-1]:
        raise BenchError(f"cannot read redis-benchmark's output: {done.stdout[:300]!r}")
    row = rows[-1]
    latency = {key: float(row[key]) if row.get(key) else None
               for key in ("p50_latency_ms", "p99_latency_ms")}
    return LoadResult(used / requests * 1e6, float(row["rps"]), latency["p50_latency_ms"],
                      latency["p99_latency_ms"])
