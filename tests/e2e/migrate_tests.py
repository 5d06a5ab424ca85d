"""MIGRATE: keys on their way to another server, Sava or Redis, and what happens when they do not
arrive there."""

import os
import signal
import socket
import threading
import time

import native_data
import resp
from harness import check, eq, free_port, test, until
from replica_tests import fill

READING = "IOERR error or timeout reading to target instance"
WRITING = "IOERR error or timeout writing to target instance"


def to(target, *words):
    return ("MIGRATE", "127.0.0.1", str(target.port)) + words


def names(client):
    return sorted(client.call("KEYS", "*"))


def digests(client, keys):
    return client.call("DEBUG", "DIGEST-VALUE", *keys)


def error(reply, text):
    check(resp.is_error(reply) and bytes(reply).decode() == text,
          "expected the error %r, got %s" % (text, resp.show(reply)))


@test()
def errors_as_redis_has_them(context):
    """Every call in turn to a stock server and to Sava; both have the same keys and targets."""
    context.sava_only()
    target = context.start_stock("--requirepass", "secret")
    closed = str(free_port())
    port = str(target.port)
    good = ("127.0.0.1", port)
    calls = [
        ("MIGRATE",),
        ("MIGRATE", *good, "k", "0"),
        ("MIGRATE", *good, "missing", "0", "100"),
        ("MIGRATE", *good, "", "0", "100", "KEYS"),
        ("MIGRATE", *good, "", "0", "100", "KEYS", "missing", "missing2"),
        ("MIGRATE", *good, "k", "0", "100", "KEYS", "k"),
        ("MIGRATE", *good, "k", "0", "100", "NONSENSE"),
        ("MIGRATE", *good, "k", "0", "100", "COPY", "REPLACE", "AUTH"),
        ("MIGRATE", *good, "k", "0", "100", "AUTH2", "user"),
        ("MIGRATE", *good, "k", "zero", "100"),
        ("MIGRATE", *good, "k", "0", "soon"),
        ("MIGRATE", *good, "k", "zero", "soon", "NONSENSE"),
        ("MIGRATE", *good, "missing", "zero", "100"),
        ("MIGRATE", "127.0.0.1", closed, "k", "0", "100"),
        ("MIGRATE", "127.0.0.1", closed, "missing", "0", "100"),
        ("MIGRATE", "no.such.host.invalid", port, "k", "0", "100"),
        ("MIGRATE", "127.0.0.1", "port", "k", "0", "100"),
        ("MIGRATE", *good, "k", "0", "1000"),
        ("MIGRATE", *good, "k", "0", "1000", "AUTH", "wrong"),
        ("MIGRATE", *good, "k", "0", "1000", "AUTH2", "nobody", "secret"),
        ("MIGRATE", *good, "k", "99", "1000", "AUTH", "secret"),
        ("MIGRATE", *good, "k", "0", "1000", "AUTH", "secret", "COPY"),
        ("MIGRATE", *good, "k", "0", "1000", "AUTH", "secret"),
        ("MIGRATE", *good, "k", "0", "0", "AUTH", "secret", "replace", "copy"),
        ("MIGRATE", *good, "k", "0", "-5", "AUTH2", "default", "secret", "REPLACE"),
        ("MIGRATE", *good, "k", "0", "100"),
        ("EXISTS", "k"),
        ("COMMAND", "GETKEYS", "MIGRATE", *good, "k", "0", "100", "COPY"),
        ("COMMAND", "GETKEYS", "MIGRATE", *good, "", "0", "100", "COPY", "KEYS", "a", "b"),
    ]
    answers = []
    for server in (context.start_stock(), context.start()):
        admin = context.client(target)
        admin.call("AUTH", "secret")
        admin.call("FLUSHALL")
        client = context.client(server)
        client.call("SET", "k", "value")
        given = []
        for words in calls:
            given.append(client.call(*words))
            if "99" in words:
                # Redis sends everything at once: the key comes to be in database 0 of the target.
                eq(admin.call("DEL", "k"), 1 if server.stock else 0)
        answers.append(given)
        eq(admin.call("GET", "k"), b"value")
    for words, stock, sava in zip(calls, *answers):
        context.same(sava, stock, " ".join(words))
    kinds = {bytes(a).split()[0] for a in answers[1] if resp.is_error(a)}
    eq(kinds, {b"ERR", b"IOERR"})


