"""Sorted sets beside stock Redis: replies and errors, random walks over the limits of the encodings,
payloads both ways, events, encodings, waiting, scanning.

Redis 7.2 writes scores with the fewest digits that say the same number, 7.0 with 17: scores are
compared as numbers.
"""

import shlex

import resp
from harness import check, eq, run_workers, test, until

WALK = 5000


def number(value):
    try:
        return float(value)
    except ValueError:
        return None


def same_scores(expected, actual):
    """Equal, but for how a number is written."""
    if isinstance(expected, list) and isinstance(actual, list):
        return (
            type(expected) is type(actual)
            and len(expected) == len(actual)
            and all(map(same_scores, expected, actual))
        )
    if expected == actual:
        return True
    if type(expected) is not type(actual) or not isinstance(expected, bytes):
        return False
    if isinstance(expected, (resp.Error, resp.Status)):
        return False
    first, second = number(expected), number(actual)
    return first is not None and first == second


def compare(context, stock, sut, args, match=same_scores):
    expected, actual = stock.call(*args), sut.call(*args)
    if match(expected, actual):
        return True
    text = b" ".join(map(resp.to_bytes, args))[:300].decode("latin-1")
    context.note(
        "%s\n    stock %s\n    sut   %s" % (text, resp.show(expected, 500), resp.show(actual, 500))
    )
    return False


# ---- one by one ----

