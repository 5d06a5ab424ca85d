"""Association counters from outside: replies in both protocols, and as keys among other keys."""

import threading
import uuid

import resp
from harness import check, eq, test, until

WRONG_TYPE = resp.Error(b"WRONGTYPE Operation against a key holding the wrong kind of value")
NOT_INTEGER = resp.Error(b"ERR value is not an integer or out of range")
MUST_BE_POSITIVE = resp.Error(b"ERR value is out of range, must be positive")
SYNTAX = resp.Error(b"ERR syntax error")


def ours(context, **options):
    context.natives_only("stock Redis has no association counters")
    return context.client(**options)


def top(client, key, k=1000):
    """Pairs of member and count, of a RESP2 client."""
    flat = client.call("AFC.TOP", key, str(k), "WITHCOUNTS")
    return list(zip(flat[::2], flat[1::2]))


def info(client, key):
    flat = client.call("AFC.INFO", key)
    return dict(zip(flat[::2], flat[1::2]))


class Model:
    """The order of the document in a few lines."""

    def __init__(self):
        self.all = []

    def add(self, member, n=1):
        count = n
        for i, (name, old) in enumerate(self.all):
            if name == member:
                del self.all[i]
                count += old
                break
        place = len(self.all)
        if count > 1:
            place = next((i for i, x in enumerate(self.all) if x[1] <= count), place)
        self.all.insert(place, (member, count))


# ---- replies ----


@test()
def replies_in_resp2(context):
    client = ours(context)
    eq(client.call("AFC.ADD", "k", "a"), 1)
    eq(client.call("afc.add", "k", "a", "b", "b", "c"), 2)
    eq(client.call("AFC.INCRBY", "k", "c", "5"), 6)
    eq(client.call("AFC.TOP", "k", "2"), [b"c", b"b"])
    eq(client.call("AFC.TOP", "k", "2", "WITHCOUNTS"), [b"c", 6, b"b", 2])
    eq(client.call("AFC.TOP", "k", "0"), [])
    eq(client.call("AFC.TOP", "k", "9223372036854775807"), [b"c", b"b", b"a"])
    eq(client.call("AFC.COUNT", "k", "a", "nope", "c"), [2, 0, 6])
    eq(client.call("AFC.CARD", "k"), 3)
    eq(client.call("AFC.TOTAL", "k"), 10)
    eq(client.call("AFC.REM", "k", "a", "nope"), 1)
    eq(client.call("AFC.MERGE", "m", "k", "nope"), resp.OK)
    eq(top(client, "m"), [(b"c", 6), (b"b", 2)])
    eq(client.call("AFC.RESERVE", "r", "MAXLEN", "10", "WINDOW", "60"), resp.OK)
    eq(client.call("AFC.RESERVE", "r"), resp.Error(b"ERR key already exists"))
    fields = info(client, "r")
    eq(
        list(fields),
        [b"members", b"total", b"layout", b"maxlen", b"halflife", b"window", b"bytes"],
    )
    eq([fields[b"members"], fields[b"maxlen"]], [0, 10])
    eq([fields[b"halflife"], fields[b"window"]], [0, 60])
    eq(fields[b"layout"], b"packed")
    usage = client.call("MEMORY", "USAGE", "r")
    check(abs(fields[b"bytes"] - usage) <= context.by_host(0, 32), "bytes and MEMORY USAGE differ")


@test()
def replies_in_resp3(context):
    client = ours(context, proto=3)
    client.call("AFC.ADD", "k", "a", "b", "b")
    eq(client.call("AFC.TOP", "k", "5"), [b"b", b"a"])
    eq(client.call("AFC.TOP", "k", "5", "WITHCOUNTS"), [[b"b", 2], [b"a", 1]])
    eq(client.call("AFC.COUNT", "k", "a"), [1])
    eq(client.call("AFC.TOP", "nope", "5", "WITHCOUNTS"), [])
    reply = client.call("AFC.INFO", "k")
    check(isinstance(reply, resp.Map), "AFC.INFO is not a map: %r" % (reply,))


@test()
def missing_keys(context):
    client = ours(context)
    eq(client.call("AFC.TOP", "nope", "5"), [])
    eq(client.call("AFC.COUNT", "nope", "a", "b"), [0, 0])
    eq(client.call("AFC.CARD", "nope"), 0)
    eq(client.call("AFC.TOTAL", "nope"), 0)
    eq(client.call("AFC.REM", "nope", "a"), 0)
    eq(client.call("AFC.MERGE", "d", "nope"), resp.OK)
    eq(client.call("AFC.INFO", "nope"), resp.Error(b"ERR no such key"))
    eq(client.call("DBSIZE"), 0)


