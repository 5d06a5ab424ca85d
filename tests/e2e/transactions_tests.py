"""Transactions beyond the tables in cases/connection.txt: watches and time, size, disconnection."""

import resp
from harness import check, eq, test, until


def both(context):
    return (context.stock, context.sut)


@test()
def watched_key_that_expires_aborts(context):
    for server in both(context):
        client, other = context.client(server), context.client(server)
        client.pipeline([("SET", "k", "v", "PX", "250"), ("WATCH", "k")])
        until(lambda: other.call("EXISTS", "k") == 0, what="the end of the key")
        client.call("MULTI")
        client.call("PING")
        eq(client.call("EXEC"), resp.NIL_ARRAY, server.name)


@test()
def watched_key_that_expires_unseen_aborts(context):
    """The same when nothing has touched the key since it expired and the cycle is off."""
    for server in both(context):
        client, other = context.client(server), context.client(server)
        other.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        try:
            client.pipeline([("SET", "k", "v", "PX", "250"), ("WATCH", "k")])
            other.call("SET", "later", "v", "PX", "300")
            until(lambda: other.call("EXISTS", "later") == 0, what="the end of the later key")
            client.call("MULTI")
            client.call("PING")
            eq(client.call("EXEC"), resp.NIL_ARRAY, server.name)
        finally:
            other.call("DEBUG", "SET-ACTIVE-EXPIRE", "1")


@test()
def key_expired_before_watch_does_not_abort(context):
    for server in both(context):
        client, other = context.client(server), context.client(server)
        other.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        try:
            client.call("SET", "k", "v", "PX", "20")
            other.call("SET", "later", "v", "PX", "60")
            until(lambda: other.call("EXISTS", "later") == 0, what="the end of the later key")
            client.call("WATCH", "k")
            eq(other.call("GET", "k"), resp.NIL)
            client.call("MULTI")
            client.call("PING")
            eq(client.call("EXEC"), [resp.PONG], server.name)
        finally:
            other.call("DEBUG", "SET-ACTIVE-EXPIRE", "1")


@test()
def an_expired_key_that_comes_by_swapdb_does_not_abort(context):
    for server in both(context):
        client, other = context.client(server), context.client(server)
        other.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        try:
            client.pipeline([("FLUSHALL",), ("SET", "k", "v", "PX", "20")])
            other.call("SET", "later", "v", "PX", "60")
            until(lambda: other.call("EXISTS", "later") == 0, what="the end of the later key")
            client.pipeline([("SELECT", "1"), ("WATCH", "k"), ("SWAPDB", "0", "1")])
            client.call("MULTI")
            client.call("PING")
            eq(client.call("EXEC"), [resp.PONG], server.name)
        finally:
            other.call("DEBUG", "SET-ACTIVE-EXPIRE", "1")


@test()
def a_watched_key_that_expires_before_swapdb_or_flushall_aborts(context):
    for server in both(context):
        for change in (("SWAPDB", "0", "1"), ("FLUSHALL",)):
            client, other = context.client(server), context.client(server)
            other.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
            try:
                other.pipeline([("FLUSHALL",), ("SELECT", "1"), ("SET", "k", "v", "PX", "10")])
                other.pipeline([("SELECT", "0"), ("SET", "k", "v", "PX", "400")])
                client.call("WATCH", "k")
                other.call("SET", "later", "v", "PX", "500")
                until(lambda: other.call("EXISTS", "later") == 0, what="the end of the later key")
                other.call(*change)
                client.call("MULTI")
                client.call("PING")
                eq(client.call("EXEC"), resp.NIL_ARRAY, server.name + " " + change[0])
            finally:
                other.call("DEBUG", "SET-ACTIVE-EXPIRE", "1")


@test()
def smove_of_what_is_there_already_does_not_abort(context):
    for server in both(context):
        client, other = context.client(server), context.client(server)
        client.pipeline([("SADD", "from", "a", "b"), ("SADD", "to", "a"), ("WATCH", "to")])
        eq(other.call("SMOVE", "from", "to", "a"), 1)
        client.pipeline([("MULTI",), ("SCARD", "to")])
        eq(client.call("EXEC"), [1], server.name)
        client.call("WATCH", "to")
        eq(other.call("SMOVE", "from", "to", "b"), 1)
        client.pipeline([("MULTI",), ("SCARD", "to")])
        eq(client.call("EXEC"), resp.NIL_ARRAY, server.name)


