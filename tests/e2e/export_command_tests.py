"""`sava export`: a data set read from its files and written as one RDB file, ours or Redis's."""

import os
import shutil

import resp
from check_command_tests import (
    COUNTERS, LOG, RECORDS, YEAR_2100_MS, golden, log_directory, read, run, sava_check, write,
)
from durability import contents, durable, passes, rewrite, same_contents
from harness import check, eq, test

LOG_ON = ("--appendonly", "yes", "--save", "")
DUMP_ONLY = ("--appendonly", "no", "--save", "")


def export(context, *arguments, expect=0):
    context.sava_only()
    code, out, err = run(context.options.server, "export", *arguments)
    eq(code, expect, "exit code; %s%s" % (out, err))
    if expect == 1:
        eq(out, "", "standard output")
    return out, err


def fill(server, rng):
    """Strings, expiries, several databases, counters of every kind."""
    with server.client() as client:
        commands = []
        for number in range(200):
            value = rng.choice((b"%d" % rng.randrange(1 << 40), rng.randbytes(rng.randrange(300))))
            commands.append(("SET", b"key:%d" % number, value))
            if number % 7 == 0:
                commands.append(("PEXPIREAT", b"key:%d" % number, YEAR_2100_MS + number))
            if number % 50 == 0:
                commands.append(("SELECT", number // 50))
        if not server.stock:
            commands += counters(rng)
        for reply in client.pipeline(commands):
            check(not resp.is_error(reply), resp.show(reply))


def counters(rng):
    yield "DEL", "bounded", "windowed", "decaying", "empty"
    yield "AFC.RESERVE", "bounded", "MAXLEN", "10"
    yield "AFC.RESERVE", "windowed", "WINDOW", "100000"
    yield "AFC.RESERVE", "decaying", "HALFLIFE", "1000000"
    yield "AFC.RESERVE", "empty", "MAXLEN", "10"
    for _ in range(300):
        key = rng.choice((b"small", b"bounded", b"windowed", b"decaying", b"large"))
        members = [b"member:%d" % int(rng.random() ** 3 * 2000) for _ in range(20)]
        yield ("AFC.ADD", key) + tuple(members)
    yield "AFC.INCRBY", "small", b"\0binary\xff", str(1 << 50)
    yield "PEXPIREAT", "small", str(YEAR_2100_MS)


def start_from(context, path, binary=None):
    """A server that finds the file as its dump."""
    server = durable(context, *DUMP_ONLY, binary=binary, started=False)
    shutil.copy(path, server.path("dump.rdb"))
    return server.start()


def target(context):
    return os.path.join(context.temp_dir(), "out.rdb")


@test()
def the_whole_data_set(context):
    context.sava_only()
    server = durable(context, *LOG_ON)
    fill(server, context.rng("first"))
    rewrite(server)
    fill(server, context.rng("second"))
    before = contents(server)
    eq(server.terminate(), 0)
    path = target(context)
    for source in (server.dir, server.path("appendonlydir")):
        out, err = export(context, "--force", "--from", source, path)
        check(out.startswith("%s: %d bytes, " % (path, os.path.getsize(path))), out)
        check("read from %s" % server.path("appendonlydir", "appendonly.aof.manifest")
              in " ".join(out.split()), out)
        eq(err, "")
        sava_check(context, path)
    eq(os.listdir(os.path.dirname(path)), ["out.rdb"], "what lies beside it")
    timed = (3, b"windowed"), (3, b"decaying")
    after = contents(start_from(context, path))
    same_contents(without(before, timed), without(after, timed), "exported")
    for name in timed:
        eq(sorted(before[name][0]), sorted(after[name][0]), name)


def without(found, names):
    return {name: value for name, value in found.items() if name not in names}


@test()
def counters_as_sorted_sets(context):
    context.sava_only()
    server = durable(context, *LOG_ON)
    fill(server, context.rng("portable"))
    before = contents(server)
    eq(server.terminate(), 0)
    path = target(context)
    out, _ = export(context, "--portable", "--from", server.dir, path, expect=2)
    words = " ".join(out.split())
    check("converted 5 afc to sorted sets" in words, out)
    check('left out 1 empty afc database 3 "empty" afc' in words, out)
    tool = os.path.join(os.path.dirname(context.options.stock), "redis-check-rdb")
    check("RDB looks OK" in passes(tool, path), "redis-check-rdb")
    stock = start_from(context, path, context.options.stock)
    client = context.client(stock)
    total = 0
    for (db, key), (value, expiry) in before.items():
        client.call("SELECT", str(db))
        if type(value) is dict and not value:
            eq(client.call("EXISTS", key), 0, key)
            continue
        total += 1
        eq(client.call("PEXPIRETIME", key), expiry, key)
        if type(value) is bytes:
            eq(client.call("GET", key), value, key)
            continue
        flat = client.call("ZRANGE", key, "0", "-1", "WITHSCORES")
        scores = {member: int(score) for member, score in zip(flat[::2], flat[1::2])}
        if key in (b"windowed", b"decaying"):  # their counts depend on the time
            eq(sorted(scores), sorted(value), key)
        else:
            eq(scores, value, key)
    eq(total_keys(client), total, "keys")


@test()
def what_a_stock_redis_cannot_have_is_listed(context):
    """Every key that --portable leaves out is named, and the exit code tells of them."""
    context.sava_only()
    server = durable(context, *LOG_ON)
    client = context.client(server)
    client.call("SET", "plain", "1")
    client.call("BF.ADD", "a filter", "x")
    client.call("SELECT", "2")
    client.call("CMS.INITBYDIM", b"\xffsketch", "10", "2")
    eq(server.terminate(), 0)
    path = target(context)
    eq(export(context, "--from", server.dir, path)[0].count("left out"), 0, "without --portable")
    out, _ = export(context, "--portable", "--force", "--from", server.dir, path, expect=2)
    names = {line.strip() for line in out.splitlines() if line.strip().startswith("database")}
    eq(len(names), 2, out)
    check(any(name.startswith('database 0 "a filter" ') for name in names), out)
    check(any(name.startswith('database 2 "\\xffsketch" ') for name in names), out)
    stock = context.client(start_from(context, path, context.options.stock))
    eq((stock.call("GET", "plain"), total_keys(stock)), (b"1", 1), "what is in the file")


def total_keys(client):
    total = 0
    for db in range(16):
        client.call("SELECT", str(db))
        total += client.call("DBSIZE")
    return total


@test()
def golden_counters_become_portable(context):
    for name in COUNTERS:
        path = target(context)
        server = start_from(context, golden(name))
        empty = any(value == {} for value, _ in contents(server).values())
        export(context, "--portable", "--from", golden(name), path, expect=2 if empty else 0)
        stock = context.client(start_from(context, path, context.options.stock))
        for (db, key), (value, _) in contents(server).items():
            eq(db, 0)
            if type(value) is bytes:
                eq(stock.call("GET", key), value, key)
                continue
            flat = stock.call("ZRANGE", key, "0", "-1", "WITHSCORES")
            eq({m: int(score) for m, score in zip(flat[::2], flat[1::2])}, value, key)


@test()
def from_a_stock_redis_and_back(context):
    context.sava_only()
    stock = durable(context, *LOG_ON, binary=context.options.stock)
    fill(stock, context.rng("stock"))
    before = contents(stock)
    eq(stock.terminate(), 0)
    path = target(context)
    export(context, "--portable", "--from", stock.dir, path)
    out, _ = sava_check(context, "--portable", path)
    same_contents(before, contents(start_from(context, path, context.options.stock)), "back")
    same_contents(before, contents(start_from(context, path)), "here")


@test()
def the_log_goes_before_the_dump(context):
    context.sava_only()
    server = durable(context, *LOG_ON)
    server.call("SET", "old", "1")
    server.call("SAVE")
    server.call("DEL", "old")
    server.call("SET", "new", "1")
    server.call("SET", "gone", "1", "PX", "1")
    eq(server.terminate(), 0)
    path = target(context)
    out, _ = export(context, "--from", server.dir, path)
    check("not read " + server.path("dump.rdb") in " ".join(out.split()), out)
    eq(sorted(contents(start_from(context, path))), [(0, b"new")])
    export(context, "--force", "--from", server.path("dump.rdb"), path)
    eq(sorted(contents(start_from(context, path))), [(0, b"old")])


@test()
def from_a_running_server(context):
    """What it has written so far, without a command written by half."""
    context.sava_only()
    server = durable(context, "--appendonly", "yes", "--appendfsync", "always")
    server.call("SET", "k", "v")
    path = target(context)
    export(context, "--from", server.dir, path)
    eq(contents(start_from(context, path)), {(0, b"k"): (b"v", -1)})
    directory = log_directory(context, LOG[:-3])
    _, err = export(context, "--force", "--from", directory, path)
    check("warning: " in err and "log.1.incr.aof" in err, err)
    eq(sorted(contents(start_from(context, path))), [(0, b"a"), (0, b"b"), (0, b"binary")])


@test()
def what_is_refused(context):
    path = target(context)
    write(path, b"mine")
    broken = log_directory(context, LOG[:-3], LOG)
    garbled = log_directory(context, LOG + b"rubbish" + LOG)
    rdb = log_directory(context, LOG, base=read(golden("strings"))[:-1] + b"?")
    for source, text in (
        (broken, "log.1.incr.aof: at offset %d" % (len(LOG) - len(RECORDS[-1]))),
        (garbled, "log.1.incr.aof: at offset %d" % len(LOG)),
        (rdb, "log.1.base.rdb: at offset"),
        (context.temp_dir(), "no data here"),
        (path + ".not", "No such file"),
    ):
        err = export(context, "--force", "--from", source, path, expect=1)[1]
        check(text in err, err)
        eq(read(path), b"mine", "the file that was there")
    err = export(context, "--from", golden("strings"), path, expect=1)[1]
    check("--force replaces it" in err, err)
    eq(os.listdir(os.path.dirname(path)), ["out.rdb"], "what lies beside it")
    missing = os.path.join(os.path.dirname(path), "no", "out.rdb")
    check("No such file" in export(context, "--from", golden("strings"), missing, expect=1)[1], "")
    for words in ((), ("a", "b"), ("--from",), ("--portabel", path)):
        check("sava export --help" in export(context, *words, expect=1)[1], words)
    check("Usage: sava export" in export(context, "--help")[0], "help")
