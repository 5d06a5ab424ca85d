"""Sava and stock servers with sava.so together: each as the other's master, in chains, through cut
links and changes of roles; logs and single keys from one to the other.

Run with either host: Sava is started here, and the stock server is the one of --stock.
"""

import os
import shutil

import native_data
import resp
from harness import check, eq, test, until
from module_tests import Load, fill, hosted
from replication_tests import proxy_to

FAST = ("--repl-diskless-sync-delay", "0")
LOG = ("--appendonly", "yes", "--appendfsync", "no")
SENDS = (*FAST, "--repl-native-types", "send")


def sava(context, *options):
    """A Sava that sends everything to its replicas."""
    return context.start(*SENDS, *options)


def stock(context, *options):
    return hosted(context, *FAST, *options)


def following(start, context, master, *options):
    replica = start(context, "--replicaof", "127.0.0.1 %d" % master.port, *options)
    linked(replica)
    return replica


def field(server, name):
    return server.info_field(name, "replication")


def linked(replica):
    until(lambda: field(replica, "master_link_status") == "up", 30, "the link")


def same(master, *replicas):
    """Every replica has all that the master has, to the last byte of each value."""
    for replica in replicas:
        linked(replica)
        until(lambda replica=replica: field(replica, "slave_repl_offset")
              == field(master, "master_repl_offset"), 30, "the same offset")
        if replica.call("DEBUG", "DIGEST") == master.call("DEBUG", "DIGEST"):
            continue
        with master.client() as mine, replica.client() as theirs:
            ours, other = native_data.digests(mine), native_data.digests(theirs)
        differ = sorted(key for key in set(ours) | set(other) if ours.get(key) != other.get(key))
        check(False, "%s after %s: %s" % (replica.name, master.name, differ[:8] or "expiries"))


def transactions(server):
    """Several effects in one unit, in transactions and scripts."""
    with server.client() as client:
        for n in range(30):
            client.call("MULTI")
            client.call("SET", "plain", str(n))
            client.call("AFC.ADD", "afc:in", "m%d" % n, "m%d" % (n % 3))
            client.call("FR.ADD", "fr:in", "http://in%d.example/%d" % (n % 4, n))
            client.call("FR.NEXT", "fr:in", "1")
            client.call("RL.TAKE", "rl:in", "TOKEN", "100", "60000")
            client.call("BF.ADD", "bf:in", "x%d" % n)
            check(isinstance(client.call("EXEC"), list), "EXEC")
        script = "redis.call('AFC.ADD', KEYS[1], ARGV[1]) return redis.call('FR.NEXT', KEYS[2], 1)"
        for n in range(10):
            reply = client.call("EVAL", script, "2", "afc:in", "fr:in", "s%d" % n)
            check(not resp.is_error(reply), resp.show(reply))
        client.call("RENAME", "bf:in", "bf:renamed")
        client.call("COPY", "afc:in", "afc:copy")
        client.call("PEXPIRE", "afc:copy", "10000000")
        client.call("DEL", "cms:small")


def effects_under_load(master, *replicas):
    load = Load(master)
    transactions(master)
    load.stop()
    same(master, *replicas)


def leases_are_known(context, replica):
    """What the master has handed out is out on the replica too, and comes back there."""
    eq(replica.call("REPLICAOF", "NO", "ONE"), resp.OK)
    client = context.client(replica)
    eq(client.call("FR.NEXT", "leased", "5", "NOW", "1500"), [])
    eq(client.call("FR.ACK", "leased", "1", "NOW", "1600"), 1)
    again = client.call("FR.NEXT", "leased", "5", "NOW", "3000")
    eq([url for _, url in again], [b"http://b.example/1"])


def lease(master):
    client = master.client()
    with client:
        client.call("FR.CREATE", "leased", "LEASE", "1000", "DELAY", "0")
        client.call("FR.ADD", "leased", "NOW", "1000", "http://a.example/1", "http://b.example/1")
        eq(len(client.call("FR.NEXT", "leased", "5", "NOW", "1000")), 2)


def broken_links(master, replica, others):
    """A link that was cut goes on where it was."""
    before = int(master.info_field("sync_partial_ok", "stats"))
    for _ in range(3):
        load = Load(master)
        until(lambda load=load: load.sent > 10, what="some load")
        master.call("CLIENT", "KILL", "TYPE", "replica")
        load.stop()
        same(master, replica, *others)
    partial = int(master.info_field("sync_partial_ok", "stats")) - before
    check(partial >= 3, "%d partial resynchronisations" % partial)


def logs_are_good(*replicas):
    """What a replica wrote to its own log makes the same values."""
    for replica in replicas:
        until(lambda replica=replica: replica.info_field("aof_rewrite_in_progress") == "0"
              and replica.info_field("aof_rewrite_scheduled") == "0", 30, "the log's base")
        wanted = replica.call("DEBUG", "DIGEST")
        eq(replica.call("DEBUG", "LOADAOF"), resp.OK)
        eq(replica.call("DEBUG", "DIGEST"), wanted, "the log of " + replica.name)


