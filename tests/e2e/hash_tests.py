"""Hashes beside stock Redis: random walks over the limits of the forms, payloads, events; and times
of fields, which the stock server here does not have.

Replies and error texts are in cases/hashes.txt.
"""

import time

import compare
import resp
from durability import durable
from export_command_tests import LOG_ON, export, start_from, target
from harness import check, eq, test, until

STEPS = 2000
KEYS = ["h1", "h2"]


class Walk:
    """Random commands over two hashes, which grow and shrink."""

    def __init__(self, rng):
        self.rng = rng
        self.growing = True
        self.fields = {key: rng.choice([20, 200, 900]) for key in KEYS}

    def field(self, key):
        if self.rng.random() < 0.003:
            return b"f" * self.rng.choice([63, 64, 65, 700])
        return b"f%d" % self.rng.randrange(self.fields[key])

    def value(self):
        rng = self.rng
        kind = rng.random()
        if kind < 0.4:
            return b"%d" % rng.randrange(-(10**9), 10**9)
        if kind < 0.402:
            return b"v" * rng.choice([64, 65, 500, 8000])
        return b"v" * rng.randrange(40)

    def command(self):
        rng = self.rng
        key = rng.choice(KEYS)
        if rng.random() < 0.003:
            self.growing = not self.growing
        if rng.random() < 0.5:
            count = rng.randrange(1, 9)  # 7.2 converts at once for more than the least limit
            if self.growing == (rng.random() < 0.8):
                pairs = [a for _ in range(count) for a in (self.field(key), self.value())]
                return ["HSET", key] + pairs
            return ["HDEL", key] + [self.field(key) for _ in range(count)]
        return rng.choice(
            [
                lambda: ["HGET", key, self.field(key)],
                lambda: ["HMGET", key, self.field(key), self.field(key)],
                lambda: ["HSETNX", key, self.field(key), self.value()],
                lambda: ["HMSET", key, self.field(key), self.value()],
                lambda: ["HLEN", key],
                lambda: ["HSTRLEN", key, self.field(key)],
                lambda: ["HEXISTS", key, self.field(key)],
                lambda: ["HGETALL", key],
                lambda: ["HKEYS", key],
                lambda: ["HVALS", key],
                lambda: ["HINCRBY", key, self.field(key), str(rng.randrange(-99, 99))],
                lambda: ["HINCRBYFLOAT", key, self.field(key), "0.25"],
                lambda: ["COPY", key, "copy", "REPLACE"],
                lambda: ["HGETALL", "copy"],
                lambda: ["OBJECT", "ENCODING", key],
                lambda: ["RENAME", key, key],
            ]
        )()


def in_order(name, value):
    if name == "HGETALL" and type(value) is list:
        value = resp.Map(zip(value[::2], value[1::2]))
    if isinstance(value, resp.Map):
        return sorted(value)
    if name in ("HKEYS", "HVALS"):
        return sorted(value, key=compare.sort_key) if type(value) is list else value
    return value


def contents(client, key):
    return in_order("HGETALL", client.call("HGETALL", key))


def swap(stock, sut, key):
    """Each server restores the other's payload; both must hold the same hash afterwards."""
    payloads = [client.call("DUMP", key) for client in (stock, sut)]
    eq(resp.is_null(payloads[0]), resp.is_null(payloads[1]), "DUMP " + key)
    if resp.is_null(payloads[0]):
        return
    for client, payload in ((stock, payloads[1]), (sut, payloads[0])):
        eq(client.call("RESTORE", key, "0", payload, "REPLACE"), resp.OK)
    eq(contents(sut, key), contents(stock, key), key)
    eq(sut.call("OBJECT", "ENCODING", key), stock.call("OBJECT", "ENCODING", key), key)


