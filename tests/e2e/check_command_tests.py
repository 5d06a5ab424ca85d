"""`sava check`: files of a stock Redis, damaged ones, and files our writer made.

tests/golden/rdb holds what the writer made; the unit tests hold the writer to those bytes.
"""

import os
import shutil
import subprocess

import resp
from harness import SLOW, check, eq, test

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "rdb")
YEAR_2100_MS = 4102444800000
STRINGS = ("strings", "strings_compressed", "strings_unchecked")
COUNTERS = ("counters", "counters_dictionary")

# What the files of STRINGS hold: (database, key, value, expiry or None).
CONTENT = [
    (0, b"greeting", b"hello", None),
    (0, b"", b"", None),
    (0, b"12", b"12", None),
    (0, b"int8", b"-128", None),
    (0, b"int16", b"32767", None),
    (0, b"int32", b"-2147483648", None),
    (0, b"int64", b"9223372036854775807", None),
    (0, b"not a number", b"007", None),
    (0, b"binary", b"\0\xff\r\n", None),
    (0, b"63 bytes", b"x" * 63, None),
    (0, b"300 bytes", b"y" * 300, None),
    (0, b"20000 bytes", b"z" * 20000, None),
    (0, b"expiring", b"soon", YEAR_2100_MS),
    (0, b"expiring number", b"5", YEAR_2100_MS + 1),
    (3, b"idle", b"for an hour", YEAR_2100_MS),
    (3, b"frequent", b"always", None),
]


def golden(name):
    return os.path.join(GOLDEN, name + ".rdb")


