"""Start, configuration file, refusals, signals, SHUTDOWN and exit codes."""

import contextlib
import os
import re
import resource
import signal

import resp
from harness import READY, Server, Skip, check, eq, free_port, test, until


def config_file(context, text):
    path = os.path.join(context.temp_dir(), "server.conf")
    with open(path, "w") as file:
        file.write(text)
    return path


@test()
def exit_codes_of_signals(context):
    for signum in (signal.SIGTERM, signal.SIGINT):
        server = context.start()
        client = context.client(server)
        client.call("SET", "a", "1")
        eq(server.terminate(signum), 0, signum.name)
        check(client.closed_by_server(10), "the connection is still open")


@test()
def signal_under_load(context):
    server = context.start()
    clients = [context.client(server) for _ in range(10)]
    for client in clients:
        client.raw(resp.encode("SET", "k", "x" * 1000) * 500)
    eq(server.terminate(), 0)


@test()
def shutdown_command(context):
    for arguments in (("NOSAVE",), ("nosave", "NOW"), ("NOSAVE", "FORCE"), ()):
        server = context.start()
        client = context.client(server)
        client.send("SHUTDOWN", *arguments)
        eq(client.read_to_end(), b"", "no reply to SHUTDOWN")
        eq(server.wait_exit(), 0, " ".join(("SHUTDOWN",) + arguments))


@test()
def port_busy(context):
    first = context.start()
    code, output = context.try_start(port=first.port)
    eq(code, 1, "exit code")
    check("in use" in output and str(first.port) in output, output)
    if context.is_sava:
        check("pid %d)" % first.process.pid in output, "who has the port is not told: " + output)
        check("--port" in output, "what to do is not told: " + output)


@test()
def fatal_errors_are_printed_once(context):
    """In the log, and on the terminal when the log is elsewhere."""
    first = context.start()
    code, output = context.try_start(port=first.port)
    eq((code, output.count("in use")), (1, 1), "the port: " + output)
    folder = context.temp_dir()
    with open(os.path.join(folder, "dump.rdb"), "wb") as file:
        file.write(b"REDIS0009 and then nothing of the kind")
    log = os.path.join(folder, "log")
    code, output = context.try_start("--dir", folder, "--logfile", log)
    eq(code, 1, "a damaged dump: " + output)
    with open(log) as file:
        text = file.read()
    if context.is_sava:
        eq(text.count("Can't load the data"), 1, "in the log: " + text)
        eq(output.count("Can't load the data"), 1, "on the terminal: " + output)


@test()
def log_file_in_a_missing_directory(context):
    missing = os.path.join(context.temp_dir(), "missing")
    code, output = context.try_start("--logfile", os.path.join(missing, "log"))
    eq(code, 1, "exit code")
    check("Can't open the log file" in output, output)
    check(not os.path.exists(missing), "the directory was made")


@test()
def log_lines_carry_their_level(context):
    """'.' debug, '-' verbose, '*' notice, '#' warning."""
    server = context.start("--loglevel", "debug")
    client = context.client(server)
    eq(client.call("DEBUG", "LOG", "a warning"), resp.OK)
    broken = context.client(server)
    broken.raw(b"*1\r\n$-5\r\n")
    check(broken.closed_by_server(10), "a protocol error closes the connection")
    until(lambda: b"Protocol error" in server.log(), what="the line about the protocol error")
    marks = {}
    for line in server.log().decode().splitlines():
        found = re.fullmatch(r"\d+:M \d\d \w{3} \d{4} \d\d:\d\d:\d\d\.\d{3} ([.*#-]) (.*)", line)
        if found:
            marks[found[2]] = found[1]
    for text, mark in (
        ("DEBUG LOG: a warning", "#"),
        ("Ready to accept connections", "*"),
        ("Protocol error", "-"),
    ):
        seen = {m for line, m in marks.items() if line.startswith(text)}
        context.expect(seen == {mark}, "%s: %s" % (text, sorted(seen)))