DIRECTED = r"""
ZADD z 1 a 2 b 3 c
ZADD z
ZADD z 1
ZADD z 1 a 2
ZADD z NX
ZADD z NX XX 1 a
ZADD z GT LT 1 a
ZADD z GT NX 1 a
ZADD z LT NX 1 a
ZADD z INCR 1 a 2 b
ZADD z x a
ZADD z 1 a nan b
ZADD z nan a
ZADD z "" a
ZADD z " 1" a
ZADD z 1e400 a
ZADD z NX 5 a 6 d
ZADD z XX 5 a 6 e
ZADD z XX CH 7 a 6 e
ZADD z CH 7 a 8 f
ZADD z GT 3 a
ZADD z GT CH 30 a
ZADD z LT 40 a
ZADD z LT CH 4 a
ZADD z GT CH 1 g
ZADD z INCR 2 a
ZADD z NX INCR 2 a
ZADD z XX INCR 2 nobody
ZADD z GT INCR -2 a
ZADD z LT INCR -2 a
ZADD z CH INCR 1 a
ZADD none XX 1 a
ZADD none XX INCR 1 a
EXISTS none
ZADD z inf up -inf down +inf up2
ZADD z INCR -inf up
ZINCRBY z -inf up
ZINCRBY z inf up
ZINCRBY z 1.5 a
ZINCRBY z x a
ZINCRBY z 1
ZINCRBY new 2.25 first
ZINCRBY str 1 a
SET str x
ZINCRBY str 1 a
ZADD str 1 a
ZADD zero -0 a
ZSCORE zero a
ZADD zero 0 a
ZADD float 0.1 a 1e-5 b 1234567.891 c 1e17 d 1e-7 e 3.0 f 12345678901234567 g -1.5e300 h
ZRANGE float 0 -1 WITHSCORES
ZSCORE z a
ZSCORE z nobody
ZSCORE none a
ZSCORE str a
ZMSCORE z a nobody b
ZMSCORE none a b
ZMSCORE str a
ZCARD z
ZCARD none
ZCARD str
ZRANK z a
ZRANK z nobody
ZRANK none a
ZRANK str a
ZREVRANK z a
ZREVRANK z nobody
ZREVRANK none a
ZRANGE z 0 -1
ZRANGE z 0 -1 WITHSCORES
ZRANGE z 1 2
ZRANGE z -2 -1 WITHSCORES
ZRANGE z 5 1
ZRANGE z 100 200
ZRANGE z -100 0
ZRANGE z 0 -1 REV
ZRANGE z 0 1 REV WITHSCORES
ZRANGE z a b
ZRANGE z 0 1.5
ZRANGE z 0 -1 LIMIT 0 1
ZRANGE z 0 -1 LIMIT 0 -1
ZRANGE z 0 -1 LIMIT 0
ZRANGE z 0 -1 LIMIT a 1
ZRANGE z 0 -1 NOSUCH
ZRANGE z 0 -1 WITHSCORES WITHSCORES
ZRANGE z 0 -1 BYSCORE BYLEX
ZRANGE z 0 -1 REV REV
ZRANGE z 1 10 BYSCORE
ZRANGE z (1 10 BYSCORE WITHSCORES
ZRANGE z 10 1 BYSCORE REV
ZRANGE z 10 1 BYSCORE REV LIMIT 1 2
ZRANGE z 1 10 BYSCORE LIMIT 1 2
ZRANGE z 1 10 BYSCORE LIMIT -1 2
ZRANGE z 1 10 BYSCORE LIMIT 0 -5
ZRANGE z 1 10 BYSCORE LIMIT 100 5
ZRANGE z 1 10 BYLEX WITHSCORES
ZRANGE z - + BYLEX WITHSCORES
ZRANGE z -inf +inf BYSCORE
ZRANGE z (-inf (+inf BYSCORE
ZRANGE z ( 10 BYSCORE
ZRANGE z "" 10 BYSCORE
ZRANGE z nan 10 BYSCORE
ZRANGE z (3 (3 BYSCORE
ZRANGE z 3 3 BYSCORE
ZRANGE z (3 3 BYSCORE
ZRANGE z 3 (3 BYSCORE
ZRANGE none 0 -1
ZRANGE none 1 2 BYSCORE WITHSCORES
ZRANGE str 0 -1
ZREVRANGE z 0 -1 WITHSCORES
ZREVRANGE z 0 1
ZREVRANGE z 0 1 REV
ZREVRANGE z 0 1 BYSCORE
ZREVRANGE z 0 1 LIMIT 0 1
ZREVRANGE z x 1
ZRANGEBYSCORE z 2 6 WITHSCORES LIMIT 1 2
ZRANGEBYSCORE z 2 6 LIMIT 1 2 WITHSCORES
ZRANGEBYSCORE z 2 6 LIMIT 1
ZRANGEBYSCORE z 2 6 REV
ZRANGEBYSCORE z a 6
ZREVRANGEBYSCORE z 6 2 WITHSCORES
ZREVRANGEBYSCORE z 2 6
ZREVRANGEBYSCORE z +inf (2 LIMIT 0 3
ZCOUNT z 1 3
ZCOUNT z (1 (3
ZCOUNT z -inf +inf
ZCOUNT z 3 1
ZCOUNT z x 1
ZCOUNT z 1 x
ZCOUNT none 1 2
ZCOUNT none x 2
ZCOUNT str 1 2
ZADD lex 0 a 0 b 0 c 0 d 0 e 0 aa 0 "" 0 B
ZRANGEBYLEX lex - +
ZRANGEBYLEX lex [a [c
ZRANGEBYLEX lex (a (c
ZRANGEBYLEX lex [a (c LIMIT 1 1
ZRANGEBYLEX lex - [
ZRANGEBYLEX lex ( +
ZRANGEBYLEX lex + -
ZRANGEBYLEX lex [c [a
ZRANGEBYLEX lex a c
ZRANGEBYLEX lex -x +
ZRANGEBYLEX lex - +x
ZRANGEBYLEX lex "" +
ZRANGEBYLEX lex [a [c WITHSCORES
ZREVRANGEBYLEX lex + -
ZREVRANGEBYLEX lex [c (a
ZREVRANGEBYLEX lex + - LIMIT 2 3
ZRANGE lex [a [c BYLEX
ZRANGE lex [c [a BYLEX REV LIMIT 0 2
ZLEXCOUNT lex - +
ZLEXCOUNT lex [a [c
ZLEXCOUNT lex (a (c
ZLEXCOUNT lex x +
ZLEXCOUNT none - +
ZLEXCOUNT str - +
ZRANGESTORE dst z 0 2
ZRANGE dst 0 -1 WITHSCORES
ZRANGESTORE dst z 10 1 BYSCORE REV LIMIT 0 2
ZRANGE dst 0 -1 WITHSCORES
ZRANGESTORE dst lex [a [c BYLEX
ZRANGE dst 0 -1
ZRANGESTORE dst z 5 1
EXISTS dst
ZRANGESTORE dst none 0 -1
ZRANGESTORE dst z 0 -1 WITHSCORES
ZRANGESTORE dst str 0 -1
ZRANGESTORE str z 0 0
TYPE str
ZRANGESTORE z z 0 -1
ZCARD z
SET str x
ZREM z nobody
ZREM z a nobody a
ZREM none a
ZREM str a
ZREMRANGEBYRANK z 0 0
ZREMRANGEBYRANK z 5 1
ZREMRANGEBYRANK z x 1
ZREMRANGEBYRANK none 0 -1
ZREMRANGEBYRANK str 0 -1
ZREMRANGEBYSCORE z 2 (3
ZREMRANGEBYSCORE z x 3
ZREMRANGEBYSCORE none 1 2
ZREMRANGEBYLEX lex [b (d
ZREMRANGEBYLEX lex b d
ZRANGE lex 0 -1
ZRANGE z 0 -1 WITHSCORES
ZPOPMIN z
ZPOPMAX z
ZPOPMIN z 2
ZPOPMAX z 2
ZPOPMIN z 0
ZPOPMIN z -1
ZPOPMIN z x
ZPOPMIN z 1 2
ZPOPMIN none
ZPOPMAX none 3
ZPOPMIN str
ZPOPMIN str 0
ZADD m1 1 a 2 b 3 c
ZADD m2 4 d
ZMPOP 2 none m1 MIN
ZMPOP 2 none m1 MAX COUNT 5
ZMPOP 1 m1 MIN
ZMPOP 1 none MAX
ZMPOP 0 m2 MIN
ZMPOP x m2 MIN
ZMPOP 5 m2 MIN
ZMPOP 1 m2 MIDDLE
ZMPOP 1 m2
ZMPOP 1 m2 MIN COUNT
ZMPOP 1 m2 MIN COUNT 0
ZMPOP 1 m2 MIN COUNT x
ZMPOP 1 m2 MIN COUNT 1 COUNT 2
ZMPOP 1 m2 MIN LIMIT 1
ZMPOP 2 str m2 MIN
BZPOPMIN none 0.01
BZPOPMIN m2 x
BZPOPMIN m2 -1
BZPOPMIN str 1
BZPOPMIN none m2 1
BZMPOP 0.01 1 none MIN
BZMPOP x 1 none MIN
BZMPOP 1 0 none MIN
BZMPOP -1 1 none MIN
ZADD m1 1 a 2 b 3 c
BZPOPMAX m1 0
BZMPOP 1 2 none m1 MAX COUNT 10
EXISTS m1
ZADD u1 1 a 2 b 3 c
ZADD u2 10 b 20 c 30 d
SADD plain b x
ZUNION 2 u1 u2
ZUNION 2 u1 u2 WITHSCORES
ZUNION 3 u1 u2 plain WITHSCORES
ZUNION 2 u1 u2 WEIGHTS 2 3 WITHSCORES
ZUNION 2 u1 u2 WEIGHTS 2
ZUNION 2 u1 u2 WEIGHTS 2 x
ZUNION 2 u1 u2 WEIGHTS 2 3 4
ZUNION 2 u1 u2 AGGREGATE MIN WITHSCORES
ZUNION 2 u1 u2 AGGREGATE MAX WITHSCORES
ZUNION 2 u1 u2 AGGREGATE SUM WEIGHTS 1 -1 WITHSCORES
ZUNION 2 u1 u2 AGGREGATE AVG
ZUNION 2 u1 u2 AGGREGATE
ZUNION 2 u1 u2 NOSUCH
ZUNION 0 u1
ZUNION -1 u1
ZUNION x u1
ZUNION 3 u1 u2
ZUNION 2 u1 str
ZUNION 1 none
ZUNION 2 u1 none WITHSCORES
ZUNION 2 u1 u1 WITHSCORES
ZINTER 2 u1 u2 WITHSCORES
ZINTER 2 u1 plain WITHSCORES
ZINTER 3 u1 u2 plain WITHSCORES AGGREGATE MAX
ZINTER 2 u1 none
ZINTER 2 u1 u2 WEIGHTS 10 -1 WITHSCORES
ZINTER 0 u1
ZDIFF 2 u1 u2 WITHSCORES
ZDIFF 2 u1 plain
ZDIFF 2 u1 none WITHSCORES
ZDIFF 2 u1 u1
ZDIFF 2 none u1
ZDIFF 2 u1 u2 WEIGHTS 1 2
ZDIFF 2 u1 u2 AGGREGATE SUM
ZINTERCARD 2 u1 u2
ZINTERCARD 2 u1 u2 LIMIT 1
ZINTERCARD 2 u1 u2 LIMIT 0
ZINTERCARD 2 u1 u2 LIMIT -1
ZINTERCARD 2 u1 u2 LIMIT x
ZINTERCARD 2 u1 u2 LIMIT
ZINTERCARD 2 u1 u2 WITHSCORES
ZINTERCARD 0 u1
ZINTERCARD 3 u1 u2
ZINTERCARD 2 u1 plain
ZUNIONSTORE d 2 u1 u2
ZRANGE d 0 -1 WITHSCORES
ZUNIONSTORE d 2 u1 u2 WITHSCORES
ZUNIONSTORE d 2 d u1 WEIGHTS 1 0.5 AGGREGATE MAX
ZRANGE d 0 -1 WITHSCORES
ZINTERSTORE d 2 u1 plain
ZRANGE d 0 -1 WITHSCORES
ZINTERSTORE d 2 u1 none
EXISTS d
ZDIFFSTORE d 2 u1 u2
ZRANGE d 0 -1 WITHSCORES
ZDIFFSTORE str 2 u1 u1
EXISTS str
ZUNIONSTORE d 0 u1
ZUNIONSTORE d 1 none
ZADD i1 inf a -inf b
ZADD i2 -inf a inf b
ZUNION 2 i1 i2 WITHSCORES
ZINTER 2 i1 i2 WITHSCORES
ZUNION 2 i1 i2 WEIGHTS 0 0 WITHSCORES
ZRANDMEMBER none
ZRANDMEMBER none 5
ZRANDMEMBER u1 0
ZRANDMEMBER u1 x
ZRANDMEMBER u1 -9223372036854775808
ZRANDMEMBER u1 9223372036854775807 WITHSCORES
ZRANDMEMBER u1 1 NOSUCH
ZRANDMEMBER u1 1 WITHSCORES x
ZRANDMEMBER plain
ZSCAN u1 0
ZSCAN u1 0 MATCH [ab] COUNT 1
ZSCAN u1 x
ZSCAN none 0
ZSCAN none 0 NOSUCH
ZSCAN u1 0 NOSUCH
ZSCAN u1 0 COUNT 0
ZSCAN u1 0 COUNT x
ZSCAN u1 0 MATCH
ZSCAN plain 0
"""


