"""Whose the files of a data set are: the locks of servers and tools, the id that dump and log carry,
and files in the data directory that are not what they should be.
"""

import os

import resp
from check_command_tests import read, run, write
from durability import (
    CHECK_AOF, CHECK_RDB, contents, durable, increments, log_files, passes, refused_start, rewrite,
    wait_idle,
)
from harness import check, eq, test, until

NO_SAVE = ("--save", "")
NO_LOG = ("--appendonly", "no")
LOG = ("--appendonly", "yes")
OPEN = ("--enable-protected-configs", "yes")


def beside(context, server, *options):
    """Another server on the same directory, not started yet."""
    other = durable(context, *options, directory=server.dir, started=False)
    other.remove_files = lambda: None  # of the first one
    return other


def refused(context, server, *options):
    log = refused_start(beside(context, server, *options))
    check("process %d)" % server.process.pid in log, "the process is named: " + log)
    check("--dir" in log, "what to do is said: " + log)


def lock_files(server):
    return sorted(name for name in os.listdir(server.dir) if name.endswith(".lock"))


# ---- locks ----


@test()
def a_second_server_is_refused(context):
    """With the log, with save rules, with both; nothing of the first one's files has changed."""
    context.sava_only("Redis lets it")
    for options in ((), (*NO_SAVE, *LOG), ("--save", "3600 1", *NO_LOG)):
        server = durable(context, *options)
        server.call("SET", "a", "1")
        manifest = server.path("appendonlydir", "appendonly.aof.manifest")
        before = read(manifest) if os.path.exists(manifest) else None
        refused(context, server, *options)
        after = read(manifest) if os.path.exists(manifest) else None
        eq(after, before, "the manifest")
        eq(server.call("SET", "b", "2"), resp.OK, "the first one works on")
        eq(server.terminate(), 0)
        eq(lock_files(server), [], "locks that are left behind")
        server.restart()
        eq(sorted(contents(server)), [(0, b"a"), (0, b"b")], "all is there")
        # One that a killed server left behind holds nobody up.
        server.kill()
        check(lock_files(server) != [], "the killed one's lock")
        server.restart()


@test()
def other_names_in_the_same_directory(context):
    context.sava_only()
    server = durable(context)
    other = beside(context, server, "--dbfilename", "other.rdb", "--appendfilename", "other.aof")
    other.start()
    other.call("SET", "k", "other")
    server.call("SET", "k", "first")
    for one in (server, other):
        eq(one.call("SAVE"), resp.OK)
        eq(one.terminate(), 0)
        one.restart()
    eq((server.call("GET", "k"), other.call("GET", "k")), (b"first", b"other"))
    # One of two files is not enough.
    refused(context, server, "--dbfilename", "third.rdb")
    refused(context, server, "--appendfilename", "third.aof")
    other.terminate()


@test()
def without_log_and_rules_the_first_write_locks(context):
    context.sava_only()
    server = durable(context, *NO_SAVE, *LOG)
    server.call("SET", "a", "1")
    eq(server.call("SAVE"), resp.OK)
    # It only reads.
    other = beside(context, server, *NO_SAVE, *NO_LOG).start()
    eq(other.call("GET", "a"), b"1")
    eq(other.call("SAVE"), resp.Error(b"ERR"), "the dump is the other's")
    eq(other.call("DEBUG", "RELOAD"), resp.Error(b"ERR"), "so it is for DEBUG RELOAD")
    check(b"process %d)" % server.process.pid in other.log(), "who has it")
    other.call("BGREWRITEAOF")
    until(lambda: other.log().count(b"process %d)" % server.process.pid) > 2, 20, "a refusal")
    reply = other.call("CONFIG", "SET", "appendonly", "yes")
    check(b"process %d)" % server.process.pid in getattr(reply, "text", bytes(reply)), reply)
    eq(other.call("CONFIG", "GET", "appendonly"), [b"appendonly", b"no"])
    eq(server.terminate(), 0)
    # Now it may, and then it holds the lock.
    eq(other.call("SAVE"), resp.OK)
    refused(context, other, "--save", "3600 1", *NO_LOG)
    other.terminate()