@test(timeout=60)
def all_stock_types_both_ways(context):
    """Sava to Redis to Sava: the same values, and none left behind."""
    context.sava_only()
    here, stock, back = context.start(), context.start_stock(), context.start()
    one, two, three = (context.client(server) for server in (here, stock, back))
    fill(here, 60)
    one.call("SET", "timed", "x", "PX", "500000")
    keys = names(one)
    check(len(keys) > 20, "too few keys: %d" % len(keys))
    before = digests(one, keys)
    eq(one.call(*to(stock, "", "0", "5000", "KEYS"), *keys), resp.OK)
    eq(names(one), [])
    eq(names(two), keys)
    eq(digests(two, keys), before)
    check(490000 < two.call("PTTL", "timed") <= 500000, "the time to live did not travel")
    eq(two.call(*to(back, "", "3", "5000", "KEYS"), *keys), resp.OK)
    three.call("SELECT", "3")
    eq(names(three), keys)
    eq(digests(three, keys), before)
    check(480000 < three.call("PTTL", "timed") <= 500000, "the time to live did not travel back")


@test()
def copy_and_replace(context):
    context.sava_only()
    target = context.start_stock()
    client, other = context.client(context.start()), context.client(target)
    client.call("SET", "a", "1")
    client.call("SET", "b", "2")
    eq(client.call(*to(target, "a", "0", "1000", "COPY")), resp.OK)
    eq(client.call("GET", "a"), b"1")
    other.call("SET", "b", "other")
    # One is refused: the other goes, as on Redis.
    client.call("SET", "c", "3")
    error(client.call(*to(target, "", "0", "1000", "KEYS", "b", "missing", "c")),
          "ERR Target instance replied with error: BUSYKEY Target key name already exists.")
    eq(names(client), [b"a", b"b"])
    eq(other.call("GET", "c"), b"3")
    eq(client.call(*to(target, "", "0", "1000", "REPLACE", "KEYS", "a", "b")), resp.OK)
    eq(other.call("GET", "b"), b"2")
    eq(names(client), [])


@test()
def passwords(context):
    context.sava_only()
    for start in (context.start, context.start_stock):
        target, server = start(), context.start()
        client, other = context.client(server), context.client(target)
        other.call("ACL", "SETUSER", "mover", "on", ">word", "~*", "+@all")
        other.call("ACL", "SETUSER", "default", "resetpass", ">main")
        client.call("CONFIG", "SET", "slowlog-log-slower-than", "0")
        for words in (("AUTH", "main"), ("AUTH2", "mover", "word")):
            client.call("SET", "k", "v")
            eq(client.call(*to(target, "k", "0", "1000", "REPLACE", *words)), resp.OK)
            eq(other.call("GETDEL", "k"), b"v")
        shown = resp.show(client.call("SLOWLOG", "GET", "50"), 100000)
        check("(redacted)" in shown and "word" not in shown.replace("slower", ""), shown)


@test(timeout=90)
def others_go_on_while_a_large_key_travels(context):
    """50 MB to a target that takes its time: PING is answered, and so are writes to other keys."""
    context.sava_only()
    server, target = context.start(threads=1), context.start_stock()
    client, other = context.client(server, timeout=60), context.client(server)
    item = "x" * 50000
    for _ in range(10):
        client.call("RPUSH", "large", *[item] * 100)
    before = digests(client, ["large"])
    os.kill(target.process.pid, signal.SIGSTOP)
    done = []
    mover = threading.Thread(
        target=lambda: done.append(client.call(*to(target, "large", "0", "40000"))))
    mover.start()
    until(lambda: b"cmd=migrate" in other.call("CLIENT", "LIST"), what="MIGRATE to be under way")
    for number in range(200):
        eq(other.call("PING"), resp.PONG)
        eq(other.call("SET", "counter", str(number)), resp.OK)
    eq(other.call("LLEN", "large"), 1000)
    check(not done, "MIGRATE did not wait for its target")
    os.kill(target.process.pid, signal.SIGCONT)
    mover.join(60)
    eq(done, [resp.OK])
    eq(other.call("EXISTS", "large"), 0)
    eq(digests(context.client(target), ["large"]), before)


