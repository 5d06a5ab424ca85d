"""INFO: sections, field names against the stock server's, values that can be known."""

import re
import time

import resp
from harness import check, eq, parse_info, test, until

# Fields of stock 7.0.15 that Sava does not have, with the reason. Everything else must be there.
ALLOWED_TO_LACK = {
    # nothing yet
}
# Sections whose fields depend on what has happened rather than on the server.
VARYING = {"Commandstats", "Errorstats", "Latencystats", "Keyspace"}


@test()
def field_names(context):
    stock, sut = context.stock.info(), context.sut.info()
    for section, fields in stock.items():
        if section in VARYING:
            continue
        if not context.expect(section in sut, "no section " + section):
            continue
        missing = [f for f in fields if f not in sut[section] and f not in ALLOWED_TO_LACK]
        context.expect(not missing, "section %s lacks %s" % (section, " ".join(missing)))


@test()
def sections(context):
    default = [s for s in context.stock.info("default")]
    eq([s for s in context.sut.info("default") if s in default], default, "default sections")
    for name in (
        "server",
        "CLIENTS",
        "memory",
        "persistence",
        "stats",
        "replication",
        "cpu",
        "modules",
        "commandstats",
        "errorstats",
        "latencystats",
        "cluster",
        "keyspace",
    ):
        expected = list(context.stock.info(name))
        context.same(list(context.sut.info(name)), expected, "INFO " + name)
    for arguments in (
        ("server", "clients"),
        ("nosuch",),
        ("nosuch", "cpu"),
        ("cpu", "cpu"),
        ("default", "commandstats"),
    ):
        expected = list(parse_info(context.stock.call("INFO", *arguments)))
        known = set(context.stock.info())
        actual = [s for s in parse_info(context.sut.call("INFO", *arguments)) if s in known]
        context.same(
            [s.encode() for s in actual], [s.encode() for s in expected], " ".join(arguments)
        )
    for name in ("all", "everything"):
        expected, actual = set(context.stock.info(name)), set(context.sut.info(name))
        context.expect(expected <= actual, "INFO %s lacks %s" % (name, expected - actual))


@test()
def layout(context):
    """Sections are separated by an empty line, lines end with CRLF, values stand after a colon."""
    for server in (context.stock, context.sut):
        text = bytes(server.call("INFO", "server", "clients"))
        check(text.startswith(b"# Server\r\n"), "%s: %r" % (server.name, text[:40]))
        check(b"\r\n\r\n# Clients\r\n" in text, server.name + ": no empty line between sections")
        for line in text.split(b"\r\n"):
            check(not line or line.startswith(b"#") or b":" in line, "odd line %r" % line)


@test()
def server_values(context):
    info = context.sut.info()
    server = info["Server"]
    eq(server["process_id"], str(context.sut.process.pid))
    eq(server["tcp_port"], str(context.sut.port))
    eq(server["redis_mode"], "standalone")
    eq(server["arch_bits"], "64")
    check(len(server["run_id"]) == 40, "run_id is %s" % server["run_id"])
    check(int(server["uptime_in_seconds"]) >= 0, "uptime")
    check(
        abs(int(server["server_time_usec"]) / 1e6 - int(context.sut.call("TIME")[0])) < 30, "time"
    )
    if context.is_sava:
        eq(server["redis_version"], "7.2.4")
        check(server.get("sava_version"), "no sava_version")
    memory = info["Memory"]
    for name in ("used_memory", "used_memory_rss", "used_memory_peak", "total_system_memory"):
        check(int(memory[name]) > 0, name)
    eq(memory["maxmemory_policy"], "noeviction")
    eq(info["Replication"]["role"], "master")
    eq(info["Cluster"]["cluster_enabled"], "0")
    eq(info["Clients"]["maxclients"], "10000")


@test()
def counted_values(context):
    server = context.start()
    client = context.client(server)
    for _ in range(4):
        context.client(server).call("PING")
    clients = server.info("clients")["Clients"]
    eq(clients["connected_clients"], "6", "connected_clients")
    client.call("CONFIG", "RESETSTAT")
    client.pipeline([("SET", "a", "1")] * 10 + [("GET", "a")] * 5)
    stats = server.info("stats")["Stats"]
    check(15 <= int(stats["total_commands_processed"]) <= 20, stats["total_commands_processed"])
    check(int(stats["total_net_input_bytes"]) >= 15 * 20, "input bytes")
    # Counted when it was sent: INFO on another thread may be a moment earlier.
    until(lambda: int(server.info_field("total_net_output_bytes")) >= 15 * 5, what="output bytes")
    eq(stats["keyspace_hits"], "5")
    first = context.client(server)
    first.call("PING")
    received = int(server.info_field("total_connections_received"))
    first.close()
    context.client(server).call("PING")
    eq(int(server.info_field("total_connections_received")), received + 1)


