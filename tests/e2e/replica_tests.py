"""A server that follows a master: what it takes over, what it keeps through broken links and crashes,
and what it does not do by itself.
"""

import os
import random
import socket
import threading
import time

import resp
import stream
from differential import make_payloads, wire
from durability import durable
from harness import SLOW, Skip, check, eq, free_port, test, until

NO_SAVE = ("--save", "")
LOG = ("--appendonly", "yes")
FAST = ("--repl-diskless-sync-delay", "0")


class Proxy:
    """Between a replica and its master. Passes `limit` bytes of what the master sends, then cuts the
    connection; the next one gets the next limit. None: everything passes."""

    def __init__(self, context, target, limits=()):
        self.target = target
        self.limits = list(limits)
        self.cuts = 0
        self.links = []
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(16)
        self.port = self.listener.getsockname()[1]
        self.over = False
        context.at_end(self.close)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self.over:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.target)
            except OSError:
                return
            self.links += [client, server]
            limit = self.limits.pop(0) if self.limits else None
            threading.Thread(target=self._pass, args=(client, server, None), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, limit), daemon=True).start()

    def _pass(self, source, sink, limit):
        try:
            while True:
                size = 65536 if limit is None else min(65536, limit)
                if size == 0:
                    self.cuts += 1
                    break
                data = source.recv(size)
                if not data:
                    break
                sink.sendall(data)
                if limit is not None:
                    limit -= len(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        for link in self.links:
            try:
                link.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.links.clear()

    def close(self):
        self.over = True
        self.listener.close()
        self.cut()


def said(answer):
    return bytes(answer).decode() if isinstance(answer, bytes) else str(answer)


def field(server, name):
    return server.info_field(name, "replication")


def linked(replica):
    return field(replica, "master_link_status") == "up"


def follow(replica, port, host="127.0.0.1"):
    eq(replica.call("REPLICAOF", host, str(port)), resp.OK)


def in_step(replica, master, seconds=30):
    """Waits until the replica has all that the master has, and compares."""

    def same():
        return linked(replica) and field(replica, "slave_repl_offset") == field(
            master, "master_repl_offset"
        )

    # A key that expires between the two digests is no difference, nor is one whose time is over and
    # that the master has not removed yet: SCAN has it removed.
    for _ in range(20):
        until(same, seconds, "the replica to have what the master has")
        offset = field(master, "master_repl_offset")
        ours, theirs = replica.call("DEBUG", "DIGEST"), master.call("DEBUG", "DIGEST")
        if ours == theirs:
            return
        for db in range(16):
            with master.client(db=db) as client:
                client.call("SCAN", "0", "COUNT", "1000000")
        if field(master, "master_repl_offset") == offset:
            break
    eq(ours, theirs, "digests")


def start_again(server):
    """On the port that it had."""
    server.forget()
    server.spawn(server.command_line(server.port))
    until(server.alive, 20, "the server to come again")


def in_offset(replica, master):
    until(lambda: linked(replica) and field(replica, "slave_repl_offset")
          == field(master, "master_repl_offset"), 30, "the same offset")


def fill(master, count=3000):
    """Keys of all types in several databases, a few of them large."""
    master.call("SELECT", "0")
    master.call("DEBUG", "POPULATE", str(count), "key", "40")
    commands = []
    for i in range(60):
        commands += [
            ("RPUSH", "list%d" % i, *["e%d" % n for n in range(i * 9 + 1)]),
            ("SADD", "set%d" % i, *["m%d" % n for n in range(i * 9 + 1)]),
            ("SADD", "ints%d" % i, *[str(n) for n in range(i * 9 + 1)]),
            ("HSET", "hash%d" % i, *["f%d" % n for n in range(2 * i + 2)]),
            ("ZADD", "zset%d" % i, *[w for n in range(i * 5 + 1) for w in (str(n), "z%d" % n)]),
            ("XADD", "stream%d" % (i % 5), "%d-1" % (i + 1), "f", "v" * i),
            ("SET", "times%d" % i, "v", "PXAT", str(4102444800000 + i)),
            ("PFADD", "hll%d" % (i % 3), "e%d" % i),
        ]
    commands += [("XGROUP", "CREATE", "stream1", "group", "0")]
    commands += [("XREADGROUP", "GROUP", "group", "c", "COUNT", "2", "STREAMS", "stream1", ">")]
    commands += [("SET", "large", "x" * 1500000), ("SETRANGE", "bits", "70000", "b")]
    with master.client() as client:
        client.pipeline(commands)
    with master.client(db=3) as client:
        client.pipeline(commands[:100])


def told_by_stock(args):
    """Redis 7.0.15 keeps from its replicas the key that BITFIELD makes when OVERFLOW FAIL stops its SET."""
    return bytes(args[0]).upper() != b"BITFIELD" or b"FAIL" not in [bytes(a).upper() for a in args]


def play(context, master, payloads, seed, length=1500):
    """A random stream of commands, answers not looked at."""
    items = stream.Stream(random.Random(seed), payloads).make(length)
    items = [item for item in items if len(item) != 2 or told_by_stock(item[1])]
    clients = [master.client(), master.client()]
    try:
        for start in range(0, len(items), 100):
            batch = [item for item in items[start : start + 100] if len(item) == 2]
            for connection in (0, 1):
                commands = [args for number, args in batch if number == connection]
                if commands:
                    clients[connection].pipeline(commands)
    finally:
        for client in clients:
            client.close()


def master_with_data(context, *options, count=3000):
    master = context.start_stock(*FAST, *options)
    fill(master, count)
    return master


# ---- taking over a data set, and following ----


@test(timeout=120)
def a_replica_of_a_stock_master(context):
    """A data set with all stock types by either form of transfer, then random streams."""
    context.sava_only()
    for options in (("--repl-diskless-sync", "yes"), ("--repl-diskless-sync", "no")):
        master = master_with_data(context, *options)
        payloads = make_payloads(master)
        replica = durable(context, *NO_SAVE, *LOG)
        replica.call("SET", "own", "goes")
        follow(replica, master.port)
        until(lambda: linked(replica), 30, "the link")
        in_step(replica, master)
        for round_number in range(4 if not context.options.long else 40):
            seed = "%s:%d" % (context.options.seed, round_number)
            play(context, master, payloads, seed)
            in_step(replica, master)
        eq(replica.info_field("unexpected_error_replies"), "0", "errors of the master's commands")
        digest = replica.call("DEBUG", "DIGEST")
        eq(replica.terminate(), 0)
        replica.restart()
        eq(replica.call("DEBUG", "DIGEST"), digest, "the log has it")


@test(timeout=60)
def scripts_reach_replicas(context):
    """Functions come with the data set and with the stream; redis.set_repl chooses who gets a change."""
    context.sava_only()
    master = durable(context, *FAST, *LOG, *NO_SAVE)
    library = (
        "#!lua name=%s\nredis.register_function('%s_set', function(k, a) return "
        "redis.call('SET', k[1], a[1]) end)\nredis.register_function{function_name='%s_get', "
        "callback=function(k) return redis.call('GET', k[1]) end, flags={'no-writes'}}"
    )

    def load(name):
        eq(said(master.call("FUNCTION", "LOAD", library % (name, name, name))), name)

    load("copied")
    replica = context.start(*NO_SAVE)
    own = library % ("own", "own", "own")
    replica.call("FUNCTION", "LOAD", own)
    eq(replica.call("FCALL", "own_set", "1", "k", "own"), resp.OK)
    follow(replica, master.port)
    until(lambda: linked(replica), 30, "the link")
    load("sent")
    eq(master.call("FCALL", "sent_set", "1", "k", "v"), resp.OK)
    in_step(replica, master)
    for name in ("copied", "sent"):
        eq(replica.call("FCALL_RO", name + "_get", "1", "k"), b"v", name)
        eq(said(replica.call("FCALL", name + "_set", "1", "k", "w")).split()[0], "READONLY")
    eq(said(replica.call("FCALL", "own_get", "1", "k")), "ERR Function not found")
    eq(said(replica.call("FUNCTION", "LOAD", own)).split()[0], "READONLY")
    for words in (("MULTI",), ("SET", "in", "1"), ("FUNCTION", "DELETE", "sent"),
                  ("EVAL", "return redis.call('INCR', KEYS[1])", "1", "in"), ("EXEC",)):
        master.call(*words)
    in_step(replica, master)
    eq(said(replica.call("FCALL_RO", "sent_get", "1", "k")), "ERR Function not found")
    eq(replica.call("GET", "in"), b"2")
    names = ("ALL", "AOF", "REPLICA", "NONE")
    for name in names:
        master.call("EVAL", "redis.set_repl(redis.REPL_%s) redis.call('SET', KEYS[1], '1') "
                    "redis.call('PUBLISH', 'c', KEYS[1])" % name, "1", name)
    written = int(field(master, "master_repl_offset"))
    until(lambda: int(field(replica, "slave_repl_offset")) >= written, 30, "the rest")
    eq(replica.call("MGET", *names), [b"1", resp.NIL, b"1", resp.NIL], "what a replica has")
    master.call("FUNCTION", "FLUSH")
    until(lambda: replica.call("FUNCTION", "LIST") == [], 30, "no functions")
    master.terminate()
    master.restart()
    eq(master.call("MGET", *names), [b"1", b"1", resp.NIL, resp.NIL], "what the log has")
    eq(master.call("FUNCTION", "LIST"), [])


@test()
def what_a_replica_shows(context):
    context.sava_only()
    master = master_with_data(context, count=100)
    replica = context.start()
    eq(replica.call("ROLE")[0], b"master")
    follow(replica, master.port)
    until(lambda: linked(replica), 30, "the link")
    in_step(replica, master)
    info = replica.info("replication")["Replication"]
    for name, value in (
        ("role", "slave"), ("master_host", "127.0.0.1"), ("master_port", str(master.port)),
        ("master_sync_in_progress", "0"), ("slave_priority", "100"), ("slave_read_only", "1"),
        ("replica_announced", "1"), ("master_replid", field(master, "master_replid")),
    ):
        eq(info.get(name), value, name)
    role = replica.call("ROLE")
    eq(role[:4], [b"slave", b"127.0.0.1", master.port, b"connected"])
    offset = int(field(replica, "slave_repl_offset"))
    check(role[4] <= offset, "the offset of ROLE")
    own = field(master, "slave0")
    check("port=%d," % replica.port in own and "state=online" in own, "the master's view: " + own)
    line = [one for one in replica.call("CLIENT", "LIST").splitlines() if b"flags=M" in one]
    eq(len(line), 1, "the master in CLIENT LIST")
    eq(len(replica.call("CLIENT", "LIST", "TYPE", "master").splitlines()), 1)
    # The link is killed and comes back with what it has.
    eq(replica.call("CLIENT", "KILL", "TYPE", "normal"), 0)
    eq(replica.call("CLIENT", "KILL", "TYPE", "master"), 1)
    until(lambda: int(master.info_field("sync_partial_ok")) >= 1, 30, "a partial resync")
    master.call("SET", "later", "1")
    in_step(replica, master)
    eq(replica.call("REPLICAOF", "127.0.0.1", str(master.port)),
       resp.Status(b"OK Already connected to specified master"))
    eq(said(replica.call("REPLICAOF", "x", "70000")), "ERR Invalid master port")


@test()
def only_readers_are_served(context):
    """READONLY, MASTERDOWN, writable replicas, and EXEC."""
    context.sava_only()
    master = master_with_data(context, count=100)
    replica = context.start()
    blocked = context.client(replica)
    blocked.send("BLPOP", "nothing", "0")
    until(lambda: replica.info_field("blocked_clients") == "1", 10, "a client that waits")
    follow(replica, master.port)
    check(said(blocked.reply()).startswith("UNBLOCKED"), "who waited is told")
    until(lambda: linked(replica), 30, "the link")
    client = context.client(replica)
    read_only = "READONLY You can't write against a read only replica."
    for command in (("SET", "a", "1"), ("BLPOP", "list1", "0"), ("FLUSHALL",), ("DEL", "list1")):
        eq(said(client.call(*command)), read_only, command[0])
    client.call("MULTI")
    client.call("GET", "a")
    eq(said(client.call("SET", "a", "1")), read_only)
    check(said(client.call("EXEC")).startswith("EXECABORT"), "EXEC")
    eq(client.call("GET", "large"), b"x" * 1500000)
    eq(client.call("PUBLISH", "c", "m"), 0)
    in_step(replica, master)
    with replica.configured(replica_read_only="no"):
        eq(client.call("SET", "mine", "1"), resp.OK)
        master.call("SET", "theirs", "1")
        until(lambda: client.call("GET", "theirs") == b"1", 10, "what the master writes")
        eq(client.call("DEL", "mine"), 1)
    in_step(replica, master)
    with replica.configured(replica_serve_stale_data="no"):
        eq(client.call("GET", "theirs"), b"1", "while the link stands")
        master.terminate()
        until(lambda: not linked(replica), 10, "the link's end")
        check(said(client.call("GET", "theirs")).startswith("MASTERDOWN Link with MASTER is down"),
              "stale data")
        check(said(client.call("PING")).startswith("MASTERDOWN"), "PING, as in Redis")
        check(b"role:slave" in client.call("INFO"), "INFO")
        eq(client.call("REPLICAOF", "NO", "ONE"), resp.OK)
    eq(client.call("SET", "mine", "1"), resp.OK, "a master accepts it")


# ---- broken links ----


@test(timeout=180)
def links_cut_anywhere(context):
    """The master's bytes stop at many places: inside the data set, its mark, commands, bulks and
    transactions. What is there in the end is what the master has."""
    context.sava_only()
    master = context.start_stock(*FAST, "--repl-backlog-size", "64mb")
    master.call("SET", "first", "1")
    rng = context.rng("cuts")
    replica = context.start()
    # In the answers of the handshake, the data set (some 200 bytes) and its mark.
    spots = list(range(1, 420, 23)) if not context.options.long else list(range(1, 420))
    proxy = Proxy(context, master.address, spots)
    follow(replica, proxy.port)
    until(lambda: not proxy.limits and linked(replica), 150, "the end of all cuts")
    in_step(replica, master)
    # In the stream.
    full = int(master.info_field("sync_full"))
    stop = threading.Event()

    def write():
        with master.client() as client:
            number = 0
            while not stop.is_set():
                number += 1
                client.pipeline([
                    ("INCR", "n"), ("MULTI",), ("INCR", "a"), ("SELECT", str(number % 3)),
                    ("RPUSH", "l", "x" * rng.randrange(3000)), ("EXEC",), ("SELECT", "0"),
                    ("SETEX", "e%d" % (number % 50), "1000", "v"), ("LTRIM", "l", "-5", "-1"),
                ])
                time.sleep(0.003)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        count = 25 if not context.options.long else 300
        proxy.limits = [80 + rng.randrange(6000) for _ in range(count)]
        proxy.cut()
        until(lambda: not proxy.limits, 120, "the end of all cuts")
    finally:
        stop.set()
        writer.join()
    in_step(replica, master)
    eq(master.info_field("sync_full"), str(full), "full syncs for the cuts of the stream")
    eq(replica.info_field("unexpected_error_replies"), "0")


@test(timeout=60)
def restarts_go_on(context):
    """After an orderly end only what has come since is asked for, with the log and without."""
    context.sava_only()
    for options in ((*NO_SAVE, *LOG), ("--save", "3600 1", "--appendonly", "no")):
        master = master_with_data(context, "--repl-backlog-size", "8mb", count=500)
        replica = durable(context, *options)
        follow(replica, master.port)
        until(lambda: linked(replica), 30, "the link")
        in_step(replica, master)
        replica.options += ["--replicaof", "127.0.0.1 %d" % master.port]
        for number in range(3):
            with master.client(db=number + 5) as client:
                client.call("SET", "in", "another database")
            in_step(replica, master)
            eq(replica.terminate(), 0)
            with master.client(db=number + 5) as client:
                client.call("SET", "while", "it was away")
            replica.restart()
            until(lambda: linked(replica), 30, "the link")
            in_step(replica, master)
            eq(master.info_field("sync_full"), "1", "full syncs")
        # After a crash nobody knows how far it was.
        replica.kill()
        replica.restart()
        until(lambda: linked(replica), 30, "the link")
        in_step(replica, master)


@test(timeout=90)
def a_master_that_restarts_needs_no_copy(context):
    """After an orderly end replicas that were in step go on, with what was left out for its time
    told to them; after a crash they get a copy."""
    context.sava_only()
    for options in ((*NO_SAVE, *LOG), ("--save", "3600 1", "--appendonly", "no")):
        master = durable(context, *options, *FAST)
        fill(master, 0)  # DEBUG POPULATE is not logged
        replicas = [context.start(*FAST), context.start_stock()]
        for replica in replicas:
            follow(replica, master.port)
        last = context.start_stock("--replicaof", "127.0.0.1 %d" % replicas[0].port)
        replicas.append(last)
        for replica in replicas:
            until(lambda r=replica: linked(r), 30, "the link")
        for number in range(3):
            master.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
            with master.client(db=number) as client:
                client.pipeline([("SET", "short%d" % n, "v", "PX", "1") for n in range(50)])
                client.call("SET", "round", str(number))
            for replica in replicas:
                in_offset(replica, master)
            before = field(master, "master_replid")
            eq(master.terminate(), 0)
            start_again(master)
            for replica in replicas:
                until(lambda r=replica: linked(r), 60, "the link")
            check(field(master, "master_replid") != before, "the same id")
            eq(field(master, "master_replid2"), before)
            eq((master.info_field("sync_full"), master.info_field("sync_partial_ok")), ("0", "2"))
            with master.client(db=number) as client:
                until(lambda c=client: not c.call("KEYS", "short*"), 20, "what is over")
                eq(client.call("SET", "after", "it"), resp.OK)
            for replica in replicas:
                in_step(replica, master)
                eq(replica.call("DBSIZE"), master.call("DBSIZE"), "keys that nobody removes")
        master.kill()
        start_again(master)
        for replica in replicas:
            until(lambda r=replica: linked(r), 60, "the link")
        in_step(replicas[0], master)
        in_step(replicas[1], master)
        eq(master.info_field("sync_full"), "2", "full syncs")


@test(timeout=90)
def disks_of_replicas_are_waited_for(context):
    """WAITAOF counts a replica once its log is synced, also when nothing follows the last write."""
    context.sava_only()
    master, replica = durable(context, *NO_SAVE, *LOG, *FAST), durable(context, *NO_SAVE, *LOG)
    follow(replica, master.port)
    until(lambda: linked(replica), 30, "the link")
    with master.client() as client:
        for count in (1, 3, 300, 1, 2, 50):
            client.pipeline([("INCR", "n%d" % i) for i in range(count)])
            eq(client.call("WAITAOF", "1", "1", "20000"), [1, 1], "after %d writes" % count)
            eq(client.call("WAIT", "1", "20000"), 1)


# ---- crashes ----


@test(timeout=240)
def killed_during_full_syncs(context):
    """kill -9 at any instant of a full sync leaves the old data set or the new one."""
    context.sava_only()
    rng = context.rng("kills")
    master = context.start_stock(*FAST)
    master.call("DEBUG", "POPULATE", "60000", "new", "60")
    new = master.call("DEBUG", "DIGEST")
    kinds = {"old": 0, "new": 0}
    for options in ((*NO_SAVE, *LOG), ("--save", "3600 1", "--appendonly", "no")):
        replica = durable(context, *options)

        def make_old():
            replica.call("FLUSHALL")
            with replica.client() as client:
                client.pipeline([("SET", "old%d" % n, "v") for n in range(2000)])
            eq(replica.call("SAVE"), resp.OK)
            return replica.call("DEBUG", "DIGEST")

        old = make_old()
        for _ in range(12 if not context.options.long else 100):
            follow(replica, master.port)
            time.sleep(rng.random() * (0.6 if context.options.long else 0.25) * SLOW)
            replica.kill()
            replica.restart()
            digest = replica.call("DEBUG", "DIGEST")
            check(digest in (old, new), "neither the old data set nor the new one: %s keys of %s"
                  % (replica.call("DBSIZE"), replica.call("RANDOMKEY")))
            kinds["old" if digest == old else "new"] += 1
            if digest == new:
                eq(make_old(), old)
        names = os.listdir(replica.dir)
        check(not [name for name in names if name.startswith("temp")], "left behind: %s" % names)
        dumps = [name for name in names if name.startswith("dump") and not name.endswith(".lock")]
        check(len(dumps) <= 1, "copies: %s" % names)
    context.say("after a kill: %(old)d times the old data, %(new)d times the new" % kinds)


# ---- masters that cannot be followed ----


class FakeMaster:
    """Answers the handshake, then sends what it is given."""

    def __init__(self, context, answer):
        self.answer = answer
        self.asked = 0
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(8)
        self.port = self.listener.getsockname()[1]
        context.at_end(self.listener.close)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                link, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(link,), daemon=True).start()

    def _talk(self, link):
        try:
            seen = b""
            while True:
                data = link.recv(4096)
                if not data:
                    return
                seen += data
                if b"PSYNC" in seen:
                    self.asked += 1
                    link.sendall(self.answer)
                    link.settimeout(2)
                    while link.recv(4096):
                        pass
                    return
                link.sendall(b"+OK\r\n" * data.count(b"*"))
        except OSError:
            pass
        finally:
            link.close()


