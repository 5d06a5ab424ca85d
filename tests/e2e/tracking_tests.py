"""Client-side caching: the same steps on redis-server and on the server under test, and every
frame that any of the connections gets is compared; many clients with caches at once."""

import os
import random
import shutil
import time

import resp
from clients_tests import HERE, run
from harness import SLOW, Failure, Skip, check, eq, run_workers, test, until


class Scene:
    """Named connections to one server, and what each of them is sent after every step."""

    def __init__(self, context, server):
        self.context = context
        self.server = server
        self.clients = {}
        self.ids = {}
        self.queueing = set()  # who is between MULTI and EXEC: what settles it would be queued
        self.subscribed = set()

    def open(self, name, proto):
        client = self.context.client(self.server, proto)
        self.clients[name] = client
        client.call("CLIENT", "SETNAME", "settled")
        self.ids[name] = client.call("CLIENT", "ID")

    def close(self, name):
        self.clients.pop(name).close()
        number = str(self.ids[name])
        admin = self.context.client(self.server)
        until(
            lambda: ("id=" + number + " ").encode() not in admin.call("CLIENT", "LIST"),
            what="the client to be gone",
        )
        admin.close()

    def step(self, name, *words):
        """Runs the command; returns all frames of all connections, up to its own reply."""
        words = [str(self.ids[word[1:]]) if word.startswith("@") else word for word in words]
        self.clients[name].send(*words)
        seen = {}
        if name in self.queueing and words[0] not in ("EXEC", "DISCARD"):
            seen[name] = [self.clients[name].recv()]
        elif words[0] == "MULTI":
            seen[name] = [self.clients[name].recv()]
            self.queueing.add(name)
        else:
            self.queueing.discard(name)
            if words[0] == "SUBSCRIBE":
                self.subscribed.add(name)
            if words[0] == "RESET":
                self.clients[name].send("CLIENT", "SETNAME", "settled")
            seen[name] = self.until_settled(name)
        return {**self.frames(skip=name), **seen}

    def frames(self, skip=None):
        """What has come."""
        return {
            name: self.until_settled(name)
            for name in self.clients
            if name != skip and name not in self.queueing
        }

    def until_settled(self, name):
        """All frames up to now. Commands of CLIENT may stand between CLIENT CACHING and what it is
        for, others may not; but who is subscribed may only PING."""
        client = self.clients[name]
        words = ("PING", "settled") if name in self.subscribed else ("CLIENT", "GETNAME")
        client.send(*words)
        frames = []
        while True:
            frame = client.recv()
            if frame == b"settled" or frame == [b"pong", b"settled"]:
                return [self.by_name(frame) for frame in frames]
            frames.append(frame)

    def by_name(self, frame):
        for name, number in self.ids.items():
            if isinstance(frame, int) and frame == number:
                return "id of " + name
        if isinstance(frame, (list, tuple)):
            return (type(frame).__name__, [self.by_name(part) for part in frame])
        return frame


def compare(context, protocols, steps):
    """Runs steps [(client, word…)] on both servers; a step (client,) hangs up."""
    scenes = [Scene(context, context.stock), Scene(context, context.sut)]
    for scene in scenes:
        for name, proto in protocols.items():
            scene.open(name, proto)
    for step in steps:
        if len(step) == 1:
            for scene in scenes:
                scene.close(step[0])
            continue
        expected = scenes[0].step(*step)
        actual = scenes[1].step(*step)
        deadline = time.monotonic() + 5 * SLOW
        # What is redirected takes two ways, from thread to thread.
        while actual != expected and time.monotonic() < deadline:
            if any(len(actual[name]) > len(expected[name]) for name in expected):
                break
            for name, frames in scenes[1].frames().items():
                actual[name] += frames
        if not context.same(actual, expected, " ".join(step)):
            return


