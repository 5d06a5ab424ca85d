"""Function libraries pass between a stock Redis and Sava: through its
snapshots, its log, `sava export`, and by what FUNCTION says in a log.
"""

import os
import shutil

import resp
from check_command_tests import run
from durability import background_save, durable, rewrite
from harness import check, eq, test

NO_LOG = ("--save", "", "--appendonly", "no")
LOG = ("--save", "", "--appendonly", "yes")


def library(name, answer):
    return (
        "#!lua name=%s\nredis.register_function('%s_f', function() return '%s' end)\n"
        % (name, name, answer) + "-- " + "a long comment, which is compressed in the file " * 20
    )


def calls(server):
    """What the functions of a stock server answer, by library."""
    found = {}
    for entry in server.call("FUNCTION", "LIST"):
        name = dict(zip(entry[::2], entry[1::2]))[b"library_name"].decode()
        found[name] = server.call("FCALL", name + "_f", "0")
    return found


def moved(context, source, binary, *options):
    source.terminate()
    directory = context.temp_dir()
    shutil.copytree(source.dir, directory, dirs_exist_ok=True)
    return durable(context, *options, binary=binary, directory=directory)


def kept(server, count):
    eq(server.info_field("number_of_libraries", "memory"), str(count))
    eq(server.info_field("used_memory_functions", "memory") == "0", count == 0)
    lines = [line for line in server.log().split(b"\n") if b"Function libraries: " in line]
    return len(lines)


@test()
def snapshots_keep_libraries(context):
    context.sava_only()
    stock = durable(context, *NO_LOG, binary=context.options.stock)
    for name in ("one", "two"):
        eq(stock.call("FUNCTION", "LOAD", library(name, name + "!")), name.encode())
    stock.call("SET", "a", "1")
    expected = calls(stock)
    eq(len(expected), 2)
    eq(stock.call("SAVE"), resp.OK)
    server = moved(context, stock, context.options.server, *NO_LOG)
    eq(kept(server, 2), 1, "lines at start")
    eq(server.call("DEBUG", "RELOAD"), resp.OK)
    twice = server.call("DEBUG", "RELOAD", "NOFLUSH")
    eq(twice, resp.Error(b"ERR Error trying to load the RDB dump, check server logs."))
    eq(server.call("DEBUG", "RELOAD", "NOFLUSH", "MERGE"), resp.OK)
    eq(server.call("FLUSHALL"), resp.OK)
    eq(kept(server, 2), 1)
    server.call("SET", "b", "1")
    background_save(server)
    path = server.path("dump.rdb")
    code, out, _ = run(context.options.server, "check", "--portable", path)
    eq((code, "functions 2 libraries" in " ".join(out.split())), (0, True), out)
    back = moved(context, server, context.options.stock, *NO_LOG)
    eq(calls(back), expected, "a stock server on our snapshot")
    eq(back.call("KEYS", "*"), [b"b"])
    exported = os.path.join(context.temp_dir(), "dump.rdb")
    code, out, err = run(context.options.server, "export", "--portable", "--from", path, exported)
    eq((code, err, "functions 2 libraries" in " ".join(out.split())), (0, "", True), out)
    other = durable(context, *NO_LOG, binary=context.options.stock,
                    directory=os.path.dirname(exported))
    eq(calls(other), expected, "a stock server on an export")


@test()
def a_log_changes_what_is_kept(context):
    """LOAD, LOAD REPLACE, DELETE, FLUSH and RESTORE, by a stock server's own log."""
    context.sava_only()
    stock = durable(context, *LOG, binary=context.options.stock)
    steps = [
        ("FUNCTION", "LOAD", library("gone", "1")),
        ("FUNCTION", "FLUSH"),
        ("FUNCTION", "LOAD", library("one", "first")),
        ("FUNCTION", "LOAD", library("two", "second")),
        ("FUNCTION", "LOAD", "REPLACE", library("one", "replaced")),
        ("FUNCTION", "DELETE", "two"),
        ("SET", "a", "1"),
    ]
    for step in steps:
        check(not resp.is_error(stock.call(*step)), step)
    dump = stock.call("FUNCTION", "DUMP")
    for step in (("FUNCTION", "LOAD", library("three", "3")),
                 ("FUNCTION", "RESTORE", dump, "REPLACE")):
        check(not resp.is_error(stock.call(*step)), step)
    expected = calls(stock)
    eq(expected, {"one": b"replaced", "three": b"3"})
    server = moved(context, stock, context.options.server, *LOG)
    eq(kept(server, 2), 1, "lines at start")
    # A base of commands has them too.
    eq(server.call("CONFIG", "SET", "aof-use-rdb-preamble", "no"), resp.OK)
    rewrite(server)
    server.kill()
    server.restart()
    eq(kept(server, 2), 1, "lines at start")
    eq(server.call("CONFIG", "SET", "aof-use-rdb-preamble", "yes"), resp.OK)
    code, out, err = run(context.options.server, "check", "--portable", server.dir)
    eq((code, err), (0, ""), out)
    rewrite(server)
    server.call("SET", "b", "1")
    back = moved(context, server, context.options.stock, *LOG)
    eq(calls(back), expected, "a stock server on our log")
    eq(sorted(back.call("KEYS", "*")), [b"a", b"b"])
    eq(back.call("FUNCTION", "FLUSH"), resp.OK)
    empty = moved(context, back, context.options.server, *LOG)
    eq(kept(empty, 0), 0, "lines at start")
