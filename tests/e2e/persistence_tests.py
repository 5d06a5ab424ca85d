"""Saving and loading as commands and settings show it; files to and from a stock Redis.

What is expected of Redis as well runs on both (`both`), so that it is known to be true of Redis.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import time

import durability
import resp
from durability import (
    CHECK_AOF, CHECK_RDB, background_save, contents, durable, increments, log_base, log_files,
    passes, persistence, rewrite, same_contents, wait_idle,
)
from harness import SLOW, Skip, check, eq, parse_info, test, until

YEAR_2100_MS = 4102444800000
NO_SAVE = ("--save", "")
NO_LOG = ("--appendonly", "no")
LOG = ("--appendonly", "yes")


def both(context, *options, **more):
    """A server of the kind under test, and a stock one."""
    yield durable(context, *options, **more)
    if context.is_sava:
        yield durable(context, *options, binary=context.options.stock, **more)


def files_of(server):
    """What is in the data directory, but for the locks of Sava."""
    return sorted(name for name in os.listdir(server.dir) if not name.endswith(".lock"))


def fill_strings(server, rng, count=400):
    """Every encoding, expiries, several databases, binary and long keys, large values."""
    with server.client() as client:
        commands = []
        for number in range(count):
            size = rng.choice((0, 1, 11, 12, 44, 45, 63, 64, 300, 5000))
            value = rng.choice(
                (
                    rng.randbytes(size),
                    b"ab" * (size // 2),
                    b"%d" % rng.randrange(-300, 300),
                    b"%d" % rng.randrange(-(1 << 63), 1 << 63),
                    b"%d" % rng.randrange(-(1 << 31), 1 << 31),
                )
            )
            key = rng.choice((b"key:%d" % number, b"%d" % number, rng.randbytes(20)))
            commands.append(("SET", key, value))
            if rng.random() < 0.3:
                commands.append(("PEXPIREAT", key, YEAR_2100_MS + number))
            if rng.random() < 0.05:
                commands.append(("SELECT", rng.choice((0, 1, 7, 15))))
        commands += [("SELECT", "3"), ("SET", "", ""), ("SET", "large", rng.randbytes(1 << 20))]
        commands += [("SET", "zeros", bytes(1 << 20)), ("SET", "k" * 5000, "long name")]
        commands += [("APPEND", "raw", "x"), ("INCR", "number"), ("SETRANGE", "gap", "30", "end")]
        commands += [("SET", "gone", "1", "PX", "1"), ("SELECT", "0")]
        for reply in client.pipeline(commands):
            check(not resp.is_error(reply), resp.show(reply))
    until(lambda: (3, b"gone") not in contents(server), 10, "the end of a key")


def fill_native(server, rng):
    with server.client() as client:
        for number in range(30):
            members = [b"m%d" % rng.randrange(200) for _ in range(rng.randrange(1, 60))]
            client.call("AFC.ADD", b"afc:%d" % (number % 10), *members)
        client.call("AFC.RESERVE", "limited", "MAXLEN", "5")
        client.call("AFC.ADD", "limited", *"abcdefgh")
        client.call("AFC.ADD", "timed", "x")
        client.call("PEXPIREAT", "timed", YEAR_2100_MS)
        for kind in ("WINDOW", "TOKEN", "GCRA", "SLIDING"):
            reply = client.call("RL.TAKE", "rl:" + kind, kind, "50", "3600000", "COST", "7")
            check(type(reply) is list, resp.show(reply))
        client.call("SET", "inc", "5")
        client.call("PEXPIREAT", "inc", YEAR_2100_MS)
        for call in sketches_and_frontier(rng):
            check(not resp.is_error(client.call(*call)), resp.show(call))


def sketches_and_frontier(rng):
    items = [b"item:%d" % rng.randrange(40) for _ in range(200)]
    yield ("BF.RESERVE", "bf:large", "0.01", "200000")  # in pieces
    yield ("BF.MADD", "bf:large", *items)
    yield ("BF.ADD", "bf:small", items[0])
    yield ("CF.RESERVE", "cf", "100000")
    for item in items[:50]:
        yield ("CF.ADD", "cf", item)
    yield ("CF.DEL", "cf", items[0])
    yield ("CMS.INITBYDIM", "cms", "30000", "5")
    yield ("CMS.INCRBY", "cms", *(word for item in items for word in (item, "2")))
    yield ("TOPK.RESERVE", "topk", "10")
    yield ("TOPK.ADD", "topk", *items)
    for number, item in enumerate(items[:60]):
        yield ("SIMHASH.ADD", "simhash", item, "HASH", "%016x" % (number * 0x123456789AB))
    yield ("SIMHASH.REM", "simhash", items[1])
    yield ("FR.CREATE", "fr", "STRATEGY", "breadth", "DEDUP", "seen", "LEASE", "864000000")
    for start in range(0, 4000, 200):
        urls = ("http://host%d/%d" % (rng.randrange(50), n) for n in range(start, start + 200))
        yield ("FR.ADD", "fr", *urls)
    yield ("FR.ADD", "fr", "PRIO", "-3", "META", "m", "AT", YEAR_2100_MS, "https://later/")
    yield ("FR.HOST", "fr", "host1", "DELAY", "5", "BLOCKUNTIL", YEAR_2100_MS, "LIMIT", "9")
    yield ("FR.NEXT", "fr", "100")
    yield ("FR.ACK", "fr", *range(1, 40))
    yield ("FR.NACK", "fr", "41", "42", "RETRY", "864000000")


def fill(context, server, name):
    fill_strings(server, context.rng(name))
    if not server.stock:
        fill_native(server, context.rng(name))
    return contents(server)


def digest(server):
    return server.call("DEBUG", "DIGEST")


# ---- commands ----


@test()
def flushall_is_kept_by_a_snapshot(context):
    """Without a log FLUSHALL is answered when the empty data set is on disk, in EXEC too."""
    large = bytes(range(256)) * 1000
    flushes = (
        ([("FLUSHALL",)], [resp.OK], set()),
        ([("FLUSHALL", "ASYNC")], [resp.OK], set()),
        ([("MULTI",), ("GET", "large"), ("FLUSHALL",), ("SET", "b", "2"), ("EXEC",)],
         [resp.OK] + [resp.Status(b"QUEUED")] * 3 + [[large, resp.OK, resp.OK]], {(0, b"b")}),
    )
    for server in both(context, *NO_LOG, "--save", "3600 1000000"):
        for commands, replies, left in flushes:
            with server.client() as client:
                client.pipeline([("SET", "a", "1"), ("SET", "large", large), ("SAVE",)])
                eq(client.pipeline(commands), replies, server.name)
            server.kill()
            server.restart()
            # Redis saves within FLUSHALL: what follows it in EXEC is lost.
            eq(set(contents(server)), set() if server.stock else left, repr(commands))
            server.call("FLUSHALL")


@test()
def only_the_client_waits_for_flushall(context):
    """One loop answers others while the snapshot is written, and what follows in order."""
    context.sava_only()
    server = durable(
        context, *NO_LOG, "--save", "3600 1000000", "--save-max-rate", "512kb", threads=1
    )
    value = context.rng("only_the_client_waits").randbytes(1 << 20)
    with server.client() as client, server.client() as other:
        commands = [("MULTI",), ("FLUSHALL",), ("SET", "a", value), ("EXEC",), ("STRLEN", "a")]
        client.raw(b"".join(resp.encode(*command) for command in commands))
        until(lambda: server.info_field("blocked_clients") == "1", what="a client that waits")
        eq(other.call("PING"), resp.PONG)
        eq(other.call("STRLEN", "a"), len(value))
        eq(server.info_field("blocked_clients"), "1", "it waits still")
        replies = [client.recv() for _ in commands]
        eq(replies[3:], [[resp.OK, resp.OK], len(value)])
        client.raw(resp.encode("CLIENT", "REPLY", "SKIP") + resp.encode("FLUSHALL"))
        eq(client.call("PING"), resp.PONG)
        eq(server.info_field("rdb_saves"), "2")


@test()
def flushall_without_save_rules_saves_nothing(context):
    for server in both(context, *NO_LOG, *NO_SAVE):
        eq(server.call("FLUSHALL"), resp.OK)
        eq(server.info_field("rdb_saves"), "0", server.name)
        check(not os.path.exists(server.path("dump.rdb")), server.name)


@test()
def figures_of_a_save_under_way(context):
    """The keys of a save are known as soon as it is asked for; rdb-key-save-delay makes it slow."""
    keys = 100
    for server in both(context, *NO_LOG, *NO_SAVE):
        with server.client() as client:
            eq(client.call("DEBUG", "POPULATE", keys), resp.OK)
            eq(client.call("CONFIG", "SET", "rdb-key-save-delay", "200000"), resp.OK)
            info = client.pipeline([("BGSAVE",), ("INFO", "persistence")])[1]
            fields = parse_info(info)["Persistence"]
            eq(fields["rdb_bgsave_in_progress"], "1", server.name)
            eq(fields["current_save_keys_total"], str(keys), server.name)
            until(
                lambda: 0 < int(server.info_field("current_save_keys_processed")) < keys,
                what="the first keys",
            )
            client.call("SET", "another", "1")
            eq(server.info_field("current_save_keys_total"), str(keys), server.name)
            client.call("FLUSHALL")  # gives it up, whatever it waits for
            until(
                lambda: server.info_field("rdb_bgsave_in_progress") == "0", 5, "the save's end"
            )
            eq(server.info_field("current_save_keys_total"), "0", server.name)
            for delay in ("0", "-100"):
                client.call("DEBUG", "POPULATE", keys)
                eq(client.call("CONFIG", "SET", "rdb-key-save-delay", delay), resp.OK)
                background_save(server)


@test()
def flushall_and_then_save(context):
    """The save that FLUSHALL asks for is in nobody's way, and counts as one."""
    for server in (context.start_stock(), context.start()):
        client = context.client(server)
        client.call("CONFIG", "SET", "save", "3600 1000000")
        for command, answer in (("SAVE", b"OK"), ("BGSAVE", b"Background saving started")) * 3:
            client.pipeline([("SET", "a", "1"), ("FLUSHALL",)])
            eq(server.info_field("rdb_changes_since_last_save", "persistence"), "0", server.name)
            client.call("SET", "a", "2")
            eq(client.call(command), resp.Status(answer), server.name)
            until(
                lambda: server.info_field("rdb_bgsave_in_progress", "persistence") == "0",
                what="the end of the save",
            )
            eq(server.info_field("rdb_changes_since_last_save", "persistence"), "0", server.name)
            check(os.path.getsize(os.path.join(server.dir, "dump.rdb")) > 0, "no dump")


