#!/usr/bin/env python3
"""A crawl whose frontier is split over a cluster: `crawl.py PORT [SHARDS]`, the port of any node of a
Redis Cluster whose servers have loaded sava.so, or of a single server with the native types.

A host's URLs all belong to one shard, so that one frontier keeps the distance between visits to it:
the shard is a hash of the host's name. Each shard is a key with a hash tag of its own, and the
cluster spreads the keys. Every worker serves some shards; links it finds go to the shards of their
hosts. The sites are local ones, made up as they are asked for.

Prints what each shard and each node had, and whether every page was fetched exactly once and no
host too soon. The exit code is 0 when that is so.
"""

import collections
import socket
import sys
import threading
import time
import zlib

SHARDS = 12
WORKERS = 4
HOSTS = 30
PAGES = 12  # of each host
DELAY_MS = 20
LIMIT_S = 60


# ---- just enough of the protocol ----


class Link:
    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.replies = self.sock.makefile("rb")

    def run(self, *words):
        encoded = [str(word).encode() for word in words]
        self.sock.sendall(
            b"*%d\r\n" % len(encoded)
            + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded)
        )
        return self.reply()

    def reply(self):
        line = self.replies.readline().rstrip(b"\r\n").decode()
        kind, rest = line[:1], line[1:]
        if kind == "$":
            return None if rest == "-1" else self.replies.read(int(rest) + 2)[:-2].decode()
        if kind == "*":
            return None if rest == "-1" else [self.reply() for _ in range(int(rest))]
        if kind == "-":
            return RuntimeError(rest)
        return int(rest) if kind == ":" else rest


class Store:
    """One command at a time, sent to the node that has its key: MOVED and ASK are followed."""

    def __init__(self, port):
        self.first = port
        self.links = {}
        self.places = {}  # key -> port

    def link(self, port):
        if port not in self.links:
            self.links[port] = Link(port)
        return self.links[port]

    def run(self, command, key, *words):
        port, asking = self.places.get(key, self.first), False
        for _ in range(100):
            link = self.link(port)
            if asking:
                link.run("ASKING")
            reply = link.run(command, key, *words)
            if not isinstance(reply, RuntimeError):
                return reply
            code = str(reply).split()[0]
            if code not in ("MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"):
                raise reply
            asking = code == "ASK"
            if code in ("MOVED", "ASK"):
                port = int(str(reply).rsplit(":", 1)[1])
                if code == "MOVED":
                    self.places[key] = port
            else:
                time.sleep(0.05)
        raise RuntimeError("no node answers for %s" % key)


# ---- the crawl ----


def host_name(number):
    return "site%d.example" % number


def fetch(host, path):
    """The links of a page: to pages of its host, and to other hosts."""
    page = 0 if path == "/" else int(path[2:])
    number = int(host[4:].split(".")[0])
    links = ["http://%s/p%d" % (host, n) for n in (2 * page + 1, 2 * page + 2) if n < PAGES]
    return links + ["http://%s/" % host_name((number * 2 + step) % HOSTS) for step in (1, 2)]


class Crawl:
    def __init__(self, port, shards):
        self.port = port
        self.keys = ["crawl:{%d}" % shard for shard in range(shards)]
        self.lock = threading.Lock()
        self.visits = collections.defaultdict(list)  # host -> [(asked, handed out, path)]
        self.places = {}

    def key_of(self, host):
        return self.keys[zlib.crc32(host.encode()) % len(self.keys)]

    def add(self, store, urls):
        by_key = collections.defaultdict(list)
        for url in urls:
            by_key[self.key_of(url.split("/")[2])].append(url)
        for key, some in by_key.items():
            store.run("FR.ADD", key, *some)

    def prepare(self):
        store = Store(self.port)
        for key in self.keys:
            store.run("DEL", key)
            store.run("FR.CREATE", key, "DEDUP", "seen", "LEASE", 10000, "DELAY", DELAY_MS)
        self.add(store, ["http://%s/" % host_name(0)])

    def work(self, number):
        store = Store(self.port)
        own = self.keys[number::WORKERS]
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end and not self.finished(store):
            idle = True
            for key in own:
                asked = time.monotonic()
                for lease, url in store.run("FR.NEXT", key, 5) or []:
                    idle = False
                    _, _, host, path = url.split("/", 3)
                    with self.lock:
                        self.visits[host].append((asked, time.monotonic(), "/" + path))
                    self.add(store, fetch(host, "/" + path))
                    store.run("FR.ACK", key, lease)
            if idle:
                time.sleep(0.005)
        with self.lock:
            self.places.update(store.places)

    def finished(self, store):
        """Whether nothing is left in any shard. Links are added before the page that has them is
        acknowledged; shards are looked at one after the other, so that what was passed over may
        have got some meanwhile: the second look would see that more were added."""
        before = self.added(store)
        return before is not None and self.added(store) == before

    def added(self, store):
        """How many URLs all shards have been given; None when some shard has work."""
        total = 0
        for key in self.keys:
            flat = store.run("FR.STATS", key)
            stats = dict(zip(flat[::2], flat[1::2]))
            if stats["queued"] + stats["delayed"] + stats["leased"] > 0:
                return None
            total += stats["added"]
        return total

    def report(self):
        nodes = collections.Counter(self.places.get(key, self.port) for key in self.keys)
        for port, count in sorted(nodes.items()):
            print("node %d: %d of %d shards" % (port, count, len(self.keys)))
        good = True
        wanted = {"/"} | {"/p%d" % n for n in range(1, PAGES)}
        for number in range(HOSTS):
            visits = sorted(self.visits[host_name(number)])
            paths = [path for _, _, path in visits]
            if sorted(paths) != sorted(wanted):
                print("%s: fetched %s" % (host_name(number), sorted(paths)))
                good = False
            # The last was handed out at least so long after the first was asked for.
            if visits and visits[-1][1] - visits[0][0] < (len(visits) - 1) * DELAY_MS / 1000:
                print("%s was visited too soon" % host_name(number))
                good = False
        print("%d pages of %d hosts" % (sum(map(len, self.visits.values())), len(self.visits)))
        return good


def main(port, shards):
    crawl = Crawl(port, shards)
    crawl.prepare()
    workers = [threading.Thread(target=crawl.work, args=(n,)) for n in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return 0 if crawl.report() else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else SHARDS))
