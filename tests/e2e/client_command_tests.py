"""CLIENT and MONITOR: who is connected, and what can be done to them."""

import re
import time

import resp
from harness import SLOW, check, eq, test, until


def parse_line(line):
    return dict(part.split("=", 1) for part in line.strip().split(" "))


def client_list(server, *arguments):
    text = bytes(server.call("CLIENT", "LIST", *arguments)).decode()
    return [parse_line(line) for line in text.split("\n") if line]


@test()
def list_fields(context):
    for proto in (2, 3):
        lines = []
        for server in (context.stock, context.sut):
            client = context.client(server, proto)
            client.call("CLIENT", "SETNAME", "the-name")
            client.call("SELECT", "3")
            text = bytes(client.call("CLIENT", "INFO")).decode()
            check(text.endswith("\n"), "CLIENT INFO ends with a newline")
            fields = parse_line(text)
            eq(fields["id"], str(client.call("CLIENT", "ID")))
            host, port = client.sock.getsockname()
            eq(fields["addr"], "%s:%d" % (host, port))
            eq(fields["laddr"], "127.0.0.1:%d" % server.port)
            eq(fields["cmd"], "client|info")
            lines.append(fields)
        missing = [name for name in lines[0] if name not in lines[1]]
        context.expect(not missing, "CLIENT INFO lacks " + " ".join(missing))
        for name in (
            "name",
            "db",
            "flags",
            "sub",
            "psub",
            "ssub",
            "multi",
            "qbuf",
            "user",
            "redir",
            "resp",
            "events",
        ):
            expected, actual = lines[0].get(name), lines[1].get(name)
            context.expect(expected == actual, "%s: stock %s, sut %s" % (name, expected, actual))
        if context.is_sava:
            context.expect(
                "lib-name" in lines[1] and "lib-ver" in lines[1], "no lib-name, lib-ver"
            )


@test()
def list_filters(context):
    for server in (context.stock, context.sut):
        ids = [context.client(server).call("CLIENT", "ID") for _ in range(3)]
        eq(ids, sorted(set(ids)), "identifiers grow")
        found = client_list(server, "ID", ids[0], ids[2], 999999)
        eq(sorted(int(fields["id"]) for fields in found), [ids[0], ids[2]])
        subscriber = context.client(server)
        subscriber.send("SUBSCRIBE", "c")
        subscriber.recv()
        found = client_list(server, "TYPE", "pubsub")
        eq(len(found), 1, server.name)
        eq(found[0]["flags"], "P")
        eq(found[0]["cmd"], "subscribe")
        normal = [int(fields["id"]) for fields in client_list(server, "TYPE", "normal")]
        check(set(ids) <= set(normal), "not all normal clients are listed")
        eq(client_list(server, "TYPE", "master"), [])


@test()
def kill_filters(context):
    for server in (context.stock, context.sut):
        killer = context.client(server)
        me = killer.call("CLIENT", "ID")

        def victim(subscribed=False):
            client = context.client(server)
            number = client.call("CLIENT", "ID")
            if subscribed:
                client.send("SUBSCRIBE", "c")
                client.recv()
            return client, number

        def gone(client, what):
            check(client.closed_by_server(10 * SLOW), "%s: %s did not work" % (server.name, what))

        client, number = victim()
        eq(killer.call("CLIENT", "KILL", "ID", number), 1)
        gone(client, "ID")
        client, _ = victim()
        address = "%s:%d" % client.sock.getsockname()
        eq(killer.call("CLIENT", "KILL", "ADDR", address), 1)
        gone(client, "ADDR")
        client, _ = victim()
        eq(killer.call("CLIENT", "KILL", "%s:%d" % client.sock.getsockname()), resp.OK)
        gone(client, "the old form")
        client, _ = victim(subscribed=True)
        other, number = victim()
        eq(killer.call("CLIENT", "KILL", "TYPE", "pubsub"), 1)
        gone(client, "TYPE")
        eq(
            killer.call("CLIENT", "KILL", "ID", number, "TYPE", "pubsub"),
            0,
            "filters are joined by and",
        )
        eq(other.call("PING"), resp.PONG)
        others = [victim()[0] for _ in range(3)]
        local = "127.0.0.1:%d" % server.port
        check(killer.call("CLIENT", "KILL", "LADDR", local) >= 4, "LADDR")
        for client in others + [other]:
            gone(client, "LADDR")
        eq(killer.call("CLIENT", "ID"), me, "SKIPME is the default")
        client, _ = victim()
        check(killer.call("CLIENT", "KILL", "USER", "default") >= 1, "USER")
        gone(client, "USER")
        eq(killer.call("CLIENT", "KILL", "ID", me, "SKIPME", "no"), 1)
        gone(killer, "SKIPME no")


