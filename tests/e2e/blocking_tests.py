"""Blocking commands on lists: who is served, when, and with what; scenarios run on both servers.

A scenario is a function of a World that returns what it saw. What stock Redis shows is what is
expected of the server under test.
"""

import time

import resp
from harness import check, eq, run_workers, test, until



class World:
    """One server with clients that may block."""

    def __init__(self, context, server, proto=2):
        self.context, self.server, self.proto = context, server, proto
        self.c = self.client()
        self.c.call("FLUSHALL")
        self.base = self.blocked()
        self.waiting = 0

    def client(self, **options):
        return self.context.client(self.server, self.proto, **options)

    def blocked(self):
        return int(self.server.info_field("blocked_clients", "clients"))

    def block(self, *args, client=None):
        """A client that has sent a command and waits."""
        client = client or self.client()
        client.send(*args)
        self.waiting += 1
        until(lambda: self.blocked() == self.base + self.waiting, what="%s waits" % (args,))
        return client

    def answer(self, client):
        """The reply of somebody who waited."""
        self.waiting -= 1
        return client.reply()

    def none_left(self):
        until(lambda: self.blocked() == self.base, what="nobody waits")
        return int(self.server.info_field("total_blocking_keys", "clients") or 0)


def on_both(context, scenario, proto=2):
    seen = [scenario(World(context, server, proto)) for server in (context.stock, context.sut)]
    check(len(seen[0]) > 0, "the scenario saw nothing")
    for number, (expected, actual) in enumerate(zip(seen[0], seen[1])):
        context.same(actual, expected, "observation %d" % number)
    eq(len(seen[1]), len(seen[0]))


@test()
def takes_what_is_there(context):
    def scenario(w):
        seen = []
        for words in (
            ("RPUSH", "l", "1", "b", "c", "d", "e", "f"),
            ("BLPOP", "none", "l", "0"),
            ("BRPOP", "l", "0"),
            ("BLMPOP", "0", "2", "none", "l", "RIGHT", "COUNT", "2"),
            ("BLMOVE", "l", "m", "LEFT", "RIGHT", "0"),
            ("BRPOPLPUSH", "l", "m", "0"),
            ("LRANGE", "m", "0", "-1"),
            ("EXISTS", "l"),
        ):
            seen.append(w.c.call(*words))
        return seen

    for proto in (2, 3):
        on_both(context, scenario, proto)


@test()
def wrong_calls(context):
    def scenario(w):
        w.c.call("SET", "s", "text")
        calls = [
            ("BLPOP", "l"),
            ("BLPOP", "l", "x"),
            ("BLPOP", "l", "-1"),
            ("BLPOP", "l", "nan"),
            ("BLPOP", "s", "0"),
            ("BLPOP", "l", "s", "0"),
            ("BRPOP", "s", "0"),
            ("BLMOVE", "l", "m", "LEFT", "DOWN", "0"),
            ("BLMOVE", "l", "m", "LEFT", "RIGHT", "x"),
            ("BLMOVE", "s", "m", "LEFT", "RIGHT", "0"),
            ("BRPOPLPUSH", "s", "m", "0"),
            ("BRPOPLPUSH", "l", "m", "-0.5"),
            ("BLMPOP", "0", "0", "l", "LEFT"),
            ("BLMPOP", "0", "2", "l", "LEFT"),
            ("BLMPOP", "x", "1", "l", "LEFT"),
            ("BLMPOP", "-1", "1", "l", "LEFT"),
            ("BLMPOP", "0", "1", "l", "UP"),
            ("BLMPOP", "0", "1", "l", "LEFT", "COUNT", "0"),
            ("BLMPOP", "0", "1", "l", "LEFT", "COUNT", "x"),
            ("BLMPOP", "0", "1", "l", "LEFT", "COUNT", "1", "COUNT", "1"),
            ("BLMPOP", "0", "1", "s", "LEFT"),
            ("CLIENT", "UNBLOCK", "999999"),
            ("CLIENT", "UNBLOCK", "x"),
            ("CLIENT", "UNBLOCK", "1", "LATER"),
        ]
        return [w.c.call(*words) for words in calls]

    on_both(context, scenario)


