"""Publish and subscribe in both protocols, shard channels, introspection, order for everyone."""

import re
import time

import resp
from harness import SLOW, check, eq, run_workers, test, until


def frame(proto, *items):
    """A pub/sub message as this protocol sends it."""
    items = [item.encode() if isinstance(item, str) else item for item in items]
    return resp.Push(items) if proto == 3 else items


def each(context):
    """Every combination of server and protocol."""
    return [(server, proto) for server in (context.stock, context.sut) for proto in (2, 3)]


def receive(client, proto, *frames):
    for expected in frames:
        eq(client.recv(), frame(proto, *expected))


@test()
def channels(context):
    for server, proto in each(context):
        client, other = context.client(server, proto), context.client(server)
        client.send("SUBSCRIBE", "a", "b", "a")
        receive(client, proto, ("subscribe", "a", 1), ("subscribe", "b", 2), ("subscribe", "a", 2))
        eq(other.call("PUBLISH", "a", "hello"), 1)
        eq(other.call("PUBLISH", "b", b"\x00\r\n\xff"), 1)
        eq(other.call("PUBLISH", "c", "nobody"), 0)
        receive(client, proto, ("message", "a", "hello"), ("message", "b", b"\x00\r\n\xff"))
        client.send("UNSUBSCRIBE", "a", "nosuch")
        receive(client, proto, ("unsubscribe", "a", 1), ("unsubscribe", "nosuch", 1))
        client.send("UNSUBSCRIBE")
        receive(client, proto, ("unsubscribe", "b", 0))
        null = resp.NULL if proto == 3 else resp.NIL
        client.send("UNSUBSCRIBE")
        eq(client.recv(), frame(proto, "unsubscribe", null, 0))
        client.send("PUNSUBSCRIBE")
        eq(client.recv(), frame(proto, "punsubscribe", null, 0))
        client.send("SUNSUBSCRIBE")
        eq(client.recv(), frame(proto, "sunsubscribe", null, 0))
        eq(client.call("PING"), resp.PONG, "an ordinary connection again")
        eq(other.call("PUBLISH", "a", "late"), 0)


@test()
def pushes_are_not_silenced(context):
    """CLIENT REPLY OFF and SKIP hold back replies, not what is pushed."""
    for server, proto in each(context):
        client, other = context.client(server, proto), context.client(server)
        client.send("CLIENT", "REPLY", "OFF")
        client.send("SUBSCRIBE", "a", "b")
        receive(client, proto, ("subscribe", "a", 1), ("subscribe", "b", 2))
        client.send("PSUBSCRIBE", "p*")
        client.send("SSUBSCRIBE", "s")
        receive(client, proto, ("psubscribe", "p*", 3), ("ssubscribe", "s", 1))
        eq(other.call("PUBLISH", "a", "x"), 1)
        receive(client, proto, ("message", "a", "x"))
        client.send("UNSUBSCRIBE", "b")
        receive(client, proto, ("unsubscribe", "b", 2))
        if proto == 3:
            client.send("PUBLISH", "a", "own")
            receive(client, proto, ("message", "a", "own"))
            client.raw(b"MULTI\r\nSUBSCRIBE c\r\nPING\r\nEXEC\r\n")
            receive(client, proto, ("subscribe", "c", 3))
            eq(client.call("CLIENT", "REPLY", "ON"), resp.OK, "nothing but pushes before")
            client.send("CLIENT", "REPLY", "SKIP")
            client.send("SUBSCRIBE", "d")
            receive(client, proto, ("subscribe", "d", 4))
            eq(client.call("PING"), resp.PONG)
        client.close()
        watcher = context.client(server)
        watcher.send("CLIENT", "REPLY", "OFF")
        watcher.send("MONITOR")
        until(lambda: b" cmd=monitor " in other.call("CLIENT", "LIST"), what="the monitor")
        other.call("PING")
        eq(watcher.call("RESET"), resp.Status(b"RESET"), "lines for monitors are no pushes")
        watcher.close()


@test()
def who_publishes_before_it_subscribes_hears_nothing(context):
    for server in (context.stock, context.sut):
        client = context.client(server, 3)
        client.send("PSUBSCRIBE", "c?")
        receive(client, 3, ("psubscribe", "c?", 1))
        client.raw(b"MULTI\r\nPUBLISH c 1\r\nSUBSCRIBE c\r\nPUBLISH c 2\r\nPUBLISH cc 3\r\n")
        client.raw(b"SUBSCRIBE cc\r\nEXEC\r\n")
        heard = b""  # Redis pushes into the middle of EXEC's array
        for end in (b"$1\r\n3\r\n", b"fin\r\n"):
            if end == b"fin\r\n":
                client.send("PING", "fin")
            while end not in heard:
                heard += client.sock.recv(4096)
        messages = re.findall(rb"message\r\n[^>]*?(cc?)\r\n\$1\r\n(\d)", heard)
        eq(messages, [(b"c", b"2"), (b"cc", b"3")])
        client.close()


