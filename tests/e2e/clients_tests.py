"""Real clients and tools: redis-cli, redis-benchmark, hiredis, ioredis."""

import os
import re
import shutil
import subprocess
import time

import resp
from harness import SLOW, Failure, Skip, check, eq, test

HERE = os.path.dirname(os.path.abspath(__file__))


def run(command, stdin=None, seconds=30, expect=0, env=None, cwd=None):
    """Runs a program to its end; returns what it printed."""
    done = subprocess.run(
        command,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=seconds * SLOW,
        env=env,
        cwd=cwd,
    )
    text = done.stdout.decode("utf-8", "replace")
    if expect is not None and done.returncode != expect:
        raise Failure("%s: exit code %s\n%s" % (" ".join(command), done.returncode, text[-1500:]))
    return text


def need(program, package):
    path = shutil.which(program)
    if not path:
        raise Failure("%s is not installed (Debian package %s)" % (program, package))
    return path


def cli(context, *arguments, **options):
    server = options.pop("server", context.sut)
    line = [need("redis-cli", "redis-tools"), "-p", str(server.port)] + list(arguments)
    return run(line, **options)


def one_shots(server_cli):
    """The same sequence for any server; returns all output."""
    out = []
    for arguments in (
        ("PING",),
        ("SET", "k", "hello world"),
        ("GET", "k"),
        ("GET", "missing"),
        ("MGET", "k", "missing"),
        ("STRLEN", "k"),
        ("NOSUCH", "x"),
        ("-n", "3", "SET", "in3", "v"),
        ("-n", "3", "KEYS", "*"),
        ("-3", "GET", "missing"),
        ("-3", "MGET", "k", "missing"),
        ("-3", "CONFIG", "GET", "timeout"),
        ("--csv", "MGET", "k", "missing"),
        ("--json", "MGET", "k", "missing"),
        ("--no-raw", "GET", "k"),
        ("--no-raw", "MGET", "k", "missing"),
        ("--quoted-input", "SET", '"a\\x00b"', '"v"'),
        ("--quoted-input", "EXISTS", '"a\\x00b"'),
        ("LCS", "k", "k", "IDX"),
        ("OBJECT", "ENCODING", "k"),
        ("-r", "3", "INCR", "n"),
        ("-d", ",", "MGET", "k", "k"),
    ):
        out.append(server_cli(*arguments, expect=None))
    return out


@test(timeout=60)
def redis_cli_one_shot(context):
    outputs = [
        one_shots(lambda *args, **options: cli(context, *args, server=server, **options))
        for server in (context.stock, context.sut)
    ]
    for expected, actual in zip(*outputs):
        context.same(actual.encode(), expected.encode(), "redis-cli")


@test()
def redis_cli_script(context):
    """Commands on standard input, a transaction and a switch of protocol among them."""
    script = b"SET a 1\nMULTI\nINCR a\nGET a\nEXEC\nSELECT 2\nSET b 2\nDBSIZE\n"
    script += b"HELLO 3\nGET nope\nECHO end\n"
    outputs = [
        cli(context, server=server, stdin=script) for server in (context.stock, context.sut)
    ]
    keep = [re.sub(r"(?m)^(version|id)\n.*\n", "", text) for text in outputs]
    keep = [re.sub(r"(version|id) .*\n", "", text) for text in keep]
    eq(keep[1].encode(), keep[0].encode())


@test()
def redis_cli_url_and_stdin_argument(context):
    url = "redis://127.0.0.1:%d/4" % context.sut.port
    eq(
        run(
            [need("redis-cli", "redis-tools"), "-u", url, "-x", "SET", "from-stdin"], stdin=b"body"
        ),
        "OK\n",
    )
    eq(cli(context, "-n", "4", "GET", "from-stdin"), "body\n")


@test()
def redis_cli_pipe(context):
    commands = b"".join(resp.encode("SET", "p%d" % i, "v%d" % i) for i in range(20000))
    text = cli(context, "--pipe", stdin=commands)
    check("errors: 0, replies: 20000" in text, text)
    client = context.client()
    eq(client.call("DBSIZE"), 20000)
    eq(client.call("GET", "p19999"), b"v19999")
    text = cli(context, "--pipe", stdin=b"SET a\r\nSET a 1\r\nINCRBY a x\r\n", expect=None)
    check("errors: 2, replies: 3" in text, text)


@test()
def redis_cli_scan(context):
    context.client().pipeline(
        [("SET", "user:%d" % i, "v") for i in range(1000)] + [("SET", "x", "v")]
    )
    lines = cli(context, "--scan", "--pattern", "user:*").split()
    eq(len(lines), 1000)
    eq(len(set(lines)), 1000)
    eq(len(cli(context, "--scan").split()), 1001)


