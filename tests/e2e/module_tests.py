"""sava.so inside a stock server: how it is loaded, what the host sees of it, and that values travel
between such a server and Sava. The replies of the commands are tested by the families' own modules
with `run.py --host module`.
"""

import os
import re
import shutil
import subprocess
import threading
import time

import native_data
import resp
from harness import Server, Skip, check, eq, free_port, test, until

HERE = os.path.dirname(os.path.abspath(__file__))
FAMILIES = ["rl", "cl", "increx", "afc", "cms", "topk", "simhash", "bf", "cf", "fr", "url"]


def module_path(context):
    path = os.path.join(context.options.built, "sava.so")
    if not os.path.exists(path):
        raise Skip("sava.so is not built beside the server")
    return path


def hosted(context, *options, **more):
    """A stock server with sava.so."""
    return context.start_stock(*options, module=more.pop("module", module_path(context)), **more)


def fill(client, prefix="", seed=1, size=300):
    for words in native_data.commands(prefix, seed, size):
        reply = client.call(*words)
        check(not resp.is_error(reply), "%s: %s" % (words[:2], resp.show(reply)))


def threads_of(server):
    return len(os.listdir("/proc/%d/task" % server.process.pid))


def saved(server):
    """Its data set in a file."""
    eq(server.call("SAVE"), resp.OK)
    return os.path.join(server.dir, "dump.rdb")


def refused_start(context, *options):
    """The log of a stock server that does not start with these options."""
    server = Server(context.options.stock, options)
    server.spawn(server.command_line(free_port()))
    try:
        check(server.wait_exit() not in (0, None), "the server ended well")
        return server.log().decode("utf-8", "replace")
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        server.remove_files()


# ---- loading ----


@test()
def loads_and_reports(context):
    server = hosted(context)
    info = server.info("sava")["sava"]
    eq(info["sava_families"].split(","), FAMILIES)
    eq(info["sava_families_left_out"], "")
    check(b"does not take" not in server.log(), "the host refuses a command's description")
    listed = server.call("MODULE", "LIST")
    eq([entry[1] for entry in listed], [b"sava"])


@test()
def the_program_knows_where_it_is(context):
    path = module_path(context)
    program = os.path.join(context.options.built, "sava")
    if not os.path.exists(program):
        raise Skip("the server is not called sava")
    printed = subprocess.run([program, "module-path"], capture_output=True, text=True, check=True)
    eq(os.path.realpath(printed.stdout.strip()), os.path.realpath(path))
    folder = context.temp_dir()
    os.makedirs(os.path.join(folder, "bin"))
    os.makedirs(os.path.join(folder, "lib", "sava"))
    alone = shutil.copy(program, os.path.join(folder, "bin"))
    printed = subprocess.run([alone, "module-path"], capture_output=True, text=True, check=False)
    eq(printed.returncode, 1)
    check("there is no sava.so" in printed.stderr, printed.stderr)
    installed = shutil.copy(path, os.path.join(folder, "lib", "sava"))
    printed = subprocess.run([alone, "module-path"], capture_output=True, text=True, check=True)
    eq(os.path.realpath(printed.stdout.strip()), os.path.realpath(installed))


