"""Streams: random commands compared with stock Redis, payloads both ways, waiting, the log."""

import random
import time

import resp
from blocking_tests import World, on_both
from durability import durable, log_files, wait_idle
from harness import check, eq, test
from notifications_tests import compare_events
from persistence_tests import moved

KEYS = [b"x", b"y", b"z"]
GROUPS = [b"g", b"h", b"group"]
CONSUMERS = [b"alice", b"bob", b"carol"]
NOT_STREAM = b"text"
# Times of deliveries: never "now", so that the two servers agree.
FIXED_TIME = b"1700000000000"


# ---- comparing ----


def flat_map(value):
    """The pairs of a map reply in either protocol."""
    if isinstance(value, resp.Map):
        return list(value)
    return list(zip(value[::2], value[1::2]))


def without(value, names):
    """A map reply as a list of pairs, without some fields."""
    return [(name, field) for name, field in flat_map(value) if name not in names]


def normal(args, reply):
    """What must be equal of a reply: no clocks, no fields that Redis 7.2 added."""
    name = args[0].upper()
    if name == b"XSETID" and isinstance(reply, resp.Error):
        return "an error"  # 7.2 asks more, and earlier
    if isinstance(reply, resp.Error) or not isinstance(reply, (list, resp.Map)):
        return reply
    if name == b"XINFO" and args[1].upper() == b"CONSUMERS":
        return [without(each, (b"idle", b"inactive")) for each in reply]
    if name == b"XINFO" and len(args) > 3:
        return full_info(reply)
    if name == b"XPENDING" and len(args) > 3:
        return [[each[0], each[1], each[3]] for each in reply]
    return reply


def full_info(reply):
    """XINFO STREAM FULL without times of delivery and what 7.2 added."""
    result = []
    for name, field in flat_map(reply):
        if name != b"groups":
            result.append((name, field))
            continue
        for group in field:
            for key, value in flat_map(group):
                if key == b"pending":
                    value = [[each[0], each[1], each[3]] for each in value]
                elif key == b"consumers":
                    value = [full_consumer(each) for each in value]
                result.append((key, value))
    return result


def full_consumer(reply):
    pairs = []
    for name, value in without(reply, (b"seen-time", b"active-time")):
        pairs.append((name, [[e[0], e[2]] for e in value] if name == b"pending" else value))
    return pairs


# ---- random commands ----