class Stopped:
    """A call of MIGRATE whose target is stopped, so that it is on its way until go_on()."""

    def __init__(self, context, client, target, *words):
        self.target = target
        os.kill(target.process.pid, signal.SIGSTOP)
        context.at_end(self.go_on)
        self.replies = []
        self.thread = threading.Thread(
            target=lambda: self.replies.append(client.call(*to(target, *words))))
        self.thread.start()

    def go_on(self):
        if self.target.process.poll() is None:
            os.kill(self.target.process.pid, signal.SIGCONT)

    def reply(self):
        self.thread.join(30)
        check(self.replies, "MIGRATE was not answered")
        return self.replies[0]


def on_its_way(client):
    until(lambda: b"cmd=migrate" in client.call("CLIENT", "LIST"), what="MIGRATE to be under way")


@test(timeout=60)
def what_changes_on_the_way_stays(context):
    """A write to a travelling key is not lost: the key stays, and the reply says so."""
    context.sava_only()
    server, target = context.start("--appendonly", "yes"), context.start_stock()
    client, other = context.client(server), context.client(server)
    for change in (("RPUSH", "k", "new"), ("PEXPIRE", "k", "100000"), ("DEL", "k"),
                   ("COPY", "same", "k", "REPLACE"), ("FLUSHALL",)):
        context.client(target).call("FLUSHALL")
        for key in ("k", "same"):
            client.call("DEL", key)
            client.call("RPUSH", key, "a", "b")
        call = Stopped(context, client, target, "", "0", "20000", "KEYS", "k", "same")
        on_its_way(other)
        check(not resp.is_error(other.call(*change)), resp.show(change))
        now = other.call("LRANGE", "k", "0", "-1")
        call.go_on()
        reply = call.reply()
        check(resp.is_error(reply, "ERR") and b"were changed while they travelled" in reply,
              "%s: %s" % (change[0], resp.show(reply)))
        eq(other.call("LRANGE", "k", "0", "-1"), now, change[0])
        eq(other.call("EXISTS", "same"), 0, "what did not change went")
        eq(context.client(target).call("LRANGE", "k", "0", "-1"), [b"a", b"b"])
    # Again, and nothing is in the way of later migrations.
    client.call("RPUSH", "k", "last")
    eq(client.call(*to(target, "k", "0", "5000", "REPLACE")), resp.OK)
    eq(names(client), [])


@test(timeout=60)
def a_client_that_leaves(context):
    """Hung up, unblocked, or the server became a replica: the keys stay, and can be moved later."""
    context.sava_only()
    server, target = context.start(), context.start_stock()
    watching = context.client(server)
    for leave in ("KILL", "UNBLOCK", "REPLICAOF"):
        client = context.client(server)
        number = str(client.call("CLIENT", "ID"))
        client.call("SET", "k", "v")
        os.kill(target.process.pid, signal.SIGSTOP)
        client.send(*to(target, "k", "0", "20000", "REPLACE"))
        on_its_way(watching)
        if leave == "KILL":
            watching.call("CLIENT", "KILL", "ID", number)
        elif leave == "UNBLOCK":
            eq(watching.call("CLIENT", "UNBLOCK", number), 1)
            check(resp.is_null(client.reply()), "an answer")
        else:
            eq(watching.call("REPLICAOF", "127.0.0.1", str(free_port())), resp.OK)
            check(resp.is_error(client.reply(), "UNBLOCKED"), "an answer")
            eq(watching.call("REPLICAOF", "NO", "ONE"), resp.OK)
        until(lambda: b"stay here" in server.log(), what="the log's line on " + leave)
        os.kill(target.process.pid, signal.SIGCONT)
        eq(watching.call("GET", "k"), b"v")
        eq(watching.call(*to(target, "k", "0", "5000", "REPLACE")), resp.OK)
        eq(watching.call("EXISTS", "k"), 0)
        server = context.start()
        watching = context.client(server)


