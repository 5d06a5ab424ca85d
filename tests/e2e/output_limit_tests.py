"""How much output a client can make the server hold: strangers, connections that wait to be closed,
replies that are over the limit while they are built, memory that runs out."""

import resource

import durability
import resp
from durability import durable, wait_idle
from harness import SLOW, check, eq, test, until

MEMBER = b"m" * 96


def disconnections(client):
    info = client.call("INFO", "stats").decode()
    return int(info.split("client_output_buffer_limit_disconnections:")[1].split("\r\n")[0])


def status_kb(server, field):
    with open("/proc/%d/status" % server.process.pid) as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1])
    raise AssertionError("no %s" % field)


def sent_until_stuck(sock, data, most):
    """Sends without reading, over and over; how many bytes were taken. -1: closed by the server."""
    sock.settimeout(1.0 * SLOW)
    total = 0
    while total < most:
        try:
            total += sock.send(data)
        except TimeoutError:
            return total
        except (BrokenPipeError, ConnectionResetError):
            return -1
    return total


@test(timeout=60)
def a_stranger_that_does_not_read_is_closed(context):
    server = context.start("--requirepass", "secret")
    friend = context.client(server)
    eq(friend.call("AUTH", "secret"), resp.OK)
    for line in (b"PING\r\n", b"*1\r\n$4\r\nPING\r\n", b"NOSUCHCOMMAND with words\r\n"):
        before = disconnections(friend)
        stranger = context.client(server, rcvbuf=4096)
        result = sent_until_stuck(stranger.sock, line * 1000, 200 << 20)
        eq(result, -1, "%r: not closed" % line)
        until(lambda: disconnections(friend) == before + 1, what="a counted disconnection")
    patient = context.client(server)
    replies = patient.pipeline([("GET", "a")] * 100)
    check(all(resp.is_error(reply, "NOAUTH") for reply in replies), "who reads is answered")


@test(timeout=60)
def nothing_is_read_from_a_connection_to_be_closed(context):
    """After a protocol error or QUIT, while earlier answers are not taken yet."""
    server = context.start()
    other = context.client(server)
    eq(other.call("SET", "big", b"x" * (8 << 20)), resp.OK)
    for last, answer in ((b"*1\r\n!\r\n", b"-ERR Protocol error"), (b"QUIT\r\n", b"+OK")):
        client = context.client(server, rcvbuf=4096)
        client.raw(resp.encode("GET", "big") * 4 + last)
        taken = sent_until_stuck(client.sock, b"x" * 65536, 64 << 20)
        check(0 <= taken < 32 << 20, "%r: %d bytes were read on" % (last, taken))
        client.close()
        client = context.client(server, rcvbuf=4096)
        client.raw(resp.encode("GET", "big") * 4 + last)
        for _ in range(4):
            eq(len(client.reply()), 8 << 20)
        check(client.read_bytes(len(answer)) == answer, "the last answer to %r" % last)
        check(client.closed_by_server(20 * SLOW), "%r: not closed" % last)


def over_limit(context, server, other, *commands):
    """Runs them on a connection that is closed for it; how much the process grew at most, in MB."""
    before = status_kb(server, "VmHWM")
    client = context.client(server)
    count = disconnections(other)
    client.raw(b"".join(resp.encode(*command) for command in commands))
    until(lambda: disconnections(other) == count + 1, 20, "a disconnection by %s" % (commands[-1],))
    check(client.closed_by_server(20 * SLOW), "%s: not closed" % (commands[-1],))
    return (status_kb(server, "VmHWM") - before) >> 10


@test(timeout=120)
def a_reply_over_the_limit_is_not_built(context):
    context.no_sanitizer("a sanitizer keeps memory that was freed")
    server = context.start("--client-output-buffer-limit", "normal 16mb 0 0")
    other = context.client(server)
    other.pipeline([("SADD", "set", MEMBER + b"%04d" % n) for n in range(1000)])
    other.pipeline([("HSET", "hash", MEMBER + b"%04d" % n, "v") for n in range(1000)])
    other.pipeline([("ZADD", "zset", n, MEMBER + b"%04d" % n) for n in range(1000)])
    other.pipeline([("RPUSH", "list", MEMBER + b"%04d" % n) for n in range(10000)])
    # So many that they would not end within this test.
    many = "-%d" % 10**12
    for command in (
        ("SRANDMEMBER", "set", many),
        ("HRANDFIELD", "hash", many),
        ("HRANDFIELD", "hash", many, "WITHVALUES"),
        ("ZRANDMEMBER", "zset", many),
        ("ZRANDMEMBER", "zset", many, "WITHSCORES"),
    ):
        grown = over_limit(context, server, other, command)
        check(grown < 64, "%s took %d MB" % (command[0], grown))
    ranges = [("LRANGE", "list", "0", "-1")] * 500
    grown = over_limit(context, server, other, ("MULTI",), *ranges, ("INCR", "ran"), ("EXEC",))
    check(grown < 64, "EXEC took %d MB" % grown)
    eq(other.call("GET", "ran"), b"1", "what EXEC writes is written")
    eq(len(other.call("LRANGE", "list", "0", "-1")), 10000, "below the limit")


