"""Replication: this server as the master of stock servers, of tools, and of raw connections."""

import os
import random
import resource
import shutil
import socket
import subprocess
import threading

import resp
from clients_tests import need, run
from harness import SLOW, check, eq, free_port, test, until
from stream import Stream
from tls_tests import Authority

FAST = ("--repl-diskless-sync-delay", "0")
LAG = 30.0
MARK = 40


def master_of(context, *options, **more):
    context.sava_only("the master is Sava, the replica stock Redis")
    return context.start(*FAST, *options, **more)


def replica_of(context, port, *options):
    """A stock replica of that port, up to date when the link is up."""
    return context.start_stock("--replicaof", "127.0.0.1 %d" % port, *options)


def repl(server, field):
    return server.info_field(field, "replication")


def link_up(replica):
    until(lambda: repl(replica, "master_link_status") == "up", LAG, "the link")


def offsets_equal(master, replica):
    return repl(master, "master_repl_offset") == repl(replica, "slave_repl_offset")


def caught_up(master, replica):
    """Everything that was written is on the replica."""
    link_up(replica)
    until(lambda: offsets_equal(master, replica), LAG, "the same offset")


def digest(server):
    return server.call("DEBUG", "DIGEST")


def same_data(master, replica, what=""):
    caught_up(master, replica)
    mine, theirs = digest(master), digest(replica)
    if mine == theirs:
        return
    differing = []
    for db in range(16):
        with master.client(db=db) as one, replica.client(db=db) as other:
            keys = set(one.call("KEYS", "*")) | set(other.call("KEYS", "*"))
            for key in sorted(map(bytes, keys)):
                a = one.call("DEBUG", "DIGEST-VALUE", key)
                b = other.call("DEBUG", "DIGEST-VALUE", key)
                if a != b:
                    differing.append((db, key, one.call("TYPE", key), other.call("TYPE", key)))
    eq(differing[:5], [], what + " digests differ")


def fill(server, keys=300):
    """Every stock type, in every form of it."""
    with server.client() as client:
        for i in range(keys):
            client.call("SET", "s%d" % i, "value %d" % i)
        client.call("SET", "number", "12345")
        client.call("SET", "long", "x" * 300000)
        client.call("SET", "expires", "1", "EX", "10000")
        for name, count in (("small", 5), ("large", 3000)):
            client.pipeline([("RPUSH", "list:" + name, "e%d" % i) for i in range(count)])
            client.pipeline([("SADD", "set:" + name, "m%d" % i) for i in range(count)])
            client.pipeline([("SADD", "ints:" + name, str(i)) for i in range(count)])
            client.pipeline([("HSET", "hash:" + name, "f%d" % i, str(i)) for i in range(count)])
            client.pipeline([("ZADD", "zset:" + name, str(i / 7), "m%d" % i) for i in range(count)])
            client.pipeline(
                [("XADD", "stream:" + name, "%d-1" % (i + 1), "f", str(i)) for i in range(count)]
            )
        client.call("XGROUP", "CREATE", "stream:small", "group", "0")
        client.call("XREADGROUP", "GROUP", "group", "alice", "COUNT", "2", "STREAMS",
                    "stream:small", ">")
        client.call("PFADD", "hll", *["e%d" % i for i in range(500)])
        client.call("SETBIT", "bits", "1000", "1")
        client.call("GEOADD", "geo", "13.361389", "38.115556", "Palermo")
        client.call("SELECT", "9")
        client.call("SET", "other", "database")


class Proxy:
    """Stands between a replica and its master, and cuts the link when it is told to."""

    def __init__(self, target):
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.pairs = []
        self.left = None  # bytes from the master that still pass; None: all
        self.closed = False
        self.passed = 0
        self.refuses = False
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.closed:
            try:
                near, _ = self.listener.accept()
                if self.refuses:
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            with self.lock:
                self.pairs.append((near, far))
            threading.Thread(target=self.pump, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self.pump, args=(far, near, True), daemon=True).start()

    def pump(self, source, target, counted):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                cut = False
                if counted:
                    with self.lock:
                        if self.left is not None and len(data) >= self.left:
                            data, cut, self.left = data[: self.left], True, None
                        elif self.left is not None:
                            self.left -= len(data)
                        self.passed += len(data)
                target.sendall(data)
                if cut:
                    break
        except OSError:
            pass
        for one in (source, target):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut_after(self, count):
        """The link breaks behind that many more bytes of the master."""
        with self.lock:
            self.left = count

    def cut(self):
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            for one in pair:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def close(self):
        self.closed = True
        self.listener.close()
        self.cut()


def proxy_to(context, port):
    proxy = Proxy(port)
    context.at_end(proxy.close)
    return proxy


def writes(server, count, rng, db=0):
    """Writes of many kinds, some of them several in one unit."""
    with server.client(db=db) as client:
        for i in range(count):
            kind = rng.randrange(6)
            key = "w%d" % rng.randrange(50)
            if kind == 0:
                client.call("SET", key, "v%d" % i)
            elif kind == 1:
                client.call("MULTI")
                client.call("SET", key, "in a transaction %d" % i)
                client.call("INCR", "counter")
                client.call("EXEC")
            elif kind == 2:
                client.call("RPUSH", "l" + key, "e%d" % i)
            elif kind == 3:
                client.call("HSET", "h" + key, "f%d" % rng.randrange(9), str(i))
            elif kind == 4:
                client.call("DEL", key)
            else:
                client.call("SET", key, "x" * rng.randrange(3000))


# ---- the first copy ----


@test(timeout=90)
def a_stock_replica_gets_every_type(context):
    master = master_of(context)
    fill(master)
    replica = replica_of(context, master.port)
    same_data(master, replica, "after the copy")
    fill(master, 50)
    writes(master, 300, context.rng("writes"))
    same_data(master, replica, "after more writes")
    eq(repl(master, "connected_slaves"), "1")
    check("state=online" in repl(master, "slave0"), repl(master, "slave0"))
    eq(repl(master, "master_replid"), repl(replica, "master_replid"))
    role = master.call("ROLE")
    eq(role[0], b"master")
    eq([bytes(x) for x in role[2][0][:2]], [b"127.0.0.1", b"%d" % replica.port])
    eq(replica.call("ROLE")[3], b"connected")