@test()
def reads_and_changes(context):
    compare(context, {"a": 3, "b": 3, "w": 2}, [
        ("a", "CLIENT", "TRACKING", "ON"),
        ("w", "MSET", "k1", "1", "k2", "2"),
        ("a", "GET", "k1"),
        ("a", "MGET", "k1", "k2", "nokey"),
        ("w", "SET", "k1", "3"),
        ("w", "SET", "k1", "4"),
        ("w", "SET", "nokey", "4"),
        ("a", "HGETALL", "h"),
        ("w", "HSET", "h", "f", "v"),
        ("a", "HGET", "h", "f"),
        ("a", "HDEL", "h", "f"),
        ("a", "GET", "k2"),
        ("a", "SET", "k2", "own"),
        ("a", "GET", "k2"),
        ("b", "CLIENT", "TRACKING", "ON", "NOLOOP"),
        ("b", "GET", "k2"),
        ("b", "SET", "k2", "mine"),
        ("b", "GET", "k2"),
        ("a", "GET", "k2"),
        ("a", "INCR", "k9"),
        ("b", "EXPIRE", "k2", "100"),
        ("a", "TTL", "k2"),
        ("w", "PERSIST", "k2"),
        ("a", "GET", "k2"),
        ("w", "RENAME", "k2", "k3"),
        ("a", "LRANGE", "l", "0", "-1"),
        ("w", "RPUSH", "l", "x"),
        ("a", "LRANGE", "l", "0", "-1"),
        ("w", "DEL", "l"),
        ("a", "EXISTS", "s"),
        ("w", "SELECT", "1"),
        ("w", "SET", "s", "in another database"),
        ("a", "GET", "k3"),
        ("a", "CLIENT", "TRACKING", "OFF"),
        ("w", "SET", "k3", "1"),
        ("w", "FLUSHDB"),
    ])


@test()
def transactions_and_flushes(context):
    compare(context, {"a": 3, "b": 3, "w": 3}, [
        ("a", "CLIENT", "TRACKING", "ON"),
        ("b", "CLIENT", "TRACKING", "ON", "NOLOOP"),
        ("a", "MULTI"),
        ("a", "GET", "k1"),
        ("a", "GET", "k2"),
        ("a", "EXEC"),
        ("w", "MULTI"),
        ("w", "SET", "k1", "1"),
        ("w", "SET", "k2", "1"),
        ("w", "GET", "k1"),
        ("w", "EXEC"),
        ("a", "MULTI"),
        ("a", "GET", "k1"),
        ("a", "SET", "k1", "2"),
        ("a", "GET", "k1"),
        ("a", "EXEC"),
        ("w", "SET", "k1", "3"),
        ("a", "GET", "k1"),
        ("b", "GET", "k1"),
        ("w", "FLUSHDB"),
        ("a", "GET", "k1"),
        ("b", "FLUSHALL"),
        ("w", "SET", "k1", "3"),
        ("a", "GET", "k1"),
        ("a", "RESET"),
        ("w", "SET", "k1", "4"),
        ("a", "CLIENT", "TRACKINGINFO"),
    ])