class Walk:
    """Random commands over a few streams; ids are small so that they meet."""

    def __init__(self, rng):
        self.rng = rng
        self.clock = dict.fromkeys(KEYS, 0)

    def key(self):
        return NOT_STREAM if self.rng.random() < 0.01 else self.rng.choice(KEYS)

    def known_id(self, key):
        top = max(self.clock.get(key, 0), 3)
        ms = self.rng.randrange(max(0, top - 40), top + 3)
        if self.rng.random() < 0.2:
            return b"%d" % ms
        return b"%d-%d" % (ms, self.rng.choice((0, 0, 0, 1, 2)))

    def new_id(self, key):
        roll = self.rng.random()
        if roll < 0.04:
            return self.known_id(key)
        if roll < 0.06:
            return self.rng.choice(
                (b"0-0", b"1-", b"-", b"+", b"1-1-1", b"nonsense", b"5-*", b"0-*")
            )
        if roll < 0.15:
            return b"%d-*" % self.clock.get(key, 0)
        self.clock[key] = self.clock.get(key, 0) + self.rng.choice((0, 1, 1, 1, 2, 3))
        if roll < 0.3:
            return b"%d-*" % self.clock[key]
        return b"%d-%d" % (self.clock[key], self.rng.choice((0, 0, 1, 2, 5)))

    def pairs(self):
        rng = self.rng
        shape = rng.random()
        if shape < 0.6:
            names = [b"temperature", b"place"]
        elif shape < 0.9:
            names = [rng.choice((b"a", b"b", b"12", b"-7", b"place"))] * rng.randrange(1, 4)
        else:
            names = [b"f%d" % i for i in range(rng.randrange(1, 12))]
        words = []
        for name in names:
            words += [name, self.value()]
        if rng.random() < 0.01:
            words.pop()
        return words

    def value(self):
        rng = self.rng
        kind = rng.random()
        if kind < 0.5:
            return b"%d" % rng.choice(
                (0, 5, 127, 128, -1, 4095, 4096, -4097, 40000, 1 << 40, -(1 << 63))
            )
        if kind < 0.9:
            return bytes(rng.randrange(256) for _ in range(rng.randrange(20)))
        return b"v" * rng.choice((63, 64, 300, 4095, 4096, 9000))

    def trim(self):
        rng = self.rng
        words = []
        if rng.random() < 0.5:
            words += [rng.choice((b"MAXLEN", b"maxlen"))]
            words += [rng.choice((b"=", b"~"))] if rng.random() < 0.7 else []
            words += [b"%d" % rng.choice((0, 1, 3, 10, 50, 200, -1))]
        else:
            words += [b"MINID"]
            words += [rng.choice((b"=", b"~"))] if rng.random() < 0.7 else []
            words += [self.known_id(rng.choice(KEYS))]
        if rng.random() < 0.2:
            words += [b"LIMIT", b"%d" % rng.choice((0, 1, 5, 100, -1))]
        if rng.random() < 0.02:
            words += self.trim()
        return words

    def count(self):
        return (
            [b"COUNT", b"%d" % self.rng.choice((-1, 0, 1, 2, 5, 100))]
            if self.rng.random() < 0.5
            else []
        )

    def bound(self, key):
        roll = self.rng.random()
        if roll < 0.3:
            return self.rng.choice((b"-", b"+"))
        prefix = b"(" if roll > 0.8 else b""
        return prefix + self.known_id(key)

    def command(self):
        key = self.key()
        rng = self.rng
        return getattr(self, rng.choices(NAMES, WEIGHTS)[0])(key, rng)

    def commands(self):
        """A command; all consumers come with their group, because when a claim makes one differs
        between 7.0 and 7.2."""
        args = self.command()
        if args[0] == b"XGROUP" and args[1] in (b"CREATE", b"DELCONSUMER"):
            made = [[b"XGROUP", b"CREATECONSUMER", args[2], args[3], name] for name in CONSUMERS]
            return [args] + made
        return [args]

    def xadd(self, key, rng):
        words = [b"XADD", key]
        if rng.random() < 0.05:
            words += [b"NOMKSTREAM"]
        if rng.random() < 0.1:
            words += self.trim()
        return words + [self.new_id(key)] + self.pairs()

    def xtrim(self, key, rng):
        return [b"XTRIM", key] + (self.trim() if rng.random() < 0.95 else [b"LIMIT", b"5"])

    def xdel(self, key, rng):
        return [b"XDEL", key] + [self.known_id(key) for _ in range(rng.randrange(1, 4))]

    def xlen(self, key, rng):
        return [b"XLEN", key]

    def xrange(self, key, rng):
        name = rng.choice((b"XRANGE", b"XREVRANGE"))
        return [name, key, self.bound(key), self.bound(key)] + self.count()

    def xread(self, key, rng):
        keys = rng.sample(KEYS, rng.randrange(1, 4))
        ids = [rng.choice((b"0", b"$", b"0-0", self.known_id(k))) for k in keys]
        block = [b"BLOCK", b"1"] if rng.random() < 0.02 else []
        return [b"XREAD"] + self.count() + block + [b"STREAMS"] + keys + ids

    def xsetid(self, key, rng):
        # Not below what was deleted: Redis 7.0 lets that pass.
        top = max(self.clock.values(), default=0)
        words = [b"XSETID", key, b"%d-9" % (top + rng.randrange(3))]
        if rng.random() < 0.5:
            words += [b"ENTRIESADDED", b"%d" % rng.choice((-1, 0, 5, 1000, 5000))]
        if rng.random() < 0.5:
            words += [b"MAXDELETEDID", self.known_id(key)]
        self.clock[key] = top + 3
        return words

    def xgroup(self, key, rng):
        group = rng.choice(GROUPS)
        sub = rng.choice(
            (
                b"CREATE",
                b"CREATE",
                b"CREATE",
                b"SETID",
                b"DESTROY",
                b"CREATECONSUMER",
                b"DELCONSUMER",
            )
        )
        words = [b"XGROUP", sub, key, group]
        if sub in (b"CREATE", b"SETID"):
            words += [rng.choice((b"$", b"0", self.known_id(key), b"-"))]
            if sub == b"CREATE" and rng.random() < 0.3:
                words += [b"MKSTREAM"]
            if rng.random() < 0.3:
                words += [b"ENTRIESREAD", b"%d" % rng.choice((-2, -1, 0, 3, 100))]
            if rng.random() < 0.02:
                words += [b"WHAT"]
        elif sub in (b"CREATECONSUMER", b"DELCONSUMER"):
            words += [rng.choice(CONSUMERS)]
        return words

    def xreadgroup(self, key, rng):
        keys = rng.sample(KEYS, rng.choice((1, 1, 2)))
        ids = [
            rng.choice((b">", b">", b">", b"0", self.known_id(k), b"$"))
            if rng.random() < 0.3
            else b">"
            for k in keys
        ]
        words = [b"XREADGROUP", b"GROUP", rng.choice(GROUPS), rng.choice(CONSUMERS)] + self.count()
        if rng.random() < 0.2:
            words += [b"NOACK"]
        return words + [b"STREAMS"] + keys + ids

    def xack(self, key, rng):
        return [b"XACK", key, rng.choice(GROUPS)] + [
            self.known_id(key) for _ in range(rng.randrange(1, 5))
        ]

    def xpending(self, key, rng):
        words = [b"XPENDING", key, rng.choice(GROUPS)]
        if rng.random() < 0.4:
            return words
        if rng.random() < 0.1:
            words += [b"IDLE", rng.choice((b"0", b"100000000"))]
        words += [self.bound(key), self.bound(key), b"%d" % rng.choice((-1, 0, 1, 10, 100))]
        return words + ([rng.choice(CONSUMERS + [b"nobody"])] if rng.random() < 0.4 else [])

    def xclaim(self, key, rng):
        words = [
            b"XCLAIM",
            key,
            rng.choice(GROUPS),
            rng.choice(CONSUMERS),
            rng.choice((b"0", b"0", b"-5", b"10000000", b"q")),
        ]
        words += [self.known_id(key) for _ in range(rng.randrange(1, 4))]
        for option in (
            [b"IDLE", b"5000"],
            [b"TIME", FIXED_TIME],
            [b"RETRYCOUNT", b"7"],
            [b"FORCE"],
            [b"JUSTID"],
            [b"LASTID", self.known_id(key)],
            [b"WRONG"],
        ):
            if rng.random() < (0.02 if option == [b"WRONG"] else 0.2):
                words += option
        return words

    def xautoclaim(self, key, rng):
        words = [
            b"XAUTOCLAIM",
            key,
            rng.choice(GROUPS),
            rng.choice(CONSUMERS),
            rng.choice((b"0", b"0", b"10000000")),
        ]
        words += [rng.choice((b"-", b"0", b"0-0", self.bound(key)))]
        if rng.random() < 0.5:
            words += [b"COUNT", b"%d" % rng.choice((0, 1, 2, 3, 50))]
        return words + ([b"JUSTID"] if rng.random() < 0.3 else [])

    def xinfo(self, key, rng):
        roll = rng.random()
        if roll < 0.4:
            return [b"XINFO", b"STREAM", key]
        if roll < 0.6:
            return [b"XINFO", b"STREAM", key, b"FULL"] + self.count()
        if roll < 0.8:
            return [b"XINFO", b"GROUPS", key]
        return [b"XINFO", b"CONSUMERS", key, rng.choice(GROUPS)]

    def whole(self, key, rng):
        return rng.choice(
            (
                [b"DEL", key],
                [b"COPY", key, rng.choice(KEYS), b"REPLACE"],
                [b"RENAME", key, rng.choice(KEYS)],
                [b"TYPE", key],
                [b"OBJECT", b"ENCODING", key],
                [b"EXISTS", key],
            )
        )


