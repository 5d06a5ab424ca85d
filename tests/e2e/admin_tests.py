"""CONFIG, SLOWLOG, LATENCY, MEMORY, DEBUG, ACL and the small administrative commands."""

import os
import re
import socket
import time

import resp
from harness import check, eq, test, until

# Settings of stock 7.0 that Sava does not answer for: features it refuses instead of ignoring.
ABSENT_SETTINGS = {"aclfile", "replicaof", "slaveof", "user"}
# Settings whose value differs by design, by place, or by version.
DIFFERENT_VALUES = {
    "port",
    "dir",
    "io-threads",
    "jemalloc-bg-thread",
    "syslog-ident",
    "proc-title-template",
    "oom-score-adj-values",
}


def as_dict(reply):
    check(type(reply) is list and len(reply) % 2 == 0, resp.show(reply))
    return {bytes(k).decode(): bytes(v).decode() for k, v in zip(reply[::2], reply[1::2])}


@test()
def settings_are_known(context):
    """Every name of redis.conf answers CONFIG GET, with Redis's default."""
    stock = as_dict(context.stock.call("CONFIG", "GET", "*"))
    sut = as_dict(context.sut.call("CONFIG", "GET", "*"))
    missing = sorted(
        n for n in stock if n not in sut and n not in ABSENT_SETTINGS and not n.startswith("tls-")
    )
    context.expect(not missing, "unknown settings: " + " ".join(missing))
    for name in sorted(set(stock) & set(sut) - DIFFERENT_VALUES):
        if stock[name] != sut[name]:
            context.note("%s: stock %r, sut %r" % (name, stock[name], sut[name]))


@test()
def config_get_patterns(context):
    for arguments in (
        ("maxmemory*",),
        ("hash-max-listpack-entries", "MAXMEMORY"),
        ("lfu-*", "*-factor"),
        ("[st]imeout",),
    ):
        expected = as_dict(context.stock.call("CONFIG", "GET", *arguments))
        actual = as_dict(context.sut.call("CONFIG", "GET", *arguments))
        context.expect(
            set(k.lower() for k in expected) <= set(k.lower() for k in actual),
            "CONFIG GET %s: stock %s, sut %s"
            % (" ".join(arguments), sorted(expected), sorted(actual)),
        )


@test()
def config_set_values(context):
    """Values in all their spellings, read back as Redis writes them."""
    settings = [
        ("maxmemory", "100mb"),
        ("maxmemory", "1gb"),
        ("maxmemory", "2g"),
        ("maxmemory", "512"),
        ("maxmemory", "0"),
        ("maxmemory-policy", "ALLKEYS-LRU"),
        ("maxmemory-policy", "noeviction"),
        ("maxmemory-samples", "10"),
        ("timeout", "100"),
        ("timeout", "0"),
        ("tcp-keepalive", "60"),
        ("slowlog-log-slower-than", "-1"),
        ("slowlog-max-len", "5"),
        ("latency-monitor-threshold", "100"),
        ("lfu-log-factor", "20"),
        ("lfu-decay-time", "2"),
        ("hz", "50"),
        ("hz", "100000"),
        ("lazyfree-lazy-user-del", "yes"),
        ("activerehashing", "no"),
        ("client-output-buffer-limit", "normal 1mb 512kb 10 slave 2mb 1mb 20 pubsub 3mb 2mb 30"),
        ("client-output-buffer-limit", "replica 5mb 1mb 20"),
        ("notify-keyspace-events", "KEA"),
        ("notify-keyspace-events", "Elg"),
        ("loglevel", "verbose"),
        ("loglevel", "warning"),
        ("proto-max-bulk-len", "2mb"),
        ("client-query-buffer-limit", "2mb"),
        ("latency-tracking-info-percentiles", "50 90"),
        ("maxclients", "500"),
        ("set-max-intset-entries", "10"),
        ("list-max-ziplist-size", "-1"),
        ("repl-backlog-size", "2mb"),
        ("maxmemory-eviction-tenacity", "50"),
    ]
    servers = (context.start_stock(), context.start())
    for name, value in settings:
        answers = []
        for server in servers:
            answers.append(
                [server.call("CONFIG", "SET", name, value), server.call("CONFIG", "GET", name)]
            )
        context.same(answers[1], answers[0], "%s %s" % (name, value))


