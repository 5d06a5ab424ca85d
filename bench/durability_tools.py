"""What the sections of durability.py share: servers with data on a disk, the load, one save, rows.

`save` takes a snapshot and says how long it took and how much memory; `Load` runs the writers;
`attempt` turns a part that could not be measured into one missed row, so that the rest is taken.
"""

import bisect
import dataclasses
import json
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time

import harness
import report
import resp

SAVE_SECONDS = 600
LOAD_SECONDS = 600
LOOK_SECONDS = 0.003
PAGE = os.sysconf("SC_PAGE_SIZE")
IN_MEMORY = ("tmpfs", "ramfs")


# ---- the machine ----

def filesystem_of(path):
    """The type of the filesystem a path lies on, as the kernel's list of mounts names it."""
    path, best, kind = os.path.realpath(path), "", ""
    with open("/proc/mounts", encoding="utf-8") as mounts:
        for line in mounts:
            point, this = line.split()[1:3]
            inside = path == point or path.startswith(point.rstrip("/") + "/")
            if inside and len(point) >= len(best):
                best, kind = point, this
    return kind


def disk_folder(need):
    """A new temporary folder that lies on a disk with room for `need` bytes."""
    for parent in (tempfile.gettempdir(), "/var/tmp"):
        if os.path.isdir(parent) and filesystem_of(parent) not in IN_MEMORY:
            break
    else:
        raise harness.BenchError("the temporary folder lies in memory: set TMPDIR to one on a disk")
    free = shutil.disk_usage(parent).free
    if free < need:
        raise harness.BenchError(f"needs {need / 2**30:.0f} GB in {parent}, "
                                 f"there are {free / 2**30:.1f}")
    return tempfile.mkdtemp(prefix="sava-durability-", dir=parent)


def pinned(who):
    """What to put before a command line so that `who`, "server" or "load", keeps to its cores."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 4:
        return []
    mine = cores[:-1] if who == "server" else cores[-1:]
    return ["taskset", "-c", ",".join(map(str, mine))]


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(child) for child in file.read().split()]
    except FileNotFoundError:
        return []


def private_dirty(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("Private_Dirty:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass  # it has just ended
    return 0


# ---- servers, load, saves ----

class Server(harness.Server):
    """A server with settings of its own; `files` are linked into its directory before the start."""

    def __init__(self, program, role, settings=None, files=()):
        super().__init__(program, role)
        self.settings = {"save": "", "appendonly": "no", **(settings or {})}
        self.files = files
        self.began = 0.0

    def _command_line(self):
        for path, name in self.files:
            place = os.path.join(self.directory, name)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.link(path, place)
        settings = {"port": str(self.port), "dir": self.directory, **self.settings}
        if self.is_stock:
            program = [self.program]
            settings.update({"daemonize": "no", "bind": "127.0.0.1"})
        else:
            program = [self.program, "serve"]
            settings["http-port"] = "0"
        flags = [word for name, value in settings.items() for word in (f"--{name}", value)]
        self.began = time.monotonic()
        return [*pinned("server"), *program, *flags]

    @property
    def dump(self):
        return os.path.join(self.directory, "dump.rdb")

    def command(self, *args):
        with self.connect() as connection:
            return connection.command(*args)

    def wait_for(self, seconds, test, what):
        """Waits until `test` of INFO persistence is true."""
        deadline = time.monotonic() + seconds
        with self.connect() as connection:
            while True:
                text = connection.command("INFO", "persistence").decode()
                info = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
                if test(info):
                    return info
                if time.monotonic() > deadline:
                    raise harness.BenchError(f"{self.program}: {what} takes too long")
                time.sleep(0.01)

    def loaded_after(self):
        """Seconds from the start of the process until it had loaded its data."""
        try:
            self.wait_for(LOAD_SECONDS, lambda info: info.get("loading") == "0", "loading")
        except (OSError, resp.ProtocolError) as error:
            raise harness.BenchError(f"{self.program} ended while loading: {error}\n"
                                     f"{self.log_tail()}") from error
        return time.monotonic() - self.began


def pair_of(session, settings=None):
    return (Server(session.server, "sava", settings), Server(session.redis, "redis", settings))


def tool(session, name):
    """A program of ours: beside the server, or where it was built last."""
    folders = [os.path.dirname(os.path.abspath(session.server)),
               *(os.path.join(harness.ROOT, "build", preset) for preset in ("release", "dev"))]
    for folder in folders:
        if os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    raise harness.BenchError(f"{name} is not there; build it first (./dev build)")


@dataclasses.dataclass
class Latencies:
    """Milliseconds from the sending of each command until its answer was read, and by which the
    load, which had no processor, was late in sending it."""

    took: list
    late: list


class Load:
    """A running sava_load_durability; use it as a context manager."""

    def __init__(self, session, server, *arguments, samples=None):
        command = [*pinned("load"), tool(session, "sava_load_durability"), "--port",
                   str(server.port), *map(str, arguments)]
        if samples:
            command += ["--samples", samples]
        self.samples = samples
        self.result = {}
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.finish(judge=kind is None)

    def finish(self, judge=True, timeout=90):
        """Waits for its end and reads what it says of itself."""
        try:
            out, error = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, error = self.process.communicate()
        if judge and self.process.returncode:
            raise harness.BenchError(f"the load failed: {error.strip()[-300:]}")
        self.result = json.loads(out) if out else {}

    def latencies(self, windows):
        """Of the commands that were due in one of the windows of monotonic time."""
        with open(self.samples, encoding="ascii") as lines:
            samples = sorted(tuple(map(int, line.split())) for line in lines)
        os.remove(self.samples)
        times = [due for due, _, _ in samples]
        found = []
        for begin, end in windows:
            inside = samples[bisect.bisect_left(times, begin * 1e9):
                             bisect.bisect_right(times, end * 1e9)]
            found.append(Latencies([took / 1e6 for _, took, _ in inside],
                                   [late / 1e6 for _, _, late in inside]))
        return found


def percentile(values, percent):
    """A percentile of unsorted values; None without values."""
    if not values:
        return None
    return sorted(values)[min(len(values) - 1, int(len(values) * percent / 100))]


class MemoryWatch(threading.Thread):
    """Reads a server's memory until stopped; `peak` is the most it was, children included."""

    def __init__(self, server, children=True):
        super().__init__(daemon=True)
        self.pid = server.pid
        self.forks = server.is_stock and children
        self.peak = 0
        self.ended = threading.Event()

    def resident(self):
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * PAGE

    def run(self):
        pause = 0.1 if self.forks else 0.01  # adding up a child's pages is work
        try:
            while not self.ended.wait(pause):
                copied = sum(map(private_dirty, children_of(self.pid))) if self.forks else 0
                self.peak = max(self.peak, self.resident() + copied)
        except OSError:
            pass

    def stop(self):
        self.ended.set()
        self.join(30)
        return self.peak


