"""`sava check`: files of a stock Redis, damaged ones, files our writer made; logs and their repair.

tests/golden/rdb holds what the writer made; the unit tests hold the writer to those bytes.
"""

import os
import shutil
import subprocess

import resp
from durability import CHECK_AOF, contents, durable, increments, log_files, passes, rewrite
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


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def read(path):
    with open(path, "rb") as file:
        return file.read()


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
def collections_are_counted(context):
    server = context.start_stock()
    for command in (
        ("RPUSH", "the list", "a"),
        ("SADD", "the set", "a"),
        ("SADD", "the numbers", "1"),
        ("HSET", "the hash", "a", "b"),
        ("ZADD", "the zset", "1", "a"),
        ("XADD", "the stream", "1-1", "a", "b"),
    ):
        server.call(*command)
    out, _ = sava_check(context, saved(context, server))
    for line in ("type 1 list", "type 2 set", "type 1 hash", "type 1 zset", "type 1 stream"):
        check(line in lines(out), "%s is missing in %s" % (line, out))


@test()
def unknown_types_are_named_and_refused(context):
    path = os.path.join(context.temp_dir(), "strange.rdb")
    with open(path, "wb") as file:
        file.write(b"REDIS0010\xfe\x00\x00\x04fine\x011\x06\x07strange\x05value\xff" + bytes(8))
    check('key "strange": values of RDB type 6' in complaint(context, path), "not named")


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
def what_cannot_be_checked(context):
    directory = context.temp_dir()
    path = os.path.join(directory, "file")
    check("no data here" in complaint(context, directory), "an empty directory")
    check("No such file" in complaint(context, path), "a missing file")
    with open(golden("strings"), "rb") as file:
        rdb = file.read()
    for content, expected in (
        (rdb + b"tail", "4 bytes follow the end"),
        (b"file a.aof type i\n", "Invalid AOF manifest file format"),
        (b"VALKEY080", "Valkey 9"),
    ):
        write(path, content)
        err = complaint(context, path)
        check(expected in err, err)
    os.remove(path)
    os.mkfifo(path)
    check("not a regular file" in complaint(context, path), "a pipe")
    check("one file" in complaint(context), "no file")
    check("one file" in complaint(context, path, path), "two files")
    check("there is no option '--portabel'" in complaint(context, "--portabel", path), "")
    check("Usage: sava check" in sava_check(context, "--help")[0], "help")
    for name in ("one.rdb", "two.rdb"):
        shutil.copy(golden("strings"), os.path.join(directory, name))
    check("more than one RDB file" in complaint(context, directory), "two RDB files")
    shutil.copy(golden("strings"), os.path.join(directory, "dump.rdb"))
    check("dump.rdb: RDB version 10" in sava_check(context, directory)[0], "the usual name")


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


# ---- logs ----

# The records of a log: what may be cut off between them, and only there.
RECORDS = [
    resp.encode("SELECT", "0"),
    b"#TS:1700000000\r\n" + resp.encode("SET", "a", "1"),
    resp.encode("SET", "binary", b"\r\n*1\r\n"),
    resp.encode("MULTI") + resp.encode("SET", "b", "2") + resp.encode("INCR", "a")
    + resp.encode("EXEC"),
    resp.encode("DEL", "a"),
]
LOG = b"".join(RECORDS)


def whole_size(size):
    """How much of the first `size` bytes of LOG is whole."""
    ends = [sum(map(len, RECORDS[:count])) for count in range(len(RECORDS) + 1)]
    ends.append(LOG.index(b"#TS") + len(b"#TS:1700000000\r\n"))  # a line of its own
    return max(end for end in ends if end <= size)


def log_directory(context, *parts, base=None):
    """A directory with a manifest and these increments."""
    directory = context.temp_dir()
    manifest = ""
    if base is not None:
        write(os.path.join(directory, "log.1.base.rdb"), base)
        manifest += "file log.1.base.rdb seq 1 type b\n"
    for number, content in enumerate(parts, 1):
        write(os.path.join(directory, "log.%d.incr.aof" % number), content)
        manifest += "file log.%d.incr.aof seq %d type i\n" % (number, number)
    write(os.path.join(directory, "log.manifest"), manifest.encode())
    return directory


@test()
def a_log_of_a_stock_redis(context):
    context.sava_only()
    options = ("--appendonly", "yes", "--save", "")
    server = durable(context, *options, binary=context.options.stock)
    for number in range(50):
        server.call("SET", "key:%d" % number, "value")
    rewrite(server)
    client = context.client(server)
    client.pipeline([("MULTI",), ("INCR", "n"), ("INCR", "n"), ("EXEC",), ("DEL", "key:0")])
    eq(server.terminate(), 0)
    for path in (server.dir, server.path("appendonlydir"), log_manifest(server)):
        out, _ = sava_check(context, "--portable", path)
        base, increment = (file.path for file in log_files(server))
        check("%s: RDB version 10, %d bytes\n" % (base, os.path.getsize(base)) in out, out)
        size = os.path.getsize(increment)
        check("%s: append-only file, %d bytes\n" % (increment, size) in out, out)
        got = lines(out)
        for line in (
            "database 0 50 keys, 0 expiring",
            "commands 4, with 1 transaction",
            "command 2 incr",
        ):
            check(line in got, "%r is missing: %s" % (line, out))
        eq(got.count("portable: a stock Redis 7.0 can load this file"), 2, out)
        check(got[-1].endswith(": all good"), out)