@test()
def config_set_moves_the_locks_or_fails(context):
    context.sava_only()
    first = durable(context, *OPEN)
    second = durable(context, *OPEN)
    second.call("SET", "k", "v")
    reply = second.call("CONFIG", "SET", "dir", first.dir)
    check(b"process %d)" % first.process.pid in bytes(reply), reply)
    eq(second.call("CONFIG", "GET", "dir")[1].decode(), os.path.realpath(second.dir))
    eq(second.call("SET", "k", "w"), resp.OK)
    # A free name moves the lock: the old one is free for others.
    eq(first.call("CONFIG", "SET", "dbfilename", "other.rdb"), resp.OK)
    eq(lock_files(first), ["appendonly.aof.lock", "other.rdb.lock"])
    third = beside(context, first, "--appendfilename", "third.aof").start()
    reply = first.call("CONFIG", "SET", "dbfilename", "dump.rdb")
    check(b"process %d)" % third.process.pid in bytes(reply), reply)
    eq(third.terminate(), 0)
    # So does a free directory, and the log goes with it.
    place = durable(context, started=False)
    eq(second.call("CONFIG", "SET", "dir", place.dir), resp.OK)
    until(lambda: lock_files(second) == [], 20, "the old locks are gone")
    until(lambda: os.path.exists(place.path("appendonlydir", "appendonly.aof.manifest")), 20,
          "the log in the new place")
    refused(context, _at(second, place.dir))
    eq(second.call("WAITAOF", "1", "0", "20000"), [1, 0])
    second.call("SET", "late", "1")
    eq(second.call("WAITAOF", "1", "0", "20000"), [1, 0])
    second.kill()
    eq(sorted(contents(place.start())), [(0, b"k"), (0, b"late")], "in the new place")
    eq(sorted(contents(second.restart())), [(0, b"k")], "in the old one")


@test()
def a_log_that_cannot_move_is_not_left_behind_in_silence(context):
    context.sava_only()
    server = durable(context, *OPEN)
    server.call("SET", "k", "v")
    # A place that cannot have a log is refused at once.
    bad = durable(context, started=False)
    with open(bad.path("appendonlydir"), "wb"):
        pass
    check(resp.is_error(server.call("CONFIG", "SET", "dir", bad.dir)), "a file in the way")
    eq(server.call("CONFIG", "GET", "dir")[1].decode(), os.path.realpath(server.dir))
    eq(server.call("SET", "k", "w"), resp.OK)
    # One where the log cannot begin gets no writes until it can.
    late = durable(context, started=False)
    os.makedirs(late.path("appendonlydir", "temp-appendonly.aof.manifest", "x"))
    eq(server.call("CONFIG", "SET", "dir", late.dir), resp.OK)
    until(lambda: b"MISCONF" in bytes(server.call("SET", "k", "x")), 20, "writes are refused")
    check(server.call("GET", "k") in (b"w", b"x"), "reads are answered")
    os.rmdir(late.path("appendonlydir", "temp-appendonly.aof.manifest", "x"))
    os.rmdir(late.path("appendonlydir", "temp-appendonly.aof.manifest"))
    until(lambda: server.call("SET", "k", "y") == resp.OK, 20, "writes are taken again")
    eq(server.call("WAITAOF", "1", "0", "20000"), [1, 0])
    server.kill()
    eq(late.start().call("GET", "k"), b"y")


def _at(server, directory):
    class At:
        dir = directory
        process = server.process

    return At


@test()
def tools_see_a_running_server(context):
    context.sava_only()
    sava = context.options.server
    server = durable(context, *NO_SAVE, *LOG)
    server.call("SET", "a", "1")
    eq(server.call("SAVE"), resp.OK)
    pid = "process %d)" % server.process.pid
    increment = increments(server)[0].path
    for path in (server.dir, server.path("appendonlydir"), server.path("dump.rdb"), increment,
                 server.path("appendonlydir", "appendonly.aof.manifest")):
        code, out, err = run(sava, "check", path)
        eq((code, pid in out), (0, True), path + out + err)
    code, out, err = run(sava, "export", "--from", server.dir, server.path("out.rdb.new"))
    eq((code, pid in err), (0, True), out + err)
    # To repair is refused, and changes nothing.
    whole = read(increment)
    for path in (server.dir, increment, server.path("appendonlydir")):
        code, out, err = run(sava, "check", "--repair", path)
        eq((code, pid in err), (1, True), path + out + err)
    eq(read(increment), whole)
    # A copy beside it is nobody's.
    copy = server.path("copy")
    os.mkdir(copy)
    for file in log_files(server):
        write(os.path.join(copy, file.name), read(file.path))
    manifest = "appendonly.aof.manifest"
    write(os.path.join(copy, manifest), read(server.path("appendonlydir", manifest)))
    with open(os.path.join(copy, os.path.basename(increment)), "ab") as file:
        file.write(b"*1\r\n$4\r\nPI")
    code, out, err = run(sava, "check", "--repair", copy)
    eq((code, pid in out + err), (0, False), out + err)
    server.kill()
    code, out, err = run(sava, "check", server.dir)
    eq((code, "running" in out + err), (0, False), out + err)
    code, out, err = run(sava, "check", "--repair", server.dir)
    eq(code, 0, out + err)