@test()
def config_set_several(context):
    """All or nothing."""
    for server in (context.start_stock(), context.start()):
        reply = server.call("CONFIG", "SET", "timeout", "77", "maxmemory-samples", "8", "hz", "20")
        eq(reply, resp.OK)
        reply = server.call("CONFIG", "SET", "timeout", "88", "maxmemory-samples", "0", "hz", "30")
        check(resp.is_error(reply, "ERR CONFIG SET failed"), resp.show(reply))
        got = as_dict(server.call("CONFIG", "GET", "timeout", "maxmemory-samples", "hz"))
        eq(got, {"timeout": "77", "maxmemory-samples": "8", "hz": "20"}, server.name)


@test()
def config_set_bind(context):
    """From an address to all and back, on the same port; a failure leaves what was."""
    for server in (context.start_stock(), context.start()):

        def reachable(host):
            try:
                with socket.create_connection((host, server.port), timeout=10) as sock:
                    sock.sendall(b"PING\r\n")
                    return sock.recv(7) == b"+PONG\r\n"
            except ConnectionRefusedError:
                return False

        client = context.client(server)
        for value, everywhere in (("*", True), ("127.0.0.1", False), ("*", True)):
            reply = client.call("CONFIG", "SET", "bind", value)
            eq(reply, resp.OK, "%s: %s" % (server.name, value))
            until(lambda: reachable("127.0.0.1"), what="an answer after bind " + value)
            context.same(reachable("127.0.0.2"), everywhere, "%s: bind %s" % (server.name, value))
        # An address of nobody's: the old listener has to come back.
        reply = client.call("CONFIG", "SET", "bind", "127.0.0.1 192.0.2.1")
        check(resp.is_error(reply, "ERR CONFIG SET failed"), server.name + resp.show(reply))
        check(reachable("127.0.0.2"), server.name + ": not reachable after a failure")
        eq(client.call("CONFIG", "GET", "bind"), [b"bind", b"*"], server.name)


@test()
def bind_source_addr(context):
    """Known, changeable, kept by a rewrite; the outgoing connections that use it come later."""
    for server in (context.start_stock, context.start):
        path = os.path.join(context.temp_dir(), "server.conf")
        with open(path, "w") as file:
            file.write("bind-source-addr 127.0.0.1\n")
        started = server(config=path)
        client = context.client(started)
        eq(client.call("CONFIG", "GET", "bind-source-addr"), [b"bind-source-addr", b"127.0.0.1"])
        eq(client.call("CONFIG", "SET", "bind-source-addr", "127.0.0.2"), resp.OK)
        eq(client.call("CONFIG", "REWRITE"), resp.OK)
        with open(path) as file:
            kept = 'bind-source-addr "127.0.0.2"' in file.read()
        context.expect(kept, started.name + ": rewrite")
        eq(client.call("CONFIG", "SET", "bind-source-addr", ""), resp.OK)
        eq(client.call("CONFIG", "GET", "bind-source-addr"), [b"bind-source-addr", b""])