@test()
def who_ends_its_sending_gets_its_answers(context):
    """Answers that wait for the log reach a client that has closed its half of the connection."""
    for policy in ("always", "everysec", "no"):
        server = durable(context, *LOG, "--appendfsync", policy, *NO_SAVE)
        for number in range(1, 21):
            with socket.create_connection(server.address, 10 * SLOW) as sock:
                sock.sendall(b"*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n" * 50)
                sock.shutdown(socket.SHUT_WR)
                answers = b"".join(iter(lambda: sock.recv(65536), b""))
            expected = range(50 * number - 49, 50 * number + 1)
            eq(answers, b"".join(b":%d\r\n" % value for value in expected), policy)


def niceness(server):
    """The nice values of the server's threads, by name."""
    found = {}
    for task in os.listdir("/proc/%d/task" % server.process.pid):
        with open("/proc/%d/task/%s/stat" % (server.process.pid, task), encoding="utf-8") as stat:
            name, fields = stat.read().split("(", 1)[1].rsplit(")", 1)
        found[name] = int(fields.split()[16])
    return found


@test()
def loops_go_before_the_thread_that_saves(context):
    context.sava_only("Redis forks")
    found = niceness(durable(context, *NO_SAVE, *NO_LOG))
    eq(found["sava-0"], os.nice(0))
    eq(found["sava-keeper"], 5)


