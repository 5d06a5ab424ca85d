"""`sava bench associations`: small runs over RESP and HTTP, and what it must notice."""

import json
import subprocess

from harness import SLOW, check, eq, free_port, test

SHAPE = ["--associators", "12", "--associated", "30", "--repetitions", "4"]
SMALL = SHAPE + ["--reads", "50", "--top", "5,20,100", "--clients", "4"]
PHASES = ["insert", "top 5", "top 20", "top 100", "delete"]


def bench(context, *arguments, expect=0, environment=None):
    """Runs it to its end: (standard output, standard error)."""
    done = subprocess.run(
        [context.options.server, "bench"] + list(arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=60 * SLOW,
        env=environment,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    eq(done.returncode, expect, "exit code; %s%s" % (out, err))
    return out, err


def associations(context, server, *arguments, **more):
    return bench(context, "associations", "-p", str(server.port), *arguments, **more)


def result(context, port, *arguments, expect=0):
    out, _ = bench(
        context, "associations", "-p", str(port), "--json", *SMALL, *arguments, expect=expect
    )
    return json.loads(out)


def good(report, deleted=True):
    eq([phase["name"] for phase in report["phases"]], PHASES[: None if deleted else -1])
    eq([phase["errors"] for phase in report["phases"]], [0] * len(report["phases"]), "errors")
    eq([phase["operations"] for phase in report["phases"][1:4]], [50] * 3, "reads")
    insert = report["phases"][0]
    check(12 * 30 <= insert["operations"] <= 12 * 30 * 4, insert)
    latency = insert["latency_ms"]
    names = ["p50", "p90", "p99", "p99.9", "max"]
    eq(sorted(latency[name] for name in names), [latency[name] for name in names], "percentiles")
    eq(report["verification"], {"associators": 12, "associations": 360, "problem": ""})
    eq(report["ok"], True)


def with_http(context, *options):
    port = free_port()
    return context.start("--http-port", str(port), *options), port


@test()
def table_over_resp(context):
    context.sava_only()
    server = context.start()
    out, err = associations(context, server, *SMALL)
    for phase in PHASES:
        check(any(line.startswith(phase + " ") for line in out.splitlines()), out)
    for word in ("ops/s", "errors", "mean", "p50", "p90", "p99", "p99.9", "max", "seed"):
        check(word in out, word + " is missing: " + out)
    check("all counts right" in out, out)
    eq(err, "", "no progress in so short a time when it is no terminal")
    eq(context.client(server).call("DBSIZE"), 0, "everything was deleted")


@test()
def pipelines_threads_and_orders(context):
    context.sava_only()
    server = context.start()
    for options in (
        ["--pipeline", "16"],
        ["--threads", "2", "--pipeline", "3"],
        ["--order", "document", "--clients", "1"],
        ["--distinct", "500"],
    ):
        good(result(context, server.port, *options))


@test()
def a_seed_repeats_the_load_over_both_wires(context):
    context.sava_only()
    server, http_port = with_http(context)
    reports = [
        result(context, server.port, "--seed", "7"),
        result(context, http_port, "--seed", "7", "--http"),
        result(context, http_port, "--seed", "7", "--http", "--pipeline", "8", "--threads", "2"),
    ]
    for report in reports:
        good(report)
    eq(len({report["phases"][0]["operations"] for report in reports}), 1, "operations")
    eq([report["protocol"] for report in reports], ["resp", "http", "http"])
    eq(context.client(server).call("DBSIZE"), 0)


@test()
def kept_associations_are_the_same_keys(context):
    context.sava_only()
    server, http_port = with_http(context)
    client = context.client(server)
    good(result(context, http_port, "--http", "--seed", "3", "--keep"), deleted=False)
    keys = client.call("KEYS", "assoc:*")
    eq(len(keys), 12)
    eq(client.call("AFC.CARD", keys[0]), 30)
    # The same once more over the other wire: every count is twice what was sent, and that is seen.
    report = result(context, server.port, "--seed", "3", "--keep", expect=1)
    check("instead of" in report["verification"]["problem"], report["verification"])
    eq(report["ok"], False)
    eq(client.call("DBSIZE"), 12)


@test()
def a_server_that_refuses_is_noticed(context):
    context.sava_only()
    server = context.start_stock()
    out, _ = associations(context, server, *SMALL, expect=1)
    check("first error: ERR unknown command" in out, out)


@test()
def passwords(context):
    context.sava_only()
    server, http_port = with_http(context, "--requirepass", "secret word")
    good(result(context, server.port, "--password", "secret word"))
    good(result(context, http_port, "--password", "secret word", "--http"))
    _, err = associations(context, server, "--password", "wrong", *SMALL, expect=1)
    check("WRONGPASS" in err, err)
    for port, wire, said in ((server.port, "--resp", "NOAUTH"), (http_port, "--http", "401")):
        report = result(context, port, wire, expect=1)
        check(said in report["phases"][0]["first_error"], report["phases"][0])


@test()
def help_and_mistakes(context):
    context.sava_only()
    check("associations" in bench(context, "--help")[0], "sava bench --help")
    check("--repetitions" in bench(context, "associations", "--help")[0], "options")
    check("associations" in bench(context, expect=1)[1], "sava bench")
    check("nosuch" in bench(context, "nosuch", expect=1)[1], "sava bench nosuch")
    check("--clients" in bench(context, "associations", "--clients", "0", expect=1)[1], "0 clients")
    _, err = bench(context, "associations", "-p", str(free_port()), expect=1)
    check("refused" in err, err)
