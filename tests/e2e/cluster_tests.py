"""A stock cluster with sava.so: moving slots under load, masters that are killed, failover."""

import atexit
import os
import shutil
import subprocess
import sys
import threading
import time

import cluster as clusters
import native_data
import resp
from harness import Skip, check, eq, test, until

HERE = os.path.dirname(os.path.abspath(__file__))

# redis-cli moves a node's first slots: of each of three masters two tags are among its first ones.
FIRST_SLOTS = 300
TAGS = []
for base in (0, 5461, 10923):
    names = ("{t%d}" % number for number in range(10000))
    found = (tag for tag in names if base <= clusters.slot_of(tag) < base + FIRST_SLOTS)
    TAGS += [next(found), next(found)]


class Shared:
    """The cluster of the tests that leave it whole: making one takes as long as a test."""

    cluster = None

    @classmethod
    def end(cls):
        if cls.cluster is not None:
            cls.cluster.stop()
        cls.cluster = None


def shared(context):
    """A cluster without keys."""
    if Shared.cluster is not None:
        try:
            Shared.cluster.wait_healthy(10)
        except Exception:  # what the last test left
            Shared.end()
    if Shared.cluster is None:
        Shared.cluster = cluster_of(context).start()
        atexit.register(Shared.end)
    for node in Shared.cluster.owners():
        eq(node.call("FLUSHALL"), resp.OK)
    return Shared.cluster


def made(context, *options):
    """One that ends with the test."""
    cluster = cluster_of(context, *options)
    context.at_end(cluster.stop)
    return cluster.start()


def cluster_of(context, *options):
    module = os.path.join(context.options.built, "sava.so")
    if not os.path.exists(module):
        raise Skip("sava.so is not built beside the server")
    if shutil.which("redis-cli") is None:
        raise Skip("redis-cli is not installed")
    return clusters.Cluster(context.options.stock, module, options=options)


def fill(client):
    for number, tag in enumerate(TAGS):
        for words in native_data.commands(tag, number, 150):
            reply = client.call(*words)
            check(not resp.is_error(reply), "%s: %s" % (words[:2], resp.show(reply)))


def digests(cluster):
    """Of all keys of all masters; a key is at one of them only."""
    found = {}
    for node in cluster.owners():
        own = native_data.digests(node)
        check(not set(own) & set(found), "a key at two masters")
        found.update(own)
    return found