@test()
def disconnection_discards(context):
    for server in both(context):
        client, other = context.client(server), context.client(server)
        client.call("SET", "k", "old")
        client.call("MULTI")
        client.call("SET", "k", "new")
        client.close()
        eq(other.call("GET", "k"), b"old")


@test()
def queued_commands_are_counted(context):
    for server in both(context):
        client = context.client(server)
        number = client.call("CLIENT", "ID")
        other = context.client(server)

        def field(name):
            line = other.call("CLIENT", "LIST", "ID", number).decode()
            return dict(part.split("=", 1) for part in line.split())[name]

        eq(field("multi"), "-1")
        client.call("MULTI")
        eq(field("multi"), "0")
        client.call("SET", "a", "1")
        client.call("GET", "a")
        eq(field("multi"), "2")
        check("x" in field("flags"), "no flag x in a transaction: " + field("flags"))
        client.call("EXEC")
        eq(field("multi"), "-1")


@test()
def large_transaction(context):
    client, other = context.client(), context.client()
    client.call("MULTI")
    replies = client.pipeline([("INCR", "n%d" % (i % 500)) for i in range(20000)])
    check(all(reply == resp.QUEUED for reply in replies), "not all queued")
    eq(other.call("EXISTS", "n0"), 0, "before EXEC nothing has happened")
    reply = client.call("EXEC")
    eq(len(reply), 20000)
    eq(reply[-1], 40)
    eq(other.call("GET", "n7"), b"40")


@test()
def transaction_in_one_packet(context):
    client = context.client()
    replies = client.pipeline(
        [("MULTI",), ("SET", "a", "1"), ("INCR", "a"), ("EXEC",), ("GET", "a")]
    )
    eq(replies, [resp.OK, resp.QUEUED, resp.QUEUED, [resp.OK, 2], b"2"])


@test()
def select_within_a_transaction(context):
    for server in both(context):
        client = context.client(server)
        replies = client.pipeline(
            [
                ("MULTI",),
                ("SET", "a", "0"),
                ("SELECT", "5"),
                ("SET", "a", "5"),
                ("EXEC",),
                ("GET", "a"),
            ]
        )
        eq(replies[-2:], [[resp.OK, resp.OK, resp.OK], b"5"], server.name)
        client.pipeline([("MULTI",), ("SELECT", "6"), ("DISCARD",)])
        eq(client.call("GET", "a"), b"5", "DISCARD selects nothing")
        client.call("SELECT", "0")
        eq(client.call("GET", "a"), b"0")


@test()
def whole_database_commands_within_a_transaction(context):
    commands = [
        ("MULTI",),
        ("MSET", "a", "1", "b", "2"),
        ("DBSIZE",),
        ("KEYS", "a"),
        ("RANDOMKEY",),
        ("SWAPDB", "0", "1"),
        ("DBSIZE",),
        ("SWAPDB", "0", "1"),
        ("FLUSHDB",),
        ("DBSIZE",),
        ("SET", "c", "3"),
        ("DBSIZE",),
        ("RANDOMKEY",),
        ("EXEC",),
    ]
    replies = []
    for server in both(context):
        reply = context.client(server).pipeline(commands)[-1]
        check(reply[3] in (b"a", b"b"), "RANDOMKEY gave " + resp.show(reply[3]))
        replies.append(reply[:3] + reply[4:])
    eq(replies[1], replies[0])


@test()
def watch_in_several_databases(context):
    for server in both(context):
        client, other = context.client(server), context.client(server)
        client.call("SELECT", "1")
        client.call("WATCH", "k")
        client.call("SELECT", "0")
        other.call("SET", "k", "in another database")
        client.call("MULTI")
        client.call("PING")
        eq(client.call("EXEC"), [resp.PONG], server.name)
        client.call("SELECT", "1")
        client.call("WATCH", "k")
        client.call("SELECT", "0")
        other.call("SELECT", "1")
        other.call("SET", "k", "v")
        client.call("MULTI")
        client.call("PING")
        eq(client.call("EXEC"), resp.NIL_ARRAY, server.name)
