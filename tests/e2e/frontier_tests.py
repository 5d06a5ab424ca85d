"""The URL frontier from outside: FR.* and URL.* against a model, many workers, waiting, restarts."""

import os
import subprocess
import sys
import threading
import time

import durability
import frontier_model
import resp
import snapshot_tests
from harness import SLOW, check, eq, run_workers, test, until

WRONG_TYPE = resp.Error(b"WRONGTYPE Operation against a key holding the wrong kind of value")
SYNTAX = resp.Error(b"ERR syntax error")
START = 1_700_000_000_000
STRATEGIES = ("depth", "breadth", "best", "priority")


def ours(context, **options):
    context.natives_only("stock Redis has no frontier")
    return context.client(**options)


def fields(reply):
    return dict(zip(reply[::2], reply[1::2]))


# ---- commands ----


@test()
def a_small_crawl(context):
    client = ours(context)
    eq(
        client.call("FR.ADD", "f", "http://A.example/x/1", "http://a.example/2", "https://b/3",
                    "http://a.example/./x/1#top", "ftp://c/"),
        [1, 1, 1, 0, -1],
    )
    eq(client.call("FR.HOSTS", "f"), [b"a.example", b"b"])
    eq(client.call("FR.PEEK", "f", "a.example"), [b"http://a.example/2", b"http://a.example/x/1"])
    eq(client.call("FR.PEEK", "f", "a.example", "1"), [b"http://a.example/2"])
    eq(
        client.call("FR.PEEK", "f", "a.example", "START", "9"),
        resp.Error(b"ERR invalid position 9, valid 0..1"),
    )
    eq(client.call("FR.SEEN", "f", "https://B/3", "https://b/4"), [1, 0])
    eq(client.call("FR.NEXT", "f", "1"), [b"http://a.example/2"])
    eq(client.call("FR.NEXT", "f", "5", "LEASE", "60000"),
       [[1, b"http://a.example/x/1"], [2, b"https://b/3"]])
    eq(client.call("FR.NEXT", "f", "5"), [])
    eq(client.call("FR.ACK", "f", "1", "7"), 1)
    eq(client.call("FR.EXTEND", "f", "2", "LEASE", "90000"), 1)
    eq(client.call("FR.NACK", "f", "2", "RETRY", "0"), 1)
    eq(client.call("FR.NEXT", "f", "5", "HOST", "b"), [b"https://b/3"])
    eq(client.call("FR.PURGE", "f", "a.example"), 0)
    eq(client.call("FR.CLEAR", "f"), resp.OK)
    eq(client.call("FR.HOSTS", "f"), [])
    eq(client.call("TYPE", "f"), resp.Status(context.by_host(b"frontier", b"savafront")))


@test()
def maps_in_resp3(context):
    client = ours(context, proto=3)
    client.call("FR.CREATE", "f", "STRATEGY", "breadth", "DEDUP", "bloom", "0.001", "DELAY", "5")
    client.call("FR.ADD", "f", "http://a/1")
    for call in (("FR.STATS", "f"), ("FR.HOST", "f", "a")):
        reply = client.call(*call)
        check(isinstance(reply, resp.Map), "%s is not a map: %r" % (call, reply))
    eq(client.call("FR.HOST", "f", "unknown"), resp.NULL)
    check(isinstance(client.call("URL.PARSE", "http://a/"), resp.Map), "URL.PARSE")
    eq(client.call("FR.CREATE", "f"), resp.Error(b"ERR key already exists"))


@test()
def urls_beyond_ascii(context):
    """They are kept, answered and logged in ASCII."""
    client = ours(context)
    eq(client.call("URL.NORM", "http://ü.de/é"), b"http://xn--tda.de/%C3%A9")
    eq(client.call("URL.PARSE", "http://Ü.de/b?c"),
       [b"protocol", b"http", b"host", b"xn--tda.de", b"path", b"/b", b"query", b"c",
        b"depth", 1])
    eq(client.call("FR.ADD", "f", "http://ü.de/é", "http://xn--tda.de/%C3%A9"), [1, 0])
    eq(client.call("FR.PEEK", "f", "ü.de"), [b"http://xn--tda.de/%C3%A9"])
    eq(client.call("FR.HOSTS", "f"), [b"xn--tda.de"])