@test(timeout=90)
def with_a_log_too(context):
    for policy in ("everysec", "always"):
        master = master_of(context, "--appendonly", "yes", "--appendfsync", policy)
        fill(master, 50)
        replica = replica_of(context, master.port)
        writes(master, 200, context.rng(policy))
        same_data(master, replica, policy)
        eq(master.call("WAITAOF", "1", "0", "5000")[0], 1)


@test(timeout=120)
def random_streams_leave_equal_digests(context):
    master = master_of(context)
    replica = replica_of(context, master.port)
    link_up(replica)
    stream = Stream(context.rng("replication"), [b"payload" * 5])
    with master.client() as one, master.client() as other:
        clients = (one, other)
        for round_number in range(4):
            for item in stream.make(1500):
                if len(item) > 2 and item[2] != "inline":
                    continue
                if bytes(item[1][0]).upper() in (b"RESTORE", b"DEBUG", b"SHUTDOWN"):
                    continue
                clients[item[0]].call(*item[1])
            same_data(master, replica, "round %d" % round_number)
    eq(b"CRITICAL" in replica.log(), False, "the replica met something it does not know")


@test(timeout=60)
def several_replicas_share_one_cut(context):
    master = master_of(context, "--repl-diskless-sync-delay", "2")
    fill(master)
    replicas = [replica_of(context, master.port) for _ in range(3)]
    for replica in replicas:
        same_data(master, replica)
    eq(master.log().count(b"Background RDB transfer started"), 1, "cuts")
    eq(master.info_field("sync_full"), "3")


@test(timeout=60)
def max_replicas_do_not_wait(context):
    master = master_of(context, "--repl-diskless-sync-delay", "1000",
                       "--repl-diskless-sync-max-replicas", "2")
    replicas = [replica_of(context, master.port) for _ in range(2)]
    for replica in replicas:
        link_up(replica)


def handshake(client, *words):
    for command in words:
        eq(client.call(*command), resp.OK, " ".join(command))


def read_copy(sock, data=b""):
    """The answer to PSYNC or SYNC: (first line, RDB bytes, what follows)."""
    first = b""

    def more():
        part = sock.recv(65536)
        check(part, "the master closed the connection")
        return part

    while True:
        while b"\n" not in data:
            data += more()
        line, data = data.split(b"\n", 1)
        line = line.rstrip(b"\r")
        if line.startswith(b"+"):
            first = line
        elif line.startswith(b"$EOF:"):
            mark = line[5:]
            eq(len(mark), MARK)
            while mark not in data:
                data += more()
            rdb, data = data.split(mark, 1)
            return first, rdb, data
        elif line.startswith(b"$"):
            size = int(line[1:])
            while len(data) < size:
                data += more()
            return first, data[:size], data[size:]
        else:
            check(line == b"", "unexpected line %r" % line)


def raw_link(context, port):
    sock = socket.create_connection(("127.0.0.1", port), timeout=20 * SLOW)
    context.at_end(sock.close)
    return sock


def checked_rdb(context, rdb):
    path = os.path.join(context.temp_dir(), "copy.rdb")
    with open(path, "wb") as file:
        file.write(rdb)
    run([need("redis-check-rdb", "redis-tools"), path])
    return path