@test(timeout=60)
def a_master_that_lets_wait(context):
    """Empty lines keep the link, longer than repl-timeout, until the master has an answer."""
    context.sava_only()
    source = durable(context, "--save", "3600 1", "--appendonly", "no")
    source.call("DEBUG", "POPULATE", "50", "from", "20")
    eq(source.call("SAVE"), resp.OK)
    with open(source.path("dump.rdb"), "rb") as file:
        dump = file.read()

    class Slow(FakeMaster):
        def _talk(self, link):
            patient = link.sendall

            class Link:
                def __getattr__(self, name):
                    return getattr(link, name)

                def sendall(self, data):
                    for _ in range(10 if b"FULLRESYNC" in data else 0):
                        patient(b"\n")
                        time.sleep(0.4)
                    patient(data)

            super()._talk(Link())

    fake = Slow(context, b"+FULLRESYNC " + b"a" * 40 + b" 100\r\n$%d\r\n" % len(dump) + dump)
    replica = context.start("--repl-timeout", "2")
    follow(replica, fake.port)
    until(lambda: replica.call("DBSIZE") == 50, 30, "the data set")
    eq(fake.asked, 1, "attempts")


@test(timeout=60)
def bad_masters_cost_nothing(context):
    """Data of before stays when a master sends what is no data set that can be read here."""
    context.sava_only()
    replica = context.start()
    replica.call("DEBUG", "POPULATE", "100", "mine", "20")
    digest = replica.call("DEBUG", "DIGEST")
    full = b"+FULLRESYNC " + b"a" * 40 + b" 100\r\n"
    mark = b"m" * 40
    answers = [
        full + b"$EOF:" + mark + b"\r\nREDIS0099" + b"\xff" * 20 + mark,
        full + b"$100\r\nVALKEY080" + b"\x00" * 91,
        full + b"$30\r\nREDIS0010" + b"\xfe\x00" + b"\x07" * 19,  # damaged
        full + b"$99999999999999999999\r\n",
        full + b"$-5\r\n",
        full + b"$EOF:short\r\n",
        full + b"x" * 5000,
        full + b"$0\r\n",
        b"+FULLRESYNC zz -1\r\n",
        b"+FULLRESYNC " + b"a" * 40 + b" 9223372036854775807\r\n",
        b"+CONTINUE " + b"b" * 40 + b"\r\n*1\r\n$4\r\nPING\r\nnonsense\r\n",
        b"-NOMASTERLINK no\r\n",
        b"-LOADING yes\r\n",
        b"\n\n\n-ERR go away\r\n",
        b"x" * 100000,
    ]
    for answer in answers:
        fake = FakeMaster(context, answer)
        follow(replica, fake.port)
        until(lambda: fake.asked >= 1, 20, "an attempt")
        time.sleep(0.15)
        check(not linked(replica) or b"CONTINUE" in answer, "a link to " + repr(answer[:60]))
        eq(replica.call("DEBUG", "DIGEST"), digest, "the data, after " + repr(answer[:60]))
    # Asked less and less often.
    fake = FakeMaster(context, answers[0])
    follow(replica, fake.port)
    time.sleep(5)
    check(1 <= fake.asked <= 4, "%d attempts in five seconds" % fake.asked)
    check("RDB version" in field(replica, "master_link_error"), "INFO says why")
    eq(replica.call("REPLICAOF", "NO", "ONE"), resp.OK)
    eq(replica.call("DEBUG", "DIGEST"), digest)


