"""A disk that is full, fails or is gone: writes are refused with MISCONF, nothing acknowledged is
lost, and service resumes by itself when the trouble ends.

Trouble is made in three ways: a limit on file sizes (RLIMIT_FSIZE), a small filesystem where
mounting is allowed, and a preloaded library that lets system calls fail (faults.cc).
"""

import atexit
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import durability
import resp
from durability import contents, durable, increments, persistence, wait_idle
from harness import SLOW, Skip, check, eq, free_port, run_workers, test, until

NO_SAVE = ("--save", "")
NO_LOG = ("--appendonly", "no")
RDB_TEXT = (
    b"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to "
    b"disk. Commands that may modify the data set are disabled, because this instance is "
    b"configured to report errors during writes if RDB snapshotting fails "
    b"(stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB "
    b"error."
)
AOF_TEXT = b"MISCONF Errors writing to the AOF file"
VALUE = b"x" * 1000


class Faults:
    """A server whose system calls fail on demand."""

    library = None

    def __init__(self, context, *options):
        context.no_sanitizer("a sanitizer's runtime wants to be loaded first")
        self.words = os.path.join(context.temp_dir(), "faults")
        env = {"LD_PRELOAD": self.build(), "SAVA_FAULTS": self.words}
        self.server = durable(context, *options, env=env)

    @classmethod
    def build(cls):
        """The library, made once."""
        if cls.library is not None:
            return cls.library
        compiler = shutil.which("g++") or shutil.which("c++")
        if compiler is None:
            raise Skip("no C++ compiler")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "faults.cc")
        folder = tempfile.mkdtemp(prefix="sava-e2e-")
        atexit.register(shutil.rmtree, folder, True)
        library = os.path.join(folder, "faults.so")
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-O1", "-D_GNU_SOURCE", "-o", library, source, "-ldl"],
            check=True,
            timeout=60 * SLOW,
        )
        cls.library = library
        return library

    def begin(self, *words):
        with open(self.words + ".new", "w") as file:
            file.write(" ".join(words))
        os.replace(self.words + ".new", self.words)

    def end(self):
        os.remove(self.words)


class Writer:
    """Sets one key after another and remembers what was acknowledged."""

    def __init__(self, context, server):
        self.server = server
        self.client = context.client(server)
        self.context = context
        self.done = []
        self.pending = []
        self.number = 0

    def send(self):
        key = b"key:%06d" % self.number
        self.number += 1
        self.client.send("SET", key, VALUE + key)
        self.pending.append(key)

    def take(self):
        """The reply to the oldest command that has none yet."""
        reply = self.client.reply()
        key = self.pending.pop(0)
        if reply == resp.OK:
            self.done.append(key)
        return reply

    def write(self):
        """None: the connection was closed, and what became of the write is not known."""
        try:
            self.send()
            return self.take()
        except resp.ConnectionClosed:
            self.client = self.context.client(self.server)
            self.pending.clear()
            return None

    def until_refused(self, text, seconds=30):
        """Writes until it is refused."""
        replies = []

        def refused():
            replies[:] = [self.write()]
            return replies[0] not in (resp.OK, None)

        until(refused, seconds, "a refused write", pause=0.001)
        check(bytes(replies[0]).startswith(text), "refused with " + resp.show(replies[0]))
        return replies[0]

    def until_accepted(self, seconds=30):
        until(lambda: self.write() == resp.OK, seconds, "an accepted write", pause=0.05)

    def until_silent(self, count=500):
        """Writes until there is no answer (`always` owes it), or a refusal."""
        for _ in range(count):
            self.send()
            if not self.client.waiting(0.3 * SLOW):
                return None
            reply = self.take()
            if reply != resp.OK:
                return reply
        raise AssertionError("%d writes went through" % count)

    def check_kept(self, refused=()):
        """Everything acknowledged is in memory, and again after a kill."""
        for moment in ("in memory", "after a kill"):
            found = contents(self.server)
            for key in self.done:
                if found.get((0, key)) != (VALUE + key, -1):
                    raise AssertionError("%s: %s was acknowledged and is gone" % (moment, key))
            for key in refused:
                check((0, key) not in found, "%s was refused and is there" % key)
            if moment == "in memory":
                settle(self.server)
                self.server.kill()
                self.server.restart()
        eq(self.server.call("SET", "afterwards", "1"), resp.OK)


