"""A stock Redis Cluster with sava.so on this machine, and a client that follows its redirections.

Used by cluster_tests.py and by tools/cluster.py. Every process is ended by its own id.
"""

import contextlib
import shutil
import subprocess
import time

import harness
import resp

SLOTS = 16384


def crc16(data):
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = ((crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def slot_of(key):
    """A key's slot: of what stands between the first braces, if anything does."""
    key = key.encode() if isinstance(key, str) else bytes(key)
    begin = key.find(b"{")
    if begin >= 0:
        end = key.find(b"}", begin + 1)
        if end > begin + 1:
            key = key[begin + 1 : end]
    return crc16(key) % SLOTS


class Node(harness.Server):
    """One server of the cluster. Its port is chosen before it starts, so that it may come again."""

    def __init__(self, binary, module, options=()):
        super().__init__(
            binary,
            ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000", *options],
            module=module,
        )

    def start(self):
        for _ in range(20):
            self.port = harness.free_port()
            if self.port > 55000:  # its bus listens 10000 above
                continue
            self.spawn(self.command_line(self.port))
            if self._wait_ready():
                return self
            self.stop()
        raise harness.Failure("a node did not start: %s" % self.log()[-800:])

    def start_again(self):
        self.spawn(self.command_line(self.port))
        harness.check(self._wait_ready(), "the node did not come again")

    def kill(self):
        """kill -9."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None
        self.process.kill()
        self.process.wait()

    def id(self):
        return self.call("CLUSTER", "MYID").decode()

    def slots_of(self):
        """How many slots it has."""
        return sum(last - first + 1 for first, last, owner, *_ in self.call("CLUSTER", "SLOTS")
                   if owner[1] == self.port)

    def replication(self):
        return self.info("replication")["Replication"]


class Cluster:
    """`masters` masters with one replica each."""

    def __init__(self, binary, module, masters=3, options=()):
        self.nodes = []
        self.cli = shutil.which("redis-cli")
        self.masters = masters
        self.make = lambda: Node(binary, module, options)

    def start(self):
        for _ in range(2 * self.masters):
            self.nodes.append(self.make())
            self.nodes[-1].start()
        addresses = ["127.0.0.1:%d" % node.port for node in self.nodes]
        self.manage("create", *addresses, "--cluster-replicas", "1", "--cluster-yes")
        self.wait_healthy()
        return self

    def manage(self, *words, check=True):
        """redis-cli --cluster."""
        done = subprocess.run([self.cli, "--cluster", *words], capture_output=True, text=True,
                              check=False, timeout=120)
        harness.check(done.returncode == 0 or not check,
                      "redis-cli --cluster %s: %s%s" % (words[0], done.stdout[-800:], done.stderr))
        return done.stdout

    def move(self, source, target, slots):
        """Moves so many slots, a node's first ones, with what is in them."""
        self.manage("reshard", "127.0.0.1:%d" % source.port, "--cluster-from", source.id(),
                    "--cluster-to", target.id(), "--cluster-slots", str(slots), "--cluster-yes")
        self.wait_healthy()

    def stop(self):
        for node in self.nodes:
            if node.process is not None and node.process.poll() is None:
                node.process.kill()
                node.process.wait()
            node.remove_files()

    def running(self):
        return [node for node in self.nodes if node.process.poll() is None]

    def healthy(self):
        """All slots are served, replicas follow, and all nodes agree who has which slot."""
        views = []
        for node in self.running():
            try:
                text = node.call("CLUSTER", "INFO").decode()
                views.append(sorted((first, last, owner[1]) for first, last, owner, *_ in
                                    node.call("CLUSTER", "SLOTS")))
            except (OSError, resp.ConnectionClosed):
                return False
            state = dict(line.split(":") for line in text.split("\r\n") if ":" in line)
            if state["cluster_state"] != "ok" or state["cluster_slots_ok"] != str(SLOTS):
                return False
            link = node.replication()
            if link["role"] == "slave" and link["master_link_status"] != "up":
                return False
        return all(view == views[0] for view in views) and len(self.owners()) == self.masters

    def wait_healthy(self, seconds=40):
        harness.until(self.healthy, seconds, "a healthy cluster")

    def owners(self):
        """The nodes that have slots."""
        by_port = {node.port: node for node in self.running()}
        ranges = next(iter(by_port.values())).call("CLUSTER", "SLOTS")
        return {by_port[entry[2][1]] for entry in ranges if entry[2][1] in by_port}

    def replica_of(self, master):
        wanted = master.port
        for node in self.running():
            link = node.replication()
            if link["role"] == "slave" and int(link["master_port"]) == wanted:
                return node
        return None

    def client(self):
        return Client(self)


class Client:
    """Follows MOVED and ASK, and tries again while a slot moves or a master is being replaced."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.links = {}
        self.slots = {}
        self.redirections = 0
        self.again = 0

    def close(self):
        for link in self.links.values():
            link.close()
        self.links = {}

    def link(self, port):
        if port not in self.links:
            self.links[port] = resp.Client(("127.0.0.1", port), 10 * harness.SLOW)
        return self.links[port]

    def drop(self, port):
        if port in self.links:
            self.links.pop(port).close()

    def learn(self):
        for node in self.cluster.running():
            with contextlib.suppress(OSError, resp.ConnectionClosed):
                for first, last, owner, *_ in self.link(node.port).call("CLUSTER", "SLOTS"):
                    for slot in range(first, last + 1):
                        self.slots[slot] = owner[1]
                return

    def call(self, *words, key=None, seconds=30.0):
        """The reply, once there is one that is no redirection."""
        slot = slot_of(words[1] if key is None else key)
        deadline = time.monotonic() + seconds * harness.SLOW
        asked = None
        while True:
            if slot not in self.slots:
                self.learn()
            port = asked or self.slots.get(slot)
            reply = self.once(port, words, asked is not None) if port else None
            asked = None
            code = bytes(reply).split(b" ")[0] if resp.is_error(reply) else b""
            if reply is not None and code not in (b"MOVED", b"ASK", b"TRYAGAIN", b"CLUSTERDOWN",
                                                  b"READONLY", b"LOADING", b"MASTERDOWN"):
                return reply
            if time.monotonic() > deadline:
                raise harness.Failure("%s: no answer but %s" % (words[0], resp.show(reply)))
            if code in (b"MOVED", b"ASK"):
                self.redirections += 1
                target = int(bytes(reply).split(b":")[-1])
                if code == b"MOVED":
                    self.slots[slot] = target
                else:
                    asked = target
            else:
                self.again += 1
                time.sleep(0.02)
                self.slots.clear()

    def once(self, port, words, asking):
        """None when the node is gone: then it is not known whether it ran the command."""
        try:
            link = self.link(port)
            if asking:
                link.call("ASKING")
            return link.call(*words)
        except (OSError, resp.ConnectionClosed):
            self.drop(port)
            return None