@test()
def errors(context):
    client = ours(context)
    client.call("SET", "s", "x")
    client.call("FR.ADD", "f", "http://a/1")
    before = client.call("DEBUG", "DIGEST-VALUE", "f")
    for args, error in [
        (("FR.ADD", "s", "http://a/"), WRONG_TYPE),
        (("FR.NEXT", "s", "1"), WRONG_TYPE),
        (("FR.NEXT", "s", "1", "BLOCK", "0"), WRONG_TYPE),
        (("FR.STATS", "none"), resp.Error(b"ERR no such key")),
        (("FR.HOST", "none", "a"), resp.Error(b"ERR no such key")),
        (("FR.CREATE", "n", "NORM", "whatwg"),
         resp.Error(b"ERR unknown NORM, use ufmg or rfc3986")),
        (("FR.CREATE", "n", "LEASE"), SYNTAX),
        (("FR.ADD", "f"), resp.Error(b"ERR wrong number of arguments for 'fr.add' command")),
        (("FR.NEXT", "f", "0"), resp.Error(b"ERR value is out of range, must be positive")),
        (("FR.NEXT", "f", "1", "BLOCK", "-1"), resp.Error(b"ERR timeout is negative")),
        (("FR.ACK", "f", "x"), resp.Error(b"ERR value is not an integer or out of range")),
        (("FR.EXTEND", "f", "1"),
         resp.Error(b"ERR say LEASE: the frontier was made without one")),
        (("FR.HOST", "f", "a b", "DELAY", "1"), resp.Error(b"ERR invalid host")),
        (("FR.EXPORT", "f", "-1"), resp.Error(b"ERR invalid cursor")),
        (("FR.IMPORT", "f", "http://a/", "lost", "0", "0", "0", ""),
         resp.Error(b"ERR unknown state, use queued, delayed, leased or dead")),
        (("URL.NORM", "x"), resp.Error(b"ERR invalid URL: not a URL")),
        (("URL.HOST", "http://a/x.pdf", "NORM", "ufmg"),
         resp.Error(b"ERR invalid URL: file type not wanted")),
    ]:
        context.same(client.call(*args), error, " ".join(args))
    eq(client.call("EXISTS", "n"), 0)
    eq(client.call("DEBUG", "DIGEST-VALUE", "f"), before)


@test()
def as_a_key(context):
    """DUMP, RESTORE, COPY, RENAME, expiry, transactions."""
    client = ours(context)
    client.call("FR.CREATE", "f", "DEDUP", "seen", "LEASE", "600000")
    client.call("FR.ADD", "f", *("http://h%d/p/%d" % (i % 7, i) for i in range(3000)))
    client.call("FR.NEXT", "f", "5")
    payload = client.call("DUMP", "f")
    eq(client.call("RESTORE", "g", "0", payload), resp.OK)
    eq(client.call("COPY", "f", "h"), 1)
    digest = client.call("DEBUG", "DIGEST-VALUE", "f")
    eq(client.call("DEBUG", "DIGEST-VALUE", "g"), digest)
    eq(client.call("DEBUG", "DIGEST-VALUE", "h"), digest)
    eq(client.call("FR.ACK", "g", "1", "2"), 2)
    eq(client.call("FR.ACK", "f", "1"), 1)
    damaged = bytes(payload[:40]) + bytes([payload[40] ^ 1]) + bytes(payload[41:])
    check(resp.is_error(client.call("RESTORE", "bad", "0", damaged)), "a damaged payload")
    eq(client.call("RENAME", "h", "i"), resp.OK)
    check(client.call("MEMORY", "USAGE", "i") > 10_000, "MEMORY USAGE")
    eq(client.call("EXPIRE", "i", "100"), 1)
    eq(client.call("FR.CLEAR", "i"), resp.OK)
    check(0 < client.call("TTL", "i") <= 100, "TTL")
    other = context.client()
    client.call("WATCH", "f")
    other.call("FR.ADD", "f", "http://new/")
    client.call("MULTI")
    client.call("FR.NEXT", "f", "1", "BLOCK", "0")
    eq(client.call("EXEC"), resp.NIL_ARRAY)
    client.call("MULTI")
    client.call("FR.NEXT", "empty", "1", "BLOCK", "0")
    eq(client.call("EXEC"), [[]])