@test()
def streams_that_cannot_be_followed(context):
    """Nonsense after a data set ends the link, not the server; unknown commands are counted."""
    context.sava_only()
    stock = context.start_stock()
    stock.call("SET", "a", "1")
    stock.call("SAVE")
    with open(os.path.join(stock.dir, "dump.rdb"), "rb") as file:
        rdb = file.read()
    head = b"+FULLRESYNC " + b"a" * 40 + b" 0\r\n$%d\r\n" % len(rdb) + rdb
    replica = context.start()
    for tail in (
        b"*1\r\n$-3\r\n", b"*99999999999\r\n", b"*2\r\n$3\r\nGET\r\n$99999999999999\r\nx", b"SET a b\r\n",
        b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\n12\r\n*",
    ):
        fake = FakeMaster(context, head + tail)
        follow(replica, fake.port)
        until(lambda: fake.asked >= 1, 20, "an attempt")
        until(lambda: replica.call("GET", "a") in (b"1", b"12"), 10, "the data set")
        until(replica.alive, 10, "the server, which may be loading again")
    fake = FakeMaster(context, head + resp.encode("NOSUCH", "x") + resp.encode("SET", "b", "2"))
    follow(replica, fake.port)
    until(lambda: replica.call("GET", "b") == b"2", 10, "what follows an unknown command")
    check(int(replica.info_field("unexpected_error_replies")) >= 1, "it is counted")
    check(b"== CRITICAL == This replica is sending an error to its master" in replica.log(), "log")