@test(timeout=60)
def targets_that_hang_or_die(context):
    context.sava_only()
    server, target = context.start(), context.start()
    client, other = context.client(server), context.client(server)
    client.call("SET", "k", "v")
    # One that accepts and says nothing.
    silent = socket.socket()
    context.at_end(silent.close)
    silent.bind(("127.0.0.1", 0))
    silent.listen(4)
    deaf = ("MIGRATE", "127.0.0.1", str(silent.getsockname()[1]), "k", "0")
    error(client.call(*deaf, "300"), READING)
    eq(client.call("GET", "k"), b"v")
    # One that dies on the way.
    call = Stopped(context, client, target, "k", "0", "20000")
    on_its_way(other)
    target.process.kill()
    reply = call.reply()
    check(resp.is_error(reply, "IOERR error or timeout"), resp.show(reply))
    eq(client.call("GET", "k"), b"v")
    error(client.call(*to(target, "k", "0", "300")), WRITING)
    # The server ends while one is under way.
    client.send(*deaf, "30000")
    on_its_way(other)
    eq(server.stop(), 0)


@test(timeout=60)
def native_types(context):
    """To another Sava with their digests; a stock server refuses them, and nothing is lost."""
    context.sava_only()
    server, target, stock = context.start(), context.start(), context.start_stock()
    client = context.client(server)
    for words in native_data.commands("m:", 3, 100):
        check(not resp.is_error(client.call(*words)), resp.show(words, 200))
    before, keys = native_data.digests(client), names(client)
    error(client.call(*to(stock, "", "0", "5000", "KEYS"), *keys),
          "ERR Target instance replied with error: ERR Bad data format")
    # What is kept as a stock type has gone there; it comes back.
    away, other = sorted(set(keys) - set(names(client))), context.client(stock)
    eq(names(other), away)
    check(len(away) < len(keys), "nothing was refused")
    if away:
        eq(other.call(*to(server, "", "0", "5000", "KEYS"), *away), resp.OK)
    eq(native_data.digests(client), before)
    eq(client.call(*to(target, "", "0", "5000", "KEYS"), *keys), resp.OK)
    eq(names(client), [])
    eq(native_data.digests(context.client(target)), before)


@test()
def effects_are_deletions(context):
    """The log, replicas and subscribers see a DEL, also of transactions and scripts."""
    context.sava_only()
    server, target = context.start("--appendonly", "yes", "--notify-keyspace-events", "KEA"), \
        context.start_stock()
    client, listener = context.client(server), context.client(server)
    listener.call("PSUBSCRIBE", "__keyevent@*__:del")
    for key in ("a", "b", "c", "d", "e"):
        client.call("SET", key, "1")
    eq(client.call(*to(target, "", "0", "1000", "KEYS", "a", "missing", "b")), resp.OK)
    eq([bytes(listener.reply()[3]) for _ in range(2)], [b"a", b"b"])
    eq(client.call(*to(target, "a", "0", "1000")), resp.Status(b"NOKEY"))
    client.call("MULTI")
    client.call(*to(target, "c", "0", "1000"))
    client.call(*to(target, "a", "0", "1000"))
    client.call("INCR", "kept")
    eq(client.call("EXEC"), [resp.OK, resp.Status(b"NOKEY"), 1])
    reply = client.call("EVAL", "return redis.call('migrate','127.0.0.1',ARGV[1],KEYS[1],0,1000)",
                        "1", "d", str(target.port))
    eq(reply, resp.OK)
    eq([bytes(listener.reply()[3]) for _ in range(2)], [b"c", b"d"])
    # A target that does not answer: the keys stay, and the transaction goes on.
    silent = socket.create_server(("127.0.0.1", 0))
    context.at_end(silent.close)
    client.call("MULTI")
    client.call("MIGRATE", "127.0.0.1", str(silent.getsockname()[1]), "e", "0", "50")
    client.call("INCR", "kept")
    failed, kept = client.call("EXEC")
    error(failed, READING)
    eq(kept, 2)
    with target.client() as there:
        eq(names(there), [b"a", b"b", b"c", b"d"])
    logged = b"".join(open(os.path.join(folder, name), "rb").read()
                      for folder, _, files in os.walk(server.dir) for name in files
                      if ".incr." in name)
    check(resp.encode("DEL", "a", "b") in logged, "no DEL in the log: %r" % logged[-300:])
    check(b"MIGRATE" not in logged.upper(), "MIGRATE is in the log")
    eq(client.call("DEBUG", "LOADAOF"), resp.OK)
    eq(names(client), [b"e", b"kept"])