def settle(server):
    """All that is acknowledged must be on the disk now, whatever the policy."""
    if persistence(server)["aof_enabled"] == "1":
        eq(server.call("WAITAOF", "1", "0", "20000"), [1, 0], "WAITAOF")


# ---- the log ----


def log_size(server):
    return max(os.path.getsize(file.path) for file in durability.log_files(server))


def trouble(context, server, writer, begin, end, status=True):
    """everysec: refuses while the trouble lasts, goes on by itself after."""
    for _ in range(20):
        eq(writer.write(), resp.OK)
    begin()
    writer.until_refused(AOF_TEXT)
    refused = b"key:%06d" % (writer.number - 1)
    with server.client() as other:
        eq(other.call("GET", writer.done[0]), VALUE + writer.done[0], "reading")
        check(resp.is_error(other.call("DEL", writer.done[0]), "MISCONF"), "DEL")
        check(resp.is_error(other.call("INCR", "n"), "MISCONF"), "INCR")
        if not server.stock:
            check(resp.is_error(other.call("AFC.ADD", "a", "b"), "MISCONF"), "AFC.ADD")
            taken = other.call("RL.TAKE", "r", "WINDOW", "5", "1000")
            check(resp.is_error(taken, "MISCONF"), "RL.TAKE: " + resp.show(taken))
        eq(other.call("MULTI"), resp.OK)
        check(resp.is_error(other.call("SET", "in", "multi"), "MISCONF"), "in MULTI")
        check(resp.is_error(other.call("EXEC"), "EXECABORT"), "EXEC")
        if status:
            eq(persistence(server)["aof_last_write_status"], "err")
    end()
    writer.until_accepted()
    until(lambda: persistence(server)["aof_last_write_status"] == "ok", 20, "a good status")
    for _ in range(20):
        eq(writer.write(), resp.OK)
    writer.check_kept([refused])


@test()
def a_file_size_limit(context):
    """RLIMIT_FSIZE: its signal does not end the server, its error is a full disk."""
    context.sava_only("Redis dies of the signal")
    server = durable(context, *NO_SAVE, "--appendonly", "yes", "--appendfsync", "everysec")
    writer = Writer(context, server)
    trouble(
        context, server, writer,
        lambda: server.limit_files(log_size(server) + 50_000),
        lambda: server.limit_files(None),
    )


@test()
def a_failing_write(context):
    for word in ("write", "half"):
        faults = Faults(context, *NO_SAVE, "--appendonly", "yes", "--appendfsync", "everysec")
        writer = Writer(context, faults.server)
        if faults.server.stock:
            raise Skip("Redis 7.0 has no WAITAOF")
        trouble(context, faults.server, writer, lambda: faults.begin(word), faults.end)


@test()
def a_failing_sync(context):
    """The log is not trusted any more; it goes on with a new base."""
    context.sava_only("Redis 7.0 has no WAITAOF")
    faults = Faults(context, *NO_SAVE, "--appendonly", "yes", "--appendfsync", "everysec")
    first = durability.log_base(faults.server).sequence
    writer = Writer(context, faults.server)
    trouble(
        context, faults.server, writer, lambda: faults.begin("fsync"), faults.end, status=False
    )
    check(durability.log_base(faults.server).sequence > first, "the same base as before")


