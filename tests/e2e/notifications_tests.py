"""Keyspace notifications: the same commands, the same events in the same order as Redis."""

import cases
import resp
from harness import check, eq, test, until

# One line each: what is executed; the events are compared with the stock server's.
STRING_COMMANDS = """
SET a 1
SET a 2 EX 1000
SET a 3 NX
SET b 1 NX
SET a 4 KEEPTTL
SET a 5 XX GET
SETNX a x
SETNX c x
SETEX d 1000 x
PSETEX d 100000 x
GETSET a 6
GET a
GETEX a EX 100
GETEX a PERSIST
GETEX a PERSIST
GETEX a PXAT 1
GETDEL c
GETDEL nosuch
MSET a 1 b 2 a 3
MSETNX a 1 x 2
MSETNX x 1 y 2
APPEND a x
APPEND new x
SETRANGE a 1 y
SETRANGE a 0 ""
INCR n
INCRBY n 5
DECR n
DECRBY n 2
INCR a
INCRBYFLOAT f 1.5
SETBIT bit 5 1
GETBIT bit 5
BITFIELD bit SET u8 0 1
BITFIELD bit GET u8 0
BITFIELD bit INCRBY u8 0 1 GET u8 8
BITFIELD bit OVERFLOW FAIL INCRBY u1 0 5
BITOP AND dest a b
BITOP OR dest nosuch
BITOP OR dest nosuch
LCS a b
STRLEN a
MGET a b nosuch
"""
GENERIC_COMMANDS = """
MSET a 1 b 2 c 3 d 4
DEL a nosuch b
UNLINK c
DEL nosuch
RENAME d e
RENAMENX e f
SET g 1
RENAME f g
RENAMENX g g
COPY g h
COPY g h
COPY g h REPLACE
COPY g h DB 1
COPY g h DB 1 REPLACE
MOVE g 2
EXPIRE h 1000
EXPIRE h 1000 NX
PEXPIRE h 100000
EXPIREAT h 4102444800
PEXPIREAT h 4102444800000
PERSIST h
PERSIST h
EXPIRE h -1
SET i 1
PEXPIREAT i 1
RESTORE j 0 "\\x00\\x05hello\\n\\x00cr\\xdfve4 \\n"
RESTORE j 4102444800000 "\\x00\\x05hello\\n\\x00cr\\xdfve4 \\n" REPLACE ABSTTL
RESTORE j 1 "\\x00\\x05hello\\n\\x00cr\\xdfve4 \\n" REPLACE ABSTTL
TOUCH j
SET k 1
OBJECT ENCODING k
EXISTS k
MULTI
SET k 2
DEL k
SET l 1
EXPIRE l 100
EXEC
SADD s 1 2
SMOVE s t 1
SMOVE s t 2
SADD s 1
SMOVE s t 1
SWAPDB 0 3
SWAPDB 0 3
FLUSHDB
SET m 1
FLUSHALL
"""


def events_of(context, server, flags, lines, proto=2):
    """The events a server sends for these commands, in order, until the closing message."""
    with server.configured(notify_keyspace_events=flags):
        listener, client = context.client(server, proto), context.client(server)
        listener.send("PSUBSCRIBE", "__key*__:*", "end")
        listener.recv()
        listener.recv()
        for line in lines.strip().split("\n"):
            client.call(*cases.split_args(line.replace("\\\\", "\\")))
        client.call("SELECT", "0")
        client.call("PUBLISH", "end", "")
        events = []
        while True:
            event = listener.recv()
            if event[2] == b"end":
                break
            eq(event[0], b"pmessage")
            events.append(event[2] + b" " + event[3])
        listener.close()
        client.close()
    return events


def compare_events(context, flags, lines, proto=2):
    expected = events_of(context, context.stock, flags, lines, proto)
    actual = events_of(context, context.sut, flags, lines, proto)
    if expected == actual:
        return expected
    length = min(len(expected), len(actual))
    index = next((i for i in range(length) if expected[i] != actual[i]), length)
    context.note(
        "flags %s: event %d differs\n    stock %s\n    sut   %s"
        % (flags, index, expected[index : index + 4], actual[index : index + 4])
    )
    missing = sorted(set(expected) - set(actual))
    extra = sorted(set(actual) - set(expected))
    context.expect(not missing, "flags %s: missing %s" % (flags, missing[:12]))
    context.expect(not extra, "flags %s: not of Redis %s" % (flags, extra[:12]))
    return expected


@test()
def string_commands(context):
    events = compare_events(context, "KEA", STRING_COMMANDS)
    check(b"__keyevent@0__:incrby n" in events, "the stock server's events look odd")


@test()
def generic_commands(context):
    events = compare_events(context, "KEA", GENERIC_COMMANDS)
    check(b"__keyspace@0__:d rename_from" in events, "the stock server's events look odd")


@test()
def resp3_events(context):
    compare_events(context, "KEA", STRING_COMMANDS, proto=3)


@test()
def classes(context):
    """Each class of events alone, keyspace and keyevent alone, new keys and misses."""
    for flags in (
        "K$",
        "E$",
        "Kg",
        "Eg",
        "KE",
        "A",
        "KEx",
        "KEn",
        "KEm",
        "KEAn",
        "KEAm",
        "KEgn",
        "KEgsn",
        "",
    ):
        compare_events(context, flags, STRING_COMMANDS)
        compare_events(context, flags, GENERIC_COMMANDS)
        for server in (context.stock, context.sut):
            server.call("FLUSHALL")


@test()
def expired_events(context):
    """One event for each key, whether a read or the cycle finds it."""
    for server in (context.stock, context.sut):
        with server.configured(notify_keyspace_events="Ex"):
            listener, client = context.client(server), context.client(server)
            listener.send("SUBSCRIBE", "__keyevent@0__:expired")
            listener.recv()
            client.pipeline([("SET", "k%d" % i, "v", "PX", str(20 + i)) for i in range(50)])
            names = set()
            for _ in range(50):
                event = listener.recv()
                eq(event[:2], [b"message", b"__keyevent@0__:expired"])
                names.add(event[2])
            eq(len(names), 50, server.name)
            client.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
            try:
                client.call("SET", "lazy", "v", "PX", "10")
                until(lambda: client.call("GET", "lazy") == resp.NIL, what="the key's end")
                eq(listener.recv()[2], b"lazy")
            finally:
                client.call("DEBUG", "SET-ACTIVE-EXPIRE", "1")
            client.call("PUBLISH", "__keyevent@0__:expired", "end")
            eq(listener.recv()[2], b"end", "no further events")


@test()
def no_subscriber_no_harm(context):
    with context.sut.configured(notify_keyspace_events="KEA"):
        client = context.client()
        replies = client.pipeline([("SET", "k%d" % i, "v") for i in range(2000)])
        check(all(reply == resp.OK for reply in replies), "a SET failed")