@test()
def save_and_lastsave(context):
    for server in both(context, *NO_SAVE, *NO_LOG):
        first = server.call("LASTSAVE")
        check(type(first) is int and abs(first - time.time()) < 600, resp.show(first))
        server.call("SET", "a", "1")
        check(int(persistence(server)["rdb_changes_since_last_save"]) >= 1, "changes")
        eq(server.call("SAVE"), resp.OK)
        eq(persistence(server)["rdb_changes_since_last_save"], "0")
        check(server.call("LASTSAVE") >= first, "LASTSAVE went back")
        check(os.path.getsize(server.path("dump.rdb")) > 20, "the file")
        eq(files_of(server), ["dump.rdb"], "files")
        refused = server.call("SAVE", "x")
        eq(refused, resp.Error(b"ERR wrong number of arguments for 'save' command"))
        client = context.client(server)
        client.call("MULTI")
        refused = client.call("SAVE")
        eq(refused, resp.Error(b"ERR Command not allowed inside a transaction"), "SAVE in MULTI")


@test()
def dated_snapshots(context):
    """save-keep: the last N snapshots beside the current one, each with what it had then."""
    context.sava_only("Redis keeps one dump")
    server = durable(context, *NO_SAVE, *NO_LOG, "--save-keep", "3")
    for number in range(5):
        server.call("SET", "number", number)
        eq(server.call("SAVE"), resp.OK)
    dated = [name for name in files_of(server) if name != "dump.rdb"]
    eq(len(dated), 3, files_of(server))
    for name in dated:
        check(re.fullmatch(r"20[0-9]{16}-dump\.rdb", name), name)
        check(b"DB kept as " + name.encode() in server.log(), name)
    eq(dated, sorted(dated))
    for number, name in zip((2, 3, 4), dated):
        directory = context.temp_dir()
        shutil.copy(server.path(name), os.path.join(directory, "dump.rdb"))
        old = durable(context, *NO_SAVE, *NO_LOG, directory=directory)
        eq(old.call("GET", "number"), str(number).encode(), name)
        old.terminate()
    # What is no dated snapshot of this file stays, and so do all when nothing is to be kept.
    stranger = server.path("202101010000000000-other.rdb")
    shutil.copy(server.path("dump.rdb"), stranger)
    with server.configured(save_keep="1"):
        eq(server.call("BGSAVE"), resp.Status(b"Background saving started"))
        wait_idle(server)
    kept = [name for name in files_of(server) if name.endswith("-dump.rdb")]
    eq(len(kept), 1, kept)
    check(kept[0] > dated[-1], kept)
    check(os.path.exists(stranger), "a file of another name")
    with server.configured(save_keep="0"):
        eq(server.call("SAVE"), resp.OK)
    eq([name for name in files_of(server) if name.endswith("-dump.rdb")], kept)


@test()
def background_saves(context):
    for server in both(context, *NO_SAVE, *NO_LOG):
        fields = persistence(server)
        eq(fields["rdb_last_bgsave_status"], "ok")
        eq(fields["rdb_last_bgsave_time_sec"], "-1")
        eq(fields["rdb_saves"], "0")
        server.call("SET", "a", "1")
        background_save(server)
        fields = persistence(server)
        eq(fields["rdb_saves"], "1")
        eq(fields["rdb_changes_since_last_save"], "0")
        eq(fields["rdb_current_bgsave_time_sec"], "-1")
        check(int(fields["rdb_last_bgsave_time_sec"]) >= 0, fields["rdb_last_bgsave_time_sec"])
        eq(
            server.call("BGSAVE", "SCHEDULE"),
            resp.Status(b"Background saving started"),
            "SCHEDULE with nothing to wait for",
        )
        wait_idle(server)
        eq(server.call("BGSAVE", "later"), resp.Error(b"ERR syntax error"))
        eq(files_of(server), ["dump.rdb"], "files")
        log = server.log()
        check(b"Background saving started" in log, "the log tells of the start")
        check(b"DB saved on disk" in log, "the log tells of the end")


@test()
def a_second_save_meanwhile(context):
    """Refused or done, as it comes; never two at once, never a lost reply."""
    server = durable(context, *NO_SAVE, *LOG)
    server.call("DEBUG", "POPULATE", "200000", "key", "100")
    clients = [context.client(server) for _ in range(4)]
    commands = ("BGSAVE", "BGREWRITEAOF", "BGSAVE SCHEDULE", "BGSAVE")
    for client, command in zip(clients, commands):
        client.send(*command.split())
    known = (
        b"Background saving started",
        b"Background saving scheduled",
        b"Background append only file rewriting started",
        b"Background append only file rewriting scheduled",
        b"ERR Background save already in progress",
        b"ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE"
        b" in order to schedule a BGSAVE whenever possible.",
        b"ERR Background append only file rewriting already in progress",
    )
    for client, command in zip(clients, commands):
        reply = client.reply()
        check(bytes(reply) in known, "%s: %s" % (command, resp.show(reply)))
    fields = wait_idle(server)
    eq(fields["rdb_last_bgsave_status"], "ok")
    eq(fields["aof_last_bgrewrite_status"], "ok")
    check(int(fields["rdb_saves"]) >= 1, "no save was made")
    before = digest(server)
    server.kill()
    eq(digest(server.restart()), before, "after a kill")


