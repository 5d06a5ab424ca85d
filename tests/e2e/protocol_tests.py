"""Bytes on the wire: framing, malformed frames, inline commands, HELLO, RESET, CLIENT REPLY, QUIT.

Where Redis answers with exact bytes, both servers get the same bytes and must send the same ones.
"""

import socket

import resp
from harness import check, eq, test

CLOSING = {
    "multibulk length is no number": b"*abc\r\n",
    "multibulk length is empty": b"*\r\n",
    "multibulk length too large": b"*2147483648\r\n",
    "multibulk length beyond 64 bits": b"*99999999999999999999\r\n",
    "argument is inline": b"*1\r\nfoo\r\n",
    "argument is an integer": b"*2\r\n$3\r\nGET\r\n:1\r\n",
    "argument is missing": b"*1\r\n\r\n",
    "argument is an array": b"*1\r\n*1\r\n$4\r\nPING\r\n",
    "bulk length is no number": b"*1\r\n$abc\r\n",
    "bulk length is empty": b"*1\r\n$\r\n",
    "bulk length is negative": b"*1\r\n$-1\r\n",
    "bulk length over 512 MB": b"*1\r\n$536870913\r\n",
    "bulk length beyond 64 bits": b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$99999999999999999999\r\n",
    "bulk length with a blank": b"*1\r\n$ 4\r\nPING\r\n",
    "unbalanced double quote": b'SET "a\r\n',
    "unbalanced single quote": b"SET 'a\r\n",
    "no blank after a quote": b'GET "a"b\r\n',
    "inline too long": b"a" * 82000,
    "count string too long": b"*" + b"1" * 82000,
    "bulk count string too long": b"*1\r\n$" + b"1" * 82000,
    "HTTP POST": b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP Host": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "QUIT": b"QUIT\r\nPING\r\n",
    "QUIT as an array": b"*1\r\n$4\r\nquit\r\n*1\r\n$4\r\nPING\r\n",
    "commands before the error": b"PING\r\n*1\r\n$4\r\nPING\r\nSET a 1\r\n*1\r\n!\r\n",
}

