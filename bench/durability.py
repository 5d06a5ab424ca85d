"""Durability: snapshots, the append-only log and loading, beside stock Redis on the same work.

Sections, each with servers of its own (SAVA_DURABILITY=saves,logs takes some of them only):

saves     10M keys of 16 bytes with values of 32: BGSAVE idle, beside a client of 1,000 SET/s, under
          20,000 random SET/s, and under writers at full speed with `save-max-rate 50mb`: the time,
          the extra memory, the latency of the paced client.
counter   one counter of 5M members, BGSAVE under 20,000 AFC.ADD/s: memory, the longest loop stall.
loads     time from the start of the process until it has loaded 10M keys: the same RDB file, and
          the same append-only log (one increment behind an empty base), for both.
logs      throughput with the log on (`everysec`) against off, and with `always` against Redis.
counters  100,000 counters of 100 members: size of the snapshot, time and memory of loading it,
          against the same as sorted sets in Redis.

A save lasts from BGSAVE until the new file has taken the place of the old one. Its memory is the
most that VmRSS, for Redis with the child's private dirty memory added, was above VmRSS before.
Latency counts from the instant a command is sent, which is when it is due, whether others are
answered or not; how late the load itself was, for want of a processor, is given beside it. The
load comes from sava_load_durability; its own CPU stands in the details. From 4 cores on it has the
last one for itself and the servers have the others; on fewer, all share all. Data lie in a
temporary folder on a disk (TMPDIR), page cache warm, and are removed at the end.
"""

import contextlib
import dataclasses
import os
import random
import shutil
import statistics
import tempfile
import time

import harness
import report
import resp
from durability_tools import (Latencies, Load, Save, Server, attempt, disk_folder, in_turns,
                              pair_of, percentile, ratio_row, save, value_row, watch_idle)

MEGA = 1_000_000
RATE = 20_000
PACED_RATE = 1_000


# ---- saves: many keys ----

@dataclasses.dataclass
class Paced:
    """A save, and the latencies of a paced client before and during it."""

    save: Save
    before: Latencies
    during: Latencies
    load: dict


def paced_save(session, server, folder, keys, rate=0):
    """A save beside a client of 1,000 SET/s, with `rate` random SET/s more."""
    samples = os.path.join(folder, "samples")
    settle, quiet = session.pick((2, 4), (1, 2))
    with contextlib.ExitStack() as running:
        client = running.enter_context(Load(
            session, server, "--rate", PACED_RATE, "--connections", 1, "--count", keys,
            samples=samples))
        others = running.enter_context(Load(
            session, server, "--rate", rate, "--tick-us", 1000, "--connections", 10, "--count",
            keys, "--seed", 2)) if rate else client
        time.sleep(settle)
        begin = time.monotonic()
        watch_idle(server, quiet)
        done = save(server, children=rate > 0)
    before, during = client.latencies([(begin, done.begin), (done.begin, done.end)])
    load = others.result
    if rate and load["commands"] < 0.9 * rate * load["seconds"]:
        harness.say(f"{server.role} did not keep up with {rate} SET/s: "
                    f"{load['commands'] / load['seconds']:.0f}")
    return Paced(done, before, during, load)


def paced_figures(rounds):
    """The p99 before and during each save. One moment in which the machine's host takes the
    processor away makes a round say nothing, so the median of the rounds counts."""
    def p99(kind, which):
        return [percentile(getattr(getattr(paced, which), kind), 99) for paced in rounds]

    def together(which):
        return percentile([x for paced in rounds for x in getattr(paced, which).took], 99)

    def from_due(latencies):
        return percentile([sum(pair) for pair in zip(latencies.took, latencies.late)], 99)

    before, during = p99("took", "before"), p99("took", "during")
    return {"ratios": [b / a for a, b in zip(before, during)],
            "before": statistics.median(before), "during": statistics.median(during),
            "together": together("during") / together("before"),
            "due_ratios": [from_due(paced.during) / from_due(paced.before) for paced in rounds],
            "longest": max(x for paced in rounds for x in paced.during.took),
            "late_before": statistics.median(p99("late", "before")),
            "late_during": statistics.median(p99("late", "during"))}