@test()
def info_fields(context):
    """Names and order of INFO persistence are those of Redis, with the log off and on."""
    for settings in (NO_LOG, LOG):
        shown = []
        for server in both(context, *NO_SAVE, *settings):
            shown.append(list(persistence(server)))
            fields = persistence(server)
            eq(fields["loading"], "0")
            eq(fields["aof_enabled"], "1" if settings == LOG else "0")
            eq(fields["aof_last_write_status"], "ok")
            eq(fields["aof_last_bgrewrite_status"], "ok")
        if len(shown) == 2:
            missing = [name for name in shown[1] if name not in shown[0]]
            eq(missing, [], "fields of Redis that are missing")


@test()
def save_rules_fire(context):
    for server in both(context, "--save", "1 1", *NO_LOG):
        eq(server.call("CONFIG", "GET", "save"), [b"save", b"1 1"])
        server.call("SET", "a", "1")
        until(lambda: int(persistence(server)["rdb_saves"]) >= 1, 20, "a save by rule")
        until(lambda: os.path.exists(server.path("dump.rdb")), 10, "the file")
        check(b"1 changes in 1 seconds. Saving..." in server.log(), "the log names the rule")
        if server.stock and context.is_sava:
            continue
        eq(server.call("CONFIG", "SET", "save", ""), resp.OK)
        wait_idle(server)
        server.call("SET", "b", "2")
        eq(server.call("CONFIG", "SET", "save", "1 1000000 1 1"), resp.OK)
        until(lambda: persistence(server)["rdb_changes_since_last_save"] == "0", 20, "a new rule")
        server.kill()
        eq(sorted(contents(server.restart())), [(0, b"a"), (0, b"b")])


@test()
def file_settings(context):
    """dbfilename at run time, compression, checksum."""
    for server in both(context, *NO_SAVE, *NO_LOG, "--rdbchecksum", "no", "--dbfilename", "a.rdb"):
        server.call("SET", "long", "x" * 10000)
        eq(server.call("SAVE"), resp.OK)
        small = os.path.getsize(server.path("a.rdb"))
        check(small < 2000, "compression: %d bytes" % small)
        with open(server.path("a.rdb"), "rb") as file:
            eq(file.read()[-8:], bytes(8), "no checksum")
        eq(server.call("CONFIG", "SET", "rdbcompression", "no"), resp.OK)
        eq(server.call("CONFIG", "SET", "dbfilename", "b.rdb"), resp.Error(
            b"ERR CONFIG SET failed (possibly related to argument 'dbfilename') - can't set "
            b"protected config"), "a protected setting")
        eq(server.call("SAVE"), resp.OK)
        check(os.path.getsize(server.path("a.rdb")) > 10000, "no compression")
        passes(CHECK_RDB, server.path("a.rdb"))
        before = contents(server)
        server.kill()
        same_contents(before, contents(server.restart()), "loaded again")
    for server in both(
        context, *NO_SAVE, *NO_LOG, "--enable-protected-configs", "yes", "--dbfilename", "a.rdb"
    ):
        server.call("SET", "k", "v")
        eq(server.call("CONFIG", "SET", "dbfilename", "b.rdb"), resp.OK)
        eq(server.call("SAVE"), resp.OK)
        eq(files_of(server), ["b.rdb"], "files")
        passes(CHECK_RDB, server.path("b.rdb"))


@test()
def shutdown_saves(context):
    for server in both(context, "--save", "3600 1000000", *NO_LOG):
        server.call("SET", "a", "1")
        eq(server.terminate(signal.SIGTERM), 0, "exit code")
        server.restart()
        eq(server.call("GET", "a"), b"1", "after SIGTERM")
        server.call("SET", "b", "1")
        end(server, "SHUTDOWN", "NOSAVE")
        server.restart()
        eq(sorted(contents(server)), [(0, b"a")], "after SHUTDOWN NOSAVE")
        server.call("SET", "c", "1")
        end(server, "SHUTDOWN")
        server.restart()
        eq(sorted(contents(server)), [(0, b"a"), (0, b"c")], "after SHUTDOWN")
    for server in both(context, *NO_SAVE, *NO_LOG):
        server.call("SET", "a", "1")
        end(server, "SHUTDOWN", "SAVE")
        server.restart()
        eq(server.call("GET", "a"), b"1", "after SHUTDOWN SAVE")
        server.call("SET", "b", "1")
        end(server, "SHUTDOWN")
        server.restart()
        eq(sorted(contents(server)), [(0, b"a")], "SHUTDOWN without save rules")


def end(server, *command):
    with server.client() as client:
        client.send(*command)
        check(client.closed_by_server(20 * SLOW), "the connection stays open")
    eq(server.wait_exit(), 0, "exit code of " + " ".join(command))
    server.forget()


@test()
def shutdown_that_cannot_save(context):
    """It stays, and says so; FORCE and NOSAVE go."""
    for server in both(context, "--save", "3600 1000000", *NO_LOG):
        server.call("SET", "a", "1")
        os.mkdir(server.path("dump.rdb"))
        os.mkdir(server.path("dump.rdb", "full"))
        reply = server.call("SHUTDOWN")
        eq(reply, resp.Error(b"ERR Errors trying to SHUTDOWN. Check logs."))
        eq(server.call("GET", "a"), b"1", "still there")
        told = server.log().count(b"rror")
        server.process.send_signal(signal.SIGTERM)
        until(lambda: server.log().count(b"rror") > told, 10, "a word in the log")
        eq(server.call("PING"), resp.PONG, "SIGTERM")
        os.rmdir(server.path("dump.rdb", "full"))
        os.rmdir(server.path("dump.rdb"))
        end(server, "SHUTDOWN")
        server.restart()
        eq(server.call("GET", "a"), b"1", "saved in the end")


