"""Count-min sketches, top-k lists and fingerprints from outside: recorded replies, and as keys."""

import os
import random

import cases
import harness
import resp
from harness import check, eq, run_workers, test

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sketch_cases.txt")
WRONG_TYPE = resp.Error(b"WRONGTYPE Operation against a key holding the wrong kind of value")
SYNTAX = resp.Error(b"ERR syntax error")
TEXT = (
    "the river sava rises in the alps of slovenia runs through croatia along the border of bosnia "
    "and joins the danube in belgrade where the old fortress has watched both rivers for two "
    "thousand years and boats still come up from the black sea with grain and go down with timber"
)


def ours(context, **options):
    context.natives_only("stock Redis has no sketches")
    return context.client(**options)


def fingerprint(value):
    return "%016x" % value


# ---- recorded replies ----


def run_section(context, section):
    client = ours(context)
    for case in section:
        if case.args[0] == b"TYPE" and not context.is_sava:
            continue  # the host has one name for a type, in files and in TYPE
        reply = resp.show(client.call(*case.args), 1 << 30)
        if case.reply not in ("?", reply):
            context.note(
                "line %d: %s\n    expected %s\n    got      %s"
                % (case.number, case.text, case.reply, reply)
            )


def register():
    for name, section in cases.parse(TABLE):
        full = "sketch.cases." + name.replace(" ", "_")
        harness.TESTS.append(
            (full, lambda context, section=section: run_section(context, section), 30.0)
        )


# ---- protocols ----


@test()
def sketches_in_resp3(context):
    client = ours(context, proto=3)
    eq(client.call("CMS.INITBYDIM", "c", "100", "5"), resp.OK)
    info = client.call("CMS.INFO", "c")
    check(isinstance(info, resp.Map), "CMS.INFO is not a map: %r" % (info,))
    eq(client.call("TOPK.RESERVE", "t", "2"), resp.OK)
    eq(client.call("TOPK.ADD", "t", "a", "a", "b"), [resp.NULL] * 3)
    eq(resp.show(client.call("TOPK.QUERY", "t", "a", "x")), "[#t, #f]")
    eq(client.call("TOPK.LIST", "t", "WITHCOUNT"), [b"a", 2, b"b", 1])
    info = client.call("TOPK.INFO", "t")
    check(isinstance(info, resp.Map), "TOPK.INFO is not a map: %r" % (info,))
    client.call("SIMHASH.ADD", "s", "one", "HASH", fingerprint(1))
    client.call("SIMHASH.ADD", "s", "three", "HASH", fingerprint(3))
    eq(
        client.call("SIMHASH.QUERY", "s", "HASH", fingerprint(1), "WITHDISTANCES"),
        [[b"one", 0], [b"three", 1]],
    )
    eq(client.call("SIMHASH.GET", "s", "none"), resp.NULL)
    info = client.call("SIMHASH.INFO", "s")
    check(isinstance(info, resp.Map), "SIMHASH.INFO is not a map: %r" % (info,))


# ---- bounds, by streams of many commands ----


@test()
def sketches_on_a_stream(context):
    """A stream by Zipf's law: no estimate is too low, few are far too high, the list is right."""
    client = ours(context)
    rng = random.Random(7)
    items = ["item:%d" % i for i in range(5000)]
    stream = rng.choices(items, weights=[1 / (i + 1) for i in range(len(items))], k=40_000)
    truth = {}
    eq(client.call("CMS.INITBYPROB", "c", "0.005", "0.01"), resp.OK)
    eq(client.call("TOPK.RESERVE", "t", "20"), resp.OK)
    for at in range(0, len(stream), 500):
        part = stream[at : at + 500]
        client.call("CMS.INCRBY", "c", *(word for item in part for word in (item, "1")))
        client.call("TOPK.ADD", "t", *part)
        for item in part:
            truth[item] = truth.get(item, 0) + 1
    estimates = client.call("CMS.QUERY", "c", *items)
    excess = [estimate - truth.get(item, 0) for item, estimate in zip(items, estimates)]
    check(min(excess) >= 0, "an estimate is too low")
    beyond = sum(1 for x in excess if x > 0.005 * len(stream))
    check(beyond <= 0.01 * len(items), "%d estimates are beyond the bound" % beyond)
    eq(client.call("CMS.INFO", "c")[5], len(stream))
    listed = client.call("TOPK.LIST", "t", "WITHCOUNT")
    counts = dict(zip(listed[::2], listed[1::2]))
    best = sorted(truth, key=truth.get, reverse=True)
    for item in best[:15]:
        check(item.encode() in counts, item + " is not in the list")
    bound = len(stream) / 200
    for item, count in counts.items():
        real = truth[item.decode()]
        check(real <= count <= real + bound, "%s: %d instead of %d" % (item, count, real))


