"""Rate limits from outside: RL.*, CL.THROTTLE, INCREX, and the server's own limiter."""

import os
import time

import resp
from harness import check, eq, parse_info, run_workers, test, until

DAY = 1_714_867_200_000  # 2024-05-05 00:00:00 UTC


def at(clock):
    hours, minutes, seconds = map(int, clock.split(":"))
    return DAY + ((hours * 60 + minutes) * 60 + seconds) * 1000


def now_ms():
    return int(time.time() * 1000)


def bucket(time_ms, tokens):
    return b"%d %d" % (time_ms, tokens)


@test()
def the_documents_trace(context):
    """The bucket is written with SET, read with GET, and the five requests come out as written."""
    context.natives_only()
    client = context.client()
    reset = at("11:01:05")
    eq(client.call("SET", "trace", bucket(reset, 3)), resp.OK)
    steps = [
        ("11:01:20", 1, reset, 2),
        ("11:01:25", 1, reset, 1),
        ("11:01:30", 1, reset, 0),
        ("11:01:35", 0, reset, 0),
        ("11:03:00", 1, at("11:03:00"), 2),
    ]
    for clock, allowed, bucket_time, tokens in steps:
        reply = client.call("RL.TAKE", "trace", "WINDOW", "3", "60000", "NOW", str(at(clock)))
        eq(reply[:3], [allowed, 3, tokens], clock)
        eq(client.call("GET", "trace"), bucket(bucket_time, tokens), clock)
        check(0 < client.call("PTTL", "trace") <= 86400000, "a bucket has a time to live")
    eq(
        client.call("RL.PEEK", "trace", "WINDOW", "3", "60000", "NOW", str(at("11:03:01"))),
        [1, 3, 2, 0, 59001],
    )
    eq(client.call("SET", "trace", "three"), resp.OK)
    eq(
        client.call("RL.TAKE", "trace", "WINDOW", "3", "60000"),
        resp.Error(b"ERR not a rate limit bucket"),
    )
    client.call("DEL", "trace")


@test()
def every_algorithm(context):
    context.natives_only()
    client = context.client()
    start = str(at("12:00:00"))
    for algorithm in ("WINDOW", "TOKEN", "GCRA", "SLIDING"):
        key = "rl:" + algorithm

        def take(*options, algorithm=algorithm, key=key):
            return client.call("RL.TAKE", key, algorithm, "5", "10000", *options)

        eq(take("NOW", start, "COST", "4")[:4], [1, 5, 1, 0], algorithm)
        refused = take("NOW", start, "COST", "2")
        eq(refused[:3], [0, 5, 1], algorithm)
        later = str(at("12:00:00") + refused[3])
        eq(take("NOW", str(int(later) - 1), "COST", "2")[0], 0, algorithm)
        eq(take("NOW", later, "COST", "2")[0], 1, algorithm)
        eq(take("NOW", later, "COST", "6")[3], -1, algorithm)
        refunded = client.call("RL.REFUND", key, algorithm, "5", "10000", "COST", "9", "NOW", later)
        eq(refunded[:3], [1, 5, 5], algorithm)
        client.call("DEL", key)


@test()
def takeall_is_atomic(context):
    """Many connections over the same two limits: the smaller one decides, nothing is lost."""
    context.natives_only()
    client = context.client()
    client.call("DEL", "wide", "narrow")
    words = ("RL.TAKEALL", "2", "wide", "WINDOW", "1000", "600000", "narrow", "TOKEN", "150",
             "600000000")

    def worker():
        with context.sut.client() as mine:
            return sum(mine.call(*words)[0] for _ in range(100))

    eq(sum(run_workers([worker] * 4, 20)), 150)
    eq(client.call("RL.PEEK", "wide", "WINDOW", "1000", "600000")[2], 850)
    reply = client.call(*words)
    eq(reply[:2], [0, 1])
    eq([len(five) for five in reply[2]], [5, 5])
    eq(client.call("COMMAND", "GETKEYS", *words), [b"wide", b"narrow"])
    client.call("DEL", "wide", "narrow")


