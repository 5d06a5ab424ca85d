"""Limits and doors: passwords, maxclients, timeout, buffers, lengths, unix socket, addresses."""

import os
import socket
import stat
import time

import resp
from harness import SLOW, Server, Skip, check, eq, test, until


@test()
def password(context):
    """Both servers with requirepass: every answer to the stranger and to the friend is the same."""
    servers = [
        context.start_stock("--requirepass", "secret"),
        context.start("--requirepass", "secret"),
    ]
    for proto in (2, 3):
        clients = [context.client(server) for server in servers]
        lines = [
            ("PING",),
            ("GET", "a"),
            ("NOSUCH",),
            ("GET",),
            ("COMMAND",),
            ("MULTI",),
            ("EXEC",),
            ("CLIENT", "ID"),
            ("HELLO", "3"),
            ("HELLO", "3", "SETNAME", "x"),
            ("HELLO", "3", "AUTH", "default", "wrong"),
            ("AUTH", "wrong"),
            ("AUTH", "default", "wrong"),
            ("AUTH", "nosuch", "secret"),
            ("AUTH", ""),
            ("PING",),
            ("RESET",),
            ("AUTH", "secret"),
            ("PING",),
            ("RESET",),
            ("PING",),
            ("AUTH", "default", "secret"),
            ("GET", "a"),
            ("RESET",),
            ("HELLO", str(proto), "AUTH", "default", "secret", "SETNAME", "friend"),
            ("CLIENT", "GETNAME"),
            ("CONFIG", "GET", "requirepass"),
            ("ACL", "WHOAMI"),
            ("AUTH", "wrong"),
            ("PING",),
        ]
        for line in lines:
            expected, actual = (client.call(*line) for client in clients)
            if line[0] == "HELLO" and not resp.is_error(expected):
                check(not resp.is_error(actual), "HELLO: " + resp.show(actual))
                continue
            context.same(actual, expected, " ".join(line))


@test()
def password_at_run_time(context):
    server = context.start()
    old = context.client(server)
    eq(old.call("CONFIG", "SET", "requirepass", "secret"), resp.OK)
    eq(old.call("PING"), resp.PONG, "a connection that was there stays")
    new = context.client(server)
    eq(new.call("PING"), resp.Error(b"NOAUTH Authentication required."))
    eq(new.call("AUTH", "secret"), resp.OK)
    eq(new.call("CONFIG", "SET", "requirepass", ""), resp.OK)
    eq(context.client(server).call("PING"), resp.PONG)


@test()
def strangers_cannot_send_large_requests(context):
    frames = [
        b"*11\r\n",
        b"*1\r\n$16385\r\n",
        b"*10\r\n$3\r\nGET\r\n$16385\r\n",
    ]
    servers = [context.start_stock("--requirepass", "s"), context.start("--requirepass", "s")]
    for frame in frames:
        answers = []
        for server in servers:
            client = context.client(server)
            client.raw(frame)
            answers.append(client.read_to_end())
        context.same(answers[1], answers[0], repr(frame))


@test()
def maxclients(context):
    for server in (context.start_stock("--maxclients", "8"), context.start("--maxclients", "8")):
        clients = []
        for _ in range(8):
            client = context.client(server)
            check(client.call("PING") == resp.PONG, "refused too early")
            clients.append(client)
        extra = context.client(server)
        eq(extra.read_to_end(), b"-ERR max number of clients reached\r\n", server.name)
        eq(clients[0].call("PING"), resp.PONG)
        rejected = clients[0].call("INFO", "stats")
        check(b"rejected_connections:1\r\n" in rejected, "rejected_connections is not counted")
        clients.pop().close()

        def accepted():
            try:
                with server.client() as again:
                    return again.call("PING") == resp.PONG
            except (resp.ConnectionClosed, ConnectionError):
                return False

        until(accepted, what="a place freed by a client that left")
        eq(clients[0].call("CONFIG", "SET", "maxclients", "20"), resp.OK)
        more = [context.client(server) for _ in range(8)]
        check(all(c.call("PING") == resp.PONG for c in more), "maxclients cannot be raised")


