"""Bloom and cuckoo filters from outside: RedisBloom's replies, both protocols, filters as keys among
other keys, rates, deletion, many clients, and `sava bloom`."""

import os
import random
import subprocess
import tempfile

import cases
import harness
import resp
from harness import SLOW, check, eq, run_workers, test

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "filter_cases.txt")


def ours(context, **options):
    context.natives_only("stock Redis has no filters")
    return context.client(**options)


def fields(flat):
    return dict(zip(flat[::2], flat[1::2]))


def add(client, key, items, command="BF.MADD"):
    """Adds many in batches."""
    items = list(items)
    for at in range(0, len(items), 1000):
        client.call(command, key, *items[at : at + 1000])


def share_known(client, key, items, command="BF.MEXISTS"):
    items = list(items)
    known = 0
    for at in range(0, len(items), 1000):
        known += sum(client.call(command, key, *items[at : at + 1000]))
    return known / len(items)


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
        harness.TESTS.append(
            (
                "filter.recorded." + name.replace(" ", "_"),
                lambda context, section=section: run_section(context, section),
                30.0,
            )
        )


register()


# ---- replies ----


@test()
def debug_tells_every_stage(context):
    client = ours(context)
    client.call("BF.RESERVE", "b", "0.02", "10000")
    add(client, "b", ("i%d" % i for i in range(30000)))
    first, *stages = client.call("BF.DEBUG", "b")
    eq(first, b"size:%d" % client.call("BF.CARD", "b"))
    eq(len(stages), fields(client.call("BF.STATS", "b"))[b"stages"])
    sizes = 0
    for stage in stages:
        numbers = dict(word.split(b":") for word in stage.split())
        eq(
            list(numbers),
            [b"bytes", b"bits", b"hashes", b"hashwidth", b"capacity", b"size", b"ratio"],
        )
        eq((numbers[b"hashwidth"], numbers[b"ratio"]), (b"64", b"0.02"))
        sizes += int(numbers[b"size"])
    eq(sizes, client.call("BF.CARD", "b"))


@test()
def compact_gives_memory_back(context):
    client = ours(context)
    items = ["i%d" % i for i in range(20000)]
    for at in range(0, len(items), 999):
        client.call("CF.INSERT", "c", "ITEMS", *items[at : at + 999])
    eq(set(client.pipeline([("CF.DEL", "c", item) for item in items[100:]])), {1})
    before = client.call("MEMORY", "USAGE", "c")
    digest = client.call("CF.MEXISTS", "c", *items[:200])
    eq(client.call("CF.COMPACT", "c"), resp.OK)
    after = client.call("MEMORY", "USAGE", "c")
    check(after * 4 < before, "%d bytes became %d" % (before, after))
    eq(client.call("CF.MEXISTS", "c", *items[:200]), digest)
    eq(sum(digest[:100]), 100)
    check(b" items:100 deletes:0 " in client.call("CF.DEBUG", "c"), "counted anew")


@test()
def replies_in_resp3(context):
    client = ours(context, proto=3)
    yes, no = resp.Boolean(True), resp.Boolean(False)
    eq(client.call("BF.ADD", "b", "a"), yes)
    eq(client.call("BF.MADD", "b", "a", "c"), [no, yes])
    eq(client.call("BF.INSERT", "b", "ITEMS", "a", "d"), [no, yes])
    eq(client.call("BF.EXISTS", "b", "zz"), no)
    eq(client.call("BF.MEXISTS", "b", "a", "zz"), [yes, no])
    info = client.call("BF.INFO", "b")
    check(isinstance(info, resp.Map), "BF.INFO is no map")
    eq(client.call("BF.CARD", "b"), 3)
    eq(client.call("CF.ADDNX", "c", "a"), yes)
    eq(client.call("CF.ADDNX", "c", "a"), no)
    eq(client.call("CF.DEL", "c", "a"), yes)
    check(isinstance(client.call("CF.INFO", "c"), resp.Map), "CF.INFO is no map")


@test()
def stats_tell_the_documents_numbers(context):
    client = ours(context)
    eq(client.call("BF.RESERVE", "b", "0.01", "10000", "LAYOUT", "CLASSIC"), resp.OK)
    add(client, "b", ["item%d" % i for i in range(10000)])
    stats = fields(client.call("BF.STATS", "b"))
    eq(stats[b"m"], 95851)  # 10000 ln 100 / (ln 2)^2
    eq(stats[b"k"], 7)
    check(9900 <= stats[b"n"] <= 10000, "n is %d" % stats[b"n"])
    eq(stats[b"layout"], b"classic")
    for field in (b"rate_formula", b"rate_observed"):
        check(0.008 < float(stats[field]) < 0.012, "%s is %s" % (field, stats[field]))
    check(0.48 < float(stats[b"fill"]) < 0.56, "fill is %s" % stats[b"fill"])
    eq(client.call("BF.STATS", "nope"), resp.Error(b"ERR not found"))