@test()
def config_rewrite(context):
    """What was changed is in the file afterwards; remarks and includes stay; a restart reads it."""
    for start in (context.start_stock, context.start):
        folder = context.temp_dir()
        included = os.path.join(folder, "more.conf")
        path = os.path.join(folder, "main.conf")
        with open(included, "w") as file:
            file.write("maxmemory-samples 9\n")
        with open(path, "w") as file:
            file.write("# a remark\nmaxmemory 50mb\n\ninclude %s\ntimeout 5\n" % included)
        server = start(config=path)
        eq(
            as_dict(server.call("CONFIG", "GET", "maxmemory", "timeout", "maxmemory-samples")),
            {"maxmemory": "52428800", "timeout": "5", "maxmemory-samples": "9"},
        )
        eq(
            server.call("CONFIG", "SET", "timeout", "9", "maxmemory-policy", "allkeys-lfu"),
            resp.OK,
        )
        eq(server.call("CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 0 0"), resp.OK)
        eq(server.call("CONFIG", "REWRITE"), resp.OK)
        with open(path) as file:
            text = file.read()
        check("# a remark" in text, "the remark is gone:\n" + text)
        check(re.search(r"^timeout 9$", text, re.M), text)
        check(re.search(r"^maxmemory 50mb$", text, re.M), text)
        check(re.search(r"^maxmemory-policy allkeys-lfu$", text, re.M), text)
        check(re.search(r"^include ", text, re.M), text)
        check(text.count("timeout 9") == 1, text)
        server.stop()
        server.start()
        got = as_dict(server.call("CONFIG", "GET", "timeout", "maxmemory-policy"))
        eq(got, {"timeout": "9", "maxmemory-policy": "allkeys-lfu"})
        limits = as_dict(server.call("CONFIG", "GET", "client-output-buffer-limit"))
        check("pubsub 1048576 0 0" in limits["client-output-buffer-limit"], str(limits))


def slow_entries(server, *arguments):
    return server.call("SLOWLOG", "GET", *arguments)


@test()
def oom_score(context):
    for server in (context.start_stock(), context.start()):

        def score():
            with open("/proc/%d/oom_score_adj" % server.process.pid) as file:
                return int(file.read())

        def config(*words):
            eq(server.call("CONFIG", "SET", *words), resp.OK, server.name)

        base = score()
        config("oom-score-adj-values", "10 20 30")
        eq(score(), base, "switched off")
        config("oom-score-adj", "yes")
        eq(score(), base + 10)
        config("oom-score-adj-values", "15 20 30")
        eq(score(), base + 15)
        config("oom-score-adj-values", str(base + 7) + " 0 0", "oom-score-adj", "absolute")
        eq(score(), base + 7)
        config("oom-score-adj", "no")
        eq(score(), base, "as it was")


@test()
def slowlog_has_what_waited(context):
    for server in (context.start_stock(), context.start()):
        waiter, client = context.client(server), context.client(server)
        waiter.call("CLIENT", "SETNAME", "waiter")
        client.call("CONFIG", "SET", "slowlog-log-slower-than", "0")
        waiter.send("BLPOP", "l", "0")
        until(lambda: server.info_field("blocked_clients", "clients") == "1", what="a waiter")
        client.call("SLOWLOG", "RESET")
        client.call("RPUSH", "l", "a")
        eq(waiter.recv(), [b"l", b"a"])
        entries = [entry for entry in slow_entries(server, "-1") if entry[3][0] == b"BLPOP"]
        eq([entry[3] for entry in entries], [[b"BLPOP", b"l", b"0"]], server.name)
        eq(bytes(entries[0][5]), b"waiter", server.name)


@test()
def slowlog(context):
    logs = []
    for server in (context.start_stock(), context.start()):
        client = context.client(server)
        client.call("CLIENT", "SETNAME", "slow-one")
        eq(client.call("CONFIG", "SET", "slowlog-log-slower-than", "0"), resp.OK)
        eq(client.call("SLOWLOG", "RESET"), resp.OK)
        client.call("SET", "a", "x" * 300)
        client.call("MSET", *[str(i) for i in range(100)])
        client.call("GET", b"bin\x00\xff")
        client.call("NOSUCH")
        client.call("AUTH", "default", "secret")
        client.call("MULTI")
        client.call("GET", "a")
        client.call("EXEC")
        eq(client.call("CONFIG", "SET", "slowlog-log-slower-than", "10000000"), resp.OK)
        entries = slow_entries(server, "-1")
        for entry in entries:
            eq(len(entry), 6, server.name)
            check(all(isinstance(part, int) for part in entry[:3]), "numbers expected")
            check(abs(entry[1] - time.time()) < 600, "a time stamp of %d" % entry[1])
        numbers = [entry[0] for entry in entries]
        eq(numbers, sorted(numbers, reverse=True), "newest first")
        eq(bytes(entries[0][5]), b"slow-one")
        check(
            bytes(entries[0][4]) == b"127.0.0.1:%d" % client.sock.getsockname()[1], "the address"
        )
        logs.append([entry[3] for entry in entries])
        eq(client.call("SLOWLOG", "LEN"), len(entries))
        eq(len(client.call("SLOWLOG", "GET", "2")), 2)
        eq(client.call("SLOWLOG", "GET", "0"), [])
        eq(client.call("CONFIG", "SET", "slowlog-max-len", "3"), resp.OK)
        eq(client.call("CONFIG", "SET", "slowlog-log-slower-than", "0"), resp.OK)
        client.call("PING")
        check(client.call("SLOWLOG", "LEN") <= 3, "slowlog-max-len does not bound the log")
        eq(client.call("CONFIG", "SET", "slowlog-log-slower-than", "-1"), resp.OK)
        eq(client.call("SLOWLOG", "RESET"), resp.OK)
        client.call("PING")
        eq(client.call("SLOWLOG", "LEN"), 0, "a negative threshold switches it off")
    for line in logs[0]:
        context.expect(line in logs[1], "missing: " + resp.show(line, 160))
    for line in logs[1]:
        context.expect(line in logs[0], "not of Redis: " + resp.show(line, 160))