@test(timeout=120)
def a_stock_server_follows_sava(context):
    master = sava(context)
    fill(master.client())
    replica = following(stock, context, master, *LOG)
    chained = [following(sava, context, replica, *LOG),
               following(stock, context, replica, *LOG, "--repl-diskless-load", "swapdb")]
    same(master, replica, *chained)
    effects_under_load(master, replica, *chained)
    broken_links(master, replica, chained)
    lease(master)
    same(master, replica, *chained)
    logs_are_good(replica, *chained)
    leases_are_known(context, chained[0])
    leases_are_known(context, replica)


@test(timeout=120)
def sava_follows_a_stock_server(context):
    master = stock(context)
    fill(master.client())
    replica = following(sava, context, master, *LOG)
    chained = [following(stock, context, replica, *LOG), following(sava, context, replica, *LOG)]
    same(master, replica, *chained)
    effects_under_load(master, replica, *chained)
    broken_links(master, replica, chained)
    lease(master)
    same(master, replica, *chained)
    logs_are_good(replica, *chained)
    leases_are_known(context, chained[0])
    leases_are_known(context, replica)


@test(timeout=120)
def roles_change_between_hosts(context):
    """Each is the other's master in turn, and nobody needs another copy."""
    one, other = sava(context), stock(context)
    fill(one.client())
    eq(other.call("REPLICAOF", "127.0.0.1", str(one.port)), resp.OK)
    same(one, other)
    for master, replica in ((other, one), (one, other), (other, one)):
        eq(master.call("REPLICAOF", "NO", "ONE"), resp.OK)
        eq(replica.call("REPLICAOF", "127.0.0.1", str(master.port)), resp.OK)
        linked(replica)
        eq(master.info_field("sync_partial_ok", "stats") != "0", True, "it took a copy")
        effects_under_load(master, replica)


@test(timeout=60)
def times_of_hash_fields_stay_with_sava(context):
    """A stock server that gets native types gets hashes as it knows them."""
    master = sava(context)
    master.call("HSET", "timed", "f", "1", "g", "2")
    master.call("HPEXPIRE", "timed", "100000000", "FIELDS", "1", "f")
    master.call("AFC.ADD", "afc", "a")
    replica, own = following(stock, context, master), following(sava, context, master)
    master.call("MULTI")
    master.call("AFC.ADD", "afc", "b")
    master.call("HPEXPIRE", "timed", "100000000", "FIELDS", "1", "g")
    master.call("INCR", "n")
    check(isinstance(master.call("EXEC"), list), "EXEC")
    same(master, own)
    until(lambda: replica.call("GET", "n") == b"1", what="the transaction")
    eq(replica.call("AFC.COUNT", "afc", "a", "b"), [1, 1])
    eq(sorted(map(bytes, replica.call("HGETALL", "timed"))), [b"1", b"2", b"f", b"g"])
    check(b"CRITICAL" not in replica.log(), "the replica was sent what it does not know")
    eq(field(master, "sava_repl_native_keys_left_out"), "0")


@test(timeout=90)
def a_copy_that_is_cut_is_let_go(context):
    """A stock server that loads from the connection, cut within it, goes on, and keeps nothing."""
    replica = stock(context, "--repl-diskless-load", "swapdb")
    for start in (sava, stock):
        master = start(context)
        fill(master.client(), size=1500)
        proxy = proxy_to(context, master.port)
        eq(master.call("SAVE"), resp.OK)
        size = os.path.getsize(os.path.join(master.dir, "dump.rdb"))
        for part in (0.1, 0.5, 0.9):
            eq(replica.call("REPLICAOF", "NO", "ONE"), resp.OK)
            replica.call("AFC.ADD", "own", "x", "y")  # so that it needs a copy
            proxy.cut_after(int(size * part))
            eq(replica.call("REPLICAOF", "127.0.0.1", str(proxy.port)), resp.OK)
            until(lambda proxy=proxy: proxy.left is None, 30, "the cut")
            same(master, replica)
            eq(replica.call("EXISTS", "own"), 0)
    broken = replica.log().count(b" synchronization DB from socket")
    check(broken >= 6, "%d copies were cut" % broken)
    eq(replica.call("REPLICAOF", "NO", "ONE"), resp.OK)
    replica.call("FLUSHALL", "SYNC")
    until(lambda: replica.info("sava")["sava"]["sava_dictionary_members"] == "0",
          what="the members of copies that were let go to be gone")