@test(timeout=60)
def always_owes_its_replies(context):
    """While the disk fails nobody hears OK; afterwards all that was said is true."""
    context.sava_only("Redis ends itself in this case")
    for words in (("half",), ("fsync",), ("fsync", "rename"), ("write", "open")):
        faults = Faults(context, *NO_SAVE, "--appendonly", "yes", "--appendfsync", "always")
        server = faults.server
        writer = Writer(context, server)
        for _ in range(20):
            eq(writer.write(), resp.OK)
        faults.begin(*words)
        reply = writer.until_silent()
        check(
            reply is None or resp.is_error(reply, "MISCONF"), "%s: %s" % (words, resp.show(reply))
        )
        check(len(writer.done) == 20, "%s: acknowledged on a bad disk" % (words,))
        reader = context.client(server)
        reader.send("GET", writer.done[0])
        reader.send("SET", "other", "1")
        faults.end()
        while writer.pending:
            writer.take()
        eq(reader.reply(), VALUE + writer.done[0], "%s: a reader" % (words,))
        reply = reader.reply()
        check(reply == resp.OK or resp.is_error(reply, "MISCONF"), resp.show(reply))
        writer.until_accepted()
        writer.check_kept()


@test(timeout=60)
def others_are_answered_while_always_owes(context):
    """A full disk: only who would tell of what is not on it waits, and not without bounds."""
    context.sava_only("Redis ends itself in this case")
    options = ("--appendonly", "yes", "--appendfsync", "always", "--save", "3600 1")
    for words in (("write",), ("half",), ("fsync",)):
        port = free_port()
        faults = Faults(context, *options, "--http-port", str(port))
        server = faults.server
        http = "http://127.0.0.1:%d/healthz" % port
        eq(server.call("SET", "before", "1"), resp.OK)
        eq(server.call("SET", "short", "1", "PX", "300"), resp.OK)
        eq(health(http), 200)
        subscriber = context.client(server)
        subscriber.call("SUBSCRIBE", "news")
        faults.begin(*words)
        owed = context.client(server)
        owed.send("SET", "unlogged", "1")
        check(not owed.waiting(0.5 * SLOW), "%s: a write is answered on a bad disk" % (words,))
        other = context.client(server)
        eq(other.call("GET", "before"), b"1", "%s: a read" % (words,))
        for command in (("SET", "a", "1"), ("PING",), ("FLUSHALL",), ("LPUSH", "before", "1")):
            reply = other.call(*command)
            check(resp.is_error(reply, "MISCONF"), "%s: %s" % (command, resp.show(reply)))
        check(resp.is_error(other.call("NOSUCH")), "an error")
        check(resp.is_error(other.call("LRANGE", "before", "0", "1"), "WRONGTYPE"), "an error")
        for command in (("INFO",), ("CLIENT", "LIST"), ("CONFIG", "GET", "save"), ("TIME",)):
            check(not resp.is_error(other.call(*command)), "%s: %s" % (words, command))
        time.sleep(0.4)
        eq(other.call("GET", "short"), resp.NIL, "%s: what has expired" % (words,))
        eq(other.call("PUBLISH", "news", "x"), 1)
        eq(subscriber.recv(), [b"message", b"news", b"x"])
        eq(health(http), 503)
        for command in (("GET", "unlogged"), ("DBSIZE",), ("KEYS", "*"), ("SCAN", "0")):
            curious = context.client(server)
            curious.send(*command)
            check(not curious.waiting(0.1 * SLOW), "%s tells of what is not logged" % (command,))
        owed.sock.settimeout(1.0 * SLOW)
        sent, pings = 0, resp.encode("ECHO", "x" * 100) * 100
        try:
            while sent < 100 << 20:
                sent += owed.sock.send(pings)
        except TimeoutError:
            pass
        check(sent < 100 << 20, "who is owed an answer may ask on and on")
        eq(server.terminate(), 0, "%s: the end" % (words,))
        faults.end()
        server.restart()
        eq(server.call("GET", "before"), b"1")


def health(url):
    try:
        with urllib.request.urlopen(url, timeout=20 * SLOW) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