# ---- files that are not what they should be ----


def snapshot_of(server):
    """{path: bytes} of all regular files but the locks."""
    found = {}
    for folder, _, names in os.walk(server.dir):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path) and not name.endswith(".lock"):
                found[path] = read(path)
    return found


@test()
def a_manifest_without_an_end(context):
    """A device, a pipe, a file that is far too long: refused at once."""
    context.sava_only()
    server = durable(context, *NO_SAVE, *LOG)
    eq(server.terminate(), 0)
    manifest = server.path("appendonlydir", "appendonly.aof.manifest")
    os.rename(manifest, manifest + ".kept")

    def too_long():
        with open(manifest, "wb") as file:
            file.truncate(1 << 34)

    for make, told in (
        (lambda: os.symlink("/dev/zero", manifest), "not a regular file"),
        (lambda: os.mkfifo(manifest), "not a regular file"),
        (too_long, "more than"),
    ):
        make()
        log = refused_start(server)
        check(told in log, log)
        code, out, err = run(context.options.server, "check", server.dir)
        eq((code, told in err), (1, True), out + err)
        os.remove(manifest)
    os.rename(manifest + ".kept", manifest)
    server.restart()


@test()
def a_planted_link_is_not_followed(context):
    """Under the name of the temporary file of a save, a rewrite, a manifest, the next increment."""
    context.sava_only("Redis follows it")
    server = durable(context, *NO_SAVE, *LOG)
    server.call("SET", "k", "v" * 1000)
    victim = server.path("victim")
    write(victim, b"not yours")
    log = server.path("appendonlydir")
    links = [
        server.path("temp-%d.rdb" % server.process.pid),
        os.path.join(log, "temp-rewriteaof-appendonly.aof"),
        os.path.join(log, "temp-appendonly.aof.manifest"),
        os.path.join(log, "appendonly.aof.2.incr.aof"),
        os.path.join(log, "appendonly.aof.2.base.rdb"),
    ]
    for link in links:
        os.symlink(victim, link)
    eq(server.call("SAVE"), resp.OK)
    rewrite(server)
    eq(read(victim), b"not yours")
    eq([link for link in links if os.path.islink(link)], [], "links that are left")
    server.call("SET", "late", "1")
    eq(server.terminate(), 0)
    server.restart()
    eq(sorted(contents(server)), [(0, b"k"), (0, b"late")])


@test()
def the_last_sequence_number(context):
    """It does not begin again at 0: refused, with all files as they were."""
    context.sava_only()
    for number in (2**64 - 1, 2**63 - 1):
        server = durable(context, *NO_SAVE, *LOG)
        server.call("SET", "k", "v")
        eq(server.terminate(), 0)
        manifest = server.path("appendonlydir", "appendonly.aof.manifest")
        old = increments(server)[-1]
        os.rename(old.path, old.path.replace(".1.incr", ".%d.incr" % number))
        text = read(manifest).decode()
        text = text.replace(old.name, old.name.replace(".1.incr", ".%d.incr" % number))
        write(manifest, text.replace("seq 1 type i", "seq %d type i" % number).encode())
        before = snapshot_of(server)
        for _ in range(2):
            log = refused_start(server)
            check("manifest" in log or "sequence number" in log, log)
            eq(snapshot_of(server), before, "the files")


# ---- the id of a data set ----


def data_set_of(server):
    for line in read(server.path("appendonlydir", "appendonly.aof.manifest")).decode().splitlines():
        if line.startswith("# sava-data-set "):
            return line.split()[2]
    return None


def kept_aside(server):
    return sorted(name for name in os.listdir(server.dir) if name.startswith("dump.rdb.2"))