@test()
def timeouts_too_long_for_a_clock(context):
    context.sava_only("the check came with 7.2")
    client = context.client()
    for seconds in ("1e300", "9223372036854775.5", "9223372036854770", "inf"):
        eq(client.call("BLPOP", "l", seconds), resp.Error(b"ERR timeout is out of range"), seconds)


@test()
def times_out(context):
    def scenario(w):
        seen = []
        for words in (
            ("BLPOP", "a", "b", "0.01"),
            ("BRPOP", "a", "0.01"),
            ("BLMOVE", "a", "b", "LEFT", "RIGHT", "0.01"),
            ("BRPOPLPUSH", "a", "b", "0.01"),
            ("BLMPOP", "0.01", "1", "a", "LEFT"),
            ("BLPOP", "a", "0.000001"),
        ):
            w.c.send(*words)
            seen.append(w.c.recv_raw() if w.proto == 2 else w.c.reply())
        seen.append(w.c.call("BLPOP", "a", "0.001"))
        w.none_left()
        return seen

    for proto in (2, 3):
        on_both(context, scenario, proto)


@test()
def does_not_wait_longer_or_shorter(context):
    client = context.client()
    start = time.monotonic()
    eq(client.call("BLPOP", "a", "0.15"), resp.NIL_ARRAY)
    check(time.monotonic() - start >= 0.149, "it did not wait as long as it was told to")


@test()
def in_order_of_arrival(context):
    def scenario(w):
        first = w.block("BLPOP", "l", "0")
        second = w.block("BRPOP", "other", "l", "0")
        third = w.block("BLMPOP", "0", "1", "l", "LEFT", "COUNT", "2")
        fourth = w.block("BLMOVE", "l", "m", "LEFT", "LEFT", "0")
        fifth = w.block("BLPOP", "l", "0")
        seen = [w.c.call("RPUSH", "l", "1"), w.answer(first)]
        seen += [w.c.call("RPUSH", "l", "2", "3", "4"), w.answer(second), w.answer(third)]
        seen += [w.c.call("LRANGE", "l", "0", "-1")]
        seen += [w.c.call("RPUSH", "l", "5", "6", "7"), w.answer(fourth), w.answer(fifth)]
        seen += [w.c.call("LRANGE", "l", "0", "-1"), w.c.call("LRANGE", "m", "0", "-1")]
        w.none_left()
        return seen

    for proto in (2, 3):
        on_both(context, scenario, proto)


@test()
def one_push_for_two_keys_of_one_waiter(context):
    def scenario(w):
        one = w.block("BLPOP", "a", "b", "0")
        two = w.block("BLPOP", "b", "a", "0")
        seen = w.c.pipeline(
            [("MULTI",), ("RPUSH", "b", "b1"), ("RPUSH", "a", "a1"), ("RPUSH", "b", "b2"), ("EXEC",)]
        )
        seen += [sorted([w.answer(one), w.answer(two)])]
        seen += [sorted([w.c.call("LLEN", "a"), w.c.call("LLEN", "b")])]
        w.none_left()
        # The same key twice.
        one = w.block("BLPOP", "a", "c", "c", "d", "d", "0") if not seen[-1][1] else None
        if one is not None:
            seen += [w.c.call("RPUSH", "d", "1", "2"), w.answer(one), w.c.call("LLEN", "d")]
        return seen

    on_both(context, scenario)


@test()
def chains_of_moves(context):
    def scenario(w):
        one = w.block("BLMOVE", "l1", "l2", "RIGHT", "LEFT", "0")
        two = w.block("BLMOVE", "l2", "l3", "LEFT", "RIGHT", "0")
        three = w.block("BRPOPLPUSH", "l3", "l4", "0")
        four = w.block("BLPOP", "l4", "0")
        seen = [w.c.call("RPUSH", "l1", "foo")]
        seen += [w.c.call("EXISTS", "l1", "l2", "l3", "l4")]
        seen += [w.answer(x) for x in (one, two, three, four)]
        # In a circle, and onto itself.
        one = w.block("BLMOVE", "l1", "l2", "RIGHT", "LEFT", "0")
        two = w.block("BRPOPLPUSH", "l2", "l1", "0")
        seen += [w.c.call("RPUSH", "l1", "foo")]
        seen += [w.answer(one), w.answer(two), w.c.call("LRANGE", "l1", "0", "-1")]
        w.c.call("DEL", "l1")
        one = w.block("BRPOPLPUSH", "l1", "l1", "0")
        seen += [w.c.call("RPUSH", "l1", "foo"), w.answer(one), w.c.call("LRANGE", "l1", "0", "-1")]
        w.none_left()
        return seen

    on_both(context, scenario)


