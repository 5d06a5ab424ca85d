"""Sets beside stock Redis: random walks over the limits of the forms, payloads, events, encodings.

Replies and error texts are in cases/sets.txt.
"""

import compare
import resp
from harness import check, eq, test

STEPS = 1500
KEYS = ["s1", "s2", "s3"]


class Walk:
    """Random commands over a few sets of numbers and texts, which grow and shrink."""

    def __init__(self, rng):
        self.rng = rng
        self.growing = True
        self.texts = {key: rng.choice([0.0, 0.02, 0.9]) for key in KEYS}

    def member(self, key):
        rng = self.rng
        if rng.random() < self.texts[key]:
            kind = rng.random()
            if kind < 0.01:
                return b"x" * rng.choice([63, 64, 65, 600, 9000])
            return b"m%d" % rng.randrange(250)
        return b"%d" % (rng.randrange(-300, 300) * rng.choice([1, 1, 1, 1000, 10**10]))

    def command(self):
        rng = self.rng
        key, other, third = (rng.choice(KEYS) for _ in range(3))
        if rng.random() < 0.003:
            self.growing = not self.growing
        many = [self.member(key) for _ in range(rng.randrange(1, 12))]
        if rng.random() < 0.5:
            add = self.growing == (rng.random() < 0.8)
            return ["SADD" if add else "SREM", key] + many
        return rng.choice(
            [
                lambda: ["SISMEMBER", key, self.member(key)],
                lambda: ["SMISMEMBER", key] + many,
                lambda: ["SCARD", key],
                lambda: ["SMEMBERS", key],
                lambda: ["SMOVE", key, other, self.member(key)],
                lambda: ["SINTER", key, other],
                lambda: ["SINTERCARD", "3", key, other, third, "LIMIT", str(rng.randrange(5))],
                lambda: ["SUNION", key, other, third],
                lambda: ["SDIFF", key, other],
                lambda: ["SINTERSTORE", "d", key, other],
                lambda: ["SUNIONSTORE", rng.choice(["d", key]), key, other],
                lambda: ["SDIFFSTORE", "d", key, other, third],
                lambda: ["SMEMBERS", "d"],
                lambda: ["COPY", key, "copy", "REPLACE"],
                lambda: ["SMEMBERS", "copy"],
                lambda: ["SRANDMEMBER", "missing", "3"],
                lambda: ["DEL", "d"],
            ]
        )()


def as_set(value):
    """Members in an order of their own."""
    if isinstance(value, (resp.Set, list)):
        return type(value)(sorted(value, key=compare.sort_key))
    return value


def members(client, key):
    return sorted(client.call("SMEMBERS", key))


def swap(stock, sut, key):
    """Each server restores the other's payload; both must hold the same set afterwards."""
    payloads = [client.call("DUMP", key) for client in (stock, sut)]
    eq(resp.is_null(payloads[0]), resp.is_null(payloads[1]), "DUMP " + key)
    if resp.is_null(payloads[0]):
        return
    for client, payload in ((stock, payloads[1]), (sut, payloads[0])):
        eq(client.call("RESTORE", key, "0", payload, "REPLACE"), resp.OK)
    eq(members(sut, key), members(stock, key), key)


def run_walk(context, name, steps, **settings):
    rng = context.rng(name)
    stock, sut = context.pair(proto=rng.choice([2, 3]))
    for client in (stock, sut):
        eq(client.call("FLUSHALL"), resp.OK)
    with context.stock.configured(**settings), context.sut.configured(**settings):
        walk = Walk(rng)
        for step in range(steps):
            if step % 300 == 299:
                for key in KEYS:
                    swap(stock, sut, key)
            command = walk.command()
            expected, actual = stock.call(*command), sut.call(*command)
            if command[0] != "SMISMEMBER":
                expected, actual = as_set(expected), as_set(actual)
            if expected != actual:
                return context.note(
                    "step %d: %s\n    stock %s\n    sut   %s"
                    % (step, command[:12], resp.show(expected, 400), resp.show(actual, 400))
                )
        for key in KEYS:
            context.same(members(sut, key), members(stock, key), key)
    for client in (stock, sut):
        client.call("FLUSHALL")


@test(timeout=60.0)
def sets_walk_like_redis(context):
    for i in range(2):
        run_walk(context, "sets %d" % i, STEPS)


