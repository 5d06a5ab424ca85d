"""Hit ratio of a cache under eviction, against stock Redis at equal maxmemory.

Cache-aside with popularity by Zipf's law, exponent 0.99: GET a key; if it is not there, SET it. The
sequence of keys is the same for both servers, drawn by bisection in the cumulated weights. The
first third fills and warms the cache and is not counted. A batch of GETs goes out in one write,
then the SETs of its misses; a key missing twice in one batch counts twice, for both alike.
"""

import itertools
import random
import statistics

import harness
import report
import resp

EXPONENT = 0.99
VALUE = b"$200\r\n" + b"e" * 200 + b"\r\n"
HIT_BYTES = len(VALUE)
MISS_BYTES = len(b"$-1\r\n")
BATCH = 100
POLICIES = ("allkeys-lru", "allkeys-lfu")
ALLOWED_POINTS = 1.0


def zipf_sequence(universe, count, seed):
    weights = itertools.accumulate(1 / rank**EXPONENT for rank in range(1, universe + 1))
    return random.Random(seed).choices(range(universe), cum_weights=list(weights), k=count)


class Cache:
    """The cache-aside client; knows the lengths of the replies it gets, nothing else."""

    def __init__(self, server, universe):
        self.connection = server.connect()
        self.keys = [b"$16\r\nkey:%012d\r\n" % number for number in range(universe)]

    def ask(self, batch):
        """GETs a batch; returns the numbers that were not there."""
        keys = self.keys
        sock = self.connection.sock
        sock.sendall(b"".join([b"*2\r\n$3\r\nGET\r\n" + keys[number] for number in batch]))
        data = sock.recv(resp.RECEIVE_BYTES)
        at = 0
        missing = []
        for number in batch:
            while len(data) < at + MISS_BYTES:
                data += self._receive()
            if data.startswith(b"$-1\r\n", at):
                missing.append(number)
                at += MISS_BYTES
            elif data.startswith(b"$200\r\n", at):
                at += HIT_BYTES
            else:
                raise resp.ProtocolError(f"unexpected reply to GET: {data[at:at + 80]!r}")
        while len(data) < at:
            data += self._receive()
        return missing

    def store(self, numbers):
        keys = self.keys
        self.connection.send(
            b"".join([b"*3\r\n$3\r\nSET\r\n" + keys[number] + VALUE for number in numbers]))
        data = b""
        while len(data) < len(numbers) * len(resp.OK_REPLY):
            data += self._receive()
            if b"-" in data:
                raise resp.ProtocolError(f"unexpected reply to SET: {data[:80]!r}")

    def _receive(self):
        data = self.connection.sock.recv(resp.RECEIVE_BYTES)
        if not data:
            raise resp.ProtocolError("the server closed the connection")
        return data


def hit_ratio(server, universe, sequence):
    """Runs the sequence; returns hits in percent of the last two thirds, and the keys kept."""
    cache = Cache(server, universe)
    warm = len(sequence) // 3 // BATCH * BATCH
    misses = counted = 0
    for start in range(0, len(sequence), BATCH):
        batch = sequence[start : start + BATCH]
        missing = cache.ask(batch)
        if missing:
            cache.store(missing)
        if start >= warm:
            misses += len(missing)
            counted += len(batch)
    with cache.connection as connection:
        return 100 * (1 - misses / counted), connection.command("DBSIZE")


def run(session):
    universe = session.pick(1_000_000, 400_000)
    requests = session.pick(3_000_000, 900_000)
    maxmemory = session.pick("50mb", "20mb")
    seeds = session.pick((11, 12, 13), (11,))
    rows = []
    for policy in POLICIES:
        pairs, kept = [], []
        for seed in seeds:
            sequence = zipf_sequence(universe, requests, seed)
            args = ("--maxmemory", maxmemory, "--maxmemory-policy", policy)
            with session.sava(*args) as server:
                ours, our_keys = hit_ratio(server, universe, sequence)
            with session.stock(*args) as server:
                theirs, their_keys = hit_ratio(server, universe, sequence)
            pairs.append((ours, theirs))
            kept.append((our_keys, their_keys))
            harness.say(f"{policy}: hits {ours:.2f} % against {theirs:.2f} %, "
                        f"keys kept {our_keys:,} against {their_keys:,}")
        ours = statistics.median(pair[0] for pair in pairs)
        theirs = statistics.median(pair[1] for pair in pairs)
        name = policy.replace("-", "_")
        rows.append(report.Row(
            f"{name}_hits", ours, "%", theirs, ours / theirs, pairs=len(pairs),
            note=f"maxmemory {maxmemory}; keys kept {kept[0][0]:,} / {kept[0][1]:,}"))
        rows.append(report.Row(
            f"{name}_points_lost", statistics.median(t - o for o, t in pairs), "points",
            bar=ALLOWED_POINTS, pairs=len(pairs), note="below Redis; negative: above it"))
    return rows


BENCHMARK = harness.Benchmark("eviction", "hit ratio under Zipf 0.99 at equal maxmemory", run)