def log_manifest(server):
    return server.path("appendonlydir", "appendonly.aof.manifest")


@test()
def a_log_of_our_own(context):
    context.sava_only()
    server = durable(context, "--appendonly", "yes", "--save", "")
    server.call("AFC.ADD", "counter", "m")
    rewrite(server)
    for command in (("SET", "k", "v"), ("AFC.ADD", "counter", "m"), ("AFC.ADD", "counter", "n")):
        server.call(*command)
    server.call("RESTORE", "other", "0", server.call("DUMP", "counter"))
    eq(server.terminate(), 0)
    sava_check(context, server.dir)
    out, _ = sava_check(context, "--portable", server.dir, expect=2)
    increment = read(increments(server)[-1].path)
    first, restore = (increment.index(b"$7\r\n" + name) - 4 for name in (b"AFC.ADD", b"RESTORE"))
    got = lines(out)
    for line in (
        'database 0 "counter" afc',
        "AFC.ADD (2 times, from byte %d on)" % first,
        "RESTORE of a native value (1 time, from byte %d on)" % restore,
    ):
        check(line in got, "%r is missing: %s" % (line, out))


@test()
def a_log_behind_an_rdb_file(context):
    rdb = read(golden("strings"))
    path = os.path.join(context.temp_dir(), "old.aof")
    for content, name in ((LOG, "RDB version 10 and commands"), (b"", "RDB version 10")):
        write(path, rdb + content)
        out, _ = sava_check(context, "--portable", path)
        check(out.startswith("%s: %s, %d bytes\n" % (path, name, len(rdb + content))), out)
    write(path, rdb + LOG[:-1])
    good = len(rdb) + len(LOG) - len(RECORDS[-1])
    err = sava_check(context, path, expect=1)[1]
    check("old.aof: at byte %d: the file ends within a command" % good in err, err)
    sava_check(context, "--repair", path)
    eq(read(path), rdb + LOG[: good - len(rdb)])
    write(path, rdb[:-20] + LOG)
    err = complaint(context, "--repair", path)
    check("cannot be repaired" in err, err)
    eq(read(path), rdb[:-20] + LOG)


@test()
def a_log_cut_off_anywhere(context):
    for size in range(0, len(LOG), 1 if context.options.long else 3):
        directory = log_directory(context, LOG, LOG[:size])
        path = os.path.join(directory, "log.2.incr.aof")
        whole = whole_size(size)
        if size == whole:
            sava_check(context, directory)
            continue
        err = sava_check(context, directory, expect=1)[1]
        check(path + ": at byte " in err, err)
        check("would load it with aof-load-truncated yes" in err, err)
        eq(os.path.exists(path + ".before-repair"), False)
        out, _ = sava_check(context, "--repair", directory)
        check("%s: repaired: %d byte" % (path, size - whole) in out, out)
        eq(read(path), LOG[:whole], "cut at %d" % size)
        eq(read(path + ".before-repair"), LOG[:size])
        if size % 10 == 0 and whole > 0:
            passes(checker(context), path)


def checker(context):
    return os.path.join(os.path.dirname(context.options.stock), CHECK_AOF)


@test()
def corrupt_logs(context):
    """What is no command ends what is whole; --repair keeps what came before, copies are many."""
    path = os.path.join(context.temp_dir(), "log.aof")
    at = len(RECORDS[0]) + len(RECORDS[1])
    for number in range(1, 4):
        write(path, LOG[:at] + b"rubbish" + LOG[at:])
        err = sava_check(context, path, expect=1)[1]
        check("log.aof: at byte %d: expected '*'" % at in err, err)
        check("aof-load-truncated" not in err, err)
        sava_check(context, "--repair", path)
        eq(read(path), LOG[:at])
        copy = path + ".before-repair" + (".%d" % number if number > 1 else "")
        eq(read(copy), LOG[:at] + b"rubbish" + LOG[at:])
    write(path, b"rubbish" * 10)
    err = sava_check(context, "--repair", path, expect=1)[1]
    check("nothing to repair" in err, err)
    eq(read(path), b"rubbish" * 10)


