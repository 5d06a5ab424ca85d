"""Lists, SORT and HyperLogLog beside stock Redis: random walks, payloads, events, encodings.

Replies and error texts are in cases/lists.txt, cases/sort.txt and cases/hyperloglog.txt.
"""

import os
import random
import re
import shutil
import time

import resp
from harness import check, eq, test, until

WALK = 4000
ELEMENTS = [b"", b"a", b"12", b"-7", b"007", b"300", b"70000", b"x" * 63, b"y" * 64, b"4294967296"]


# ---- random walks ----


class Walk:
    """Random commands over a few lists, which grow over and shrink under the limits of blocks."""

    def __init__(self, rng):
        self.rng = rng
        self.growing = True
        self.big = 0.01

    def element(self):
        rng = self.rng
        kind = rng.random()
        if kind < 0.4:
            return rng.choice(ELEMENTS)
        if kind < 0.6:
            return str(rng.randrange(-(1 << rng.randrange(1, 63)), 1 << rng.randrange(1, 63))).encode()
        if kind < 0.6 + self.big:
            # No zero bytes: SORT ALPHA of Redis ends its comparison there.
            return bytes([rng.randrange(1, 256)]) * rng.randrange(4000, 20000)
        return b"e%d" % rng.randrange(30) * rng.randrange(1, 12)

    def index(self):
        return self.rng.choice([0, -1, 1, -2, self.rng.randrange(-900, 900)])

    def command(self):
        rng = self.rng
        key = rng.choice(["l1", "l2", "l3"])
        if rng.random() < 0.002:
            self.growing = not self.growing
        push = [rng.choice(["LPUSH", "RPUSH"]), key] + [
            self.element() for _ in range(rng.randrange(1, 30))
        ]
        pop = [rng.choice(["LPOP", "RPOP"]), key, rng.randrange(1, 30)]
        choice = rng.random()
        if choice < 0.35:
            return push if self.growing == (rng.random() < 0.8) else pop
        return rng.choice(
            [
                lambda: ["LPUSH", key, self.element()],
                lambda: ["RPUSHX", key, self.element(), self.element()],
                lambda: [rng.choice(["LPOP", "RPOP"]), key],
                lambda: ["LLEN", key],
                lambda: ["LRANGE", key, self.index(), self.index()],
                lambda: ["LINDEX", key, self.index()],
                lambda: ["LSET", key, self.index(), self.element()],
                lambda: ["LINSERT", key, rng.choice(["BEFORE", "AFTER"])]
                + [self.element(), self.element()],
                lambda: ["LREM", key, rng.randrange(-3, 4), self.element()],
                lambda: ["LPOS", key, self.element(), "RANK", rng.choice([1, 2, -1, -2])]
                + ["COUNT", rng.randrange(3), "MAXLEN", rng.choice([0, 10, 500])],
                lambda: ["LTRIM", key, rng.randrange(5), -1 - rng.randrange(5)],
                lambda: ["LMOVE", key, rng.choice(["l1", "l2", "l3"])]
                + [rng.choice(["LEFT", "RIGHT"]), rng.choice(["LEFT", "RIGHT"])],
                lambda: ["LMPOP", 2, key, "l3", rng.choice(["LEFT", "RIGHT"]), "COUNT", 3],
                lambda: ["SORT", key, "ALPHA", "LIMIT", 0, 5],
                lambda: ["SORT", key, "ALPHA", "STORE", "l3"],
                lambda: ["COPY", key, "copy", "REPLACE"],
                lambda: ["LRANGE", "copy", 0, -1],
            ]
        )()


def swap(context, walker, key):
    """Each server restores the other's payload; both must hold the same list afterwards."""
    stock, sut = walker
    payloads = [client.call("DUMP", key) for client in (stock, sut)]
    eq(resp.is_null(payloads[0]), resp.is_null(payloads[1]), "DUMP " + key)
    if resp.is_null(payloads[0]):
        return
    for client, payload in ((stock, payloads[1]), (sut, payloads[0])):
        eq(client.call("RESTORE", key, "0", payload, "REPLACE"), resp.OK)
    context.same(sut.call("LRANGE", key, "0", "-1"), stock.call("LRANGE", key, "0", "-1"), key)