def run_walk(context, name, steps, **settings):
    rng = context.rng(name)
    stock, sut = context.pair(proto=rng.choice([2, 3]))
    for client in (stock, sut):
        eq(client.call("FLUSHALL"), resp.OK)
    with context.stock.configured(**settings), context.sut.configured(**settings):
        walk = Walk(rng)
        for step in range(steps):
            if step % 300 == 299:
                for key in KEYS:
                    swap(stock, sut, key)
            command = walk.command()
            expected, actual = stock.call(*command), sut.call(*command)
            if in_order(command[0], expected) != in_order(command[0], actual):
                return context.note(
                    "step %d: %s\n    stock %s\n    sut   %s"
                    % (step, command[:12], resp.show(expected, 400), resp.show(actual, 400))
                )
        for key in KEYS:
            context.same(contents(sut, key), contents(stock, key), key)
    for client in (stock, sut):
        client.call("FLUSHALL")


@test(timeout=60.0)
def hashes_walk_like_redis(context):
    limits = {"hash_max_listpack_entries": "512"}
    for i in range(3):
        run_walk(context, "hashes %d" % i, STEPS, **limits)


@test(timeout=60.0)
def hashes_walk_with_other_limits(context):
    run_walk(context, "hashes 8", STEPS // 2, hash_max_listpack_entries="8")
    run_walk(
        context,
        "hashes wide",
        STEPS // 2,
        hash_max_listpack_entries="4000",
        hash_max_listpack_value="500",
    )


@test(timeout=60.0)
def chosen_fields_are_fields(context):
    client = context.client()
    for size in (5, 100, 2000):
        client.call("DEL", "h")
        values = {b"f%d" % i: b"v%d" % i for i in range(size)}
        client.call("HSET", "h", *[a for pair in values.items() for a in pair])
        for count in (1, 3, size // 2 + 1, size, size + 10):
            chosen = client.call("HRANDFIELD", "h", str(count))
            eq(len(chosen), min(count, size))
            eq(len(set(chosen)), len(chosen), "HRANDFIELD repeats itself")
            check(set(chosen) <= set(values), "HRANDFIELD invents fields")
            chosen = client.call("HRANDFIELD", "h", str(-count), "WITHVALUES")
            eq(len(chosen), 2 * count)
            for field, value in zip(chosen[::2], chosen[1::2]):
                eq(value, values[field])
    three = context.client(proto=3)
    eq(len(three.call("HRANDFIELD", "h", "4", "WITHVALUES")), 4)
    eq(len(three.call("HRANDFIELD", "h", "4", "WITHVALUES")[0]), 2)


@test()
def repeated_values_take_little(context):
    """Values that many small hashes have are kept once, and come back whole."""
    client = context.client(context.start())

    def stat(name):
        flat = client.call("MEMORY", "STATS")
        return dict(zip(flat[::2], flat[1::2]))[name]

    def put(n):
        value = b"a long value %02d" % (n % 3)
        pairs = [word for f in range(5) for word in (b"column %d" % f, value)]
        client.call("HSET", "row:%d" % n, *pairs)
        return client.call("MEMORY", "USAGE", "row:%d" % n)

    first = put(0)
    check(stat(b"field-values.count") == 0, "a value is counted at once")
    last = [put(n) for n in range(1, 400)][-1]
    check(stat(b"field-values.count") == 3, "values: %r" % stat(b"field-values.count"))
    check(stat(b"field-names.count") == 5, "names: %r" % stat(b"field-names.count"))
    check(last < first, "%d bytes at first, %d in the end" % (first, last))
    for n in (0, 1, 398, 399):
        eq(client.call("HVALS", "row:%d" % n), [b"a long value %02d" % (n % 3)] * 5)
    client.call("HSET", "row:399", "column 1", "another")
    eq(client.call("HGET", "row:399", "column 1"), b"another")
    eq(client.call("HGET", "row:398", "column 1"), b"a long value 02")


@test()
def scanning_a_hash_that_changes(context):
    rng = context.rng("hscan")
    client = context.client()
    client.call("DEL", "h")
    kept = {b"kept%d" % i for i in range(400)}
    client.call("HSET", "h", *[a for name in kept for a in (name, name)])
    seen, cursor, number = set(), b"0", 0
    while True:
        cursor, found = client.call("HSCAN", "h", cursor, "COUNT", str(rng.randrange(1, 40)))
        eq([v for v in found[::2] if v in kept], [v for v in found[1::2] if v in kept])
        seen.update(found[::2])
        if number < 6000:
            client.call("HSET", "h", *["new%d" % (number + i // 2) for i in range(400)])
            number += 200
        if cursor == b"0":
            break
    check(kept <= seen, "HSCAN missed %d fields" % len(kept - seen))
    client.call("DEL", "h")


@test()
def events_of_hashes(context):
    commands = [
        ("HSET", "h", "a", "1", "b", "2"),
        ("HMSET", "h", "a", "1"),
        ("HSETNX", "h", "a", "1"),
        ("HSETNX", "h", "c", "1"),
        ("HINCRBY", "h", "n", "1"),
        ("HINCRBYFLOAT", "h", "n", "0.5"),
        ("HDEL", "h", "x"),
        ("HDEL", "h", "a"),
        ("HDEL", "h", "b", "c", "n"),
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


# ---- times of fields ----


def timed(context, **options):
    context.sava_only("Redis 7.0 has no times of fields")
    client = context.client(**options)
    client.call("FLUSHALL")
    return client


@test()
def fields_expire_by_themselves(context):
    client = timed(context)
    for key, fields in (("small", 10), ("large", 1000)):
        client.call("HSET", key, *[a for i in range(fields) for a in ("f%d" % i, "v")])
        names = ["f%d" % i for i in range(fields - 1)]
        eq(set(client.call("HPEXPIRE", key, "1", "FIELDS", str(len(names)), *names)), {1})
    until(lambda: client.call("HLEN", "small") == 1, what="the fields of the small hash to go")
    until(lambda: client.call("HLEN", "large") == 1, what="the fields of the large hash to go")
    eq(client.call("HGETALL", "large"), [b"f999", b"v"])
    client.call("HPEXPIRE", "large", "1", "FIELDS", "1", "f999")
    until(lambda: client.call("EXISTS", "large") == 0, what="the empty hash to go")


@test()
def expired_fields_are_seen_by_nobody(context):
    client = timed(context)
    eq(client.call("DEBUG", "SET-ACTIVE-EXPIRE", "0"), resp.OK)
    try:
        client.call("HSET", "h", "a", "1", "b", "2")
        eq(client.call("HPEXPIRE", "h", "1", "FIELDS", "1", "a"), [1])
        until(lambda: client.call("HGETALL", "h") == [b"b", b"2"])
        eq(client.call("HKEYS", "h"), [b"b"])
        eq(client.call("HVALS", "h"), [b"2"])
        eq(client.call("HSCAN", "h", "0"), [b"0", [b"b", b"2"]])
        eq(client.call("HTTL", "h", "FIELDS", "1", "a"), [-2])
        eq(client.call("HEXPIRE", "h", "9", "FIELDS", "1", "a"), [-2])
        eq(client.call("HPERSIST", "h", "FIELDS", "1", "a"), [-2])
        eq(client.call("HLEN", "h"), 2, "HLEN counts what has not been taken away")
        eq(client.call("HINCRBY", "h", "a", "5"), 5)
        eq(client.call("HTTL", "h", "FIELDS", "1", "a"), [-1])
    finally:
        client.call("DEBUG", "SET-ACTIVE-EXPIRE", "1")


@test()
def expired_fields_go_when_they_are_met(context):
    """The field that a command asks for goes, others stay until somebody meets them."""
    client = timed(context)
    meets = [
        (("HGET", "h", "f0"), resp.NIL),
        (("HEXISTS", "h", "f1"), 0),
        (("HSTRLEN", "h", "f2"), 0),
        (("HMGET", "h", "f3", "stays"), [resp.NIL, b"v"]),
        (("HGETDEL", "h", "FIELDS", "1", "f4"), [resp.NIL]),
        (("HGETEX", "h", "FIELDS", "1", "f5"), [resp.NIL]),
        (("HSETEX", "h", "FXX", "FIELDS", "1", "f6", "w"), 0),
    ]
    names = ["f%d" % i for i in range(len(meets) + 3)]
    eq(client.call("DEBUG", "SET-ACTIVE-EXPIRE", "0"), resp.OK)
    try:
        client.call("HSET", "h", "stays", "v", *[word for name in names for word in (name, "v")])
        client.call("HPEXPIRE", "h", "1", "FIELDS", str(len(names)), *names)
        until(lambda: client.call("HGETALL", "h") == [b"stays", b"v"])
        left = len(names) + 1
        eq(client.call("HLEN", "h"), left)
        for command, reply in meets:
            eq(client.call(*command), reply, " ".join(command))
            left -= 1
            eq(client.call("HLEN", "h"), left, "after " + " ".join(command))
        eq(client.call("HRANDFIELD", "h", "9"), [b"stays"])
        eq(client.call("HLEN", "h"), 1, "HRANDFIELD takes all that are past their time away")
        client.call("HPEXPIRE", "h", "1", "FIELDS", "1", "stays")
        until(lambda: client.call("HGETALL", "h") == [])
        eq(client.call("EXISTS", "h"), 1)
        eq(client.call("HGET", "h", "stays"), resp.NIL)
        eq(client.call("EXISTS", "h"), 0, "the key goes with its last field")
    finally:
        client.call("DEBUG", "SET-ACTIVE-EXPIRE", "1")


@test()
def times_go_with_the_key(context):
    client = timed(context)
    client.call("HSET", "h", "a", "1", "b", "2")
    client.call("HEXPIRE", "h", "100", "FIELDS", "1", "a")
    at = client.call("HPEXPIRETIME", "h", "FIELDS", "1", "a")
    for move in (("RENAME", "h", "i"), ("COPY", "i", "j"), ("MOVE", "i", "3")):
        client.call(*move)
    eq(client.call("HPEXPIRETIME", "j", "FIELDS", "2", "a", "b"), at + [-1])
    client.call("RESTORE", "k", "0", client.call("DUMP", "j"))
    eq(client.call("HPEXPIRETIME", "k", "FIELDS", "1", "a"), at)
    other = context.client(db=3)
    eq(other.call("HPEXPIRETIME", "i", "FIELDS", "1", "a"), at)
    other.call("HPEXPIRE", "i", "1", "FIELDS", "1", "a")
    client.call("SWAPDB", "0", "3")
    until(lambda: client.call("HLEN", "i") == 1, what="the field to go after SWAPDB")
    for key in ("j", "k"):
        eq(other.call("HPEXPIRE", key, "1", "FIELDS", "2", "a", "b"), [1, 1])
        other.call("RENAME", key, key + "2")
    until(lambda: other.call("EXISTS", "j2", "k2") == 0, what="the renamed hashes to go")
    client.call("FLUSHALL")


@test()
def events_of_times(context):
    client = timed(context)
    with context.sut.configured(notify_keyspace_events="KEA"):
        listener = context.client()
        listener.call("PSUBSCRIBE", "__keyevent*")
        client.call("HSET", "h", "a", "1", "b", "2")
        client.call("HEXPIRE", "h", "100", "FIELDS", "1", "a")
        client.call("HPERSIST", "h", "FIELDS", "1", "a")
        client.call("HPEXPIRE", "h", "1", "FIELDS", "2", "a", "b")
        want = [b"hset", b"hexpire", b"hpersist", b"hexpire", b"hexpired", b"del"]
        seen = []
        while len(seen) < len(want):
            message = listener.reply()
            eq(message[3], b"h")
            name = message[2].split(b":")[1]
            if seen and name == seen[-1] == b"hexpired":
                continue
            seen.append(name)
        eq(seen, want)


@test(timeout=60.0)
def times_survive_a_restart(context):
    context.sava_only("Redis 7.0 has no times of fields")
    for log in ("no", "yes"):
        server = context.start("--appendonly", log, "--appendfsync", "always")
        client = context.client(server)
        for key, fields in (("small", 20), ("large", 3000)):
            client.call("HSET", key, *[a for i in range(fields) for a in ("f%d" % i, "v%d" % i)])
            names = ["f%d" % i for i in range(0, fields, 3)]
            client.call("HEXPIRE", key, "1000", "FIELDS", str(len(names)), *names)
            client.call("HPEXPIRE", key, "1", "FIELDS", "1", "f1")
        until(lambda: client.call("HLEN", "large") == 2999 and client.call("HLEN", "small") == 19)
        client.call("HINCRBYFLOAT", "small", "n", "1.5")
        client.call("HSETEX", "small", "EX", "500", "FIELDS", "1", "late", "1")

        def state():
            asked = ["FIELDS", "4", "f0", "f2", "f3", "late"]
            return [
                (key, contents(client, key), client.call("HPEXPIRETIME", key, *asked))
                for key in ("small", "large")
            ]

        want = state()
        if log == "no":
            eq(client.call("SAVE"), resp.OK)
        server.stop()
        server.start()
        client = context.client(server)
        eq(state(), want, "appendonly " + log)
        # They still go by themselves.
        client.call("HPEXPIRE", "large", "1", "FIELDS", "1", "f2")
        until(lambda: client.call("HLEN", "large") == 2998)


@test(timeout=60.0)
def a_file_says_when_it_holds_times(context):
    context.sava_only("Redis 7.0 has no times of fields")
    server = context.start()
    client = context.client(server)
    client.call("HSET", "h", "a", "1")
    eq(client.call("SAVE"), resp.OK)
    path = server.dir + "/dump.rdb"
    with open(path, "rb") as file:
        eq(file.read(9), b"REDIS0010")
    client.call("HEXPIRE", "h", "100", "FIELDS", "1", "a")
    eq(client.call("SAVE"), resp.OK)
    with open(path, "rb") as file:
        eq(file.read(9), b"REDIS0012")
    client.call("DEL", "h")
    until(lambda: client.call("SAVE") == resp.OK and open(path, "rb").read(9) == b"REDIS0010")


@test(timeout=60.0)
def exports_for_redis_have_no_times(context):
    context.sava_only("Redis 7.0 has no times of fields")
    server = durable(context, *LOG_ON)
    client = context.client(server)
    client.call("HSET", "small", "a", "1", "b", "2")
    client.call("HSET", "large", *[a for i in range(1000) for a in ("f%d" % i, "v")])
    for key, field in (("small", "a"), ("large", "f7")):
        eq(client.call("HEXPIRE", key, "1000", "FIELDS", "1", field), [1])
    client.call("HSET", "plain", "x", "y")
    want = [(key, contents(client, key)) for key in ("small", "large", "plain")]
    eq(server.terminate(), 0)
    path = target(context)
    out, _ = export(context, "--portable", "--from", server.dir, path)
    check("converted 2 hash to hashes without times" in " ".join(out.split()), out)
    with open(path, "rb") as file:
        eq(file.read(9), b"REDIS0010")
    stock = context.client(start_from(context, path, context.options.stock))
    eq([(key, contents(stock, key)) for key in ("small", "large", "plain")], want)


@test()
def few_long_values_take_no_more_than_in_redis(context):
    """Hashes of two values of 127 bytes: at most 1.1 times the memory."""
    growth = []
    for start in (context.start, context.start_stock):
        server = start()
        client = context.client(server)
        rng = context.rng("values")
        before = int(server.info_field("used_memory", "memory"))
        for first in range(0, 5000, 250):
            commands = [
                ("HSET", "h%d" % i, "f1", rng.randbytes(127), "f2", rng.randbytes(127))
                for i in range(first, first + 250)
            ]
            eq(client.pipeline(commands), [2] * 250)
        eq(client.call("OBJECT", "ENCODING", "h7"), b"hashtable")
        growth.append(int(server.info_field("used_memory", "memory")) - before)
    check(growth[0] <= 1.1 * growth[1], "%d bytes, stock %d" % tuple(growth))