@test()
def throttle_as_redis_cell(context):
    """Facts about redis-cell 0.5: replies, the stored string, and what an odd number does."""
    context.natives_only()
    client = context.client()
    client.call("DEL", "u", "s", "a", "b", "num", "str", "big")

    def throttle(*args):
        return client.call("CL.THROTTLE", *args)

    eq(throttle("u", "15", "30", "60"), [0, 16, 15, -1, 2])
    eq(throttle("u", "15", "30", "60"), [0, 16, 14, -1, 4])
    eq(throttle("u", "15", "30", "60", "3"), [0, 16, 11, -1, 10])
    eq(client.call("TYPE", "u"), resp.Status(b"string"))
    eq(len(client.call("GET", "u")), 19)
    check(9000 <= client.call("PTTL", "u") <= 10000, "it lives as long as it says")
    for args, reply in [
        (("6",), [1, 5, 5, -1, 0]),
        (("1",), [0, 5, 4, -1, 10]),
        (("1",), [0, 5, 3, -1, 20]),
        (("0",), [0, 5, 3, -1, 20]),
        (("3",), [0, 5, 0, -1, 50]),
        (("1",), [1, 5, 0, 10, 50]),
        (("2",), [1, 5, 0, 20, 50]),
        (("0",), [0, 5, 0, -1, 50]),
        (("6",), [1, 5, 0, -1, 50]),
    ]:
        eq(throttle("s", "4", "1", "10", *args), reply, "quantity %s" % args)
    eq(throttle("a", "2", "1", "60"), [0, 3, 2, -1, 60])
    eq(throttle("b", "2", "1", "60"), [0, 3, 2, -1, 60])
    eq(throttle("a", "9", "1", "60"), [0, 10, 8, -1, 120])
    eq(throttle("a", "0", "1", "60"), [1, 1, 0, 120, 120])
    client.call("SET", "num", "12345")
    eq(throttle("num", "4", "1", "10", "6")[:2], [1, 5])
    eq(client.call("GET", "num"), b"12345", "limited: nothing was written")
    eq(throttle("num", "1", "1", "60"), [0, 2, 1, -1, 60])
    eq(client.call("PERSIST", "num"), 1)
    eq(throttle("num", "1", "1", "60", "0"), [0, 2, 1, -1, 60])
    check(0 < client.call("PTTL", "num") <= 60000, "quantity 0 sets the time to live again")
    eq(throttle("big", "100000000", "1", "60"), [0, 100000001, 100000000, -1, 60])
    client.call("SET", "str", "hello")
    check(resp.is_error(throttle("str", "1", "1", "60")), "a string that is no bucket")
    check(resp.is_error(throttle("u", "1", "0", "60")), "a rate of zero")
    check(resp.is_error(throttle("u")), "too few arguments")
    client.call("DEL", "u", "s", "a", "b", "num", "str", "big")


@test()
def increx(context):
    context.natives_only()
    for proto in (2, 3):
        client = context.client(proto=proto)
        client.call("DEL", "n", "f")
        for _ in range(3):
            client.call("INCREX", "n", "UBOUND", "3", "EX", "100", "ENX")
        eq(client.call("INCREX", "n", "UBOUND", "3", "EX", "100", "ENX"), [3, 0])
        check(0 < client.call("TTL", "n") <= 100, "the window has an end")
        eq(client.call("INCREX", "n", "BYINT", "-9", "LBOUND", "0", "SATURATE"), [0, -3])
        eq(client.call("OBJECT", "ENCODING", "n"), context.by_host(b"int", b"raw"))
        eq(client.call("INCREX", "n", "PERSIST"), [1, 1])
        eq(client.call("TTL", "n"), -1)
        half = resp.Double(b"0.5") if proto == 3 else b"0.5"
        eq(client.call("INCREX", "f", "BYFLOAT", "0.5"), [half, half])
        eq(client.call("INCREX", "n", "EXAT", "1"), [2, 1])
        eq(client.call("EXISTS", "n"), 0)
        client.call("DEL", "f")


# ---- the server's own limiter ----