def run_walk(context, name, steps, **settings):
    rng = context.rng(name)
    stock, sut = context.pair(proto=rng.choice([2, 3]))
    for client in (stock, sut):
        eq(client.call("FLUSHALL"), resp.OK)
        for setting, value in settings.items():
            eq(client.call("CONFIG", "SET", setting.replace("_", "-"), str(value)), resp.OK)
    walk = Walk(rng)
    try:
        for step in range(steps):
            if step % 250 == 249:
                for key in ("l1", "l2", "l3"):
                    swap(context, (stock, sut), key)
            command = [a if isinstance(a, bytes) else str(a).encode() for a in walk.command()]
            expected, actual = stock.call(*command), sut.call(*command)
            if expected != actual:
                text = b" ".join(command)[:300].decode("latin-1")
                return context.note(
                    "step %d: %s\n    stock %s\n    sut   %s"
                    % (step, text, resp.show(expected, 400), resp.show(actual, 400))
                )
    finally:
        for client in (stock, sut):
            client.call("CONFIG", "SET", "list-max-listpack-size", "-2")
            client.call("FLUSHALL")


@test(timeout=200.0)
def lists_walk_like_redis(context):
    deadline = time.monotonic() + min(context.options.seconds, 120.0)
    turn = 0
    while not context.notes and (turn == 0 or time.monotonic() < deadline):
        run_walk(context, "lists, turn %d" % turn, WALK)
        turn += 1