def latency_row(name, pairs, bar, note):
    """How much the p99 grows by a save."""
    ours, theirs = (paced_figures([pair[side] for pair in pairs]) for side in (0, 1))
    for figures in (ours, theirs):
        figures["due"] = statistics.median(figures["due_ratios"])
    text = ("{before:.2f} → {during:.2f} ms, all rounds together {together:.2f} ×, "
            "longest {longest:.1f}, the load late by {late_before:.2f} → {late_during:.2f}, "
            "with that {due:.2f} ×")
    return value_row(
        name, statistics.median(ours["ratios"]), "× without", bar,
        statistics.median(theirs["ratios"]),
        f"{note}: {text.format(**ours)}; Redis {text.format(**theirs)}",
        rounds=ours, redis_rounds=theirs)


def full_speed_save(session, server, keys):
    """A save under writers at full speed; Sava's disk is held to 50 MB/s."""
    if not server.is_stock:
        server.command("CONFIG", "SET", "save-max-rate", "50mb")
    try:
        with Load(session, server, "--rate", 0, "--connections", 50, "--pipeline", 16,
                  "--count", keys) as load:
            time.sleep(session.pick(4, 2))
            done = save(server)
    finally:
        if not server.is_stock:
            server.command("CONFIG", "SET", "save-max-rate", "0")
    return done, load.result


def full_speed_rows(session, sava, redis, keys):
    ours, load = full_speed_save(session, sava, keys)
    theirs, _ = full_speed_save(session, redis, keys)
    bar = 0.05 * ours.rss / 1e6 + 64 * 2**20 / 1e6
    return [value_row(
        "save_memory_full_speed", ours.extra / 1e6, "MB", round(bar, 1), theirs.extra / 1e6,
        f"{ours.bytes / 1e6 / ours.seconds:.0f} MB/s to the disk for {ours.seconds:.1f} s, "
        f"{load['commands'] / load['seconds'] / 1e3:.0f}k SET/s; bar 5 % of "
        f"{ours.rss / 1e6:.0f} MB + 64 MB; Redis {theirs.extra_percent:.0f} %, "
        "its disk not held back")]


def saves(session, folder):
    keys = session.pick(10 * MEGA, MEGA)
    rounds = session.pick(3, 2)
    sava, redis = pair_of(session)
    with sava, redis:
        for server in (sava, redis):
            harness.say(f"{server.role}: filling {keys / MEGA:g}M keys")
            harness.preload(server, keys)
            save(server)
        idle = in_turns(rounds, sava, redis, save)
        alone = in_turns(session.pick(7, 2), sava, redis,
                         lambda server: paced_save(session, server, folder, keys))
        loaded = in_turns(rounds, sava, redis,
                          lambda server: paced_save(session, server, folder, keys, RATE))
        sizes = f"{idle[-1][0].bytes / 1e6:.0f} MB, Redis {idle[-1][1].bytes / 1e6:.0f} MB"
        rows = [
            ratio_row("save_idle", [(a.seconds, b.seconds) for a, b in idle], "s", 0.6, sizes),
            ratio_row("save_under_load", [(a.save.seconds, b.save.seconds) for a, b in loaded], "s",
                      0.75, f"{RATE:,} SET/s", load=loaded[-1][0].load,
                      redis_load=loaded[-1][1].load),
            value_row("save_memory", max(a.save.extra_percent for a, _ in loaded), "%", 5,
                      max(b.save.extra_percent for _, b in loaded),
                      f"worst of {rounds}, {RATE:,} random SET/s; of "
                      f"{loaded[-1][0].save.rss / 1e6:.0f} MB, "
                      f"Redis {loaded[-1][1].save.rss / 1e6:.0f} MB"),
            latency_row("p99_paced", alone, 1.5, f"{PACED_RATE:,} SET/s alone"),
            latency_row("p99_paced_under_load", loaded, None,
                        f"{PACED_RATE:,} SET/s beside {RATE:,}"),
        ]
        return rows + attempt("save_memory_full_speed",
                              lambda: full_speed_rows(session, sava, redis, keys))


# ---- counter: one large value ----