@test()
def moves_that_cannot(context):
    def scenario(w):
        w.c.call("SET", "target", "nolist")
        one = w.block("BLMOVE", "l", "target", "LEFT", "RIGHT", "0")
        two = w.block("BLPOP", "l", "0")
        seen = [w.c.call("RPUSH", "l", "foo"), w.answer(one), w.answer(two)]
        one = w.block("BRPOPLPUSH", "l", "target", "0")
        seen += [w.c.call("RPUSH", "l", "foo"), w.answer(one), w.c.call("LRANGE", "l", "0", "-1")]
        w.none_left()
        return seen

    on_both(context, scenario)


@test()
def other_types_wake_nobody(context):
    def scenario(w):
        one = w.block("BLPOP", "k", "0")
        two = w.block("BLMOVE", "k", "m", "LEFT", "LEFT", "0")
        three = w.block("BRPOP", "k", "0")
        seen = [w.c.call("SET", "k", "text"), w.c.call("DEL", "k")]
        seen += [w.c.call("SETBIT", "k", "1", "1"), w.c.call("APPEND", "k", "x"), w.c.call("DEL", "k")]
        seen += w.c.pipeline(
            [("MULTI",), ("RPUSH", "k", "a"), ("DEL", "k"), ("SET", "k", "text"), ("EXEC",)]
        )
        seen += [w.blocked() - w.base, w.c.call("GET", "k"), w.c.call("DEL", "k")]
        seen += [w.c.call("RPUSH", "k", "1", "2", "3")]
        seen += [w.answer(one), w.answer(two), w.answer(three)]
        w.none_left()
        return seen

    on_both(context, scenario)


@test()
def one_line_for_all_types(context):
    """Who waits for another type stays where he is, before and behind those who are served."""

    def scenario(w):
        list_one = w.block("BLPOP", "k", "0")
        set_one = w.block("BZPOPMIN", "k", "j", "0")
        stream_one = w.block("XREAD", "BLOCK", "0", "STREAMS", "k", "0")
        move_one = w.block("BLMOVE", "k", "m", "LEFT", "LEFT", "0")
        set_two = w.block("BZMPOP", "0", "1", "k", "MAX")
        stream_two = w.block("XREAD", "BLOCK", "0", "STREAMS", "k", "5-0")
        seen = [w.c.call("ZADD", "k", "1", "a", "2", "b")]
        seen += [w.answer(set_one), w.answer(set_two), w.c.call("EXISTS", "k")]
        seen += [w.c.call("XADD", "k", "1-1", "f", "v"), w.answer(stream_one)]
        seen += [w.blocked() - w.base, w.c.call("XADD", "k", "6-1", "f", "v"), w.answer(stream_two)]
        seen += [w.c.call("DEL", "k"), w.blocked() - w.base]
        seen += [w.c.call("RPUSH", "k", "1", "2", "3"), w.answer(list_one), w.answer(move_one)]
        seen += [w.c.call("LRANGE", "k", "0", "-1")]
        w.none_left()
        return seen

    on_both(context, scenario)


@test()
def only_the_end_of_exec_counts(context):
    def scenario(w):
        one = w.block("BLPOP", "k", "0")
        push_and_delete = [("MULTI",), ("RPUSH", "k", "a"), ("DEL", "k"), ("EXEC",)]
        seen = w.c.pipeline(push_and_delete) + [w.blocked() - w.base]
        seen += w.c.pipeline([("MULTI",), ("RPUSH", "k", "a", "b"), ("LPOP", "k"), ("EXEC",)])
        seen += [w.answer(one)]
        one = w.block("BLPOP", "k", "0")
        seen += w.c.pipeline(
            [("MULTI",), ("RPUSH", "k", "a"), ("LLEN", "k"), ("RENAME", "k", "j"), ("EXEC",)]
        )
        seen += [w.blocked() - w.base, w.c.call("RENAME", "j", "k"), w.answer(one)]
        w.none_left()
        return seen

    on_both(context, scenario)