@test()
def shutdown_during_the_first_log(context):
    """The log was switched on and has no base yet: the server stays, unless forced."""
    for server in both(context, *NO_SAVE, *NO_LOG):
        values = context.rng("first log")
        for number in range(60):
            server.call("SET", "k%d" % number, values.randbytes(1000))
        slow = ("rdb-key-save-delay", "100000") if server.stock else ("save-max-rate", "15000")
        fast = (slow[0], "0")
        eq(server.call("CONFIG", "SET", *slow), resp.OK)
        eq(server.call("CONFIG", "SET", "appendonly", "yes"), resp.OK)
        failed = resp.Error(b"ERR Errors trying to SHUTDOWN. Check logs.")
        eq(server.call("SHUTDOWN"), failed)
        eq(server.call("SHUTDOWN", "NOSAVE"), failed)
        told = server.log().count(b"Writing initial AOF, can't exit")
        check(told >= 2, "the log tells why")
        server.process.send_signal(signal.SIGTERM)
        until(lambda: server.log().count(b"Writing initial AOF, can't exit") > told, 10, "a word")
        eq(server.call("DBSIZE"), 60, "after SIGTERM")
        wait_idle(server)
        eq(server.call("CONFIG", "SET", *fast), resp.OK)
        end(server, "SHUTDOWN")
        server.options += LOG
        server.restart()
        eq(server.call("DBSIZE"), 60, "from the log")
        # FORCE goes.
        eq(server.call("CONFIG", "SET", "appendonly", "no"), resp.OK)
        until(lambda: persistence(server)["aof_enabled"] == "0", 10, "the end of the log")
        eq(server.call("CONFIG", "SET", *slow), resp.OK)
        eq(server.call("CONFIG", "SET", "appendonly", "yes"), resp.OK)
        end(server, "SHUTDOWN", "FORCE")


# ---- the default ----


@test()
def the_default_keeps_data(context):
    context.sava_only("by default Redis has snapshots only")
    server = durable(context)
    expected = fill(context, server, "default")
    eq(server.terminate(), 0, "exit code")
    same_contents(expected, contents(server.restart()), "after SIGTERM")
    server.call("SET", "late", "1")
    moment = time.monotonic()
    until(lambda: time.monotonic() - moment > 2, 10, "two seconds")
    server.kill()
    expected[0, b"late"] = (b"1", -1)
    same_contents(expected, contents(server.restart()), "after SIGKILL")


@test()
def an_empty_directory_stays_usable(context):
    """Started and ended without a write: starts again, with and without the log."""
    for settings in ((), (*NO_SAVE, *LOG), (*NO_SAVE, *NO_LOG), ("--save", "1 1", *NO_LOG)):
        for server in both(context, *settings):
            eq(server.terminate(), 0)
            server.restart()
            server.kill()
            server.restart()
            eq(server.call("DBSIZE"), 0)


# ---- the log ----


@test()
def log_files_and_rewrite(context):
    """The names are those of Redis 7; a rewrite leaves a base and one increment."""
    for server in both(context, *NO_SAVE, *LOG):
        names = [file.name for file in log_files(server)]
        eq(names, ["appendonly.aof.1.base.rdb", "appendonly.aof.1.incr.aof"], "at first")
        expected = fill(context, server, "rewrite")
        rewrite(server)
        names = [file.name for file in log_files(server)]
        # A base that is there before the switch costs another increment a number.
        eq([re.sub(r"[23]\.incr", "2.incr", name) for name in names],
           ["appendonly.aof.2.base.rdb", "appendonly.aof.2.incr.aof"], "after a rewrite")
        present = until(
            lambda: sorted(os.listdir(server.path("appendonlydir"))) == sorted(
                names + ["appendonly.aof.manifest"]), 10, "the removal of old files")
        check(present, "files")
        check(os.path.getsize(increments(server)[0].path) < 64, "an increment without writes")
        fields = persistence(server)
        eq(fields["aof_base_size"], fields["aof_current_size"])
        server.call("SET", "after", "1")
        until(lambda: int(persistence(server)["aof_current_size"]) > int(fields["aof_base_size"]),
              10, "growth")
        expected[0, b"after"] = (b"1", -1)
        server.kill()
        same_contents(expected, contents(server.restart()), "after a kill")


@test()
def starts_go_on_in_the_last_increment(context):
    """As with Redis: stopped or killed, with or without the ring, there stays one increment."""
    for policy in ("everysec", "always", "no"):
        for server in both(context, *NO_SAVE, *LOG, "--appendfsync", policy):
            expected = {}
            for number in range(6):
                key = b"key:%d" % number
                server.call("SET", key, "v")
                expected[0, key] = (b"v", -1)
                if number % 2:
                    server.kill()
                else:
                    eq(server.terminate(), 0)
                same_contents(expected, contents(server.restart()), "%s, start %d" % (policy, number))
                eq([file.name for file in increments(server)], ["appendonly.aof.1.incr.aof"], policy)
            # Redis's own tool repairs the last file only: that is where all of it is.
            server.kill()
            path = increments(server)[0].path
            manifest = server.path("appendonlydir", "appendonly.aof.manifest")
            passes(CHECK_AOF, manifest)
            with open(path, "ab") as file:
                file.write(b"*3\r\n$3\r\nSET\r\n$4")
            subprocess.run(
                [CHECK_AOF, "--fix", manifest], input=b"y\n", stdout=subprocess.DEVNULL,
                check=True, timeout=60)
            passes(CHECK_AOF, manifest)
            same_contents(expected, contents(server.restart()), policy + ", repaired")


@test()
def automatic_rewrite(context):
    for server in both(
        context, *NO_SAVE, *LOG,
        "--auto-aof-rewrite-percentage", "100", "--auto-aof-rewrite-min-size", "100kb",
    ):
        first = log_base(server).sequence
        with server.client() as client:
            for _ in range(40):
                client.pipeline([("SET", "k%d" % i, "x" * 100) for i in range(100)])
        until(lambda: log_base(server).sequence > first, 20, "a rewrite by itself")
        wait_idle(server)
        expected = contents(server)
        server.kill()
        same_contents(expected, contents(server.restart()), "after a kill")


