#!/usr/bin/env python3
"""A stock Redis Cluster with sava.so on this machine: three masters, three replicas, data of every
native type with hash tags, and a live table. `./dev cluster` runs it; Ctrl-C ends it and what it
started.

With --reshard N it moves N slots to another node and back under load instead, and prints what a
client that follows redirections saw.

Usage: tools/cluster.py --module PATH [--stock PATH] [--seconds N] [--tags N] [--quiet-load]
                        [--reshard SLOTS]
"""

import argparse
import os
import shutil
import signal
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))

import cluster as clusters  # noqa: E402
import native_data  # noqa: E402
import resp  # noqa: E402

COLUMNS = "%-16s %-8s %-16s %8s %8s %10s %9s"


def parse_arguments():
    parser = argparse.ArgumentParser(description="A stock Redis Cluster with sava.so.")
    parser.add_argument("--module", required=True, help="sava.so")
    parser.add_argument("--stock", default=shutil.which("redis-server"), help="redis-server")
    parser.add_argument("--seconds", type=float, default=0.0, help="end after so long (0: Ctrl-C)")
    parser.add_argument("--tags", type=int, default=60, help="hash tags with a set of keys each")
    parser.add_argument("--quiet-load", action="store_true", help="no load while the table shows")
    parser.add_argument("--reshard", type=int, default=0, metavar="SLOTS", help="move so many")
    return parser.parse_args()


def line_of(node):
    """A node's row of the table."""
    if node.process.poll() is not None:
        return COLUMNS % ("127.0.0.1:%d" % node.port, "down", "", "", "", "", "")
    try:
        replication = node.replication()
        role = "master" if replication["role"] == "master" else "replica"
        other = "" if role == "master" else "of " + replication["master_port"]
        return COLUMNS % (
            "127.0.0.1:%d" % node.port,
            role,
            other,
            node.slots_of() if role == "master" else "",
            node.call("DBSIZE"),
            node.info_field("used_memory_human"),
            node.info_field("instantaneous_ops_per_sec"),
        )
    except (OSError, resp.ConnectionClosed):
        return COLUMNS % ("127.0.0.1:%d" % node.port, "silent", "", "", "", "", "")


def show(cluster, first):
    lines = [COLUMNS % ("node", "role", "", "slots", "keys", "memory", "ops/s")]
    lines += [line_of(node) for node in cluster.nodes]
    if sys.stdout.isatty() and not first:
        sys.stdout.write("\x1b[%dA" % len(lines))
    clear = "\x1b[K" if sys.stdout.isatty() else ""
    print("\n".join(line + clear for line in lines), flush=True)


def fill(client, tags):
    for number in range(tags):
        for words in native_data.commands("{tag%d}" % number, number, 100):
            reply = client.call(*words)
            if resp.is_error(reply):
                raise SystemExit("%s: %s" % (words[0], resp.show(reply)))


def put_load(client, tags, over):
    """A little of everything until over() says so. How many commands, and what errors."""
    number, errors = 0, []
    while not over():
        number += 1
        tag = "{tag%d}" % (number % tags)
        replies = (
            client.call("AFC.ADD", tag + "afc:1", "m%d" % (number % 100)),
            client.call("BF.ADD", tag + "bf:grown", "n%d" % number),
            client.call("FR.ADD", tag + "fr:1", "http://load%d.example/%d" % (number % 50, number)),
            client.call("RL.TAKE", tag + "rl:token", "TOKEN", "1000", "60000"),
        )
        errors += [resp.show(reply) for reply in replies if resp.is_error(reply)]
    return 4 * number, errors


def reshard(cluster, tags, slots):
    """Moves slots there and back while a client adds to the keys in them. The number of errors."""
    one, other = sorted(cluster.owners(), key=lambda node: node.port)[:2]
    moved, results = threading.Event(), []
    client = cluster.client()
    thread = threading.Thread(target=lambda: results.append(put_load(client, tags, moved.is_set)))
    thread.start()
    started = time.monotonic()
    try:
        cluster.move(one, other, slots)
        cluster.move(other, one, slots)
    finally:
        moved.set()
        thread.join()
    commands, errors = results[0] if results else (0, ["no answer"])
    print("%d slots there and back in %.1f s: %d commands, %d redirections, %d asked again, "
          "%d errors" % (slots, time.monotonic() - started, commands, client.redirections,
                         client.again, len(errors)))
    for error in errors[:5]:
        print("  " + error)
    return len(errors)


def explain(cluster):
    port = cluster.nodes[0].port
    print("\nTry, in another terminal:")
    print("  redis-cli -c -p %d AFC.TOP '{tag1}afc:1' 5 WITHCOUNTS" % port)
    print("  redis-cli --cluster reshard 127.0.0.1:%d" % port)
    print("  kill -9 %d        # a master; its replica takes over\n" % cluster.nodes[0].process.pid)


def main():
    options = parse_arguments()
    if not options.stock or not shutil.which("redis-cli"):
        raise SystemExit("redis-server and redis-cli are needed (Debian: redis-server, redis-tools)")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    cluster = clusters.Cluster(options.stock, os.path.abspath(options.module))
    try:
        print("==> redis-cli --cluster create", flush=True)
        cluster.start()
        client = cluster.client()
        print("==> data of every type under %d hash tags" % options.tags, flush=True)
        fill(client, options.tags)
        if options.reshard > 0:
            return 1 if reshard(cluster, options.tags, options.reshard) else 0
        explain(cluster)
        end = time.monotonic() + (options.seconds or 1e9)
        first = True
        while time.monotonic() < end:
            show(cluster, first)
            first = False
            if options.quiet_load:
                time.sleep(1)
            else:
                second = time.monotonic() + 1
                put_load(client, options.tags, lambda: time.monotonic() > second)
    except KeyboardInterrupt:
        print()
    finally:
        cluster.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