@test()
def errors(context):
    client = ours(context)
    client.call("AFC.ADD", "k", "a")
    client.call("SET", "s", "text")
    for args, error in [
        (("AFC.INCRBY", "k", "a", "x"), NOT_INTEGER),
        (("AFC.INCRBY", "k", "a", "1.5"), NOT_INTEGER),
        (("AFC.INCRBY", "k", "a", "9223372036854775808"), NOT_INTEGER),
        (("AFC.INCRBY", "k", "a", "0"), MUST_BE_POSITIVE),
        (("AFC.INCRBY", "k", "a", "-1"), MUST_BE_POSITIVE),
        (("AFC.TOP", "k", "-1"), MUST_BE_POSITIVE),
        (("AFC.TOP", "k", "many"), NOT_INTEGER),
        (("AFC.TOP", "k", "1", "WITHSCORES"), SYNTAX),
        (("AFC.RESERVE", "n", "MAXLEN", "0"), MUST_BE_POSITIVE),
        (("AFC.RESERVE", "n", "HALFLIFE", "1", "WINDOW", "1"), SYNTAX),
        (("AFC.RESERVE", "n", "WINDOW"), SYNTAX),
        (("AFC.RESERVE", "n", "WINDOW", "0.5"), NOT_INTEGER),
        (("AFC.ADD", "s", "a"), WRONG_TYPE),
        (("AFC.TOP", "s", "1"), WRONG_TYPE),
        (("AFC.MERGE", "d", "k", "s"), WRONG_TYPE),
        (("AFC.INFO", "s"), WRONG_TYPE),
        (("GET", "k"), WRONG_TYPE),
        (("APPEND", "k", "x"), WRONG_TYPE),
        (
            ("AFC.ADD", "k"),
            resp.Error(b"ERR wrong number of arguments for 'afc.add' command"),
        ),
    ]:
        context.same(client.call(*args), error, " ".join(args))
    eq(client.call("EXISTS", "n", "d"), 0)
    eq(top(client, "k"), [(b"a", 1)])


@test()
def order_of_the_document(context):
    client = ours(context)
    rng = context.rng("afc.order")
    for members in (5, 100, 3000):
        names = [str(uuid.UUID(int=rng.getrandbits(128))).encode() for _ in range(members)]
        model = Model()
        for _ in range(40):
            batch = [names[int(members * rng.random() ** 3)] for _ in range(100)]
            client.pipeline([("AFC.ADD", "k", name) for name in batch])
            for name in batch:
                model.add(name)
        eq(top(client, "k", 10000), model.all, "%d members" % members)
        eq(client.call("AFC.TOTAL", "k"), 4000)
        client.call("DEL", "k")


@test()
def any_bytes_are_members(context):
    client = ours(context)
    members = [b"", b"\x00", b"\r\n", b"\xff" * 40, "Обрадовића".encode(), b"x" * 100_000]
    members += [b"0f8fad5b-d9cb-469f-a165-70867728950e", b"0F8FAD5B-D9CB-469F-A165-70867728950E"]
    eq(client.call("AFC.ADD", "k", *members), len(members))
    eq(client.call("AFC.TOP", "k", "100"), members)


@test()
def largest_count(context):
    client = ours(context)
    most = 2**63 - 1
    eq(client.call("AFC.INCRBY", "k", "a", str(most)), most)
    eq(client.call("AFC.ADD", "k", "b", "a"), 1)
    eq(client.call("AFC.INCRBY", "k", "b", str(most)), most)
    eq(top(client, "k"), [(b"b", most), (b"a", most)])
    eq(client.call("AFC.TOTAL", "k"), most)


# ---- as keys among others ----


@test()
def layouts_and_object(context):
    client = ours(context)
    client.call("AFC.ADD", "k", *[str(i) for i in range(100)])
    eq(client.call("TYPE", "k"), resp.Status(context.by_host(b"afc", b"sava-afc1")))
    eq(client.call("OBJECT", "ENCODING", "k"), context.by_host(b"packed", b"raw"))
    eq(info(client, "k")[b"layout"], b"packed")
    small = client.call("MEMORY", "USAGE", "k")
    client.call("AFC.ADD", "k", *[str(i) for i in range(5000)])
    eq(client.call("OBJECT", "ENCODING", "k"), context.by_host(b"indexed", b"raw"))
    check(client.call("MEMORY", "USAGE", "k") > 10 * small, "a large counter is as small as before")
    client.call("AFC.REM", "k", *[str(i) for i in range(4990)])
    eq(client.call("OBJECT", "ENCODING", "k"), context.by_host(b"packed", b"raw"))
    eq(client.call("OBJECT", "REFCOUNT", "k"), 1)
    check(isinstance(client.call("OBJECT", "IDLETIME", "k"), int), "no idle time")
    eq(client.call("AFC.REM", "k", *[str(i) for i in range(4990, 5000)]), 10)
    eq(client.call("EXISTS", "k"), 0)