@test()
def exported_and_imported(context):
    client = ours(context)
    client.call("FR.CREATE", "f", "RETRIES", "0", "LEASE", "600000")
    client.call("FR.ADD", "f", "PRIO", "2", "META", "m", *("http://h%d/%d" % (i % 9, i)
                                                           for i in range(500)))
    client.call("FR.ADD", "f", "AT", "4000000000000", "https://later/")
    client.call("FR.NEXT", "f", "20")
    client.call("FR.NACK", "f", *map(str, range(2, 7)))  # the delayed URL has number 1
    client.call("FR.CREATE", "g", "RETRIES", "0", "LEASE", "600000")

    def entries(key):
        cursor, found = b"0", []
        while True:
            cursor, part = client.call("FR.EXPORT", key, cursor, "COUNT", "37")
            found += part
            if cursor == b"0":
                return found

    moved = entries("f")
    eq(sorted(entry[1] for entry in moved),
       [b"dead"] * 5 + [b"delayed"] + [b"leased"] * 15 + [b"queued"] * 480)
    for entry in moved:
        eq(client.call("FR.IMPORT", "g", *map(resp.to_bytes, entry)), [1])
    # A lease belongs to who has it: elsewhere the URL waits until it would have ended.
    as_moved = [e if e[1] != b"leased" else [e[0], b"delayed"] + e[2:] for e in moved]
    drop_time = [e if e[1] != b"dead" else e[:2] + [0] + e[3:] for e in as_moved]
    arrived = [e if e[1] != b"dead" else e[:2] + [0] + e[3:] for e in entries("g")]
    eq(sorted(arrived), sorted(drop_time))
    for number in range(9):
        host = "h%d" % number
        eq(client.call("FR.PEEK", "g", host), client.call("FR.PEEK", "f", host))


@test()
def notifications(context):
    client = ours(context)
    with context.sut.configured(notify_keyspace_events="KEd"):
        listener = context.client()
        listener.call("SUBSCRIBE", "__keyspace@0__:f")
        client.call("FR.CREATE", "f", "LEASE", "1000")
        client.call("FR.ADD", "f", "http://a/1", "http://a/2")
        client.call("FR.ADD", "f", "http://a/1")
        client.call("FR.NEXT", "f", "2")
        client.call("FR.NEXT", "f", "2")
        client.call("FR.ACK", "f", "1")
        client.call("FR.HOST", "f", "a", "DELAY", "1")
        events = [listener.reply()[2] for _ in range(5)]
        eq(events, [b"fr.create", b"fr.add", b"fr.next", b"fr.ack", b"fr.host"])


# ---- against the model ----


