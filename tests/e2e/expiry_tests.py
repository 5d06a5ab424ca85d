"""Keys that expire: lazily, by the active cycle, and what the statistics say."""

import resp
from harness import check, eq, test, until


@test()
def active_expiry_without_access(context):
    """Keys vanish from DBSIZE although nobody reads them."""
    client = context.client()
    client.call("CONFIG", "RESETSTAT")
    client.call("SET", "stays", "v")
    client.pipeline([("SET", "k%d" % i, "v", "PX", str(50 + i % 200)) for i in range(20000)])
    until(lambda: client.call("DBSIZE") == 1, 25, "the end of 20000 keys")
    eq(int(context.sut.info_field("expired_keys")), 20000)
    eq(client.call("KEYS", "*"), [b"stays"])


@test()
def active_expiry_in_every_database(context):
    client = context.client()
    for database in range(16):
        client.call("SELECT", str(database))
        client.call("SET", "soon", "v", "PX", "80")
        client.call("SET", "stays", "v")
    for database in range(16):
        client.call("SELECT", str(database))
        until(lambda: client.call("DBSIZE") == 1, what="the key's end in database %d" % database)


@test()
def lazy_expiry_alone(context):
    """With the cycle off an expired key is still counted, and gone for every command."""
    for server in (context.stock, context.sut):
        client = context.client(server)
        client.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        try:
            for name in ("a", "b", "c", "d", "e", "f", "g", "h"):
                client.call("SET", name, "v", "PX", "30")
            client.call("SET", "marker", "v", "PX", "90")
            until(lambda: client.call("EXISTS", "marker") == 0, what="the marker's end")
            eq(client.call("DBSIZE"), 8, server.name)
            eq(client.call("GET", "a"), resp.NIL)
            eq(client.call("DBSIZE"), 7, server.name)
            eq(client.call("EXISTS", "b"), 0)
            eq(client.call("TTL", "b"), -2)
            eq(client.call("TYPE", "c"), resp.Status(b"none"))
            eq(client.call("INCR", "c"), 1, "an expired key counts from zero")
            eq(client.call("SET", "d", "x", "NX"), resp.OK)
            eq(client.call("TTL", "d"), -1)
            eq(client.call("APPEND", "e", "x"), 1)
            eq(client.call("RENAME", "f", "z"), resp.Error(b"ERR no such key"))
            eq(client.call("DEL", "g"), 0)
            eq(client.call("RANDOMKEY") == b"h", False)
            eq(sorted(client.call("KEYS", "*")), [b"c", b"d", b"e"])
            eq(sorted(client.call("SCAN", "0", "COUNT", "1000")[1]), [b"c", b"d", b"e"])
        finally:
            client.call("DEBUG", "SET-ACTIVE-EXPIRE", "1")


@test()
def expiry_follows_the_key(context):
    for server in (context.stock, context.sut):
        client = context.client(server)
        client.call("SET", "a", "v", "PXAT", "4102444800000")
        client.call("RENAME", "a", "b")
        eq(client.call("PEXPIRETIME", "b"), 4102444800000)
        client.call("COPY", "b", "c")
        eq(client.call("PEXPIRETIME", "c"), 4102444800000)
        client.call("MOVE", "c", "3")
        client.call("SELECT", "3")
        eq(client.call("PEXPIRETIME", "c"), 4102444800000)
        for command in (
            ("APPEND", "c", "1"),
            ("SETRANGE", "c", "0", "9"),
            ("SETBIT", "c", "1", "1"),
        ):
            client.call(*command)
            eq(client.call("PEXPIRETIME", "c"), 4102444800000, command[0] + " keeps the time")
        for command in (("SET", "c", "1"), ("GETSET", "c", "1"), ("MSET", "c", "2")):
            client.call("PEXPIREAT", "c", "4102444800000")
            client.call(*command)
            eq(client.call("PEXPIRETIME", "c"), -1, command[0] + " ends the time")


@test()
def remaining_time(context):
    for server in (context.stock, context.sut):
        client = context.client(server)
        client.call("SET", "k", "v", "EX", "1000")
        check(990 <= client.call("TTL", "k") <= 1000, "TTL")
        check(990000 <= client.call("PTTL", "k") <= 1000000, "PTTL")
        now = int(client.call("TIME")[0])
        check(abs(client.call("EXPIRETIME", "k") - now - 1000) <= 10, "EXPIRETIME")
        client.call("PEXPIRE", "k", "2000000")
        check(1990 <= client.call("TTL", "k") <= 2000, "TTL after PEXPIRE")


@test()
def keyspace_statistics(context):
    fields = []
    for server in (context.stock, context.sut):
        client = context.client(server)
        client.pipeline([("SET", "k%d" % i, "v") for i in range(10)])
        client.pipeline([("EXPIRE", "k%d" % i, "1000") for i in range(4)])
        client.call("SELECT", "7")
        client.call("SET", "x", "v", "EX", "1000")
        info = server.info("keyspace")["Keyspace"]
        fields.append({db: line.split(",avg_ttl")[0] for db, line in info.items()})
        check("avg_ttl=" in info["db0"], "no avg_ttl: " + info["db0"])
    eq(fields[1], fields[0])
    eq(fields[0], {"db0": "keys=10,expires=4", "db7": "keys=1,expires=1"})


@test()
def hits_and_misses(context):
    numbers = []
    for server in (context.stock, context.sut):
        client = context.client(server)
        client.call("CONFIG", "RESETSTAT")
        client.call("SET", "a", "1")
        for command in (
            ("GET", "a"),
            ("GET", "b"),
            ("MGET", "a", "b", "c"),
            ("EXISTS", "a"),
            ("STRLEN", "b"),
            ("GETRANGE", "a", "0", "1"),
            ("TTL", "a"),
            ("TYPE", "a"),
            ("INCR", "a"),
            ("GETBIT", "b", "1"),
            ("OBJECT", "ENCODING", "a"),
            ("SET", "a", "2", "GET"),
            ("GETDEL", "a"),
        ):
            client.call(*command)
        stats = server.info("stats")["Stats"]
        numbers.append((stats["keyspace_hits"], stats["keyspace_misses"]))
    eq(numbers[1], numbers[0], "keyspace_hits, keyspace_misses")