@test()
def what_is_not_repaired(context):
    """Only the last file with anything in it, unless another one is given by name."""
    for broken in (LOG[:-3], LOG[:-3] + b"x" * 20):
        directory = log_directory(context, broken, LOG, base=read(golden("strings")))
        first = os.path.join(directory, "log.1.incr.aof")
        before = {name: read(os.path.join(directory, name)) for name in os.listdir(directory)}
        err = sava_check(context, "--repair", directory, expect=1)[1]
        check(first + ": at byte " in err and "Later files of the log follow" in err, err)
        eq({name: read(os.path.join(directory, name)) for name in os.listdir(directory)}, before)
        sava_check(context, "--repair", first)
        eq(read(first), LOG[: len(LOG) - len(RECORDS[-1])])
        sava_check(context, directory)
        directory = log_directory(context, broken, b"")
        sava_check(context, "--repair", directory)
    rdb = read(golden("strings"))
    directory = log_directory(context, LOG, base=rdb[:-9])
    err = sava_check(context, "--repair", directory, expect=1)[1]
    check("cannot be repaired" in err, err)
    path = os.path.join(directory, "log.1.base.rdb")
    err = complaint(context, "--repair", path)
    check("an RDB file cannot be repaired" in err, err)
    eq(read(path), rdb[:-9])


@test()
def a_log_that_ends_before_its_last_increment(context):
    """After a power failure: nothing in the later increments was ever synced, and they say so."""
    first_line = b"#SYNCED:0\r\n"
    later = first_line + b"#AFTER:1:%d\r\n" + LOG
    full = len(first_line + LOG)
    cut = len(first_line) + len(LOG) - len(RECORDS[-1])
    for size in (cut, full - 3):  # between two commands, and within one
        parts = ((first_line + LOG)[:size], later % full, first_line)
        directory = log_directory(context, *parts)
        paths = [os.path.join(directory, "log.%d.incr.aof" % number) for number in (1, 2, 3)]
        err = sava_check(context, directory, expect=1)[1]
        check(paths[0] in err and "nothing in the later files" in err, err)
        eq([read(path) for path in paths], list(parts))
        out, _ = sava_check(context, "--repair", directory)
        check("all good" in out, out)
        eq([read(path) for path in paths], [(first_line + LOG)[:cut], first_line, first_line])
        eq(read(paths[1] + ".before-repair"), parts[1])
        sava_check(context, directory)
        # A server cuts the same.
        server = durable(context, "--appendonly", "yes", "--save", "", "--appendfilename", "log")
        eq(server.terminate(), 0)
        inside = server.path("appendonlydir")
        shutil.rmtree(inside)
        shutil.copytree(log_directory(context, *parts), inside)
        server.restart()
        eq(sorted(contents(server)), [(0, b"a"), (0, b"b"), (0, b"binary")])
        eq(server.terminate(), 0)
        ours = [read(os.path.join(inside, os.path.basename(path))) for path in paths[:2]]
        eq([ours[0][:cut], ours[1][: len(first_line)]], [(first_line + LOG)[:cut], first_line])
    # A later one that was synced, or has the right size, says otherwise.
    synced = later % full + b"#SYNCED:%d\r\n" % len(later % full)
    directory = log_directory(context, (first_line + LOG)[:cut], synced)
    err = sava_check(context, "--repair", directory, expect=1)[1]
    check("it has lost its end" in err and "cannot be repaired" in err, err)
    sava_check(context, log_directory(context, first_line + LOG, later % full))
    # A base was synced before anything followed.
    directory = log_directory(context, first_line + LOG, base=LOG[:-3])
    before = {name: read(os.path.join(directory, name)) for name in os.listdir(directory)}
    err = sava_check(context, "--repair", directory, expect=1)[1]
    check("Later files of the log follow" in err, err)
    eq({name: read(os.path.join(directory, name)) for name in os.listdir(directory)}, before)


@test()
def files_a_log_lacks(context):
    directory = log_directory(context, LOG, LOG)
    os.remove(os.path.join(directory, "log.1.incr.aof"))
    err = sava_check(context, directory, expect=1)[1]
    check("log.1.incr.aof: No such file" in err, err)
    write(os.path.join(directory, "log.manifest"), b"file log.2.incr.aof seq 0 type i\n")
    err = complaint(context, directory)
    check("log.manifest: " in err and "at line 1" in err, err)


@test()
def commands_nobody_knows(context):
    path = os.path.join(context.temp_dir(), "log.aof")
    write(path, LOG + resp.encode("NOSUCH", "k") * 2)
    err = sava_check(context, path, expect=1)[1]
    text = "at byte %d: command 'nosuch' (2 times), which is not known here" % len(LOG)
    eq(err, "sava check: %s: %s\n" % (path, text))


@test()
def a_server_starts_from_what_was_repaired(context):
    context.sava_only()
    server = durable(context, "--appendonly", "yes", "--save", "", "--aof-load-truncated", "no")
    server.call("SET", "kept", "1")
    server.call("SET", "lost", "1")
    eq(server.terminate(), 0)
    path = increments(server)[-1].path
    content = read(path)
    write(path, content[: content.index(b"lost") + 4])
    sava_check(context, "--repair", server.dir)
    server.restart()
    eq(sorted(contents(server)), [(0, b"kept")])