@test()
def patterns(context):
    for server, proto in each(context):
        client, other = context.client(server, proto), context.client(server)
        client.send("PSUBSCRIBE", "news.*", "n?ws.[ab]")
        receive(client, proto, ("psubscribe", "news.*", 1), ("psubscribe", "n?ws.[ab]", 2))
        client.send("SUBSCRIBE", "news.a")
        receive(client, proto, ("subscribe", "news.a", 3))
        eq(other.call("PUBLISH", "news.a", "x"), 3)
        got = [client.recv() for _ in range(3)]
        eq(got[0], frame(proto, "message", "news.a", "x"))
        patterned = [
            frame(proto, "pmessage", "news.*", "news.a", "x"),
            frame(proto, "pmessage", "n?ws.[ab]", "news.a", "x"),
        ]
        check(sorted(got[1:], key=str) == sorted(patterned, key=str), resp.show(got))
        eq(other.call("PUBLISH", "news.c", "y"), 1)
        receive(client, proto, ("pmessage", "news.*", "news.c", "y"))
        eq(other.call("PUBSUB", "NUMPAT"), 2)
        client.send("PUNSUBSCRIBE", "news.*")
        receive(client, proto, ("punsubscribe", "news.*", 2))
        client.send("PUNSUBSCRIBE", "news.*")
        receive(client, proto, ("punsubscribe", "news.*", 2))
        client.send("PUNSUBSCRIBE")
        receive(client, proto, ("punsubscribe", "n?ws.[ab]", 1))
        eq(other.call("PUBSUB", "NUMPAT"), 0)
        client.close()


@test()
def shard_channels(context):
    for server, proto in each(context):
        client, other = context.client(server, proto), context.client(server)
        client.send("SSUBSCRIBE", "s1", "s2")
        receive(client, proto, ("ssubscribe", "s1", 1), ("ssubscribe", "s2", 2))
        client.send("SUBSCRIBE", "s1")
        receive(client, proto, ("subscribe", "s1", 1))
        eq(other.call("SPUBLISH", "s1", "x"), 1)
        receive(client, proto, ("smessage", "s1", "x"))
        eq(other.call("PUBLISH", "s1", "y"), 1)
        receive(client, proto, ("message", "s1", "y"))
        eq(sorted(other.call("PUBSUB", "SHARDCHANNELS")), [b"s1", b"s2"])
        eq(other.call("PUBSUB", "SHARDCHANNELS", "*2"), [b"s2"])
        eq(other.call("PUBSUB", "SHARDNUMSUB", "s1", "s3"), [b"s1", 1, b"s3", 0])
        eq(other.call("PUBSUB", "CHANNELS"), [b"s1"])
        client.send("SUNSUBSCRIBE", "s1")
        receive(client, proto, ("sunsubscribe", "s1", 1))
        client.send("SUNSUBSCRIBE")
        receive(client, proto, ("sunsubscribe", "s2", 0))
        eq(other.call("SPUBLISH", "s1", "z"), 0)
        client.close()


@test()
def introspection(context):
    for server in (context.stock, context.sut):
        clients = [context.client(server) for _ in range(3)]
        for index, client in enumerate(clients):
            for channel in ["all", "only%d" % index]:
                client.send("SUBSCRIBE", channel)
                client.recv()
        other = context.client(server)
        eq(sorted(other.call("PUBSUB", "CHANNELS")), [b"all", b"only0", b"only1", b"only2"])
        eq(sorted(other.call("PUBSUB", "CHANNELS", "only[01]")), [b"only0", b"only1"])
        eq(
            other.call("PUBSUB", "NUMSUB", "all", "only1", "none"),
            [b"all", 3, b"only1", 1, b"none", 0],
        )
        line = other.call("CLIENT", "LIST", "TYPE", "pubsub").decode().strip().split("\n")
        eq(len(line), 3)
        check(" sub=2 psub=0 " in line[0], line[0])
        stats = server.info("stats")["Stats"]
        eq((stats["pubsub_channels"], stats["pubsub_patterns"]), ("4", "0"))
        for client in clients:
            client.close()


@test()
def restrictions_in_subscribed_mode(context):
    commands = [
        ("GET", "a"),
        ("get", "a"),
        ("CONFIG", "GET", "port"),
        ("MULTI",),
        ("NOSUCH",),
        ("PUBLISH", "x", "y"),
        ("HELLO", "3"),
        ("GET",),
        ("PING",),
        ("PING", "text"),
        ("SELECT", "1"),
    ]
    for kind in ("SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"):
        answers = []
        for server in (context.stock, context.sut):
            client = context.client(server)
            client.send(kind, "a")
            answer = [client.recv()]
            for command in commands:
                client.send(*command)
                answer.append(client.recv())
            client.send("QUIT")
            answer.append(client.read_to_end())
            answers.append(answer)
        for command, expected, actual in zip([(kind,)] + commands + [("QUIT",)], *answers):
            context.same(actual, expected, "%s: %s" % (kind, " ".join(command)))