def run(command, *arguments):
    """(exit code, standard output, standard error)"""
    done = subprocess.run(
        [command] + list(arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=60 * SLOW,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def sava_check(context, *arguments, expect=0):
    context.sava_only()
    code, out, err = run(context.options.server, "check", *arguments)
    eq(code, expect, "exit code; %s%s" % (out, err))
    return out, err


def complaint(context, *arguments):
    out, err = sava_check(context, *arguments, expect=1)
    eq(out, "", "standard output")
    return err


def lines(out):
    """The summary's lines below the first, each as its words joined by one space."""
    return [" ".join(line.split()) for line in out.splitlines()[1:]]


def saved(context, server):
    """A copy of what the server saves now."""
    path = os.path.join(context.temp_dir(), "dump.rdb")
    eq(server.call("SAVE"), resp.OK)
    shutil.copy(os.path.join(server.dir, "dump.rdb"), path)
    return path


def stock_with_strings(context, *options):
    server = context.start_stock(*options)
    client = context.client(server)
    rng = context.rng("strings")
    for i in range(500):
        value = bytes(rng.choice(b"abc\0\xff") for _ in range(rng.randrange(200)))
        client.call("SET", "key:%d" % i, value if i % 3 else str(rng.randrange(1 << 40)))
        if i % 5 == 0:
            client.call("PEXPIREAT", "key:%d" % i, str(YEAR_2100_MS + i))
    client.call("SELECT", "9")
    client.call("SET", "elsewhere", "1")
    client.call("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() end)")
    return server


@test()
def files_of_a_stock_redis(context):
    for policy in ("noeviction", "allkeys-lru", "allkeys-lfu"):
        for setting in ("yes", "no"):
            server = stock_with_strings(
                context,
                "--maxmemory-policy", policy,
                "--rdbcompression", setting,
                "--rdbchecksum", setting,
            )
            path = saved(context, server)
            out, _ = sava_check(context, "--portable", path)
            size = os.path.getsize(path)
            check(out.startswith("%s: RDB version 10, %d bytes\n" % (path, size)), out)
            got = lines(out)
            check(got[0].startswith("written by Redis 7.0."), got[0])
            eq(
                got[1:],
                [
                    "database 0 500 keys, 100 expiring",
                    "database 9 1 key, 0 expiring",
                    "type 501 string",
                    "functions 1 library",
                    "checksum " + ("correct" if setting == "yes" else "none"),
                    "portable: a stock Redis 7.0 can load this file",
                ],
                policy,
            )


@test()
def an_empty_file_of_a_stock_redis(context):
    out, _ = sava_check(context, saved(context, context.start_stock()))
    eq(lines(out)[1:], ["no keys", "checksum correct"])


@test()
def collections_are_named_and_refused(context):
    server = context.start_stock()
    for command, name, number in (
        (("RPUSH", "the list", "a"), "list as a quicklist", 18),
        (("SADD", "the set", "a"), "set", 2),
        (("SADD", "the numbers", "1"), "set as an intset", 11),
        (("HSET", "the hash", "a", "b"), "hash as a listpack", 16),
        (("ZADD", "the zset", "1", "a"), "sorted set as a listpack", 17),
        (("XADD", "the stream", "1-1", "a", "b"), "stream, second form", 19),
    ):
        server.call("FLUSHALL")
        server.call("SET", "a string", "too")
        server.call(*command)
        path = saved(context, server)
        err = complaint(context, path)
        with open(path, "rb") as file:
            offset = file.read().index(command[1].encode()) + len(command[1])
        text = '%s: at byte %d: key "%s": values of RDB type %d (%s) are not read here' % (
            path, offset, command[1], number, name
        )
        eq(err, "sava check: %s\n" % text)


@test()
def damaged_files(context):
    with open(golden("strings"), "rb") as file:
        good = file.read()
    path = os.path.join(context.temp_dir(), "bad.rdb")
    rng = context.rng("damage")
    cases = [good[: rng.randrange(len(good))] for _ in range(8)]
    for _ in range(8):
        at = rng.randrange(len(good))
        cases.append(good[:at] + bytes([good[at] ^ (1 << rng.randrange(8))]) + good[at + 1 :])
    for bad in cases + [b"", b"REDIS", b"\0" * 100]:
        with open(path, "wb") as file:
            file.write(bad)
        check("bad.rdb: at byte " in complaint(context, path), bad[:40])


@test()
def what_is_no_rdb_file(context):
    directory = context.temp_dir()
    path = os.path.join(directory, "file")
    check("append-only directories cannot be checked yet" in complaint(context, directory), "")
    check("No such file" in complaint(context, path), "a missing file")
    with open(golden("strings"), "rb") as file:
        rdb = file.read()
    for content, expected in (
        (b"*1\r\n$4\r\nPING\r\n", "looks like an append-only file"),
        (b"file a.aof seq 1 type i\n", "looks like the manifest"),
        (rdb + b"*1\r\n$4\r\nPING\r\n", "14 bytes follow the end"),
        (b"VALKEY080", "Valkey 9"),
    ):
        with open(path, "wb") as file:
            file.write(content)
        err = complaint(context, path)
        check(expected in err, err)
    os.remove(path)
    os.mkfifo(path)
    check("not a regular file" in complaint(context, path), "a pipe")
    check("one file" in complaint(context), "no file")
    check("one file" in complaint(context, path, path), "two files")
    check("there is no option '--portabel'" in complaint(context, "--portabel", path), "")
    check("Usage: sava check" in sava_check(context, "--help")[0], "help")


@test()
def native_types_are_not_portable(context):
    for name in COUNTERS:
        out, _ = sava_check(context, golden(name))
        eq(
            lines(out)[1:],
            ["database 0 4 keys, 1 expiring", "type 3 afc", "type 1 string", "checksum correct"],
        )
        out, _ = sava_check(context, "--portable", golden(name), expect=2)
        got = lines(out)
        found = got[got.index("not portable: a stock Redis 7.0 refuses this file because of") + 1 :]
        expected = ['database 0 "%s" afc' % key for key in ("words", "large", "bounded")]
        if name == "counters_dictionary":
            expected.insert(0, "the member dictionary of association counters")
        eq(found, expected)


@test()
def values_of_unknown_modules(context):
    # Redis's module value "other-mod", version 3, holding the string "text".
    value = bytes.fromhex("07016d81a2d85eafe9a87403") + b"\x05\x04text\x00"
    path = os.path.join(context.temp_dir(), "module.rdb")
    with open(path, "wb") as file:
        file.write(b"REDIS0010" + value + b"\x00\x01k\x01v\xff" + bytes(8))
    out, err = sava_check(context, path, expect=1)
    eq(
        lines(out),
        [
            "written by unknown",
            "database 0 2 keys, 0 expiring",
            "type 1 module other-mod",
            "type 1 string",
            "checksum none",
        ],
    )
    eq(err, "sava check: %s: 1 value of module other-mod, which is not known here\n" % path)
    out, err = sava_check(context, "--portable", path, expect=2)
    eq(lines(out)[-1], 'database 0 "m" module other-mod')


@test()
def our_files_pass_redis_check_rdb(context):
    # In some packages both are one binary that goes by its name.
    tool = os.path.join(os.path.dirname(context.options.stock), "redis-check-rdb")
    check(os.path.exists(tool), tool)
    for name in STRINGS + COUNTERS:
        code, out, err = run(tool, golden(name))
        eq(code, 0, name + out + err)
        check("RDB looks OK" in out, out)
        out, _ = sava_check(context, golden(name))


@test()
def a_stock_redis_loads_our_strings(context):
    for name in STRINGS:
        directory = context.temp_dir()
        shutil.copy(golden(name), os.path.join(directory, "dump.rdb"))
        server = context.start_stock("--dir", directory)
        client = context.client(server)
        sizes = {}
        for db, key, value, expiry in CONTENT:
            client.call("SELECT", str(db))
            eq(client.call("GET", key), value, "%s: %r" % (name, key))
            eq(client.call("PEXPIRETIME", key), expiry or -1, "%s: %r" % (name, key))
            sizes[db] = sizes.get(db, 0) + 1
        for db, size in sizes.items():
            client.call("SELECT", str(db))
            eq(client.call("DBSIZE"), size, "%s: keys of database %d" % (name, db))


@test()
def a_stock_redis_refuses_our_counters(context):
    for name in COUNTERS:
        directory = context.temp_dir()
        shutil.copy(golden(name), os.path.join(directory, "dump.rdb"))
        socket = os.path.join(directory, "socket")
        where = ["--port", "0", "--unixsocket", socket, "--dir", directory]
        # It ends by itself; with which code depends on where it stopped.
        _, out, _ = run(context.options.stock, *where, "--save", "", "--appendonly", "no")
        check("I can't load: no matching module" in out and "'sava-afc1'" in out, out)
        check("Ready to accept connections" not in out, out)