@test()
def latency(context):
    for server in (context.start_stock(), context.start()):
        client = context.client(server)
        eq(client.call("LATENCY", "LATEST"), [])
        eq(client.call("CONFIG", "SET", "latency-monitor-threshold", "10"), resp.OK)
        eq(client.call("DEBUG", "SLEEP", "0.03"), resp.OK)
        latest = client.call("LATENCY", "LATEST")
        names = [bytes(event[0]) for event in latest]
        check(b"command" in names, "%s: %s" % (server.name, names))
        event = latest[names.index(b"command")]
        eq(len(event), 4)
        check(event[2] >= 30 and event[3] >= 30, "milliseconds: %s" % event)
        history = client.call("LATENCY", "HISTORY", "command")
        check(history and len(history[0]) == 2, resp.show(history))
        check(b"command" in bytes(client.call("LATENCY", "GRAPH", "command")), "GRAPH")
        check(len(bytes(client.call("LATENCY", "DOCTOR"))) > 20, "DOCTOR")
        eq(client.call("LATENCY", "RESET", "command"), 1)
        eq(client.call("LATENCY", "HISTORY", "command"), [])
        eq(client.call("DEBUG", "SLEEP", "0.03"), resp.OK)
        check(client.call("LATENCY", "RESET") >= 1, "RESET")
        eq(client.call("LATENCY", "LATEST"), [])


@test()
def latency_histogram(context):
    for server in (context.start_stock(), context.start()):
        client = context.client(server, 3)
        client.call("CONFIG", "RESETSTAT")
        for _ in range(20):
            client.call("SET", "a", "1")
        reply = client.call("LATENCY", "HISTOGRAM", "set", "nosuch")
        check(isinstance(reply, resp.Map) and len(reply) == 1, resp.show(reply))
        fields = reply.dict()[b"set"].dict()
        eq(fields[b"calls"], 20)
        histogram = fields[b"histogram_usec"]
        check(isinstance(histogram, resp.Map) and len(histogram) >= 1, resp.show(histogram))
        eq(histogram[-1][1], 20, "the last bucket counts all")
        everything = client.call("LATENCY", "HISTOGRAM")
        check(b"set" in everything.dict(), "no set in the whole histogram")
        two = context.client(server).call("LATENCY", "HISTOGRAM", "set")
        eq([two[0], two[1][0], two[1][1]], [b"set", b"calls", 20])


@test()
def memory_usage(context):
    for server in (context.stock, context.sut):
        client = context.client(server)
        client.call("SET", "small", "v")
        client.call("SET", "large", "x" * 100000)
        small, large = client.call("MEMORY", "USAGE", "small"), client.call(
            "MEMORY", "USAGE", "large"
        )
        check(isinstance(small, int) and 10 <= small <= 300, "small: %s" % small)
        check(100000 <= large <= 140000, "large: %s" % large)
        eq(client.call("MEMORY", "USAGE", "small", "SAMPLES", "0"), small)
        eq(client.call("MEMORY", "USAGE", "missing"), resp.NIL)