class History:
    """The same random calls of a server and of the model."""

    def __init__(self, client, rng, key):
        self.client = client
        self.rng = rng
        self.key = key
        self.now = START
        self.last_id = 0
        options = {
            "strategy": rng.choice(STRATEGIES),
            "dedup": rng.choice(("pending", "seen")),
            "delay": rng.choice((0, 0, 20)),
            "maxhost": rng.choice((0, 0, 15)),
            "lease": rng.choice((0, 60)),
            "retries": rng.choice((0, 2)),
        }
        self.model = frontier_model.Frontier(**options)
        words = [word for name, value in options.items() for word in (name, value)]
        eq(client.call("FR.CREATE", key, *words), resp.OK)

    def call(self, name, *words):
        return self.client.call(name, self.key, *words, "NOW", self.now)

    def url(self):
        rng = self.rng
        folder = "/x" * rng.randrange(3)
        return "h%d" % rng.randrange(self.hosts), "%s/%d" % (folder, rng.randrange(60))

    def step(self):
        rng = self.rng
        self.now += rng.choice((0, 1, 5, 30))
        kinds = [self.add, self.add, self.add, self.next, self.next, self.leases, self.host]
        if rng.random() < 0.03:
            kinds = [self.purge, self.clear]
        rng.choice(kinds)()

    hosts = 12

    def add(self):
        rng = self.rng
        priority = rng.randrange(-2, 3)
        urls, words = [], []
        for _ in range(rng.randrange(1, 12)):
            if rng.random() < 0.05:
                urls.append(None)
                words.append("http://")
                continue
            host, path = self.url()
            urls.append(frontier_model.Url(host, path, priority))
            words.append("http://%s%s" % (host, path))
        at = self.now + rng.randrange(1, 90) if rng.random() < 0.3 else 0
        options = ["PRIO", priority] + (["AT", at] if at else [])
        got = self.client.call("FR.ADD", self.key, *options, "NOW", self.now, *words)
        self.same(got, self.model.add(self.now, urls, at), "FR.ADD %s %s" % (options, words))

    def next(self):
        rng = self.rng
        options, words = {}, []
        for name, values in (
            ("strategy", STRATEGIES), ("perhost", (1, 2)), ("lease", (0, 25)),
            ("host", ["h%d" % i for i in range(self.hosts + 1)]),
        ):
            if rng.random() < 0.25:
                options[name] = rng.choice(values)
                words += [name, options[name]]
        if rng.random() < 0.1:
            options["restart"] = True
            words.append("RESTART")
        count = rng.choice((1, 2, 5, 20))
        got = self.call("FR.NEXT", count, *words)
        expected = self.model.next(self.now, count, **options)
        self.same(got, expected, "FR.NEXT %d %s" % (count, words))

    def ids(self):
        most = max(1, self.model.next_id - 1)
        known = list(self.model.leased)
        return [
            self.rng.choice(known) if known and self.rng.random() < 0.7
            else self.rng.randrange(1, most + 2)
            for _ in range(self.rng.randrange(1, 5))
        ]

    def leases(self):
        rng = self.rng
        ids = list(dict.fromkeys(self.ids()))
        kind = rng.choice(("ACK", "ACK", "NACK", "EXTEND"))
        time = rng.randrange(1, 80)
        if kind == "EXTEND":
            got, expected = self.call("FR.EXTEND", *ids, "LEASE", time), self.model.extend(
                self.now, ids, time)
        elif rng.random() < 0.4:
            word = "REFETCH" if kind == "ACK" else "RETRY"
            got = self.call("FR." + kind, *ids, word, time)
            expected = getattr(self.model, kind.lower())(self.now, ids, time)
        else:
            got = self.call("FR." + kind, *ids)
            expected = getattr(self.model, kind.lower())(self.now, ids)
        self.same(got, expected, "FR.%s %s" % (kind, ids))

    def host(self):
        rng = self.rng
        name = "h%d" % rng.randrange(self.hosts + 1)
        options = rng.choice((
            {"delay": rng.choice((-1, 0, 40))},
            {"blocked_until": self.now + rng.randrange(100)},
            {"limit": rng.choice((0, 5))},
        ))
        ((option, value),) = options.items()
        word = "BLOCKUNTIL" if option == "blocked_until" else option
        got = fields(self.call("FR.HOST", name, word, value))
        self.model.change_host(self.now, name, **options)
        self.same(got[b"queued"], len(self.model.hosts[name].queued), "FR.HOST " + name)

    def purge(self):
        name = "h%d" % self.rng.randrange(self.hosts)
        self.same(self.call("FR.PURGE", name), self.model.purge(self.now, name), "FR.PURGE")

    def clear(self):
        if self.rng.random() < 0.5:
            self.same(self.call("FR.CLEAR"), resp.OK, "FR.CLEAR")
            self.model.clear(self.now)

    def same(self, got, expected, what):
        eq(got, expected, "%s at %d" % (what, self.now - START))

    def compare(self):
        # What is due is let happen by a call that serves nothing.
        self.same(self.call("FR.ACK", 1 << 60), self.model.ack(self.now, []), "FR.ACK")
        eq(self.client.call("FR.HOSTS", self.key), [n.encode() for n in self.model.hosts])
        for name in self.model.hosts:
            eq(self.client.call("FR.PEEK", self.key, name), self.model.peek(name), "FR.PEEK " + name)
        stats = fields(self.client.call("FR.STATS", self.key))
        counts = self.model.counts()
        eq({name: stats[name] for name in counts}, counts)
        eq(self.client.call("FR.DEAD", self.key), [url.text for url in self.model.dead])


