"""What every module of the outside test-suite stands on: servers, test registration, helpers.

A test is a function with the decorator @test() that takes a Context. It fails by raising (eq,
check) or by notes (context.same, context.expect), which let one test report several deviations.
Every process started here is ended by its own id; PR_SET_PDEATHSIG ends it even if the runner dies.
Waiting is always `until(condition)` with a generous bound, never a fixed sleep followed by a claim.
"""

import contextlib
import ctypes
import os
import pickle
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import traceback

import resp

# Time limits are multiplied by this, e.g. 5 for a build with sanitizers.
SLOW = float(os.environ.get("SAVA_E2E_SLOW", "1"))
READY = b"Ready to accept connections"
SANITIZER_MARKS = (
    b"ERROR: AddressSanitizer",
    b"WARNING: ThreadSanitizer",
    b"ERROR: LeakSanitizer",
    b": runtime error: ",
)
_LIBC = ctypes.CDLL(None)


class Failure(AssertionError):
    """A test's claim did not hold."""


class Skip(Exception):
    """The test does not apply here; the reason is printed."""


class TestTimeout(BaseException):
    """The test used up its time."""


def eq(actual, expected, what=""):
    if actual != expected:
        raise Failure(
            "%sexpected %s, got %s"
            % (what + ": " if what else "", resp.show(expected), resp.show(actual))
        )


def check(condition, message):
    if not condition:
        raise Failure(message)


def until(condition, seconds=15.0, what="the condition", pause=0.02):
    """Polls until `condition()` is true and returns its value; fails after `seconds` (x SLOW)."""
    deadline = time.monotonic() + seconds * SLOW
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure("%s did not come about within %.0f s" % (what, seconds * SLOW))
        time.sleep(pause)


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def _die_with_parent():
    _LIBC.prctl(1, signal.SIGKILL)


def parse_info(text):
    """INFO's text as {section: {field: value}}, names as in the text."""
    sections, current = {}, {}
    for line in bytes(text).decode("utf-8", "replace").split("\r\n"):
        if line.startswith("#"):
            current = sections.setdefault(line[1:].strip(), {})
        elif ":" in line:
            name, value = line.split(":", 1)
            current[name] = value
    return sections