@test()
def over_tls(context):
    """tls-replication: the connection to the target is encrypted, and its certificate is checked."""
    from tls_tests import authority, tls_server

    context.sava_only()
    ca = authority(context)
    server = tls_server(context, ca, "--tls-replication", "yes")
    target = tls_server(context, ca)
    client = context.client(server)
    client.call("SET", "plain", "x" * 3000000)
    client.call("SET", "other", "1")
    words = ("MIGRATE", "127.0.0.1", str(target.tls_port))
    eq(client.call(*words, "plain", "0", "5000"), resp.OK)
    # Whoever speaks no TLS is no target; nor is one for a server that does not speak it.
    stock = context.start_stock()
    reply = client.call("MIGRATE", "127.0.0.1", str(stock.port), "other", "0", "1000")
    check(resp.is_error(reply, "IOERR"), resp.show(reply))
    eq(client.call("CONFIG", "SET", "tls-replication", "no"), resp.OK)
    reply = client.call(*words, "other", "0", "1000")
    check(resp.is_error(reply, "IOERR"), resp.show(reply))
    eq(client.call("MIGRATE", "127.0.0.1", str(stock.port), "other", "0", "1000"), resp.OK)
    eq(names(client), [])


@test()
def users_need_their_rights(context):
    context.sava_only()
    server, target = context.start(), context.start_stock()
    client = context.client(server)
    client.call("MSET", "mine", "1", "other", "2")
    client.call("ACL", "SETUSER", "u", "on", "nopass", "+migrate", "~mine")
    client.call("AUTH", "u", "x")
    for keys in (("other",), ("mine", "other")):
        reply = client.call(*to(target, "", "0", "1000", "KEYS"), *keys)
        check(resp.is_error(reply, "NOPERM"), resp.show(reply))
    eq(client.call(*to(target, "", "0", "1000", "KEYS", "mine")), resp.OK)


@test(timeout=90)
def no_write_is_lost_or_doubled(context):
    """Lists are moved again and again while two clients push to them: every element that was
    acknowledged is found once, in what has arrived or in what has stayed."""
    context.sava_only()
    server, target = context.start(), context.start_stock()
    mover, there = context.client(server), context.client(target)
    lists = ["list%d" % i for i in range(8)]
    pushed, over = [], threading.Event()

    def push(name):
        rng, number = context.rng("push%d" % name), 0
        with server.client() as client:
            while not over.is_set():
                number += 1
                item = "%d:%d" % (name, number)
                check(not resp.is_error(client.call("RPUSH", rng.choice(lists), item)), "RPUSH")
                pushed.append(item.encode())
                time.sleep(rng.choice((0, 0, 0.0005)))

    writers = [threading.Thread(target=push, args=(name,)) for name in range(2)]
    context.at_end(over.set)
    for writer in writers:
        writer.start()
    arrived, moved, stayed = [], 0, 0
    for number in range(3000):
        name = lists[number % 8]
        reply = mover.call(*to(target, name, "0", "5000"))
        if resp.is_error(reply):  # the target has an old copy of what stayed
            check(b"were changed while they travelled" in reply, resp.show(reply))
            stayed += 1
        elif reply == resp.OK:
            arrived += there.call("LRANGE", name, "0", "-1")
            moved += 1
        there.call("FLUSHALL")
        if moved >= 100 and stayed >= 20:
            break
    over.set()
    for writer in writers:
        writer.join(20)
    for name in lists:
        arrived += mover.call("LRANGE", name, "0", "-1")
    context.say("%d elements, %d calls moved all, %d did not" % (len(pushed), moved, stayed))
    eq(len(arrived), len(set(arrived)), "elements that are there twice")
    eq(sorted(arrived), sorted(pushed))
    check(stayed > 0, "no key changed on its way")