@test()
def pause_write(context):
    for server in (context.stock, context.sut):
        admin, reader, writer = (context.client(server) for _ in range(3))
        eq(admin.call("CLIENT", "PAUSE", "100000", "WRITE"), resp.OK)
        eq(reader.call("GET", "a"), resp.NIL, "reads go on")
        writer.send("SET", "a", "1")
        check(not writer.waiting(0.2), "%s: a write was not paused" % server.name)
        eq(reader.call("GET", "a"), resp.NIL)
        counter = context.client(server)
        counter.send("PFCOUNT", "a")
        until(
            lambda: server.info_field("blocked_clients", "clients") == "2",
            what="the paused clients among the blocked ones of " + server.name,
        )
        eq(reader.call("MULTI"), resp.OK)
        eq(reader.call("GET", "a"), resp.QUEUED)
        eq(reader.call("EXEC"), [resp.NIL], "a transaction that only reads goes on")
        eq(admin.call("CLIENT", "UNPAUSE"), resp.OK)
        eq(writer.recv(), resp.OK)
        counter.recv()
        eq(reader.call("GET", "a"), b"1")


@test()
def keys_stay_while_writes_are_paused(context):
    for server in (context.start_stock(), context.start()):
        client = context.client(server)
        client.call("MULTI")
        client.pipeline([("SET", "a", "1", "PX", "10"), ("CLIENT", "PAUSE", "50000", "WRITE")])
        eq(client.call("EXEC"), [resp.OK, resp.OK])
        until(lambda: client.call("GET", "a") == resp.NIL, what="the end of the key")
        eq(server.info_field("expired_keys", "stats"), "0", server.name)
        eq(client.call("CLIENT", "UNPAUSE"), resp.OK)
        eq(client.call("GET", "a"), resp.NIL)
        eq(server.info_field("expired_keys", "stats"), "1", server.name)


@test()
def pause_all(context):
    for server in (context.stock, context.sut):
        admin, other = context.client(server), context.client(server)
        started = time.monotonic()
        eq(admin.call("CLIENT", "PAUSE", "1500"), resp.OK)
        other.send("PING")
        waiting = other.waiting(0.2)
        if time.monotonic() - started < 1.2:
            check(not waiting, "%s: a client was not paused" % server.name)
        eq(other.recv(), resp.PONG, "after the pause")


@test()
def pause_keeps_pipelines(context):
    """What was sent during the pause is executed in order afterwards."""
    admin, writer = context.client(), context.client()
    eq(admin.call("CLIENT", "PAUSE", "100000", "WRITE"), resp.OK)
    writer.raw(
        b"".join(resp.encode("APPEND", "s", str(i)) for i in range(10)) + resp.encode("GET", "s")
    )
    eq(admin.call("CLIENT", "UNPAUSE"), resp.OK)
    eq([writer.recv() for _ in range(11)][-1], b"0123456789")


@test()
def set_info(context):
    context.sava_only("CLIENT SETINFO is new in 7.2")
    client = context.client()
    eq(client.call("CLIENT", "SETINFO", "LIB-NAME", "tester"), resp.OK)
    eq(client.call("CLIENT", "SETINFO", "lib-ver", "1.2.3"), resp.OK)
    fields = parse_line(bytes(client.call("CLIENT", "INFO")).decode())
    eq((fields["lib-name"], fields["lib-ver"]), ("tester", "1.2.3"))
    error = resp.Error(b"ERR LIB-NAME cannot contain spaces, newlines or special characters.")
    eq(client.call("CLIENT", "SETINFO", "LIB-NAME", "a b"), error)
    eq(
        client.call("CLIENT", "SETINFO", "BOGUS", "x"),
        resp.Error(b"ERR Unrecognized option 'BOGUS'"),
    )
    arity = resp.Error(b"ERR wrong number of arguments for 'client|setinfo' command")
    eq(client.call("CLIENT", "SETINFO", "LIB-NAME"), arity)
    eq(client.call("CLIENT", "SETINFO", "LIB-NAME", ""), resp.OK)
    fields = parse_line(bytes(client.call("CLIENT", "INFO")).decode())
    eq(fields["lib-name"], "")
    eq(client.call("RESET"), resp.Status(b"RESET"))
    fields = parse_line(bytes(client.call("CLIENT", "INFO")).decode())
    eq(fields["lib-ver"], "1.2.3", "RESET keeps the library's version")


