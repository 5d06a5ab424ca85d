"""Files with values of every type: ours in Redis, Redis's of every encoding in ours, old formats.

Random datasets are built by the same commands on both sides or moved as files, and compared by what
clients read.
"""

import os
import shutil
import struct

import resp
from durability import (
    CHECK_AOF,
    CHECK_RDB,
    background_save,
    databases,
    durable,
    keys_of,
    log_base,
    passes,
    rewrite,
    same_contents,
    wait_idle,
)
from dump_tests import payload
from harness import SLOW, check, eq, run_workers, test
from persistence_tests import moved
from stream_type_tests import flat_map, full_info

YEAR_2100_MS = 4102444800000
NO_LOG = ("--save", "", "--appendonly", "no")
LOG = ("--save", "", "--appendonly", "yes")
# Settings that make Redis write each of its encodings.
THRESHOLDS = {
    "packed": (
        "--hash-max-listpack-entries",
        "100000",
        "--hash-max-listpack-value",
        "100000",
        "--zset-max-listpack-entries",
        "100000",
        "--zset-max-listpack-value",
        "100000",
        "--set-max-intset-entries",
        "100000",
        "--list-max-listpack-size",
        "100000",
        "--stream-node-max-entries",
        "0",
        "--stream-node-max-bytes",
        "0",
    ),
    "spread": (
        "--hash-max-listpack-entries",
        "0",
        "--zset-max-listpack-entries",
        "0",
        "--set-max-intset-entries",
        "0",
        "--list-max-listpack-size",
        "1",
        "--stream-node-max-entries",
        "1",
        "--list-compress-depth",
        "1",
    ),
    "default": (),
    "uncompressed": ("--rdbcompression", "no", "--list-max-listpack-size", "-1"),
    "unchecked": ("--rdbchecksum", "no", "--list-compress-depth", "2"),
}


# ---- datasets ----


def text(rng):
    kind = rng.random()
    if kind < 0.35:
        return b"%d" % rng.choice(
            (rng.randrange(200), rng.randrange(-5000, 5000), rng.randrange(-(1 << 63), 1 << 63))
        )
    if kind < 0.9:
        return rng.randbytes(rng.randrange(1, 40))
    return rng.choice((b"", b"x" * 64, b"y" * 65, b"z" * 5000, b"-0", b"007", b"1e5", bytes(100)))


def size(rng):
    return rng.choice((1, 2, 5, 20, 60, 127, 128, 129, 200, 511, 512, 513, 700))


def some_list(rng, key):
    return [(rng.choice((b"RPUSH", b"LPUSH")), key, *[text(rng) for _ in range(size(rng))])]


def some_set(rng, key):
    numbers = rng.random() < 0.5
    members = [
        b"%d" % rng.randrange(-70000, 70000) if numbers else text(rng) for _ in range(size(rng))
    ]
    return [(b"SADD", key, *members)]


def some_hash(rng, key):
    words = [word for _ in range(size(rng)) for word in (text(rng), text(rng))]
    return [(b"HSET", key, *words)]


def score(rng):
    return rng.choice(
        (
            b"%d" % rng.randrange(-50, 50),
            b"inf",
            b"-inf",
            b"%.17g" % rng.uniform(-1e6, 1e6),
            b"1e300",
            b"0.1",
        )
    )


def some_zset(rng, key):
    words = [word for _ in range(size(rng)) for word in (score(rng), text(rng))]
    return [(b"ZADD", key, *words)]