@test(timeout=120)
def out_of_memory_ends_one_command(context):
    """With little address space left: the client is closed or gets an error, all else goes on."""
    context.sava_only("Redis ends itself")
    context.no_sanitizer("a sanitizer needs the address space itself")
    server = context.start()
    other = context.client(server)
    other.pipeline([("SADD", "set", MEMBER + b"%04d" % n) for n in range(1000)])
    room = (status_kb(server, "VmSize") << 10) + (400 << 20)
    resource.prlimit(server.process.pid, resource.RLIMIT_AS, (room, -1))
    over_limit(context, server, other, ("SRANDMEMBER", "set", "-100000000"))
    refused = other.call("SETRANGE", "big", "536870000", "x")
    check(resp.is_error(refused, "OOM"), resp.show(refused))
    eq(other.call("EXISTS", "big"), 0)
    eq(other.call("MULTI"), resp.OK)
    eq(other.call("SETRANGE", "big", "536870000", "x"), resp.Status(b"QUEUED"))
    eq(other.call("SET", "small", "1"), resp.Status(b"QUEUED"))
    replies = other.call("EXEC")
    check(resp.is_error(replies[0], "OOM") and replies[1] == resp.OK, resp.show(replies))
    greedy = context.client(server)
    try:
        greedy.raw(resp.encode("SET", "big", b"x" * (500 << 20)))
    except (resp.ConnectionClosed, OSError):
        pass
    check(greedy.closed_by_server(30 * SLOW), "there is no memory for its query")
    eq(other.call("GET", "small"), b"1")
    eq(len(other.call("SMEMBERS", "set")), 1000)


@test(timeout=60)
def the_soft_limit_needs_no_traffic(context):
    """The client neither reads nor sends, and nobody else does anything for it."""
    server = context.start("--client-output-buffer-limit", "normal 0 1mb 1")
    other = context.client(server)
    eq(other.call("SET", "big", b"x" * (16 << 20)), resp.OK)
    quiet = context.client(server, rcvbuf=4096)
    number = quiet.call("CLIENT", "ID")
    quiet.send("GET", "big")
    until(lambda: other.call("CLIENT", "LIST", "ID", number) == b"", 20, "the quiet client's end")
    eq(disconnections(other), 1)


@test(timeout=120)
def out_of_memory_leaves_the_log_true(context):
    """Values of many sizes, for which memory ends at one place or another on their way to the log:
    the server goes on, and a restart has what the memory had."""
    context.sava_only("Redis ends itself")
    context.no_sanitizer("a sanitizer needs the address space itself")
    server = durable(context, "--save", "", "--appendonly", "yes", "--appendfsync", "everysec")
    other = context.client(server)
    room = (status_kb(server, "VmSize") << 10) + (300 << 20)
    resource.prlimit(server.process.pid, resource.RLIMIT_AS, (room, -1))
    eq(other.call("SET", "kept", "1"), resp.OK)
    for megabytes in range(20, 60, 2):
        client = context.client(server)
        try:
            reply = client.call("SET", "big", b"x" * (megabytes << 20))
            check(reply == resp.OK or resp.is_error(reply), resp.show(reply)[:100])
            client.call("DEL", "big")
        except (resp.ConnectionClosed, ConnectionError):
            pass
        client.close()
        check(server.process.poll() is None, "ended by a value of %d MB" % megabytes)
        eq(other.call("GET", "kept"), b"1", "after %d MB" % megabytes)
    resource.prlimit(server.process.pid, resource.RLIMIT_AS, (-1, -1))
    until(lambda: other.call("SET", "last", "1") == resp.OK, 30, "a write that is accepted")
    wait_idle(server)
    other.call("DEL", "big")
    expected = durability.contents(server)
    server.kill()
    eq(durability.contents(server.restart()), expected)


@test(timeout=60)
def loading_has_no_limit(context):
    """The answers of a log that is replayed go nowhere."""
    context.sava_only("Redis's replay has no output")
    server = durable(context, "--save", "", "--appendonly", "yes")
    with server.client() as client:
        client.pipeline([("RPUSH", "list", n) for n in range(1000)])
    server.kill()
    server.options += ["--client-output-buffer-limit", "normal 100 0 0"]
    server.restart()
    eq(context.client(server).call("LLEN", "list"), 1000)