NAMES, WEIGHTS = zip(
    ("xadd", 40),
    ("xtrim", 2),
    ("xdel", 5),
    ("xlen", 2),
    ("xrange", 6),
    ("xread", 4),
    ("xsetid", 0.5),
    ("xgroup", 5),
    ("xreadgroup", 12),
    ("xack", 6),
    ("xpending", 6),
    ("xclaim", 5),
    ("xautoclaim", 4),
    ("xinfo", 8),
    ("whole", 0.5),
)


def as_logged(info):
    """Of a full XINFO what is logged: no deliveries of entries that were pending already, no
    consumers without pending entries, no blocks (a log tells what was trimmed, not how)."""
    kept = []
    for name, value in info:
        if name == b"pending":
            value = [each[:-1] for each in value]
        elif name == b"consumers":
            value = [as_logged(each) for each in value if dict(each)[b"pel-count"] > 0]
        if not name.startswith(b"radix-tree"):
            kept.append((name, value))
    return kept


def logged_state(client):
    state = []
    for key in KEYS:
        args = [b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"]
        info = normal(args, client.call(*args))
        state.append(info if isinstance(info, resp.Error) else as_logged(info))
    return state


def everything(client):
    """All streams as far as both servers must agree."""
    state = []
    for key in KEYS:
        for args in (
            [b"XRANGE", key, b"-", b"+"],
            [b"XINFO", b"STREAM", key],
            [b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"],
            [b"XINFO", b"GROUPS", key],
        ):
            state.append(normal(args, client.call(*args)))
    return state


@test(timeout=240)
def streams_random(context):
    seconds = context.options.seconds or 15.0
    deadline = time.monotonic() + seconds
    seeds = context.rng("streams")
    findings = 0
    while time.monotonic() < deadline and findings < 8:
        findings += one_walk(context, seeds.getrandbits(32))


def one_walk(context, seed):
    rng = random.Random(seed)
    proto = rng.choice((2, 3))
    clients = [context.client(context.stock, proto=proto), context.client(proto=proto)]
    entries, size = rng.choice(("2", "5", "100", "0")), rng.choice(("100", "4096", "0"))
    script = Walk(rng)
    try:
        for client in clients:
            client.call("FLUSHALL")
            client.call("SET", NOT_STREAM, "t")
            client.call("CONFIG", "SET", "stream-node-max-entries", entries)
            client.call("CONFIG", "SET", "stream-node-max-bytes", size)
        history = []
        for _ in range(600):
            for args in script.commands():
                history.append(args)
                stock, sut = [client.call(*args) for client in clients]
                if normal(args, stock) != normal(args, sut):
                    return finding(context, seed, history, stock, sut)
        if swap_payloads(clients, history, context, seed):
            return 1
        stock, sut = [everything(client) for client in clients]
        if stock != sut:
            for a, b in zip(stock, sut):
                if a != b:
                    return finding(context, seed, history + [[b"(contents)"]], a, b)
        return 0
    finally:
        for client in clients:
            client.call("CONFIG", "SET", "stream-node-max-entries", "100")
            client.call("CONFIG", "SET", "stream-node-max-bytes", "4096")
            client.close()


def first_difference(one, other):
    """The innermost parts in which two replies differ."""
    alike = type(one) is type(other) and isinstance(one, (list, tuple)) and len(one) == len(other)
    if alike and not isinstance(one, bytes):
        for left, right in zip(one, other):
            if left != right:
                return first_difference(left, right)
    return one, other


def finding(context, seed, history, stock, sut):
    pair = first_difference(normal(history[-1], stock), normal(history[-1], sut))
    context.note(
        "seed %d, after %d commands: %s\n    stock %s\n    sut   %s"
        % (seed, len(history), b" ".join(history[-1]), *[repr(part)[:600] for part in pair])
    )
    return 1


def swap_payloads(clients, history, context, seed):
    """Each server restores what the other dumped; what they hold must not change by it."""
    for key in KEYS:
        payloads = [client.call("DUMP", key) for client in clients]
        if not all(isinstance(payload, bytes) for payload in payloads):
            continue
        for client, payload in zip(clients, reversed(payloads)):
            reply = client.call("RESTORE", key, "0", payload, "REPLACE")
            if reply != resp.OK:
                return finding(context, seed, history + [[b"RESTORE", key]], reply, payload)
    return 0


# ---- waiting ----


@test()
def streams_wait_for_entries(context):
    def scenario(w):
        seen = []
        w.c.call("XADD", "x", "1-0", "f", "old")
        after = w.block("XREAD", "BLOCK", "0", "STREAMS", "x", "y", "$", "$")
        counted = w.block("XREAD", "BLOCK", "10000", "COUNT", "1", "STREAMS", "x", "1-5")
        w.c.call("XADD", "x", "1-1", "f", "one")
        seen.append(w.answer(after))
        for words in (
            ("MULTI",),
            ("XADD", "x", "2-0", "f", "two"),
            ("XADD", "x", "3-0", "f", "three"),
            ("EXEC",),
        ):
            w.c.call(*words)
        seen.append(w.answer(counted))
        waiting = w.block("XREAD", "BLOCK", "0", "STREAMS", "new", "0")
        w.c.call("XGROUP", "CREATE", "new", "g", "$", "MKSTREAM")
        w.c.call("XADD", "new", "5-0", "f", "v")
        seen.append(w.answer(waiting))
        seen.append(w.client().call("XREAD", "BLOCK", "10", "STREAMS", "x", "$"))
        moved = w.block("XREAD", "BLOCK", "0", "STREAMS", "target", "0")
        w.c.call("RENAME", "new", "target")
        seen.append(w.answer(moved))
        one = w.client()
        one.call("MULTI")
        one.call("XREAD", "BLOCK", "0", "STREAMS", "x", "$")
        seen.append(one.call("EXEC"))
        return seen + [w.none_left()]

    for proto in (2, 3):
        on_both(context, scenario, proto)


@test()
def groups_wait_for_entries(context):
    def scenario(w):
        seen = []
        w.c.call("XGROUP", "CREATE", "x", "g", "$", "MKSTREAM")
        w.c.call("XGROUP", "CREATE", "x", "h", "$")
        words = ["XREADGROUP", "GROUP", "g", "alice", "BLOCK", "0", "STREAMS", "x", ">"]
        first = w.block(*words)
        words[3] = "bob"
        second = w.block(*words)
        words[2] = "h"
        other = w.block(*words)
        w.c.call("XADD", "x", "1-0", "f", "one")
        seen += [w.answer(first), w.answer(other)]
        w.c.call("XADD", "x", "2-0", "f", "two")
        seen.append(w.answer(second))
        seen.append(w.c.call("XPENDING", "x", "g"))
        seen.append(w.c.call("XREADGROUP", "GROUP", "g", "bob", "BLOCK", "0", "STREAMS", "x", "0"))
        seen.append([normal([b"XINFO", b"CONSUMERS"], w.c.call("XINFO", "CONSUMERS", "x", "g"))])
        seen.append(
            w.client().call("XREADGROUP", "GROUP", "g", "bob", "BLOCK", "5", "STREAMS", "x", ">")
        )
        return seen + [w.none_left()]

    for proto in (2, 3):
        on_both(context, scenario, proto)


@test()
def groups_that_go_while_somebody_waits(context):
    context.sava_only("Redis 7.2 answers otherwise than 7.0")
    gone = resp.Error(
        b"NOGROUP No such key 'x' or consumer group 'g' in XREADGROUP with GROUP option"
    )
    for words, expected in (
        (("DEL", "x"), gone),
        (("XGROUP", "DESTROY", "x", "g"), gone),
        (("FLUSHALL",), gone),
        (("RENAME", "x", "y"), gone),
        (
            ("SET", "x", "text"),
            resp.Error(b"WRONGTYPE Operation against a key holding the wrong kind of value"),
        ),
    ):
        w = World(context, context.sut)
        w.c.call("XGROUP", "CREATE", "x", "g", "$", "MKSTREAM")
        waiting = w.block("XREADGROUP", "GROUP", "g", "alice", "BLOCK", "0", "STREAMS", "x", ">")
        w.c.call(*words)
        context.same(w.answer(waiting), expected, " ".join(words))
    w = World(context, context.sut)
    reader = w.block("XREAD", "BLOCK", "0", "STREAMS", "x", "$")
    w.c.call("SET", "x", "text")
    w.c.call("DEL", "x")
    w.c.call("XADD", "x", "1-0", "f", "v")
    eq(w.answer(reader), [[b"x", [[b"1-0", [b"f", b"v"]]]]])


@test()
def the_last_entry(context):
    """`+` of Redis 7.4: the last entry, whatever was deleted behind it."""
    context.sava_only("not in Redis 7.0")
    client = context.client()
    client.call("FLUSHALL")
    eq(client.call("XREAD", "STREAMS", "x", "+"), resp.NIL_ARRAY)
    for number in range(1, 5):
        client.call("XADD", "x", "%d-0" % number, "f", str(number))
    eq(client.call("XREAD", "STREAMS", "x", "+"), [[b"x", [[b"4-0", [b"f", b"4"]]]]])
    client.call("XDEL", "x", "4-0")
    eq(client.call("XREAD", "COUNT", "5", "STREAMS", "x", "+"), [[b"x", [[b"3-0", [b"f", b"3"]]]]])


# ---- times of 7.2 ----


@test()
def consumers_seen_and_active(context):
    context.sava_only("Redis 7.2 tells them apart")
    client = context.client()
    client.call("FLUSHALL")
    client.call("XGROUP", "CREATE", "x", "g", "$", "MKSTREAM")
    client.call("XREADGROUP", "GROUP", "g", "alice", "STREAMS", "x", ">")
    consumer = dict(flat_map(client.call("XINFO", "CONSUMERS", "x", "g")[0]))
    eq(consumer[b"inactive"], -1)
    check(0 <= consumer[b"idle"] < 60000, "idle %r" % (consumer,))
    client.call("XADD", "x", "1-0", "f", "v")
    client.call("XREADGROUP", "GROUP", "g", "alice", "STREAMS", "x", ">")
    consumer = dict(flat_map(client.call("XINFO", "CONSUMERS", "x", "g")[0]))
    check(0 <= consumer[b"inactive"] < 60000, "inactive %r" % (consumer,))
    full = dict(flat_map(client.call("XINFO", "STREAM", "x", "FULL")))
    group = dict(flat_map(full[b"groups"][0]))
    eq(
        [name for name, _ in flat_map(group[b"consumers"][0])],
        [b"name", b"seen-time", b"active-time", b"pel-count", b"pending"],
    )


# ---- events ----

EVENTS = """
XADD x 1-1 f v
XADD x NOMKSTREAM 2-1 f v
XADD nosuch NOMKSTREAM 2-1 f v
XADD x MAXLEN 1 3-1 f v
XADD x MAXLEN 10 4-1 f v
XADD x 5-1 f v
XTRIM x MAXLEN 10
XTRIM x MAXLEN 2
XDEL x 5-1
XDEL x 5-1
XSETID x 9-1
XGROUP CREATE x g 0
XGROUP CREATE fresh g 0 MKSTREAM
XGROUP CREATE x g 0
XGROUP SETID x g 0
XGROUP CREATECONSUMER x g alice
XGROUP CREATECONSUMER x g alice
XREADGROUP GROUP g alice STREAMS x >
XGROUP CREATECONSUMER x g bob
XREADGROUP GROUP g bob STREAMS x >
XREADGROUP GROUP g bob NOACK STREAMS x >
XGROUP CREATECONSUMER x g carol
XCLAIM x g carol 0 4-1
XAUTOCLAIM x g carol 0 -
XACK x g 4-1
XPENDING x g
XGROUP DELCONSUMER x g alice
XGROUP DELCONSUMER x g alice
XGROUP DESTROY x g
XGROUP DESTROY x g
DEL x
"""


@test()
def stream_events(context):
    compare_events(context, "KEA", EVENTS)
    compare_events(context, "Kt", EVENTS)
    compare_events(context, "En", EVENTS)


# ---- the log ----


def logged(server):
    """The commands that a server has put into its log."""
    with open(log_files(server)[-1].path, "rb") as file:
        data = file.read()
    commands, at = [], 0
    while at < len(data):
        if data[at : at + 1] == b"#":
            at = data.index(b"\n", at) + 1
            continue
        end = data.index(b"\r\n", at)
        count, at = int(data[at + 1 : end]), end + 2
        words = []
        for _ in range(count):
            end = data.index(b"\r\n", at)
            size = int(data[at + 1 : end])
            words.append(data[end + 2 : end + 2 + size])
            at = end + 4 + size
        commands.append(words)
    return [words for words in commands if words[0].upper() not in (b"SELECT", b"MULTI", b"EXEC")]


LOGGED = """
XADD x 1-1 f v
XADD x 1-* f v
XADD x MAXLEN 3 2-1 f v
XADD x MAXLEN ~ 2 3-1 f v
XADD x MINID = 2 4-1 f v
XGROUP CREATE x g 0
XGROUP CREATECONSUMER x g alice
XREADGROUP GROUP g bob COUNT 1 STREAMS x >
XREADGROUP GROUP g bob NOACK COUNT 1 STREAMS x >
XREADGROUP GROUP g carol NOACK COUNT 1 STREAMS x >
XREADGROUP GROUP g carol STREAMS x 0
XCLAIM x g carol 0 2-1 TIME 1700000000000
XCLAIM x g carol 0 77-1 LASTID 4-1
XAUTOCLAIM x g bob 0 - COUNT 5
XACK x g 2-1
XDEL x 3-1
XTRIM x MAXLEN ~ 1
XTRIM x MAXLEN 1
XSETID x 9-0
XGROUP SETID x g $
XGROUP DELCONSUMER x g alice
XGROUP DESTROY x g
"""


def without_times(words):
    words = list(words)
    if words[0] == b"XCLAIM" and b"TIME" in words:
        words[words.index(b"TIME") + 1] = b"?"
    return [words[0].upper()] + words[1:]


def counts_reads(words):
    return words[:2] == [b"XGROUP", b"SETID"] and b"ENTRIESREAD" in words


@test(timeout=60)
def what_is_logged(context):
    """The log holds what Redis's holds, and what groups have read, as since Redis 7.2."""
    seen = []
    for binary in (context.options.stock, None):
        server = durable(
            context,
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
            **({"binary": binary} if binary else {})
        )
        with server.client() as client:
            for line in LOGGED.strip().splitlines():
                client.call(*line.split())
        commands = [without_times(words) for words in logged(server)]
        seen.append([words for words in commands if not counts_reads(words)])
    for number, pair in enumerate(zip(*seen)):
        context.same(pair[1], pair[0], "command %d of the log" % number)
    eq(len(seen[1]), len(seen[0]))


@test(timeout=120)
def logs_and_snapshots(context):
    """After random commands: the log and the snapshot lead to the same streams, here and in Redis."""
    if not context.is_sava:
        return
    rng = context.rng("stream files")
    server = durable(context, "--appendonly", "yes", "--save", "")
    script = Walk(rng)
    with server.client() as client:
        for _ in range(1500):
            for args in script.commands():
                client.call(*args)
        before = everything(client)
        eq(client.call("DEBUG", "RELOAD"), resp.OK)
        context.same(everything(client), before, "after DEBUG RELOAD")
        before = logged_state(client)
        check(any(isinstance(info, list) for info in before), "there is nothing to compare")
        eq(client.call("DEBUG", "LOADAOF"), resp.OK)
        context.same(logged_state(client), before, "after DEBUG LOADAOF")
    wait_idle(server)
    other = moved(context, server, context.options.stock, "--appendonly", "yes", "--save", "")
    with other.client() as client:
        context.same(logged_state(client), before, "Redis with our files")