class Server:
    """One server process. Its log is `self.log_path`; stop() ends it by its id."""

    def __init__(self, binary, options=(), threads=2, config=None, module=None):
        self.binary = binary
        self.stock = os.path.basename(binary).startswith(("redis-server", "valkey-server"))
        self.module = module
        self.options = list(options)
        self.threads = threads
        self.config = config
        self.process = None
        self.port = None
        self.dir = tempfile.mkdtemp(prefix="sava-e2e-")
        self.log_path = os.path.join(self.dir, "server.log")
        self._admin = None

    @property
    def name(self):
        if self.module:
            return "stock with sava.so"
        return "stock" if self.stock else "sava"

    @property
    def has_natives(self):
        """Whether it has the commands of the native families."""
        return not self.stock or self.module is not None

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    def command_line(self, port):
        line = [self.binary] if self.stock else [self.binary, "serve"]
        if self.config:
            line.append(self.config)
        line += ["--port", str(port), "--bind", "127.0.0.1", "--dir", self.dir]
        line += ["--save", "", "--appendonly", "no"]
        if not self.stock:
            line += ["--threads", str(self.threads), "--http-port", "0"]
        if self.module:
            line += ["--loadmodule", self.module]
        return line + ["--enable-debug-command", "yes"] + self.options

    def start(self):
        """Starts and waits until the server is ready; a port taken meanwhile is tried anew."""
        for attempt in range(5):
            self.port = free_port()
            self.spawn(self.command_line(self.port))
            if self._wait_ready():
                return self
            log = self.log()
            self.stop()
            if b"in use" not in log:
                break
        raise Failure("%s did not start: %s" % (self.name, log.decode("utf-8", "replace")[-1500:]))

    def spawn(self, line):
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                line,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.dir,
                preexec_fn=_die_with_parent,
            )

    def _wait_ready(self):
        deadline = time.monotonic() + 30 * SLOW
        while time.monotonic() < deadline:
            if READY in self.log():
                return True
            if self.process.poll() is not None:
                return READY in self.log() and False
            time.sleep(0.01)
        return False

    def log(self):
        try:
            with open(self.log_path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""

    def alive(self):
        """The process runs and answers."""
        if self.process is None or self.process.poll() is not None:
            return False
        try:
            with self.client(timeout=10 * SLOW) as client:
                return client.call("PING") == resp.PONG
        except (OSError, resp.ConnectionClosed, resp.ProtocolError):
            return False

    def client(self, proto=2, timeout=None, db=0, **options):
        client = resp.Client(self.address, timeout or resp.DEFAULT_TIMEOUT * SLOW, **options)
        if proto == 3:
            client.call("HELLO", "3")
        if db:
            client.call("SELECT", str(db))
        return client

    def call(self, *args):
        """A command over the harness's own connection."""
        if self._admin is None:
            self._admin = self.client()
        try:
            return self._admin.call(*args)
        except (resp.ConnectionClosed, OSError):
            self._admin.close()
            self._admin = self.client()
            return self._admin.call(*args)

    def info(self, section="everything"):
        return parse_info(self.call("INFO", section))

    def info_field(self, field, section="everything"):
        for fields in self.info(section).values():
            if field in fields:
                return fields[field]
        return None

    @contextlib.contextmanager
    def configured(self, **settings):
        """CONFIG SET for the length of a block; underscores in names stand for dashes."""
        old = {}
        for name, value in settings.items():
            name = name.replace("_", "-")
            got = self.call("CONFIG", "GET", name)
            check(
                isinstance(got, list) and len(got) == 2,
                "CONFIG GET %s on %s answered %s" % (name, self.name, resp.show(got)),
            )
            old[name] = got[1]
            eq(self.call("CONFIG", "SET", name, value), resp.OK, "CONFIG SET " + name)
        try:
            yield
        finally:
            for name, value in old.items():
                self.call("CONFIG", "SET", name, value)

    def terminate(self, signum=signal.SIGTERM, seconds=20.0):
        """Sends a signal and returns the exit code; kills after `seconds`."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(signum)
            return self.wait_exit(seconds)
        return self.process.returncode

    def wait_exit(self, seconds=20.0):
        try:
            return self.process.wait(seconds * SLOW)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return "not within %.0f s" % (seconds * SLOW)

    def stop(self):
        code = self.terminate()
        self.process = None
        return code

    def remove_files(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def sanitizer_report(self):
        log = self.log()
        places = [log.find(mark) for mark in SANITIZER_MARKS if mark in log]
        return log[min(places) :][:3000].decode("utf-8", "replace") if places else None


class Options:
    """What the command line of run.py says."""

    def __init__(self, server, stock, threads=2, seed=1, seconds=0.0, long=False):
        self.server = server
        self.stock = stock
        self.threads = threads
        self.seed = seed
        self.seconds = seconds
        self.long = long
        self.module = None  # sava.so, when the server under test is a stock one with it
        self.built = None  # the folder where the server's binary was built, with others


class Context:
    """A test's view: the two shared servers, its own clients, servers and notes."""

    def __init__(self, options, sut, stock):
        self.options = options
        self.sut = sut
        self.stock = stock
        self.notes = []
        self.messages = []
        self._closers = contextlib.ExitStack()

    @property
    def is_sava(self):
        return not self.sut.stock

    def sava_only(self, reason="only Sava does this"):
        if not self.is_sava:
            raise Skip(reason)

    def natives_only(self, reason="the native families are needed"):
        if not self.sut.has_natives:
            raise Skip(reason)

    def by_host(self, sava, module):
        """What is expected of Sava, and of a stock server with sava.so."""
        return sava if self.is_sava else module

    def no_sanitizer(self, reason):
        """Skips the test when the server was built with AddressSanitizer or ThreadSanitizer."""
        linked = subprocess.run(["ldd", self.options.server], capture_output=True, text=True,
                                check=False).stdout
        if "libasan" in linked or "libtsan" in linked:
            raise Skip(reason)

    def rng(self, name):
        return random.Random("%s:%s" % (self.options.seed, name))

    def client(self, server=None, proto=2, **options):
        client = (server or self.sut).client(proto, **options)
        self._closers.callback(client.close)
        return client

    def pair(self, proto=2, **options):
        """A connection to each server: (stock, sut)."""
        return self.client(self.stock, proto, **options), self.client(self.sut, proto, **options)

    def start(self, *options, binary=None, **more):
        """Another server of the kind under test (or of `binary`), ended with the test."""
        server = Server(
            binary or self.options.server,
            options,
            more.pop("threads", self.options.threads),
            **more
        )
        self._closers.callback(self._end, server)
        return server.start()

    def start_stock(self, *options, **more):
        return self.start(*options, binary=self.options.stock, **more)

    def _end(self, server):
        server.stop()
        report = server.sanitizer_report()
        server.remove_files()
        if report:
            raise Failure("sanitizer report in the server's log:\n" + report)

    def try_start(self, *options, config=None, port=None):
        """Starts a server that is expected to refuse: (exit code, output)."""
        server = Server(self.options.server, options, self.options.threads, config)
        try:
            server.spawn(server.command_line(port or free_port()))
            deadline = time.monotonic() + 20 * SLOW
            while server.process.poll() is None and READY not in server.log():
                check(time.monotonic() < deadline, "the server neither starts nor exits")
                time.sleep(0.01)
            code = server.process.poll()
            if code is None:
                server.terminate()
                return "it started", server.log().decode("utf-8", "replace")
            return code, server.log().decode("utf-8", "replace")
        finally:
            if server.process.poll() is None:
                server.process.kill()
                server.process.wait()
            server.remove_files()

    def temp_dir(self):
        path = tempfile.mkdtemp(prefix="sava-e2e-")
        self._closers.callback(shutil.rmtree, path, ignore_errors=True)
        return path

    def at_end(self, function, *args):
        self._closers.callback(function, *args)

    def note(self, message):
        """Records a deviation; the test goes on and fails at its end."""
        self.notes.append(message)

    def say(self, message):
        """Something worth printing with the result, whatever it is."""
        self.messages.append(message)

    def expect(self, condition, message):
        if not condition:
            self.note(message)
        return bool(condition)

    def same(self, actual, expected, what=""):
        if actual != expected:
            self.note("%s: expected %s, got %s" % (what, resp.show(expected), resp.show(actual)))
            return False
        return True

    def close(self):
        self._closers.close()


TESTS = []


def test(timeout=30.0):
    """Registers a test; its full name is module.function."""

    def register(function):
        module = function.__module__.split(".")[-1].replace("_tests", "")
        TESTS.append(("%s.%s" % (module, function.__name__), function, timeout))
        return function

    return register


def run_workers(functions, seconds):
    """Runs functions in forked processes at the same time; returns their results in order.

    A worker's exception fails the test with the worker's traceback. Workers that are still there
    after `seconds` (x SLOW) are ended by their ids.
    """
    children = []
    results = [None] * len(functions)
    try:
        for function in functions:
            read_end, write_end = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(read_end)
                _run_worker(function, write_end)
            os.close(write_end)
            children.append((pid, read_end))
        deadline = time.monotonic() + seconds * SLOW
        for index, (pid, read_end) in enumerate(children):
            results[index] = _worker_result(read_end, deadline)
    finally:
        for pid, read_end in children:
            os.close(read_end)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return results


def _run_worker(function, write_end):
    code = 1
    try:
        _die_with_parent()
        signal.setitimer(signal.ITIMER_REAL, 0)
        for signum in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, signal.SIG_DFL)
        try:
            outcome = ("ok", function())
        except BaseException:  # the parent reports it
            outcome = ("failed", traceback.format_exc(limit=-4))
        with os.fdopen(write_end, "wb") as pipe:
            pickle.dump(outcome, pipe)
        code = 0
    finally:
        os._exit(code)


def _worker_result(read_end, deadline):
    chunks = []
    os.set_blocking(read_end, False)
    while True:
        try:
            chunk = os.read(read_end, 1 << 20)
        except BlockingIOError:
            check(time.monotonic() < deadline, "a worker did not finish in time")
            time.sleep(0.005)
            continue
        if not chunk:
            break
        chunks.append(chunk)
    check(chunks, "a worker died without a result")
    state, value = pickle.loads(b"".join(chunks))
    check(state == "ok", "a worker failed:\n%s" % value)
    return value