def some_geo(rng, key):
    words = []
    for _ in range(size(rng) // 4 + 1):
        words += [b"%.6f" % rng.uniform(-179, 179), b"%.6f" % rng.uniform(-85, 85), text(rng)]
    return [(b"GEOADD", key, *words)]


def some_hyperloglog(rng, key):
    return [(b"PFADD", key, *[rng.randbytes(8) for _ in range(rng.choice((1, 50, 3000)))])]


def some_stream(rng, key):
    commands, ms = [], 1
    for _ in range(size(rng)):
        ms += rng.choice((0, 1, 1000))
        fields = (
            [b"temperature", text(rng), b"place", text(rng)]
            if rng.random() < 0.8
            else [text(rng), text(rng)]
        )
        commands.append((b"XADD", key, b"%d-*" % ms, *fields))
    for _ in range(rng.randrange(8)):
        commands.append((b"XDEL", key, b"%d-0" % rng.randrange(ms + 1)))
    if rng.random() < 0.3:
        commands.append((b"XTRIM", key, b"MAXLEN", b"%d" % rng.randrange(1, 100)))
    for group in rng.sample((b"g", b"h", b"empty"), rng.randrange(4)):
        commands.append(
            (
                b"XGROUP",
                b"CREATE",
                key,
                group,
                rng.choice((b"0", b"$", b"5")),
                b"ENTRIESREAD",
                b"%d" % rng.choice((-1, 0, 4)),
            )
        )
        for _ in range(rng.randrange(5)):
            commands.append(
                (
                    b"XREADGROUP",
                    b"GROUP",
                    group,
                    rng.choice((b"alice", b"bob")),
                    b"COUNT",
                    b"%d" % rng.choice((1, 20, 400)),
                    b"STREAMS",
                    key,
                    b">",
                )
            )
        commands.append((b"XACK", key, group, *[b"%d-0" % rng.randrange(ms + 1) for _ in range(5)]))
        commands.append((b"XAUTOCLAIM", key, group, b"carol", b"0", b"-", b"COUNT", b"3"))
    return commands


def some_string(rng, key):
    return [(b"SET", key, text(rng))]


MAKERS = [
    some_list,
    some_set,
    some_hash,
    some_zset,
    some_stream,
    some_geo,
    some_hyperloglog,
    some_string,
]


def dataset(rng, count=80):
    """Commands that make values of every type in several databases."""
    commands = []
    for number in range(count):
        key = b"%d:" % number + rng.randbytes(rng.randrange(6))
        commands += MAKERS[number % len(MAKERS)](rng, key)
        if rng.random() < 0.2:
            commands.append((b"PEXPIREAT", key, b"%d" % (YEAR_2100_MS + number)))
        if rng.random() < 0.1:
            commands.append((b"SELECT", b"%d" % rng.choice((0, 1, 7))))
    return commands + [(b"SELECT", b"0")]


# Changes of values that are there: what a log is made of.
def changes(rng, client, count=300):
    commands = []
    for key in keys_of(client):
        kind = bytes(client.call("TYPE", key))
        for _ in range(max(1, count // 80)):
            commands += change(rng, key, kind)
    rng.shuffle(commands)
    return commands


def change(rng, key, kind):
    if kind == b"list":
        return [
            rng.choice(
                (
                    (b"LPOP", key),
                    (b"RPUSH", key, text(rng)),
                    (b"LSET", key, b"0", text(rng)),
                    (b"LTRIM", key, b"0", b"-2"),
                    (b"LINSERT", key, b"BEFORE", text(rng), text(rng)),
                    (b"LREM", key, b"0", text(rng)),
                    (b"LMOVE", key, key, b"LEFT", b"RIGHT"),
                )
            )
        ]
    if kind == b"set":
        return [
            rng.choice(
                (
                    (b"SADD", key, text(rng)),
                    (b"SPOP", key),
                    (b"SPOP", key, b"3"),
                    (b"SREM", key, text(rng)),
                    (b"SUNIONSTORE", key + b"2", key),
                )
            )
        ]
    if kind == b"hash":
        return [
            rng.choice(
                (
                    (b"HSET", key, text(rng), text(rng)),
                    (b"HDEL", key, text(rng)),
                    (b"HINCRBY", key, b"count", b"5"),
                    (b"HINCRBYFLOAT", key, b"float", b"0.25"),
                    (b"HSETNX", key, text(rng), text(rng)),
                )
            )
        ]
    if kind == b"zset":
        return [
            rng.choice(
                (
                    (b"ZADD", key, score(rng), text(rng)),
                    (b"ZINCRBY", key, b"1.5", b"member"),
                    (b"ZPOPMIN", key),
                    (b"ZPOPMAX", key, b"2"),
                    (b"ZREMRANGEBYRANK", key, b"0", b"1"),
                    (b"ZRANGESTORE", key + b"2", key, b"0", b"-1"),
                )
            )
        ]
    if kind == b"stream":
        return [
            rng.choice(
                (
                    (b"XADD", key, b"*", text(rng), text(rng)),
                    (b"XADD", key, b"MAXLEN", b"~", b"100", b"*", b"f", text(rng)),
                    (b"XTRIM", key, b"MAXLEN", b"50"),
                    (
                        b"XREADGROUP",
                        b"GROUP",
                        b"g",
                        b"alice",
                        b"COUNT",
                        b"5",
                        b"STREAMS",
                        key,
                        b">",
                    ),
                    (b"XAUTOCLAIM", key, b"g", b"bob", b"0", b"-"),
                )
            )
        ]
    return [(b"EXPIREAT", key, b"4102444800")]


def fill(client, commands):
    for at in range(0, len(commands), 200):
        for command, reply in zip(
            commands[at : at + 200], client.pipeline(commands[at : at + 200])
        ):
            known = (
                resp.is_error(reply, "WRONGTYPE")
                or resp.is_error(reply, "NOGROUP")
                or resp.is_error(reply, "ERR")
            )
            check(not resp.is_error(reply) or known, "%r: %s" % (command[:3], resp.show(reply)))


# ---- reading ----


# Not compared of a stream: how entries are distributed over blocks, which depends on the settings;
# consumers, as long as nothing is pending for them, because Redis does not log that they came.
def stream_value(client, key):
    value = []
    for name, field in full_info(client.call("XINFO", "STREAM", key, "FULL", "COUNT", "0")):
        if name == b"consumers":
            field = [consumer for consumer in field if dict(consumer)[b"pel-count"] > 0]
        if name not in (b"radix-tree-keys", b"radix-tree-nodes"):
            value.append((name, field))
    return value


def zset_value(client, key):
    flat = client.call("ZRANGE", key, "0", "-1", "WITHSCORES")
    return [(member, float(number)) for member, number in zip(flat[::2], flat[1::2])]


def hash_value(client, key):
    flat = client.call("HGETALL", key)
    return dict(zip(flat[::2], flat[1::2]))


READERS = {
    b"string": lambda client, key: client.call("GET", key),
    b"list": lambda client, key: client.call("LRANGE", key, "0", "-1"),
    b"set": lambda client, key: sorted(client.call("SMEMBERS", key)),
    b"hash": hash_value,
    b"zset": zset_value,
    b"stream": stream_value,
}


def all_values(server):
    """{(database, key): (type, value, expiry)}."""
    found = {}
    with server.client(timeout=60 * SLOW) as client:
        for db in databases(client):
            eq(client.call("SELECT", db), resp.OK)
            for key in keys_of(client):
                kind = bytes(client.call("TYPE", key))
                check(kind in READERS, "a key of type %r" % kind)
                found[db, key] = (kind, READERS[kind](client, key), client.call("PEXPIRETIME", key))
    check(len({value[0] for value in found.values()}) == len(READERS), "not every type is there")
    return found


def uncounted(values):
    """Without what groups have read: Redis 7.0 does not log it."""
    progress = (b"entries-read", b"lag")
    return {
        name: (kind, [pair for pair in value if pair[0] not in progress], expiry)
        if kind == b"stream"
        else (kind, value, expiry)
        for name, (kind, value, expiry) in values.items()
    }


def encodings(server):
    found = {}
    with server.client(timeout=60 * SLOW) as client:
        for db in databases(client):
            client.call("SELECT", db)
            for key in keys_of(client):
                found[db, key] = (client.call("OBJECT", "ENCODING", key), None)
    return found


# ---- snapshots ----


@test(timeout=120)
def our_snapshot_in_redis(context):
    server = durable(context, *NO_LOG)
    with server.client() as client:
        fill(client, dataset(context.rng("ours")))
    expected = all_values(server)
    eq(server.call("SAVE"), resp.OK)
    passes(CHECK_RDB, server.path("dump.rdb"))
    digest = server.call("DEBUG", "DIGEST")
    digests = []
    for _ in range(2):
        other = moved(context, server, context.options.stock, *NO_LOG)
        same_contents(expected, all_values(other), "our snapshot in Redis")
        digests.append(other.call("DEBUG", "DIGEST"))
        if context.is_sava:
            eq(digest, digests[-1], "the digests of the two servers")
        eq(other.call("SAVE"), resp.OK)
        # And back.
        server = moved(context, other, context.options.server, *NO_LOG)
        same_contents(expected, all_values(server), "what Redis made of it")
        eq(server.call("SAVE"), resp.OK)
    eq(digests[0], digests[1], "Redis's digest of our snapshot")


@test(timeout=240)
def snapshots_of_redis_in_ours(context):
    for name, settings in THRESHOLDS.items():
        stock = durable(context, *NO_LOG, *settings, binary=context.options.stock)
        with stock.client() as client:
            fill(client, dataset(context.rng(name), 48))
        expected = all_values(stock)
        eq(stock.call("SAVE"), resp.OK)
        server = moved(context, stock, context.options.server, *NO_LOG)
        same_contents(expected, all_values(server), "a %s snapshot of Redis" % name)
        # Encodings by the default limits, as Redis has them after loading the same file.
        again = durable(context, *NO_LOG, binary=context.options.stock, directory=server.dir)
        same_contents(
            known_encodings(encodings(again)),
            known_encodings(encodings(server)),
            "encodings of a %s snapshot" % name,
        )


def known_encodings(found):
    """Redis 7.2 has listpacks for sets; 7.0 does not."""
    return {
        name: (b"hashtable", None) if value[0] == b"listpack" and name in () else value
        for name, value in found.items()
        if value[0] not in (b"hashtable", b"listpack", b"quicklist", b"embstr", b"raw")
    }


# ---- logs ----


@test(timeout=180)
def our_log_in_redis(context):
    rng = context.rng("our log")
    compared = (lambda values: values) if context.is_sava else uncounted
    server = durable(context, *LOG)
    with server.client() as client:
        fill(client, dataset(rng))
        fill(client, changes(rng, client))
        rewrite(server)
        fill(client, changes(rng, client))
    expected = compared(all_values(server))
    wait_idle(server)
    server.terminate()
    passes(CHECK_AOF, server.path("appendonlydir", "appendonly.aof.manifest"))
    other = moved(context, server, context.options.stock, *LOG)
    same_contents(expected, compared(all_values(other)), "our log in Redis")
    other.terminate()
    server.start()
    same_contents(expected, compared(all_values(server)), "our log after a restart")


@test(timeout=180)
def a_log_of_redis_in_ours(context):
    rng = context.rng("its log")
    for preamble in ("yes", "no"):
        stock = durable(
            context, *LOG, "--aof-use-rdb-preamble", preamble, binary=context.options.stock
        )
        with stock.client() as client:
            fill(client, dataset(rng, 48))
            rewrite(stock)
            fill(client, changes(rng, client))
        expected = all_values(stock)
        server = moved(context, stock, context.options.server, *LOG)
        what = "a log of Redis, preamble " + preamble
        same_contents(uncounted(expected), uncounted(all_values(server)), what)


@test(timeout=120)
def commands_for_every_type(context):
    """A base of commands instead of a snapshot."""
    server = durable(context, *LOG, "--aof-use-rdb-preamble", "no")
    with server.client() as client:
        fill(client, dataset(context.rng("commands")))
    rewrite(server)
    base = log_base(server).name
    check(base.endswith(".base.aof"), base)
    with open(server.path("appendonlydir", base), "rb") as file:
        found = file.read()
    for name in (b"SET", b"RPUSH", b"SADD", b"ZADD", b"HMSET", b"XADD", b"PEXPIREAT"):
        check(b"\r\n$%d\r\n%s\r\n" % (len(name), name) in found, "%s in the base" % name)
    expected = all_values(server)
    server.kill()
    server.restart()
    same_contents(expected, all_values(server), "a base of commands in ours")
    other = moved(context, server, context.options.stock, *LOG)
    same_contents(expected, all_values(other), "a base of commands in Redis")


def times_and_groups(client):
    """What a base of commands could lose: times of fields, groups and what is pending in them."""
    streams = ("s", "empty", "deleted")
    groups = []
    for name in streams:
        for key, value in flat_map(client.call("XINFO", "STREAM", name, "FULL")):
            groups.append((name, key, without_times(value) if key == b"groups" else value))
    fields = [
        sorted(zip(names, client.call("HPEXPIRETIME", key, "FIELDS", len(names), *names)))
        for key in ("small", "large")
        for names in [client.call("HKEYS", key)]
    ]
    return groups, fields, client.call("PEXPIRETIME", "small"), client.call("DEBUG", "DIGEST")


def without_times(groups):
    """Of a consumer only what is pending, delivery times included."""
    result = []
    for group in groups:
        for key, value in flat_map(group):
            if key == b"consumers":
                value = [
                    [(k, v) for k, v in flat_map(each) if k not in (b"seen-time", b"active-time")]
                    for each in value
                ]
            result.append((key, value))
    return result


@test(timeout=60)
def a_base_of_commands_keeps_times_and_groups(context):
    context.sava_only()
    server = durable(context, *LOG, "--aof-use-rdb-preamble", "no")
    with server.client() as client:
        for key, count in (("small", 3), ("large", 2000)):
            for number in range(count):
                client.call("HSET", key, "f%d" % number, "v" * 60)
            client.call("HPEXPIREAT", key, YEAR_2100_MS + 5, "FIELDS", "2", "f0", "f2")
        client.call("PEXPIREAT", "small", YEAR_2100_MS)
        client.call("RPUSH", "long", *("e%d" % n * 30 for n in range(3000)))
        client.call("AFC.ADD", "afc", *("member%d" % n for n in range(500)))
        client.call("AFC.ADD", "afc2", *("member%d" % n for n in range(500)))
        for name in ("s", "empty", "deleted"):
            for number in range(1, 60):
                client.call("XADD", name, "5-%d" % number, "n", number, "m", "x")
            client.call("XGROUP", "CREATE", name, "g", "0")
            client.call("XGROUP", "CREATE", name, "unread", "5-7", "ENTRIESREAD", "3")
            client.call("XGROUP", "CREATECONSUMER", name, "g", "idle")
            client.call("XREADGROUP", "GROUP", "g", "a", "COUNT", "9", "STREAMS", name, ">")
            client.call("XREADGROUP", "GROUP", "g", "b", "COUNT", "4", "STREAMS", name, ">")
            client.call("XCLAIM", name, "g", "b", "0", "5-2", "RETRYCOUNT", "7")
            client.call("XDEL", name, "5-30")
        client.call("XTRIM", "empty", "MAXLEN", "0")
        client.call("XACK", "empty", "g", *("5-%d" % n for n in range(1, 60)))
        client.call("XDEL", "deleted", "5-3", "5-11")
        expected = times_and_groups(client)
    rewrite(server)
    check(log_base(server).name.endswith(".base.aof"), log_base(server).name)
    server.kill()
    server.restart()
    with server.client() as client:
        eq(times_and_groups(client), expected)
        eq(client.call("CONFIG", "SET", "aof-use-rdb-preamble", "yes"), resp.OK)
    rewrite(server)
    check(log_base(server).name.endswith(".base.rdb"), log_base(server).name)
    server.kill()
    server.restart()
    with server.client() as client:
        eq(times_and_groups(client), expected)


# ---- payloads ----


@test(timeout=120)
def payloads_both_ways(context):
    """What one server dumps, the other restores to the same value."""
    rng = context.rng("payloads")
    stock, sut = context.client(context.stock), context.client()
    for client in (stock, sut):
        client.call("FLUSHALL")
    commands = [
        command for command in dataset(rng, 60) if command[0] not in (b"SELECT", b"PEXPIREAT")
    ]
    for source, target in ((stock, sut), (sut, stock)):
        source.call("FLUSHALL")
        target.call("FLUSHALL")
        fill(source, commands)
        for key in keys_of(source):
            dumped = source.call("DUMP", key)
            eq(
                target.call("RESTORE", key, "0", dumped),
                resp.OK,
                "RESTORE of a %r" % source.call("TYPE", key),
            )
            kind = bytes(source.call("TYPE", key))
            context.same(
                READERS[kind](target, key),
                READERS[kind](source, key),
                "%s %r" % (kind.decode(), key),
            )


# ---- files of older and newer Redis, built byte by byte ----


def length(number):
    if number < 64:
        return bytes([number])
    if number < 1 << 14:
        return bytes([0x40 | number >> 8, number & 255])
    if number < 1 << 32:
        return b"\x80" + struct.pack(">I", number)
    return b"\x81" + struct.pack(">Q", number)


def string(value):
    return length(len(value)) + value


def integer_string(number):
    """A string kept as a number."""
    if -128 <= number < 128:
        return b"\xc0" + struct.pack("<b", number)
    if -32768 <= number < 32768:
        return b"\xc1" + struct.pack("<h", number)
    return b"\xc2" + struct.pack("<i", number)


def ziplist_entry(value, before):
    prefix = bytes([before]) if before < 254 else b"\xfe" + struct.pack("<I", before)
    if isinstance(value, int):
        if 0 <= value <= 12:
            return prefix + bytes([0xF1 + value])
        for code, form, low, high in (
            (0xFE, "<b", -128, 128),
            (0xC0, "<h", -(1 << 15), 1 << 15),
            (None, None, -(1 << 23), 1 << 23),
            (0xD0, "<i", -(1 << 31), 1 << 31),
            (0xE0, "<q", -(1 << 63), 1 << 63),
        ):
            if low <= value < high:
                if code is None:
                    return prefix + b"\xf0" + struct.pack("<i", value)[:3]
                return prefix + bytes([code]) + struct.pack(form, value)
    if len(value) < 64:
        return prefix + bytes([len(value)]) + value
    if len(value) < 1 << 14:
        return prefix + bytes([0x40 | len(value) >> 8, len(value) & 255]) + value
    return prefix + b"\x80" + struct.pack(">I", len(value)) + value


def ziplist(values):
    body, before, tail = b"", 0, 10
    for value in values:
        tail = 10 + len(body)
        entry = ziplist_entry(value, before)
        before = len(entry)
        body += entry
    return struct.pack("<IIH", 10 + len(body) + 1, tail, len(values)) + body + b"\xff"


def listpack_entry(value):
    if isinstance(value, int):
        if 0 <= value < 128:
            data = bytes([value])
        elif -4096 <= value < 4096:
            data = bytes([0xC0 | (value & 0x1FFF) >> 8, value & 255])
        elif -(1 << 15) <= value < 1 << 15:
            data = b"\xf1" + struct.pack("<h", value)
        elif -(1 << 23) <= value < 1 << 23:
            data = b"\xf2" + struct.pack("<i", value)[:3]
        elif -(1 << 31) <= value < 1 << 31:
            data = b"\xf3" + struct.pack("<i", value)
        else:
            data = b"\xf4" + struct.pack("<q", value)
    elif len(value) < 64:
        data = bytes([0x80 | len(value)]) + value
    elif len(value) < 4096:
        data = bytes([0xE0 | len(value) >> 8, len(value) & 255]) + value
    else:
        data = b"\xf0" + struct.pack("<I", len(value)) + value
    size_ = len(data)
    back = bytes([size_]) if size_ < 128 else bytes([size_ >> 7, size_ & 127 | 128])
    if size_ >= 16383:
        back = bytes([size_ >> 14, size_ >> 7 & 127 | 128, size_ & 127 | 128])
    return data + back


def listpack(values):
    body = b"".join(listpack_entry(value) for value in values)
    return struct.pack("<IH", 7 + len(body), len(values)) + body + b"\xff"


def intset(values, width):
    form = {2: "<h", 4: "<i", 8: "<q"}[width]
    return struct.pack("<II", width, len(values)) + b"".join(
        struct.pack(form, v) for v in sorted(values)
    )


def zipmap(pairs):
    body = b""
    for number, (field, value) in enumerate(pairs):
        free = number % 3
        for part, spare in ((field, None), (value, free)):
            body += (
                bytes([len(part)]) if len(part) < 254 else b"\xfe" + struct.pack("<I", len(part))
            )
            body += b"" if spare is None else bytes([spare])
            body += part + bytes(spare or 0)
    return bytes([len(pairs)]) + body + b"\xff"


def stream_listpack():
    """Two entries with the fields of the head, one deleted, one with its own."""
    return listpack(
        [3, 1, 2, b"temperature", b"place", 0]
        + [2, 0, 0, 21, b"river", 5]
        + [3, 1, 0, 22, b"town", 5]
        + [2, 2, 5, -5, b"hill", 5]
        + [0, 7, 0, 1, b"other", b"value", 6]
    )


def stream_value_bytes(version):
    """Blocks, numbers, a group with two pending entries."""
    raw = [struct.pack(">QQ", 1000, 0), struct.pack(">QQ", 1002, 5)]
    body = length(1) + string(raw[0]) + string(stream_listpack())
    body += length(3) + length(1007) + length(0)
    if version > 1:
        body += length(1000) + length(0) + length(1001) + length(0) + length(4)
    body += length(1) + string(b"group") + length(1002) + length(5)
    if version > 1:
        body += length(3)
    body += length(2)
    for each in raw:
        body += each + struct.pack("<Q", 1700000000000) + length(2)
    body += length(2)
    for number, name in enumerate((b"alice", b"bob")):
        body += string(name) + struct.pack("<Q", 1700000000000 + number)
        if version > 2:
            body += struct.pack("<Q", 1700000000500)
        body += length(1) + raw[number]
    return body


def ascii_double(text_):
    special = {b"nan": 253, b"inf": 254, b"-inf": 255}
    return bytes([special[text_]]) if text_ in special else bytes([len(text_)]) + text_


LONG = b"l" * 300
INF = float("inf")
VALUES = {
    # key: (RDB type, bytes, what clients read)
    b"list": (1, length(3) + string(b"a") + integer_string(-7) + string(LONG), [b"a", b"-7", LONG]),
    b"list of ziplist": (
        10,
        string(
            ziplist([b"a", 5, 12, 13, -1, 300, 70000, 1 << 40, -(1 << 63), LONG, b"", b"z" * 20000])
        ),
        [
            b"a",
            b"5",
            b"12",
            b"13",
            b"-1",
            b"300",
            b"70000",
            b"1099511627776",
            b"-9223372036854775808",
            LONG,
            b"",
            b"z" * 20000,
        ],
    ),
    b"quicklist": (
        14,
        length(2) + string(ziplist([b"a", 1])) + string(ziplist([LONG, 8000000])),
        [b"a", b"1", LONG, b"8000000"],
    ),
    b"quicklist 2": (
        18,
        length(3)
        + length(2)
        + string(listpack([b"a", 1]))
        + length(1)
        + string(b"plain")
        + length(2)
        + string(listpack([LONG])),
        [b"a", b"1", b"plain", LONG],
    ),
    b"set": (
        2,
        length(3) + string(b"a") + integer_string(70000) + string(b"c"),
        [b"70000", b"a", b"c"],
    ),
    b"intset 16": (11, string(intset([-5, 3, 300], 2)), [b"-5", b"3", b"300"]),
    b"intset 32": (11, string(intset([-5, 3, 70000], 4)), [b"-5", b"3", b"70000"]),
    b"intset 64": (11, string(intset([-5, 1 << 40], 8)), [b"-5", b"1099511627776"]),
    b"hash": (
        4,
        length(2) + string(b"f") + string(b"v") + integer_string(12) + integer_string(-3000),
        {b"f": b"v", b"12": b"-3000"},
    ),
    b"hash of zipmap": (
        9,
        string(zipmap([(b"f", b"v"), (b"g", LONG), (b"h", b"")])),
        {b"f": b"v", b"g": LONG, b"h": b""},
    ),
    b"hash of ziplist": (
        13,
        string(ziplist([b"f", 5, b"g", LONG, 7, b"w"])),
        {b"f": b"5", b"g": LONG, b"7": b"w"},
    ),
    b"hash of listpack": (
        16,
        string(listpack([b"f", 5, b"g", LONG, 7, b"w"])),
        {b"f": b"5", b"g": LONG, b"7": b"w"},
    ),
    b"zset": (
        3,
        length(4)
        + string(b"a")
        + ascii_double(b"1.5")
        + string(b"b")
        + ascii_double(b"-inf")
        + string(b"c")
        + ascii_double(b"inf")
        + string(b"d")
        + ascii_double(b"3"),
        [(b"b", -INF), (b"a", 1.5), (b"d", 3.0), (b"c", INF)],
    ),
    b"zset 2": (
        5,
        length(2) + string(b"a") + struct.pack("<d", 0.1) + string(b"b") + struct.pack("<d", -3),
        [(b"b", -3.0), (b"a", 0.1)],
    ),
    b"zset of ziplist": (
        12,
        string(ziplist([b"b", -3, b"a", b"1.5", LONG, 1000])),
        [(b"b", -3.0), (b"a", 1.5), (LONG, 1000.0)],
    ),
    b"zset of listpack": (
        17,
        string(listpack([b"b", -3, b"a", b"1.5", LONG, 1000])),
        [(b"b", -3.0), (b"a", 1.5), (LONG, 1000.0)],
    ),
    b"stream 1": (15, stream_value_bytes(1), None),
    b"stream 2": (19, stream_value_bytes(2), None),
}
# Of Redis 7.2, which Redis 7.0 does not read.
NEWER = {
    b"set of listpack": (20, string(listpack([b"a", 7, b"c", LONG])), [b"7", b"a", b"c", LONG]),
    b"stream 3": (21, stream_value_bytes(3), None),
}


def rdb_file(version, values):
    data = b"REDIS%04d" % version
    data += b"\xfa" + string(b"redis-ver") + string(b"6.0.0") + b"\xfe" + length(0)
    data += b"\xfb" + length(len(values)) + length(0)
    for key, (kind, body, _) in values.items():
        data += bytes([kind]) + string(key) + body
    return data + b"\xff" + (bytes(8) if version >= 5 else b"")


def read_built(client, key, expected):
    kind = bytes(client.call("TYPE", key))
    value = READERS[kind](client, key)
    return (
        sorted(value) if kind == b"set" else value,
        sorted(expected) if kind == b"set" else expected,
    )


def load_built(context, binary, version, values):
    directory = context.temp_dir()
    with open(os.path.join(directory, "dump.rdb"), "wb") as file:
        file.write(rdb_file(version, values))
    return durable(context, *NO_LOG, binary=binary, directory=directory)


@test(timeout=120)
def files_of_every_age(context):
    for version, values in ((6, VALUES), (9, VALUES), (10, VALUES), (11, {**VALUES, **NEWER})):
        readable = version < 11
        if not readable and not context.is_sava:
            continue
        server = load_built(context, context.options.server, version, values)
        stock = load_built(context, context.options.stock, version, values) if readable else None
        with server.client() as client:
            eq(client.call("DBSIZE"), len(values), "keys of a file of version %d" % version)
            for key, (_, _, expected) in values.items():
                if expected is not None:
                    context.same(
                        *read_built(client, key, expected),
                        "version %d, %s" % (version, key.decode()),
                    )
            for key in (key for key in values if key.startswith(b"stream")):
                eq(
                    [entry[0] for entry in client.call("XRANGE", key, "-", "+")],
                    [b"1000-0", b"1002-5", b"1007-0"],
                )
                eq(client.call("XPENDING", key, "group")[:1], [2])
            eq(client.call("SAVE"), resp.OK)
            if stock:
                with stock.client() as other:
                    for key in values:
                        kind = bytes(other.call("TYPE", key))
                        one, two = [READERS[kind](each, key) for each in (client, other)]
                        context.same(
                            one, two, "version %d, %s against Redis" % (version, key.decode())
                        )
        # What was read is written in today's forms.
        saved = durable(context, *NO_LOG, binary=context.options.stock, directory=server.dir)
        with saved.client() as other:
            eq(other.call("DBSIZE"), len(values))


@test(timeout=60)
def damaged_values_are_refused(context):
    """Cut or changed payloads of every form: an error, and nothing else happens."""
    context.sava_only("stock Redis checks only what sanitize-dump-payload says")
    rng = context.rng("damaged")
    client = context.client()
    client.call("FLUSHALL")
    refused = 0
    for key, (kind, body, _) in {**VALUES, **NEWER}.items():
        for _ in range(40):
            damaged = bytearray(bytes([kind]) + body)
            if rng.random() < 0.3:
                del damaged[rng.randrange(1, len(damaged)) :]
            else:
                damaged[rng.randrange(1, len(damaged))] ^= 1 << rng.randrange(8)
            reply = client.call("RESTORE", "damaged", "0", payload(bytes(damaged), 11), "REPLACE")
            check(
                reply == resp.OK or reply == resp.Error(b"ERR Bad data format"),
                "%s: %s" % (key, resp.show(reply)),
            )
            refused += reply != resp.OK
            client.call("DUMP", "damaged")
            client.call("DEL", "damaged")
    check(refused > 200, "only %d were refused" % refused)
    eq(client.call("PING"), resp.PONG)


# ---- snapshots of large collections that change ----

MEMBERS = 20_000
WORKERS = 2


def prepare_large(client):
    commands = []
    for at in range(0, MEMBERS, 500):
        names = [b"member:%d" % n for n in range(at, at + 500)]
        commands.append((b"RPUSH", b"list", *names))
        commands.append((b"SADD", b"here", *names))
        commands.append((b"HSET", b"hash", *[word for name in names for word in (name, b"0")]))
        commands.append((b"ZADD", b"zset", *[word for name in names for word in (b"10", name)]))
        commands += [
            (b"XADD", b"stream", b"%d-0" % (n + 1), b"n", b"0") for n in range(at, at + 500)
        ]
    commands += [(b"XGROUP", b"CREATE", b"stream", b"g", b"0")]
    commands += [(b"SET", b"done:%d" % worker, b"0") for worker in range(WORKERS)]
    for reply in client.pipeline(commands):
        check(not resp.is_error(reply), resp.show(reply))


def large_work(address, rng, worker, stop):
    """Transactions that each leave all sums as they were, and say how many there have been."""
    done = 0
    with resp.Client(address, 60 * SLOW) as client:
        while not os.path.exists(stop):
            done += 1
            number = b"%d" % done
            one, two = [b"member:%d" % rng.randrange(MEMBERS) for _ in range(2)]
            sets = rng.choice(((b"here", b"there"), (b"there", b"here")))
            commands = [
                (b"MULTI",),
                (b"SET", b"done:%d" % worker, number),
                (b"RPUSH", b"list", b"%d:%d" % (worker, done)),
                (b"LPOP", b"list"),
                (b"HSET", b"hash", b"last:%d" % worker, number),
                (b"HINCRBY", b"hash", one, b"1"),
                (b"HINCRBY", b"hash", two, b"-1"),
                (b"ZINCRBY", b"zset", b"3", one),
                (b"ZINCRBY", b"zset", b"-3", two),
                (b"SMOVE", *sets, one),
                (b"XADD", b"stream", b"MAXLEN", b"%d" % MEMBERS, b"*", b"w%d" % worker, number),
                (
                    b"XREADGROUP",
                    b"GROUP",
                    b"g",
                    b"c%d" % worker,
                    b"COUNT",
                    b"3",
                    b"STREAMS",
                    b"stream",
                    b">",
                ),
                (b"SET", b"pending:%d" % worker, number),
                (b"EXEC",),
            ]
            reply = client.pipeline(commands)[-1]
            check(type(reply) is list and not any(map(resp.is_error, reply)), resp.show(reply))
    return done


def check_large(client, what):
    eq(client.call("LLEN", "list"), MEMBERS, what + ": the list")
    eq(client.call("SCARD", "here") + client.call("SCARD", "there"), MEMBERS, what + ": the sets")
    eq(client.call("XLEN", "stream"), MEMBERS, what + ": the stream")
    fields = hash_value(client, "hash")
    eq(len([name for name in fields if not name.startswith(b"last:")]), MEMBERS, what)
    total = sum(int(value) for name, value in fields.items() if name.startswith(b"member"))
    eq(total, 0, what + ": the hash's sum")
    scores = zset_value(client, "zset")
    eq(len(scores), MEMBERS, what + ": the sorted set")
    eq(sum(number for _, number in scores), 10.0 * MEMBERS, what + ": the scores' sum")
    check(scores == sorted(scores, key=lambda pair: (pair[1], pair[0])), what + ": the order")
    tail = client.call("LRANGE", "list", "0", "-1")
    entries = client.call("XREVRANGE", "stream", "+", "-", "COUNT", str(MEMBERS))
    for worker in range(WORKERS):
        done = client.call("GET", "done:%d" % worker)
        eq(fields.get(b"last:%d" % worker, b"0"), done, what + ": a field")
        mine = [item.split(b":")[1] for item in tail if item.startswith(b"%d:" % worker)]
        eq(mine[-1] if mine else b"0", done, what + ": the list's end")
        mine = [entry[1][1] for entry in entries if entry[1][0] == b"w%d" % worker]
        eq(mine[0] if mine else b"0", done, what + ": the stream's end")
    group = client.call("XINFO", "GROUPS", "stream")[0]
    info = dict(zip(group[::2], group[1::2]))
    summary = client.call("XPENDING", "stream", "g")
    eq(sum(int(each[1]) for each in summary[3] or []), info[b"pending"], what + ": what is pending")


@test(timeout=240)
def large_collections_while_they_change(context):
    """Every snapshot shows one instant of values far larger than a piece of it."""
    stop = os.path.join(context.temp_dir(), "stop")
    server = durable(context, *NO_LOG)
    with server.client() as client:
        prepare_large(client)
    taken = context.temp_dir()
    rounds = 6 if context.options.long else 3

    def save():
        for number in range(rounds):
            for _ in range(5):
                background_save(server)
            shutil.copy(server.path("dump.rdb"), os.path.join(taken, "%d.rdb" % number))
        with open(stop, "w"):
            pass
        return rounds

    def work(worker):
        rng = context.rng("large %d" % worker)
        return lambda: large_work(server.address, rng, worker, stop)

    done = run_workers([save] + [work(worker) for worker in range(WORKERS)], 200)
    context.say("%d snapshots, %d transactions meanwhile" % (rounds, sum(done[1:])))
    for number in range(rounds):
        directory = context.temp_dir()
        shutil.copy(os.path.join(taken, "%d.rdb" % number), os.path.join(directory, "dump.rdb"))
        binary = context.options.stock if number == 0 else context.options.server
        loaded = durable(context, *NO_LOG, binary=binary, directory=directory)
        with loaded.client(timeout=60 * SLOW) as client:
            check_large(client, "snapshot %d in %s" % (number, loaded.name))
        loaded.stop()