@test()
def woken_by_whatever_makes_a_list(context):
    def scenario(w):
        other = w.client()
        other.call("SELECT", "1")

        def fill(key="src", client=w.c):
            client.call("DEL", key)
            client.call("RPUSH", key, "3", "1", "2")

        fill()
        payload = w.c.call("DUMP", "src")
        seen = []
        ways = [
            lambda: w.c.call("RENAME", "src", "k"),
            lambda: w.c.call("RENAMENX", "src", "k"),
            lambda: w.c.call("COPY", "src", "k"),
            lambda: w.c.call("RESTORE", "k", "0", payload),
            lambda: w.c.call("SORT", "src", "STORE", "k"),
            lambda: w.c.call("LMOVE", "src", "k", "LEFT", "LEFT"),
            lambda: w.c.call("RPOPLPUSH", "src", "k"),
            lambda: w.c.call("LPUSH", "k", "x"),
            lambda: (fill("k", other), other.call("MOVE", "k", "0"))[1],
            lambda: (fill("k", other), other.call("COPY", "k", "k", "DB", "0", "REPLACE"))[1],
            lambda: (fill("k", other), w.c.call("SWAPDB", "0", "1"))[1],
        ]
        for number, way in enumerate(ways):
            w.c.call("DEL", "k")
            fill()
            one = w.block("BLPOP", "k", "0")
            seen.append((number, way(), w.answer(one)))
            w.none_left()
        return seen

    on_both(context, scenario)


@test()
def what_has_expired_by_the_end_is_not_there(context):
    client = context.client()
    w = World(context, context.sut)
    w.c.call("DEBUG", "SET-ACTIVE-EXPIRE", "0")
    context.at_end(w.server.call, "DEBUG", "SET-ACTIVE-EXPIRE", "1")
    waiter = w.block("BLPOP", "k", "0")
    w.c.pipeline(
        [("MULTI",), ("RPUSH", "k", "a"), ("PEXPIRE", "k", "30"), ("DEBUG", "SLEEP", "0.1"), ("EXEC",)]
    )
    eq(w.blocked() - w.base, 1)
    client.call("SELECT", "1")
    client.call("RPUSH", "k", "b")
    client.call("PEXPIRE", "k", "10")
    until(lambda: client.call("EXISTS", "k") == 0)
    eq(w.c.call("SWAPDB", "0", "1"), resp.OK)
    eq(w.blocked() - w.base, 1)
    eq(w.c.call("RPUSH", "k", "c"), 1)
    eq(w.answer(waiter), [b"k", b"c"])


@test()
def in_a_transaction_nobody_waits(context):
    def scenario(w):
        return w.c.pipeline(
            [
                ("MULTI",),
                ("BLPOP", "k", "0"),
                ("BRPOP", "k", "0"),
                ("BLMOVE", "k", "j", "LEFT", "LEFT", "0"),
                ("BRPOPLPUSH", "k", "j", "0"),
                ("BLMPOP", "0", "1", "k", "LEFT"),
                ("RPUSH", "k", "a", "b", "c"),
                ("BLPOP", "k", "0"),
                ("BLMOVE", "k", "j", "LEFT", "LEFT", "0"),
                ("EXEC",),
            ]
        )

    for proto in (2, 3):
        on_both(context, scenario, proto)


@test()
def client_unblock(context):
    def scenario(w):
        client = w.client()
        number = str(client.call("CLIENT", "ID"))
        seen = [w.c.call("CLIENT", "UNBLOCK", number)]
        for way in ((), ("TIMEOUT",), ("ERROR",)):
            w.block("BLPOP", "a", "b", "0", client=client)
            seen += [w.c.call("CLIENT", "UNBLOCK", number, *way), w.answer(client)]
            seen += [w.c.call("CLIENT", "UNBLOCK", number)]
            w.none_left()
        w.block("BLMOVE", "a", "b", "LEFT", "LEFT", "0", client=client)
        seen += [w.c.call("CLIENT", "UNBLOCK", number), w.answer(client)]
        seen += [w.c.call("RPUSH", "a", "1"), client.call("BLPOP", "a", "0")]
        w.none_left()
        return seen

    on_both(context, scenario)