@test(timeout=60.0)
def sets_walk_with_other_limits(context):
    run_walk(context, "sets 4", STEPS // 2, set_max_intset_entries="4")
    run_walk(context, "sets 5000", STEPS // 2, set_max_intset_entries="5000")


# ---- encodings: Redis 7.2's ----


@test()
def encodings_of_sets(context):
    context.sava_only("Redis 7.0 knows no listpacks of sets")
    client = context.client()
    client.call("FLUSHALL")

    def encoding(key="s"):
        return client.call("OBJECT", "ENCODING", key)

    client.call("SADD", "s", *[str(i) for i in range(512)])
    eq(encoding(), b"intset")
    client.call("SADD", "s", "512")
    eq(encoding(), b"hashtable")
    client.call("DEL", "s")
    client.call("SADD", "s", "a")
    eq(encoding(), b"listpack")
    eq(client.call("DEBUG", "RELOAD"), resp.OK)
    eq(encoding(), b"listpack")
    client.call("SADD", "s", *["m%d" % i for i in range(127)])
    eq(encoding(), b"listpack")
    client.call("SADD", "s", "one more")
    eq(encoding(), b"hashtable")
    eq(client.call("DEBUG", "RELOAD"), resp.OK)
    eq(encoding(), b"hashtable")
    client.call("DEL", "s")
    client.call("SADD", "s", *["m%d" % i for i in range(129)])
    eq(encoding(), b"hashtable")
    client.call("DEL", "s")
    client.call("SADD", "s", "x" * 65)
    eq(encoding(), b"hashtable")
    with context.sut.configured(set_max_listpack_entries="2", set_max_listpack_value="4"):
        client.call("DEL", "s")
        client.call("SADD", "s", "a", "b")
        eq(encoding(), b"listpack")
        client.call("SADD", "s", "c")
        eq(encoding(), b"hashtable")
        client.call("DEL", "s")
        client.call("SADD", "s", "abcd")
        eq(encoding(), b"listpack")
        client.call("SADD", "s", "abcde")
        eq(encoding(), b"hashtable")
    client.call("FLUSHALL")


@test()
def encodings_of_stored_sets(context):
    context.sava_only("Redis 7.0 knows no listpacks of sets")
    client = context.client()
    client.call("FLUSHALL")
    client.call("SADD", "large", *["m%d" % i for i in range(300)])
    client.call("SADD", "other", "m1", "m2", *["n%d" % i for i in range(300)])
    client.call("SADD", "numbers", *[str(i) for i in range(600)])
    eq(client.call("OBJECT", "ENCODING", "numbers"), b"hashtable")

    def stored(*words):
        client.call(*words)
        return client.call("OBJECT", "ENCODING", words[1])

    eq(stored("SINTERSTORE", "to", "large", "other"), b"listpack")
    eq(stored("SINTERSTORE", "to", "large", "large"), b"hashtable")
    eq(stored("SINTERSTORE", "to", "numbers", "numbers"), b"hashtable")
    client.call("SREM", "numbers", *[str(i) for i in range(100)])
    eq(stored("SINTERSTORE", "to", "numbers", "numbers"), b"intset")
    client.call("SREM", "large", *["m%d" % i for i in range(10, 300)])
    eq(client.call("OBJECT", "ENCODING", "large"), b"hashtable")
    eq(stored("SUNIONSTORE", "to", "large"), b"listpack")
    eq(stored("SDIFFSTORE", "to", "large", "other"), b"listpack")
    # Sorted sets: the forms of Redis 7.0 are those of 7.2.
    client.call("ZADD", "scores", *[w for i in range(300) for w in (str(i), "m%d" % i)])
    eq(client.call("OBJECT", "ENCODING", "scores"), b"skiplist")
    eq(stored("ZRANGESTORE", "to", "scores", "0", "9"), b"listpack")
    eq(stored("ZINTERSTORE", "to", "2", "scores", "large"), b"listpack")
    eq(stored("ZUNIONSTORE", "to", "1", "scores"), b"skiplist")
    eq(stored("ZDIFFSTORE", "to", "2", "large", "other"), b"listpack")
    client.call("FLUSHALL")


# ---- chance ----


@test(timeout=60.0)
def chosen_members_are_members(context):
    for proto in (2, 3):
        client = context.client(proto=proto)
        for size in (5, 100, 3000):
            client.call("DEL", "s")
            names = [b"m%d" % i for i in range(size)]
            client.call("SADD", "s", *names)
            for count in (1, 3, size // 2 + 1, size, size + 10):
                chosen = client.call("SRANDMEMBER", "s", str(count))
                eq(len(chosen), min(count, size))
                eq(len(set(chosen)), len(chosen), "SRANDMEMBER repeats itself")
                check(set(chosen) <= set(names), "SRANDMEMBER invents members")
                chosen = client.call("SRANDMEMBER", "s", str(-count))
                eq(len(chosen), count)
                check(set(chosen) <= set(names), "SRANDMEMBER invents members")
            left = set(names)
            while left:
                popped = client.call("SPOP", "s", str(max(1, len(left) // 3)))
                check(set(popped) <= left, "SPOP gives what is not there")
                eq(len(set(popped)), len(popped))
                eq(type(popped) is resp.Set, proto == 3)
                left -= set(popped)
                eq(client.call("SCARD", "s"), len(left))


@test()
def scanning_a_set_that_changes(context):
    rng = context.rng("sscan")
    client = context.client()
    client.call("DEL", "s")
    kept = {b"kept%d" % i for i in range(500)}
    client.call("SADD", "s", *kept)
    seen, cursor, number = set(), b"0", 0
    while True:
        cursor, found = client.call("SSCAN", "s", cursor, "COUNT", str(rng.randrange(1, 40)))
        seen.update(found)
        if number < 6000:
            client.call("SADD", "s", *["new%d" % (number + i) for i in range(200)])
        elif number < 12000:
            client.call("SREM", "s", *["new%d" % (number - 6000 + i) for i in range(200)])
        number += 200
        if cursor == b"0":
            break
    check(kept <= seen, "SSCAN missed %d members" % len(kept - seen))
    client.call("DEL", "s")


# ---- events, and what the log holds ----


@test()
def events_of_sets(context):
    commands = [
        ("SADD", "a", "1", "2", "3"),
        ("SADD", "a", "1"),
        ("SREM", "a", "9"),
        ("SREM", "a", "1"),
        ("SMOVE", "a", "b", "2"),
        ("SMOVE", "a", "b", "3"),
        ("SPOP", "b"),
        ("SPOP", "b", "9"),
        ("SADD", "a", "1", "2"),
        ("SADD", "b", "2", "3"),
        ("SINTERSTORE", "d", "a", "b"),
        ("SUNIONSTORE", "d", "a", "b"),
        ("SDIFFSTORE", "d", "a", "b"),
        ("SINTERSTORE", "d", "a", "none"),
        ("SINTERSTORE", "d", "a", "none"),
    ]
    seen = []
    for server in (context.stock, context.sut):
        with server.configured(notify_keyspace_events="KEA"):
            client, listener = context.client(server), context.client(server)
            client.call("FLUSHALL")
            listener.call("PSUBSCRIBE", "__keyevent*")
            for command in commands:
                client.call(*command)
            client.call("SET", "end", "1")
            events = []
            while not events or events[-1] != (b"__keyevent@0__:set", b"end"):
                message = listener.reply()
                events.append((message[2], message[3]))
            seen.append(events)
            client.call("FLUSHALL")
    eq(seen[1], seen[0])


@test(timeout=60.0)
def what_was_popped_stays_away_after_a_restart(context):
    context.sava_only()
    server = context.start("--appendonly", "yes", "--appendfsync", "always")
    client = context.client(server)
    client.call("SADD", "s", *["m%d" % i for i in range(1000)])
    client.call("SADD", "n", *[str(i) for i in range(100)])
    for _ in range(20):
        client.call("SPOP", "s")
        client.call("SPOP", "n", "3")
    client.call("SUNIONSTORE", "u", "s", "n")
    want = {key: members(client, key) for key in ("s", "n", "u")}
    eq([len(want[key]) for key in ("s", "n", "u")], [980, 40, 1020])
    server.stop()
    server.start()
    client = context.client(server)
    for key, expected in want.items():
        eq(members(client, key), expected, key)


@test()
def what_a_pipeline_looks_up_may_have_gone_meanwhile(context):
    """Elements are fetched ahead for commands whose key an earlier one deletes or replaces."""
    fill = [("SADD", "s", *["m%d" % i for i in range(3000)])]
    fill += [("HSET", "h", *["f%d" % i for i in range(3000)])]
    look = [("SISMEMBER", "s", "m1"), ("SADD", "s", "m2", "new"), ("HGET", "h", "f2"),
            ("HSET", "h", "f4", "x"), ("SREM", "s", "m5"), ("HDEL", "h", "f6")]
    between = [("DEL", "s", "h"), ("SET", "s", "text"), ("RENAME", "h", "h2"), ("SELECT", "1"),
               ("FLUSHALL",), ("SPOP", "s", "3000"), ("MOVE", "s", "1"), ("EXPIRE", "h", "-1")]
    for change in between:
        replies = []
        for server in (context.stock, context.sut):
            client = context.client(server)
            client.call("FLUSHALL")
            client.pipeline(fill)
            seen = client.pipeline(look * 3 + [change] + look * 3 + [("SELECT", "0")])
            replies.append([sorted(r) if isinstance(r, list) else str(r) for r in seen])
            client.call("FLUSHALL")
        if change[0] == "SPOP":
            replies = [[r for r in seen if not isinstance(r, list)] for seen in replies]
        eq(replies[1], replies[0], change)
