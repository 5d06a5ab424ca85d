"""What the tests of durability share: servers whose data directory outlives them, the contents of a
server as a value, the files of an append-only log, and clients whose every write is accounted for.

The accounted clients (Ledger, run_client) work on keys of their own through one connection each. A
server carries out and logs the commands of a connection in order, so what a crash leaves of a
client's keys must be the state after some prefix of what it sent. `recovered` finds that prefix and
fails when there is none, or when it is shorter than what was promised.
"""

import collections
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time

import harness
import resp
from harness import SLOW, Failure, check, eq, until

CHECK_RDB = "redis-check-rdb"
CHECK_AOF = "redis-check-aof"
HOUR_MS = 3_600_000
GONE = (resp.ConnectionClosed, ConnectionError, TimeoutError, OSError)


class Durable(harness.Server):
    """A server on a data directory: start, kill, start again. No setting but those given here."""

    def __init__(self, binary, options=(), threads=2, directory=None, env=None, file_limit=None):
        super().__init__(binary, options, threads)
        self.home = self.dir
        self.dir = directory or tempfile.mkdtemp(prefix="sava-e2e-data-")
        self.env = env
        self.file_limit = file_limit

    def command_line(self, port):
        line = [self.binary] if self.stock else [self.binary, "serve"]
        line += ["--port", str(port), "--bind", "127.0.0.1", "--dir", self.dir]
        if not self.stock:
            line += ["--threads", str(self.threads), "--http-port", "0"]
        return line + ["--enable-debug-command", "yes"] + self.options

    def spawn(self, line):
        def prepare():
            harness._die_with_parent()
            if self.file_limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (self.file_limit, -1))

        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                line,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.home,
                env=dict(os.environ, **self.env) if self.env else None,
                preexec_fn=prepare,
            )

    def spawn_unready(self):
        """Starts without waiting for anything."""
        self.port = harness.free_port()
        self.spawn(self.command_line(self.port))
        return self

    def limit_files(self, size):
        """No file of the process may become longer than `size`; None: as long as it likes."""
        resource.prlimit(
            self.process.pid, resource.RLIMIT_FSIZE, (-1 if size is None else size, -1)
        )

    def kill(self):
        """SIGKILL, as a crash would end it."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        self.forget()

    def forget(self):
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def restart(self):
        """After a kill or an end: the same settings, the same files."""
        self.forget()
        return self.start()

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def remove_files(self):
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.rmtree(self.dir, ignore_errors=True)


def durable(context, *options, started=True, **more):
    """A Durable of the kind under test, or of `binary`, ended with the test."""
    server = Durable(
        more.pop("binary", None) or context.options.server,
        options,
        more.pop("threads", context.options.threads),
        **more
    )
    context.at_end(context._end, server)
    return server.start() if started else server


def refused_start(server):
    """Starts a server that is expected to refuse: its output. The exit code must be 1."""
    server.spawn_unready()
    until(
        lambda: server.process.poll() is not None or harness.READY in server.log(),
        60,
        "an end or a start",
    )
    log = server.log().decode("utf-8", "replace")
    if server.process.poll() is None:
        server.terminate()
        raise Failure("the server started on files it should refuse:\n" + log[-1500:])
    eq(server.process.returncode, 1, "exit code; " + log[-1500:])
    return log


# ---- contents ----


def databases(client):
    """The numbers of those that have keys."""
    fields = harness.parse_info(client.call("INFO", "keyspace")).get("Keyspace", {})
    return sorted(int(name[2:]) for name in fields)


def keys_of(client):
    """All keys of the selected database."""
    cursor, keys = b"0", set()
    while True:
        cursor, part = client.call("SCAN", cursor, "COUNT", "1000")
        keys.update(part)
        if cursor == b"0":
            return sorted(keys)


def contents(server, prefix=b""):
    """{(database, key): (value, expiry)}; a counter's value is {member: count}, what a collection's
    is, `collection` says."""
    found = {}
    with server.client(timeout=60 * SLOW) as client:
        for db in databases(client):
            eq(client.call("SELECT", db), resp.OK)
            keys = [key for key in keys_of(client) if key.startswith(prefix)]
            for at in range(0, len(keys), 500):
                part = keys[at : at + 500]
                asked = [c for key in part for c in (("GET", key), ("PEXPIRETIME", key))]
                replies = client.pipeline(asked)
                for key, value, expiry in zip(part, replies[::2], replies[1::2]):
                    if resp.is_error(value, "WRONGTYPE"):
                        value = collection(client, key)
                    if not resp.is_null(value):
                        found[db, key] = (value, expiry)
    return found


def collection(client, key):
    """A value that is no string: tuples where order counts, else dictionaries and sets."""
    kind = bytes(client.call("TYPE", key))
    if kind == b"list":
        return tuple(client.call("LRANGE", key, "0", "-1"))
    if kind == b"set":
        return frozenset(client.call("SMEMBERS", key))
    if kind in (b"hash", b"zset"):
        words = ("HGETALL", key) if kind == b"hash" else ("ZRANGE", key, "0", "-1", "WITHSCORES")
        flat = client.call(*words)
        return dict(zip(flat[::2], flat[1::2]))
    if kind == b"stream":
        return tuple((entry[0], *entry[1]) for entry in client.call("XRANGE", key, "-", "+"))
    if kind in SKETCHES:
        return SKETCHES[kind](client, key)
    return counts(client, key)


# Filters and sketches are asked for the few items that the clients below give them: few enough for
# every answer to be exact.
ITEMS = tuple(b"item:%d" % i for i in range(12))


def listed(command):
    def ask(client, key):
        answers = client.call(command, key, *ITEMS)
        return frozenset(item for item, answer in zip(ITEMS, answers) if answer == 1)

    return ask


def counted(command):
    def ask(client, key):
        answers = client.call(command, key, *ITEMS)
        return {item: answer for item, answer in zip(ITEMS, answers) if answer != 0}

    return ask


def fingerprints(client, key):
    found = {item: client.call("SIMHASH.GET", key, item) for item in ITEMS}
    return {item: bytes(value) for item, value in found.items() if not resp.is_null(value)}


def frontier(client, key):
    """(URLs queued, {leased URL: when its lease ends}, leases given so far)"""
    _, entries = client.call("FR.EXPORT", key, "0", "COUNT", "100000")
    leases = {entry[0]: entry[2] for entry in entries if entry[1] == b"leased"}
    stats = client.call("FR.STATS", key)
    served = dict(zip(stats[::2], stats[1::2]))[b"served"]
    return (tuple(client.call("FR.PEEK", key, "h")), tuple(sorted(leases.items())), served)


SKETCHES = {
    b"MBbloom--": listed("BF.MEXISTS"),
    b"MBbloomCF": listed("CF.MEXISTS"),
    b"CMSk-TYPE": counted("CMS.QUERY"),
    b"TopK-TYPE": counted("TOPK.COUNT"),
    b"simhash": fingerprints,
    b"frontier": frontier,
}


def counts(client, key):
    flat = client.call("AFC.TOP", key, "1000000000", "WITHCOUNTS")
    check(type(flat) is list, "AFC.TOP: " + resp.show(flat))
    return dict(zip(flat[::2], flat[1::2]))


def differences(expected, actual, limit=8):
    """Both are what `contents` returns."""
    lines = []
    for name in sorted(set(expected) | set(actual)):
        if expected.get(name) != actual.get(name):
            lines.append(
                "%s: expected %s, found %s"
                % (name, shown(expected.get(name)), shown(actual.get(name)))
            )
    more = len(lines) - limit
    return "\n".join(lines[:limit] + (["… and %d more" % more] if more > 0 else []))


def shown(value):
    text = repr(value)
    return text if len(text) <= 120 else text[:120] + "… (%d characters)" % len(text)


def same_contents(expected, actual, what):
    if expected != actual:
        raise Failure("%s:\n%s" % (what, differences(expected, actual)))


# ---- saving ----


def persistence(server):
    return server.info("persistence")["Persistence"]


def idle(server):
    fields = persistence(server)
    names = ("rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled")
    return all(fields[name] == "0" for name in names)


def wait_idle(server, seconds=60):
    until(lambda: idle(server), seconds, "the end of saving")
    return persistence(server)


def background_save(server):
    """A BGSAVE of its own, from beginning to end."""
    wait_idle(server)
    before = int(persistence(server)["rdb_saves"])
    reply = server.call("BGSAVE")
    check(reply == resp.Status(b"Background saving started"), "BGSAVE: " + resp.show(reply))
    until(lambda: int(persistence(server)["rdb_saves"]) > before, 60, "the end of BGSAVE")
    fields = wait_idle(server)
    eq(fields["rdb_last_bgsave_status"], "ok", "rdb_last_bgsave_status")


def rewrite(server):
    """A BGREWRITEAOF of its own, from beginning to end."""
    wait_idle(server)
    reply = server.call("BGREWRITEAOF")
    check(
        isinstance(reply, resp.Status) and reply.startswith(b"Background append only file"),
        "BGREWRITEAOF: " + resp.show(reply),
    )
    fields = wait_idle(server)
    eq(fields["aof_last_bgrewrite_status"], "ok", "aof_last_bgrewrite_status")


# ---- the files of the log ----

LogFile = collections.namedtuple("LogFile", "name sequence kind path")


def log_files(server, folder="appendonlydir", name="appendonly.aof"):
    """What the manifest names, in its order."""
    files = []
    with open(server.path(folder, name + ".manifest")) as manifest:
        for line in manifest:
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            fields = dict(zip(words[::2], words[1::2]))
            path = server.path(folder, fields["file"])
            files.append(LogFile(fields["file"], int(fields["seq"]), fields["type"], path))
    return files


def increments(server):
    return [file for file in log_files(server) if file.kind == "i"]


def log_base(server):
    return [file for file in log_files(server) if file.kind == "b"][0]


def run_tool(*command):
    """(exit code, all that was printed)"""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120 * SLOW,
    )
    return done.returncode, done.stdout.decode("utf-8", "replace")


def passes(*command):
    """Runs a checker that must be content; what it printed."""
    code, out = run_tool(*command)
    check(code == 0, "%s: exit code %s\n%s" % (" ".join(command), code, out[-1500:]))
    return out


def digest_of_files(folder):
    """{path: bytes} of everything below, for claims that nothing was touched."""
    found = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


# ---- clients whose writes are accounted for ----

ACCOUNTS = [b"account:%d" % i for i in range(10)]
START_BALANCE = 1000
LIMIT = 1_000_000


class Ledger:
    """What a client's keys hold, and what it does next. An operation is a tuple of commands: one,
    or those of a transaction, of which a crash must leave all or nothing."""

    def __init__(self, number, native, bucket_time):
        self.prefix = b"w%d:" % number
        self.native = native
        self.bucket_time = bucket_time
        self.state = {}
        self.db = 0

    def copy(self):
        other = Ledger(0, self.native, self.bucket_time)
        other.prefix = self.prefix
        other.state = {
            name: (dict(value), expiry) if type(value) is dict else (value, expiry)
            for name, (value, expiry) in self.state.items()
        }
        return other

    # What it does next.

    def next(self, rng):
        kinds = [self.counter, self.counter, self.plain, self.plain, self.timed, self.several]
        kinds += [self.editing, self.removal, self.renaming, self.copying, self.together]
        kinds += [self.transfer, self.passing, self.queue, self.fields, self.members, self.scores]
        kinds += [self.entries]
        if self.native:
            kinds += [self.association, self.association, self.limit, self.filter, self.sketch]
            kinds += [self.document, self.crawl, self.crawl]
        operation = rng.choice(kinds)(rng)
        self.apply(operation)
        return operation

    def key(self, kind, rng, count=8):
        return self.prefix + b"%s%d" % (kind, rng.randrange(count))

    def value(self, rng):
        if rng.random() < 0.5:
            return b"%d" % rng.randrange(1 << 40)
        large = rng.random() < 0.04
        return rng.randbytes(rng.choice((3000, 20000) if large else (0, 1, 5, 20, 44, 45, 300)))

    def existing(self, rng):
        names = [key for db, key in self.state if db == 0 and key[len(self.prefix)] in b"kt"]
        return rng.choice(sorted(names)) if names else None

    def counter(self, rng):
        return ((b"INCR", self.key(b"c", rng)),)

    def plain(self, rng):
        return ((b"SET", self.key(b"k", rng), self.value(rng)),)

    def timed(self, rng):
        when = b"%d" % (int(time.time() * 1000) + HOUR_MS + rng.randrange(1000000))
        key = self.key(b"t", rng)
        if (0, key) in self.state and rng.random() < 0.4:
            return ((b"PEXPIREAT", key, when),) if rng.random() < 0.5 else ((b"PERSIST", key),)
        return ((b"SET", key, self.value(rng), b"PXAT", when),)

    def passing(self, rng):
        """Gone soon; not part of the state."""
        key = b"short:" + self.key(b"s", rng)
        return ((b"SET", key, b"x", b"PX", b"%d" % rng.choice((1, 40))),)

    def several(self, rng):
        words = [b"MSET"]
        for number in rng.sample(range(8), 3):
            words += [self.prefix + b"k%d" % number, self.value(rng)]
        return (tuple(words),)

    def editing(self, rng):
        key = self.key(b"k", rng)
        if len(self.state.get((0, key), (b"",))[0]) > 30000:
            return ((b"GETDEL", key),)
        if rng.random() < 0.5:
            return ((b"APPEND", key, b"tail%d" % rng.randrange(100)),)
        return ((b"SETRANGE", key, b"%d" % rng.randrange(50), b"middle"),)

    def removal(self, rng):
        return ((b"DEL", self.key(b"k", rng), self.key(b"t", rng)),)

    def renaming(self, rng):
        source = self.existing(rng)
        if source is None:
            return self.counter(rng)
        return ((b"RENAME", source, self.key(b"k", rng)),)

    def copying(self, rng):
        source = self.existing(rng)
        if source is None:
            return self.counter(rng)
        return ((b"COPY", source, self.key(b"k", rng), b"DB", b"1", b"REPLACE"),)

    def together(self, rng):
        value = self.value(rng)
        inside = [(b"SET", self.prefix + b"left", value), (b"INCR", self.prefix + b"both")]
        if rng.random() < 0.5:
            right = (b"SET", self.prefix + b"right", value)
            inside += [(b"SELECT", b"1"), right, (b"SELECT", b"0")]
        else:
            inside += [(b"SET", self.prefix + b"right", value)]
        if self.native:
            inside += [(b"AFC.ADD", self.prefix + b"abc", b"together")]
        return tuple([(b"MULTI",)] + inside + [(b"EXEC",)])

    def transfer(self, rng):
        source, target = rng.sample(ACCOUNTS, 2)
        amount = b"%d" % rng.randint(1, 20)
        return ((b"MULTI",), (b"DECRBY", source, amount), (b"INCRBY", target, amount), (b"EXEC",))

    def queue(self, rng):
        key = self.key(b"l", rng, 3)
        kind = rng.randrange(5)
        if kind == 0:
            return ((rng.choice((b"LPOP", b"RPOP")), key),)
        if kind == 1:
            return ((b"LMOVE", key, self.key(b"l", rng, 3), b"LEFT", b"RIGHT"),)
        values = [self.value(rng)[:100] for _ in range(rng.choice((1, 1, 3)))]
        return ((rng.choice((b"RPUSH", b"LPUSH")), key, *values),)

    def fields(self, rng):
        key, field = self.key(b"h", rng, 3), b"f%d" % rng.randrange(200)
        if rng.random() < 0.3:
            return ((b"HDEL", key, field),)
        return ((b"HSET", key, field, self.value(rng)[:100], b"n", b"%d" % rng.randrange(100)),)

    def members(self, rng):
        key, member = self.key(b"e", rng, 3), b"%d" % rng.randrange(1000)
        if rng.random() < 0.3:
            return ((b"SREM", key, member),)
        return ((b"SADD", key, member, rng.choice((b"word", member))),)

    def scores(self, rng):
        key, member = self.key(b"z", rng, 3), b"m%d" % rng.randrange(300)
        if rng.random() < 0.3:
            return ((b"ZREM", key, member),)
        return ((b"ZINCRBY", key, b"%d" % rng.randrange(-5, 9), member),)

    def entries(self, rng):
        key = self.key(b"x", rng, 3)
        value = self.state.get((0, key), ((),))[0]
        last = int(value[-1][0].split(b"-")[0]) if value else 0
        words = (b"%d-0" % (last + 1), b"field", self.value(rng)[:100])
        return ((b"XADD", key, b"MAXLEN", b"40", *words),)

    def association(self, rng):
        members = [b"member:%d" % int(rng.random() ** 2 * 400) for _ in range(rng.choice((1, 3)))]
        return ((b"AFC.ADD", self.key(b"a", rng, 3), *members),)

    def limit(self, rng):
        key = self.key(b"rl", rng, 3)
        now = b"%d" % self.bucket_time
        return ((b"RL.TAKE", key, b"WINDOW", b"%d" % LIMIT, b"%d" % (4 * HOUR_MS), b"NOW", now),)

    def filter(self, rng):
        item = rng.choice(ITEMS)
        if rng.random() < 0.4:
            return ((b"BF.ADD", self.key(b"bf", rng, 3), item),)
        key = self.key(b"cf", rng, 3)
        if item in self.state.get((0, key), ((),))[0]:
            return ((b"CF.DEL", key, item),)
        return ((b"CF.ADD", key, item),)

    def sketch(self, rng):
        name, words, add = rng.choice((
            (b"cm", (b"CMS.INITBYDIM", b"5000", b"5"), b"CMS.INCRBY"),
            (b"top", (b"TOPK.RESERVE", b"20"), b"TOPK.INCRBY"),
        ))
        key = self.key(b"s" + name, rng, 2)
        if (0, key) not in self.state:
            return ((words[0], key, *words[1:]),)
        return ((add, key, rng.choice(ITEMS), b"%d" % rng.randint(1, 9)),)

    def document(self, rng):
        key, item = self.key(b"sim", rng, 2), rng.choice(ITEMS)
        if rng.random() < 0.3:
            return ((b"SIMHASH.REM", key, item),)
        return ((b"SIMHASH.ADD", key, item, b"HASH", b"%016x" % rng.getrandbits(64)),)

    def crawl(self, rng):
        """Of one host; every lease ends at a time of its own."""
        key, now = self.key(b"fr", rng, 2), b"%d" % self.bucket_time
        queued, leases, served = self.state.get((0, key), (((), (), 0),))[0]
        kind = rng.randrange(4)
        if kind == 0 and queued:
            lease = b"%d" % (4 * HOUR_MS + served)
            return ((b"FR.NEXT", key, b"1", b"LEASE", lease, b"NOW", now),)
        if kind == 1 and leases:
            end = rng.choice(leases)[1]
            number = end - self.bucket_time - 4 * HOUR_MS + 1
            return ((b"FR.ACK", key, b"%d" % number, b"NOW", now),)
        urls = [b"http://h/%d" % rng.randrange(300) for _ in range(rng.choice((1, 5)))]
        return ((b"FR.ADD", key, b"NOW", now, *urls),)

    # What that makes of the keys.

    def apply(self, operation):
        self.db = 0
        for command in operation:
            self.run(*command)

    def run(self, name, *words):
        if name in (b"MULTI", b"EXEC"):
            return
        if name == b"SELECT":
            self.db = int(words[0])
            return
        if words[0].startswith((b"account:", b"short:")):
            return
        getattr(self, "do_" + name.decode().lower().replace(".", "_"))(*words)

    def get(self, key, absent=b""):
        return self.state.get((self.db, key), (absent, -1))

    def put(self, key, value, expiry=-1):
        self.state[self.db, key] = (value, expiry)

    def do_incr(self, key):
        value, expiry = self.get(key, b"0")
        self.put(key, b"%d" % (int(value) + 1), expiry)

    def do_set(self, key, value, option=None, when=b"-1"):
        self.put(key, value, int(when))

    def do_mset(self, *words):
        for key, value in zip(words[::2], words[1::2]):
            self.put(key, value)

    def do_pexpireat(self, key, when):
        if (self.db, key) in self.state:
            self.put(key, self.get(key)[0], int(when))

    def do_persist(self, key):
        if (self.db, key) in self.state:
            self.put(key, self.get(key)[0])

    def do_append(self, key, tail):
        value, expiry = self.get(key)
        self.put(key, value + tail, expiry)

    def do_setrange(self, key, offset, part):
        value, expiry = self.get(key)
        at = int(offset)
        value = value.ljust(at, b"\0")
        self.put(key, value[:at] + part + value[at + len(part) :], expiry)

    def do_del(self, *keys):
        for key in keys:
            self.state.pop((self.db, key), None)

    do_getdel = do_del

    def do_rename(self, source, target):
        value = self.state.pop((self.db, source))
        self.state[self.db, target] = value

    def do_copy(self, source, target, _db, db, _replace):
        self.state[int(db), target] = self.state[self.db, source]

    def keep(self, key, value):
        """An empty collection is none."""
        if value:
            self.put(key, value, self.get(key)[1])
        else:
            self.state.pop((self.db, key), None)

    def do_rpush(self, key, *values):
        self.keep(key, self.get(key, ())[0] + values)

    def do_lpush(self, key, *values):
        self.keep(key, values[::-1] + self.get(key, ())[0])

    def do_lpop(self, key):
        self.keep(key, self.get(key, ())[0][1:])

    def do_rpop(self, key):
        self.keep(key, self.get(key, ())[0][:-1])

    def do_lmove(self, source, target, _from, _to):
        values = self.get(source, ())[0]
        if values:
            self.keep(source, values[1:])
            self.do_rpush(target, values[0])

    def do_hset(self, key, *words):
        self.keep(key, {**self.get(key, {})[0], **dict(zip(words[::2], words[1::2]))})

    def do_hdel(self, key, field):
        self.keep(key, {name: v for name, v in self.get(key, {})[0].items() if name != field})

    do_zrem = do_hdel

    def do_sadd(self, key, *members):
        self.keep(key, self.get(key, frozenset())[0] | set(members))

    def do_srem(self, key, member):
        self.keep(key, self.get(key, frozenset())[0] - {member})

    def do_zincrby(self, key, amount, member):
        value = dict(self.get(key, {})[0])
        value[member] = b"%d" % (int(value.get(member, b"0")) + int(amount))
        self.keep(key, value)

    def do_xadd(self, key, _maxlen, most, *words):
        self.keep(key, (self.get(key, ())[0] + (words,))[-int(most) :])

    def do_bf_add(self, key, item):
        self.put(key, self.get(key, frozenset())[0] | {item})

    do_cf_add = do_bf_add

    def do_cf_del(self, key, item):
        self.put(key, self.get(key)[0] - {item})

    def do_cms_initbydim(self, key, *_words):
        self.put(key, {})

    do_topk_reserve = do_cms_initbydim

    def do_cms_incrby(self, key, item, amount):
        value = dict(self.get(key)[0])
        value[item] = value.get(item, 0) + int(amount)
        self.put(key, value)

    do_topk_incrby = do_cms_incrby

    def do_simhash_add(self, key, item, _hash, fingerprint):
        self.keep(key, {**self.get(key, {})[0], item: fingerprint})

    def do_simhash_rem(self, key, item):
        self.do_hdel(key, item)

    def do_fr_add(self, key, _now, _time, *urls):
        queued, leases, served = self.get(key, ((), (), 0))[0]
        for url in urls:
            if url not in queued and url not in dict(leases):
                queued += (url,)
        self.put(key, (queued, leases, served))

    def do_fr_next(self, key, _one, _lease, lease, _now, now):
        queued, leases, served = self.get(key)[0]
        leases += ((queued[0], int(now) + int(lease)),)
        self.put(key, (queued[1:], tuple(sorted(leases)), served + 1))

    def do_fr_ack(self, key, number, _now, now):
        queued, leases, served = self.get(key)[0]
        end = int(now) + 4 * HOUR_MS + int(number) - 1
        self.put(key, (queued, tuple(lease for lease in leases if lease[1] != end), served))

    def do_afc_add(self, key, *members):
        value = dict(self.get(key, {})[0])
        for member in members:
            value[member] = value.get(member, 0) + 1
        self.put(key, value)

    def do_rl_take(self, key, *_words):
        value = self.get(key, None)[0]
        left = LIMIT if value is None else int(value.split()[1])
        self.put(key, b"%d %d" % (self.bucket_time, left - 1), None)

    def matches(self, found):
        return self.state == found


def own_part(found, ledger):
    """What of `contents` belongs to the ledger; a bucket's expiry is the server's affair."""
    part = {}
    for (db, key), (value, expiry) in found.items():
        if key.startswith(ledger.prefix):
            bucket = key.startswith(ledger.prefix + b"rl")
            part[db, key] = (value, None if bucket else expiry)
    return part


def run_client(address, ledger, rng, depths=(1, 1, 4, 16, 40), until_time=None):
    """Works until the connection breaks (or the time has come): [(time of the reply or None,
    operation)]. An error reply raises."""
    log = []
    try:
        with resp.Client(address, 60 * SLOW) as client:
            while until_time is None or time.time() < until_time:
                batch = [ledger.next(rng) for _ in range(rng.choice(depths))]
                first = len(log)
                log += [(None, operation) for operation in batch]
                client.raw(b"".join(resp.encode(*c) for operation in batch for c in operation))
                for index, operation in enumerate(batch, first):
                    for command in operation:
                        expect_good(command, client.reply())
                    log[index] = (time.time(), operation)
    except GONE:
        pass
    return log


def expect_good(command, reply):
    bad = resp.is_error(reply) or (command[0] == b"EXEC" and type(reply) is not list)
    if not bad and type(reply) is list:
        bad = any(resp.is_error(part) for part in reply)
    if bad:
        raise Failure("%s answered %s" % (shown(command), resp.show(reply)))


def recovered(ledger, log, found, promised, what):
    """The ledger as the files have it. `promised`: how many operations must be there."""
    found = own_part(found, ledger)
    state = ledger.copy()
    for _, operation in log[:promised]:
        state.apply(operation)
    least = state.copy()
    for index in range(promised, len(log) + 1):
        if state.matches(found):
            return state, idle_until(state, log, index)
        if index < len(log):
            state.apply(log[index][1])
    raise Failure(
        "%s: the keys %s* are in no state they may be in (%d operations sent, %d promised); "
        "against the earliest one:\n%s\nagainst the last one:\n%s"
        % (
            what,
            ledger.prefix.decode(),
            len(log),
            promised,
            differences(least.state, found),
            differences(state.state, found),
        )
    )


def idle_until(state, log, index):
    """How far the log goes on without touching the keys."""
    after = state.copy()
    while index < len(log):
        after.apply(log[index][1])
        if after.state != state.state:
            break
        index += 1
    return index


def acknowledged(log, before=None):
    """How many operations were answered, or answered before a point in time."""
    count = 0
    for when, _ in log:
        if when is None or (before is not None and when >= before):
            break
        count += 1
    return count


def open_accounts(server):
    words = [word for name in ACCOUNTS for word in (name, START_BALANCE)]
    eq(server.call("MSET", *words), resp.OK)


def check_accounts(found, what):
    total = sum(int(found[0, name][0]) for name in ACCOUNTS)
    eq(total, len(ACCOUNTS) * START_BALANCE, what + ": the accounts' total")