@test()
def subscribed_mode_of_resp3_has_no_restrictions(context):
    for server in (context.stock, context.sut):
        client = context.client(server, 3)
        client.send("SUBSCRIBE", "a")
        receive(client, 3, ("subscribe", "a", 1))
        eq(client.call("SET", "k", "v"), resp.OK)
        eq(client.call("GET", "k"), b"v")
        eq(client.call("PING"), resp.PONG)
        eq(client.call("PING", "x"), b"x")
        client.send("PUBLISH", "a", "to myself")
        got = [client.recv(), client.recv()]
        check(1 in got and frame(3, "message", "a", "to myself") in got, resp.show(got))
        eq(client.call("MULTI"), resp.OK)
        eq(client.call("GET", "k"), resp.QUEUED)
        eq(client.call("EXEC"), [b"v"])


@test()
def publish_within_a_transaction(context):
    for server, proto in each(context):
        client, other = context.client(server, proto), context.client(server)
        client.send("SUBSCRIBE", "a")
        receive(client, proto, ("subscribe", "a", 1))
        other.call("MULTI")
        other.call("PUBLISH", "a", "1")
        other.call("SPUBLISH", "a", "2")
        other.call("PUBLISH", "a", "3")
        eq(other.call("EXEC"), [1, 0, 1])
        receive(client, proto, ("message", "a", "1"), ("message", "a", "3"))
        client.close()


@test()
def subscribe_within_a_transaction(context):
    answers = []
    for server in (context.stock, context.sut):
        client = context.client(server)
        client.raw(b"MULTI\r\nSUBSCRIBE a b\r\nPING\r\nEXEC\r\nPING\r\nQUIT\r\n")
        answers.append(client.read_to_end())
    eq(answers[1], answers[0])


@test()
def subscribers_that_leave(context):
    for server in (context.stock, context.sut):
        other = context.client(server)
        for _ in range(20):
            with server.client() as client:
                client.send("SUBSCRIBE", "a")
                client.recv()
                client.send("PSUBSCRIBE", "a*")
                client.recv()
        deadline = time.monotonic() + 10 * SLOW
        while other.call("PUBLISH", "a", "x") != 0:
            check(time.monotonic() < deadline, "dead subscribers are kept")
        eq(other.call("PUBSUB", "CHANNELS"), [])
        eq(other.call("PUBSUB", "NUMPAT"), 0)


@test()
def thousands_of_channels(context):
    client, other = context.client(), context.client()
    names = ["channel:%d" % i for i in range(5000)]
    client.send("SUBSCRIBE", *names)
    for index, name in enumerate(names, 1):
        eq(client.recv(), frame(2, "subscribe", name, index))
    replies = other.pipeline([("PUBLISH", name, "x") for name in names])
    check(all(reply == 1 for reply in replies), "a message found no subscriber")
    got = {client.recv()[1] for _ in names}
    eq(len(got), 5000)


@test(timeout=60)
def same_order_for_all_subscribers(context):
    """Publishers at once; every subscriber sees each channel in the same order, and each
    publisher's messages in the order they were sent."""
    publishers, subscribers, count = 4, 6, 1200
    channels = ["c0", "c1", "c2"]
    clients = []
    for index in range(subscribers):
        client = context.client(proto=2 + index % 2)
        if index < 4:
            client.send("SUBSCRIBE", *channels)
            for _ in channels:
                client.recv()
        else:
            client.send("PSUBSCRIBE", "c*")
            client.recv()
        clients.append(client)

    def publish(number):
        with context.sut.client() as client:
            for start in range(0, count, 20):
                batch = [
                    ("PUBLISH", channels[(number + i) % 3], "%d:%d" % (number, i))
                    for i in range(start, start + 20)
                ]
                replies = client.pipeline(batch)
                check(all(reply == subscribers for reply in replies), "a subscriber was left out")

    run_workers([lambda n=n: publish(n) for n in range(publishers)], 40)
    seen = []
    for client in clients:
        frames = [client.recv()[-2:] for _ in range(publishers * count)]
        seen.append(frames)
    for frames in seen:
        for number in range(publishers):
            prefix = b"%d:" % number
            mine = [int(text.split(b":")[1]) for _, text in frames if text.startswith(prefix)]
            eq(mine, list(range(count)), "a publisher's own order")
    for channel in channels:
        orders = [[text for name, text in frames if name == channel.encode()] for frames in seen]
        check(all(order == orders[0] for order in orders), "order differs on " + channel)