def split(line):
    return [word.encode() for word in shlex.split(line)]


def run_lines(context, lines, proto):
    stock, sut = context.pair(proto=proto)
    for client in (stock, sut):
        eq(client.call("FLUSHALL"), resp.OK)
    for line in lines.strip().splitlines():
        compare(context, stock, sut, split(line))


@test()
def sorted_sets_one_by_one_resp2(context):
    run_lines(context, DIRECTED, 2)


@test()
def sorted_sets_one_by_one_resp3(context):
    run_lines(context, DIRECTED, 3)


@test()
def ranks_with_scores(context):
    context.sava_only("WITHSCORE came with Redis 7.2")
    for proto in (2, 3):
        client = context.client(proto=proto)
        client.call("DEL", "z")
        client.call("ZADD", "z", "1.5", "a", "2", "b")
        score = resp.Double(b"1.5") if proto == 3 else b"1.5"
        eq(client.call("ZRANK", "z", "a", "WITHSCORE"), [0, score])
        eq(client.call("ZREVRANK", "z", "a", "withscore"), [1, score])
        null = "_" if proto == 3 else "*-1"
        check(resp.is_null(client.call("ZRANK", "z", "none", "WITHSCORE")), null)
        check(resp.is_null(client.call("ZRANK", "none", "a", "WITHSCORE")), null)
        eq(client.call("ZRANK", "z", "a", "WITHSCORES"), resp.Error(b"ERR syntax error"))
        eq(
            client.call("ZRANK", "z", "a", "WITHSCORE", "x"),
            resp.Error(b"ERR wrong number of arguments for 'zrank' command"),
        )