@test(timeout=90)
def a_failed_write_is_not_acknowledged(context):
    """everysec and no: the answers of what could not be written wait, and never come if it never
    can be. Killed in between, the log has all that was acknowledged."""
    context.sava_only("Redis acknowledges them")
    for policy, word in (("everysec", "write"), ("no", "half"), ("everysec", "half")):
        faults = Faults(context, *NO_SAVE, "--appendonly", "yes", "--appendfsync", policy)
        server = faults.server
        writers = [Writer(context, server) for _ in range(8)]
        for number, writer in enumerate(writers):
            writer.number = number * 1000
            for _ in range(10):
                eq(writer.write(), resp.OK)
        faults.begin(word)
        for writer in writers:
            for _ in range(20):
                writer.send()
        for writer in writers:
            while writer.pending and writer.client.waiting(0.1 * SLOW):
                reply = writer.take()
                check(resp.is_error(reply, "MISCONF"), "%s: %s" % (policy, resp.show(reply)))
        held = [writer for writer in writers if writer.pending]
        check(held, "%s: nobody waits" % policy)
        eq(server.call("GET", writers[0].done[0]), VALUE + writers[0].done[0], "a read")
        faults.end()
        for writer in writers:
            while writer.pending:
                writer.take()
        check(sum(len(writer.done) for writer in writers) > 80, "%s: none was kept" % policy)
        held[0].until_accepted()
        faults.begin(word)
        for writer in writers:
            writer.send()
        for writer in writers:
            try:
                reply = writer.take()
                check(resp.is_error(reply, "MISCONF"), "%s: %s" % (policy, resp.show(reply)))
            except resp.ConnectionClosed:
                writer.pending.clear()
        check(any(writer.client.closed_by_server(1) for writer in writers), "nobody was closed")
        server.kill()
        faults.end()
        found = contents(server.restart())
        for writer in writers:
            for key in writer.done:
                eq(found.get((0, key)), (VALUE + key, -1), "%s: %s" % (policy, key))


@test()
def a_crash_while_always_owes(context):
    """Killed in the middle of the trouble: what was acknowledged is there."""
    context.sava_only("Redis ends itself in this case")
    for words in (("write",), ("half",), ("fsync",)):
        faults = Faults(context, *NO_SAVE, "--appendonly", "yes", "--appendfsync", "always")
        writer = Writer(context, faults.server)
        for _ in range(50):
            eq(writer.write(), resp.OK)
        faults.begin(*words)
        for _ in range(2):
            writer.until_silent()
        faults.server.kill()
        faults.end()
        faults.server.restart()
        found = contents(faults.server)
        for key in writer.done:
            eq(found.get((0, key)), (VALUE + key, -1), "%s: %s" % (words, key))


@test(timeout=60)
def a_slow_disk_under_everysec(context):
    """A sync takes four seconds, with and without a rewrite: nothing older than two is lost."""
    for command in ("PING", "BGREWRITEAOF"):
        faults = Faults(context, *NO_SAVE, "--appendonly", "yes", "--appendfsync", "everysec")
        server = faults.server
        writer = Writer(context, server)
        for _ in range(10):
            eq(writer.write(), resp.OK)
        faults.begin("slow")
        server.call(command)
        began, times = time.monotonic(), []
        while time.monotonic() - began < 3.2:
            reply = writer.write()
            if reply == resp.OK:
                times.append((time.monotonic(), writer.done[-1]))
            time.sleep(0.005)
        killed = time.monotonic()
        server.kill()
        faults.end()
        found = contents(server.restart())
        lost = [killed - when for when, key in times if (0, key) not in found]
        check(times, "no write was accepted")
        oldest = max(lost, default=0)
        check(
            oldest < 2.0,
            "%s: lost what was acknowledged %.2f s before the kill (%d of %d writes)"
            % (command, oldest, len(lost), len(times)),
        )