@test(timeout=120)
def random_histories(context):
    client = ours(context)
    rng = context.rng("frontier histories")
    for number in range(40 if context.options.long else 8):
        history = History(client, rng, "f%d" % number)
        for step in range(250):
            history.step()
            if step % 60 == 59:
                history.compare()
        history.compare()


@test(timeout=60)
def thousands_of_hosts(context):
    client = ours(context)
    rng = context.rng("many hosts")
    history = History(client, rng, "f")
    history.hosts = 3000
    for start in range(0, 3000, 100):
        urls = [frontier_model.Url("h%d" % i, "/%d" % i) for i in range(start, start + 100)]
        got = client.call("FR.ADD", "f", "NOW", START, *(url.text for url in urls))
        eq(got, history.model.add(START, urls))
    for _ in range(12):
        history.next()
        history.add()
    eq(len(client.call("FR.HOSTS", "f")), len(history.model.hosts))


# ---- restarts ----


@test(timeout=120)
def histories_survive_restarts(context):
    """By the log and by snapshots: order, leases, delays, lease ids, breadth's place."""
    context.sava_only()
    rng = context.rng("frontier restarts")
    for settings in (("--appendonly", "no"), ("--appendonly", "yes"),
                     ("--appendonly", "yes", "--aof-use-rdb-preamble", "no")):
        server = durability.durable(context, "--save", "", *settings)
        logged = "yes" in settings
        histories = [History(server.client(), rng, "f%d" % i) for i in range(3)]
        for round_number in range(3):
            for history in histories:
                for _ in range(100):
                    history.step()
            if not logged or round_number == 1:
                if logged:
                    durability.rewrite(server)
                else:
                    eq(server.call("SAVE"), resp.OK)
            for history in histories:
                history.client.close()
            if logged and round_number == 2:
                time.sleep(1.2)  # everysec
                server.kill()
            else:
                eq(server.terminate(), 0)
            server.restart()
            for history in histories:
                history.client = server.client()
                history.compare()
        for history in histories:
            history.client.close()