# ---- roles ----


@test(timeout=60)
def promotion_and_back(context):
    """A replica becomes a master; the old master follows it with a partial resync."""
    context.sava_only()
    one, two = context.start(*FAST), context.start(*FAST)
    fill(one, 500)
    follow(two, one.port)
    until(lambda: linked(two), 30, "the link")
    in_step(two, one)
    for number in range(6):
        old, new = (one, two) if number % 2 == 0 else (two, one)
        eq(new.call("REPLICAOF", "NO", "ONE"), resp.OK)
        eq(new.call("SET", "round", str(number)), resp.OK)
        follow(old, new.port)
        until(lambda: linked(old), 30, "the link back")
        in_step(old, new)
        eq(old.call("GET", "round"), str(number).encode())
    eq(int(one.info_field("sync_full")) + int(two.info_field("sync_full")), 1, "full syncs")


@test(timeout=60)
def chains(context):
    """stock → Sava → Sava and stock: all have the same bytes of the stream."""
    context.sava_only()
    master = master_with_data(context, count=500)
    middle, last = context.start(*FAST), context.start(*FAST)
    stock = context.start_stock()
    follow(middle, master.port)
    until(lambda: linked(middle), 30, "the link")
    for below in (last, stock):
        follow(below, middle.port)
        until(lambda: linked(below), 30, "the link below")
    with master.client(db=7) as client:
        client.pipeline([("SET", "deep", "1"), ("MULTI",), ("INCR", "deep"), ("INCR", "n"), ("EXEC",)])
    for below in (middle, last, stock):
        in_step(below, master)
    # The middle comes back to its master: those below go on.
    middle.call("CLIENT", "KILL", "TYPE", "master")
    master.call("SET", "later", "1")
    for below in (middle, last, stock):
        in_step(below, master)
    # The middle is promoted: those below follow.
    middle.call("REPLICAOF", "NO", "ONE")
    middle.call("SET", "promoted", "1")
    for below in (last, stock):
        in_step(below, middle)
        eq(below.call("GET", "promoted"), b"1")
    eq(middle.info_field("sync_full"), "2", "full syncs below")