@test()
def a_foreign_dump_beside_a_log(context):
    """Of another data set, or of a server that writes no id: reported, and kept at the next save."""
    context.sava_only("Redis overwrites it")
    foreign = durable(context, *NO_SAVE, *NO_LOG)
    foreign.call("SET", "whose", "another one's")
    eq(foreign.call("SAVE"), resp.OK)
    stock = durable(context, *NO_SAVE, *NO_LOG, binary=context.options.stock)
    stock.call("SET", "whose", "a stock server's")
    eq(stock.call("SAVE"), resp.OK)
    for source, told in ((foreign, b"is of data set"), (stock, b"does not say")):
        dump = read(source.path("dump.rdb"))
        server = durable(context, *NO_SAVE, *LOG)
        server.call("SET", "whose", "mine")
        eq(server.terminate(), 0)
        write(server.path("dump.rdb"), dump)
        server.restart()
        check(told in server.log() and b"the log is loaded" in server.log(), "it is reported")
        eq(server.call("GET", "whose"), b"mine", "the log wins")
        eq(read(server.path("dump.rdb")), dump, "so far it is where it was")
        server.kill()
        server.restart()
        check(told in server.log(), "it is reported again")
        eq(server.call("SAVE"), resp.OK)
        [name] = kept_aside(server)
        eq(read(server.path(name)), dump, "it is kept")
        # Once: from now on it is ours.
        eq(server.call("SAVE"), resp.OK)
        eq(server.terminate(), 0)
        server.restart()
        check(b"the log is loaded" not in server.log(), "our own dump is reported")
        eq(server.call("SAVE"), resp.OK)
        eq(kept_aside(server), [name])
        # Another one on the same day does not replace the first.
        eq(server.terminate(), 0)
        write(server.path("dump.rdb"), dump)
        server.restart()
        eq(server.call("DEBUG", "RELOAD"), resp.OK)
        eq(kept_aside(server), [name, name + ".2"])


@test()
def our_own_dump_beside_our_log(context):
    """However the log came about, the id goes with the data, and our dumps are replaced."""
    context.sava_only()
    server = durable(context, *NO_SAVE, *NO_LOG, *OPEN)
    server.call("SET", "k", "v")
    eq(server.call("SAVE"), resp.OK)
    # From the dump to a log, at a start and while running.
    server.options[2:4] = LOG
    eq(server.terminate(), 0)
    server.restart()
    first = data_set_of(server)
    check(first is not None and len(first) == 32, "an id: %s" % first)
    rewrite(server)
    server.kill()
    server.restart()
    eq(data_set_of(server), first, "after a rewrite and a restart")
    eq(server.call("CONFIG", "SET", "appendonly", "no"), resp.OK)
    eq(server.call("CONFIG", "SET", "appendonly", "yes"), resp.OK)
    wait_idle(server)
    eq(data_set_of(server), first, "off and on again")
    eq(server.call("SAVE"), resp.OK)
    eq(server.terminate(), 0)
    server.restart()
    check(b"the log is loaded" not in server.log(), server.log().decode())
    eq(server.call("SAVE"), resp.OK)
    eq(kept_aside(server), [])
    # Another data set's log is not overwritten by a move.
    other = durable(context, *NO_SAVE, *LOG)
    other.call("SET", "o", "1")
    eq(other.terminate(), 0)
    reply = server.call("CONFIG", "SET", "dir", other.dir)
    check(b"another data set" in bytes(reply), reply)
    eq(server.call("SAVE"), resp.OK)


@test()
def stock_servers_read_files_with_an_id(context):
    context.sava_only()
    server = durable(context, *NO_SAVE, *LOG)
    server.call("SET", "k", "v")
    rewrite(server)
    server.call("SET", "late", "1")
    eq(server.call("SAVE"), resp.OK)
    eq(server.terminate(), 0)
    check(data_set_of(server) is not None, "the manifest has an id")
    check(b"sava-data-set" in read(server.path("dump.rdb")), "and so has the dump")
    passes(CHECK_RDB, server.path("dump.rdb"))
    passes(CHECK_AOF, server.path("appendonlydir", "appendonly.aof.manifest"))
    for settings in (LOG, NO_LOG):
        stock = durable(context, *NO_SAVE, *settings, binary=context.options.stock,
                        directory=server.dir)
        eq(sorted(contents(stock)), [(0, b"k"), (0, b"late")], settings[1])
        if settings is LOG:
            rewrite(stock)
        eq(stock.terminate(), 0)
    # And back: the stock server has written the manifest anew, without it.
    eq(data_set_of(server), None)
    server.restart()
    check(data_set_of(server) is not None, "an id again")
    eq(sorted(contents(server)), [(0, b"k"), (0, b"late")])
