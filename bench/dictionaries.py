"""Sets against a Bloom filter: bytes per member of SADD here and in Redis, and of BF.ADD at 1 %.

The times of document S2's table 1 are those of a program without a server
(sava_bench_dictionaries); here are the bytes of the same items in servers.
"""

import harness
import report
import resp

PART = 1000


def item(number):
    return b"%015x@acme.com" % (((number * 0x9E3779B97F4A7C15) & (2**64 - 1)) >> 4)


def bytes_each(server, command, count):
    """Growth of used_memory per item, the key's own included."""
    with server.connect() as connection:
        before = server.used_memory()
        for first in range(0, count, PART):
            connection.send(resp.pack(command, "key", *map(item, range(first, first + PART))))
            reply = connection.read()
            if isinstance(reply, resp.ReplyError):
                raise reply
        return (server.used_memory() - before) / count


def reserved(server, count):
    """What MEMORY USAGE tells of a filter: its bits are reserved before the first item."""
    with server.connect() as connection:
        connection.command("BF.RESERVE", "key", "0.01", count)
    bytes_each(server, "BF.MADD", count)
    with server.connect() as connection:
        return connection.command("MEMORY", "USAGE", "key") / count


def run(session):
    count = session.pick(1_000_000, 100_000)
    with session.sava("--threads", "1") as sava:
        ours = bytes_each(sava, "SADD", count)
    with session.stock() as redis:
        theirs = bytes_each(redis, "SADD", count)
    with session.sava("--threads", "1") as sava:
        bloom = reserved(sava, count)
    note = f"{count} members of 24 bytes"
    return [report.Row("sadd_member", ours, "bytes", theirs, ours / theirs, note=note),
            report.Row("bf_add_item", bloom, "bytes", ours, bloom / ours,
                       note=f"{note}, 1 %; against SADD here")]


BENCHMARK = harness.Benchmark("dictionaries", "bytes per member: sets and a Bloom filter", run)