@test(timeout=60)
def waiting_ends_with_the_masters_role(context):
    """A client that waits at a server that becomes a replica is sent away; one that stays there is
    served what the master's commands bring only where that is allowed."""
    master = sava(context)
    server = stock(context)
    waiter = context.client(server)
    waiter.send("FR.NEXT", "f", "1", "BLOCK", "0")
    until(lambda: server.info_field("blocked_clients") == "1", what="a waiting client")
    eq(server.call("REPLICAOF", "127.0.0.1", str(master.port)), resp.OK)
    reply = waiter.recv()
    check(resp.is_error(reply, b"UNBLOCKED"), resp.show(reply))
    linked(server)
    reply = server.call("FR.NEXT", "f", "1", "BLOCK", "0")
    check(resp.is_error(reply, b"READONLY"), resp.show(reply))
    master.call("FR.ADD", "f", "NOW", "1000", "http://a.example/1")
    same(master, server)


# ---- files and single keys ----


def log_folder(server):
    return os.path.join(server.dir, "appendonlydir")


def logs(context, source, target_start, *options):
    """The source's log, its base and what came after, is read by a server of the other kind."""
    client = context.client(source)
    fill(client)
    client.call("BGREWRITEAOF")
    until(lambda: source.info_field("aof_rewrite_in_progress") == "0"
          and source.info_field("aof_rewrite_scheduled") == "0", what="the rewrite")
    eq(source.info_field("aof_last_bgrewrite_status"), "ok")
    fill(client, "later:", 2)
    transactions(source)
    lease(source)
    wanted = client.call("DEBUG", "DIGEST")
    eq(source.terminate(), 0)
    folder = context.temp_dir()
    shutil.copytree(log_folder(source), os.path.join(folder, "appendonlydir"))
    target = target_start(context, "--dir", folder, "--appendonly", "yes", *options)
    eq(target.call("DEBUG", "DIGEST"), wanted)
    target.call("AFC.ADD", "afc:1", "more")
    eq(target.call("FR.NEXT", "leased", "5", "NOW", "1500"), [])


@test(timeout=60)
def logs_of_sava_in_a_stock_server(context):
    for preamble in ("yes", "no"):
        options = ("--appendonly", "yes", "--aof-use-rdb-preamble", preamble)
        logs(context, sava(context, *options), stock)


@test(timeout=60)
def logs_of_a_stock_server_in_sava(context):
    for preamble in ("yes", "no"):
        options = ("--appendonly", "yes", "--aof-use-rdb-preamble", preamble)
        logs(context, stock(context, *options), sava)


@test(timeout=60)
def keys_migrate_between_hosts(context):
    """MIGRATE of every type there and back: the same values, with their expiries."""
    ours, theirs = context.client(sava(context)), context.client(stock(context))
    ports = {host: host.call("CONFIG", "GET", "port")[1] for host in (ours, theirs)}
    fill(ours)
    for at in range(0, 60000, 5000):
        ours.call("AFC.ADD", "afc:huge", *["member:%d" % i for i in range(at, at + 5000)])
        ours.call("BF.MADD", "bf:huge", *["item:%d" % i for i in range(at, at + 5000)])
    ours.call("PEXPIREAT", "afc:2", "4102444800123")
    before = native_data.digests(ours)
    for source, target in ((ours, theirs), (theirs, ours)):
        keys = native_data.keys(source)
        eq(source.call("MIGRATE", "127.0.0.1", ports[target], "", "0", "20000", "KEYS", *keys),
           resp.OK)
        eq(native_data.keys(source), [])
        eq(native_data.digests(target), before)
        check(target.call("PTTL", "afc:2") > 10**9, "the expiry is lost")


@test(timeout=60)
def writes_refused_alike(context):
    """READONLY of a replica and OOM beyond maxmemory: the same commands, on either host."""
    server = stock(context)
    client = context.client(server)
    fill(client)
    master = following(stock, context, server)
    readers = context.client(master)
    reads = [("AFC.TOP", "afc:1", "3"), ("BF.EXISTS", "bf:fixed", "x"), ("CF.COUNT", "cf:1", "x"),
             ("CMS.QUERY", "cms:large", "x"), ("TOPK.LIST", "topk:1"), ("FR.STATS", "fr:1"),
             ("RL.PEEK", "rl:token", "TOKEN", "1000", "3600000"), ("URL.NORM", "http://a/")]
    writes = [words for words in native_data.commands("", 1, 10) if "RESERVE" not in words[0]]
    for words in reads:
        check(not resp.is_error(readers.call(*words)), words)
    for words in writes:
        reply = readers.call(*words)
        check(resp.is_error(reply, b"READONLY"), "%s: %s" % (words, resp.show(reply)))
    client.call("CONFIG", "SET", "maxmemory", "1")
    for words in reads:
        check(not resp.is_error(client.call(*words)), words)
    own = context.start("--maxmemory", "1mb")
    hosts = (client, context.client(own))
    own.call("CONFIG", "SET", "maxmemory", "1")
    for words in writes + [("AFC.REM", "afc:1", "w1"), ("FR.ACK", "fr:1", "http://x/"),
                           ("CF.DEL", "cf:1", "w1"), ("RL.RESET", "rl:token")]:
        refused = [resp.is_error(host.call(*words), b"OOM") for host in hosts]
        eq(refused[0], refused[1], "%s under maxmemory" % (words[:2],))