class Load:
    """Adds to a counter, a sketch, a filter and a plain list of each tag; remembers what was
    acknowledged."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.acknowledged = dict.fromkeys(TAGS, 0)
        self.errors = []
        self.stopped = threading.Event()
        self.client = cluster.client()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        number = 0
        while not self.stopped.is_set() and not self.errors:
            tag = TAGS[number % len(TAGS)]
            number += 1
            for words in (
                ("AFC.ADD", tag + "load", "m"),
                ("CMS.INCRBY", tag + "loadcms", "load", "1"),
                ("BF.ADD", tag + "loadbf", "n%d" % number),
                ("FR.ADD", tag + "fr:1", "http://load.example/%d" % number),
                ("INCR", tag + "plain"),
            ):
                try:
                    reply = self.client.call(*words)
                except Exception as failure:  # told by stop()
                    self.errors.append("%s: %s" % (words, failure))
                    return
                if resp.is_error(reply):
                    self.errors.append("%s: %s" % (words, resp.show(reply)))
            self.acknowledged[tag] += 1

    def stop(self):
        self.stopped.set()
        self.thread.join()
        self.client.close()
        eq(self.errors, [], "errors of a client that follows redirections")


def same_data(cluster, before):
    after = digests(cluster)
    differ = sorted(key for key in set(before) | set(after) if before.get(key) != after.get(key))
    eq(differ, [], "keys that are not what they were")


@test(timeout=120)
def slots_move_under_load(context):
    """No error reaches a client that follows redirections, and nothing is lost or doubled."""
    cluster = shared(context)
    client = cluster.client()
    fill(client)
    nodes = sorted(cluster.owners(), key=lambda node: node.port)
    before = digests(cluster)
    cluster.move(nodes[0], nodes[1], FIRST_SLOTS)
    same_data(cluster, before)
    for tag in TAGS:
        eq(client.call("CMS.INITBYDIM", tag + "loadcms", "1000", "3"), resp.OK)
    load = Load(cluster)
    cluster.move(nodes[1], nodes[0], 3000 if context.options.long else 2 * FIRST_SLOTS)
    cluster.move(nodes[2], nodes[1], FIRST_SLOTS)
    load.stop()
    check(load.client.redirections > 0, "no slot of the load moved")
    for tag in TAGS:
        count = load.acknowledged[tag]
        eq(client.call("AFC.COUNT", tag + "load", "m"), [count], tag)
        eq(client.call("CMS.QUERY", tag + "loadcms", "load"), [count], tag)
        eq(client.call("INCRBY", tag + "plain", "0"), count, tag)
    check(sum(load.acknowledged.values()) > 20, "hardly any load")
    context.say("%d rounds, %d redirections, %d times again"
                % (sum(load.acknowledged.values()), load.client.redirections, load.client.again))
    client.close()


@test(timeout=120)
def a_killed_master_is_replaced(context):
    """Its replica has the same values and goes on; what was killed comes back as a replica."""
    cluster = made(context, "--appendonly", "yes")
    client = cluster.client()
    fill(client)
    tag = TAGS[0]
    victim = next(node for node in cluster.owners()
                  if any(first <= clusters.slot_of(tag) <= last for first, last, owner, *_ in
                         node.call("CLUSTER", "SLOTS") if owner[1] == node.port))
    replica = cluster.replica_of(victim)
    until(lambda: replica.replication()["slave_repl_offset"]
          == victim.replication()["master_repl_offset"], what="the replica's offset")
    before = digests(cluster)
    for node in cluster.running():
        node.call("BGREWRITEAOF")
    eq(native_data.digests(replica), native_data.digests(victim))
    victim.kill()
    until(lambda: replica.replication()["role"] == "master", 40, "the failover")
    until(lambda: client.call("EXISTS", tag + "afc:1", seconds=40) == 1, 40, "an answer")
    until(cluster.healthy, 40, "a healthy cluster")
    same_data(cluster, before)
    eq(client.call("AFC.ADD", tag + "afc:1", "after"), 1)
    victim.start_again()
    until(lambda: victim.replication()["role"] == "slave"
          and victim.replication()["master_link_status"] == "up", 40, "the one that was killed")
    until(lambda: victim.replication()["slave_repl_offset"]
          == replica.replication()["master_repl_offset"], what="its offset")
    eq(native_data.digests(victim), native_data.digests(replica))
    # And back, as an administrator does it.
    eq(victim.call("CLUSTER", "FAILOVER"), resp.OK)
    until(lambda: victim.replication()["role"] == "master", 40, "the failover back")
    cluster.wait_healthy()
    eq(client.call("AFC.COUNT", tag + "afc:1", "after"), [1])
    lost_with_a_master(context, cluster, client, victim, replica)
    client.close()


def saved_under_load(cluster):
    """Every node saves, and rewrites its log, in a child while it is being written to."""
    for command, busy, status in (
        ("BGSAVE", "rdb_bgsave_in_progress", "rdb_last_bgsave_status"),
        ("BGREWRITEAOF", "aof_rewrite_in_progress", "aof_last_bgrewrite_status"),
    ):
        for node in cluster.running():
            reply = node.call(command)
            check(not resp.is_error(reply), resp.show(reply))
        for node in cluster.running():
            until(lambda node=node: node.info_field(busy) == "0", 30, "the end of " + command)
            eq(node.info_field(status), "ok", command)


def lost_with_a_master(context, cluster, client, victim, replica):
    """Killed under load: of our values no more is lost than of the host's own."""
    for tag in TAGS:
        eq(client.call("CMS.INITBYDIM", tag + "loadcms", "1000", "3"), resp.OK)
    load = Load(cluster)
    until(lambda: sum(load.acknowledged.values()) > 100, what="some load")
    saved_under_load(cluster)
    for node in cluster.running():  # the one that is killed loses its child with it
        node.call("BGREWRITEAOF")
    victim.kill()
    until(lambda: replica.replication()["role"] == "master", 40, "the failover")
    seen = sum(load.acknowledged.values())
    until(lambda: sum(load.acknowledged.values()) > seen + 100, 40, "load after the failover")
    load.stop()
    lost = {}
    for tag in TAGS:
        sent = load.acknowledged[tag]
        for name, count in (
            ("AFC", client.call("AFC.COUNT", tag + "load", "m")[0]),
            ("CMS", client.call("CMS.QUERY", tag + "loadcms", "load")[0]),
            ("INCR", client.call("INCRBY", tag + "plain", "0")),
        ):
            lost[name] = lost.get(name, 0) + max(0, sent - count)
    context.say("lost of %d rounds: %s" % (sum(load.acknowledged.values()), lost))
    # The commands of a round come one after the other: the kill may fall between them.
    check(lost["AFC"] <= lost["INCR"] + 1 and lost["CMS"] <= lost["INCR"] + 1, str(lost))