@test()
def switching_the_log_at_run_time(context):
    for server in both(context, *NO_SAVE, *NO_LOG):
        server.call("SET", "before", "1")
        check(not os.path.exists(server.path("appendonlydir")), "a log although it is off")
        eq(server.call("CONFIG", "SET", "appendonly", "yes"), resp.OK)
        until(lambda: persistence(server)["aof_enabled"] == "1", 10, "aof_enabled")
        server.call("SET", "between", "2")
        wait_idle(server)
        server.call("SET", "with", "3")
        for policy in ("always", "no", "everysec"):
            eq(server.call("CONFIG", "SET", "appendfsync", policy), resp.OK)
            server.call("SET", policy, policy)
        wait_on_disk(server)
        expected = contents(server)
        server.options += LOG
        server.kill()
        same_contents(expected, contents(server.restart()), "with the log switched on")
        eq(server.call("CONFIG", "SET", "appendonly", "no"), resp.OK)
        eq(persistence(server)["aof_enabled"], "0")
        if not server.stock:
            # Another thread switches it off; until then writes go on being logged.
            until(lambda: b"AOF is turned off" in server.log(), 10, "the end of the log")
            time.sleep(0.1 * SLOW)
        server.call("SET", "lost", "4")
        server.kill()
        same_contents(expected, contents(server.restart()), "with the log switched off")
        server.call("SET", "again", "5")
        eq(server.call("CONFIG", "SET", "appendonly", "no"), resp.OK)
        server.call("SET", "unlogged", "6")
        eq(server.call("CONFIG", "SET", "appendonly", "yes"), resp.OK)
        wait_idle(server)
        server.call("SET", "logged", "7")
        expected = contents(server)
        wait_on_disk(server)
        server.kill()
        same_contents(expected, contents(server.restart()), "off and on again")


def wait_on_disk(server):
    """All that was written so far is in the files, or will be within everysec's bound."""
    if not server.stock:
        eq(server.call("WAITAOF", "1", "0", "20000"), [1, 0], "WAITAOF")


@test()
def a_dump_beside_an_absent_log(context):
    """appendonly yes, no log yet, but a dump: it is loaded, and the log begins with it."""
    context.sava_only("Redis starts empty beside the dump")
    server = durable(context, *NO_SAVE, *NO_LOG)
    expected = fill(context, server, "dump")
    eq(server.call("SAVE"), resp.OK)
    server.kill()
    server.options += LOG
    same_contents(expected, contents(server.restart()), "with the log on")
    server.kill()
    os.remove(server.path("dump.rdb"))
    same_contents(expected, contents(server.restart()), "from the log alone")


@test()
def a_log_wins_over_a_dump(context):
    for server in both(context, *NO_SAVE, *LOG):
        server.call("SET", "k", "old")
        eq(server.call("SAVE"), resp.OK)
        server.call("SET", "k", "new")
        eq(server.terminate(), 0)
        server.restart()
        eq(server.call("GET", "k"), b"new")


@test()
def native_types_survive(context):
    """Counters, limits, filters, sketches and a frontier: snapshot, base, increment, DEBUG RELOAD
    and LOADAOF."""
    context.sava_only()
    for settings in (NO_LOG, LOG, LOG + ("--aof-use-rdb-preamble", "no")):
        server = durable(context, *NO_SAVE, *settings)
        expected = fill(context, server, "native")
        before = digest(server)
        if settings is NO_LOG:
            eq(server.call("SAVE"), resp.OK)
        else:
            wait_on_disk(server)
            server.kill()
            server.restart()
            same_contents(expected, contents(server), "from the increment")
            eq(digest(server), before, "the digest")
            rewrite(server)
        server.kill()
        server.restart()
        same_contents(expected, contents(server), "from the snapshot")
        eq(digest(server), before, "the digest")
        members = server.call("AFC.CARD", "afc:1")
        eq(server.call("AFC.ADD", "afc:1", "more"), 1)
        eq(server.call("AFC.CARD", "afc:1"), members + 1)
        if settings is not NO_LOG:
            info = server.call("AFC.INFO", "limited")
            eq(dict(zip(info[::2], info[1::2]))[b"maxlen"], 5)


@test()
def debug_reload_and_loadaof(context):
    for server in both(context, *NO_SAVE, *NO_LOG):
        expected = fill(context, server, "reload")
        before = digest(server)
        other = context.client(server, db=3)
        eq(server.call("DEBUG", "RELOAD"), resp.OK)
        same_contents(expected, contents(server), "DEBUG RELOAD")
        eq(digest(server), before, "the digest")
        eq(other.call("GET", "number"), b"1", "another client goes on")
        check(os.path.exists(server.path("dump.rdb")), "RELOAD saves")
    for server in both(context, *NO_SAVE, *LOG):
        expected = fill(context, server, "reload")
        before = digest(server)
        eq(server.call("DEBUG", "LOADAOF"), resp.OK)
        same_contents(expected, contents(server), "DEBUG LOADAOF")
        eq(digest(server), before, "the digest")
        eq(server.call("DEBUG", "RELOAD"), resp.OK)
        same_contents(expected, contents(server), "DEBUG RELOAD with the log on")
        server.call("SET", "after", "1")
        expected[0, b"after"] = (b"1", -1)
        wait_on_disk(server)
        server.kill()
        same_contents(expected, contents(server.restart()), "after a kill")


