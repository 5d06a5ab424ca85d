"""Rate limits: what RL.TAKE costs, and what the server's own limiter costs every other command.

RL.TAKE is measured against the way it is done on stock Redis (MULTI, INCR, EXPIRE, EXEC) and
against our own INCR, on 100,000 buckets that all exist; every take is allowed, so every one writes.
The load is the same for all: 50 connections, each sending its next requests when the last ones are
answered. The limiter is switched on and off in one server, in turns, with one bucket that all
connections share and that never runs out.
"""

import dataclasses
import random
import select
import socket
import statistics

import harness
import report

KEYS = 100_000
CONNECTIONS = 50
PERIOD_MS = 3_600_000
LIMIT = 10_000
ENDLESS = 1_000_000_000


@dataclasses.dataclass
class Kind:
    """A request: its bytes for a key, and how many lines its reply has."""

    name: str
    lines: int
    words: tuple

    def request(self, key):
        parts = []
        for command in self.words:
            args = [word if word != "KEY" else key for word in command]
            parts.append(b"*%d\r\n" % len(args))
            for arg in args:
                data = arg.encode()
                parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
        return b"".join(parts)


def take(algorithm):
    return Kind("take_" + algorithm.lower(), 6,
                (("RL.TAKE", "KEY", algorithm, str(LIMIT), str(PERIOD_MS)),))


INCR = Kind("incr", 1, (("INCR", "KEY"),))
TRANSACTION = Kind("transaction", 6, (("MULTI",), ("INCR", "KEY"),
                                      ("EXPIRE", "KEY", str(PERIOD_MS // 1000)), ("EXEC",)))


def load(server, kind, requests, pipeline, seed=1):
    """CPU microseconds of the server per request."""
    rng = random.Random(seed)
    batches = [b"".join(kind.request(f"{kind.name}:{rng.randrange(KEYS):06}")
                        for _ in range(pipeline)) for _ in range(max(256, 8192 // pipeline))]
    wanted = kind.lines * pipeline
    sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(CONNECTIONS)]
    by_fd = {s.fileno(): s for s in sockets}
    seen = dict.fromkeys(by_fd, 0)
    poller = select.epoll()
    try:
        for s in sockets:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            poller.register(s, select.EPOLLIN)
        before = server.cpu_seconds()
        to_send = requests // pipeline
        sent = finished = 0
        for s in sockets:
            s.sendall(batches[sent % len(batches)])
            sent += 1
        while finished < sent:
            for fd, _ in poller.poll(30):
                data = by_fd[fd].recv(65536)
                if not data or data.startswith(b"-"):
                    raise harness.BenchError(f"{kind.name}: {data[:100]!r}")
                seen[fd] += data.count(b"\n")
                if seen[fd] < wanted:
                    continue
                seen[fd] = 0
                finished += 1
                if sent < to_send:
                    by_fd[fd].sendall(batches[sent % len(batches)])
                    sent += 1
        return (server.cpu_seconds() - before) / (finished * pipeline) * 1e6
    finally:
        poller.close()
        for s in sockets:
            s.close()


def create(server, kind):
    """Every bucket once, so that no reading pays for the creation of keys."""
    with server.connect() as connection:
        for first in range(0, KEYS, 1000):
            connection.send(b"".join(
                kind.request(f"{kind.name}:{i:06}") for i in range(first, first + 1000)))
            for _ in range(1000 * len(kind.words)):
                connection.read()


def compare(session, name, bar, pipeline, ours, theirs):
    """A row from two (server, kind) measured in turns."""
    requests = session.pick(400_000, 100_000) // (1 if pipeline > 1 else 4)
    pairs = []
    for number in range(session.pairs):
        readings = {}
        for side, (server, kind) in (("ours", ours), ("theirs", theirs))[::1 if number % 2 else -1]:
            readings[side] = load(server, kind, requests, pipeline)
        pairs.append((readings["ours"], readings["theirs"]))
    row = report.Row(name, statistics.median(p[0] for p in pairs), "µs CPU",
                     statistics.median(p[1] for p in pairs), harness.median_ratio(pairs), bar,
                     judged="ratio", pairs=len(pairs),
                     note=f"{ours[1].name} against {theirs[1].name} of {theirs[0].role}",
                     details={"ratios": [round(a / b, 4) for a, b in pairs]})
    harness.say(f"{name}: {row.value:.2f} against {row.redis:.2f} µs, ratio {row.ratio:.3f} ({bar})")
    return row


def take_rows(session):
    rows = []
    with session.sava("--threads", "1") as sava, session.stock() as redis:
        window, token, gcra, sliding = map(take, ("WINDOW", "TOKEN", "GCRA", "SLIDING"))
        for kind in (window, token, gcra, sliding, INCR):
            create(sava, kind)
        create(redis, TRANSACTION)
        for pipeline in (16, 1):
            # One by one the way through the network outweighs what is done at its end.
            rows.append(compare(session, f"take_against_transaction_p{pipeline}",
                                0.4 if pipeline > 1 else None, pipeline,
                                (sava, window), (redis, TRANSACTION)))
            rows.append(compare(session, f"take_against_incr_p{pipeline}", 1.3, pipeline,
                                (sava, window), (sava, INCR)))
        for kind in (token, gcra, sliding):
            rows.append(compare(session, f"{kind.name}_against_incr_p16", None, 16,
                                (sava, kind), (sava, INCR)))
    return rows


def limiter_row(session, sava, name, bar, pipeline):
    requests = session.pick(1_000_000, 250_000) // (1 if pipeline > 1 else 5)
    readings = {"yes": [], "no": []}

    def measure(enabled):
        with sava.connect() as connection:
            connection.command("CONFIG", "SET", "ratelimit-enabled", enabled)
        readings[enabled].append(harness.redis_benchmark(
            sava, test="get", requests=requests, pipeline=pipeline, keyspace=KEYS).cpu_us)

    for number in range(session.pairs):
        for enabled in ("yes", "no")[::1 if number % 2 else -1]:
            measure(enabled)
    pairs = list(zip(readings["yes"], readings["no"], strict=True))
    row = report.Row(name, statistics.median(readings["yes"]), "µs CPU",
                     statistics.median(readings["no"]), harness.median_ratio(pairs), bar,
                     judged="ratio", pairs=len(pairs), note="limiter on against off",
                     details={"ratios": [round(a / b, 4) for a, b in pairs]})
    harness.say(f"{name}: {row.value:.2f} against {row.redis:.2f} µs, ratio {row.ratio:.3f} ({bar})")
    return row


def limiter_rows(session):
    rows = []
    for threads in ("1", "0"):
        with session.sava("--threads", threads, "--ratelimit-default",
                          f"window {ENDLESS} 3600s") as sava:
            harness.preload(sava, KEYS, value_bytes=64)
            suffix = "" if threads == "1" else "_default_threads"
            rows.append(limiter_row(session, sava, "limiter_get_p1" + suffix, 1.10, 1))
            rows.append(limiter_row(session, sava, "limiter_get_p16" + suffix, 1.25, 16))
    return rows


def run(session):
    return take_rows(session) + limiter_rows(session)


BENCHMARK = harness.Benchmark("limits", "RL.TAKE, and the server's own limiter on and off", run)