@test()
def a_new_data_set_is_announced(context):
    context.sava_only("Redis has no such line")
    line = b"a new, empty data set begins"
    folder = context.temp_dir()
    for options in (("--appendonly", "yes"), ("--appendonly", "no", "--save", "900 1")):
        place = os.path.join(folder, options[1])
        first = context.start("--dir", place, *options)
        check(line in first.log(), "not told with %s" % (options,))
        first.call("SET", "a", "1")
        eq(first.terminate(), 0)
        second = context.start("--dir", place, *options)
        check(line not in second.log(), "told for an old one with %s" % (options,))
        eq(second.call("GET", "a"), b"1")


@test()
def bad_directory(context):
    missing = os.path.join(context.temp_dir(), "no", "such")
    code, output = context.try_start("--dir", missing)
    eq(code, 1, "exit code")
    check(missing in output, output)


@test()
def unknown_option(context):
    code, output = context.try_start("--nosuch-option", "5")
    eq(code, 1, "exit code")
    check("nosuch-option" in output, output)


@test()
def bad_values(context):
    for option, value in (
        ("--maxmemory", "lots"),
        ("--timeout", "-1"),
        ("--maxmemory-policy", "bogus"),
        ("--databases", "0"),
        ("--loglevel", "shout"),
        ("--appendonly", "maybe"),
        ("--maxmemory-samples", "0"),
    ):
        code, output = context.try_start(option, value)
        context.expect(code == 1, "%s %s: exit code %s" % (option, value, code))
        context.expect(option[2:] in output, "%s %s: %s" % (option, value, output[-300:]))


@test()
def unknown_name_in_a_file(context):
    """The error names the line and what stands there."""
    path = config_file(context, "# remark\n\nmaxmemory 10mb\nnosuch-option 5\ntimeout 3\n")
    code, output = context.try_start(config=path)
    eq(code, 1, "exit code")
    check("nosuch-option" in output and "4" in output, output)
    if context.is_sava:
        check(os.path.basename(path) in output, "the file is not named: " + output)


@test()
def missing_file(context):
    path = os.path.join(context.temp_dir(), "nosuch.conf")
    code, output = context.try_start(config=path)
    eq(code, 1, "exit code")
    check("nosuch.conf" in output, output)


@test()
def configuration_file(context):
    """Remarks, blank lines, quotes, includes, several values, flags after the file win."""
    folder = context.temp_dir()
    included = os.path.join(folder, "included.conf")
    with open(included, "w") as file:
        file.write("maxmemory-samples 7\ntimeout 11\n")
    path = config_file(
        context,
        '# remark\n\n   timeout 10   \nMAXMEMORY 20mb\nmaxmemory-policy "allkeys-lru"\n'
        'include %s\nrequirepass "a b\\x41"\nclient-output-buffer-limit pubsub 1mb 2mb 3\n'
        "notify-keyspace-events KEA\nslowlog-max-len 5\n" % included,
    )
    server = context.start("--slowlog-max-len", "6", config=path)
    client = context.client(server)
    eq(client.call("AUTH", "a bA"), resp.OK)

    def setting(name):
        return client.call("CONFIG", "GET", name)[1].decode()

    eq(setting("timeout"), "11")
    eq(setting("maxmemory"), str(20 << 20))
    eq(setting("maxmemory-policy"), "allkeys-lru")
    eq(setting("maxmemory-samples"), "7")
    eq(setting("notify-keyspace-events"), "AKE")
    eq(setting("slowlog-max-len"), "6")
    check(setting("client-output-buffer-limit").endswith("pubsub 1048576 2097152 3"), "limits")


@test()
def harmless_settings_are_accepted(context):
    """A redis.conf as distributions ship it starts."""
    path = config_file(
        context,
        """
protected-mode yes
tcp-backlog 511
tcp-keepalive 300
daemonize no
supervised no
loglevel notice
databases 16
always-show-logo no
set-proc-title yes
stop-writes-on-bgsave-error yes
rdbcompression yes
rdbchecksum yes
dbfilename dump.rdb
replica-serve-stale-data yes
replica-read-only yes
repl-diskless-sync yes
acllog-max-len 128
lazyfree-lazy-eviction no
oom-score-adj no
appendfilename "appendonly.aof"
appendfsync everysec
auto-aof-rewrite-percentage 100
lua-time-limit 5000
slowlog-max-len 128
hash-max-listpack-entries 512
list-max-listpack-size -2
set-max-intset-entries 512
zset-max-listpack-entries 128
activerehashing yes
hz 10
dynamic-hz yes
jemalloc-bg-thread yes
ignore-warnings ARM64-COW-BUG
client-output-buffer-limit normal 0 0 0
client-output-buffer-limit replica 256mb 64mb 60
client-output-buffer-limit pubsub 32mb 8mb 60
""",
    )
    server = context.start(config=path)
    eq(server.call("PING"), resp.PONG)