@test(timeout=90)
def snapshots_while_it_changes(context):
    """Every snapshot has the frontier of one instant, although it is saved in pieces."""
    context.sava_only()
    server = durability.durable(context, "--save", "", "--appendonly", "no")
    folder = context.temp_dir()
    with server.client() as client:
        client.call("FR.CREATE", "f", "DEDUP", "seen", "LEASE", "86400000", "STRATEGY", "breadth")
        for at in range(0, 60_000, 500):
            urls = ["http://h%d/first/%d" % (i % 701, i) for i in range(at, at + 500)]
            eq(sum(client.call("FR.ADD", "f", *urls)), 500)
        client.call("SET", "total", "60000")
    address = server.address
    deadline = time.time() + 2

    def producer():
        with resp.Client(address, 60) as own:
            number = 0
            while time.time() < deadline:
                urls = ["http://h%d/%d/x" % (i % 997, i) for i in range(number, number + 20)]
                number += 20
                own.pipeline(
                    [("MULTI",), ("FR.ADD", "f", *urls), ("INCRBY", "total", "20"), ("EXEC",)]
                )
                time.sleep(0.002)  # or the frontier becomes long to look at
            return number

    def worker():
        with resp.Client(address, 60) as own:
            done = 0
            while time.time() < deadline:
                ids = [lease for lease, _ in own.call("FR.NEXT", "f", "30")]
                if len(ids) < 2:  # on a fast machine the producer is the slower one
                    time.sleep(0.002)
                    continue
                done += own.call("FR.ACK", "f", *ids[: len(ids) // 2])
            return done

    saver = snapshot_tests.dump_saver(server, folder)
    count = run_workers([lambda: saver(address, deadline), producer, worker], 60)[0]
    check(count >= 2, "too few snapshots: %d" % count)
    for number in sorted({0, count - 1}):
        place = os.path.join(folder, str(number))
        loaded = durability.durable(context, "--save", "", "--appendonly", "no", directory=place)
        what = "dump %d" % number
        with loaded.client() as client:
            stats = fields(client.call("FR.STATS", "f"))
            eq(stats[b"added"], int(client.call("GET", "total")), what)
            pending = stats[b"added"] - stats[b"acked"]
            eq(stats[b"queued"] + stats[b"leased"], pending, what)
            eq(stats[b"seen"], stats[b"added"], what)
            cursor, urls = b"0", []
            while True:
                cursor, part = client.call("FR.EXPORT", "f", cursor, "COUNT", "20000")
                urls += [entry[0] for entry in part]
                if cursor == b"0":
                    break
            eq((len(urls), len(set(urls))), (pending, pending), what)
            served = 0
            while True:
                part = client.call("FR.NEXT", "f", "5000", "LEASE", "0")
                served += len(part)
                if not part:
                    break
            eq(served, stats[b"queued"], what)
        loaded.kill()
    context.say("%d snapshots" % count)


# ---- many at a time ----


@test(timeout=90)
def workers_share_a_frontier(context):
    """No URL twice, none lost, no host sooner than its delay by the server's clock."""
    client = ours(context)
    delay, hosts, per_host = 40, 30, 12
    client.call("FR.CREATE", "f", "DELAY", delay, "LEASE", 600000, "STRATEGY", "breadth",
                "DEDUP", "seen")
    urls = ["http://h%d/%d" % (h, i) for i in range(per_host) for h in range(hosts)]

    def producer(part):
        own = context.sut.client()
        added = 0
        for at in range(0, len(part), 7):
            added += sum(own.call("FR.ADD", "f", *part[at : at + 7]))
        own.close()
        return added

    def worker():
        own = context.sut.client(timeout=60 * SLOW)
        got = []
        while True:
            before = time.time()
            served = own.call("FR.NEXT", "f", "3", "BLOCK", "3000")
            after = time.time()
            if not served:
                own.close()
                return got
            got += [(before, after, lease, url) for lease, url in served]
            for lease, _ in served:
                eq(own.call("FR.ACK", "f", lease), 1)

    work = [lambda: producer(urls), lambda: producer(urls[::-1])] + [worker] * 4
    results = run_workers(work, 80)
    eq(results[0] + results[1], len(urls), "added")
    got = [entry for part in results[2:] for entry in part]
    eq(sorted(url for _, _, _, url in got), sorted(url.encode() for url in urls))
    eq(len({lease for _, _, lease, _ in got}), len(got), "lease ids")
    last = {}
    for before, after, lease, url in sorted(got, key=lambda entry: entry[2]):
        host = url.split(b"/")[2]
        if host in last:  # as late as this one may have been, as early as that one may have been
            check(after - last[host] >= delay / 1000 - 0.002, "%s too soon: %f" % (host, after - last[host]))
        last[host] = before
    stats = fields(client.call("FR.STATS", "f"))
    eq((stats[b"queued"], stats[b"leased"], stats[b"acked"]), (0, 0, len(urls)))


@test(timeout=60)
def next_waits(context):
    """BLOCK: woken by an add from another connection, by a delay, by a lease that ends, by time."""
    client = ours(context)
    waiter = context.client(timeout=30 * SLOW)

    def waiting(*words):
        waiter.send("FR.NEXT", "f", *words)
        until(lambda: context.sut.info_field("blocked_clients") == "1", 10, "a blocked client")

    waiting("5", "BLOCK", "0")
    client.call("FR.ADD", "f", "http://a/1", "http://a/2")
    eq(waiter.reply(), [b"http://a/1", b"http://a/2"])

    client.call("FR.HOST", "f", "a", "DELAY", "150")
    client.call("FR.ADD", "f", "http://a/3", "http://a/4")
    eq(client.call("FR.NEXT", "f", "9"), [b"http://a/3"])
    waiter.send("FR.NEXT", "f", "1", "BLOCK", "20000", "LEASE", "200")
    ((_, url),) = waiter.reply()
    eq(url, b"http://a/4")
    eq(waiter.call("FR.NEXT", "f", "1", "BLOCK", "20000"), [b"http://a/4"], "the lease ended")

    eq(waiter.call("FR.NEXT", "f", "1", "BLOCK", "30"), [])
    eq(waiter.call("FR.NEXT", "none", "1", "BLOCK", "30"), [])
    client.call("FR.ADD", "f", "AT", int(time.time() * 1000) + 100, "http://b/5")
    eq(waiter.call("FR.NEXT", "f", "1", "BLOCK", "20000", "HOST", "b"), [b"http://b/5"])

    waiting("1", "BLOCK", "0", "HOST", "c")
    client.call("FR.ADD", "f", "http://d/1")
    client.call("FR.ADD", "f", "http://c/1")
    eq(waiter.reply(), [b"http://c/1"])
    eq(client.call("FR.NEXT", "f", "9"), [b"http://d/1"])
    waiting("1", "BLOCK", "0")
    eq(client.call("DEL", "f"), 1)
    client.call("FR.ADD", "f", "http://again/")
    eq(waiter.reply(), [b"http://again/"])


@test(timeout=60)
def waiters_are_served_in_turn(context):
    client = ours(context)
    waiters = []
    for number in range(4):
        waiter = context.client(timeout=30 * SLOW)
        waiter.send("FR.NEXT", "f", "1", "BLOCK", "0")
        want = str(number + 1)
        until(lambda: context.sut.info_field("blocked_clients") == want, 10, "a blocked client")
        waiters.append(waiter)
    client.call("FR.ADD", "f", *("http://a/%d" % i for i in range(3)))
    for number in range(3):
        eq(waiters[number].reply(), [b"http://a/%d" % number])
    eq(client.call("FR.NEXT", "f", "1"), [])
    client.call("FR.ADD", "f", "http://a/last")
    eq(waiters[3].reply(), [b"http://a/last"])


@test(timeout=60)
def leases_come_back(context):
    """Of a worker that is gone, while others wait."""
    client = ours(context)
    client.call("FR.CREATE", "f", "LEASE", "200", "RETRIES", "5")
    client.call("FR.ADD", "f", *("http://a/%d" % i for i in range(10)))
    lost = context.client()
    eq(len(lost.call("FR.NEXT", "f", "10")), 10)
    lost.close()
    back = []

    def wait():
        own = context.sut.client(timeout=30 * SLOW)
        while len(back) < 10:
            served = own.call("FR.NEXT", "f", "4", "BLOCK", "20000", "LEASE", "600000")
            if not served:
                break
            back.extend(served)
        own.close()

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join(40 * SLOW)
    eq(sorted(url for _, url in back), [b"http://a/%d" % i for i in range(10)])
    stats = fields(client.call("FR.STATS", "f"))
    eq((stats[b"expired"], stats[b"leased"]), (10, 10))


# ---- the example ----


@test(timeout=90)
def the_example_crawler(context):
    """examples/crawler: a killed worker's leases come back, every page once, robots.txt kept."""
    context.sava_only()
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
    done = subprocess.run(
        [sys.executable, os.path.join(folder, "crawler", "crawl.py"), str(context.sut.port)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=80 * SLOW,
        check=False,
    )
    eq(done.returncode, 0, done.stdout[-2000:])
    check("worker 1 was killed" in done.stdout, done.stdout)
    check("left in the frontier: 0" in done.stdout, done.stdout)