@test()
def reload_options(context):
    for server in both(context, *NO_SAVE, *NO_LOG):
        server.call("SET", "a", "saved")
        eq(server.call("SAVE"), resp.OK)
        server.call("SET", "a", "changed")
        server.call("SET", "b", "new")
        eq(server.call("DEBUG", "RELOAD", "NOSAVE"), resp.OK)
        eq(sorted(contents(server).items()), [((0, b"a"), (b"saved", -1))], "NOSAVE")
        eq(server.call("DEBUG", "RELOAD", "NOSAVE", "NOFLUSH", "MERGE"), resp.OK)
        eq(server.call("GET", "a"), b"saved")


@test()
def waitaof(context):
    context.sava_only("Redis has it since 7.2")
    server = durable(context, *NO_SAVE, *LOG)
    client = context.client(server)
    client.call("SET", "a", "1")
    eq(client.call("WAITAOF", "1", "0", "0"), [1, 0])
    reply = client.call("WAITAOF", "0", "0", "0")
    check(reply in ([0, 0], [1, 0]), "waiting for nobody: " + resp.show(reply))
    client.call("CONFIG", "SET", "appendfsync", "no")
    client.call("SET", "a", "2")
    reply = client.call("WAITAOF", "1", "0", "300")
    check(reply in ([0, 0], [1, 0]), resp.show(reply))
    client.call("CONFIG", "SET", "appendfsync", "always")
    client.call("SET", "a", "3")
    eq(client.call("WAITAOF", "1", "0", "0"), [1, 0])
    eq(client.call("WAITAOF", "1", "1", "50"), [1, 0], "no replica is there")
    eq(
        client.call("WAITAOF", "2", "0", "0"),
        resp.Error(b"ERR value is out of range, value must between 0 and 1"),
    )
    client.call("MULTI")
    client.call("SET", "a", "4")
    client.call("WAITAOF", "1", "0", "0")
    reply = client.call("EXEC")
    eq(reply[0], resp.OK)
    check(reply[1] in ([1, 0], [0, 0]), "WAITAOF never blocks in EXEC: " + resp.show(reply))
    server.call("CONFIG", "SET", "appendonly", "no")
    eq(
        client.call("WAITAOF", "1", "0", "0"),
        resp.Error(b"ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."),
    )


@test()
def waitaof_waits_for_the_second(context):
    """Several clients wait under everysec while one writes on; all are released."""
    context.sava_only("Redis has it since 7.2")
    server = durable(context, *NO_SAVE, *LOG)
    clients = [context.client(server) for _ in range(5)]
    for number, client in enumerate(clients):
        client.send("SET", "k%d" % number, "v")
        client.send("WAITAOF", "1", "0", "0")
        client.send("PING")
    for client in clients:
        eq([client.reply(), client.reply(), client.reply()], [resp.OK, [1, 0], resp.PONG])
    expected = contents(server)
    server.kill()
    same_contents(expected, contents(server.restart()), "after a kill")


@test(timeout=60)
def waitaof_while_the_log_is_turned_on(context):
    """Its answer is true: killed at once, the write is there; and it comes."""
    context.sava_only("Redis has it since 7.2")
    for number in range(6):
        server = durable(context, *NO_SAVE, *NO_LOG)
        server.call("SET", "before", "1")
        eq(server.call("CONFIG", "SET", "appendonly", "yes"), resp.OK)
        for step in range(number + 1):
            server.call("SET", "k", step)
            eq(server.call("WAITAOF", "1", "0", "4000"), [1, 0], "WAITAOF %d" % step)
        server.kill()
        server.options += LOG
        server.restart()
        eq(server.call("MGET", "before", "k"), [b"1", b"%d" % number], "after a kill")
        server.kill()


@test(timeout=90)
def loading_is_told(context):
    """-LOADING, INFO's fields and PING's silence while a large file is read."""
    seen = False
    for count in (400_000, 1_600_000, 6_400_000):
        server = durable(context, *NO_SAVE, *NO_LOG)
        server.call("DEBUG", "POPULATE", count, "key", "60")
        eq(server.call("SAVE"), resp.OK)
        server.kill()
        if server.stock:
            server.options += ["--key-load-delay", "1"]
        server.spawn_unready()
        seen = watch_loading(server)
        until(lambda: b"Ready to accept" in server.log(), 60, "the end of loading")
        eq(server.call("DBSIZE"), count)
        eq(persistence(server)["loading"], "0")
        if seen:
            log = server.log()
            check(b"DB loaded from disk" in log, "the log tells of the end: %r" % log[-600:])
            return
    check(seen, "the server was never seen loading")


def watch_loading(server):
    """Asks a loading server this and that; True when it was seen loading."""
    client = None
    while client is None:
        check(server.process.poll() is None, "it ended: %r" % server.log()[-500:])
        if b"Ready to accept" in server.log():
            return False
        try:
            client = server.client()
        except OSError:
            time.sleep(0.001)
    with client:
        asked = [("GET", "key:1"), ("INFO", "persistence"), ("SET", "a", "b"),
                 ("CONFIG", "SET", "dir", "/"), ("CONFIG", "SET", "timeout", "0"), ("GET", "key:2")]
        replies = client.pipeline(asked)
        fields = replies[1].decode()
        if "loading:1" not in fields:
            return False
        refused = resp.Error(b"LOADING Redis is loading the dataset in memory")
        eq(replies[0], refused, "GET")
        for name in (
            "loading_start_time", "loading_total_bytes", "loading_loaded_bytes",
            "loading_loaded_perc", "loading_eta_seconds", "loading_rdb_used_mem",
        ):
            check(name + ":" in fields, "%s is not in INFO: %s" % (name, fields))
        if not resp.is_error(replies[5]):
            return True  # it was ready before the last question
        eq([replies[2], replies[5]], [refused, refused], "SET and GET")
        eq(replies[3:5], [refused, resp.OK], "CONFIG SET of what may not and what may be changed")
    return True