def counter_save(session, server, folder, members):
    verb = "zincrby" if server.is_stock else "add"
    harness.say(f"{server.role}: filling a counter of {members / MEGA:g}M members")
    with Load(session, server, "--verb", verb, "--order", "once", "--count", members) as fill:
        fill.finish(timeout=600)
    if server.command("ZCARD" if server.is_stock else "AFC.CARD", "counter") != members:
        raise harness.BenchError("the counter does not have all its members")
    samples = os.path.join(folder, "samples")
    with Load(session, server, "--rate", PACED_RATE, "--connections", 1, "--count", 1000,
              samples=samples) as client, \
         Load(session, server, "--verb", verb, "--rate", RATE, "--tick-us", 1000, "--connections",
              10, "--count", members) as load:
        time.sleep(session.pick(3, 1))
        server.command("CONFIG", "RESETSTAT")
        done = save(server)
        stall = server.info("sava").get("loop_stall_max_us")
    during = client.latencies([(done.begin, done.end)])[0]
    return done, None if stall is None else float(stall) / 1000, max(during.took), load.result


def counter(session, folder):
    members = session.pick(5 * MEGA, MEGA // 2)
    readings = {}
    for server in pair_of(session):
        with server:
            readings[server.role] = counter_save(session, server, folder, members)
    ours, stall, wait, load = readings["sava"]
    theirs, _, redis_wait, _ = readings["redis"]
    rows = [value_row(
        "save_afc_memory", ours.extra_percent, "%", 10, theirs.extra_percent,
        f"{members / MEGA:g}M members, {RATE:,} AFC.ADD/s; {ours.seconds:.1f} s, "
        f"{ours.bytes / 1e6:.0f} MB; Redis, a sorted set: {theirs.seconds:.1f} s, "
        f"{theirs.bytes / 1e6:.0f} MB", load=load)]
    if stall is None:
        rows.append(report.Row("save_afc_stall", None, "ms", bar=10,
                               note="INFO sava does not report it"))
    else:
        rows.append(value_row("save_afc_stall", stall, "ms", 10, note="longest turn of a loop"))
    return rows + [value_row("save_afc_wait", wait, "ms", redis=redis_wait,
                             note="longest wait of a client, scheduler included")]


# ---- loads ----

def load_time(program, role, files, settings, keys):
    """Seconds to start with these files."""
    with Server(program, role, settings, files) as server:
        seconds = server.loaded_after()
        if server.command("DBSIZE") != keys:
            raise harness.BenchError(f"{program} did not load {keys} keys\n{server.log_tail()}")
        return seconds, server.rss_peak(), settled_rss(server)


def settled_rss(server):
    time.sleep(1)
    return server.rss()


def load_pairs(session, files_of, settings, keys):
    """Both load in turns; the first round only warms the page cache."""
    def measure(role):
        program = session.server if role == "sava" else session.redis
        return load_time(program, role, files_of(role), settings, keys)

    pairs = []
    for number in range(session.pick(4, 3)):
        order = ("sava", "redis") if number % 2 == 0 else ("redis", "sava")
        readings = {role: measure(role) for role in order}
        pairs.append((readings["sava"], readings["redis"]))
    return pairs[1:]


def stock_dump(session, folder, keys):
    """An RDB file written by stock Redis; returns its path."""
    path = os.path.join(folder, "stock.rdb")
    with Server(session.redis, "redis") as redis:
        harness.preload(redis, keys)
        save(redis)
        os.rename(redis.dump, path)
    return path


def log_files(folder, keys):
    """An append-only log of `keys` SETs behind an empty base; (path, name) of each of its files."""
    prefix = "appendonlydir/appendonly.aof"
    texts = {
        ".1.base.rdb": b"REDIS0010\xff" + bytes(8),  # a checksum of 0 is not looked at
        ".manifest": b"file appendonly.aof.1.base.rdb seq 1 type b\n"
                     b"file appendonly.aof.1.incr.aof seq 1 type i\n",
        ".1.incr.aof": resp.pack("SELECT", 0),
    }
    files = []
    for ending, text in texts.items():
        path = os.path.join(folder, "log" + ending)
        with open(path, "wb") as file:
            file.write(text)
            if ending.endswith("incr.aof"):
                for chunk in resp.fill_chunks(0, keys):
                    file.write(chunk)
        files.append((path, prefix + ending))
    return files


def copied(files, folder):
    """Small files are copied, for a server may replace them; the large one is linked."""
    result = []
    for number, (path, name) in enumerate(files):
        if os.path.getsize(path) < MEGA:
            path = shutil.copy(path, os.path.join(folder, f"copy{number}"))
        result.append((path, name))
    return result


def loads(session, folder):
    keys = session.pick(10 * MEGA, MEGA)
    harness.say(f"writing an RDB file of {keys / MEGA:g}M keys by Redis")
    dump = stock_dump(session, folder, keys)
    size = os.path.getsize(dump)
    pairs = load_pairs(session, lambda _: [(dump, "dump.rdb")], None, keys)
    rows = [ratio_row("load_rdb", [(a[0], b[0]) for a, b in pairs], "s", 0.45,
                      f"{size / 1e6:.0f} MB written by Redis")]
    os.remove(dump)
    return rows + attempt("load_aof", lambda: load_log_rows(session, folder, keys))


def load_log_rows(session, folder, keys):
    harness.say(f"writing a log of {keys / MEGA:g}M SETs")
    files = log_files(folder, keys)
    sizes = [os.path.getsize(path) for path, _ in files]
    pairs = load_pairs(session, lambda _: copied(files, folder), {"appendonly": "yes"}, keys)
    if [os.path.getsize(path) for path, _ in files] != sizes:
        raise harness.BenchError("a server changed the log that both load")
    for path, _ in files:
        os.remove(path)
    return [ratio_row("load_aof", [(a[0], b[0]) for a, b in pairs], "s", 0.6,
                      f"{max(sizes) / 1e6:.0f} MB, base empty")]


# ---- logs ----

def log_settings(policy):
    return {"appendonly": "yes", "appendfsync": policy, "auto-aof-rewrite-percentage": "0"}


def set_load(requests, pipeline):
    return lambda server: harness.redis_benchmark(server, test="set", pipeline=pipeline,
                                                  requests=requests)


def with_log(session, program, role, requests):
    """Pairs of throughput with the log and without, of one kind of server."""
    load = set_load(requests, 16)
    with Server(program, role, log_settings("everysec")) as logged, Server(program, role) as plain:
        load(logged), load(plain)
        pairs = []
        for number in range(session.pairs):
            readings = {}
            for server in (logged, plain) if number % 2 == 0 else (plain, logged):
                readings[server.port] = load(server)
            pairs.append((readings[logged.port], readings[plain.port]))
    return pairs


def everysec_rows(session):
    requests = session.pick(2 * MEGA, MEGA // 2)
    ours = with_log(session, session.server, "sava", requests)
    theirs = with_log(session, session.redis, "redis", requests)

    def ratio(pairs, field):
        return harness.median_ratio([(getattr(a, field), getattr(b, field)) for a, b in pairs])

    def rate(pairs, side):
        return statistics.median(pair[side].rps for pair in pairs) / 1e3

    row = report.Row(
        "everysec_throughput", ratio(ours, "rps"), "× no log", ratio(theirs, "rps"), bar=0.85,
        sense="min", pairs=len(ours),
        note=f"{rate(ours, 0):.0f}k against {rate(ours, 1):.0f}k SET/s at pipeline 16, "
             f"CPU {ratio(ours, 'cpu_us'):.2f} ×; Redis {rate(theirs, 0):.0f}k against "
             f"{rate(theirs, 1):.0f}k, CPU {ratio(theirs, 'cpu_us'):.2f} ×",
        details={"ratios": [round(a.rps / b.rps, 4) for a, b in ours],
                 "redis_ratios": [round(a.rps / b.rps, 4) for a, b in theirs]})
    harness.say(f"everysec_throughput: {row.value:.3f} × no log, Redis {row.redis:.3f}")
    return [row]


def always_rows(session):
    load = set_load(session.pick(200_000, 30_000), 1)

    def taken(name, bar, note, threads):
        sava, redis = pair_of(session, log_settings("always"))
        sava.settings.update(threads)
        with sava, redis:
            load(sava), load(redis)
            pairs = harness.interleave(session, sava, redis, load)
        return ratio_row(name, [(a.rps, b.rps) for a, b in pairs], "SET/s", bar, note, sense="min",
                         p99_ms=[a.p99_ms for a, _ in pairs],
                         redis_p99_ms=[b.p99_ms for _, b in pairs])

    note = "50 clients, pipeline 1"
    return [taken("always_throughput", 1.5, note, {}),
            taken("always_one_thread", None, f"{note}, --threads 1", {"threads": "1"})]


def logs(session, _folder):
    return (attempt("everysec_throughput", lambda: everysec_rows(session)) +
            attempt("always_throughput", lambda: always_rows(session)))


# ---- counters: many small ones ----

def uuid_stock(count):
    rng = random.Random(1)
    texts = (f"{rng.getrandbits(128):032x}" for _ in range(count))
    return [f"{t[:8]}-{t[8:12]}-{t[12:16]}-{t[16:20]}-{t[20:]}".encode() for t in texts]


def counter_commands(associators, members, stock, as_sorted_sets):
    """One command for each associator: its members, 1 to 5 times each."""
    rng = random.Random(2)
    words = [b"$36\r\n%s\r\n" % text for text in stock]
    scores = [b"$1\r\n%d\r\n" % count for count in range(10)]
    verb = b"$4\r\nZADD\r\n" if as_sorted_sets else b"$7\r\nAFC.ADD\r\n"
    for associator in range(associators):
        chosen = rng.sample(words, members)
        counts = rng.choices(range(1, 6), k=members)
        if as_sorted_sets:
            body = [part for word, count in zip(chosen, counts) for part in (scores[count], word)]
            arguments = 2 * members
        else:
            body = [word * count for word, count in zip(chosen, counts)]
            arguments = sum(counts)
        yield b"*%d\r\n%s$12\r\nassoc:%06d\r\n%s" % (arguments + 2, verb, associator,
                                                     b"".join(body))


def fill_counters(server, associators, members, stock):
    batch, waiting = [], 0
    with server.connect() as connection:
        for command in counter_commands(associators, members, stock, server.is_stock):
            batch.append(command)
            if len(batch) < 50:
                continue
            connection.send(b"".join(batch))
            for _ in range(waiting):
                expect(connection.read(), members)
            waiting, batch = len(batch), []
        connection.send(b"".join(batch))
        for _ in range(waiting + len(batch)):
            expect(connection.read(), members)


def expect(reply, wanted):
    if reply != wanted:
        raise harness.BenchError(f"a counter was filled with {reply}, not with {wanted}")


def counters(session, folder):
    associators, members = session.pick(100_000, 10_000), 100
    stock = uuid_stock(associators)
    dumps, times = {}, {}
    for server in pair_of(session):
        with server:
            harness.say(f"{server.role}: filling {associators:,} × {members} associations")
            fill_counters(server, associators, members, stock)
            times[server.role] = save(server).seconds
            dumps[server.role] = os.path.join(folder, server.role + ".rdb")
            os.rename(server.dump, dumps[server.role])
    ours, theirs = (os.path.getsize(dumps[role]) / 1e6 for role in ("sava", "redis"))
    shape = f"{associators:,} × {members}, {len(stock):,} distinct UUID texts"
    rows = [value_row("afc_snapshot_size", ours, "MB", 60 * associators / 100_000, theirs,
                      f"{shape}; saved in {times['sava']:.1f} s, Redis {times['redis']:.1f} s")]
    return rows + attempt("afc_load", lambda: counters_load_rows(session, dumps, associators))


def counters_load_rows(session, dumps, associators):
    pairs = load_pairs(session, lambda role: [(dumps[role], "dump.rdb")], None, associators)

    def peak(side):
        return max(reading[1] / reading[2] for reading in (pair[side] for pair in pairs))

    return [
        ratio_row("afc_load", [(a[0], b[0]) for a, b in pairs], "s", 0.5,
                  "against the sorted sets in Redis"),
        value_row("afc_load_peak", peak(0), "× final RSS", 1.2, peak(1),
                  f"{pairs[-1][0][2] / 1e6:.0f} MB in the end, "
                  f"Redis {pairs[-1][1][2] / 1e6:.0f} MB"),
    ]


# ---- all of it ----

SECTIONS = {"saves": saves, "counter": counter, "loads": loads, "logs": logs, "counters": counters}


def run(session):
    names = os.environ.get("SAVA_DURABILITY", "").split(",")
    chosen = [name for name in SECTIONS if name in names] or list(SECTIONS)
    harness.need_memory(session.pick(6, 1) * 2**30)
    folder = disk_folder(session.pick(8, 2) * 2**30)
    usual, tempfile.tempdir = tempfile.tempdir, folder  # the servers' directories go there too
    rows = []
    try:
        for name in chosen:
            rows += attempt(name, lambda: SECTIONS[name](session, folder))
    finally:
        tempfile.tempdir = usual
        shutil.rmtree(folder, ignore_errors=True)
    return rows


BENCHMARK = harness.Benchmark(
    "durability", "snapshots, the append-only log and loading against Redis", run)