# name: (bytes, number of replies)
STAYING = {
    "empty lines": (b"\r\n\r\n\n\r\nPING\r\n", 1),
    "empty arrays": (b"*0\r\n*-1\r\n*-10\r\nPING\r\n", 1),
    "bare newline": (b"PING\nPING\n", 2),
    "blanks": (b"   ECHO    hello   \r\n", 1),
    "tabs": (b"ECHO\thello\r\n", 1),
    "double quotes": (b'ECHO "a b\\x41\\n\\"\\\\c"\r\n', 1),
    "single quotes": (b"ECHO 'a \\' b\\n'\r\n", 1),
    "empty quoted": (b"ECHO \"\"\r\nECHO ''\r\n", 2),
    "quotes join": (b'ECHO a"b c"\r\n', 1),
    "inline and arrays mixed": (b"PING\r\n*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\nECHO x\r\n", 3),
    "empty command name": (b"*1\r\n$0\r\n\r\nPING\r\n", 2),
    "unknown commands": (b"nosuch a b\r\n*2\r\n$3\r\nnop\r\n$1\r\nx\r\nPING\r\n", 3),
    "length with leading zeros": (b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", 1),
    "GET without HTTP": (b"GET /\r\nPING\r\n", 2),
    "an inline just below the limit": (b"ECHO " + b"a" * 60000 + b"\r\n", 1),
}


DEBUG_TYPES = """string integer double null array set map attrib push true false bignum
verbatim""".split()


@test(timeout=60)
def malformed_frames(context):
    """The error texts of Redis; the connection is closed and nobody else is disturbed."""
    others = [context.client() for _ in range(3)]
    for name, data in CLOSING.items():
        answers = []
        for server in (context.stock, context.sut):
            client = context.client(server)
            try:
                client.raw(data)
            except resp.ConnectionClosed:
                pass
            check(
                client.closed_by_server(10),
                "%s: %s keeps the connection open" % (name, server.name),
            )
            answers.append(client.read_to_end())
        context.same(answers[1], answers[0], name)
    for other in others:
        eq(other.call("PING"), resp.PONG, "another connection")


@test()
def frames_that_are_fine(context):
    for name, (data, count) in STAYING.items():
        answers = []
        for server in (context.stock, context.sut):
            client = context.client(server)
            client.raw(data)
            answer = b"".join(client.recv_raw()[1] for _ in range(count))
            eq(client.call("PING"), resp.PONG, name)
            answers.append(answer)
        context.same(answers[1], answers[0], name)


@test()
def partial_frames_byte_by_byte(context):
    client = context.client()
    other = context.client()
    data = resp.encode("SET", "key", "va\r\nlue") + resp.encode("GET", "key") + b"PING\r\n"
    for i in range(len(data)):
        client.raw(data[i : i + 1])
        if i % 20 == 0:
            eq(other.call("PING"), resp.PONG, "another connection meanwhile")
    eq([client.recv() for _ in range(3)], [resp.OK, b"va\r\nlue", resp.PONG])


@test()
def partial_frames_at_random_places(context):
    rng = context.rng("partial")
    client = context.client()
    commands, expected = [], []
    for i in range(400):
        value = rng.randbytes(rng.choice([0, 1, 10, 100, 5000]))
        commands += [
            resp.encode("SET", "k%d" % (i % 7), value),
            resp.encode("GET", "k%d" % (i % 7)),
        ]
        expected += [resp.OK, value]
    data = b"".join(commands)
    place = 0
    while place < len(data):
        size = rng.choice([1, 2, 3, 17, 100, 4000, 20000])
        client.raw(data[place : place + size])
        place += size
    eq([client.recv() for _ in expected], expected)


@test(timeout=60)
def pipeline_of_ten_thousand(context):
    client = context.client()
    commands, expected = [], []
    for i in range(2500):
        commands += [("SET", "k%d" % i, i), ("GET", "k%d" % i), ("INCR", "n"), ("NOSUCH",)]
        expected += [resp.OK, str(i).encode(), i + 1, None]
    replies = client.pipeline(commands)
    for reply, want in zip(replies, expected):
        if want is None:
            check(resp.is_error(reply, "ERR unknown command 'NOSUCH'"), resp.show(reply))
        else:
            eq(reply, want)
    eq(len(replies), 10000)


@test(timeout=60)
def pipeline_without_reading(context):
    """The client sends 16 MB of ECHOs before it reads the first reply."""
    client = context.client()
    value = b"x" * 4096
    replies = client.pipeline([("ECHO", value)] * 4000)
    check(all(reply == value for reply in replies), "a wrong echo")
    eq(client.call("PING"), resp.PONG)


@test(timeout=90)
def values_of_64_megabytes(context):
    client = context.client(timeout=60)
    block = context.rng("big").randbytes(1 << 20)
    value = block * 64
    eq(client.call("SET", "big", value), resp.OK)
    eq(client.call("STRLEN", "big"), 64 << 20)
    check(client.call("GET", "big") == value, "the value came back changed")
    eq(client.call("GETRANGE", "big", (1 << 20) + 5, (1 << 20) + 14), block[5:15])
    eq(client.call("APPEND", "big", "tail"), (64 << 20) + 4)
    eq(client.call("GETRANGE", "big", -8, -1), block[-4:] + b"tail")
    eq(client.call("COPY", "big", "copy"), 1)
    eq(client.call("SETRANGE", "copy", 10, "changed"), (64 << 20) + 4)
    eq(client.call("GETRANGE", "big", 10, 16), block[10:17])
    check(client.call("MGET", "big", "missing")[0] == value + b"tail", "MGET changed the value")
    check(client.call("GETDEL", "big") == value + b"tail", "GETDEL changed the value")
    eq(client.call("DEL", "copy"), 1)
    key = b"k" * (1 << 20)
    eq(client.call("SET", key, "v"), resp.OK)
    eq(client.call("GET", key), b"v")
    eq(client.call("RANDOMKEY"), key)


@test()
def hello_reply(context):
    for proto in ("2", "3", None):
        stock, sut = context.pair()
        args = ("HELLO", proto) if proto else ("HELLO",)
        answers = []
        for client in (stock, sut):
            answer = client.call(*args)
            if proto == "3":
                check(isinstance(answer, resp.Map), "no map: %s" % resp.show(answer))
                answers.append(answer.dict())
            else:
                check(type(answer) is list, "no array: %s" % resp.show(answer))
                answers.append(dict(zip(answer[::2], answer[1::2])))
        for answer in answers:
            check(isinstance(answer.pop(b"id"), int), "the id is no integer")
            version = answer.pop(b"version")
            check(version.count(b".") == 2, "the version is %s" % version)
        eq(answers[1], answers[0], "HELLO %s" % proto)


@test()
def hello_options(context):
    client = context.client()
    reply = client.call("HELLO", "3", "AUTH", "default", "anything", "SETNAME", "tester")
    check(isinstance(reply, resp.Map), resp.show(reply))
    eq(client.call("CLIENT", "GETNAME"), b"tester")
    eq(client.call("GET", "missing"), resp.NULL)
    reply = client.call("HELLO", "2", "SETNAME", "other")
    check(type(reply) is list, resp.show(reply))
    eq(client.call("CLIENT", "GETNAME"), b"other")
    eq(client.call("GET", "missing"), resp.NIL)
    eq(client.call("HELLO", "9"), resp.Error(b"NOPROTO unsupported protocol version"))
    eq(client.call("GET", "missing"), resp.NIL, "a refused HELLO changes nothing")


@test()
def nulls_and_types_of_both_protocols(context):
    two, three = context.client(), context.client(proto=3)
    two.call("SET", "a", "1")
    eq(two.call("MGET", "a", "b"), [b"1", resp.NIL])
    eq(three.call("MGET", "a", "b"), [b"1", resp.NULL])
    for client, null in ((two, resp.NIL_ARRAY), (three, resp.NULL)):
        client.call("WATCH", "a")
        two.call("SET", "a", "1") if client is three else three.call("SET", "a", "1")
        client.call("MULTI")
        client.call("PING")
        eq(client.call("EXEC"), null, "an aborted EXEC")
    check(isinstance(three.call("CONFIG", "GET", "port"), resp.Map), "CONFIG GET gives no map")
    check(type(two.call("CONFIG", "GET", "port")) is list, "CONFIG GET gives no array")
    check(isinstance(three.call("INFO", "server"), resp.Verbatim), "INFO is no verbatim string")
    check(isinstance(three.call("CLIENT", "LIST"), resp.Verbatim), "CLIENT LIST is not verbatim")


@test()
def debug_protocol(context):
    """DEBUG PROTOCOL sends every type once; the strict client takes them all."""
    for proto in (2, 3):
        stock, sut = context.pair(proto)
        for kind in DEBUG_TYPES:
            answers = []
            for client in (stock, sut):
                client.send("DEBUG", "PROTOCOL", kind)
                value, raw = client.recv_raw()
                if isinstance(value, resp.Push):
                    raw += client.recv_raw()[1]
                answers.append(raw)
            context.same(answers[1], answers[0], "RESP%d %s" % (proto, kind))


@test()
def reset(context):
    for server in (context.stock, context.sut):
        client = context.client(server, 3)
        client.call("CLIENT", "SETNAME", "named")
        client.call("SELECT", "2")
        client.call("WATCH", "w")
        client.call("MULTI")
        eq(client.call("SET", "x", "1"), resp.QUEUED)
        eq(client.call("RESET"), resp.Status(b"RESET"))
        eq(client.call("EXEC"), resp.Error(b"ERR EXEC without MULTI"))
        eq(client.call("GET", "missing"), resp.NIL, "RESET returns to RESP2")
        eq(client.call("CLIENT", "GETNAME"), resp.NIL)
        check(b" db=0 " in client.call("CLIENT", "INFO"), "RESET selects database 0")
        client.call("SUBSCRIBE", "c")
        eq(client.call("RESET"), resp.Status(b"RESET"))
        eq(client.call("PUBSUB", "NUMSUB", "c"), [b"c", 0])
        client.call("MONITOR")
        eq(client.call("RESET"), resp.Status(b"RESET"))
        server.call("PING")
        eq(client.call("PING"), resp.PONG, "RESET ends MONITOR")


@test()
def client_reply(context):
    scripts = [
        "CLIENT REPLY OFF|SET a 1|PING|NOSUCH|CLIENT REPLY ON|PING",
        "CLIENT REPLY SKIP|SET a 2|PING",
        "CLIENT REPLY SKIP|CLIENT REPLY SKIP|PING|PING",
        "CLIENT REPLY ON|PING",
        "CLIENT REPLY SKIP|NOSUCH|PING",
        "CLIENT REPLY OFF|CLIENT REPLY SKIP|PING|CLIENT REPLY ON|GET a",
        "CLIENT REPLY OFF|MULTI|SET a 6|EXEC|CLIENT REPLY ON|GET a",
    ]
    for script in scripts:
        answers = []
        for server in (context.stock, context.sut):
            client = context.client(server)
            client.raw(b"".join(resp.encode(*line.split()) for line in script.split("|")))
            client.send("QUIT")
            answers.append(client.read_to_end())
        context.same(answers[1], answers[0], script)


@test()
def commands_after_an_error_in_a_pipeline(context):
    """An error reply ends neither the pipeline nor the connection."""
    client = context.client()
    replies = client.pipeline([("SET", "a", "x"), ("INCR", "a"), ("GET",), ("FOO",), ("GET", "a")])
    eq(replies[0], resp.OK)
    check(all(resp.is_error(reply, "ERR") for reply in replies[1:4]), "errors expected")
    eq(replies[4], b"x")


@test()
def half_closed_connection(context):
    """Everything sent before the client's end is answered."""
    client = context.client()
    client.raw(resp.encode("SET", "a", "1") * 50 + resp.encode("GET", "a"))
    client.sock.shutdown(socket.SHUT_WR)
    data = client.read_to_end()
    check(
        data in (b"+OK\r\n" * 50 + b"$1\r\n1\r\n", b""), "a part of the answers: %r" % data[-60:]
    )
    eq(context.client().call("GET", "a"), b"1", "the commands ran")


@test(timeout=60)
def slow_pipelines_of_half_closed_connections(context):
    """Slow commands leave others their turn, and all of them are run, in order, although their
    clients have said all they want to say."""
    client = context.client()
    for begin in range(0, 20_000, 1000):
        client.call("RPUSH", "list", *("%d" % n for n in range(begin, begin + 1000)))
    others = [context.client() for _ in range(6)]
    for number, other in enumerate(others):
        name = "n:%d" % number
        command = resp.encode("LPOS", "list", "none") + resp.encode("INCR", name)
        other.raw(command * 150 + b"LPOS list none\r\nINCR %s\r\n" % name.encode() * 20)
        other.sock.shutdown(socket.SHUT_WR)
    eq(client.call("PING"), resp.PONG)
    wanted = b"".join(b"$-1\r\n:%d\r\n" % n for n in range(1, 171))
    for number, other in enumerate(others):
        data = other.read_to_end()
        check(data == wanted or data == b"", "a part of the answers: %r" % data[-60:])
        eq(client.call("GET", "n:%d" % number), b"170", "the commands ran")
    eq(client.call("PING"), resp.PONG)