@test(timeout=60)
def a_replica_that_restarts_goes_on(context):
    """It asks for what it has missed, and not for everything."""
    cluster = shared(context)
    client = cluster.client()
    fill(client)
    tag = TAGS[0]
    port = client.slots[clusters.slot_of(tag)]
    master = next(node for node in cluster.owners() if node.port == port)
    replica = cluster.replica_of(master)
    until(lambda: replica.replication()["slave_repl_offset"]
          == master.replication()["master_repl_offset"], what="the replica's offset")
    figures = master.info("stats")["Stats"]
    with replica.client() as last:
        last.send("SHUTDOWN", "SAVE")
        eq(replica.wait_exit(), 0)
    for words in native_data.commands(tag + "missed:", 7, 100):
        reply = client.call(*words)
        check(not resp.is_error(reply), "%s: %s" % (words[:2], resp.show(reply)))
    replica.start_again()
    until(lambda: replica.replication()["master_link_status"] == "up", 40, "the link")
    until(lambda: replica.replication()["slave_repl_offset"]
          == master.replication()["master_repl_offset"], what="its offset")
    now = master.info("stats")["Stats"]
    eq(int(now["sync_full"]), int(figures["sync_full"]), "copies of everything")
    eq(int(now["sync_partial_ok"]), int(figures["sync_partial_ok"]) + 1, "partial ones")
    eq(native_data.digests(replica), native_data.digests(master))
    client.close()


@test(timeout=60)
def keys_of_one_command_share_a_tag(context):
    cluster = shared(context)
    client = cluster.client()
    eq(client.call("AFC.ADD", "{t}a", "x"), 1)
    eq(client.call("AFC.MERGE", "{t}all", "{t}a", "{t}a"), resp.OK)
    reply = client.call("AFC.MERGE", "{t}all", "{t}a", "other")
    check(resp.is_error(reply, b"CROSSSLOT"), resp.show(reply))
    buckets = ["{u}1", "TOKEN", "5", "60000", "{u}2", "TOKEN", "5", "60000"]
    eq(client.call("RL.TAKEALL", "2", *buckets, key="{u}")[0], 1)
    buckets[4] = "elsewhere"
    reply = client.call("RL.TAKEALL", "2", *buckets, key="{u}")
    check(resp.is_error(reply, b"CROSSSLOT"), resp.show(reply))
    # A client that waits is sent on when its slot moves away.
    source = next(node for node in cluster.owners() if node.port == client.slots[clusters.slot_of("{w}")])
    target = next(node for node in cluster.owners() if node is not source)
    waiter = source.client()
    waiter.send("FR.NEXT", "{w}f", "1", "BLOCK", "0")
    until(lambda: source.info_field("blocked_clients") == "1", what="a waiting client")
    slot = str(clusters.slot_of("{w}"))
    for node in (target, source):
        node.call("CLUSTER", "SETSLOT", slot, "NODE", target.id())
    reply = waiter.recv()
    check(resp.is_error(reply, b"MOVED"), resp.show(reply))
    waiter.close()
    client.close()


@test(timeout=90)
def the_sharded_crawler(context):
    """The example, while slots move."""
    cluster = shared(context)
    folder = os.path.join(os.path.dirname(HERE), "..", "examples", "sharded_crawler")
    program = subprocess.Popen(
        [sys.executable, os.path.join(folder, "crawl.py"), str(cluster.nodes[0].port), "24"],
        stdout=subprocess.PIPE, text=True)
    context.at_end(lambda: program.poll() is None and program.kill())
    nodes = sorted(cluster.owners(), key=lambda node: node.port)
    cluster.move(nodes[0], nodes[1], 1500 if context.options.long else FIRST_SLOTS)
    printed, _ = program.communicate(timeout=70)
    eq(program.returncode, 0, printed)
    check("360 pages of 30 hosts" in printed, printed)
    check(printed.count("shards") >= 3, "not all nodes had shards:\n" + printed)


@test(timeout=60)
def large_values_migrate(context):
    """MIGRATE of values of some megabytes: the same at the other end, and gone here."""
    cluster = shared(context)
    client = cluster.client()
    tag = "{large}"
    for at in range(0, 100000, 5000):
        client.call("AFC.ADD", tag + "afc", *["member:%d" % i for i in range(at, at + 5000)])
        client.call("BF.MADD", tag + "bf", *["item:%d" % i for i in range(at, at + 5000)])
    client.call("CMS.INITBYDIM", tag + "cms", "200000", "5")
    client.call("CMS.INCRBY", tag + "cms", "x", "3")
    for at in range(0, 20000, 2000):
        client.call("FR.ADD", tag + "fr",
                    *["http://h%d.example/%d" % (i % 500, i) for i in range(at, at + 2000)])
    source = next(node for node in cluster.owners()
                  if node.port == client.slots[clusters.slot_of(tag)])
    target = next(node for node in cluster.owners() if node is not source)
    slot, before = str(clusters.slot_of(tag)), native_data.digests(source)
    target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id())
    source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id())
    keys = source.call("CLUSTER", "GETKEYSINSLOT", slot, "100")
    eq(len(keys), 4)
    started = time.monotonic()
    eq(source.call("MIGRATE", "127.0.0.1", str(target.port), "", "0", "20000", "KEYS", *keys),
       resp.OK)
    context.say("4 large values in %.2f s" % (time.monotonic() - started))
    for node in (target, source):
        node.call("CLUSTER", "SETSLOT", slot, "NODE", target.id())
    eq(native_data.digests(target), before)
    eq(native_data.keys(source), [])
    eq(client.call("CMS.QUERY", tag + "cms", "x"), [3])
    client.close()