@test()
def scores_as_redis_72_writes_them(context):
    context.sava_only("Redis 7.0 writes 17 digits")
    client = context.client()
    client.call("DEL", "z")
    for score, text in (
        ("0.1", b"0.1"),
        ("3.0", b"3"),
        ("-0.5e-3", b"-0.0005"),
        ("1e-7", b"1e-7"),
        ("1e17", b"100000000000000000"),
        ("1e30", b"1e+30"),
        ("1234567.891", b"1234567.891"),
        ("12345.6789012", b"1.23456789012e+4"),
        ("inf", b"inf"),
    ):
        client.call("ZADD", "z", score, "m")
        eq(client.call("ZSCORE", "z", "m"), text, score)


# ---- random walks ----


class Walk:
    """Random commands over a few sorted sets, which grow over and shrink under the limits."""

    def __init__(self, rng, most_pairs):
        self.rng = rng
        # More members at once than a listpack may have make a skip list in 7.2, new or not.
        self.most_pairs = most_pairs
        self.growing = True
        self.universe = rng.choice([60, 200, 1500])
        self.plain_scores = rng.random() < 0.5

    def key(self):
        return self.rng.choice(["z1", "z2", "z3"])

    def member(self):
        rng = self.rng
        n = rng.randrange(self.universe)
        if n % 97 == 0:
            return b"long%d:" % n + b"x" * 70
        if n % 89 == 0:
            return b"very%d:" % n + b"y" * (n % 3000)
        return b"%d" % n if n % 2 else b"m:%d" % n

    def score(self):
        rng = self.rng
        kind = rng.random()
        if self.plain_scores or kind < 0.5:
            return rng.randrange(-50, 50)
        if kind < 0.6:
            return rng.choice(["inf", "-inf", "0", "1e10", "-1e15", "0.5"])
        return repr(rng.uniform(-100, 100))

    def bound(self):
        return self.rng.choice(["", "("]) + str(self.score())

    def pairs(self, most):
        return [
            word
            for _ in range(self.rng.randrange(1, most))
            for word in (self.score(), self.member())
        ]

    def rank(self):
        return self.rng.choice([0, -1, 1, -2, self.rng.randrange(-200, 200)])

    def options(self):
        rng = self.rng
        return ["WITHSCORES"] * rng.randrange(2) + (
            ["LIMIT", rng.randrange(-1, 5), rng.randrange(-1, 30)] if rng.random() < 0.3 else []
        )

    def algebra(self, weights):
        rng = self.rng
        keys = [self.key() for _ in range(rng.randrange(1, 4))]
        words = [len(keys)] + keys
        if weights and rng.random() < 0.4:
            words += ["WEIGHTS"] + [rng.choice([1, 2, -1, 0.5]) for _ in keys]
        if weights and rng.random() < 0.4:
            words += ["AGGREGATE", rng.choice(["SUM", "MIN", "MAX"])]
        return words

    def command(self):
        rng = self.rng
        key = self.key()
        if rng.random() < 0.004:
            self.growing = not self.growing
        if rng.random() < 0.4:
            if self.growing == (rng.random() < 0.85):
                flags = rng.choice([[], [], [], ["NX"], ["XX"], ["GT"], ["LT"], ["XX", "GT"]])
                return ["ZADD", key] + flags + ["CH"] * rng.randrange(2) + self.pairs(self.most_pairs)
            return rng.choice(
                [
                    lambda: ["ZREM", key] + [self.member() for _ in range(rng.randrange(1, 20))],
                    lambda: ["ZREMRANGEBYRANK", key, self.rank(), self.rank()],
                    lambda: ["ZREMRANGEBYSCORE", key, self.bound(), self.bound()],
                    lambda: [rng.choice(["ZPOPMIN", "ZPOPMAX"]), key, rng.randrange(1, 20)],
                    lambda: ["ZMPOP", 2, key, "z3", rng.choice(["MIN", "MAX"]), "COUNT", 9],
                ]
            )()
        return rng.choice(
            [
                lambda: ["ZADD", key, self.score(), self.member()],
                lambda: ["ZADD", key, "INCR", self.score(), self.member()],
                lambda: ["ZINCRBY", key, rng.choice([1, -2, 0.25, 1e6]), self.member()],
                lambda: ["ZSCORE", key, self.member()],
                lambda: ["ZMSCORE", key, self.member(), self.member()],
                lambda: ["ZRANK", key, self.member()],
                lambda: ["ZREVRANK", key, self.member()],
                lambda: ["ZCARD", key],
                lambda: ["ZCOUNT", key, self.bound(), self.bound()],
                lambda: ["ZRANGE", key, self.rank(), self.rank(), "WITHSCORES"],
                lambda: ["ZRANGE", key, self.rank(), self.rank(), "REV"],
                lambda: ["ZRANGEBYSCORE", key, self.bound(), self.bound()] + self.options(),
                lambda: ["ZREVRANGEBYSCORE", key, self.bound(), self.bound()] + self.options(),
                lambda: ["ZRANGESTORE", "dst", key, self.rank(), self.rank()],
                lambda: ["ZUNIONSTORE", "dst"] + self.algebra(True),
                lambda: ["ZINTERSTORE", "dst"] + self.algebra(True),
                lambda: ["ZDIFFSTORE", "dst"] + self.algebra(False),
                lambda: ["ZUNION"] + self.algebra(True) + ["WITHSCORES"],
                lambda: ["ZINTER"] + self.algebra(True) + ["WITHSCORES"],
                lambda: ["ZDIFF"] + self.algebra(False) + ["WITHSCORES"],
                lambda: ["ZINTERCARD"] + self.algebra(False),
                lambda: ["ZRANGE", "dst", 0, -1, "WITHSCORES"],
                lambda: ["COPY", key, "copy", "REPLACE"],
                lambda: ["ZRANGE", "copy", 0, -1],
                lambda: ["OBJECT", "ENCODING", key],
                lambda: ["OBJECT", "ENCODING", "dst"],
            ]
        )()