@test()
def expired_keys_stay_away(context):
    """What lapsed while the server was down is not there, by the files of either kind."""
    for settings in (NO_LOG, LOG):
        for server in both(context, *NO_SAVE, *settings):
            server.call("SET", "stays", "1", "PXAT", YEAR_2100_MS)
            server.call("SET", "lapses", "1", "PX", "400")
            if settings == NO_LOG:
                eq(server.call("SAVE"), resp.OK)
            wait_on_disk(server) if settings == LOG else None
            server.kill()
            time.sleep(0.5)
            server.restart()
            eq(server.call("DBSIZE") in (1, 2), True)
            eq(server.call("EXISTS", "lapses"), 0)
            eq(contents(server), {(0, b"stays"): (b"1", YEAR_2100_MS)})


# ---- to and from a stock Redis ----


def moved(context, source, target_binary, *options):
    """Another server on a copy of what `source` left behind."""
    source.terminate()
    directory = context.temp_dir()
    shutil.copytree(source.dir, directory, dirs_exist_ok=True)
    return durable(context, *options, binary=target_binary, directory=directory)


def round_trip(context, first, second, settings):
    """What `first` saved, `second` has; what it adds, `first` has."""
    server = durable(context, *NO_SAVE, *settings, binary=first)
    fill_strings(server, context.rng("trip"))
    if settings == NO_LOG:
        eq(server.call("SAVE"), resp.OK)
        passes(CHECK_RDB, server.path("dump.rdb"))
    else:
        rewrite(server)
        fill_strings(server, context.rng("more"), 60)
        with server.client() as client:
            client.pipeline([("MULTI",), ("SET", "m1", "1"), ("SELECT", "5"), ("SET", "m2", "2"),
                             ("SELECT", "0"), ("RENAME", "m1", "m3"), ("EXEC",)])
            client.pipeline([("SET", "a", "1", "EX", "5000"), ("GETEX", "a", "PERSIST"),
                             ("INCRBYFLOAT", "f", "1.5"), ("SETBIT", "bits", "77", "1"),
                             ("COPY", "f", "g"), ("MOVE", "f", "6"), ("SWAPDB", "5", "6"),
                             ("BITFIELD", "bits", "SET", "u8", "0", "9"), ("DEL", "g")])
    expected = contents(server)
    end(server, "SHUTDOWN", "NOSAVE") if settings == NO_LOG else server.terminate()
    if settings == LOG:
        passes(CHECK_AOF, server.path("appendonlydir", "appendonly.aof.manifest"))
    other = moved(context, server, second, *NO_SAVE, *settings)
    same_contents(expected, contents(other), "what %s left, in %s" % (server.name, other.name))
    return other


@test(timeout=60)
def snapshots_to_and_from_redis(context):
    ours, stock = context.options.server, context.options.stock
    round_trip(context, ours, stock, NO_LOG)
    there = round_trip(context, stock, ours, NO_LOG)
    expected = contents(there)
    eq(there.call("SAVE"), resp.OK)
    passes(CHECK_RDB, there.path("dump.rdb"))
    back = moved(context, there, stock, *NO_SAVE, *NO_LOG)
    same_contents(expected, contents(back), "back in stock")


@test(timeout=60)
def logs_to_and_from_redis(context):
    ours, stock = context.options.server, context.options.stock
    for there, here in ((ours, stock), (stock, ours)):
        server = round_trip(context, there, here, LOG)
        expected = contents(server)
        server.call("SET", "written by the other", "1")
        expected[0, b"written by the other"] = (b"1", -1)
        rewrite(server)
        back = moved(context, server, there, *NO_SAVE, *LOG)
        same_contents(expected, contents(back), "back again")


@test()
def old_single_file_log(context):
    """A log of before Redis 7 (appendonly.aof beside the dump) is taken up, as Redis does."""
    for server in both(context, *NO_SAVE, *LOG, started=False):
        with open(server.path("appendonly.aof"), "wb") as file:
            for command in (("SELECT", "2"), ("SET", "old", "log"), ("INCR", "n"), ("INCR", "n")):
                file.write(resp.encode(*command))
        server.start()
        eq(contents(server), {(2, b"old"): (b"log", -1), (2, b"n"): (b"2", -1)})
        server.call("SET", "new", "1")
        server.terminate()
        server.restart()
        eq(len(contents(server)), 3)


@test()
def timestamps_in_the_log(context):
    """aof-timestamp-enabled: annotations are written, and passed over."""
    for server in both(context, *NO_SAVE, *LOG, "--aof-timestamp-enabled", "yes"):
        server.call("SET", "a", "1")
        expected = contents(server)
        server.terminate()
        with open(increments(server)[-1].path, "rb") as file:
            check(b"#TS:" in file.read(), "no timestamp")
        passes(CHECK_AOF, server.path("appendonlydir", "appendonly.aof.manifest"))
        same_contents(expected, contents(server.restart()), "loaded")


@test()
def other_names_for_the_log(context):
    for server in both(
        context, *NO_SAVE, *LOG, "--appendfilename", "x.aof", "--appenddirname", "logs"
    ):
        server.call("SET", "a", "1")
        server.terminate()
        names = [file.name for file in log_files(server, "logs", "x.aof")]
        eq(names[:2], ["x.aof.1.base.rdb", "x.aof.1.incr.aof"])
        eq(sorted(contents(server.restart())), [(0, b"a")])


@test()
def foreign_values(context):
    """A file with what we cannot hold is refused by name, and left as it is."""
    context.sava_only("Redis words it differently")
    server = durable(context, *NO_SAVE, *NO_LOG, started=False)
    with open(server.path("dump.rdb"), "wb") as file:
        file.write(b"REDIS0010\xfe\x00\x00\x04fine\x011\x06\x07strange\x05value\xff" + bytes(8))
    before = durability.digest_of_files(server.dir)
    output = durability.refused_start(server)
    check("dump.rdb" in output and "strange" in output, output[-800:])
    eq(durability.digest_of_files(server.dir), before, "the files")