@test()
def memory_reports(context):
    names = []
    for server in (context.stock, context.sut):
        client = context.client(server, 3)
        client.call("SET", "a", "1")
        client.call("SELECT", "3")
        client.call("SET", "a", "1", "EX", "1000")
        stats = client.call("MEMORY", "STATS")
        check(isinstance(stats, resp.Map), "no map")
        names.append([bytes(name).decode() for name, _ in stats])
        check("db.0" in names[-1] and "db.3" in names[-1], str(names[-1]))
        fields = stats.dict()
        eq(fields[b"keys.count"], 2)
        check(len(bytes(client.call("MEMORY", "DOCTOR"))) > 10, "DOCTOR")
        check(isinstance(client.call("MEMORY", "MALLOC-STATS"), bytes), "MALLOC-STATS")
        eq(client.call("MEMORY", "PURGE"), resp.OK)
    missing = [name for name in names[0] if name not in names[1]]
    context.expect(not missing, "MEMORY STATS lacks " + " ".join(missing))


@test()
def debug_object(context):
    for server in (context.stock, context.sut):
        client = context.client(server)
        client.call("SET", "k", "hello world")
        text = bytes(client.call("DEBUG", "OBJECT", "k")).decode()
        pattern = (
            r"Value at:0x[0-9a-f]+ refcount:1 encoding:embstr serializedlength:\d+ "
            r"lru:\d+ lru_seconds_idle:\d+"
        )
        context.expect(re.match(pattern, text), "%s: %s" % (server.name, text))


@test()
def debug_populate(context):
    answers = []
    for server in (context.stock, context.sut):
        client = context.client(server)
        client.call("SET", "key:5", "mine")
        answer = [client.call("DEBUG", "POPULATE", "100")]
        answer += [
            client.call("DBSIZE"),
            client.call("GET", "key:0"),
            client.call("GET", "key:99"),
        ]
        answer += [client.call("GET", "key:5"), client.call("EXISTS", "key:100")]
        answer += [client.call("DEBUG", "POPULATE", "10", "pre"), client.call("GET", "pre:3")]
        answer += [
            client.call("DEBUG", "POPULATE", "10", "size", "20"),
            client.call("GET", "size:3"),
        ]
        answer += [
            client.call("DEBUG", "POPULATE", "10", "tiny", "3"),
            client.call("GET", "tiny:3"),
        ]
        answer += [client.call("DBSIZE"), client.call("DEBUG", "POPULATE", "abc")]
        answers.append(answer)
    eq(answers[1], answers[0])


@test()
def debug_digests(context):
    zero = b"0" * 40
    for server in (context.stock, context.sut):
        client = context.client(server)
        empty = client.call("DEBUG", "DIGEST")
        eq(bytes(empty), zero, server.name)
        client.call("MSET", "a", "1", "b", "1", "c", "other")
        values = [bytes(v) for v in client.call("DEBUG", "DIGEST-VALUE", "a", "b", "c", "missing")]
        check(all(re.fullmatch(rb"[0-9a-f]{40}", v) for v in values), str(values))
        eq(values[0], values[1])
        check(values[0] != values[2], "different values, one digest")
        eq(values[3], zero)
        whole = client.call("DEBUG", "DIGEST")
        check(re.fullmatch(rb"[0-9a-f]{40}", bytes(whole)), resp.show(whole))
        client.call("SET", "a", "2")
        check(client.call("DEBUG", "DIGEST") != whole, "the digest does not see a change")
        client.call("SET", "a", "1")
        eq(client.call("DEBUG", "DIGEST"), whole, "the digest depends on contents alone")


@test()
def debug_small_ones(context):
    for server in (context.stock, context.sut):
        client = context.client(server)
        eq(client.call("DEBUG", "SET-ACTIVE-EXPIRE", "0"), resp.OK)
        eq(client.call("DEBUG", "SET-ACTIVE-EXPIRE", "1"), resp.OK)
        eq(client.call("DEBUG", "SLEEP", "0.01"), resp.OK)
        eq(client.call("DEBUG", "LOG", "a line for the log"), resp.OK)
        until(lambda: b"a line for the log" in server.log(), what="the line in the log")
        eq(client.call("DEBUG", "ERROR", "MY error"), resp.Error(b"MY error"))