@test()
def settings_that_promise_safety_are_refused(context):
    context.sava_only("Redis has these features")
    for option in (
        ("--tls-cluster", "yes"),
    ):
        code, output = context.try_start(*option)
        context.expect(code == 1, "%s: exit code %s" % (option[0], code))
        context.expect(option[0][2:] in output, "%s: %s" % (option[0], output[-300:]))
    path = config_file(context, "port 0\ntls-cluster yes\n")
    code, output = context.try_start(config=path)
    eq(code, 1, "in a file")
    check("tls-cluster" in output and "2" in output, output)


@test()
def log_and_pid_file(context):
    folder = context.temp_dir()
    log, pid = os.path.join(folder, "log"), os.path.join(folder, "pid")
    server = Server(
        context.options.server, ("--logfile", log, "--pidfile", pid), context.options.threads
    )
    context.at_end(server.remove_files)
    context.at_end(server.stop)
    server.port = free_port()
    server.spawn(server.command_line(server.port))

    def ready():
        check(server.process.poll() is None, "it ended: %s" % server.log())
        return os.path.exists(log) and READY in open(log, "rb").read()

    until(ready, 20, "the line in the log file")
    with open(pid) as file:
        eq(int(file.read()), server.process.pid)
    eq(server.call("PING"), resp.PONG)
    check(READY not in server.log(), "the log is on standard output too")
    eq(server.terminate(), 0)
    check(not os.path.exists(pid), "the pid file is left behind")


@test()
def start_up_log(context):
    context.sava_only("the banner is Sava's")
    server = context.start()
    log = server.log().decode()
    check("PID: %d" % server.process.pid in log, log)
    check("127.0.0.1:%d" % server.port in log, "the address is not printed: " + log)


def title_of(server):
    with open("/proc/%d/cmdline" % server.process.pid, "rb") as file:
        return file.read().split(b"\0")[0].decode()


@test()
def process_title(context):
    """set-proc-title and proc-title-template: what ps shows, as in Redis."""
    template = "{title}|{listen-addr}|{server-mode}|{port}|{tls-port}|{unixsocket}|{config-file}"
    for start in (context.start_stock, context.start):
        server = start()
        eq(title_of(server), "%s 127.0.0.1:%d" % (server.binary, server.port), server.name)
        long = "a long title " * 50
        for value, expected in (
            (template, "%s|127.0.0.1:%d||%d|0||-" % (server.binary, server.port, server.port)),
            ("  {port} at {listen-addr}  ", "%d at 127.0.0.1:%d" % (server.port, server.port)),
            ("x{port}", "x%d" % server.port),
        ):
            eq(server.call("CONFIG", "SET", "proc-title-template", value), resp.OK)
            eq(title_of(server), expected, "%s: %s" % (server.name, value))
        eq(server.call("CONFIG", "SET", "proc-title-template", long), resp.OK)
        shown = title_of(server)
        check(len(shown) > 10 and long.startswith(shown), "%s: %s" % (server.name, shown))
        eq(server.call("CONFIG", "SET", "proc-title-template", "{listen-addr}"), resp.OK)
        port = free_port()
        eq(server.call("CONFIG", "SET", "port", port), resp.OK)
        server.port = port
        eq(title_of(server), "127.0.0.1:%d" % port, server.name)
        reply = server.call("CONFIG", "SET", "proc-title-template", "{nosuch}")
        check(resp.is_error(reply, "ERR CONFIG SET failed"), server.name + resp.show(reply))

        plain = start("--set-proc-title", "no")
        eq(title_of(plain), plain.binary, plain.name)
        config = config_file(context, 'proc-title-template "{config-file}"\n')
        eq(title_of(start(config=config)), config)