@test()
def opting_in_and_out(context):
    compare(context, {"a": 3, "b": 3, "w": 2}, [
        ("a", "CLIENT", "TRACKING", "ON", "OPTIN"),
        ("a", "CLIENT", "CACHING", "NO"),
        ("a", "GET", "k1"),
        ("w", "SET", "k1", "1"),
        ("a", "CLIENT", "CACHING", "YES"),
        ("a", "CLIENT", "TRACKINGINFO"),
        ("a", "GET", "k1"),
        ("a", "GET", "k2"),
        ("w", "MSET", "k1", "1", "k2", "2"),
        ("a", "CLIENT", "CACHING", "YES"),
        ("a", "CLIENT", "GETREDIR"),
        ("a", "GET", "k1"),
        ("w", "SET", "k1", "1"),
        ("a", "CLIENT", "CACHING", "YES"),
        ("a", "MULTI"),
        ("a", "GET", "k1"),
        ("a", "GET", "k2"),
        ("a", "EXEC"),
        ("a", "GET", "k3"),
        ("w", "MSET", "k3", "3", "k2", "2", "k1", "1"),
        ("a", "CLIENT", "CACHING", "YES"),
        ("a", "NOSUCH"),
        ("a", "GET", "k1"),
        ("w", "SET", "k1", "1"),
        ("b", "CLIENT", "TRACKING", "ON", "OPTOUT"),
        ("b", "CLIENT", "CACHING", "YES"),
        ("b", "CLIENT", "CACHING", "NO"),
        ("b", "CLIENT", "TRACKINGINFO"),
        ("b", "GET", "k1"),
        ("b", "GET", "k2"),
        ("w", "MSET", "k1", "1", "k2", "2"),
        ("b", "CLIENT", "CACHING", "NO"),
        ("b", "CLIENT", "TRACKING", "ON", "OPTOUT"),
        ("b", "CLIENT", "TRACKINGINFO"),
        ("b", "GET", "k1"),
        ("w", "SET", "k1", "1"),
        ("a", "CLIENT", "CACHING", "YES"),
        ("a", "PING"),
        ("a", "GET", "k1"),
        ("w", "SET", "k1", "1"),
        ("a", "CLIENT", "CACHING", "MAYBE"),
        ("w", "CLIENT", "CACHING", "YES"),
        ("w", "CLIENT", "CACHING", "MAYBE"),
    ])