@test()
def a_vanished_log_directory(context):
    """Removed while the server runs: a rewrite makes a whole log again, now or when asked later."""
    context.sava_only()
    server = durable(context, *NO_SAVE, "--appendonly", "yes")
    writer = Writer(context, server)
    for _ in range(20):
        eq(writer.write(), resp.OK)
    shutil.rmtree(server.path("appendonlydir"))

    def rewritten():
        server.call("BGREWRITEAOF")
        return wait_idle(server)["aof_last_bgrewrite_status"] == "ok"

    until(rewritten, 20, "a rewrite that ends well")
    writer.until_accepted()
    writer.check_kept()


@test()
def a_log_directory_that_cannot_be(context):
    """A file stands where the log's directory should be: no start, and the file stays."""
    for binary in (context.options.server, context.options.stock):
        server = durable(
            context, *NO_SAVE, "--appendonly", "yes", started=False, binary=binary
        )
        with open(server.path("appendonlydir"), "w") as file:
            file.write("mine")
        output = durability.refused_start(server)
        check("appendonlydir" in output or "append only" in output.lower(), output[-500:])
        with open(server.path("appendonlydir")) as file:
            eq(file.read(), "mine")


@test()
def a_missing_directory(context):
    """Sava makes it; a file in the way, or a parent that is missing, is an error that names it."""
    context.sava_only("Redis wants it to be there")
    server = durable(context, started=False)
    place = server.dir
    shutil.rmtree(place)
    server.start()
    eq(server.call("SET", "a", "1"), resp.OK)
    eq(server.terminate(), 0)
    eq(sorted(contents(server.restart())), [(0, b"a")])
    server.terminate()
    for bad in (server.log_path, os.path.join(server.log_path, "below")):
        server.dir = bad
        output = durability.refused_start(server)
        check(bad in output, output[-500:])
    server.dir = place


@test()
def a_file_of_the_log_is_missing(context):
    """The manifest names a file that is not there: refused, with its name."""
    for binary in (context.options.server, context.options.stock):
        server = durable(context, *NO_SAVE, "--appendonly", "yes", binary=binary)
        server.call("SET", "a", "1")
        server.terminate()
        file = increments(server)[-1]
        os.remove(file.path)
        before = durability.digest_of_files(server.dir)
        output = durability.refused_start(server)
        check(file.name in output, output[-600:])
        eq(durability.digest_of_files(server.dir), before, "the files")


# ---- snapshots ----


def failed_save(server):
    """A BGSAVE that ends badly."""
    reply = server.call("BGSAVE")
    check(not resp.is_error(reply), "BGSAVE: " + resp.show(reply))
    until(
        lambda: persistence(server)["rdb_last_bgsave_status"] == "err", 20, "a save that ends badly"
    )
    wait_idle(server)


def snapshot_trouble(context, server, begin, end, by_rule=False):
    """A save fails: the last good file stays, writes stop (or not, as it is set), then go on with
    the next save, whether asked for or by rule."""
    server.call("SET", "a", "good")
    eq(server.call("SAVE"), resp.OK)
    good = open_dump(server)
    eq(server.call("CONFIG", "SET", "save", "3600 1000000"), resp.OK)
    eq(server.call("SET", "a", "newer"), resp.OK)
    begin()
    failed_save(server)
    if os.path.isfile(server.path("dump.rdb")):
        eq(open_dump(server), good, "the last good file")
    leftovers = [name for name in os.listdir(server.dir) if name.startswith("temp")]
    eq(leftovers, [], "temporary files")
    eq(server.call("SET", "a", "refused"), resp.Error(RDB_TEXT))
    eq(server.call("GET", "a"), b"newer")
    eq(server.call("PING"), resp.Error(RDB_TEXT), "PING tells of it, as in Redis")
    eq(server.call("CONFIG", "SET", "stop-writes-on-bgsave-error", "no"), resp.OK)
    eq(server.call("SET", "b", "accepted"), resp.OK)
    eq(server.call("CONFIG", "SET", "stop-writes-on-bgsave-error", "yes"), resp.OK)
    check(resp.is_error(server.call("SET", "b", "x"), "MISCONF"), "refused again")
    check(resp.is_error(server.call("SAVE")), "SAVE")
    end()
    if by_rule:
        eq(server.call("CONFIG", "SET", "save", "1 1"), resp.OK)
    else:
        durability.background_save(server)
    until(lambda: server.call("SET", "c", "1") == resp.OK, 30, "writes that are accepted again")
    eq(wait_idle(server)["rdb_last_bgsave_status"], "ok")
    if by_rule:
        until(lambda: persistence(server)["rdb_changes_since_last_save"] == "0", 20, "a save")
    else:
        durability.background_save(server)
    server.kill()
    server.restart()
    values = {key: value for (_, key), (value, _) in contents(server).items()}
    eq(values, {b"a": b"newer", b"b": b"accepted", b"c": b"1"})


