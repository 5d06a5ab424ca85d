"""The URL frontier: what FR.ADD and FR.NEXT cost the server, and what it holds in memory.

Through the server: FR.ADD in batches of 100, dedup seen, 10M URLs of 72 bytes over 100k hosts, and
FR.NEXT in batches of 100 from a queue of a tenth of them and from the full one; 16 batches at a
time, one thread, its CPU time; medians of several servers, since much of the time goes to memory
that the machine makes, faster or slower. In process (sava_bench_frontier): the same without sockets, and bytes
per pending URL, per host and per URL seen.
"""

import statistics

import associations
import harness
import report
import resp

KEY = b"frontier"
BATCH = 100
PIPELINE = 16  # batches at a time
URL = b"http://www.site-%06d.example.org/section-%02d/some-article-%08d.html"
URL_SIZE = len(URL % (0, 0, 0))


class Load:
    def __init__(self, server, hosts):
        self.connection = server.connect()
        self.server = server
        self.hosts = hosts
        self.added = 0

    def exchange(self, commands, reply_size, check):
        """Sends commands, PIPELINE at a time; every reply has the same size. CPU seconds."""
        before = self.server.cpu_seconds()
        for at in range(0, len(commands), PIPELINE):
            part = commands[at : at + PIPELINE]
            self.connection.send(b"".join(part))
            for _ in part:
                check(self.read(reply_size))
        return self.server.cpu_seconds() - before

    def read(self, size):
        parts, missing = [], size
        while missing > 0:
            data = self.connection.sock.recv(missing)
            if not data:
                raise harness.BenchError("the server closed the connection")
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    def urls(self, first, count):
        hosts = self.hosts
        for i in range(first, first + count):
            mixed = i * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
            yield URL % (mixed % hosts, i % 37, i)

    def add(self, count):
        """CPU seconds for `count` URLs that are new."""
        head = b"*%d\r\n$6\r\nFR.ADD\r\n$%d\r\n%s\r\n" % (BATCH + 2, len(KEY), KEY)
        item = b"$%d\r\n%%s\r\n" % URL_SIZE
        good = b"*%d\r\n" % BATCH + b":1\r\n" * BATCH

        def check(reply):
            if reply != good:
                raise harness.BenchError("FR.ADD answered %r" % reply[:100])

        def commands(first):
            return [
                head + b"".join(item % url for url in self.urls(at, BATCH))
                for at in range(first, first + 100 * BATCH, BATCH)
            ]

        used = 0.0
        for first in range(self.added, self.added + count, 100 * BATCH):
            used += self.exchange(commands(first), len(good), check)
        self.added += count
        return used

    def next(self, count, strategy):
        """CPU seconds for serving `count` URLs."""
        command = resp.pack(b"FR.NEXT", KEY, b"%d" % BATCH, b"STRATEGY", strategy)
        header = b"*%d\r\n" % BATCH
        size = len(header) + BATCH * (URL_SIZE + len(b"$%d\r\n" % URL_SIZE) + 2)

        def check(reply):
            if not reply.startswith(header + b"$%d\r\nhttp://" % URL_SIZE):
                raise harness.BenchError("FR.NEXT answered %r" % reply[:100])

        return self.exchange([command] * (count // BATCH), size, check)


STRATEGIES = (b"breadth", b"depth")


def server_run(session, total, hosts):
    """Figures of one server that is filled and partly emptied, by name."""
    tenth, taken = total // 10, total // 50
    with session.sava("--threads", "1") as sava:
        with sava.connect() as connection:
            connection.command("FR.CREATE", KEY, "DEDUP", "seen")
        load = Load(sava, hosts)
        first = load.add(tenth)
        short = {s: load.next(taken, s) for s in STRATEGIES}
        before = sava.rss()
        middle = load.add(total - 2 * tenth)
        last = load.add(tenth)
        figures = {
            "add_first_tenth": tenth / first / 1e6,
            "add_last_tenth": tenth / last / 1e6,
            "add_all": total / (first + middle + last) / 1e6,
            "add_slower_when_full": last / first,
            "rss_per_url": (sava.rss() - before) / (total - tenth),
        }
        for strategy in STRATEGIES:
            full = load.next(taken, strategy)
            name = "next_" + strategy.decode()
            figures[name] = taken / full / 1e6
            figures[name + "_full_against_short"] = full / short[strategy]
    harness.say(", ".join(f"{name} {value:.2f}" for name, value in figures.items()))
    return figures


def server_rows(session):
    total = session.pick(10_000_000, 200_000)
    hosts = session.pick(100_000, 5_000)
    harness.need_memory(session.pick(3 << 30, 1 << 30))
    runs = [server_run(session, total, hosts) for _ in range(session.pairs)]

    def row(name, unit, note, **bar):
        values = [figures[name] for figures in runs]
        return report.Row(name, statistics.median(values), unit, note=note, pairs=len(values),
                          details={"runs": [round(value, 3) for value in values]}, **bar)

    def rate(name, bar, note):
        return row(name, "M URLs/CPU-s", note, bar=bar, sense="min")

    rows = [
        rate("add_first_tenth", None, "the first 1M URLs"),
        rate("add_last_tenth", 1.5, "FR.ADD by 100, at 10M URLs"),
        rate("add_all", 1.5, "FR.ADD by 100"),
        row("add_slower_when_full", "×", "last tenth against the first", bar=1.2),
        row("rss_per_url", "bytes", "added: path, seen and all; RSS of the server"),
    ]
    for strategy in STRATEGIES:
        name = "next_" + strategy.decode()
        rows.append(rate(name, 2.0, "FR.NEXT 100 from the full queue"))
        rows.append(row(name + "_full_against_short", "×", "ten times the queue", bar=1.5))
    return rows


def tool_rows(session):
    tool = associations.run_tool(session, "sava_bench_frontier", [
        "--json", "--urls", str(session.pick(10_000_000, 500_000)),
        "--hosts", str(session.pick(100_000, 5_000))])
    harness.say(f"in process: {tool}")
    bars = {"bytes_pending_beside_seen": 12, "bytes_host": 160, "bytes_seen_worst": 12}
    return [
        report.Row("process_" + name, value, "bytes" if name.startswith("bytes") else "",
                   bar=bars.get(name), note="in process")
        for name, value in tool.items() if isinstance(value, (int, float))
    ]


def run(session):
    return server_rows(session) + tool_rows(session)


BENCHMARK = harness.Benchmark("frontier", "URL frontier: FR.ADD, FR.NEXT, memory", run)