@test(timeout=90)
def roles_change_under_load(context):
    """Clients write and read while the server follows one master, another, and none."""
    context.sava_only()
    masters = [context.start_stock(*FAST) for _ in range(2)]
    for number, master in enumerate(masters):
        master.call("DEBUG", "POPULATE", "3000", "m%d" % number, "30")
    replica = context.start()
    stop = threading.Event()
    trouble = []

    def load(number):
        rng = random.Random(number)
        try:
            client = replica.client()
            while not stop.is_set():
                for answer in client.pipeline(
                    [("SET", "own%d" % rng.randrange(99), "v"), ("GET", "m0:7"), ("DBSIZE",),
                     ("MULTI",), ("INCR", "c"), ("EXEC",)]
                ):
                    if isinstance(answer, resp.Error) and not said(answer).startswith(
                        ("READONLY", "LOADING", "EXECABORT", "UNBLOCKED")
                    ):
                        trouble.append(said(answer))
            client.close()
        except (OSError, resp.ConnectionClosed) as error:
            trouble.append(repr(error))

    threads = [threading.Thread(target=load, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    rng = context.rng("roles")
    try:
        for _ in range(25 if not context.options.long else 300):
            master = rng.choice(masters + [None])
            command = ("NO", "ONE") if master is None else ("127.0.0.1", str(master.port))
            answer = replica.call("REPLICAOF", *command)
            check(said(answer).startswith(("OK", "LOADING")), "REPLICAOF: " + said(answer))
            time.sleep(rng.random() * 0.2)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    eq(trouble[:3], [], "what the clients met")

    def settled():
        return not isinstance(replica.call("REPLICAOF", "127.0.0.1", str(masters[0].port)), resp.Error)

    until(settled, 20, "the end of a load")
    until(lambda: linked(replica), 30, "the link")
    in_step(replica, masters[0])


# ---- settings ----


@test(timeout=60)
def the_configuration_remembers(context):
    """CONFIG REWRITE writes whom the server follows; a start goes on with it; masterauth."""
    context.sava_only()
    master = context.start_stock(*FAST, "--requirepass", "secret")
    master.options += []
    client = context.client(master)
    client.call("AUTH", "secret")
    client.call("SET", "a", "1")
    path = os.path.join(context.temp_dir(), "sava.conf")
    with open(path, "w") as file:
        file.write("# mine\nreplica-priority 7\n")
    replica = context.start(config=path)
    follow(replica, master.port)
    time.sleep(1.5)
    check(not linked(replica), "a link without the password")
    eq(replica.call("CONFIG", "SET", "masterauth", "secret"), resp.OK)
    until(lambda: linked(replica), 30, "the link")
    until(lambda: replica.call("GET", "a") == b"1", 10, "the data")
    eq(field(replica, "slave_priority"), "7")
    eq(replica.call("CONFIG", "REWRITE"), resp.OK)
    with open(path) as file:
        text = file.read()
    check("replicaof 127.0.0.1 %d\n" % master.port in text, "the file: " + text)
    eq(replica.call("CONFIG", "GET", "replicaof")[1], b"127.0.0.1 %d" % master.port)
    again = context.start(config=path)
    until(lambda: linked(again), 30, "the link of a server that is started with the file")
    eq(again.call("GET", "a"), b"1")
    eq(again.call("REPLICAOF", "NO", "ONE"), resp.OK)
    eq(again.call("CONFIG", "REWRITE"), resp.OK)
    with open(path) as file:
        check("replicaof 127" not in file.read(), "a master's file")


@test(timeout=60)
def loading_is_told(context):
    """While the master's data set is loaded clients are told so, and INFO is answered."""
    context.sava_only()
    master = master_with_data(context, count=3000)
    replica = context.start("--key-load-delay", "500")
    follow(replica, master.port)
    until(lambda: replica.info_field("loading") == "1", 20, "the loading")
    check(said(replica.call("GET", "a")).startswith("LOADING"), "GET")
    check(said(replica.call("REPLICAOF", "NO", "ONE")).startswith("LOADING"), "REPLICAOF")
    eq(field(replica, "role"), "slave")
    eq(replica.call("CONFIG", "SET", "key-load-delay", "0"), resp.OK)
    until(lambda: linked(replica), 50, "the link")
    in_step(replica, master)


@test(timeout=60)
def http_of_a_replica(context):
    """Writes get 503 and the master's address."""
    import http.client
    import json

    context.sava_only()
    master = context.start(*FAST)
    port = free_port()
    replica = context.start("--http-port", str(port))
    follow(replica, master.port)
    until(lambda: linked(replica), 30, "the link")
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    link.request("DELETE", "/associations/u1")
    answer = link.getresponse()
    body = answer.read()
    eq(answer.status, 503, "status; " + repr(body))
    eq(json.loads(body).get("master"), "127.0.0.1:%d" % master.port, repr(body))
    link.close()


@test(timeout=90)
def replication_over_tls(context):
    """Both halves over TLS: a data set of some megabytes, and the stream."""
    from tls_tests import authority, tls_server

    context.sava_only()
    ca = authority(context)
    more = ("--tls-replication", "yes", *FAST)
    master, replica = tls_server(context, ca, *more), tls_server(context, ca, *more)
    fill(master, 60000)
    follow(replica, master.tls_port)
    until(lambda: linked(replica), 60, "the link")
    in_step(replica, master)
    with master.client() as client:
        client.pipeline([("SET", "k%d" % n, "v" * (n % 3000)) for n in range(3000)])
    in_step(replica, master)
    replica.call("CLIENT", "KILL", "TYPE", "master")
    master.call("SET", "later", "1")
    in_step(replica, master)


@test(timeout=60)
def a_paused_replica_applies_nothing(context):
    """CLIENT PAUSE on it holds its master's writes back; the link stays, and goes on afterwards."""
    context.sava_only()
    master = durable(context, *NO_SAVE, "--repl-diskless-sync-delay", "0")
    replica = durable(context, *NO_SAVE)
    follow(replica, master.port)
    until(lambda: linked(replica), 60, "the link")
    eq(master.call("INCR", "n"), 1)
    eq(master.call("WAIT", "1", "30000"), 1)
    eq(replica.call("CLIENT", "PAUSE", "60000", "WRITE"), resp.OK)
    eq(master.call("INCR", "n"), 2)
    eq(master.call("WAIT", "1", "200"), 0, "it is not applied")
    eq(replica.call("GET", "n"), b"1")
    check(linked(replica), "the link")
    eq(replica.call("CLIENT", "UNPAUSE"), resp.OK)
    eq(master.call("WAIT", "1", "30000"), 1)
    in_step(replica, master)


# ---- from Redis, and back ----


@test(timeout=90)
def migration_without_downtime(context):
    """docs/migration.md: from Redis to Sava and back, while a client goes on counting."""
    context.sava_only()
    redis = master_with_data(context, count=1000)
    sava = durable(context, *NO_SAVE, *LOG, "--repl-diskless-sync-delay", "0")
    for old, new in ((redis, sava), (sava, redis)):
        follow(new, old.port)
        until(lambda: linked(new), 60, "the link")
        for _ in range(200):
            old.call("INCR", "visits")
        eq(old.call("CLIENT", "PAUSE", "20000", "WRITE"), resp.OK)
        in_step(new, old)
        until(lambda: new.info_field("aof_last_write_status") == "ok", 60, "the base of the log")
        eq(new.call("REPLICAOF", "NO", "ONE"), resp.OK)
        visits = int(new.call("GET", "visits"))
        eq(new.call("INCR", "visits"), visits + 1, "clients go on with the new server")
        old.call("CLIENT", "UNPAUSE")
    eq(redis.call("GET", "visits"), b"402")


@test(timeout=60)
def migration_by_file(context):
    """docs/migration.md: a dump of Redis is a dump of Sava's, and the other way round."""
    context.sava_only()
    redis = context.start_stock()
    fill(redis, 1000)
    eq(redis.call("SAVE"), resp.OK)
    digest = redis.call("DEBUG", "DIGEST")
    sava = durable(context, *NO_SAVE, "--appendonly", "no", started=False)
    with open(os.path.join(redis.dir, "dump.rdb"), "rb") as file:
        data = file.read()
    with open(sava.path("dump.rdb"), "wb") as file:
        file.write(data)
    sava.start()
    eq(sava.call("DEBUG", "DIGEST"), digest, "in Sava")
    eq(sava.call("SAVE"), resp.OK)
    back = durable(context, *NO_SAVE, "--appendonly", "no", binary=context.options.stock,
                   started=False)
    with open(sava.path("dump.rdb"), "rb") as file:
        data = file.read()
    with open(back.path("dump.rdb"), "wb") as file:
        file.write(data)
    back.start()
    eq(back.call("DEBUG", "DIGEST"), digest, "back in Redis")


# ---- Sentinel ----


def sentinels(context, master, count=3, quorum=2):
    """Stock sentinels, started with a file of their own each; returns their ports."""
    import shutil
    import subprocess

    binary = shutil.which("redis-sentinel")
    if binary is None:
        raise Skip("redis-sentinel is not installed")
    folder = context.temp_dir()
    ports = []
    for number in range(count):
        port = free_port()
        path = os.path.join(folder, "sentinel%d.conf" % number)
        with open(path, "w") as file:
            file.write(
                "port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor mine 127.0.0.1 %d %d\n"
                "sentinel down-after-milliseconds mine 1500\nsentinel failover-timeout mine 6000\n"
                "sentinel parallel-syncs mine 2\n" % (port, folder, master.port, quorum)
            )
        process = subprocess.Popen([binary, path], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def end(one=process):
            one.kill()
            one.wait()

        context.at_end(end)
        ports.append(port)
    return ports


def ask_sentinel(port, *args):
    with resp.Client(("127.0.0.1", port), 10) as client:
        return client.call("SENTINEL", *args)


def master_by(port):
    try:
        return int(ask_sentinel(port, "GET-MASTER-ADDR-BY-NAME", "mine")[1])
    except (OSError, resp.ConnectionClosed, TypeError):
        return None


def known(port):
    """Whether the sentinel knows two replicas and two other sentinels."""
    try:
        fields = ask_sentinel(port, "MASTER", "mine")
        fields = dict(zip(fields[::2], fields[1::2]))
        return fields[b"num-slaves"] == b"2" and fields[b"num-other-sentinels"] == b"2"
    except (OSError, resp.ConnectionClosed, KeyError, TypeError):
        return False


@test(timeout=240)
def sentinels_fail_over(context):
    """Three stock sentinels watch a Sava master with a Sava and a stock replica: kill -9, then
    SIGSTOP of the master; who comes back is a replica of the new one."""
    import signal

    context.sava_only()
    master = context.start(*FAST)
    first = context.start(*FAST)
    second = context.start_stock(*FAST, "--replica-priority", "200")
    master.call("SET", "a", "1")
    for replica in (first, second):
        follow(replica, master.port)
        until(lambda r=replica: linked(r), 30, "the link")
    ports = sentinels(context, master)
    for port in ports:
        until(lambda p=port: known(p), 60, "what a sentinel has to know")
    eq(master.call("SET", "before", "1"), resp.OK)
    in_step(first, master)
    # The master is killed.
    master.process.kill()
    master.process.wait()
    until(lambda: all(master_by(port) == first.port for port in ports), 60, "the failover")
    until(lambda: field(first, "role") == "master", 30, "the promotion")
    until(lambda: linked(second) and field(second, "master_port") == str(first.port), 60,
          "the other replica's new master")
    eq(first.call("GET", "before"), b"1")
    eq(first.call("SET", "after", "1"), resp.OK)
    in_step(second, first)
    # It comes back, and is made a replica.
    master.spawn(master.command_line(master.port))
    until(master.alive, 20, "the old master")
    until(lambda: field(master, "role") == "slave" and linked(master), 90, "the old master's role")
    in_step(master, first)
    # The new master hangs.
    first.process.send_signal(signal.SIGSTOP)
    try:
        until(lambda: all(master_by(port) == master.port for port in ports), 90, "the failover")
        eq(master.call("SET", "while", "it hangs"), resp.OK)
    finally:
        first.process.send_signal(signal.SIGCONT)
    until(lambda: field(first, "role") == "slave" and linked(first), 90, "who hung follows")
    in_step(first, master)


@test(timeout=60)
def a_failover_between_savas(context):
    """FAILOVER: roles change without a copy, and back."""
    context.sava_only()
    one, two = context.start(*FAST), context.start(*FAST)
    fill(one, 300)
    follow(two, one.port)
    until(lambda: linked(two), 30, "the link")
    in_step(two, one)
    for old, new in ((one, two), (two, one)):
        until(lambda n=new, o=old: "port=%d," % n.port in (field(o, "slave0") or ""), 20, "it")
        eq(old.call("FAILOVER", "TO", "127.0.0.1", str(new.port), "TIMEOUT", "20000"), resp.OK)
        until(lambda n=new: field(n, "role") == "master", 20, "the new master")
        until(lambda o=old: linked(o), 20, "the old one's link")
        eq(new.call("INCR", "rounds"), 1 if new is two else 2)
        in_step(old, new)
    eq(int(one.info_field("sync_full")) + int(two.info_field("sync_full")), 1, "full syncs")


@test(timeout=120)
def the_program_with_sentinels(context):
    """tools/replicas.py: the table, a failover in it, and its end by Ctrl-C with all it started."""
    import shutil
    import signal
    import subprocess
    import sys

    context.sava_only()
    if shutil.which("redis-sentinel") is None:
        raise Skip("redis-sentinel is not installed")
    tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools",
                        "replicas.py")
    program = subprocess.Popen([sys.executable, "-u", tool, "--server", context.options.server],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    context.at_end(lambda: program.poll() is None and program.kill())
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(iter(program.stdout.readline, "")))
    reader.start()

    def rows():
        words = [line.split() for line in list(lines)]
        return [row for row in words if row and row[0].startswith("127.0.0.1:")]

    def masters():
        return [row[0] for row in rows() if len(row) > 2 and row[1] == "master"]

    def linked_replicas():
        return {row[0] for row in rows() if len(row) > 4 and row[1] == "replica" and row[3] == "up"}

    until(lambda: masters() and len(linked_replicas()) == 2, 60, "the table")
    until(lambda: any("3 sentinels; the master is" in line for line in list(lines)), 30, "the end")
    first = masters()[0]
    sentinel = next(int(line.split()[3]) for line in list(lines) if "sentinels on ports" in line)
    until(lambda: known(sentinel), 60, "what a sentinel has to know")
    os.kill(next(int(line.split()[2]) for line in list(lines) if "kill -9" in line), signal.SIGKILL)
    until(lambda: masters()[-1] != first, 60, "another master in the table")
    ports = [int(name.split(":")[1]) for name in {row[0] for row in rows()}] + [sentinel]
    program.send_signal(signal.SIGINT)
    program.wait(40)
    reader.join(10)
    eq(program.returncode, 0, "".join(lines[-20:]))
    for port in ports:
        with socket.socket() as one:
            check(one.connect_ex(("127.0.0.1", port)) != 0, "port %d still answers" % port)


@test()
def a_replica_comes_from_the_address_it_is_told(context):
    master = context.start(*NO_SAVE, *FAST)
    replica = context.start(*NO_SAVE, "--bind-source-addr", "127.0.0.3")
    eq(replica.call("REPLICAOF", "127.0.0.1", str(master.port)), resp.OK)
    address = lambda: (master.info_field("slave0") or "").split(",")[0]
    until(lambda: address() == "ip=127.0.0.3", what="the replica's address")
    eq(replica.call("CONFIG", "SET", "bind-source-addr", "127.0.0.4"), resp.OK)
    eq(master.call("CLIENT", "KILL", "TYPE", "replica"), 1)
    until(lambda: address() == "ip=127.0.0.4", what="the new address")


@test()
def the_score_of_a_replica(context):
    """The kernel ends a replica before its master when memory runs out."""
    server = context.start(*NO_SAVE, "--oom-score-adj", "absolute", "--oom-score-adj-values", "10 20 30")

    def score():
        with open("/proc/%d/oom_score_adj" % server.process.pid, encoding="ascii") as file:
            return int(file.read())

    eq(score(), 10)
    eq(server.call("REPLICAOF", "127.0.0.1", "1"), resp.OK)
    until(lambda: score() == 20, what="the score of a replica")
    eq(server.call("REPLICAOF", "NO", "ONE"), resp.OK)
    until(lambda: score() == 10, what="the score of a master")