@test(timeout=60)
def idle_timeout(context):
    server = context.start()
    idle = context.client(server)
    eq(idle.call("PING"), resp.PONG)
    subscriber = context.client(server)
    subscriber.call("SUBSCRIBE", "news")
    eq(server.call("CONFIG", "SET", "timeout", "1"), resp.OK)
    deadline = time.monotonic() + 30 * SLOW
    while not idle.closed_by_server(0.2):
        check(time.monotonic() < deadline, "an idle connection is not closed")
        server.call("PING")
    eq(server.call("PUBLISH", "news", "x"), 1, "a subscriber is not idle")
    eq(subscriber.recv(), [b"message", b"news", b"x"])
    eq(server.call("CONFIG", "SET", "timeout", "0"), resp.OK)


@test(timeout=60)
def bulk_length_limit(context):
    """proto-max-bulk-len bounds arguments and what commands build."""
    answers = []
    for server in (context.start_stock(), context.start()):
        answer = []
        client = context.client(server)
        answer.append(client.call("CONFIG", "SET", "proto-max-bulk-len", "1mb"))
        answer.append(client.call("SET", "a", b"x" * (1 << 20)))
        answer.append(client.call("APPEND", "a", "y"))
        answer.append(client.call("SETRANGE", "a", 1 << 20, "y"))
        answer.append(client.call("SETRANGE", "a", (1 << 20) - 1, "y"))
        answer.append(client.call("SETRANGE", "new", 1 << 20, "y"))
        answer.append(client.call("SETBIT", "bit", (1 << 23), "1"))
        answer.append(client.call("SETBIT", "bit", (1 << 23) - 1, "1"))
        answer.append(client.call("BITFIELD", "bit", "SET", "u8", (1 << 23) - 7, "1"))
        answer.append(client.call("STRLEN", "a"))
        too_long = context.client(server)
        too_long.raw(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1048577\r\n")
        answer.append(too_long.read_to_end())
        answers.append(answer)
    for number, (expected, actual) in enumerate(zip(*answers)):
        context.same(actual, expected, "step %d" % number)


@test(timeout=300)
def keys_and_values_of_512_mb(context):
    """Document S3: keys and values have up to 512 MB. Takes 2 GB, so only with --long."""
    if not context.options.long:
        raise Skip("512 MB only with --long")
    server = context.start("--save", "", "--appendonly", "no")
    client = context.client(server)
    size = 512 * 1024 * 1024
    eq(client.call("SET", "value", b"v" * size), resp.OK, "a value of 512 MB")
    eq(client.call("STRLEN", "value"), size)
    eq(client.call("GETRANGE", "value", str(size - 2), "-1"), b"vv")
    check(resp.is_error(client.call("APPEND", "value", "v")), "one byte more is refused")
    eq(client.call("DEL", "value"), 1)
    eq(client.call("SET", b"k" * size, "1"), resp.OK, "a key of 512 MB")
    eq(client.call("GET", b"k" * size), b"1")


@test(timeout=60)
def query_buffer_limit(context):
    """A request that never ends is cut off; nobody else notices."""
    for server in (context.start_stock(), context.start()):
        other = context.client(server)
        eq(other.call("CONFIG", "SET", "client-query-buffer-limit", "1mb"), resp.OK)
        greedy = context.client(server)
        try:
            greedy.raw(b"*2\r\n$3\r\nGET\r\n$50000000\r\n" + b"x" * 4000000)
        except (resp.ConnectionClosed, TimeoutError, OSError):
            pass
        check(greedy.closed_by_server(20 * SLOW), "%s reads on and on" % server.name)
        eq(other.call("PING"), resp.PONG)


@test(timeout=90)
def slow_subscriber_is_dropped(context):
    """It is cut off at its limit; the quick one gets every message, publishers never wait."""
    server = context.start()
    limit = "pubsub 1mb 0 0"
    eq(server.call("CONFIG", "SET", "client-output-buffer-limit", limit), resp.OK)
    slow = context.client(server, rcvbuf=4096)
    quick = context.client(server)
    for client in (slow, quick):
        client.send("SUBSCRIBE", "news")
        eq(client.recv(), [b"subscribe", b"news", 1])
    publisher = context.client(server)
    message = b"m" * 65536
    count = 0
    receivers = 2
    while receivers == 2:
        receivers = publisher.call("PUBLISH", "news", message)
        count += 1
        reply = quick.recv()
        check(reply == [b"message", b"news", message], "the quick subscriber got something else")
        check(count < 3000, "the slow subscriber holds %d MB" % (count // 16))
    eq(receivers, 1)
    check(slow.closed_by_server(20 * SLOW), "the slow subscriber is still connected")
    eq(publisher.call("PUBSUB", "NUMSUB", "news"), [b"news", 1])


@test(timeout=60)
def slow_reader_of_big_replies(context):
    """client-output-buffer-limit normal: a client that asks and never reads is dropped."""
    server = context.start()
    other = context.client(server)
    eq(other.call("SET", "big", b"x" * (1 << 20)), resp.OK)
    eq(other.call("CONFIG", "SET", "client-output-buffer-limit", "normal 8mb 0 0"), resp.OK)
    greedy = context.client(server, rcvbuf=4096)
    number = greedy.call("CLIENT", "ID")
    try:
        greedy.raw(resp.encode("GET", "big") * 64)
    except resp.ConnectionClosed:
        pass
    until(lambda: other.call("CLIENT", "LIST", "ID", number) == b"", 20, "the greedy client's end")
    eq(other.call("STRLEN", "big"), 1 << 20)


@test()
def unix_socket(context):
    folder = context.temp_dir()
    path = os.path.join(folder, "sock")
    server = context.start("--unixsocket", path, "--unixsocketperm", "700")
    mode = os.stat(path).st_mode
    check(stat.S_ISSOCK(mode), "no socket file")
    eq(stat.S_IMODE(mode), 0o700, "unixsocketperm")
    with resp.Client(path) as client:
        eq(client.call("SET", "a", "1"), resp.OK)
        eq(context.client(server).call("GET", "a"), b"1")
        check(b"flags=U" in client.call("CLIENT", "LIST"), "no flag U in CLIENT LIST")
        check(path.encode() in client.call("CLIENT", "INFO"), "no path in CLIENT INFO")
    eq(server.terminate(), 0)
    check(not os.path.exists(path), "the socket file is left behind")


@test()
def only_a_unix_socket(context):
    """port 0 switches TCP off."""
    path = os.path.join(context.temp_dir(), "sock")
    server = Server(context.options.server, ("--unixsocket", path), context.options.threads)
    context.at_end(server.remove_files)
    context.at_end(server.stop)
    server.spawn(server.command_line(0))

    def connect():
        try:
            return resp.Client(path)
        except OSError:
            return None

    with until(connect, 20, "a connection over the socket file") as client:
        eq(client.call("PING"), resp.PONG)
        eq(client.call("CONFIG", "GET", "port"), [b"port", b"0"])


@test()
def several_addresses(context):
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        raise Skip("this machine has no ::1") from None
    server = context.start("--bind", "127.0.0.1", "-::1")
    for host in ("127.0.0.1", "::1"):
        with resp.Client((host, server.port)) as client:
            eq(client.call("PING"), resp.PONG, host)
    eq(context.client(server).call("CONFIG", "GET", "bind"), [b"bind", b"127.0.0.1 -::1"])


@test()
def protected_mode_lets_loopback_in(context):
    server = context.start("--protected-mode", "yes", "--bind", "127.0.0.1")
    client = context.client(server)
    eq(client.call("SET", "a", "1"), resp.OK)
    eq(client.call("CONFIG", "GET", "protected-mode"), [b"protected-mode", b"yes"])


@test()
def databases_setting(context):
    server = context.start("--databases", "3")
    client = context.client(server)
    eq(client.call("SELECT", "2"), resp.OK)
    eq(client.call("SELECT", "3"), resp.Error(b"ERR DB index is out of range"))
    eq(client.call("CONFIG", "GET", "databases"), [b"databases", b"3"])
