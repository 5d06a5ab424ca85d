"""Sketches: near fingerprints through the index against a scan, and what counting costs.

A million documents with random fingerprints; every query is one bit away from one of them, at
distance 3. The server's CPU per SIMHASH.QUERY (pipeline 16, the whole command: reading, searching,
answering) is held against the CPU of the best plain scan, in process, over one array of a million
fingerprints (sava_bench_sketches). The rest is for information.
"""

import random
import statistics

import associations
import harness
import report
import resp

PIPELINE = 16
ITEMS = 100_000


def fill(server, documents):
    """Documents with random fingerprints; returns these."""
    rng = random.Random(1)
    fingerprints = [rng.getrandbits(64) for _ in range(documents)]
    with server.connect() as connection:
        for first in range(0, documents, 1000):
            part = fingerprints[first : first + 1000]
            connection.send(b"".join(
                resp.pack(b"SIMHASH.ADD", b"docs", b"%d" % (first + i), b"HASH", b"%016x" % value)
                for i, value in enumerate(part)))
            for _ in part:
                connection.read()
    return fingerprints


def cpu_each(server, requests):
    """CPU microseconds of the server per request, PIPELINE at a time over one connection."""
    batches = [b"".join(requests[i : i + PIPELINE]) for i in range(0, len(requests), PIPELINE)]
    with server.connect() as connection:
        before = server.cpu_seconds()
        for batch in batches:
            connection.send(batch)
            for _ in range(PIPELINE):
                if isinstance(reply := connection.read(), resp.ReplyError):
                    raise reply
        return (server.cpu_seconds() - before) / (len(batches) * PIPELINE) * 1e6


def queries(fingerprints, count):
    rng = random.Random(2)
    return [resp.pack(b"SIMHASH.QUERY", b"docs", b"HASH",
                    b"%016x" % (rng.choice(fingerprints) ^ (1 << rng.randrange(64))))
            for _ in range(count)]


def counting(kind, count):
    """Items by Zipf's law with exponent 1 (by the inverse of its integral)."""
    rng = random.Random(3)
    items = (b"item:%d" % int(ITEMS ** rng.random()) for _ in range(count))
    if kind == "cms":
        return [resp.pack(b"CMS.INCRBY", b"cms", item, b"1") for item in items]
    if kind == "topk":
        return [resp.pack(b"TOPK.ADD", b"topk", item) for item in items]
    return [resp.pack(b"INCR", item) for item in items]


def run(session):
    documents = session.pick(1_000_000, 100_000)
    requests = session.pick(160_000, 32_000)
    rows = []
    with session.sava("--threads", "1") as sava:
        wanted = queries(fill(sava, documents), requests)
        pairs, tools = [], []
        for _ in range(session.pairs):
            served = cpu_each(sava, wanted)
            tools.append(associations.run_tool(
                session, "sava_bench_sketches", ["--json", "--documents", str(documents)]))
            pairs.append((served, tools[-1]["scan_ns"] / 1000))
        row = report.Row("simhash_query_against_scan", statistics.median(p[0] for p in pairs),
                         "µs CPU", statistics.median(p[1] for p in pairs),
                         harness.median_ratio(pairs), 0.02, judged="ratio", pairs=len(pairs),
                         note=f"SIMHASH.QUERY distance 3 among {documents} documents against a "
                         "popcount scan in process",
                         details={"ratios": [round(a / b, 5) for a, b in pairs]})
        rows.append(row)
        harness.say(f"{row.name}: {row.value:.2f} against {row.redis:.2f} µs, {row.ratio:.4f}")
        with sava.connect() as connection:
            connection.command("CMS.INITBYDIM", "cms", "2000", "7")
            connection.command("TOPK.RESERVE", "topk", "50", "2000", "7", "0.9")
        for kind, name in (("cms", "cms_incrby"), ("topk", "topk_add")):
            both = [(cpu_each(sava, counting(kind, requests)),
                     cpu_each(sava, counting("incr", requests))) for _ in range(session.pairs)]
            rows.append(report.Row(
                name + "_p16", statistics.median(p[0] for p in both), "µs CPU",
                statistics.median(p[1] for p in both), harness.median_ratio(both),
                pairs=len(both), note="against our own INCR of as many keys"))
    for name, unit, note in (
            ("index_ns", "ns", "search by the index, in process"),
            ("own_scan_ns", "ns", "search of distance 4, by comparing all, in process"),
            ("bytes", "bytes", "a document, its id left out"),
            ("cms_ns", "ns", "an increment of a 2000 x 7 sketch, in process"),
            ("topk_ns", "ns", "an addition to a list of 50, in process")):
        rows.append(report.Row(name, statistics.median(t[name] for t in tools), unit,
                               pairs=len(tools), note=note))
    return rows


BENCHMARK = harness.Benchmark("sketches", "near fingerprints against a scan; counting", run)