@test()
def debug_of_tables_buffers_and_allocator(context):
    for server in (context.stock, context.sut):
        client = context.client(server)
        client.call("FLUSHALL")
        client.call("SET", "a", "1")
        client.call("SET", "b", "1", "EX", "1000")
        client.call("SADD", "small", "a")
        client.call("SADD", "table", *["m%d" % i for i in range(600)])
        text = bytes(client.call("DEBUG", "HTSTATS", "0")).decode()
        keys, expires = text.split("[Expires HT]")
        check(keys.startswith("[Dictionary HT]\nHash table 0 stats (main hash table):\n"), text)
        check(" number of elements: 4\n" in keys, text)
        check(" number of elements: 1\n" in expires, text)
        empty = bytes(client.call("DEBUG", "HTSTATS", "9")).decode()
        eq(empty.count("No stats available for empty dictionaries\n"), 2)
        eq(client.call("DEBUG", "HTSTATS", "99"), resp.Error(b"ERR Out of range database"))
        check(resp.is_error(client.call("DEBUG", "HTSTATS", "x"), "ERR value is not an"), "a name")
        of_key = bytes(client.call("DEBUG", "HTSTATS-KEY", "table")).decode()
        elements = re.findall(r" number of elements: (\d+)\n", of_key)  # two while it rehashes
        eq(sum(map(int, elements)), 600)
        for key, error in (("a", b"ERR The value stored at the specified key is not represented "
                            b"using an hash table"), ("none", b"ERR no such key")):
            eq(client.call("DEBUG", "HTSTATS-KEY", key), resp.Error(error))
        eq(client.call("DEBUG", "SET-DISABLE-DENY-SCRIPTS", "1"), resp.OK)
        eq(client.call("DEBUG", "SET-DISABLE-DENY-SCRIPTS", "0"), resp.OK)
        for words in (("PEAK-RESET-TIME", "100"), ("peak-reset-time", "never"),
                      ("PEAK-RESET-TIME", "reset"), ("RESIZING", "1")):
            eq(client.call("DEBUG", "REPLYBUFFER", *words), resp.OK)
        check(resp.is_error(client.call("DEBUG", "REPLYBUFFER", "WHAT", "1"), "ERR unknown sub"),
              "a wrong word")
        check(resp.is_error(client.call("DEBUG", "REPLYBUFFER", "PEAK-RESET-TIME", "x"),
                            "ERR value is not an integer"), "no number")
        if b"jemalloc" not in server.call("INFO", "memory"):
            continue
        check(client.call("DEBUG", "MALLCTL", "stats.allocated") >= 0, "bytes")
        eq(client.call("DEBUG", "MALLCTL", "no.such.name"),
           resp.Error(b"ERR No such file or directory"))
        before = client.call("DEBUG", "MALLCTL", "arena.0.dirty_decay_ms")
        eq(client.call("DEBUG", "MALLCTL", "arena.0.dirty_decay_ms", "4321"), before)
        eq(client.call("DEBUG", "MALLCTL", "arena.0.dirty_decay_ms", before), 4321)
        if server is context.sut and context.is_sava:
            check(client.call("DEBUG", "MALLCTL", "background_thread") in (0, 1), "one byte")
        check(bytes(client.call("DEBUG", "MALLCTL-STR", "version")).startswith(b"5."), "version")
        eq(client.call("DEBUG", "MALLCTL-STR", "thread.tcache.flush", "VOID"), resp.OK)
        eq(client.call("DEBUG", "MALLCTL-STR", "no.such.name"),
           resp.Error(b"ERR No such file or directory"))
    if context.is_sava:
        eq(context.client().call("DEBUG", "MALLCTL-STR", "stats.allocated"),
           resp.Error(b"ERR No such file or directory"), "a number is no text")