# ---- near-duplicates ----


@test()
def near_duplicates(context):
    client = ours(context)
    changed = TEXT.replace("timber", "wood")
    first = client.call("SIMHASH.ADD", "pages", "original", "TEXT", TEXT)
    eq(len(first), 16)
    client.call("SIMHASH.ADD", "pages", "copy", "TEXT", TEXT.upper().replace(" ", ", "))
    client.call("SIMHASH.ADD", "pages", "changed", "TEXT", changed)
    client.call("SIMHASH.ADD", "pages", "other", "TEXT", "something else entirely about bridges")
    eq(client.call("SIMHASH.GET", "pages", "copy"), first)
    eq(client.call("SIMHASH.DIST", "pages", "original", "copy"), 0)
    eq(client.call("SIMHASH.QUERY", "pages", "TEXT", TEXT, "DISTANCE", "0"), [b"copy", b"original"])
    near = client.call("SIMHASH.DIST", "pages", "original", "changed")
    far = client.call("SIMHASH.DIST", "pages", "original", "other")
    check(near < far, "a changed text is %d away, another one %d" % (near, far))
    found = client.call("SIMHASH.QUERY", "pages", "TEXT", TEXT, "DISTANCE", str(near))
    check(b"changed" in found, "the changed text is not found: %r" % (found,))
    eq(client.call("SIMHASH.REM", "pages", "copy", "changed", "none"), 2)
    eq(client.call("SIMHASH.CARD", "pages"), 2)
    eq(client.call("SIMHASH.REM", "pages", "original", "other"), 2)
    eq(client.call("EXISTS", "pages"), 0)


@test()
def simhash_finds_all(context):
    """Above the threshold of the index, every document within three bits is found."""
    client = ours(context)
    rng = random.Random(3)
    centres = [rng.getrandbits(64) for _ in range(50)]
    truth = {}
    for i in range(12_000):
        value = rng.getrandbits(64)
        if i % 3 == 0:
            value = rng.choice(centres)
            for _ in range(rng.randrange(5)):
                value ^= 1 << rng.randrange(64)
        truth[b"d%d" % i] = value
    documents = list(truth.items())
    for at in range(0, len(documents), 500):
        client.pipeline(
            [("SIMHASH.ADD", "s", i, "HASH", fingerprint(v)) for i, v in documents[at : at + 500]]
        )
    eq(client.call("SIMHASH.CARD", "s"), len(truth))
    info = client.call("SIMHASH.INFO", "s")
    eq(info[:6], [b"documents", 12_000, b"bits", 64, b"layout", b"indexed"])
    for centre in centres:
        for distance in (0, 1, 2, 3, 6):
            expected = sorted(
                (bin(v ^ centre).count("1"), i)
                for i, v in truth.items()
                if bin(v ^ centre).count("1") <= distance
            )
            query = ("SIMHASH.QUERY", "s", "HASH", fingerprint(centre), "DISTANCE", str(distance))
            eq(client.call(*query), [i for _, i in expected])
            limited = client.call(*query, "LIMIT", "2", "WITHDISTANCES")
            eq(limited, [word for d, i in expected[:2] for word in (i, d)])


@test()
def simhash_errors(context):
    client = ours(context)
    client.call("SET", "str", "x")
    bad = resp.Error(b"ERR fingerprint must be 16 hexadecimal digits")
    for args, error in [
        (("SIMHASH.ADD", "s", "a", "HASH", "12"), bad),
        (("SIMHASH.ADD", "s", "a", "BYTES", "12"), SYNTAX),
        (("SIMHASH.ADD", "s", "a", "FEATURES", "x"), SYNTAX),
        (("SIMHASH.QUERY", "s", "HASH", "zz"), bad),
        (("SIMHASH.QUERY", "s", "TEXT", "x", "NEAR"), SYNTAX),
        (
            ("SIMHASH.QUERY", "s", "TEXT", "x", "DISTANCE", "65"),
            resp.Error(b"ERR distance must be an integer from 0 to 64"),
        ),
        (("SIMHASH.ADD", "str", "a", "TEXT", "x"), WRONG_TYPE),
        (("SIMHASH.QUERY", "str", "TEXT", "x"), WRONG_TYPE),
        (("SIMHASH.INFO", "s"), resp.Error(b"ERR no such key")),
        (
            ("SIMHASH.ADD", "s", "a"),
            resp.Error(b"ERR wrong number of arguments for 'simhash.add' command"),
        ),
    ]:
        context.same(client.call(*args), error, " ".join(args))
    eq(client.call("EXISTS", "s"), 0)


