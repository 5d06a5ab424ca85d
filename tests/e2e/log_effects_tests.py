"""What the log holds of commands whose effect depends on hash order, time or chance: a server that
is killed and started again, with another hash seed and at a later time, has the same values."""

import os
import time

import resp
from durability import durable, rewrite, wait_idle
from harness import check, eq, test

LOG = ("--save", "", "--appendonly", "yes")


def logged(context):
    context.sava_only("Redis logs some of these as they came")
    return durable(context, *LOG)


@test()
def a_stored_sort_is_the_same_after_a_restart(context):
    server = logged(context)
    server.call("SADD", "s", *["m%d" % i for i in range(1000)])
    server.call("SORT", "s", "BY", "none_*", "ALPHA", "STORE", "by")
    server.call("SORT", "s", "BY", "nosort", "LIMIT", "3", "5", "STORE", "part")
    before = [server.call("LRANGE", key, 0, -1) for key in ("by", "part")]
    eq([len(items) for items in before], [1000, 5])
    server.kill()
    server.restart()
    eq([server.call("LRANGE", key, 0, -1) for key in ("by", "part")], before)


@test()
def a_stored_sort_by_a_field_that_lapsed_since(context):
    server = logged(context)
    server.call("RPUSH", "l", "1", "2")
    server.call("HSET", "h_1", "f", "kept")
    server.call("HPEXPIRE", "h_1", "1500", "FIELDS", "1", "f")
    server.call("SORT", "l", "GET", "h_*->f", "STORE", "to")
    eq(server.call("LRANGE", "to", 0, -1), [b"kept", b""])
    server.kill()
    time.sleep(1.6)
    server.restart()
    eq(server.call("LRANGE", "to", 0, -1), [b"kept", b""])


@test()
def ranges_of_members_with_different_scores_after_a_restart(context):
    """Which members such a range takes depends on how the set is kept, and that changes with a
    rewrite of the log: the set was built one by one before it and is loaded at once after it."""
    server = logged(context)
    names = ["%04d" % (i * 7919 % 5000) for i in range(5000)]
    for at in range(0, len(names), 50):
        words = [w for i, n in enumerate(names[at : at + 50], at) for w in (str(i % 977), n)]
        server.call("ZADD", "z", *words)
    rewrite(server)
    for step in range(20):
        server.call("ZREMRANGEBYLEX", "z", "[%04d" % (step * 200), "[%04d" % (step * 200 + 40))
        server.call("ZRANGESTORE", "to:%d" % step, "z", "[%04d" % (step * 100), "(9", "BYLEX")
    sizes = [server.call("ZCARD", "to:%d" % step) for step in range(20)]
    before = server.call("DEBUG", "DIGEST")
    check(server.call("ZCARD", "z") < 5000, "something was removed")
    server.kill()
    server.restart()
    eq([server.call("ZCARD", "to:%d" % step) for step in range(20)], sizes)
    eq(server.call("DEBUG", "DIGEST"), before)


@test()
def consumers_that_got_nothing_are_there_after_a_restart(context):
    server = logged(context)
    server.call("XADD", "x", "1-0", "f", "v")
    server.call("XGROUP", "CREATE", "x", "g", "$")
    server.call("XREADGROUP", "GROUP", "g", "reader", "STREAMS", "x", ">")
    server.call("XREADGROUP", "GROUP", "g", "waiter", "BLOCK", "1", "STREAMS", "x", ">")
    server.call("XCLAIM", "x", "g", "claimer", "0", "1-0")
    server.call("XAUTOCLAIM", "x", "g", "auto", "0", "-")

    def consumers():
        found = server.call("XINFO", "CONSUMERS", "x", "g")
        return sorted(dict(zip(words[::2], words[1::2]))[b"name"] for words in found)

    eq(consumers(), [b"auto", b"claimer", b"reader", b"waiter"])
    server.kill()
    server.restart()
    eq(consumers(), [b"auto", b"claimer", b"reader", b"waiter"])


@test()
def keys_found_expired_are_records_of_their_own(context):
    """They have nothing to do with one another, so neither MULTI nor EXEC is around them."""
    server = logged(context)
    server.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    for command in (("RANDOMKEY",), ("SCAN", "0", "COUNT", "100")):
        for name in range(5):
            server.call("SET", "k%d" % name, "v", "PX", "1")
        time.sleep(0.01)
        server.call(*command)
        eq(server.call("DBSIZE"), 0, "after " + command[0])
    server.call("SET", "last", "1")  # what is answered is in the file
    folder = server.path("appendonlydir")
    (log,) = [name for name in os.listdir(folder) if name.endswith(".incr.aof")]
    with open(os.path.join(folder, log), "rb") as file:
        text = file.read()
    eq(text.count(b"\r\nDEL\r\n"), 10)
    eq(text.count(b"MULTI"), 0)


@test()
def a_rewrite_right_after_flushall_starts(context):
    """FLUSHALL is answered when its save is over, so the next one need not wait."""
    context.sava_only("Redis's FLUSHALL saves before it answers")
    server = durable(context, "--save", "3600 1", "--appendonly", "no")
    for _ in range(20):
        server.call("SET", "a", "1")
        server.call("FLUSHALL")
        eq(server.call("BGREWRITEAOF"),
           resp.Status(b"Background append only file rewriting started"))
        wait_idle(server)