@test(timeout=60.0)
def lists_walk_with_other_limits(context):
    run_walk(context, "lists 3", WALK // 2, list_max_listpack_size=3)
    run_walk(context, "lists -1", WALK // 2, list_max_listpack_size=-1)


# ---- encodings: Redis 7.2's, which the stock server here does not have ----


def encoding(client, key="l"):
    return client.call("OBJECT", "ENCODING", key)


@test()
def a_list_is_a_listpack_or_a_quicklist(context):
    context.sava_only("Redis 7.0 calls every list a quicklist")
    client = context.client()
    client.call("FLUSHALL")
    with context.sut.configured(list_max_listpack_size="3"):
        client.call("RPUSH", "l", "a", "b", "c")
        eq(encoding(client), b"listpack")
        client.call("RPUSH", "l", "d")
        eq(encoding(client), b"quicklist")
        client.call("RPOP", "l", "3")
        eq(encoding(client), b"listpack")
        client.call("RPUSH", "l", "a", "a", "a")
        eq(encoding(client), b"quicklist")
        client.call("LREM", "l", "3", "a")
        eq(encoding(client), b"listpack")
        client.call("DEL", "l")
        client.call("RPUSH", "l", "a", "b", "c", "d")
        client.call("LTRIM", "l", "1", "1")
        eq(encoding(client), b"listpack")
        client.call("LSET", "l", "0", "x" * 8192)
        eq(encoding(client), b"quicklist")
        client.call("LSET", "l", "0", "x")
        eq(encoding(client), b"listpack")
        eq(client.call("DEBUG", "LISTPACK", "l"), resp.Status(b"Listpack structure printed on stdout"))
    with context.sut.configured(list_max_listpack_size="-2"):
        client.call("DEL", "l")
        client.call("RPUSH", "l", "x" * 8185)
        eq(encoding(client), b"listpack")
        client.call("RPUSH", "l", "y")
        eq(encoding(client), b"quicklist")
        eq(client.call("DEBUG", "RELOAD"), resp.OK)
        eq(encoding(client), b"quicklist")
        client.call("LPOP", "l")
        eq(encoding(client), b"listpack")
        eq(client.call("DEBUG", "RELOAD"), resp.OK)
        eq(encoding(client), b"listpack")
        client.call("DEL", "l")


# ---- events ----


@test()
def events_of_lists(context):
    commands = [
        ("RPUSH", "l", "a", "b", "c"),
        ("LPUSH", "l", "x"),
        ("LPUSHX", "l", "y"),
        ("RPUSHX", "none", "y"),
        ("LSET", "l", "0", "z"),
        ("LINSERT", "l", "BEFORE", "z", "w"),
        ("LINSERT", "l", "BEFORE", "nothing", "w"),
        ("LREM", "l", "1", "w"),
        ("LREM", "l", "1", "nothing"),
        ("LTRIM", "l", "0", "-2"),
        ("LTRIM", "l", "0", "-1"),
        ("LPOP", "l"),
        ("RPOP", "l", "1"),
        ("LMOVE", "l", "m", "LEFT", "RIGHT"),
        ("RPOPLPUSH", "m", "m"),
        ("LMOVE", "m", "l", "LEFT", "LEFT"),
        ("LMPOP", "2", "none", "l", "LEFT", "COUNT", "10"),
        ("RPUSH", "l", "2", "1"),
        ("SORT", "l", "STORE", "d"),
        ("SORT", "none", "STORE", "d"),
        ("LTRIM", "l", "5", "6"),
        ("PFADD", "h", "a"),
        ("PFADD", "h", "a"),
        ("PFMERGE", "g", "h"),
        ("PFCOUNT", "h"),
    ]
    seen = []
    for server in (context.stock, context.sut):
        with server.configured(notify_keyspace_events="KEA"):
            client, listener = context.client(server), context.client(server)
            client.call("FLUSHALL")
            listener.call("PSUBSCRIBE", "__keyevent*")
            for command in commands:
                client.call(*command)
            client.call("SET", "end", "1")
            events = []
            while not events or events[-1] != (b"__keyevent@0__:set", b"end"):
                message = listener.reply()
                events.append((message[2], message[3]))
            seen.append(events)
            client.call("FLUSHALL")
    eq(seen[1], seen[0])


# ---- estimators ----


@test(timeout=60.0)
def estimators_have_the_bytes_of_redis(context):
    rng = context.rng("estimators")
    stock, sut = context.pair()
    for client in (stock, sut):
        client.call("FLUSHALL")
    for step in range(1200):
        keys = [b"h%d" % rng.randrange(6) for _ in range(3)]
        kind = rng.random()
        if kind < 0.8:
            elements = [b"%d" % rng.randrange(100000) for _ in range(rng.randrange(1, 40))]
            command = [b"PFADD", keys[0]] + elements
        elif kind < 0.9:
            command = [b"PFCOUNT"] + keys[: rng.randrange(1, 4)]
        elif kind < 0.97:
            command = [b"PFMERGE"] + keys
        else:
            command = [b"DEL", keys[0]]
        eq(sut.call(*command), stock.call(*command), "step %d" % step)
        eq(sut.call("GET", keys[0]), stock.call("GET", keys[0]), "bytes after step %d" % step)
    forms = [sut.call("PFDEBUG", "ENCODING", b"h%d" % i) for i in range(6)]
    check(resp.Status(b"dense") in forms, "no estimator became dense: %r" % forms)
    eq(sut.call("PFDEBUG", "GETREG", "h0"), stock.call("PFDEBUG", "GETREG", "h0"))
    eq(sut.call("PFSELFTEST"), resp.OK)


@test()
def the_length_of_sparse_estimators_is_a_setting(context):
    stock, sut = context.pair()
    for limit in ("0", "100", "16000"):
        with context.stock.configured(hll_sparse_max_bytes=limit):
            with context.sut.configured(hll_sparse_max_bytes=limit):
                for client in (stock, sut):
                    client.call("DEL", "h")
                for i in range(300):
                    for client in (stock, sut):
                        client.call("PFADD", "h", "element %d" % (i * i))
                    eq(sut.call("GET", "h"), stock.call("GET", "h"), "%s, %d" % (limit, i))


# ---- SORT ----


@test(timeout=60.0)
def sorting_is_that_of_redis(context):
    rng = context.rng("sort")
    stock, sut = context.pair()
    for client in (stock, sut):
        client.call("FLUSHALL")
        for i in range(40):
            client.call("HSET", "h%d" % i, "f", str(i * 7919 % 1000), "g", "text %d" % (i * 31 % 17))
            if i % 3:
                client.call("SET", "w%d" % i, str((i * 37) % 50 / 4))
    for step in range(600):
        members = [str(rng.randrange(40)) for _ in range(rng.randrange(1, 40))]
        command = ["SORT", "k"]
        kind = rng.randrange(3)
        make = [
            ["RPUSH", "k"] + members,
            ["SADD", "k"] + members,
            ["ZADD", "k"] + [a for i, m in enumerate(dict.fromkeys(members)) for a in (str(i), m)],
        ][kind]
        for client in (stock, sut):
            client.call("DEL", "k")
            client.call(*make)
        if rng.random() < 0.6:
            command += ["BY", rng.choice(["w*", "h*->f"] + (["nosort"] if kind != 1 else []))]
        if rng.random() < 0.5:
            command += ["LIMIT", str(rng.randrange(-2, 20)), str(rng.randrange(-1, 20))]
        for _ in range(rng.randrange(3)):
            command += ["GET", rng.choice(["#", "w*", "h*->g", "h*->none", "none*"])]
        if rng.random() < 0.5:
            command += ["DESC"]
        if rng.random() < 0.3:
            command += ["STORE", "d"]
        if rng.random() < 0.3 and "BY" not in command:
            command += ["ALPHA"]
        eq(sut.call(*command), stock.call(*command), "step %d: %s" % (step, " ".join(command)))
        eq(sut.call("LRANGE", "d", "0", "-1"), stock.call("LRANGE", "d", "0", "-1"))


# ---- the log ----


@test(timeout=60.0)
def a_log_of_lists_is_replayed_by_both(context):
    context.sava_only("the log of the server under test goes to the stock one")
    server = context.start("--appendonly", "yes", "--appendfsync", "always")
    client = context.client(server)
    rng = context.rng("log")
    walk = Walk(rng)
    for _ in range(500):
        client.call(*[a if isinstance(a, bytes) else str(a).encode() for a in walk.command()])
        client.call("PFADD", "h", "%d" % rng.randrange(1000))
        if rng.random() < 0.1:
            client.call("PFCOUNT", "h")
            client.call("PFMERGE", "g", "h")
    lists = [client.call("LRANGE", key, "0", "-1") for key in ("l1", "l2", "l3", "copy")]
    estimators = [client.call("GET", key) for key in ("h", "g")]
    check(any(lists), "nothing is left to compare")
    digest = client.call("DEBUG", "DIGEST")
    eq(client.call("DEBUG", "LOADAOF"), resp.OK)
    eq(client.call("DEBUG", "DIGEST"), digest)
    folder = os.path.join(context.temp_dir(), "data")
    shutil.copytree(server.dir, folder)
    stock = context.client(context.start_stock("--dir", folder, "--appendonly", "yes"))
    eq([stock.call("LRANGE", key, "0", "-1") for key in ("l1", "l2", "l3", "copy")], lists)
    eq([stock.call("GET", key) for key in ("h", "g")], estimators)


# ---- dictionary-encoded blocks ----


def long_value(rng, few):
    return b"a long value of which there are few: %d" % rng.randrange(few)


def repetitive(rng, server, few=12):
    """A list and a stream of many blocks, made by commands that all change something else."""
    with server.client() as client:
        commands = []
        for _ in range(150):
            push = rng.choice(("LPUSH", "RPUSH"))
            commands.append((push, "l", *[long_value(rng, few) for _ in range(20)]))
            commands.append(("RPOP", "l", rng.randrange(8)))
            if rng.random() < 0.2:
                commands.append(("LREM", "l", rng.choice((1, -1, 2)), long_value(rng, few)))
                commands.append(("LSET", "l", rng.randrange(5), long_value(rng, few)))
                commands.append(("LINSERT", "l", "BEFORE", long_value(rng, few), "inserted"))
            commands.append(("LPOS", "l", long_value(rng, few), "COUNT", 7))
            commands.append(("LRANGE", "l", rng.randrange(-900, 900), rng.randrange(-900, 900)))
        for number in range(1, 3000):
            commands.append(("XADD", "x", "%d-1" % number, "kind", long_value(rng, few),
                             "from", long_value(rng, few)))
            if rng.random() < 0.01:
                commands.append(("XDEL", "x", "%d-1" % rng.randrange(1, number + 1)))
                commands.append(("XREVRANGE", "x", "+", "%d" % rng.randrange(number), "COUNT", 9))
                commands.append(("XRANGE", "x", "%d" % rng.randrange(number), "+", "COUNT", 9))
        commands.append(("XTRIM", "x", "MAXLEN", 2500))
        commands += [("LRANGE", "l", 0, -1), ("XRANGE", "x", "-", "+"), ("XREVRANGE", "x", "+", "-"),
                     ("SORT", "l", "ALPHA"), ("XLEN", "x"), ("LLEN", "l")]
        return client.pipeline(commands)


def encoded_blocks(server, key):
    line = bytes(server.call("DEBUG", "OBJECT", key)).decode()
    found = re.search(r" encoded_blocks:([0-9]+)", line)
    return int(found.group(1)) if found else 0


@test()
def encoded_blocks_show_in_no_reply(context):
    seed = context.rng("encoded").randrange(1 << 30)
    options = ("--enable-debug-command", "yes", "--save", "", "--appendonly", "no")
    sava = context.start(*options)
    stock = context.start_stock(*options)
    ours = repetitive(random.Random(seed), sava)
    theirs = repetitive(random.Random(seed), stock)
    for place, (one, other) in enumerate(zip(ours, theirs)):
        eq(one, other, f"reply {place} of seed {seed}")
    eq(sava.call("DEBUG", "DIGEST"), stock.call("DEBUG", "DIGEST"))
    for key in ("l", "x"):
        eq(sava.call("OBJECT", "ENCODING", key), stock.call("OBJECT", "ENCODING", key))
        # The bytes are those of Redis.
        eq(stock.call("RESTORE", "copy", "0", sava.call("DUMP", key), "REPLACE"), resp.OK)
        eq(sava.call("RESTORE", "copy", "0", stock.call("DUMP", key), "REPLACE"), resp.OK)
        eq(sava.call("DEBUG", "DIGEST-VALUE", "copy"), sava.call("DEBUG", "DIGEST-VALUE", key))
        eq(stock.call("DEBUG", "DIGEST-VALUE", "copy"), stock.call("DEBUG", "DIGEST-VALUE", key))
        sava.call("DEL", "copy")
    if not context.is_sava:
        return
    for key in ("l", "x"):
        check(encoded_blocks(sava, key) > 3, f"{key} has no encoded blocks")
        before = sava.call("MEMORY", "USAGE", key, "SAMPLES", "0")
        with sava.configured(dictionary_encoding="no"):
            eq(sava.call("COPY", key, "same"), 1)
            eq(encoded_blocks(sava, "same"), encoded_blocks(sava, key))
            eq(sava.call("RESTORE", "plain", "0", sava.call("DUMP", key)), resp.OK)
        eq(encoded_blocks(sava, "plain"), 0)
        check(sava.call("MEMORY", "USAGE", "plain", "SAMPLES", "0") > before * 1.5, f"{key}: {before}")
        sava.call("DEL", "same", "plain")

    def counted():
        stats = dict(zip(*[iter(sava.call("MEMORY", "STATS"))] * 2))
        return stats[b"list-encoded-blocks.count"], stats[b"stream-encoded-blocks.count"]

    # Large values are freed by a thread of their own.
    encoded = encoded_blocks(sava, "l"), encoded_blocks(sava, "x")
    until(lambda: counted() == encoded, what="the blocks of both keys")
    sava.call("FLUSHALL")
    until(lambda: counted() == (0, 0), what="no blocks")