# ---- as keys among other keys ----


def fill(client):
    client.call("CMS.INITBYDIM", "c", "30000", "5")  # above 64 KB: large
    client.call("CMS.INCRBY", "c", "a", "5", "b", "7")
    client.call("TOPK.RESERVE", "t", "3")
    client.call("TOPK.ADD", "t", "x", "x", "y")
    client.call("SIMHASH.ADD", "s", "one", "HASH", fingerprint(255))


def look(client, suffix=""):
    return [
        client.call("CMS.QUERY", "c" + suffix, "a", "b", "none"),
        client.call("TOPK.LIST", "t" + suffix, "WITHCOUNT"),
        client.call("SIMHASH.QUERY", "s" + suffix, "HASH", fingerprint(254), "WITHDISTANCES"),
    ]


FILLED = [[5, 7, 0], [b"x", 2, b"y", 1], [b"one", 1]]


@test()
def sketches_as_keys(context):
    client = ours(context)
    fill(client)
    eq(look(client), FILLED)
    types = context.by_host(
        (("c", b"CMSk-TYPE"), ("t", b"TopK-TYPE"), ("s", b"simhash")),
        (("c", b"sava-cms1"), ("t", b"sava-top1"), ("s", b"sava-sim1")),
    )
    for key, name in types:
        eq(client.call("TYPE", key), resp.Status(name))
        eq(client.call("SCAN", "0", "TYPE", name), [b"0", [key.encode()]])
        payload = client.call("DUMP", key)
        eq(client.call("RESTORE", key + "2", "0", payload), resp.OK)
        eq(client.call("DUMP", key + "2"), payload)
        damaged = bytes(payload[:-20]) + bytes([payload[-20] ^ 1]) + bytes(payload[-19:])
        check(resp.is_error(client.call("RESTORE", "bad", "0", damaged)), "a damaged payload")
        eq(client.call("COPY", key, key + "3"), 1)
        eq(client.call("RENAME", key, key + "4"), resp.OK)
        check(client.call("MEMORY", "USAGE", key + "4") > 50, "MEMORY USAGE")
        eq(client.call("EXPIRE", key + "4", "100"), 1)
        check(0 < client.call("TTL", key + "4") <= 100, "TTL")
    for suffix in "234":
        eq(look(client, suffix), FILLED)
    # Copies go their own way.
    client.call("CMS.INCRBY", "c3", "a", "1")
    client.call("TOPK.ADD", "t3", "y", "y")
    client.call("SIMHASH.REM", "s3", "one")
    eq(look(client, "2"), FILLED)
    eq(look(client, "3"), [[6, 7, 0], [b"y", 3, b"x", 2], []])
    eq(client.call("GET", "c2"), WRONG_TYPE)
    eq(client.call("DEL", "c2", "t2", "s2"), 3)


@test()
def sketches_in_transactions(context):
    client = ours(context)
    fill(client)
    other = context.client()
    eq(client.call("WATCH", "c"), resp.OK)
    other.call("CMS.INCRBY", "c", "a", "1")
    eq(client.call("MULTI"), resp.OK)
    eq(client.call("CMS.INCRBY", "c", "a", "10"), resp.Status(b"QUEUED"))
    eq(client.call("EXEC"), resp.NIL_ARRAY)
    eq(client.call("MULTI"), resp.OK)
    for args in (
        ("CMS.INCRBY", "c", "a", "2"),
        ("TOPK.INCRBY", "t", "z", "9"),
        ("SIMHASH.CARD", "s"),
    ):
        eq(client.call(*args), resp.Status(b"QUEUED"))
    eq(client.call("EXEC"), [[8], [resp.NIL], 1])


@test()
def sketches_by_many_clients(context):
    """Nothing is lost when many connections change one sketch."""
    client = ours(context)
    client.call("CMS.INITBYDIM", "c", "10000", "5")
    client.call("TOPK.RESERVE", "t", "10")

    def work(number):
        def run():
            own = context.sut.client()
            for i in range(500):
                own.call("CMS.INCRBY", "c", "all", "1", "w%d" % number, "2")
                own.call("TOPK.ADD", "t", "all", "w%d" % number)
                own.call("SIMHASH.ADD", "s", "%d:%d" % (number, i), "HASH", fingerprint(i))
            own.close()

        return run

    run_workers([work(i) for i in range(4)], 60.0)
    eq(client.call("CMS.QUERY", "c", "all", "w0", "w3"), [2000, 1000, 1000])
    eq(client.call("TOPK.COUNT", "t", "all", "w0", "w3"), [2000, 500, 500])
    eq(client.call("SIMHASH.CARD", "s"), 2000)


register()