def open_dump(server):
    with open(server.path("dump.rdb"), "rb") as file:
        return file.read()


@test()
def snapshots_on_a_failing_disk(context):
    context.sava_only("the C library's own buffers are out of reach")
    for word in ("write", "half", "fsync", "rename", "open"):
        faults = Faults(context, *NO_SAVE, *NO_LOG)
        snapshot_trouble(context, faults.server, lambda: faults.begin(word), faults.end)


@test()
def a_directory_in_the_way(context):
    for binary in (context.options.stock, context.options.server):
        server = durable(context, *NO_SAVE, *NO_LOG, binary=binary)
        place = server.path("dump.rdb")

        def begin():
            os.remove(place)
            os.makedirs(os.path.join(place, "full"))

        snapshot_trouble(
            context, server, begin, lambda: shutil.rmtree(place),
            by_rule=not server.stock,
        )


@test()
def a_snapshot_over_the_size_limit(context):
    context.sava_only("Redis's child dies of the signal")
    server = durable(context, *NO_SAVE, *NO_LOG)

    def begin():
        server.call("SET", "ballast", os.urandom(200_000))
        server.limit_files(100_000)

    def end():
        server.limit_files(None)
        server.call("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
        eq(server.call("DEL", "ballast"), 1)
        server.call("CONFIG", "SET", "stop-writes-on-bgsave-error", "yes")

    snapshot_trouble(context, server, begin, end)


@test()
def the_data_directory_is_gone(context):
    """Saves fail, the server goes on serving what it has, and can be ended."""
    for binary in (context.options.server, context.options.stock):
        server = durable(context, *NO_SAVE, *NO_LOG, binary=binary)
        server.call("SET", "a", "1")
        shutil.rmtree(server.dir)
        failed_save(server)
        check(resp.is_error(server.call("SAVE")), "SAVE")
        eq(server.call("GET", "a"), b"1")
        eq(server.call("SET", "a", "2"), resp.OK, "no save rules, no refusal")
        eq(server.terminate(), 0, "exit code")


# ---- a small filesystem ----


def small_disk(context, size):
    """A tmpfs of `size`, unmounted with the test."""
    place = context.temp_dir()
    options = ["-t", "tmpfs", "-o", "size=" + size, "tmpfs", place]
    if os.getuid() != 0 or subprocess.run(["mount"] + options, capture_output=True).returncode:
        raise Skip("mounting is not allowed here")
    context.at_end(subprocess.run, ["umount", "-l", place], False)
    return place


def occupy(place):
    """Fills the filesystem to the last byte."""
    with open(os.path.join(place, "ballast"), "wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass


def release(place):
    os.remove(os.path.join(place, "ballast"))


@test()
def a_full_filesystem_under_the_log(context):
    context.sava_only("Redis 7.0 has no WAITAOF")
    place = small_disk(context, "4m")
    server = durable(
        context, *NO_SAVE, "--appendonly", "yes", "--auto-aof-rewrite-percentage", "0",
        directory=place,
    )
    writer = Writer(context, server)
    trouble(context, server, writer, lambda: occupy(place), lambda: release(place))


@test()
def a_full_filesystem_under_always(context):
    context.sava_only("Redis ends itself in this case")
    place = small_disk(context, "4m")
    server = durable(
        context, *NO_SAVE, "--appendonly", "yes", "--appendfsync", "always",
        "--auto-aof-rewrite-percentage", "0", directory=place,
    )
    writer = Writer(context, server)
    for _ in range(20):
        eq(writer.write(), resp.OK)
    occupy(place)
    reply = writer.until_silent()
    check(reply is None or resp.is_error(reply, "MISCONF"), resp.show(reply))
    release(place)
    while writer.pending:
        writer.take()
    writer.until_accepted()
    writer.check_kept()


@test(timeout=90)
def a_kill_on_a_full_filesystem(context):
    """Pipelines of several clients fill the disk; killed then, nothing acknowledged is gone."""
    context.sava_only("Redis loses some")
    for policy in ("everysec", "no"):
        place = small_disk(context, "8m")
        server = durable(
            context, *NO_SAVE, "--appendonly", "yes", "--appendfsync", policy,
            "--auto-aof-rewrite-percentage", "0", directory=place,
        )
        address = server.address

        def fill(number):
            done = []
            with resp.Client(address) as client:
                for batch in range(1000):
                    keys = [b"key:%d:%d:%d" % (number, batch, n) for n in range(32)]
                    try:
                        replies = client.pipeline([("SET", key, key * 10) for key in keys])
                    except (resp.ConnectionClosed, TimeoutError):
                        return done
                    done += [key for key, reply in zip(keys, replies) if reply == resp.OK]
                    if any(resp.is_error(reply, "MISCONF") for reply in replies):
                        return done
            raise AssertionError("the disk is not full")

        acknowledged = sum(run_workers([lambda n=n: fill(n) for n in range(6)], 60), [])
        server.kill()
        subprocess.run(["mount", "-o", "remount,size=32m", place], check=True)
        found = contents(server.restart())
        lost = [key for key in acknowledged if found.get((0, key)) != (key * 10, -1)]
        check(acknowledged, "no write was accepted")
        eq(len(lost), 0, "%s: of %d acknowledged writes are gone" % (policy, len(acknowledged)))


@test()
def a_rewrite_on_a_full_filesystem(context):
    """The rewrite fails, the log as it was goes on, and nothing is left behind."""
    context.sava_only("Redis 7.0 has no WAITAOF")
    place = small_disk(context, "8m")
    server = durable(
        context, *NO_SAVE, "--appendonly", "yes", "--auto-aof-rewrite-percentage", "0",
        directory=place,
    )
    writer = Writer(context, server)
    with server.client() as client:
        client.pipeline([("SET", "big:%d" % n, os.urandom(100_000)) for n in range(45)])
    for _ in range(20):
        eq(writer.write(), resp.OK)
    settle(server)
    eq(server.call("BGREWRITEAOF"), resp.Status(
        b"Background append only file rewriting started"))
    fields = wait_idle(server)
    eq(fields["aof_last_bgrewrite_status"], "err")
    writer.until_accepted()
    named = {file.name for file in durability.log_files(server)} | {"appendonly.aof.manifest"}
    eq(set(os.listdir(server.path("appendonlydir"))) - named, set(), "files nobody names")
    with server.client() as client:
        client.pipeline([("DEL", "big:%d" % n) for n in range(44)])
    durability.rewrite(server)
    writer.check_kept()


@test()
def a_read_only_filesystem(context):
    """Mounted anew for reading only, and for writing again."""
    place = small_disk(context, "8m")

    def remount(mode):
        subprocess.run(["mount", "-o", "remount," + mode, place], check=True)

    server = durable(context, *NO_SAVE, *NO_LOG, directory=place)
    snapshot_trouble(context, server, lambda: remount("ro"), lambda: remount("rw"))