@test(timeout=60)
def plain_sync_tells_the_length_first(context):
    master = master_of(context)
    fill(master, 20)
    sock = raw_link(context, master.port)
    sock.sendall(b"SYNC\r\n")
    first, rdb, rest = read_copy(sock)
    eq(first, b"")
    check(rdb.startswith(b"REDIS0010"), "%r" % rdb[:20])
    checked_rdb(context, rdb)
    # What follows comes without an acknowledgement.
    master.call("SET", "after", "1")
    while b"after" not in rest:
        rest += sock.recv(65536)
    check(rest.startswith(b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"), "%r" % rest)


@test(timeout=60)
def psync_says_where_it_is(context):
    master = master_of(context)
    sock = raw_link(context, master.port)
    sock.sendall(b"REPLCONF capa eof capa psync2\r\n")
    eq(sock.recv(100), b"+OK\r\n")
    sock.sendall(b"PSYNC ? -1\r\n")
    first, rdb, rest = read_copy(sock)
    words = first.split()
    eq(words[0], b"+FULLRESYNC")
    eq(words[1].decode(), repl(master, "master_replid"))
    check(b"repl-id" in rdb and b"repl-offset" in rdb, "no place in the copy")
    eq(rest, b"", "before the acknowledgement")
    master.call("SET", "a", "1")
    sock.settimeout(0.4)
    try:
        early = sock.recv(100)
    except (TimeoutError, socket.timeout):
        early = b""
    eq(early, b"", "the stream began before the acknowledgement")
    sock.settimeout(20 * SLOW)
    sock.sendall(b"*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$1\r\n0\r\n")
    data = b""
    wanted = b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n"
    while len(data) < len(wanted):
        data += sock.recv(1000)
    eq(data, wanted)
    # Offsets count exactly these bytes.
    base = int(words[2])
    eq(int(repl(master, "master_repl_offset")), base + len(wanted))
    other = raw_link(context, master.port)
    other.sendall(b"REPLCONF capa psync2\r\n")
    eq(other.recv(100), b"+OK\r\n")
    other.sendall(b"PSYNC %s %d\r\n" % (words[1], base + 1 + 23))
    reply = b""
    while not reply.endswith(wanted[23:]):
        reply += other.recv(1000)
    eq(reply, b"+CONTINUE " + words[1] + b"\r\n" + wanted[23:])


@test(timeout=60)
def partial_requests_that_cannot_be_met_get_a_copy(context):
    master = master_of(context)
    replica = replica_of(context, master.port)
    link_up(replica)
    replid = repl(master, "master_replid")
    offset = int(repl(master, "master_repl_offset"))
    for line in ("PSYNC %s %d" % ("0" * 40, offset + 1), "PSYNC %s %d" % (replid, offset + 2),
                 "PSYNC %s %d" % (replid, 10**15), "PSYNC %s -5" % replid, "PSYNC x 1"):
        sock = raw_link(context, master.port)
        sock.sendall(line.encode() + b"\r\n")
        check(read_copy(sock)[0].startswith(b"+FULLRESYNC"), line)
        sock.close()
    sock = raw_link(context, master.port)
    sock.sendall(b"PSYNC %s abc\r\nPING\r\n" % replid.encode())
    data = b""
    while not data.endswith(b"+PONG\r\n"):
        data += sock.recv(1000)
    eq(data, b"-ERR value is not an integer or out of range\r\n+PONG\r\n", "still a client")


@test(timeout=60)
def replicas_may_not_use_the_keyspace(context):
    master = master_of(context)
    for command in (b"SET a 1\r\n", b"GET a\r\n", b"PING\r\n"):
        sock = raw_link(context, master.port)
        sock.sendall(b"SYNC\r\n")
        read_copy(sock)
        sock.sendall(command)
        until(lambda one=sock: one.recv(1000) == b"", 10, "the end of the connection")
    eq(master.call("EXISTS", "a"), 0)


@test(timeout=60)
def replconf_answers(context):
    stock, sut = context.pair()
    for words in (("REPLCONF", "listening-port", "1"), ("REPLCONF", "listening-port", "x"),
                  ("REPLCONF", "capa", "dual-channel"), ("REPLCONF", "ip-address", "10.0.0.1"),
                  ("REPLCONF", "ip-address", "x" * 300), ("REPLCONF", "capa"), ("REPLCONF",),
                  ("REPLCONF", "nonsense", "1"), ("REPLCONF", "rdb-only", "1"),
                  ("REPLCONF", "rdb-only", "x"), ("REPLCONF", "rdb-filter-only", "functions"),
                  ("REPLCONF", "rdb-filter-only", "nonsense"), ("SYNC", "1"), ("PSYNC", "a")):
        context.same(sut.call(*words), stock.call(*words), " ".join(words)[:60])
    for client in (stock, sut):
        client.send("REPLCONF", "ACK", "1")
        eq(client.call("PING"), resp.PONG, "no answer to ACK")


# ---- tools ----


@test(timeout=60)
def redis_cli_takes_a_copy(context):
    master = master_of(context)
    fill(master)
    master.call("AFC.ADD", "native", "x")
    path = os.path.join(context.temp_dir(), "cli.rdb")
    cli = need("redis-cli", "redis-tools")
    run([cli, "-p", str(master.port), "--rdb", path])
    run([need("redis-check-rdb", "redis-tools"), path])
    shutil.copy(path, os.path.join(os.path.dirname(path), "dump.rdb"))
    stock = context.start_stock("--dir", os.path.dirname(path))
    master.call("DEL", "native")
    eq(digest(stock), digest(master))
    until(lambda: repl(master, "connected_slaves") == "0", what="the tool has gone")
    eq(repl(master, "sava_repl_native_keys_left_out"), "1")
    functions = os.path.join(context.temp_dir(), "functions.rdb")
    run([cli, "-p", str(master.port), "--functions-rdb", functions])
    run([need("redis-check-rdb", "redis-tools"), functions])
    check(os.path.getsize(functions) < 400, "a copy without keys")


@test(timeout=60)
def redis_cli_shows_the_stream(context):
    master = master_of(context)
    path = os.path.join(context.temp_dir(), "stream.txt")
    with open(path, "wb") as out:
        process = subprocess.Popen(
            [need("redis-cli", "redis-tools"), "-p", str(master.port), "--replica"],
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
        )
    context.at_end(process.wait)
    context.at_end(process.kill)
    until(lambda: repl(master, "connected_slaves") == "1")
    until(lambda: "online" in (repl(master, "slave0") or ""))
    master.call("SET", "shown", "here")

    def seen():
        with open(path, "rb") as file:
            return b"shown" in file.read()

    until(seen, what="the command on the screen")


def sava(context, *words):
    done = subprocess.run(
        [context.options.server, *words], stdin=subprocess.DEVNULL, capture_output=True,
        timeout=60 * SLOW, check=False,
    )
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")


@test(timeout=90)
def backup_and_restore(context):
    master = master_of(context, "--requirepass", "secret")
    with master.client() as client:
        client.call("AUTH", "secret")
        for i in range(500):
            client.call("SET", "k%d" % i, "v%d" % i)
        client.call("AFC.ADD", "native", "x", "y")
        client.call("HSET", "h", "f", "1")
        client.call("HPEXPIRE", "h", "10000000", "FIELDS", "1", "f")
        wanted = client.call("DEBUG", "DIGEST")
    folder = context.temp_dir()
    path = os.path.join(folder, "backup.rdb")
    place = "127.0.0.1:%d" % master.port
    code, output = sava(context, "backup", place, path)
    eq(code, 1, "without the password: " + output)
    check(not os.path.exists(path), "a file was left")
    code, output = sava(context, "backup", "--pass", "secret", place, path)
    eq(code, 0, output)
    check("502 keys" in output or "502" in output, output)
    eq(os.listdir(folder), ["backup.rdb"], "nothing else is left")
    code, output = sava(context, "backup", "--pass", "secret", place, path)
    eq(code, 1, "it exists: " + output)
    eq(sava(context, "backup", "--force", "--pass", "secret", place, path)[0], 0)
    home = os.path.join(folder, "data")
    code, output = sava(context, "restore", path, "--dir", home)
    eq(code, 0, output)
    for appendonly in ("yes", "no"):
        server = context.start("--dir", home, "--appendonly", appendonly)
        eq(digest(server), wanted, "appendonly " + appendonly)
        code, output = sava(context, "restore", path, "--dir", home)
        eq(code, 1, "a server runs there: " + output)
        server.stop()
    code, output = sava(context, "restore", path, "--dir", home)
    eq(code, 1, "it has a data set: " + output)
    eq(sava(context, "restore", "--force", path, "--dir", home)[0], 0)
    server = context.start("--dir", home, "--appendonly", "yes")
    eq(digest(server), wanted)
    server.stop()
    with open(path, "r+b") as file:
        file.seek(200)
        file.write(b"damage")
    code, output = sava(context, "restore", path, "--dir", os.path.join(folder, "other"))
    eq(code, 1, "a damaged file: " + output)
    check(not os.path.exists(os.path.join(folder, "other")), "nothing was made")


@test(timeout=60)
def backup_of_a_stock_server(context):
    context.sava_only()
    stock = context.start_stock(*FAST)
    fill(stock, 50)
    folder = context.temp_dir()
    path = os.path.join(folder, "dump.rdb")
    code, output = sava(context, "backup", "127.0.0.1:%d" % stock.port, path)
    eq(code, 0, output)
    server = context.start("--dir", folder)
    eq(digest(server), digest(stock))


@test(timeout=120)
def a_copy_and_the_stream_over_tls(context):
    folder = context.temp_dir()
    authority = Authority(folder)
    authority.sign("server")
    files = ("--tls-cert-file", authority.path("server.crt"),
             "--tls-key-file", authority.path("server.key"),
             "--tls-ca-cert-file", authority.path("ca.crt"))
    port = free_port()
    master = master_of(context, "--tls-port", str(port), *files)
    fill(master, 50)
    megabytes = 300 if context.options.long else 40
    with master.client() as client:
        for i in range(megabytes):
            client.call("SET", "big%d" % i, random.Random(i).randbytes(1 << 20))
    replica = replica_of(context, port, "--tls-replication", "yes", *files)
    writes(master, 200, context.rng("tls"))
    with master.client() as client:
        for i in range(10):
            client.call("SET", "again%d" % i, random.Random(i).randbytes(1 << 20))
    same_data(master, replica)
    path = os.path.join(folder, "backup.rdb")
    place = "127.0.0.1:%d" % port
    tls = ("--tls", "--cacert", authority.path("ca.crt"), "--cert",
           authority.path("server.crt"), "--key", authority.path("server.key"))
    code, output = sava(context, "backup", *tls, place, path)
    eq(code, 0, output)
    check(os.path.getsize(path) > (megabytes + 10) << 20, "all of it")


# ---- links that break ----


@test(timeout=150)
def a_link_cut_anywhere_is_taken_up_again(context):
    master = master_of(context, "--repl-backlog-size", "32mb")
    fill(master, 20)
    proxy = proxy_to(context, master.port)
    replica = replica_of(context, proxy.port)
    link_up(replica)
    rng = context.rng("cuts")
    full = master.info_field("sync_full")
    for attempt in range(25):
        partial = int(master.info_field("sync_partial_ok"))
        proxy.cut_after(rng.randrange(1, 4000))
        writes(master, 60, rng, db=attempt % 3)
        # Enough is written to reach the place.
        until(lambda: int(master.info_field("sync_partial_ok")) > partial or not writes(
            master, 20, rng), 20, "another partial sync")
        link_up(replica)
    same_data(master, replica)
    eq(master.info_field("sync_full"), full, "every time it went on where it was")


@test(timeout=120)
def a_link_cut_within_the_copy_starts_anew(context):
    master = master_of(context)
    fill(master, 20)
    proxy = proxy_to(context, master.port)
    rng = context.rng("copies")
    replica = context.start_stock()
    size = 150000
    for place in [3, 60, 100, 110, 140, 500] + [rng.randrange(1, size) for _ in range(4)]:
        replica.call("REPLICAOF", "NO", "ONE")
        proxy.cut_after(place)
        replica.call("REPLICAOF", "127.0.0.1", str(proxy.port))
        master.call("INCR", "attempts")
        link_up(replica)
        same_data(master, replica, "cut after %d bytes" % place)
    until(lambda: repl(master, "connected_slaves") == "1", what="no dead replicas")


@test(timeout=60)
def a_backlog_that_is_too_small_means_a_copy(context):
    master = master_of(context, "--repl-backlog-size", "16384")
    proxy = proxy_to(context, master.port)
    replica = replica_of(context, proxy.port)
    link_up(replica)
    full = int(master.info_field("sync_full"))
    with master.client() as client:
        proxy.refuses = True
        proxy.cut()
        for i in range(200):
            client.call("SET", "big%d" % i, "x" * 1000)
        proxy.refuses = False
    until(lambda: int(master.info_field("sync_full")) > full, 30, "another copy")
    same_data(master, replica)
    check(int(master.info_field("sync_partial_err")) > 0, "it was asked for less")


@test(timeout=60)
def the_backlog_and_its_history_end_after_their_time(context):
    master = master_of(context, "--repl-backlog-ttl", "1")
    replica = replica_of(context, master.port)
    link_up(replica)
    before = repl(master, "master_replid")
    replica.stop()
    until(lambda: repl(master, "repl_backlog_active") == "0", what="the backlog is gone")
    check(repl(master, "master_replid") != before, "the history goes with it")
    master.call("SET", "unseen", "1")
    replica = replica_of(context, master.port)
    same_data(master, replica)
    eq(replica.call("GET", "unseen"), b"1")


# ---- while a copy is on its way ----


@test(timeout=90)
def much_happens_during_a_copy(context):
    master = master_of(context, "--rdb-key-save-delay", "200")
    fill(master, 2000)
    with master.client() as client:
        client.pipeline([("SET", "v%d" % i, "x", "PX", "400") for i in range(300)])
    replica = replica_of(context, master.port)
    until(lambda: "send_bulk" in (repl(master, "slave0") or "") or "online" in (
        repl(master, "slave0") or ""), what="the copy begins")
    rng = context.rng("during")
    with master.client() as client:
        for i in range(20):
            writes(master, 20, rng, db=i % 2)
            client.call("RENAME", "list:large", "list:moved%d" % i)
            client.call("RENAME", "list:moved%d" % i, "list:large")
            client.call("SWAPDB", "0", "1")
            client.call("SWAPDB", "0", "1")
            client.call("SADD", "set:large", "new%d" % i)
            client.call("ZREM", "zset:large", "m%d" % i)
            client.pipeline([("SET", "flood%d" % (1000 * i + j), "x") for j in range(300)])
    same_data(master, replica)


@test(timeout=60)
def flushall_during_a_copy_does_not_end_it(context):
    master = master_of(context, "--rdb-key-save-delay", "500")
    fill(master, 2000)
    replica = replica_of(context, master.port)
    until(lambda: "send_bulk" in (repl(master, "slave0") or ""), what="the copy begins")
    master.call("FLUSHALL")
    master.call("SET", "after", "1")
    same_data(master, replica)
    eq(replica.call("DBSIZE"), 1)
    eq(master.info_field("sync_full"), "1")


@test(timeout=90)
def eviction_during_a_copy_reaches_replicas(context):
    master = master_of(context, "--rdb-key-save-delay", "100", "--maxmemory-policy", "allkeys-lru")
    with master.client() as client:
        for i in range(3000):
            client.call("SET", "k%d" % i, "x" * 500)
    replica = replica_of(context, master.port)
    until(lambda: "send_bulk" in (repl(master, "slave0") or ""), what="the copy begins")
    used = int(master.info_field("used_memory"))
    master.call("CONFIG", "SET", "maxmemory", str(used - 500000))
    with master.client() as client:
        for i in range(3000):
            client.call("SET", "n%d" % i, "x" * 500)
    check(int(master.info_field("evicted_keys")) > 0, "nothing was evicted")
    master.call("CONFIG", "SET", "maxmemory", "0")
    same_data(master, replica)


@test(timeout=90)
def who_reads_slowly_holds_up_nobody(context):
    master = master_of(context)
    with master.client() as client:
        for i in range(60):
            client.call("SET", "big%d" % i, random.Random(i).randbytes(1 << 20))
    slow = raw_link(context, master.port)
    slow.sendall(b"REPLCONF capa eof\r\n")
    eq(slow.recv(100), b"+OK\r\n")
    slow.sendall(b"PSYNC ? -1\r\n")
    until(lambda: b"done reading from pipe" in master.log(), 30, "the walker's end")
    # It has taken hardly anything, and writers and another replica go on.
    replica = replica_of(context, master.port)
    writes(master, 300, context.rng("slow"))
    same_data(master, replica)
    check(int(master.info_field("mem_clients_slaves")) < 40 << 20, "memory of the copy")
    first, rdb, _ = read_copy(slow)
    check(first.startswith(b"+FULLRESYNC"), "%r" % first)
    checked_rdb(context, rdb)


@test(timeout=60)
def a_replica_that_never_reads_is_dropped_at_its_limit(context):
    master = master_of(context, "--client-output-buffer-limit", "replica 4mb 2mb 60",
                       "--repl-backlog-size", "16384")
    sock = raw_link(context, master.port)
    sock.sendall(b"SYNC\r\n")
    read_copy(sock)
    with master.client() as client:
        for i in range(200):
            client.call("SET", "k%d" % (i % 10), "x" * 200000)
    until(lambda: repl(master, "connected_slaves") == "0", 20, "the end of the replica")
    check(b"output buffer limits" in master.log(), "the log says why")
    until(lambda: int(master.info_field("mem_total_replication_buffers")) < 4 << 20,
          what="its memory is given back")


@test(timeout=60)
def a_copy_nobody_waits_for_is_given_up(context):
    master = master_of(context, "--rdb-key-save-delay", "20000")
    fill(master, 2000)
    sock = raw_link(context, master.port)
    sock.sendall(b"PSYNC ? -1\r\n")
    until(lambda: "send_bulk" in (repl(master, "slave0") or ""), what="the copy begins")
    eq(master.info_field("rdb_bgsave_in_progress"), "1")
    sock.close()
    until(lambda: master.info_field("rdb_bgsave_in_progress") == "0", 20, "the end of the copy")
    master.call("CONFIG", "SET", "rdb-key-save-delay", "0")
    same_data(master, replica_of(context, master.port))


@test(timeout=60)
def replicas_of_replicas(context):
    master = master_of(context)
    fill(master, 20)
    middle = replica_of(context, master.port, *FAST)
    last = replica_of(context, middle.port)
    writes(master, 300, context.rng("chain"))
    master.call("AFC.ADD", "native", "x")
    master.call("DEL", "native")
    same_data(master, middle)
    caught_up(middle, last)
    eq(digest(last), digest(master))
    eq(repl(last, "master_replid"), repl(master, "master_replid"))


@test(timeout=90)
def what_wait_has_counted_survives_its_master(context):
    for attempt in range(3):
        master = master_of(context)
        replica = replica_of(context, master.port)
        link_up(replica)
        counted = [0, 0]

        def work(number, server=master, counts=counted):
            try:
                with server.client() as client:
                    while True:
                        value = client.call("INCR", "n%d" % number)
                        if client.call("WAIT", "1", "2000") >= 1:
                            counts[number] = value
            except (OSError, resp.ConnectionClosed, TypeError):
                return

        threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(2)]
        for thread in threads:
            thread.start()
        until(lambda counts=counted: min(counts) > 50 * (attempt + 1), 30, "some writes")
        master.process.kill()
        master.process.wait()
        for thread in threads:
            thread.join(10)
        replica.call("REPLICAOF", "NO", "ONE")
        for number in range(2):
            kept = int(replica.call("GET", "n%d" % number))
            check(kept >= counted[number], "%d counted, %d kept" % (counted[number], kept))


# ---- native types ----


@test(timeout=90)
def what_a_stock_replica_does_not_know_is_left_out(context):
    master = master_of(context)
    master.call("AFC.ADD", "native", "a", "b")
    master.call("HSET", "timed", "f", "1", "g", "2")
    master.call("HPEXPIRE", "timed", "100000000", "FIELDS", "1", "f")
    replica = replica_of(context, master.port)
    link_up(replica)
    eq(sorted(map(bytes, replica.call("HGETALL", "timed"))), [b"1", b"2", b"f", b"g"])
    eq(replica.call("EXISTS", "native"), 0)
    eq(repl(master, "sava_repl_native_keys_left_out"), "1")
    rng = context.rng("native")
    with master.client() as client:
        for i in range(300):
            client.call("MULTI")
            client.call("SET", "k%d" % (i % 40), "v%d" % i)
            client.call("AFC.ADD", "native", "m" * rng.randrange(1, 300))
            client.call("HPEXPIRE", "timed", str(10**8 + i), "FIELDS", "1", "g")
            client.call("BF.ADD", "bloom", "e%d" % i)
            client.call("INCR", "n")
            check(not isinstance(client.call("EXEC"), resp.Error), "EXEC")
    caught_up(master, replica)
    eq(replica.call("GET", "n"), b"300")
    eq(replica.call("EXISTS", "native", "bloom"), 0)
    check(b"CRITICAL" not in replica.log(), "the replica was sent what it does not know")
    check(int(repl(master, "sava_repl_native_commands")) >= 900, "they are counted")
    master.call("DEL", "native", "bloom", "timed")
    same_data(master, replica)
    eq(master.log().count(b"keys of native types were left out"), 1, "told once")


# ---- the feed ----


@test(timeout=60)
def published_messages_reach_replicas(context):
    master = master_of(context)
    replica = replica_of(context, master.port)
    link_up(replica)
    with replica.client() as listener, master.client() as client:
        listener.call("SUBSCRIBE", "news")
        for i in range(20):
            client.call("PUBLISH", "news", "m%d" % i)
        for i in range(20):
            eq([bytes(x) for x in listener.reply()], [b"message", b"news", b"m%d" % i])
        client.call("MULTI")
        client.call("SET", "a", "1")
        client.call("PUBLISH", "news", "inside")
        client.call("EXEC")
        eq(bytes(listener.reply()[2]), b"inside")
    same_data(master, replica)


@test(timeout=60)
def pings_keep_a_silent_link_alive(context):
    master = master_of(context, "--repl-ping-replica-period", "1", "--repl-timeout", "60")
    replica = replica_of(context, master.port)
    link_up(replica)
    before = int(repl(master, "master_repl_offset"))
    until(lambda: int(repl(master, "master_repl_offset")) >= before + 28, 20, "two pings")
    caught_up(master, replica)


@test(timeout=60)
def a_replica_that_says_nothing_is_dropped(context):
    master = master_of(context, "--repl-timeout", "2", "--repl-ping-replica-period", "1")
    sock = raw_link(context, master.port)
    sock.sendall(b"PSYNC ? -1\r\n")
    read_copy(sock)
    until(lambda: repl(master, "connected_slaves") == "0", 20, "the end of the replica")
    check(b"Disconnecting timedout replica" in master.log(), "the log says why")


# ---- waiting for replicas ----


@test(timeout=60)
def wait_counts_replicas_that_have_it(context):
    master = master_of(context)
    with master.client() as client:
        client.call("SET", "a", "1")
        eq(client.call("WAIT", "1", "50"), 0, "there is none")
        first = replica_of(context, master.port)
        second = replica_of(context, master.port)
        link_up(first)
        link_up(second)
        until(lambda: repl(master, "connected_slaves") == "2" and "online" in repl(
            master, "slave1"))
        for i in range(20):
            client.call("INCR", "n")
            eq(client.call("WAIT", "2", "10000"), 2)
            eq(first.call("GET", "n"), b"%d" % (i + 1))
            eq(second.call("GET", "n"), b"%d" % (i + 1))
        second.process.send_signal(19)  # SIGSTOP
        try:
            client.call("INCR", "n")
            eq(client.call("WAIT", "2", "300"), 1, "one does not answer")
            eq(client.call("WAIT", "1", "0"), 1)
            client.call("MULTI")
            client.call("INCR", "n")
            client.call("WAIT", "2", "0")
            check(isinstance(client.call("EXEC"), list), "WAIT does not wait in EXEC")
        finally:
            second.process.send_signal(18)  # SIGCONT
        client.call("INCR", "n")
        eq(client.call("WAIT", "2", "20000"), 2)
        eq(client.call("WAITAOF", "0", "0", "100"), [0, 0])
        check(isinstance(client.call("WAITAOF", "1", "0", "100"), resp.Error), "no log")


@test(timeout=60)
def what_waits_for_replicas_evicts_nothing(context):
    """Nor the memory that belongs to it; and a replica that is killed has nothing at once."""
    def memory(field):
        return int(master.info_field(field, "memory"))

    master = master_of(context, "--repl-backlog-size", "10240", "--maxmemory-policy",
                       "allkeys-random", "--latency-tracking", "no")
    for number in range(100):
        master.call("SETRANGE", "k%d" % number, "100000", "x")
    replica = replica_of(context, master.port)
    link_up(replica)
    replica.process.send_signal(19)  # SIGSTOP
    try:
        until(lambda: memory("mem_clients_slaves") < 1000, what="the copy is gone")
        limit = memory("used_memory") - memory("mem_not_counted_for_evict") + (64 << 10)
        eq(master.call("CONFIG", "SET", "maxmemory", str(limit)), resp.OK)
        for _ in range(4000):
            master.call("SETRANGE", "k0", "0", "y" * 4000)
        check(memory("mem_clients_slaves") > 4 << 20, "much waits")
        eq(master.call("DBSIZE"), 100)
        eq(master.call("CLIENT", "KILL", "TYPE", "REPLICA"), 1)
        eq(memory("mem_clients_slaves"), 0)
        eq(master.call("DBSIZE"), 100)
    finally:
        replica.process.send_signal(18)  # SIGCONT


def begin_shutdown(master):
    """Two clients that wait with the server for its replicas."""
    clients = [master.client(), master.client()]
    for client in clients:
        client.send("SHUTDOWN")
    until(lambda: "blocked_clients:2" in master.call("INFO", "clients").decode(), what="they wait")
    return clients


@test(timeout=60)
def an_end_that_waits_can_be_called_off(context):
    """Clients that come meanwhile are served; ABORT is for all that asked, and for signals."""
    refused = resp.Error(b"ERR Errors trying to SHUTDOWN. Check logs.")
    idle = resp.Error(b"ERR No shutdown in progress.")
    master = master_of(context, "--shutdown-timeout", "600")
    replica = replica_of(context, master.port)
    link_up(replica)
    replica.process.send_signal(19)  # SIGSTOP
    try:
        master.call("INCR", "n")
        for attempt in range(3):
            clients = begin_shutdown(master)
            with master.client() as late:
                eq(late.call("SHUTDOWN", "ABORT"), resp.OK, "attempt %d" % attempt)
            for client in clients:
                eq(client.reply(), refused, "attempt %d" % attempt)
                eq(client.call("GET", "n"), b"%d" % (attempt + 1), "attempt %d" % attempt)
            until(lambda: master.call("SHUTDOWN", "ABORT") == idle, what="nothing is under way")
            master.call("INCR", "n")
        told = master.log().count(b"SIGTERM")
        master.process.send_signal(15)
        until(lambda: master.log().count(b"SIGTERM") > told, what="the signal")
        eq(master.call("SHUTDOWN", "ABORT"), resp.OK, "the signal")
    finally:
        replica.process.send_signal(18)  # SIGCONT
    master.call("SET", "n", "last")
    until(lambda: replica.call("GET", "n") == b"last", what="the master goes on")


@test(timeout=60)
def a_first_log_refuses_the_end_at_once(context):
    """It began while the server waited for a replica; the refusal does not wait for it."""
    master = master_of(context, "--shutdown-timeout", "600", "--save", "")
    replica = replica_of(context, master.port)
    link_up(replica)
    replica.process.send_signal(19)  # SIGSTOP
    try:
        for number in range(100):
            master.call("SET", "k%d" % number, b"x" * 1000)
        clients = begin_shutdown(master)
        eq(master.call("CONFIG", "SET", "save-max-rate", "1000", "rdbcompression", "no"), resp.OK)
        eq(master.call("CONFIG", "SET", "appendonly", "yes"), resp.OK)
    finally:
        replica.process.send_signal(18)  # SIGCONT
    for client in clients:
        eq(client.reply(), resp.Error(b"ERR Errors trying to SHUTDOWN. Check logs."))
    check("aof_rewrite_in_progress:1" in master.call("INFO", "persistence").decode(), "it waited")
    clients[0].send("SHUTDOWN", "NOSAVE", "FORCE")
    eq(master.wait_exit(), 0)


@test(timeout=60)
def writes_need_good_replicas(context):
    master = master_of(context, "--min-replicas-to-write", "1", "--min-replicas-max-lag", "2")
    eq(master.call("SET", "a", "1"),
       resp.Error(b"NOREPLICAS Not enough good replicas to write."))
    eq(master.call("GET", "a"), resp.NIL)
    replica = replica_of(context, master.port)
    link_up(replica)
    until(lambda: master.call("SET", "a", "1") == resp.OK, what="writes with a replica")
    eq(repl(master, "min_slaves_good_slaves"), "1")
    replica.process.send_signal(19)
    try:
        until(lambda: isinstance(master.call("SET", "a", "2"), resp.Error), 20, "no good replica")
    finally:
        replica.process.send_signal(18)
    until(lambda: master.call("SET", "a", "3") == resp.OK, 20, "it is good again")
    master.call("CONFIG", "SET", "min-replicas-to-write", "0")
    replica.stop()
    eq(master.call("SET", "a", "4"), resp.OK)


@test(timeout=60)
def the_end_of_the_server_waits_for_replicas(context):
    master = master_of(context)
    replica = replica_of(context, master.port)
    link_up(replica)
    replica.process.send_signal(19)
    try:
        with master.client() as client:
            for i in range(200):
                client.call("SET", "k%d" % i, "x" * 100)
        check(master.info_field("shutdown_in_milliseconds", "server") is None, "it has not begun")
        with master.client() as client:
            client.call("PING")
            master.process.terminate()
            until(lambda: b"shutdown_in_milliseconds:" in client.call("INFO", "server"), LAG,
                  "INFO to say how long it may take")
        replica.process.send_signal(18)
        eq(master.process.wait(LAG), 0)
    finally:
        replica.process.send_signal(18)
    check(b"1 of 1 replicas are in sync" in master.log(), "the log says so")
    eq(replica.call("DBSIZE"), 200, "the replica has everything")


@test(timeout=60)
def clients_that_are_replicas(context):
    master = master_of(context)
    replica = replica_of(context, master.port)
    link_up(replica)
    line = bytes(master.call("CLIENT", "LIST", "TYPE", "replica")).decode()
    check(" flags=S " in line, line)
    eq(master.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") >= 0, True)
    eq(repl(master, "connected_slaves"), "1", "not a normal client")
    partial = int(master.info_field("sync_partial_ok"))
    eq(master.call("CLIENT", "KILL", "TYPE", "replica"), 1)
    until(lambda: int(master.info_field("sync_partial_ok")) == partial + 1, 20, "it comes back")
    same_data(master, replica)


@test(timeout=60)
def what_is_sent_to_replicas_alone(context):
    """DEBUG REPLICATE; and FLUSHDB of a database that is empty here reaches replicas."""
    master = master_of(context)
    replica = replica_of(context, master.port)
    link_up(replica)
    eq(master.call("DEBUG", "REPLICATE", "SET", "there", "only"), resp.OK)
    caught_up(master, replica)
    eq(replica.call("GET", "there"), b"only")
    eq(master.call("DBSIZE"), 0)
    eq(master.call("FLUSHDB"), resp.OK)
    caught_up(master, replica)
    eq(replica.call("DBSIZE"), 0)


@test(timeout=60)
def another_id_means_a_copy(context):
    master = master_of(context)
    replica = replica_of(context, master.port)
    link_up(replica)
    before = repl(master, "master_replid")
    eq(master.call("DEBUG", "CHANGE-REPL-ID"), resp.OK)
    check(repl(master, "master_replid") != before, "the same id")
    eq(repl(master, "master_replid2"), "0" * 40)
    master.call("CLIENT", "KILL", "TYPE", "replica")
    until(lambda: master.info_field("sync_full") == "2", LAG, "a copy")
    same_data(master, replica)


@test(timeout=60)
def traffic_with_replicas_is_counted(context):
    master = master_of(context)
    middle = context.start(*FAST)
    eq(middle.call("REPLICAOF", "127.0.0.1", str(master.port)), resp.OK)
    link_up(middle)

    def number(server, name):
        return float(server.info_field(name, "stats"))

    def moves():
        with master.client() as client:
            client.pipeline([("SET", "k%d" % i, "x" * 1000) for i in range(200)])
        return (number(master, "instantaneous_output_repl_kbps") > 10
                and number(middle, "instantaneous_input_repl_kbps") > 10)

    until(moves, LAG, "rates")
    eq(number(master, "instantaneous_input_repl_kbps"), 0)
    check(number(master, "total_net_repl_output_bytes") > 200000, "bytes out")
    check(number(middle, "total_net_repl_input_bytes") > 200000, "bytes in")
    check(number(middle, "total_net_input_bytes")
          >= number(middle, "total_net_repl_input_bytes"), "of all")
    eq(master.info_field("sync_full"), "1")
    for server in (master, middle):
        eq(server.call("CONFIG", "RESETSTAT"), resp.OK)
    eq(master.info_field("sync_full"), "0")
    check(number(middle, "total_net_repl_input_bytes") < 20000, "bytes in, counted anew")


@test(timeout=60)
def failover_says_what_is_wrong(context):
    master = master_of(context)
    error = [
        (("FAILOVER",), "ERR FAILOVER requires connected replicas."),
        (("FAILOVER", "ABORT"), "ERR No failover in progress."),
        (("FAILOVER", "TIMEOUT", "0"), "ERR FAILOVER timeout must be greater than 0"),
        (("FAILOVER", "TO", "x"), "ERR syntax error"),
    ]
    for words, text in error:
        context.same(master.call(*words), resp.Error(text.encode()), " ".join(words))
    replica = replica_of(context, master.port)
    link_up(replica)
    until(lambda: "online" in repl(master, "slave0"))
    for words, text in (
        (("FAILOVER", "TO", "127.0.0.1", "1"), "ERR FAILOVER target HOST and PORT is not a replica."),
        (("FAILOVER", "FORCE"),
         "ERR FAILOVER with force option requires both a timeout and target HOST and IP."),
    ):
        context.same(master.call(*words), resp.Error(text.encode()), " ".join(words))
    # A replica that does not answer: the time passes, and writes go on.
    replica.process.send_signal(19)
    try:
        master.call("SET", "a", "1")
        eq(master.call("FAILOVER", "TIMEOUT", "300"), resp.OK)
        eq(repl(master, "master_failover_state"), "waiting-for-sync")
        eq(master.call("FAILOVER"), resp.Error(b"ERR FAILOVER already in progress."))
        eq(master.call("SET", "a", "2"), resp.OK, "after the failover was given up")
        eq(repl(master, "master_failover_state"), "no-failover")
        eq(master.call("FAILOVER"), resp.OK)
        eq(master.call("FAILOVER", "ABORT"), resp.OK)
        eq(master.call("SET", "a", "3"), resp.OK)
    finally:
        replica.process.send_signal(18)
    same_data(master, replica)


@test(timeout=90)
def what_memory_did_not_suffice_for_is_copied(context):
    """A command that was half done when memory ended is in no stream: the replica gets a copy."""
    context.no_sanitizer("a sanitizer needs the address space itself")
    master = master_of(context)
    replica = replica_of(context, master.port)
    link_up(replica)
    with master.client() as client:
        client.call("SET", "kept", "1")
        caught_up(master, replica)
        # All but the last bytes are read while there is memory.
        elements = [b"%04d" % i + b"x" * 20000 for i in range(2000)]
        command = resp.encode("RPUSH", "list", *elements)
        client.raw(command[:-2])
        until(lambda: int(master.info_field("mem_clients_normal", "memory")) > 30 << 20, 20, "all")
        with open("/proc/%d/status" % master.process.pid) as lines:
            size = next(int(line.split()[1]) for line in lines if line.startswith("VmSize"))
        room = (size << 10) + (12 << 20)
        resource.prlimit(master.process.pid, resource.RLIMIT_AS, (room, -1))
        client.raw(command[-2:])
        reply = client.reply()
        resource.prlimit(master.process.pid, resource.RLIMIT_AS, (-1, -1))
        check(resp.is_error(reply, "OOM"), resp.show(reply)[:100])
    until(lambda: int(master.info_field("sync_full", "stats")) == 2, LAG, "a second copy")
    master.call("SET", "after", "1")
    same_data(master, replica)