@test(timeout=60)
def redis_cli_big_keys(context):
    client = context.client()
    client.pipeline([("SET", "k%d" % i, "v" * (i + 1)) for i in range(200)])
    text = cli(context, "--bigkeys")
    check('"k199"' in text and "has 200 bytes" in text, text)
    text = cli(context, "--memkeys")
    check(re.search(r"Biggest +string found .*k1\d\d", text), text)
    with context.sut.configured(maxmemory_policy="allkeys-lfu"):
        for _ in range(300):
            client.call("GET", "k7")
        text = cli(context, "--hotkeys")
        check('"k7"' in text, text)


@test(timeout=60)
def redis_cli_stat_and_latency(context):
    line = [need("stdbuf", "coreutils"), "-oL", need("redis-cli", "redis-tools")]
    line += ["-p", str(context.sut.port), "--stat", "-i", "0.1"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        lines = [process.stdout.readline().decode() for _ in range(3)]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    check("clients" in lines[1], "".join(lines))
    check(re.match(r"\s*\d+ +[\d.]+[KMG]", lines[2]), "".join(lines))
    text = cli(context, "--latency", "--csv", "-i", "1", seconds=30, expect=None)
    check(re.match(r"[\d.]+,[\d.]+,[\d.]+,\d+", text), text)


@test()
def redis_cli_subscribe(context):
    line = [need("redis-cli", "redis-tools"), "-p", str(context.sut.port), "SUBSCRIBE", "news"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        client = context.client()
        deadline = time.monotonic() + 15 * SLOW
        while client.call("PUBLISH", "news", "hello") == 0:
            check(time.monotonic() < deadline, "redis-cli did not subscribe")
            time.sleep(0.01)
        lines = [process.stdout.readline().decode().strip() for _ in range(6)]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    eq(lines[:2], ["subscribe", "news"])
    eq(lines[3:], ["message", "news", "hello"])


@test()
def redis_cli_password(context):
    server = context.start("--requirepass", "secret")
    check("NOAUTH" in cli(context, "PING", server=server, expect=None), "no password asked")
    eq(cli(context, "-a", "secret", "--no-auth-warning", "PING", server=server), "PONG\n")
    eq(
        cli(
            context,
            "--user",
            "default",
            "--pass",
            "secret",
            "--no-auth-warning",
            "PING",
            server=server,
        ),
        "PONG\n",
    )


def benchmark(context, *arguments):
    line = [need("redis-benchmark", "redis-tools"), "-p", str(context.sut.port)] + list(arguments)
    return run(line, seconds=60)


@test(timeout=90)
def redis_benchmark(context):
    text = benchmark(context, "-t", "set,get,incr,mset,ping", "-q", "-n", "4000", "-c", "20")
    for name in ("PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET"):
        check(re.search(name + r"[^\n]*: [\d.]+ requests per second", text), text)
    check("WARNING" not in text and "rror" not in text, text)


@test(timeout=90)
def redis_benchmark_pipelines_and_threads(context):
    text = benchmark(
        context, "-t", "set,get", "-q", "-n", "50000", "-P", "16", "-r", "1000", "-d", "100"
    )
    eq(text.count("requests per second"), 2, text)
    text = benchmark(
        context, "-t", "set,incr", "-q", "-n", "30000", "--threads", "2", "-c", "10", "-P", "8"
    )
    eq(text.count("requests per second"), 2, text)
    text = benchmark(context, "-q", "-n", "2000", "-3", "GETRANGE", "key:__rand_int__", "0", "3")
    check("requests per second" in text, text)
    text = benchmark(context, "--csv", "-t", "set", "-n", "2000")
    check(re.search(r'"SET","[\d.]+"', text), text)


@test(timeout=120)
def hiredis(context):
    """The program in hiredis_client.cc: synchronous, pipelined, RESP3, asynchronous pub/sub."""
    folder = context.temp_dir()
    binary = os.path.join(folder, "hiredis_client")
    source = os.path.join(HERE, "hiredis_client.cc")
    compiler = need("g++", "g++")
    run([compiler, "-std=c++20", "-O1", "-Wall", "-o", binary, source, "-lhiredis"], seconds=90)
    text = run([binary, "127.0.0.1", str(context.sut.port)], seconds=30)
    check(text.strip().endswith("all good"), text)


@test(timeout=180)
def ioredis(context):
    """The program in ioredis_test.mjs; its package is installed on first use."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if not npm or not node:
        raise Skip("npm is not installed (Debian packages nodejs, npm)")
    if not os.path.isdir(os.path.join(HERE, "node_modules", "ioredis")):
        run([npm, "ci", "--no-audit", "--no-fund"], seconds=120, cwd=HERE)
    text = run([node, os.path.join(HERE, "ioredis_test.mjs"), str(context.sut.port)], seconds=60)
    check(text.strip().endswith("all good"), text)