def swap(context, stock, sut, key):
    """Each server restores the other's payload; both must hold the same afterwards."""
    payloads = [client.call("DUMP", key) for client in (stock, sut)]
    eq(resp.is_null(payloads[0]), resp.is_null(payloads[1]), "DUMP " + key)
    if resp.is_null(payloads[0]):
        return
    for client, payload in ((stock, payloads[1]), (sut, payloads[0])):
        eq(client.call("RESTORE", key, "0", payload, "REPLACE"), resp.OK)
    compare(context, stock, sut, ["ZRANGE", key, "0", "-1", "WITHSCORES"])
    compare(context, stock, sut, ["OBJECT", "ENCODING", key])


def full_scan(client, key):
    found, cursor = {}, b"0"
    for _ in range(100000):
        cursor, items = client.call("ZSCAN", key, cursor)
        found.update(zip(items[::2], map(float, items[1::2])))
        if cursor == b"0":
            return found
    return None


def run_walk(context, name, steps, **settings):
    rng = context.rng(name)
    stock, sut = context.pair(proto=rng.choice([2, 3]))
    for client in (stock, sut):
        eq(client.call("FLUSHALL"), resp.OK)
        for setting, value in settings.items():
            eq(client.call("CONFIG", "SET", setting.replace("_", "-"), str(value)), resp.OK)
    walk = Walk(rng, min(25, settings.get("zset_max_listpack_entries") or 25))
    try:
        for step in range(steps):
            if step % 300 == 299:
                for key in ("z1", "z2", "z3"):
                    swap(context, stock, sut, key)
                    context.same(full_scan(sut, key), full_scan(stock, key), "ZSCAN " + key)
            command = [a if isinstance(a, bytes) else str(a).encode() for a in walk.command()]
            if not compare(context, stock, sut, command) or context.notes:
                return context.note("at step %d of %s" % (step, name))
    finally:
        for client in (stock, sut):
            client.call("CONFIG", "SET", "zset-max-listpack-entries", "128")
            client.call("CONFIG", "SET", "zset-max-listpack-value", "64")
            client.call("FLUSHALL")