@test()
def dump_and_restore(context):
    client = ours(context)
    client.call("AFC.ADD", "small", "a", "b", "b", "c")
    client.call("AFC.ADD", "large", *[str(i) for i in range(3000)])
    client.call("AFC.ADD", "large", *[str(i) for i in range(0, 3000, 7)])
    client.call("AFC.RESERVE", "bounded", "MAXLEN", "3")
    client.call("AFC.ADD", "bounded", "a", "b", "c", "d", "a")
    client.call("AFC.RESERVE", "window", "WINDOW", "3600")
    client.call("AFC.ADD", "window", "a", "b", "b")
    client.call("AFC.RESERVE", "decay", "HALFLIFE", "360000")
    client.call("AFC.INCRBY", "decay", "a", "1000")
    client.call("AFC.RESERVE", "empty")
    for key in ("small", "large", "bounded", "window", "decay", "empty"):
        payload = client.call("DUMP", key)
        eq(client.call("RESTORE", "r", "0", payload, "REPLACE"), resp.OK, key)
        eq(top(client, "r", 10000), top(client, key, 10000), key)
        before, after = info(client, key), info(client, "r")
        del before[b"bytes"], after[b"bytes"]
        eq(after, before, key)
        eq(
            client.call("DEBUG", "DIGEST-VALUE", "r"),
            client.call("DEBUG", "DIGEST-VALUE", key),
            key,
        )
        damaged = bytearray(payload)
        damaged[len(damaged) // 2] ^= 1
        reply = client.call("RESTORE", "x", "0", bytes(damaged))
        eq(reply, resp.Error(b"ERR DUMP payload version or checksum are wrong"))
    # Stock Redis refuses what it does not know, and lives.
    reply = context.stock.call("RESTORE", "x", "0", client.call("DUMP", "small"))
    check(isinstance(reply, resp.Error), "stock Redis took a counter: %r" % (reply,))


@test()
def copy_rename_move(context):
    client = ours(context)
    client.call("AFC.ADD", "k", "a", "b", "b")
    expected = top(client, "k")
    eq(client.call("COPY", "k", "c"), 1)
    client.call("AFC.ADD", "c", "z")
    eq(top(client, "k"), expected)
    eq(client.call("RENAME", "k", "r"), resp.OK)
    eq(top(client, "r"), expected)
    eq(client.call("EXISTS", "k"), 0)
    eq(client.call("MOVE", "r", "1"), 1)
    client.call("SELECT", "1")
    eq(top(client, "r"), expected)
    eq(client.call("AFC.MERGE", "all", "r", "r"), resp.OK)
    eq(client.call("AFC.COUNT", "all", "b"), [4])


@test()
def expiry(context):
    client = ours(context)
    client.call("AFC.ADD", "k", "a")
    client.call("EXPIRE", "k", "1000")
    client.call("AFC.ADD", "k", "b")
    client.call("AFC.INCRBY", "k", "b", "2")
    client.call("AFC.MERGE", "k", "k")
    check(990 <= client.call("TTL", "k") <= 1000, "counting changed the expiry")
    client.call("PEXPIRE", "k", "20")
    until(lambda: client.call("EXISTS", "k") == 0, what="the end of the key")
    eq(client.call("AFC.TOP", "k", "5"), [])
    eq(client.call("AFC.ADD", "k", "a"), 1)
    eq(client.call("TTL", "k"), -1)


@test()
def scan_by_type(context):
    client = ours(context)
    client.call("AFC.ADD", "one", "a")
    client.call("AFC.ADD", "two", "a")
    client.call("SET", "three", "a")
    cursor, found = b"0", []
    while True:
        cursor, keys = client.call("SCAN", cursor, "TYPE", context.by_host("afc", "sava-afc1"))
        found += keys
        if cursor == b"0":
            break
    eq(sorted(found), [b"one", b"two"])


@test()
def transactions_and_watches(context):
    client, other = ours(context), context.client()
    client.call("MULTI")
    eq(client.call("AFC.ADD", "k", "a"), resp.Status(b"QUEUED"))
    client.call("AFC.INCRBY", "k", "a", "2")
    client.call("AFC.TOP", "k", "1", "WITHCOUNTS")
    eq(client.call("EXEC"), [1, 3, [b"a", 3]])
    changes = [
        ("AFC.ADD", "k", "a"),
        ("AFC.INCRBY", "k", "b", "2"),
        ("AFC.REM", "k", "b"),
        ("AFC.MERGE", "k", "k"),
        ("AFC.REM", "k", "a"),
        ("AFC.RESERVE", "k", "WINDOW", "60"),
        ("AFC.ADDAT", "k", "1700000000000", "1", "a"),
        ("AFC.REMAT", "k", "1700000000000", "a"),
    ]
    for change in changes:
        client.call("WATCH", "k")
        reply = other.call(*change)
        check(not isinstance(reply, resp.Error), "%s: %r" % (change, reply))
        client.call("MULTI")
        client.call("PING")
        eq(client.call("EXEC"), resp.NIL_ARRAY, " ".join(change))
    client.call("AFC.ADD", "k", "a")
    for look in [
        ("AFC.TOP", "k", "5"),
        ("AFC.COUNT", "k", "a"),
        ("AFC.REM", "k", "nope"),
        ("AFC.MERGE", "k", "nope"),
        ("AFC.INFO", "k"),
    ]:
        client.call("WATCH", "k")
        other.call(*look)
        client.call("MULTI")
        client.call("PING")
        eq(client.call("EXEC"), [resp.PONG], " ".join(look))


@test()
def notifications(context):
    client = ours(context)
    with context.sut.configured(notify_keyspace_events="KEgd"):
        listener = context.client()
        eq(listener.call("PSUBSCRIBE", "__keyevent@0__:*"), [b"psubscribe", b"__keyevent@0__:*", 1])
        client.call("AFC.ADD", "k", "a")
        client.call("AFC.INCRBY", "k", "a", "2")
        client.call("AFC.MERGE", "d", "k")
        client.call("AFC.REM", "k", "nope")
        client.call("AFC.REM", "k", "a")
        client.call("AFC.RESERVE", "r")
        client.call("SET", "done", "1")
        client.call("DEL", "done")
        events = []
        while not events or events[-1] != (b"del", b"done"):
            message = listener.recv()
            events.append((message[2].split(b":", 1)[1], message[3]))
        eq(
            events,
            [
                (b"afc.add", b"k"),
                (b"afc.incrby", b"k"),
                (b"afc.merge", b"d"),
                (b"afc.rem", b"k"),
                (b"del", b"k"),
                (b"afc.reserve", b"r"),
                (b"del", b"done"),
            ],
        )


@test()
def bounds_and_time(context):
    client = ours(context)
    client.call("AFC.RESERVE", "k", "MAXLEN", "2")
    client.call("AFC.ADD", "k", "a", "a", "a", "b", "b", "c")
    eq(top(client, "k"), [(b"c", 3), (b"a", 3)])
    eq(client.call("AFC.TOTAL", "k"), 6)
    now = int(client.call("TIME")[0]) * 1000
    client.call("AFC.RESERVE", "w", "WINDOW", "100", "NOW", str(now - 1_000_000))
    client.call("AFC.ADDAT", "w", str(now - 1_000_000), "5", "old")
    client.call("AFC.ADDAT", "w", str(now - 50_000), "1", "new", "newer")
    eq(client.call("AFC.COUNT", "w", "old", "new"), [0, 1])
    eq(client.call("AFC.TOP", "w", "5"), [b"new", b"newer"])
    client.call("AFC.RESERVE", "h", "HALFLIFE", "100000", "NOW", str(now - 100_000_000))
    client.call("AFC.ADDAT", "h", str(now - 100_000_000), "1024", "old")
    client.call("AFC.ADDAT", "h", str(now), "1000", "new")
    eq(client.call("AFC.TOP", "h", "2"), [b"new", b"old"])
    old = client.call("AFC.COUNT", "h", "old")[0]
    check(abs(old - 512) <= 7, "a half-life later 1024 are %d" % old)


@test(timeout=60.0)
def many_clients(context):
    """No increment is lost, whoever sends it."""
    ours(context)
    members = [str(i) for i in range(50)]
    failures = []

    def work(number):
        try:
            with context.sut.client() as client:
                for i in range(50):
                    batch = [("AFC.ADD", "k", members[(i * j + number) % 50]) for j in range(40)]
                    for reply in client.pipeline(batch):
                        check(isinstance(reply, int), "not a number: %r" % (reply,))
        except Exception as failure:  # reported by the main thread
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    eq(failures, [])
    client = context.client()
    eq(client.call("AFC.TOTAL", "k"), 8 * 50 * 40)
    eq(sum(count for _, count in top(client, "k")), 8 * 50 * 40)


@test()
def command_table_knows_them(context):
    client = ours(context)
    for name in (
        "add incrby top count card total rem merge reserve info addat remat".split()
    ):
        reply = client.call("COMMAND", "INFO", "afc." + name)[0]
        check(isinstance(reply, list) and reply[0] == b"afc." + name.encode(), "no afc." + name)
    eq(client.call("COMMAND", "GETKEYS", "AFC.MERGE", "d", "a", "b"), [b"d", b"a", b"b"])