@test()
def command_statistics(context):
    numbers = []
    for server in (context.start_stock(), context.start()):
        client = context.client(server)
        client.call("CONFIG", "RESETSTAT")
        client.pipeline(
            [("SET", "a", "x")] * 3
            + [("get", "a"), ("INCR", "a"), ("INCR",), ("NOSUCH",), ("OBJECT", "ENCODING", "a")]
            + [("CONFIG", "GET", "port"), ("CLIENT", "ID"), ("OBJECT", "BOGUS"), ("SELECT", "99")]
            + [("MULTI",), ("SET", "a", "1"), ("INCR", "a"), ("EXEC",)]
            + [("MULTI",), ("SET", "a"), ("EXEC",)]
        )
        lines = server.info("commandstats")["Commandstats"]
        counts = {}
        for name, text in lines.items():
            fields = dict(part.split("=") for part in text.split(","))
            eq(
                sorted(fields),
                ["calls", "failed_calls", "rejected_calls", "usec", "usec_per_call"],
                name,
            )
            if name not in ("cmdstat_info", "cmdstat_config|resetstat"):
                counts[name] = tuple(
                    fields[f] for f in ("calls", "rejected_calls", "failed_calls")
                )
        errors = server.info("errorstats")["Errorstats"]
        numbers.append((counts, errors, server.info_field("total_error_replies")))
    for name in sorted(set(numbers[0][0]) | set(numbers[1][0])):
        expected, actual = (str(n[0].get(name)).encode() for n in numbers)
        context.same(actual, expected, name)
    context.same(str(numbers[1][1]).encode(), str(numbers[0][1]).encode(), "errorstats")
    context.same(numbers[1][2].encode(), numbers[0][2].encode(), "total_error_replies")


@test()
def latency_statistics(context):
    for server in (context.stock, context.sut):
        client = context.client(server)
        client.call("CONFIG", "RESETSTAT")
        eq(
            server.info("latencystats")
            .get("Latencystats", {})
            .get("latency_percentiles_usec_set"),
            None,
        )
        client.pipeline([("SET", "a", "1")] * 100)
        line = server.info("latencystats")["Latencystats"]["latency_percentiles_usec_set"]
        fields = dict(part.split("=") for part in line.split(","))
        eq(sorted(fields), ["p50", "p99", "p99.9"], server.name)
        check(float(fields["p50"]) <= float(fields["p99"]) <= float(fields["p99.9"]), line)
        with server.configured(latency_tracking_info_percentiles="10 75.5"):
            line = server.info("latencystats")["Latencystats"]["latency_percentiles_usec_set"]
            check(line.startswith("p10=") and ",p75.5=" in line, line)
        with server.configured(latency_tracking="no"):
            client.call("GET", "a")


@test()
def percentiles_of_turns_do_not_exceed_the_longest(context):
    context.sava_only()
    client = context.client()
    for _ in range(20):
        client.call("CONFIG", "RESETSTAT")
        for _ in range(10):
            client.call("PING")
        text = bytes(client.call("INFO", "sava")).decode()
        names = ("p50", "p99", "p99.9", "max")
        turns = [float(re.search("loop_stall_%s_us:(.*)" % name, text)[1]) for name in names]
        eq(turns, sorted(turns))


@test()
def expiry_takes_time(context):
    for server in (context.stock, context.sut):
        client = context.client(server)
        client.call("CONFIG", "RESETSTAT")
        for part in range(10):
            keys = range(part * 10000, part * 10000 + 10000)
            client.raw(b"".join(resp.encode("SET", "e:%d" % i, "v", "PX", "1") for i in keys))
            for _ in keys:
                eq(client.recv(), resp.OK)
        expired = lambda: int(server.info_field("expired_keys", "stats"))
        until(lambda: expired() >= 100000, what="expired keys")
        spent = int(server.info_field("expire_cycle_cpu_milliseconds", "stats"))
        check(0 < spent < 60000, "%s: %d ms" % (server.name, spent))


@test()
def largest_buffers_of_the_last_seconds(context):
    for server in (context.stock, context.sut):
        client, other = context.client(server), context.client(server)
        begun = resp.encode("SET", "k", "x" * 3000000)
        client.raw(begun[:2500000])

        def largest():
            return int(server.info_field("client_recent_max_input_buffer", "clients"))

        until(lambda: largest() > 2000000, what="the input")
        time.sleep(1.3)  # it is looked at once a second
        client.raw(begun[2500000:])
        eq(client.recv(), resp.OK)
        check(largest() > 2000000, "%s: forgotten at once" % server.name)
        if server is context.sut:
            until(lambda: largest() < 2000000, 20, "it is forgotten after eight seconds", 0.5)
        other.call("DEL", "k")


@test()
def resetstat(context):
    for server in (context.stock, context.sut):
        client = context.client(server)
        client.call("GET", "missing")
        client.call("NOSUCH")
        eq(client.call("CONFIG", "RESETSTAT"), resp.OK)
        stats = server.info("stats")["Stats"]
        for name in (
            "keyspace_hits",
            "keyspace_misses",
            "expired_keys",
            "evicted_keys",
            "total_error_replies",
        ):
            eq(stats[name], "0", server.name + " " + name)
        eq(server.info("errorstats").get("Errorstats"), {}, server.name)