@test()
def pipelines_around_a_wait(context):
    def scenario(w):
        client = w.client()
        client.raw(
            resp.encode("SET", "x", "1")
            + resp.encode("BLPOP", "k", "0")
            + resp.encode("INCR", "x")
            + resp.encode("BLPOP", "k", "0")
            + resp.encode("INCR", "x")
        )
        seen = [client.reply()]  # sent before it waits
        w.waiting = 1
        until(lambda: w.blocked() == w.base + 1)
        seen += [w.c.call("GET", "x"), w.c.call("RPUSH", "k", "a")]
        seen += [client.reply(), client.reply()]
        until(lambda: w.blocked() == w.base + 1)
        seen += [w.c.call("GET", "x"), w.c.call("RPUSH", "k", "b"), client.reply(), client.reply()]
        w.none_left()
        return seen

    on_both(context, scenario)


@test()
def hanging_up_while_waiting(context):
    def scenario(w):
        gone = [w.block("BLPOP", "k", "j", "0"), w.block("BLMOVE", "k", "j", "LEFT", "LEFT", "0")]
        stays = w.block("BRPOP", "k", "0")
        for client in gone:
            client.close()
            w.waiting -= 1
        until(lambda: w.blocked() == w.base + 1)
        seen = [w.c.call("RPUSH", "k", "a"), w.answer(stays), w.c.call("EXISTS", "k", "j")]
        killed = w.block("BLPOP", "k", "0")
        seen += [w.c.call("CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal") >= 1]
        w.c.call("PING")
        check(killed.closed_by_server(10), "it is still there")
        w.none_left()
        seen += [w.c.call("RPUSH", "k", "a"), w.c.call("LLEN", "k")]
        return seen

    on_both(context, scenario)


@test()
def reply_modes_and_databases(context):
    def scenario(w):
        client = w.client()
        client.call("SELECT", "3")
        client.raw(resp.encode("CLIENT", "REPLY", "SKIP"))
        w.block("BLPOP", "k", "0", client=client)
        other = w.client()
        other.call("SELECT", "3")
        seen = [w.c.call("RPUSH", "k", "0"), w.blocked() - w.base]
        seen += [other.call("RPUSH", "k", "3")]
        w.none_left()
        w.waiting -= 1
        seen += [client.call("LLEN", "k"), w.c.call("LLEN", "k")]
        return seen

    on_both(context, scenario)


@test()
def notifications_and_watches(context):
    def scenario(w):
        w.c.call("CONFIG", "SET", "notify-keyspace-events", "KA")
        ear = w.client()
        seen = [ear.call("PSUBSCRIBE", "__keyspace@0__:*")]
        watcher = w.client()
        watcher.call("WATCH", "k")
        one = w.block("BLPOP", "k", "0")
        two = w.block("BLMOVE", "k", "j", "LEFT", "RIGHT", "0")
        seen += [w.c.call("RPUSH", "k", "1", "2"), w.answer(one), w.answer(two)]
        seen += [ear.recv() for _ in range(5)]
        seen += [watcher.call("MULTI"), watcher.call("PING"), watcher.call("EXEC")]
        w.c.call("CONFIG", "SET", "notify-keyspace-events", "")
        return seen

    on_both(context, scenario)