@test(timeout=120)
def rates_are_kept(context):
    client = ours(context)
    count = 50000
    items = ["item:%d" % i for i in range(count)]
    strangers = ["stranger:%d" % i for i in range(count)]
    makers = {
        "blocked": ["BF.RESERVE", "blocked", "0.01", str(count)],
        "classic": ["BF.RESERVE", "classic", "0.01", str(count), "LAYOUT", "CLASSIC"],
        "beyond": ["BF.RESERVE", "beyond", "0.01", str(count // 10)],
        "deletable": ["BF.RESERVE", "deletable", "0.01", str(count), "DELETABLE"],
        "grown": None,
    }
    for key, maker in makers.items():
        if maker:
            eq(client.call(*maker), resp.OK)
        add(client, key, items)
        eq(share_known(client, key, items), 1.0, key)
        rate = share_known(client, key, strangers)
        check(rate <= 0.013, "%s answers for %.4f of all others" % (key, rate))


@test(timeout=120)
def deletable_filters_lose_nothing(context):
    client = ours(context)
    rng = random.Random(context.options.seed)
    eq(client.call("BF.RESERVE", "d", "0.01", "100", "DELETABLE"), resp.OK)
    present = set()
    for _ in range(12):
        new = {"x%d" % rng.randrange(40000) for _ in range(3000)} - present
        add(client, "d", sorted(new))
        present |= new
        gone = rng.sample(sorted(present), len(present) // 3)
        for item in gone:
            eq(client.call("BF.DEL", "d", item), 1)
        present -= set(gone)
        eq(share_known(client, "d", sorted(present)), 1.0)
        check(share_known(client, "d", gone) < 0.01, "deleted items are still there")
    for item in sorted(present):
        eq(client.call("BF.DEL", "d", item), 1)
    eq(client.call("BF.CARD", "d"), 0)


@test()
def merging(context):
    client = ours(context)
    add(client, "a", ["a%d" % i for i in range(6000)])
    eq(client.call("BF.RESERVE", "b", "0.01", "9000"), resp.OK)
    add(client, "b", ["b%d" % i for i in range(6000)])
    eq(client.call("BF.MERGE", "m", "a", "b"), resp.OK)
    eq(share_known(client, "m", ["%s%d" % (c, i) for c in "ab" for i in range(6000)]), 1.0)
    check(share_known(client, "m", ["z%d" % i for i in range(5000)]) < 0.02, "merged rate")
    eq(client.call("BF.MERGE", "m", "nope"), resp.Error(b"ERR not found"))


# ---- among other keys ----


@test(timeout=90)
def dump_restore_copy_and_chunks(context):
    client = ours(context)
    items = ["i%d" % i for i in range(7000)]
    eq(client.call("BF.RESERVE", "blocked", "0.001", "200000"), resp.OK)
    eq(client.call("BF.RESERVE", "deletable", "0.01", "100", "DELETABLE"), resp.OK)
    for key in ("blocked", "deletable", "grown"):
        add(client, key, items)
    for at in range(0, len(items), 1000):
        client.call("CF.INSERT", "cuckoo", "ITEMS", *items[at : at + 1000])
    for key in ("blocked", "deletable", "grown", "cuckoo"):
        ask = "CF.MEXISTS" if key == "cuckoo" else "BF.MEXISTS"
        payload = client.call("DUMP", key)
        eq(client.call("RESTORE", key + ":r", "0", payload), resp.OK, key)
        eq(client.call("COPY", key, key + ":c"), 1, key)
        eq(client.call("RENAME", key + ":c", key + ":n"), resp.OK, key)
        for other in (key + ":r", key + ":n"):
            eq(share_known(client, other, items, ask), 1.0, other)
            eq(client.call("DEBUG", "DIGEST-VALUE", other), client.call("DEBUG", "DIGEST-VALUE", key))
        damaged = payload[:-12] + bytes([payload[-12] ^ 1]) + payload[-11:]
        reply = client.call("RESTORE", key + ":bad", "0", damaged)
        eq(reply, resp.Error(b"ERR DUMP payload version or checksum are wrong"))
        family = ask[:2]
        iterator = 0
        while True:
            iterator, data = client.call(family + ".SCANDUMP", key, str(iterator))
            if iterator == 0:
                break
            eq(client.call(family + ".LOADCHUNK", key + ":l", str(iterator), data), resp.OK)
        eq(
            client.call("DEBUG", "DIGEST-VALUE", key + ":l"),
            client.call("DEBUG", "DIGEST-VALUE", key),
        )
        check(client.call("MEMORY", "USAGE", key) > 5000, "MEMORY USAGE of " + key)


@test()
def expiry_and_transactions(context):
    client = ours(context)
    eq(client.call("BF.ADD", "b", "x"), 1)
    eq(client.call("EXPIRE", "b", "100"), 1)
    eq(client.call("BF.ADD", "b", "y"), 1)
    check(90 <= client.call("TTL", "b") <= 100, "adding took the expiry away")
    client.call("WATCH", "b")
    eq(context.client().call("BF.ADD", "b", "z"), 1)
    client.call("MULTI")
    client.call("BF.ADD", "b", "w")
    eq(client.call("EXEC"), resp.NIL_ARRAY)
    client.call("MULTI")
    client.call("BF.MADD", "b", "x", "w")
    client.call("CF.ADD", "c", "w")
    eq(client.call("EXEC"), [[0, 1], 1])


@test(timeout=120)
def many_clients_lose_nothing(context):
    first = ours(context)
    eq(first.call("BF.RESERVE", "small", "0.01", "1000"), resp.OK)
    keys = ("small", "grown")

    def work(number):
        client = context.client()
        for i in range(0, 3000, 50):
            for key in keys:
                client.call("BF.MADD", key, *["%d:%d" % (number, i + j) for j in range(50)])

    run_workers([lambda number=number: work(number) for number in range(4)], 60)
    everything = ["%d:%d" % (number, i) for number in range(4) for i in range(3000)]
    for key in keys:
        eq(share_known(first, key, everything), 1.0, key)


# ---- sava bloom ----


def bloom(context, *arguments, text="", folder=None):
    """(exit code, standard output, standard error)"""
    done = subprocess.run(
        [context.sut.binary, "bloom", *arguments],
        input=text.encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=60 * SLOW,
        cwd=folder,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@test()
def bloom_menu(context):
    context.sava_only()
    with tempfile.TemporaryDirectory(prefix="sava-e2e-") as folder:
        code, out, err = bloom(context, text="3\nduffy\n4\n", folder=folder)
        eq(code, 0)
        check("cannot be opened" in err and "cannot be opened" not in out, out + err)
        code, out, _ = bloom(
            context, text="1\n2\nduffy@acme.com\n3\nduffy@acme.com\n9\nx\n4\n", folder=folder
        )
        eq(code, 0)
        for part in (
            "The Bloom filter was created.",
            "The value 'duffy@acme.com' was added to the Bloom filter.",
            "The value 'duffy@acme.com' may be in the Bloom filter.",
            "'9' is not a choice. Try again.",
            "'x' is not a choice. Try again.",
        ):
            check(part in out, "%r is missing in %s" % (part, out))
        eq(out.count("4. Exit"), 6)
        # It is kept between runs, and creating it again empties it.
        _, out, _ = bloom(context, text="3\nduffy@acme.com\n3\nroger@acme.com\n", folder=folder)
        check("'duffy@acme.com' may be in" in out, out)
        check("'roger@acme.com' is not in" in out, out)
        _, out, _ = bloom(context, text="1\n3\nduffy@acme.com\n4\n", folder=folder)
        check("'duffy@acme.com' is not in" in out, out)
        _, out, _ = bloom(context, "info", "bloom.txt", folder=folder)
        check("bits (m)             1000\n" in out and "hashes (k)           3\n" in out, out)


def std_hash(text):
    """std::hash<std::string> of libstdc++ on 64 bits: MurmurHash64A with its own seed."""
    mask, multiplier = (1 << 64) - 1, 0xC6A4A7935BD1E995

    def mix(value):
        return value ^ (value >> 47)

    whole = len(text) & ~7
    result = 0xC70F6907 ^ (len(text) * multiplier & mask)
    for i in range(0, whole, 8):
        word = int.from_bytes(text[i : i + 8], "little")
        result = (result ^ (mix(word * multiplier & mask) * multiplier & mask)) * multiplier & mask
    if whole != len(text):
        result = (result ^ int.from_bytes(text[whole:], "little")) * multiplier & mask
    return mix(mix(result) * multiplier & mask)


@test()
def bloom_text_form(context):
    """bloom.txt of document S2: the bits as characters, the highest first, three positions."""
    context.sava_only()
    words = ["duffy@acme.com", "roger@acme.com", "šest", "a", "two words", "12345678", "x" * 40]
    bits = ["0"] * 1000
    for word in words:
        h = std_hash(word.encode())
        for position in (h % 1000, (h >> 16) % 1000, (h >> 32) % 1000):
            bits[999 - position] = "1"
    with tempfile.TemporaryDirectory(prefix="sava-e2e-") as folder:
        path = os.path.join(folder, "bloom.txt")
        typed = "1\n" + "".join("2\n%s\n" % word for word in words) + "4\n"
        eq(bloom(context, "--text", text=typed, folder=folder)[0], 0)
        with open(path, encoding="ascii") as file:
            eq(file.read(), "".join(bits))
        # It is recognised without the option, by the menu and by the subcommands.
        _, out, _ = bloom(context, text="3\nroger@acme.com\n4\n", folder=folder)
        check("'roger@acme.com' may be in" in out, out)
        eq(bloom(context, "check", path, *words)[:2], (0, "maybe\n" * len(words)))
        eq(bloom(context, "check", path, "nobody@acme.com")[:2], (1, "no\n"))
        _, out, _ = bloom(context, "info", path)
        check("bits (m)             1000\nvalues (n)           about 7\n" in out, out)
        eq(bloom(context, "add", path, text="eighth\n")[:2], (0, "1 added, 1 of them new\n"))
        _, out, _ = bloom(context, "explain", "--file", path, "eighth")
        h = std_hash(b"eighth")
        check("H0 = %d, H1 = %d" % (h % 1000, (h >> 16) % 1000) in out, out)
        check("check: maybe" in out, out)
        # A size of one's own, and what is no filter.
        eq(bloom(context, "create", path, "--text", "--bits", "77", "--force")[0], 0)
        eq(os.path.getsize(path), 77)
        with open(path, "w", encoding="ascii") as file:
            file.write("0" * 70 + "2")
        code, _, err = bloom(context, "check", path, "x")
        eq(code, 2)
        check("character 71 is neither 0 nor 1" in err, err)


@test()
def bloom_create_keeps_what_is_there(context):
    context.sava_only()
    with tempfile.TemporaryDirectory(prefix="sava-e2e-") as folder:
        path = os.path.join(folder, "f")
        eq(bloom(context, "create", path, "--bits", "1000")[0], 0)
        eq(bloom(context, "add", path, "one", "--", "--force")[0], 0)
        code, out, err = bloom(context, "create", path, "--bits", "1000")
        eq((code, out), (2, ""))
        check("--force" in err, err)
        eq(bloom(context, "check", path, "one", "--force")[:2], (0, "maybe\nmaybe\n"))
        eq(bloom(context, "create", path, "--force", "--bits", "2000")[0], 0)
        eq(bloom(context, "check", path, "one")[:2], (1, "no\n"))
        # A link that leads nowhere is something, too.
        os.symlink("nowhere", os.path.join(folder, "link"))
        eq(bloom(context, "create", os.path.join(folder, "link"), "--bits", "8")[0], 2)


@test()
def bloom_files(context):
    context.sava_only()
    with tempfile.TemporaryDirectory(prefix="sava-e2e-") as folder:
        path = os.path.join(folder, "f")
        eq(bloom(context, "check", path, "x")[0], 2)
        eq(bloom(context, "create")[0], 2)
        eq(bloom(context, "create", path, "--items", "1000")[0], 2)
        eq(bloom(context, "create", path, "--bits", "8", "--rate", "0.1")[0], 2)
        eq(bloom(context, "create", path, "--bits", "abc")[0], 2)
        eq(bloom(context, "create", os.path.join(folder, "no/f"), "--bits", "8")[0], 2)
        eq(bloom(context, "create", path, "--items", "100000", "--rate", "0.01")[0], 0)
        eq(bloom(context, "size", "--items", "100000", "--rate", "0.01")[1].split()[2], "958506")
        eq(bloom(context, "add", path, "one", "two")[:2], (0, "2 added, 2 of them new\n"))
        lines = "".join("line %d\n" % i for i in range(100000))
        code, out, _ = bloom(context, "add", path, text=lines)
        eq(code, 0)
        check(out.startswith("100000 added, 99"), out)
        eq(bloom(context, "check", path, "one")[:2], (0, "maybe\n"))
        eq(bloom(context, "check", path, "one", "three")[:2], (1, "maybe\nno\n"))
        code, out, _ = bloom(context, "check", path, text=lines)
        eq((code, out.count("maybe\n")), (0, 100000))
        code, out, _ = bloom(
            context, "check", path, text="".join("other %d\n" % i for i in range(50000))
        )
        eq(code, 1)
        check(350 < out.count("maybe\n") < 650, "%d false positives" % out.count("maybe\n"))
        # Damage is reported, and the file is left alone.
        with open(path, "rb") as file:
            good = file.read()
        for bad in (b"", good[:-1], good[:100], good[:5000] + b"x" + good[5001:], b"text\n" + good):
            with open(path, "wb") as file:
                file.write(bad)
            code, out, err = bloom(context, "add", path, "x")
            eq((code, out), (2, ""))
            check("damaged" in err or "not a Bloom filter" in err, err)
            with open(path, "rb") as file:
                eq(file.read(), bad)
        eq(sorted(os.listdir(folder)), ["f"])