@test()
def needs_no_libraries(context):
    """libc and libm, which every host has; nothing is exported but the entry."""
    path = module_path(context)
    listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    names = {line.split()[0].split("/")[-1] for line in listed.splitlines() if line.strip()}
    names -= {"linux-vdso.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    eq(sorted(names), ["libc.so.6", "libm.so.6"])
    if shutil.which("nm"):
        symbols = subprocess.run(
            ["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True
        ).stdout.split("\n")
        exported = [line.split()[-1].split("@")[0] for line in symbols if line]
        eq(exported, ["RedisModule_OnLoad"])


@test()
def the_host_exports_what_is_asked_for(context):
    """The names in sava.so against those in the host: none is misspelt."""
    pattern = re.compile(rb"RedisModule_([A-Za-z0-9]+)\0")
    with open(module_path(context), "rb") as file:
        asked = set(pattern.findall(file.read())) - {b"OnLoad"}
    with open(os.path.realpath(context.options.stock), "rb") as file:
        exported = set(pattern.findall(file.read()))
    check(len(asked) > 60, "no names found in sava.so: %d" % len(asked))
    later = {b"SetCommandACLCategories", b"AddACLCategory"}  # from 7.2, 7.4 on
    eq(sorted(asked - exported - later), [])


@test()
def taken_families_are_left_out(context):
    """A host that has BF.MADD and INCREX keeps them, and all the other families come."""
    path = module_path(context)
    other = os.path.join(context.temp_dir(), "taken.so")
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        raise Skip("no compiler")
    source = os.path.join(HERE, "taken_names.cc")
    subprocess.run([compiler, "-std=c++20", "-shared", "-fPIC", "-o", other, source], check=True)
    server = context.start_stock("--loadmodule", other, "--loadmodule", path)
    info = server.info("sava")["sava"]
    eq(info["sava_families_left_out"], "increx,bf")
    eq(sorted(info["sava_families"].split(",")), sorted(set(FAMILIES) - {"increx", "bf"}))
    eq(server.call("BF.MADD"), resp.Status(b"the other module's"))
    check(resp.is_error(server.call("BF.ADD", "b", "x")), "half a family was registered")
    eq(server.call("CF.ADD", "c", "x"), 1)
    check(b"family 'bf' is left out" in server.log(), "the log does not tell")


@test()
def arguments_choose_families(context):
    path = module_path(context)
    server = context.start_stock("--loadmodule", path, "families", "AFC,fr")
    eq(server.info("sava")["sava"]["sava_families"], "afc,fr")
    eq(server.call("AFC.ADD", "k", "a"), 1)
    check(resp.is_error(server.call("BF.ADD", "b", "x")), "a family that was not named is there")
    log = refused_start(context, "--loadmodule", path, "families", "afc,nope")
    check("there is no family 'nope'" in log, log)
    log = refused_start(context, "--loadmodule", path, "colour", "red")
    check("module argument: colour" in log, log)


@test()
def no_threads(context):
    """Neither loading nor saving makes a thread."""
    plain = context.start_stock()
    server = hosted(context)
    eq(threads_of(server), threads_of(plain))
    with server.client() as client:
        fill(client)
        eq(client.call("BGSAVE"), resp.Status(b"Background saving started"))
        until(lambda: server.info_field("rdb_bgsave_in_progress") == "0", what="the end of BGSAVE")
    eq(server.info_field("rdb_last_bgsave_status"), "ok")
    eq(threads_of(server), threads_of(plain))


# ---- what the host knows of commands ----


def row(client, name):
    """COMMAND INFO without what differs by design: ACL categories and the flag of modules."""
    reply = client.call("COMMAND", "INFO", name)[0]
    flags = {bytes(flag) for flag in reply[2]} - {b"module", b"movablekeys"}
    return reply[0], reply[1], flags, reply[3:6], reply[8]


@test()
def commands_are_described_as_in_sava(context):
    server = hosted(context)
    ours, theirs = context.client(context.start()), context.client(server)
    listed = theirs.call("COMMAND", "LIST", "FILTERBY", "MODULE", "sava")
    check(len(listed) > 60, "only %d commands" % len(listed))
    for name in sorted(listed):
        mine, other = row(ours, name), row(theirs, name)
        if name == b"rl.takeall":  # the host asks for its keys, see NeedsKeysRequest
            mine, other = mine[:2], other[:2]
        context.same(other, mine, name.decode())
        mine = ours.call("COMMAND", "DOCS", name)[1]
        other = theirs.call("COMMAND", "DOCS", name)[1]
        mine, other = (dict(zip(part[::2], part[1::2])) for part in (mine, other))
        for field in (b"summary", b"since", b"complexity"):
            context.same(other.get(field), mine.get(field), "%s of %s" % (field, name))
        check(len(other.get(b"arguments", [])) == len(mine.get(b"arguments", [])), name)
    buckets = ["a", "TOKEN", "1", "1", "b", "TOKEN", "1", "1", "c", "TOKEN", "1", "1"]
    eq(theirs.call("COMMAND", "GETKEYS", "RL.TAKEALL", "3", *buckets), [b"a", b"b", b"c"])


@test()
def keys_are_found_as_in_sava(context):
    """COMMAND GETKEYS and GETKEYSANDFLAGS, also where commands have their keys' number in front."""
    ours, theirs = context.client(context.start()), context.client(hosted(context))
    calls = {words[0]: words for words in native_data.commands()}
    calls["RL.TAKEALL"] = ("RL.TAKEALL", "2", "a", "TOKEN", "1", "1", "b", "TOKEN", "1", "1")
    calls["CMS.MERGE"] = ("CMS.MERGE", "to", "2", "a", "b", "WEIGHTS", "1", "2")
    calls["AFC.MERGE"] = ("AFC.MERGE", "to", "a", "b")
    calls["BF.MERGE"] = ("BF.MERGE", "to", "a", "b")
    calls["BF.EXISTS"] = ("BF.EXISTS", "b", "x")
    calls["FR.ACK"] = ("FR.ACK", "f", "http://a/")
    calls["FR.IMPORT"] = ("FR.IMPORT", "f", "http://a/", "queued", "0", "0", "0", "")
    for name, words in sorted(calls.items()):
        for question in ("GETKEYS", "GETKEYSANDFLAGS"):
            mine = ours.call("COMMAND", question, *words)
            other = theirs.call("COMMAND", question, *words)
            context.same(other, mine, "%s of %s" % (question, name))
            check(not resp.is_error(mine), "%s: %s" % (name, resp.show(mine)))


@test()
def notifications_are_those_of_sava(context):
    """The same events of the same keys in the same order, for all commands that have some."""
    calls = native_data.commands("", 3, 30) + [
        ("AFC.REM", "afc:1", "w1", "w2"),
        ("AFC.DROP", "afc:2"),
        ("AFC.MERGE", "afc:all", "afc:3", "afc:4"),
        ("AFC.ADD", "w", "x"),
        ("AFC.REM", "w", "x"),
        ("BF.DEL", "bf:deletable", "nosuch"),
        ("BF.MERGE", "bf:two", "bf:fixed", "bf:fixed"),
        ("CF.ADDNX", "cf:1", "new"),
        ("CF.DEL", "cf:1", "new"),
        ("CF.COMPACT", "cf:1"),
        ("CMS.INITBYDIM", "cms:all", "50", "4"),
        ("CMS.MERGE", "cms:all", "1", "cms:small"),
        ("TOPK.INCRBY", "topk:1", "x", "5"),
        ("SIMHASH.REM", "simhash:1", "w1"),
        ("FR.CREATE", "f", "LEASE", "1000"),
        ("FR.ADD", "f", "NOW", "1000", "http://a.example/1", "http://b.example/2"),
        ("FR.NEXT", "f", "5", "NOW", "1000"),
        ("FR.ACK", "f", "1", "NOW", "1001"),
        ("FR.NACK", "f", "2", "NOW", "1002"),
        ("FR.PURGE", "f", "b.example"),
        ("FR.CLEAR", "f"),
        ("RL.TAKE", "rl:token", "TOKEN", "1000", "3600000"),
        ("RL.REFUND", "rl:token", "TOKEN", "1000", "3600000"),
        ("RL.TAKEALL", "2", "a", "TOKEN", "5", "1000", "b", "TOKEN", "5", "1000"),
        ("INCREX", "count", "BYINT", "5", "EX", "10"),
        ("INCREX", "count", "PERSIST"),
    ]
    seen = []
    for server in (context.start(), hosted(context)):
        client, listener = context.client(server), context.client(server)
        client.call("CONFIG", "SET", "notify-keyspace-events", "KEA")
        listener.call("PSUBSCRIBE", "__keyevent@0__:*")
        replies = [client.call(*words) for words in calls]
        client.call("SET", "the end", "1")
        events = []
        while not events or events[-1][1] != b"the end":
            _, _, channel, key = listener.recv()
            events.append((bytes(channel).split(b":", 1)[1], bytes(key)))
        seen.append((events, [resp.is_error(reply) for reply in replies]))
    for event, other in zip(*(events for events, _ in seen), strict=False):
        context.same(other, event, "an event")
    eq(len(seen[1][0]), len(seen[0][0]), "events")
    eq(seen[1][1], seen[0][1], "errors")
    check(len({event for event, _ in seen[0][0]}) > 20, "hardly any kinds of events")


@test()
def access_by_key_and_command(context):
    server = hosted(context)
    admin = context.client(server)
    rule = ["on", "nopass", "~mine:*", "-@all", "+afc.add", "+rl.takeall", "+auth"]
    eq(admin.call("ACL", "SETUSER", "u", *rule), resp.OK)
    client = context.client(server)
    eq(client.call("AUTH", "u", "x"), resp.OK)
    eq(client.call("AFC.ADD", "mine:1", "a"), 1)
    for words in (
        ("AFC.ADD", "other", "a"),
        ("AFC.TOP", "mine:1", "1"),
        ("RL.TAKEALL", "2", "mine:1", "TOKEN", "1", "1", "other", "TOKEN", "1", "1"),
    ):
        reply = client.call(*words)
        check(resp.is_error(reply, b"NOPERM"), "%s: %s" % (words, resp.show(reply)))


# ---- values between hosts ----


@test()
def dump_payloads_both_ways(context):
    server = hosted(context)
    ours, theirs = context.client(context.start()), context.client(server)
    fill(ours, "s:", 1)
    fill(theirs, "m:", 2)
    for source, target in ((ours, theirs), (theirs, ours)):
        for key in native_data.keys(source):
            name = key.decode()
            source.call("PERSIST", key)  # DUMP has no expiry
            eq(target.call("RESTORE", key, "0", source.call("DUMP", key), "REPLACE"), resp.OK, name)
            back = target.call("DUMP", key)
            eq(source.call("RESTORE", "back", "0", back, "REPLACE"), resp.OK, name)
            digest = source.call("DEBUG", "DIGEST-VALUE", key)
            eq(source.call("DEBUG", "DIGEST-VALUE", "back"), digest, name)
            source.call("DEL", "back")
    eq(native_data.digests(ours), native_data.digests(theirs))
    eq(ours.call("AFC.TOP", "m:afc:3", "20", "WITHCOUNTS"),
       theirs.call("AFC.TOP", "m:afc:3", "20", "WITHCOUNTS"))


@test()
def damaged_payloads_are_refused(context):
    """Bytes with a right checksum that are no value: an error, and the host lives."""
    server = hosted(context)
    client = context.client(server)
    fill(client, size=100)
    rng = context.rng("module.damage")
    client.call("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1")
    before = native_data.digests(client)
    taken = 0
    for key in native_data.keys(client):
        payload = client.call("DUMP", key)
        for _ in range(6):
            damaged = bytearray(payload)
            for _ in range(rng.randrange(1, 4)):
                damaged[rng.randrange(1, len(damaged) - 10)] ^= 1 << rng.randrange(8)
            reply = client.call("RESTORE", "damaged", "0", bytes(damaged), "REPLACE")
            taken += 0 if resp.is_error(reply) else 1
            client.call("DUMP", "damaged")
            client.call("DEL", "damaged")
    context.say("%d damaged payloads were values all the same" % taken)
    eq(client.call("PING"), resp.PONG)
    eq(native_data.digests(client), before)


def file_and_digests(context, server, client):
    fill(client, size=400)
    return saved(server), native_data.digests(client)


@test(timeout=60)
def files_both_ways(context):
    """Sava's file, with a member dictionary, in the host, and the host's in Sava."""
    sava = context.start()
    ours = context.client(sava)
    path, digests = file_and_digests(context, sava, ours)
    folder = context.temp_dir()
    shutil.copy(path, os.path.join(folder, "dump.rdb"))
    server = hosted(context, "--dir", folder)
    theirs = context.client(server)
    eq(native_data.digests(theirs), digests)
    theirs.call("AFC.ADD", "afc:1", "a", "more")
    theirs.call("FR.NEXT", "fr:1", "3")
    digests = native_data.digests(theirs)
    eq(theirs.call("SAVE"), resp.OK)
    again = context.start("--dir", folder)
    eq(native_data.digests(context.client(again)), digests)
    checked = subprocess.run([context.options.server, "check", os.path.join(folder, "dump.rdb")],
                             capture_output=True, check=False)
    eq(checked.returncode, 0, checked.stdout.decode())


@test()
def files_without_our_values_stay_readable(context):
    """What a host with sava.so saves has nothing of ours unless a key has."""
    server = hosted(context)
    client = context.client(server)
    client.call("AFC.ADD", "k", "a")
    client.call("DEL", "k")
    client.call("SET", "plain", "1")
    client.call("RL.TAKE", "bucket", "TOKEN", "5", "60000")
    folder = context.temp_dir()
    shutil.copy(saved(server), os.path.join(folder, "dump.rdb"))
    stock = context.start_stock("--dir", folder)
    eq(stock.call("GET", "plain"), b"1")
    eq(stock.call("EXISTS", "bucket"), 1)


# ---- the host's own persistence and replication ----


class Load:
    """Changes values of every type until told to stop."""

    def __init__(self, server, prefix=""):
        self.server, self.prefix = server, prefix
        self.stopped = threading.Event()
        self.errors, self.sent = [], 0
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        with self.server.client() as client:
            while not self.stopped.is_set():
                n = self.sent = self.sent + 1
                batch = [
                    ("AFC.ADD", self.prefix + "afc:%d" % (n % 12), "w%d" % (n % 97), "new%d" % n),
                    ("BF.ADD", self.prefix + "bf:grown", "x%d" % n),
                    ("CF.ADD", self.prefix + "cf:1", "x%d" % n),
                    ("CMS.INCRBY", self.prefix + "cms:large", "x%d" % (n % 50), "1"),
                    ("TOPK.ADD", self.prefix + "topk:1", "x%d" % (n % 30)),
                    ("SIMHASH.ADD", self.prefix + "simhash:1", "x%d" % n, "HASH", "%016x" % n),
                    ("FR.ADD", self.prefix + "fr:1", "http://load%d.example/%d" % (n % 9, n)),
                    ("FR.NEXT", self.prefix + "fr:1", "1"),
                    ("RL.TAKE", self.prefix + "rl:token", "TOKEN", "1000000", "60000"),
                ]
                self.errors += [r for r in client.pipeline(batch) if resp.is_error(r)]

    def stop(self):
        self.stopped.set()
        self.thread.join()
        eq(self.errors[:3], [], "errors under load")


@test(timeout=60)
def saves_in_children_under_load(context):
    """BGSAVE and BGREWRITEAOF while everything changes; what is loaded again is what there was."""
    server = hosted(context, "--appendonly", "yes", "--appendfsync", "no")
    client = context.client(server)
    fill(client, size=600)
    load = Load(server)
    try:
        for _ in range(3):
            client.call("BGREWRITEAOF")
            until(
                lambda: server.info_field("aof_rewrite_in_progress") == "0"
                and server.info_field("aof_rewrite_scheduled") == "0",
                what="the end of the rewrite",
            )
            client.call("BGSAVE")
            until(lambda: server.info_field("rdb_bgsave_in_progress") == "0", what="BGSAVE")
            eq(server.info_field("aof_last_bgrewrite_status"), "ok")
            eq(server.info_field("rdb_last_bgsave_status"), "ok")
    finally:
        load.stop()
    before = native_data.digests(client)
    eq(client.call("DEBUG", "LOADAOF"), resp.OK)
    eq(native_data.digests(client), before)
    eq(client.call("DEBUG", "RELOAD"), resp.OK)
    eq(native_data.digests(client), before)


@test(timeout=60)
def log_without_preamble(context):
    """Each value is one RESTORE in the log, and what follows is repeated."""
    server = hosted(context, "--appendonly", "yes", "--aof-use-rdb-preamble", "no")
    client = context.client(server)
    fill(client)
    client.call("PEXPIRE", "afc:1", "10000000")
    client.call("BGREWRITEAOF")
    until(lambda: server.info_field("aof_rewrite_in_progress") == "0", what="the rewrite")
    eq(server.info_field("aof_last_bgrewrite_status"), "ok")
    fill(client, "later:", 2)
    before = native_data.digests(client)
    eq(client.call("DEBUG", "LOADAOF"), resp.OK)
    eq(native_data.digests(client), before)
    check(client.call("PTTL", "afc:1") > 0, "the expiry is lost")


def follows(replica, master):
    """The replica has all that the master sent."""
    return (
        replica.info_field("master_link_status") == "up"
        and replica.info_field("master_repl_offset") == master.info_field("master_repl_offset")
    )


@test(timeout=60)
def replicas_have_the_same(context):
    """A full copy without a file on disk, then effects as they come."""
    master = hosted(context, "--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0")
    client = context.client(master)
    fill(client)
    options = ["--repl-diskless-load", "swapdb"]
    replica = hosted(context, *options, "--replicaof", "127.0.0.1 %d" % master.port)
    load = Load(master)
    until(lambda: replica.info_field("master_link_status") == "up", 30, "the link")
    fill(client, "later:", 2)
    load.stop()
    until(lambda: follows(replica, master), 20, "the replica's offset")
    eq(native_data.digests(context.client(replica)), native_data.digests(client))


@test()
def effects_are_those_of_sava(context):
    """What a replica or the log gets of a call, on either host."""
    calls = [
        ("AFC.ADD", "a", "x", "y"),
        ("AFC.RESERVE", "w", "WINDOW", "60", "NOW", "1000"),
        ("AFC.REM", "a", "x", "y"),
        ("BF.ADD", "b", "x"),
        ("BF.ADD", "b", "x"),
        ("FR.CREATE", "f", "LEASE", "1000"),
        ("FR.ADD", "f", "NOW", "1000", "http://a.example/1"),
        ("FR.NEXT", "f", "5", "NOW", "2000"),
        ("FR.ACK", "f", "1", "NOW", "2500"),
        ("TOPK.RESERVE", "t", "3"),
        ("RL.TAKE", "r", "WINDOW", "3", "60000", "NOW", "1000"),
        ("INCREX", "n", "BYINT", "3"),
    ]
    logs = []
    for start in (context.start, lambda *options: hosted(context, *options)):
        server = start("--appendonly", "yes", "--appendfsync", "always")
        client = context.client(server)
        for words in calls:
            client.call(*words)
        logs.append(logged(server))
    eq(logs[1], logs[0])


def logged(server):
    """The commands in its log's last file, without what wraps them and without times of expiry."""
    folder = os.path.join(server.dir, "appendonlydir")
    names = [name for name in os.listdir(folder) if name.endswith(".incr.aof")]
    with open(os.path.join(folder, names[-1]), "rb") as file:
        data = file.read()
    found, at = [], 0
    while at < len(data):
        end = data.index(b"\r\n", at)
        if data[at : at + 1] == b"#":  # a remark
            at = end + 2
            continue
        count, at, words = int(data[at + 1 : end]), end + 2, []
        for _ in range(count):
            end = data.index(b"\r\n", at)
            size = int(data[at + 1 : end])
            words.append(data[end + 2 : end + 2 + size])
            at = end + 4 + size
        words[0] = words[0].upper()
        if b"PXAT" in words:
            words = words[: words.index(b"PXAT") + 1]
        if words[0] not in (b"SELECT", b"MULTI", b"EXEC"):
            found.append(words)
    return found


# ---- memory ----


@test()
def memory_is_the_hosts(context):
    server = hosted(context)
    client = context.client(server)

    def used():
        return int(server.info_field("used_memory"))

    before = used()
    eq(client.call("CMS.INITBYDIM", "c", "1000000", "5"), resp.OK)
    check(used() - before > 18 << 20, "the sketch is not in used_memory")
    check(client.call("MEMORY", "USAGE", "c") > 18 << 20, "MEMORY USAGE")
    client.call("FLUSHALL")
    until(lambda: used() - before < 1 << 20, what="the memory to come back")
    client.call("CONFIG", "SET", "maxmemory", str(used() + (4 << 20)))
    reply = client.call("CMS.INITBYDIM", "c", "1000000", "5")
    check(resp.is_error(reply), "a sketch beyond maxmemory: %s" % resp.show(reply))
    for i in range(200000):
        reply = client.call("AFC.ADD", "a%d" % (i % 7), *["%d:%d" % (i, j) for j in range(500)])
        if resp.is_error(reply):
            break
    check(resp.is_error(reply, b"OOM"), "maxmemory is passed: %s" % resp.show(reply))
    client.call("CONFIG", "SET", "maxmemory", "0")
    reply = client.call("CMS.INITBYDIM", "huge", str(1 << 40), "5")
    check(resp.is_error(reply), "a sketch beyond the machine: %s" % resp.show(reply))
    eq(client.call("PING"), resp.PONG)


# ---- waiting ----


@test()
def nobody_waits_in_scripts_and_transactions(context):
    client = context.client(hosted(context))
    script = "return redis.call('FR.NEXT', 'f', '1', 'BLOCK', '0')"
    eq(client.call("EVAL", script, "0"), [])
    client.call("MULTI")
    client.call("FR.NEXT", "f", "1", "BLOCK", "0")
    eq(client.call("EXEC"), [[]])
    eq(client.call("EVAL", "return redis.call('AFC.ADD', KEYS[1], 'a')", "1", "k"), 1)
    eq(client.call("AFC.COUNT", "k", "a"), [1])


@test()
def waiting_outlives_another_type(context):
    server = hosted(context)
    waiter, client = context.client(server), context.client(server)
    waiter.send("FR.NEXT", "f", "1", "BLOCK", "0")
    until(lambda: server.info_field("blocked_clients") == "1", what="a waiting client")
    client.call("AFC.ADD", "f", "not a frontier")
    client.call("DEL", "f")
    client.call("FR.ADD", "f", "http://a.example/1")
    eq(waiter.recv(), [b"http://a.example/1"])
    # One that leaves while it waits is forgotten, its timer too.
    client.call("FR.CREATE", "g", "DELAY", "200")
    client.call("FR.ADD", "g", "http://a.example/1", "http://a.example/2")
    eq(client.call("FR.NEXT", "g", "1"), [b"http://a.example/1"])
    leaving = server.client()
    leaving.send("FR.NEXT", "g", "1", "BLOCK", "0")
    until(lambda: server.info_field("blocked_clients") == "1", what="a waiting client")
    leaving.close()
    until(lambda: server.info_field("blocked_clients") == "0", what="its leaving")
    time.sleep(0.3)
    eq(client.call("FR.NEXT", "g", "1"), [b"http://a.example/2"])


@test()
def waiting_in_any_database_and_until_told(context):
    """What becomes due wakes a client in its database; CLIENT UNBLOCK and the end of the time do as
    they do in Sava."""
    answers = []
    for server in (context.start(), hosted(context)):
        client, waiter = context.client(server, db=5), context.client(server, db=5)
        client.call("FR.CREATE", "g", "DELAY", "150")
        client.call("FR.ADD", "g", "http://a.example/1", "http://a.example/2")
        client.call("FR.NEXT", "g", "1")
        eq(waiter.call("FR.NEXT", "g", "1", "BLOCK", "0"), [b"http://a.example/2"])
        found = [waiter.call("FR.NEXT", "nosuch", "1", "BLOCK", "30")]
        number = str(waiter.call("CLIENT", "ID"))
        for how in ("TIMEOUT", "ERROR"):
            waiter.send("FR.NEXT", "nosuch", "1", "BLOCK", "0")
            until(lambda server=server: server.info_field("blocked_clients") == "1", what="waiting")
            eq(client.call("CLIENT", "UNBLOCK", number, how), 1)
            found.append(waiter.recv())
        answers.append(found)
    eq(answers[1], answers[0])


@test(timeout=60)
def in_valkey(context):
    """The same module in Valkey, where it is installed."""
    valkey = shutil.which("valkey-server")
    if valkey is None:
        raise Skip("valkey-server is not installed (the suite bookworm-backports has it)")
    server = context.start(binary=valkey, module=module_path(context))
    client = context.client(server)
    fill(client)
    eq(server.info("sava")["sava"]["sava_families"].split(","), FAMILIES)
    before = native_data.digests(client)
    eq(client.call("DEBUG", "RELOAD"), resp.OK)
    eq(native_data.digests(client), before)
    ours = context.client(context.start())
    for name in sorted(client.call("COMMAND", "LIST", "FILTERBY", "MODULE", "sava")):
        mine, other = (host.call("COMMAND", "INFO", name)[0][6] for host in (ours, client))
        context.same(sorted(map(bytes, other)), sorted(map(bytes, mine)), "categories of %s" % name)
    eq(client.call("ACL", "SETUSER", "u", "on", "nopass", "~*", "+@frontier", "-fr.add"), resp.OK)
    eq(client.call("ACL", "DRYRUN", "u", "FR.NEXT", "f", "1"), resp.OK)
    check(b"no permissions" in bytes(client.call("ACL", "DRYRUN", "u", "BF.ADD", "b", "x")), "u")