@test()
def no_touch(context):
    context.sava_only("CLIENT NO-TOUCH is new in 7.2")
    client = context.client()
    eq(client.call("CLIENT", "NO-TOUCH", "ON"), resp.OK)
    fields = parse_line(bytes(client.call("CLIENT", "INFO")).decode())
    check("T" in fields["flags"], "no flag T: " + fields["flags"])
    eq(client.call("CLIENT", "NO-TOUCH", "off"), resp.OK)
    fields = parse_line(bytes(client.call("CLIENT", "INFO")).decode())
    check("T" not in fields["flags"], "flag T stays: " + fields["flags"])
    eq(client.call("CLIENT", "NO-TOUCH", "maybe"), resp.Error(b"ERR syntax error"))
    arity = resp.Error(b"ERR wrong number of arguments for 'client|no-touch' command")
    eq(client.call("CLIENT", "NO-TOUCH"), arity)
    client.call("SET", "k", "v")
    dump = client.call("DUMP", "k")
    eq(client.call("RESTORE", "k", "0", dump, "REPLACE", "IDLETIME", "500"), resp.OK)
    client.call("CLIENT", "NO-TOUCH", "ON")
    eq(client.call("GET", "k"), b"v")
    check(client.call("OBJECT", "IDLETIME", "k") >= 500, "GET touched the key")
    eq(client.call("TOUCH", "k"), 1)
    check(client.call("OBJECT", "IDLETIME", "k") < 500, "TOUCH did not touch the key")


@test()
def no_evict(context):
    for server in (context.stock, context.sut):
        client = context.client(server)
        eq(client.call("CLIENT", "NO-EVICT", "ON"), resp.OK)
        flags = parse_line(bytes(client.call("CLIENT", "INFO")).decode())["flags"]
        check("e" in flags, "%s: no flag e: %s" % (server.name, flags))
        eq(client.call("CLIENT", "NO-EVICT", "OFF"), resp.OK)


@test()
def idle_time(context):
    """OBJECT IDLETIME, RESTORE IDLETIME and what touches a key."""
    for server in (context.stock, context.sut):
        client = context.client(server)
        client.call("SET", "k", "v")
        dump = client.call("DUMP", "k")
        client.call("RESTORE", "k", "0", dump, "REPLACE", "IDLETIME", "1000")
        for command in (("EXISTS", "k"), ("TTL", "k"), ("TYPE", "k"), ("OBJECT", "ENCODING", "k")):
            client.call(*command)
            idle = client.call("OBJECT", "IDLETIME", "k")
            check(1000 <= idle < 1100, "%s: after %s idle is %s" % (server.name, command[0], idle))
        client.call("GET", "k")
        check(client.call("OBJECT", "IDLETIME", "k") < 100, "%s: GET does not touch" % server.name)


MONITORED = [
    ("SET", "a", "1"),
    ("get", "a"),
    ("ECHO", 'quo"te\\ \x00\r\n\xff'),
    ("SELECT", "2"),
    ("MGET", "a", "b"),
    ("NOSUCH",),
    ("GET",),
    ("MULTI",),
    ("INCR", "a"),
    ("GET", "a"),
    ("EXEC",),
    ("EXEC",),
    ("MULTI",),
    ("NOSUCH",),
    ("EXEC",),
    ("MULTI",),
    ("EXEC", "too", "much"),
    ("AUTH", "default", "x"),
    ("HELLO", "2"),
    ("CONFIG", "GET", "port"),
    ("DEBUG", "SLEEP", "0"),
    ("CLIENT", "GETNAME"),
    ("PUBLISH", "c", "m"),
    ("FLUSHALL",),
    ("DEL", "a"),
    ("PING", "end"),
]


@test()
def monitor(context):
    transcripts = []
    for server in (context.stock, context.sut):
        watcher, client = context.client(server), context.client(server)
        eq(watcher.call("MONITOR"), resp.OK)
        for command in MONITORED:
            client.call(*command)
        lines = []
        while not lines or b'"end"' not in lines[-1]:
            line = bytes(watcher.recv())
            match = re.fullmatch(rb'(\d+\.\d{6}) \[(\d+) ([^\]]+)\] (".*)', line)
            check(match, "%s: odd line %r" % (server.name, line))
            if match[3] == b"%s:%d" % (b"127.0.0.1", client.sock.getsockname()[1]):
                lines.append(b"[%s] %s" % (match[2], match[4]))
        transcripts.append(lines)
        watcher.close()
    for line in transcripts[0]:
        context.expect(line in transcripts[1], "missing: %r" % line)
    for line in transcripts[1]:
        context.expect(line in transcripts[0], "not of Redis: %r" % line)
    context.expect(transcripts[0] == transcripts[1], "the order differs: %r" % transcripts[1])


@test()
def monitor_of_many(context):
    """Nobody's command is lost while several clients work."""
    watcher = context.client()
    eq(watcher.call("MONITOR"), resp.OK)
    clients = [context.client() for _ in range(4)]
    for number, client in enumerate(clients):
        client.raw(b"".join(resp.encode("SET", "k", "%d:%d" % (number, i)) for i in range(200)))
    for client in clients:
        for _ in range(200):
            eq(client.recv(), resp.OK)
    seen = set()
    while len(seen) < 800:
        line = bytes(watcher.recv())
        match = re.search(rb'"(\d:\d+)"$', line)
        if match:
            seen.add(match[1])
    context.client().call("PING")
    until(lambda: watcher.waiting(0.1), what="a further line")