@test()
def threads_setting(context):
    context.sava_only("--threads is Sava's")
    for count in (1, 4):
        server = context.start(threads=count)
        eq(server.call("CONFIG", "GET", "threads"), [b"threads", str(count).encode()])
        clients = [context.client(server) for _ in range(8)]
        check(all(client.call("PING") == resp.PONG for client in clients), "PING")


def crashing(context, *options):
    """A server that is to crash: not started yet, and it leaves no core behind."""
    context.sava_only("the report is Sava's")
    with open(context.options.server, "rb") as file:
        code = file.read()
    if b"__asan_init" in code or b"__tsan_init" in code:
        raise Skip("sanitizers report crashes by themselves")
    server = Server(context.options.server, options, context.options.threads)
    context.at_end(server.remove_files)
    context.at_end(server.stop)
    return server


def without_core(server):
    resource.prlimit(server.process.pid, resource.RLIMIT_CORE, (0, 0))
    return server


def segfault(context, server):
    client = context.client(server)
    client.send("DEBUG", "SEGFAULT")
    eq(client.read_to_end(), b"")
    eq(server.wait_exit(), -signal.SIGSEGV, "exit code")


def sections(log):
    """The parts of the crash report, by the first words of their headings."""
    _, begins, report = log.decode().partition("=== CRASH REPORT BEGINS ===")
    check(begins, "no report: " + log.decode()[-500:])
    report, ends, _ = report.partition("=== CRASH REPORT ENDS ===")
    check(ends, "the report has no end: " + report)
    return {part.split()[0]: part for part in report.split("\n--- ")}


@test()
def crash_report(context):
    server = without_core(crashing(context).start())
    segfault(context, server)
    found = sections(server.log())
    check("signal 11 (SIGSEGV)" in found["Sava"], found["Sava"])
    check(re.search(r"0x[0-9a-f]{16}", found["Registers"]), found["Registers"])
    check("Segfault" in found["Stack"] and "CallHandler" in found["Stack"], found["Stack"])
    check("argv[0] DEBUG\nargv[1] SEGFAULT" in found["Running"], found["Running"])
    check("redis_version:7" in found["INFO,"], found["INFO,"])
    check("# Keyspace" in found["INFO,"], "not all of INFO: " + found["INFO,"])


@test()
def crash_report_of_a_signal_that_was_sent(context):
    """Into the log file, whose name is relative to where the server was started."""
    data = os.path.join(context.temp_dir(), "data")
    server = crashing(context, "--dir", data, "--logfile", "own.log")
    server.log_path = os.path.join(server.dir, "own.log")
    server.port = free_port()
    server.spawn(server.command_line(server.port))
    until(lambda: READY in server.log(), what="the start")
    without_core(server).process.send_signal(signal.SIGABRT)
    eq(server.wait_exit(), -signal.SIGABRT, "exit code")
    found = sections(server.log())
    check("signal 6 (SIGABRT)" in found["Sava"], found["Sava"])
    check("Sent by pid %d," % os.getpid() in found["Sava"], found["Sava"])
    check("none on this thread" in found["Running"], found["Running"])


@test()
def crash_log_enabled(context):
    for option, setting, reported in (
        ("no", None, False),
        ("yes", "no", False),
        ("no", "yes", True),
    ):
        server = without_core(crashing(context, "--crash-log-enabled", option).start())
        if setting:
            eq(server.call("CONFIG", "SET", "crash-log-enabled", setting), resp.OK)
        segfault(context, server)
        eq(b"CRASH REPORT" in server.log(), reported, "%s, then %s" % (option, setting))


@test()
def crash_report_that_cannot_be_written(context):
    """An alarm ends the process all the same, by the signal it had."""
    log = os.path.join(context.temp_dir(), "log")
    os.mkfifo(log)
    pipe = os.open(log, os.O_RDWR | os.O_NONBLOCK)
    context.at_end(os.close, pipe)
    server = crashing(context, "--logfile", log)
    server.port = free_port()
    server.spawn(server.command_line(server.port))
    seen = bytearray()

    def ready():
        with contextlib.suppress(BlockingIOError):
            seen.extend(os.read(pipe, 65536))
        return READY in seen

    until(ready, what="the start")
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(pipe, b"x" * 4096)
    segfault(context, without_core(server))