@test()
def figures(context):
    context.sava_only("the fields are those of 7.2")
    w = World(context, context.sut)
    client = w.block("BLPOP", "a", "b", "0")
    timed = w.block("BLMOVE", "a", "c", "LEFT", "LEFT", "100")
    info = context.sut.info("clients")["Clients"]
    eq(info["blocked_clients"], "2")
    eq(info["total_blocking_keys"], "2")
    eq(info["clients_in_timeout_table"], "1")
    lines = bytes(w.c.call("CLIENT", "LIST")).decode().splitlines()
    blocked = [line for line in lines if "flags=b" in line]
    eq(len(blocked), 2)
    check(any("cmd=blpop" in line for line in blocked), blocked)
    calls = context.sut.info("commandstats")["Commandstats"].get("cmdstat_blpop", "calls=0,")
    w.c.call("RPUSH", "a", "1", "2")
    eq(w.answer(client), [b"a", b"1"])
    eq(w.answer(timed), b"2")
    eq(w.none_left(), 0)
    after = context.sut.info("commandstats")["Commandstats"]["cmdstat_blpop"]
    count = lambda text: int(text.split(",")[0].split("=")[1])  # noqa: E731
    eq(count(after), count(calls) + 1)


@test()
def the_log_holds_plain_forms(context):
    context.sava_only("reads Sava's log")
    server = context.start("--appendonly", "yes", "--appendfsync", "always")
    w = World(context, server)
    one = w.block("BLPOP", "k", "0")
    two = w.block("BLMOVE", "k", "j", "LEFT", "RIGHT", "0")
    three = w.block("BLMPOP", "0", "1", "k", "LEFT", "COUNT", "10")
    four = w.block("BRPOPLPUSH", "j", "i", "0")
    w.c.call("RPUSH", "k", "1", "2", "3", "4")
    for client in (one, two, three, four):
        w.answer(client)
    before = w.c.call("DEBUG", "DIGEST")
    eq(w.c.call("DEBUG", "LOADAOF"), resp.OK)
    eq(w.c.call("DEBUG", "DIGEST"), before)
    eq(w.c.call("LRANGE", "i", "0", "-1"), [b"2"])
    eq(w.c.call("EXISTS", "k", "j"), 0)


@test()
def shutdown_while_somebody_waits(context):
    server = context.start()
    w = World(context, server)
    client = w.block("BLPOP", "k", "0")
    eq(server.terminate(), 0)
    check(client.closed_by_server(10), "it is still there")


# ---- many at once ----

PRODUCERS, CONSUMERS, EACH = 3, 6, 400


@test(timeout=120)
def every_element_once(context):
    """Elements pushed by several clients over several keys reach exactly one consumer each."""
    address = context.sut

    def produce(number):
        def run():
            with address.client() as client:
                for i in range(EACH):
                    client.call("RPUSH", "q%d" % (i % 3), "%d:%d" % (number, i))

        return run

    def consume(number):
        def run():
            taken = []
            with address.client() as client:
                while True:
                    if number % 3 == 2:
                        reply = client.call("BLMOVE", "q0", "moved", "LEFT", "RIGHT", "0.5")
                        reply = None if resp.is_null(reply) else reply
                        if reply is None:
                            return taken
                        continue
                    keys = ["q0", "q1", "q2", "moved"][: 2 + number % 3 * 2] + ["stop"]
                    reply = client.call("BLPOP", *keys, "0.02" if number % 2 else "0")
                    if resp.is_null(reply):
                        continue
                    if reply[0] == b"stop":
                        return taken
                    taken.append(bytes(reply[1]))

        return run

    def finish():
        with address.client() as client:
            until(
                lambda: client.call("GET", "done") == b"1"
                and client.call("EXISTS", "q0", "q1", "q2", "moved") == 0,
                seconds=60,
            )
            client.call("RPUSH", "stop", *["x"] * CONSUMERS)
        return []

    def sweep():
        """Takes what those who do not look at all keys leave, until all has been seen."""
        taken = []
        with address.client() as client:
            while True:
                reply = client.call("BLPOP", "q0", "q1", "q2", "moved", "stop", "0")
                if reply[0] == b"stop":
                    return taken
                taken.append(bytes(reply[1]))

    def all_produced():
        run_all = [produce(n) for n in range(PRODUCERS)]
        for one in run_all:
            one()
        with address.client() as client:
            client.call("SET", "done", "1")

    workers = [all_produced, sweep, finish] + [consume(n) for n in range(CONSUMERS)]
    results = run_workers(workers, 100)
    seen = [item for result in results if result for item in result]
    eq(len(seen), PRODUCERS * EACH)
    eq(len(set(seen)), PRODUCERS * EACH)