@test()
def reply_buffers_can_be_kept(context):
    context.sava_only("Redis grows its fixed buffer otherwise")
    server = context.start("--enable-debug-command", "yes", "--threads", "1")

    def kept(client):
        client.call("SET", "k", "x" * 12000)  # answered from the buffer
        client.call("MGET", *["k"] * 20)
        line = client.call("CLIENT", "INFO")
        return int(re.search(rb" tot-mem=(\d+)", line)[1])

    eq(server.call("DEBUG", "REPLYBUFFER", "RESIZING", "0"), resp.OK)
    check(kept(server.client()) > 200000, "the memory is kept")
    eq(server.call("DEBUG", "REPLYBUFFER", "RESIZING", "1"), resp.OK)
    check(kept(server.client()) < 100000, "the memory is given back")


@test()
def cron_can_be_paused(context):
    for start in (context.start_stock, context.start):
        server = start("--enable-debug-command", "yes")
        eq(server.call("DEBUG", "PAUSE-CRON", "1"), resp.OK)
        server.call("SET", "k", "v", "PX", "1")
        time.sleep(0.5)
        eq(server.info_field("expired_keys"), "0", "while paused")
        eq(server.call("DBSIZE"), 1, "it stands there")
        eq(server.call("DEBUG", "PAUSE-CRON", "0"), resp.OK)
        until(lambda: server.call("DBSIZE") == 0, what="it expires")


@test()
def debug_is_guarded(context):
    """enable-debug-command as in Redis 7: no, yes, local."""
    for setting in ("no", "local", "yes"):
        answers = []
        for start in (context.start_stock, context.start):
            server = start("--enable-debug-command", setting)
            answers.append(server.call("DEBUG", "SLEEP", "0"))
            reply = server.call("CONFIG", "SET", "enable-debug-command", "yes")
            check(resp.is_error(reply, "ERR CONFIG SET failed"), "immutable: " + resp.show(reply))
        context.same(answers[1], answers[0], setting)


@test()
def acl(context):
    stock, sut = context.pair()
    categories = set(stock.call("ACL", "CAT"))
    context.expect(set(sut.call("ACL", "CAT")) >= categories, "ACL CAT lacks categories")
    names = {bytes(n) for n in context.sut.call("COMMAND", "LIST")}
    for category in (
        "string",
        "bitmap",
        "keyspace",
        "transaction",
        "pubsub",
        "connection",
        "admin",
        "dangerous",
    ):
        expected = {bytes(n) for n in stock.call("ACL", "CAT", category)}
        actual = {bytes(n) for n in sut.call("ACL", "CAT", category)}
        plain = {n for n in expected if n.split(b"|")[0] in names and b"|" not in n}
        missing = sorted(plain - actual)
        context.expect(not missing, "ACL CAT %s lacks %s" % (category, missing))
    for proto in (2, 3):
        users = []
        for server in (context.stock, context.sut):
            reply = context.client(server, proto).call("ACL", "GETUSER", "default")
            if proto == 3:
                check(isinstance(reply, resp.Map), "no map")
                users.append(reply.dict())
            else:
                users.append(dict(zip(reply[::2], reply[1::2])))
        for field in users[0]:
            if field == b"flags":
                context.expect(
                    {bytes(f) for f in users[0][field]}
                    <= {bytes(f) for f in users[1].get(field, [])},
                    "flags: %s" % users[1].get(field),
                )
            else:
                context.same(users[1].get(field), users[0][field], "GETUSER %s" % field.decode())


@test()
def small_commands(context):
    for server in (context.stock, context.sut):
        client = context.client(server)
        seconds, micros = (int(part) for part in client.call("TIME"))
        check(abs(seconds - time.time()) < 60 and 0 <= micros < 1000000, "TIME")
        eq(client.call("WAIT", "0", "0"), 0)
        eq(client.call("MODULE", "LIST"), [])
        eq(
            client.call("CLUSTER", "INFO"),
            resp.Error(b"ERR This instance has cluster support disabled"),
        )
        check(resp.is_error(client.call("SENTINEL", "masters"), "ERR unknown command"), "SENTINEL")
