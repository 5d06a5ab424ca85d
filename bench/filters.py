"""Bloom filters: bits per item, what BF.ADD and BF.EXISTS cost, and the blocked layout's batches.

Bits per item and the batches are measured in process (sava_bench_filters). The commands are measured
through the server on a filter reserved for 10M items at 1 % that is half full, against our own SET and
GET on as many keys as requests: 50 connections, 16 requests each at a time, every item and key a new
one for BF.ADD and SET, an existing one for BF.EXISTS and GET.
"""

import select
import socket
import statistics

import associations
import harness
import report
import resp

CONNECTIONS = 50
PIPELINE = 16
KINDS = {
    "add": lambda i: resp.pack(b"BF.ADD", b"filter", b"item:%012d" % i),
    "exists": lambda i: resp.pack(b"BF.EXISTS", b"filter", b"item:%012d" % i),
    "set": lambda i: resp.pack(b"SET", b"key:%012d" % i, b"1"),
    "get": lambda i: resp.pack(b"GET", b"key:%012d" % i),
}
REPLY_LINES = {"add": 1, "exists": 1, "set": 1, "get": 2}


def load(server, kind, first, requests):
    """CPU microseconds of the server per request; items and keys from `first` on."""
    make = KINDS[kind]
    # Scattered, as items are.
    numbers = [first + i * 7919 % requests for i in range(requests)]
    batches = [b"".join(make(i) for i in numbers[at : at + PIPELINE])
               for at in range(0, requests, PIPELINE)]
    wanted = PIPELINE * REPLY_LINES[kind]
    sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(CONNECTIONS)]
    by_fd = {s.fileno(): s for s in sockets}
    seen = dict.fromkeys(by_fd, 0)
    poller = select.epoll()
    try:
        for s in sockets:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            poller.register(s, select.EPOLLIN)
        before = server.cpu_seconds()
        sent = finished = 0
        for s in sockets:
            s.sendall(batches[sent])
            sent += 1
        while finished < sent:
            for fd, _ in poller.poll(30):
                data = by_fd[fd].recv(65536)
                if not data or b"-" in data:
                    raise harness.BenchError(f"{kind}: {data[:100]!r}")
                seen[fd] += data.count(b"\n")
                if seen[fd] < wanted:
                    continue
                seen[fd] = 0
                finished += 1
                if sent < len(batches):
                    by_fd[fd].sendall(batches[sent])
                    sent += 1
        return (server.cpu_seconds() - before) / (finished * PIPELINE) * 1e6
    finally:
        poller.close()
        for s in sockets:
            s.close()


def prepare(server, capacity):
    """A filter, half full with items nobody asks about."""
    with server.connect() as connection:
        connection.command("BF.RESERVE", "filter", "0.01", str(capacity))
        for first in range(0, capacity // 2, 1000):
            connection.send(resp.pack(
                b"BF.MADD", b"filter", *(b"old:%d" % i for i in range(first, first + 1000))))
            connection.read()


def command_rows(session):
    requests = session.pick(320_000, 32_000)
    with session.sava("--threads", "1") as sava:
        prepare(sava, session.pick(10_000_000, 100_000))
        readings = {kind: [] for kind in KINDS}
        for number in range(session.pairs):
            first = number * requests
            order = ("add", "set", "exists", "get") if number % 2 else ("set", "add", "get", "exists")
            for kind in order:
                readings[kind].append(load(sava, kind, first, requests))
    rows = []
    for ours, theirs in (("add", "set"), ("exists", "get")):
        pairs = list(zip(readings[ours], readings[theirs], strict=True))
        row = report.Row(f"bf_{ours}_against_{theirs}_p16", statistics.median(readings[ours]),
                         "µs CPU", statistics.median(readings[theirs]),
                         harness.median_ratio(pairs), 1.2, judged="ratio", pairs=len(pairs),
                         note=f"BF.{ours.upper()} against our own {theirs.upper()}",
                         details={"ratios": [round(a / b, 4) for a, b in pairs]})
        harness.say(f"{row.name}: {row.value:.2f} against {row.redis:.2f} µs, {row.ratio:.3f}")
        rows.append(row)
    return rows


def tool_rows(session):
    items = session.pick(10_000_000, 1_000_000)
    capacity = session.pick(100_000_000, 5_000_000)
    tool = associations.run_tool(session, "sava_bench_filters", [
        "--json", "--items", str(items), "--capacity", str(capacity)])
    rows = []
    for name, bar, what in (
        ("blocked_1", 10.6, "reserved, 1 %"),
        ("blocked_01", 16.5, "reserved, 0.1 %"),
        ("grown_1", 16, "never reserved, grown, 1 %"),
        ("deletable_1", 18, "DELETABLE, grown, 1 %"),
        ("classic_1", None, "LAYOUT CLASSIC, 1 %"),
        ("beyond_1", None, "twice the reserved capacity, 1 %"),
    ):
        promise = 0.001 if name == "blocked_01" else 0.01
        rows.append(report.Row(f"bits_{name}", tool[f"{name}_bits"], "bits/item", bar=bar, note=what,
                               details={"add_ns": tool[f"{name}_add_ns"]}))
        rows.append(report.Row(f"rate_{name}", tool[f"{name}_rate"] / promise, "of the promise",
                               bar=1.1, note=what))
        rows.append(report.Row(f"lost_{name}", tool[f"{name}_lost"], "items", bar=0,
                               note="false negatives"))
    blocked, classic = tool["blocked_ns"], tool["classic_ns"]
    rows.append(report.Row("mexists_32_blocked_against_classic", blocked, "ns/item", classic,
                           blocked / classic, 0.35, judged="ratio",
                           note="in process, batches of 32, against LAYOUT CLASSIC"))
    return rows


def run(session):
    return tool_rows(session) + command_rows(session)


BENCHMARK = harness.Benchmark("filters", "Bloom filters: bits per item, rates, CPU", run)