def limited(context, *lines, **more):
    """A server whose configuration file has these lines."""
    context.sava_only()
    path = os.path.join(context.temp_dir(), "sava.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(("ratelimit-enabled yes",) + lines) + "\n")
    return context.start(config=path, **more)


def refused(reply):
    return resp.is_error(reply, b"RATELIMITED")


@test()
def limiter_from_the_file(context):
    """Three a minute for the user without a name; the bucket is a key; INFO counts refusals."""
    server = limited(context, "ratelimit-default window 3 60s")
    client = context.client(server)
    before = now_ms()
    eq(client.call("SET", "a", "1"), resp.OK)
    stored = client.call("GET", "__rl:default").split()
    check(before - 1000 <= int(stored[0]) <= now_ms(), "the time of the reset")
    eq(stored[1], b"1")
    eq(client.call("GET", "a"), b"1")
    reply = client.call("GET", "a")
    check(refused(reply), resp.show(reply))
    wait = int(bytes(reply).split(b"retry_after_ms=")[1])
    check(0 < wait <= 60001, "it says how long to wait")
    eq(client.call("PING"), resp.PONG, "exempt")
    check(not refused(client.call("INFO", "server")), "exempt")
    check(refused(client.call("NOSUCH")), "unknown commands count")
    check(refused(context.client(server).call("GET", "a")), "the bucket is the user's")
    eq(client.call("CONFIG", "SET", "ratelimit-exempt", "INFO CONFIG AUTH PTTL TTL"), resp.OK)
    check(refused(client.call("PING")), "no longer exempt")
    check(60001 < client.call("PTTL", "__rl:default") <= 120000, "the key lives for two periods")
    info = parse_info(client.call("INFO", "stats", "ratelimit", "errorstats"))
    eq(info["Stats"]["ratelimit_refused"], "4")
    eq(info["Errorstats"]["errorstat_RATELIMITED"], "count=4")
    eq(info["Ratelimit"]["ratelimit_buckets"], "1")
    row = dict(part.split("=") for part in info["Ratelimit"]["bucket0"].split(","))
    eq((row["key"], row["algorithm"], row["limit"]), ("__rl:default", "window", "3"))
    eq((row["remaining"], row["allowed"], row["refused"]), ("0", "3", "4"))


@test()
def limiter_while_running(context):
    """CONFIG SET switches it on and off and changes rules; bad ones are told and change nothing."""
    context.sava_only()
    server = context.start()
    client = context.client(server)

    def config(name, value):
        return client.call("CONFIG", "SET", name, value)

    for _ in range(10):
        eq(client.call("GET", "a"), resp.NIL)
    eq(config("ratelimit-default", "window 2 60s"), resp.OK)
    eq(client.call("GET", "a"), resp.NIL, "still off")
    eq(config("ratelimit-enabled", "yes"), resp.OK)
    eq([refused(client.call("GET", "a")) for _ in range(4)], [False, False, True, True])
    eq(config("ratelimit-default", "window 4 60s"), resp.OK)
    eq([refused(client.call("GET", "a")) for _ in range(4)], [False, False, True, True],
       "what was taken stays taken")
    eq(config("ratelimit-user", "default sliding 1 60s"), resp.OK)
    eq([refused(client.call("GET", "a")) for _ in range(2)], [False, True], "the user's own rule")
    for name, value in [
        ("ratelimit-default", "window 3"),
        ("ratelimit-default", "leaky 3 60s"),
        ("ratelimit-default", "window 3 60"),
        ("ratelimit-user", "alice token 0 1s"),
        ("ratelimit-ip", "10.0.0.0/99 window 1 1s"),
        ("ratelimit-exempt", "NOSUCH"),
        ("ratelimit-key-prefix", ""),
    ]:
        reply = config(name, value)
        check(resp.is_error(reply, b"ERR"), "%s %s: %s" % (name, value, resp.show(reply)))
        check(name.encode() in bytes(reply), resp.show(reply))
    eq(client.call("CONFIG", "GET", "ratelimit-user"), [b"ratelimit-user",
                                                        b"default sliding 1 60s"])
    eq(config("ratelimit-enabled", "no"), resp.OK)
    for _ in range(5):
        eq(client.call("GET", "a"), resp.NIL)


@test()
def limiter_buckets_are_data(context):
    """A bucket that was SET is honoured, at the start of the limiter and while it runs; nobody
    writes his own; FLUSHALL is no way round it."""
    path = os.path.join(context.temp_dir(), "socket")
    server = limited(context, "unixsocket " + path, "ratelimit-ip 127.0.0.0/8 window 3 600s")
    admin = resp.Client(path)  # comes from no address
    context.at_end(admin.close)
    limited_client = context.client(server)
    key = "__rl:ip:127.0.0.1"
    eq(limited_client.call("GET", "a"), resp.NIL)
    eq(admin.call("GET", key).split()[1], b"2")
    eq(admin.call("SET", key, bucket(now_ms(), 1)), resp.OK)
    eq([refused(limited_client.call("GET", "a")) for _ in range(2)], [False, True])
    eq(admin.call("SET", key, bucket(now_ms(), 2)), resp.OK)
    reply = limited_client.call("SET", key, bucket(now_ms(), 1000))
    check(resp.is_error(reply, b"NOPERM"), resp.show(reply))
    eq(limited_client.call("FLUSHALL"), resp.OK)
    check(refused(limited_client.call("GET", "a")), "his bucket outlives his own FLUSHALL")
    until(lambda: admin.call("EXISTS", key), what="the bucket's key")
    eq(admin.call("DEL", key), 1)
    eq(limited_client.call("GET", "a"), resp.NIL)
    eq(admin.call("FLUSHALL"), resp.OK)
    eq([refused(limited_client.call("GET", "a")) for _ in range(4)], [False, False, False, True])
    payload = admin.call("DUMP", key)
    eq(admin.call("RESTORE", "copy", "0", payload), resp.OK)
    eq(admin.call("GET", "copy").split()[1], b"0")


@test()
def limiter_many_connections(context):
    """Connections on all threads together get what the bucket holds, not one more."""
    server = limited(context, "ratelimit-default window 400 600s", threads=2)

    def worker():
        allowed = 0
        with server.client() as mine:
            for _ in range(20):
                for _ in range(10):
                    mine.send("GET", "a")
                allowed += sum(not refused(mine.recv()) for _ in range(10))
        return allowed

    eq(sum(run_workers([worker] * 6, 20)), 400)


@test()
def limiter_transactions(context):
    """Commands pay when they are queued; EXEC does not pay again; a refused one aborts it."""
    server = limited(context, "ratelimit-default window 6 600s", "ratelimit-exempt CONFIG PING AUTH")
    client = context.client(server)
    eq(client.call("MULTI"), resp.OK)
    eq(client.call("SET", "a", "1"), resp.Status(b"QUEUED"))
    eq(client.call("EXEC"), [resp.OK])
    eq(client.call("MULTI"), resp.OK)
    eq([refused(client.call("SET", "a", "2")) for _ in range(4)], [False, False, False, True])
    check(resp.is_error(client.call("EXEC"), b"EXECABORT"), "the transaction is lost")
    eq(client.call("CONFIG", "SET", "ratelimit-enabled", "no"), resp.OK)
    eq(client.call("GET", "a"), b"1")


@test()
def limiter_rewrite(context):
    """What CONFIG SET changed, CONFIG REWRITE keeps."""
    server = limited(context, "ratelimit-default window 3 60s", "ratelimit-user alice gcra 5 1s",
                     "user bob on", "user carol on")
    client = context.client(server)
    eq(client.call("CONFIG", "SET", "ratelimit-user", "bob token 10 500ms burst 20 carol window 1 1s"),
       resp.OK)
    eq(client.call("CONFIG", "REWRITE"), resp.OK)
    with open(server.config, encoding="utf-8") as file:
        lines = file.read().splitlines()
    check("ratelimit-user bob token 10 500ms burst 20" in lines, "\n".join(lines))
    check("ratelimit-user carol window 1 1s" in lines, "\n".join(lines))
    check("ratelimit-default window 3 60s" in lines, "\n".join(lines))
    check(not any("alice" in line for line in lines), "\n".join(lines))


@test()
def limiter_refuses_to_start(context):
    """A configuration that cannot be meant is an error at start."""
    context.sava_only()
    for line, part in [
        ("ratelimit-default window 3", "a rule is"),
        ("ratelimit-user alice leaky 3 1s", "unknown algorithm"),
        ("ratelimit-ip nowhere window 3 1s", "not an address"),
        ("ratelimit-exempt NOSUCH", "there is no command"),
    ]:
        path = os.path.join(context.temp_dir(), "sava.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(line + "\n")
        code, output = context.try_start(config=path)
        check(code not in (0, "it started"), "%s: %s" % (line, code))
        check(part in output, "%s: %s" % (line, output[-500:]))