@dataclasses.dataclass
class Save:
    begin: float
    end: float
    bytes: int
    rss: int
    extra: int

    @property
    def seconds(self):
        return self.end - self.begin

    @property
    def extra_percent(self):
        return 100 * self.extra / self.rss


def inode(path):
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None


def watch_idle(server, seconds):
    """Watches a server as `save` does, without a save: watching takes some of the processor too."""
    watch = MemoryWatch(server, children=False)
    watch.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        inode(server.dump)
        time.sleep(LOOK_SECONDS)
    watch.stop()


def save(server, children=True):
    """BGSAVE until the new file is in place. Without `children` their memory is not added up, which
    is work that others may wait for."""
    old = inode(server.dump)
    rss = server.rss()
    watch = MemoryWatch(server, children)
    with server.connect() as connection:
        watch.start()
        begin = time.monotonic()
        connection.command("BGSAVE")
        answered = time.monotonic()
        while inode(server.dump) in (None, old):
            if time.monotonic() > begin + SAVE_SECONDS:
                raise harness.BenchError(f"{server.program}: BGSAVE takes too long")
            if time.monotonic() > answered + 1:
                answered = time.monotonic()
                info = server.info("persistence")
                if info["rdb_last_bgsave_status"] != "ok" and not server_saves(info):
                    break
            time.sleep(LOOK_SECONDS)
        end = time.monotonic()
    peak = watch.stop()
    info = server.wait_for(60, lambda fields: not server_saves(fields), "the end of a save")
    if info["rdb_last_bgsave_status"] != "ok":
        raise harness.BenchError(f"{server.program}: BGSAVE failed\n{server.log_tail()}")
    return Save(begin, end, os.path.getsize(server.dump), rss, max(0, peak - rss))


def server_saves(info):
    return info.get("rdb_bgsave_in_progress") != "0"


def in_turns(rounds, sava, redis, measure):
    """Like harness.interleave, with a number of rounds of its own."""
    pairs = []
    for number in range(rounds):
        readings = {}
        for server in (sava, redis) if number % 2 == 0 else (redis, sava):
            readings[server.role] = measure(server)
        pairs.append((readings["sava"], readings["redis"]))
    return pairs


def ratio_row(name, pairs, unit, bar, note="", sense="max", **details):
    ratios = [ours / theirs for ours, theirs in pairs]
    row = report.Row(name, statistics.median(pair[0] for pair in pairs), unit,
                     statistics.median(pair[1] for pair in pairs), statistics.median(ratios), bar,
                     judged="ratio", sense=sense, pairs=len(pairs), note=note,
                     details={"ratios": [round(x, 4) for x in ratios], **details})
    harness.say(f"{name}: {row.value:.4g} against {row.redis:.4g} {unit}, ratio {row.ratio:.3f}")
    return row


def value_row(name, value, unit, bar=None, redis=None, note="", **details):
    harness.say(f"{name}: {value:.4g} {unit}" + (f", Redis {redis:.4g}" if redis else ""))
    return report.Row(name, value, unit, redis, bar=bar, note=note, details=details)


def attempt(name, take):
    """The rows of one part; one missed row in their place if it could not be taken."""
    try:
        return take()
    except (harness.BenchError, resp.ProtocolError, resp.ReplyError, OSError, KeyError,
            subprocess.TimeoutExpired) as error:
        text = str(error) or type(error).__name__
        harness.say(f"{name} could not be taken: {text}")
        return [report.Row(name, None, "", bar=0, note=text.splitlines()[0][:120])]