@test()
def broadcasts(context):
    compare(context, {"a": 3, "b": 3, "c": 3, "w": 3}, [
        ("a", "CLIENT", "TRACKING", "ON", "BCAST"),
        ("b", "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "foo", "PREFIX", "bar"),
        ("c", "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "foo", "NOLOOP"),
        ("b", "CLIENT", "TRACKINGINFO"),
        ("a", "CLIENT", "TRACKINGINFO"),
        ("w", "SET", "foo1", "x"),
        ("w", "SET", "bar1", "x"),
        ("w", "SET", "other", "x"),
        ("w", "MSET", "foo3", "x", "bar2", "x", "foo2", "x", "zzz", "x"),
        ("w", "MULTI"),
        ("w", "DEL", "foo3"),
        ("w", "SET", "foo4", "x"),
        ("w", "DEL", "foo4"),
        ("w", "EXEC"),
        ("c", "SET", "foo9", "x"),
        ("c", "SET", "bar9", "x"),
        ("b", "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "baz"),
        ("b", "CLIENT", "TRACKINGINFO"),
        ("b", "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "foobar"),
        ("b", "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "q", "PREFIX", "q2"),
        ("b", "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "baz"),
        ("b", "CLIENT", "TRACKING", "ON"),
        ("w", "SET", "baz", "x"),
        ("b", "CLIENT", "TRACKING", "OFF"),
        ("w", "SET", "foo1", "x"),
        ("w", "FLUSHALL"),
    ])


@test()
def redirection(context):
    compare(context, {"a": 2, "b": 3, "target": 2, "three": 3, "w": 2}, [
        ("a", "CLIENT", "TRACKING", "ON", "REDIRECT", "@target"),
        ("a", "CLIENT", "GETREDIR"),
        ("a", "GET", "k1"),
        ("w", "SET", "k1", "nobody listens"),
        ("target", "SUBSCRIBE", "__redis__:invalidate"),
        ("a", "GET", "k1"),
        ("a", "GET", "k2"),
        ("w", "SET", "k1", "1"),
        ("w", "MSET", "k1", "1", "k2", "2"),
        ("a", "GET", "k1"),
        ("w", "FLUSHALL"),
        ("b", "CLIENT", "TRACKING", "ON", "REDIRECT", "@three", "BCAST"),
        ("b", "CLIENT", "TRACKINGINFO"),
        ("w", "SET", "k1", "2"),
        ("a", "CLIENT", "TRACKING", "ON", "REDIRECT", "@three"),
        ("a", "GET", "k1"),
        ("w", "SET", "k1", "3"),
        ("three",),
        ("a", "GET", "k1"),
        ("w", "SET", "k1", "4"),
        ("b", "CLIENT", "TRACKINGINFO"),
        ("b", "CLIENT", "TRACKING", "ON", "REDIRECT", "@target", "BCAST"),
        ("b", "CLIENT", "TRACKINGINFO"),
        ("b", "CLIENT", "GETREDIR"),
        ("w", "SET", "k1", "5"),
        ("a", "CLIENT", "TRACKING", "OFF"),
        ("a", "CLIENT", "GETREDIR"),
    ])


@test()
def what_is_refused(context):
    stock, sut = context.pair(3)
    for line in (
        ("ON", "PREFIX", "a"),
        ("ON", "REDIRECT", "999999999"),
        ("ON", "REDIRECT", "x"),
        ("ON", "REDIRECT"),
        ("ON", "BCAST", "OPTIN"),
        ("ON", "OPTIN", "OPTOUT"),
        ("ON", "NOSUCH"),
        ("MAYBE",),
        ("OFF", "NOSUCH"),
        ("OFF", "REDIRECT", "999999999"),
        ("OFF",),
        ("ON", "BCAST", "PREFIX", "ab", "PREFIX", "a"),
        ("ON", "OPTIN"),
        ("ON", "OPTOUT"),
        ("ON", "BCAST"),
        ("ON", "OPTIN", "NOLOOP"),
        ("ON",),
        ("OFF",),
        ("ON", "BCAST"),
        ("ON",),
        ("ON", "BCAST", "PREFIX", "a"),
    ):
        words = ("CLIENT", "TRACKING") + line
        context.same(sut.call(*words), stock.call(*words), " ".join(words))
        context.same(
            sut.call("CLIENT", "TRACKINGINFO"), stock.call("CLIENT", "TRACKINGINFO"),
            "TRACKINGINFO after " + " ".join(words),
        )


def flags_and_redirection(server, client):
    text = bytes(client.call("CLIENT", "INFO")).decode()
    fields = dict(word.split("=", 1) for word in text.split() if "=" in word)
    return fields["flags"], fields["redir"]


@test()
def figures(context):
    clients = [context.client(server, 3) for server in (context.stock, context.sut)]
    for words in (
        ("CLIENT", "TRACKING", "ON"),
        ("MGET", "a", "b", "c"),
        ("CLIENT", "TRACKING", "OFF"),
        ("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "a", "PREFIX", "b"),
        ("SET", "q", "1"),
    ):
        for client in clients:
            client.call(*words)
        seen = []
        for server, client in zip((context.stock, context.sut), clients):
            fields = [server.info_field(name) for name in ("tracking_clients",
                                                           "tracking_total_prefixes")]
            seen.append([flags_and_redirection(server, client)] + fields)
        context.same(seen[1], seen[0], " ".join(words))
    eq(context.client(context.sut).call("PING"), resp.PONG)


@test()
def the_table_has_a_limit(context):
    for server in (context.stock, context.sut):
        with server.configured(tracking_table_max_keys="10"):
            client = context.client(server, 3)
            client.call("CLIENT", "TRACKING", "ON")
            for i in range(300):
                client.call("GET", "k%d" % i)

            def told():
                client.call("PING")
                keys = [key for push in client.pushes for key in push[1]]
                return len(set(keys)) == len(keys) and len(keys) >= 290

            until(told, what="messages about the keys that had to go, on " + server.name)
            check(int(server.info_field("tracking_total_keys")) <= 10, "keys on " + server.name)


@test()
def readers_that_are_gone_leave_the_table(context):
    """A key that every new client reads, and nobody changes."""
    server = context.start()
    staying = [context.client(server, 3) for _ in range(3)]
    for client in staying:
        eq(client.call("CLIENT", "TRACKING", "ON"), resp.OK)
        client.call("GET", "k")
    for _ in range(30):
        going = [context.client(server, 3) for _ in range(10)]
        for client in going:
            client.call("CLIENT", "TRACKING", "ON")
            client.call("GET", "k")
        for client in going:
            client.close()
        until(lambda: server.info_field("tracking_clients") == "3", what="the end of ten clients")
    check(int(server.info_field("tracking_total_items")) <= 40, "the readers of the key")
    eq(server.call("SET", "k", "1"), resp.OK)
    for client in staying:
        until(lambda client=client: client.call("PING") == resp.PONG and client.pushes)
        eq(client.pushes, [resp.Push([b"invalidate", [b"k"]])])
    eq(server.info_field("tracking_total_items"), "0")


@test()
def expiry_and_eviction_are_told(context):
    for server in (context.stock, context.sut):
        reader, writer = context.client(server, 3), context.client(server)
        reader.call("CLIENT", "TRACKING", "ON")
        writer.call("SET", "short", "1", "PX", "30")
        eq(reader.call("GET", "short"), b"1")
        until(lambda: reader.call("PING") and reader.pushes, what="the expiry on " + server.name)
        eq(reader.pushes, [resp.Push([b"invalidate", [b"short"]])], server.name)
        reader.pushes.clear()
        for i in range(200):
            writer.call("SET", "large%d" % i, "x" * 10000)
            reader.call("GET", "large%d" % i)
        with server.configured(maxmemory_policy="allkeys-lru", maxmemory="1mb"):
            writer.call("SET", "one", "more")
            gone = [b"large%d" % i for i in range(200) if not writer.call("EXISTS", "large%d" % i)]
            check(gone, "something is evicted on " + server.name)
            reader.call("PING")
            told = sorted(key for push in reader.pushes for key in push[1])
            for key in gone:
                check(key in told, "%s was not told of %r" % (server.name, key))


@test()
def swapped_databases_make_everything_stale(context):
    context.sava_only("Redis tells nobody")
    reader, writer = context.client(proto=3), context.client()
    reader.call("CLIENT", "TRACKING", "ON")
    reader.call("GET", "k")
    writer.call("SWAPDB", "0", "1")
    reader.call("PING")
    eq(reader.pushes, [resp.Push([b"invalidate", resp.NULL])])


@test()
def reloaded_data_make_everything_stale(context):
    for server in (context.stock, context.sut):
        reader, writer = context.client(server, 3), context.client(server)
        reader.call("CLIENT", "TRACKING", "ON")
        reader.call("GET", "k")
        eq(writer.call("DEBUG", "RELOAD"), resp.OK)
        reader.call("PING")
        eq(reader.pushes, [resp.Push([b"invalidate", resp.NULL])])


@test()
def blocked_readers_track_what_they_are_served(context):
    reader, writer = context.client(proto=3), context.client()
    reader.call("CLIENT", "TRACKING", "ON")
    reader.send("XREAD", "BLOCK", "0", "STREAMS", "s", "$")
    until(lambda: context.sut.info_field("blocked_clients") == "1", what="the reader to wait")
    writer.call("XADD", "s", "1-1", "f", "v")
    check(not resp.is_error(reader.reply()), "the stream's entry")
    reader.call("PING")
    reader.pushes.clear()
    writer.call("XADD", "s", "1-2", "f", "v")
    reader.call("PING")
    eq(reader.pushes, [resp.Push([b"invalidate", [b"s"]])])


def cached_reader(address, seed, seconds, mode):
    """Reads through a cache and returns it at the end, with all messages taken."""
    rng = random.Random(seed)
    client = resp.Client(address, 20 * SLOW)
    client.call("HELLO", "3")
    client.call("CLIENT", "TRACKING", "ON", *mode)
    cache = {}

    def forget():
        for push in client.pushes:
            if push[1] == resp.NULL:
                cache.clear()
            else:
                for key in push[1]:
                    cache.pop(bytes(key), None)
        client.pushes.clear()

    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        key = b"k%d" % rng.randrange(20)
        if key in cache and rng.random() < 0.9:
            while client.waiting(0):
                client.pushes.append(client.recv())
            forget()
            continue
        # Frames in the order in which they came: a message before the reply is about older values.
        client.send("GET", key)
        while True:
            frame = client.recv()
            if not isinstance(frame, resp.Push):
                cache[key] = frame
                break
            client.pushes.append(frame)
            forget()
        if rng.random() < 0.2:
            client.call("SET", b"k%d" % rng.randrange(20), "r%d" % rng.random())
            forget()
    return client, cache, forget


def writer_of(address, seed, seconds):
    rng = random.Random(seed)
    with resp.Client(address, 20 * SLOW) as client:
        deadline = time.monotonic() + seconds
        number = 0
        while time.monotonic() < deadline:
            number += 1
            key = "k%d" % rng.randrange(20)
            roll = rng.random()
            if roll < 0.1:
                client.call("DEL", key)
            elif roll < 0.2:
                client.pipeline([("MULTI",), ("SET", key, "m%d" % number),
                                 ("SET", "k%d" % rng.randrange(20), "n%d" % number), ("EXEC",)])
            elif roll < 0.3:
                client.call("SET", key, "p%d" % number, "PX", "2")
            elif roll < 0.302:
                client.call("FLUSHALL")
            else:
                client.call("SET", key, "%d-%d" % (seed, number))


@test(timeout=60)
def no_cache_line_is_stale_when_all_is_told(context):
    """Readers with caches and writers on all threads; at the end every line is the server's."""
    address = context.sut.address
    seconds = max(1.5, context.options.seconds / 2)
    seed = context.rng("caches").randrange(1 << 30)
    marker = os.path.join(context.temp_dir(), "done")

    def reader(number, mode):
        client, cache, forget = cached_reader(address, seed + number, seconds, mode)
        # All others have come to their end: nothing changes any more but by time.
        with open("%s.%d" % (marker, number), "w"):
            pass
        until(lambda: all(os.path.exists("%s.%d" % (marker, i)) for i in range(7)), 30)
        time.sleep(0.01)  # what was set for two milliseconds is over
        with resp.Client(address, 20 * SLOW) as plain:
            plain.call("HELLO", "3")
            now = {b"k%d" % i: plain.call("GET", "k%d" % i) for i in range(20)}
        client.call("PING")
        forget()
        stale = {key: (value, now[key]) for key, value in cache.items() if now[key] != value}
        client.close()
        return [stale, len(cache)]

    def writer(number):
        # They end first, so that something is left in the caches.
        writer_of(address, seed + number, seconds - 0.3)
        with open("%s.%d" % (marker, number), "w"):
            pass
        return [{}, 0]

    results = run_workers(
        [lambda: reader(0, ()), lambda: reader(1, ()),
         lambda: reader(2, ("BCAST", "PREFIX", "k")), lambda: reader(3, ("BCAST",)),
         lambda: writer(4), lambda: writer(5), lambda: writer(6)],
        60,
    )
    for stale, _ in results:
        eq(stale, {}, "stale lines")
    check(sum(lines for _, lines in results) > 0, "no reader kept anything")


@test(timeout=120)
def node_redis_with_its_own_cache(context):
    """The program in node_redis_test.mjs; its package is installed on first use."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if not npm or not node:
        raise Skip("npm is not installed (Debian packages nodejs, npm)")
    if not os.path.isdir(os.path.join(HERE, "node_modules", "redis")):
        run([npm, "ci", "--no-audit", "--no-fund"], seconds=120, cwd=HERE)
    script = os.path.join(HERE, "node_redis_test.mjs")
    text = run([node, script, str(context.sut.port)], seconds=60)
    if not text.strip().endswith("all good"):
        raise Failure(text)