@test(timeout=90.0)
def sorted_sets_walk_like_redis(context):
    for round_ in range(3):
        run_walk(context, "zsets %d" % round_, WALK // 2)


@test(timeout=60.0)
def sorted_sets_walk_with_other_limits(context):
    run_walk(context, "zsets few", WALK // 3, zset_max_listpack_entries=10)
    run_walk(context, "zsets short", WALK // 3, zset_max_listpack_value=4)
    run_walk(context, "zsets none", WALK // 3, zset_max_listpack_entries=0)


@test(timeout=60.0)
def names_walk_like_redis(context):
    """All scores equal: ranges of names."""
    rng = context.rng("lex")
    stock, sut = context.pair()
    for client in (stock, sut):
        client.call("FLUSHALL")

    def name():
        return bytes(rng.choice(b"abc") for _ in range(rng.randrange(5)))

    def bound():
        return rng.choice([b"-", b"+", b"[" + name(), b"(" + name(), b"[" + name()])

    for step in range(WALK // 3):
        adding = [w for _ in range(rng.randrange(1, 20)) for w in (b"0", name() + name())]
        limit = [b"LIMIT", b"1", b"3"] if rng.random() < 0.2 else []
        command = rng.choice(
            [
                [b"ZADD", b"n"] + adding,
                [b"ZRANGEBYLEX", b"n", bound(), bound()] + limit,
                [b"ZREVRANGEBYLEX", b"n", bound(), bound()] + limit,
                [b"ZLEXCOUNT", b"n", bound(), bound()],
                [b"ZRANGESTORE", b"d", b"n", bound(), bound(), b"BYLEX"],
                [b"ZREMRANGEBYLEX", b"n", b"[" + name(), b"(" + name()],
                [b"ZRANK", b"n", name()],
            ]
        )
        if not compare(context, stock, sut, command):
            return context.note("at step %d" % step)


# ---- encodings, memory, large ----


@test()
def encodings_by_redis_limits(context):
    lines = """
        ZADD e 1 a
        OBJECT ENCODING e
        ZADD e 2 {long}
        OBJECT ENCODING e
        ZREM e {long}
        OBJECT ENCODING e
        ZUNIONSTORE f 1 e
        OBJECT ENCODING f
        DEBUG RELOAD
        OBJECT ENCODING e
        ZRANGESTORE g e 0 -1
        OBJECT ENCODING g
    """.format(long="x" * 65)
    run_lines(context, lines, 2)
    stock, sut = context.pair()
    for count in (127, 128, 129):
        for client in (stock, sut):
            client.call("DEL", "e")
            for i in range(count):
                client.call("ZADD", "e", str(i), "m%d" % i)
        compare(context, stock, sut, ["OBJECT", "ENCODING", "e"])
        swap(context, stock, sut, "e")


@test(timeout=60)
def a_large_sorted_set(context):
    """Many members, by order and at random; saved and loaded; walked over while it changes."""
    client = context.client()
    client.call("FLUSHALL")
    total = 60_000
    for at in range(0, total, 500):
        client.call("ZADD", "big", *(w for i in range(at, at + 500) for w in (i, "m:%d" % i)))
    eq(client.call("ZCARD", "big"), total)
    rng = context.rng("large")
    for _ in range(200):
        i = rng.randrange(total)
        eq(client.call("ZRANK", "big", "m:%d" % i), i)
        eq(client.call("ZRANGE", "big", i, i), [b"m:%d" % i])
        eq(client.call("ZCOUNT", "big", "(%d" % i, "+inf"), total - 1 - i)
    for at in range(0, total, 3000):
        client.pipeline([["ZINCRBY", "big", "0.5", "m:%d" % i] for i in range(at, at + 3000, 3)])
    digest = client.call("DEBUG", "DIGEST-VALUE", "big")
    eq(client.call("DEBUG", "RELOAD"), resp.OK)
    eq(client.call("DEBUG", "DIGEST-VALUE", "big"), digest)
    found, cursor = set(), b"0"
    while True:
        cursor, items = client.call("ZSCAN", "big", cursor, "COUNT", "500")
        found.update(items[::2])
        client.call("ZREM", "big", "m:%d" % rng.randrange(total // 2, total))
        client.call("ZADD", "big", rng.random(), "new:%d" % rng.randrange(1000))
        if cursor == b"0":
            break
    missing = [i for i in range(total // 2) if b"m:%d" % i not in found]
    check(not missing, "ZSCAN left out %r" % missing[:5])
    removed = client.call("ZREMRANGEBYRANK", "big", "100", "-101")
    eq(client.call("ZCARD", "big"), 200, "after %d went" % removed)
    eq(client.call("UNLINK", "big"), 1)


# ---- events ----

EVENTS = """
ZADD z 1 a 2 b 3 c 4 d 5 e
ZADD z 1 a
ZADD z NX 9 a
ZADD z INCR 1 a
ZINCRBY z 2 a
ZINCRBY z 0 a
ZREM z nobody
ZREM z a
ZREMRANGEBYRANK z 0 0
ZREMRANGEBYSCORE z 3 3
ZREMRANGEBYSCORE z 300 301
ZPOPMIN z
ZPOPMAX z 5
ZADD lex 0 a 0 b 0 c
ZREMRANGEBYLEX lex [a [a
ZREMRANGEBYLEX lex - +
ZADD a 1 x 2 y
ZADD b 1 y
ZUNIONSTORE d 2 a b
ZINTERSTORE d 2 a b
ZDIFFSTORE d 2 a b
ZINTERSTORE d 2 a none
ZRANGESTORE d a 0 -1
ZRANGESTORE d a 5 1
ZMPOP 2 none a MIN COUNT 10
BZPOPMIN b 1
GEOADD g 13.361389 38.115556 palermo 15.087269 37.502669 catania
GEORADIUS g 15 37 200 km STORE near
GEORADIUS g 15 37 0 km STORE near
GEOSEARCHSTORE near g FROMLONLAT 15 37 BYRADIUS 200 km
GEOSEARCHSTORE near g FROMLONLAT 15 37 BYRADIUS 0 km
"""


@test()
def events_of_sorted_sets(context):
    heard = []
    for server in (context.stock, context.sut):
        client, listener = context.client(server), context.client(server)
        client.call("FLUSHALL")
        eq(client.call("CONFIG", "SET", "notify-keyspace-events", "KEA"), resp.OK)
        listener.call("PSUBSCRIBE", "__keyevent@0__:*")
        for line in EVENTS.strip().splitlines():
            client.call(*split(line))
        client.call("SET", "the", "end")
        events = []
        while not events or events[-1][1] != b"the":
            message = listener.reply()
            events.append((message[2].split(b":", 1)[1], message[3]))
        heard.append(events)
        client.call("CONFIG", "SET", "notify-keyspace-events", "")
        client.call("FLUSHALL")
    context.same(heard[1], heard[0], "events")


# ---- waiting ----


@test()
def waiting_for_members(context):
    client, waiter = context.client(), context.client()
    client.call("FLUSHALL")
    waiter.raw(resp.encode("BZPOPMIN", "w1", "w2", "0"))
    until(lambda: b"blocked_clients:1" in client.call("INFO", "clients"), what="the waiter")
    client.call("ZADD", "w2", "5", "five", "3", "three")
    eq(waiter.reply(), [b"w2", b"three", b"3"])
    eq(client.call("ZRANGE", "w2", "0", "-1"), [b"five"])
    eq(waiter.call("BZPOPMAX", "w2", "0"), [b"w2", b"five", b"5"])
    waiter.raw(resp.encode("BZMPOP", "0", "2", "w1", "w2", "MAX", "COUNT", "2"))
    until(lambda: b"blocked_clients:1" in client.call("INFO", "clients"), what="the waiter")
    client.call("SET", "w1", "no sorted set")
    client.call("DEL", "w1")
    client.call("MULTI")
    client.call("ZADD", "w1", "1", "a", "2", "b")
    client.call("ZADD", "w1", "3", "c")
    client.call("EXEC")
    eq(waiter.reply(), [b"w1", [[b"c", b"3"], [b"b", b"2"]]])
    eq(client.call("ZCARD", "w1"), 1)
    check(resp.is_null(waiter.call("BZPOPMIN", "w3", "0.02")), "a reply when the time was up")
    # Whatever brings the key wakes.
    waiter.raw(resp.encode("BZPOPMIN", "w4", "0"))
    until(lambda: b"blocked_clients:1" in client.call("INFO", "clients"), what="the waiter")
    client.call("RENAME", "w1", "w4")
    eq(waiter.reply(), [b"w4", b"a", b"1"])
    waiter.raw(resp.encode("BZPOPMIN", "w5", "0"))
    until(lambda: b"blocked_clients:1" in client.call("INFO", "clients"), what="the waiter")
    client.call("ZADD", "src", "7", "m")
    client.call("ZUNIONSTORE", "w5", "1", "src")
    eq(waiter.reply(), [b"w5", b"m", b"7"])


@test(timeout=60)
def every_member_to_one_waiter(context):
    """Several clients wait on the same keys; what several others add is taken exactly once."""
    context.client().call("FLUSHALL")
    each = 300

    def take():
        client, got = context.sut.client(2), []
        while True:
            reply = client.call("BZPOPMIN", "q1", "q2", "0")
            if reply[1] == b"end":
                return got
            got.append(reply[1])

    def add(number):
        client = context.sut.client(2)
        for i in range(each):
            key = "q%d" % (1 + (i + number) % 2)
            client.call("ZADD", key, i, "m:%d:%d" % (number, i))
        until(lambda: client.call("EXISTS", "q1", "q2") == 0, what="empty queues")
        return []

    def finish():
        client = context.sut.client(2)
        until(lambda: client.call("GET", "done") == b"2", 30, "the adders")
        for _ in range(3):
            client.call("ZADD", "q1", "0", "end")
            until(lambda: client.call("EXISTS", "q1") == 0, what="a taker")
        return []

    def adder(number):
        def run():
            add(number)
            context.sut.client(2).call("INCR", "done")
            return []

        return run

    results = run_workers([take, take, take, adder(0), adder(1), finish], 50)
    taken = sorted(member for result in results for member in result)
    eq(len(taken), 2 * each)
    eq(len(set(taken)), 2 * each, "a member was taken twice")
