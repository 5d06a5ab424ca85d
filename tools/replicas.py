#!/usr/bin/env python3
"""One master, two replicas and three stock sentinels (quorum 2) on this machine, some writes, and a
live table of roles, offsets and lag. `./dev replicas` runs it; Ctrl-C ends it and what it started.

Usage: tools/replicas.py --server PATH [--seconds N] [--sentinel PATH] [--quiet-load]
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))

import harness  # noqa: E402
import resp  # noqa: E402

COLUMNS = "%-16s %-8s %-16s %-10s %14s %9s %9s %8s"
GONE = (OSError, resp.ConnectionClosed, resp.ProtocolError)


def parse_arguments():
    parser = argparse.ArgumentParser(description="A master, two replicas and three sentinels.")
    parser.add_argument("--server", required=True, help="sava")
    parser.add_argument("--sentinel", default=shutil.which("redis-sentinel"), help="redis-sentinel")
    parser.add_argument("--seconds", type=float, default=0.0, help="end after so long (0: Ctrl-C)")
    parser.add_argument("--quiet-load", action="store_true", help="no writes while the table shows")
    return parser.parse_args()


class Node:
    """A program that listens on a port, with a folder of its own."""

    def __init__(self, folder, name):
        self.port = harness.free_port()
        self.folder = os.path.join(folder, name)
        os.mkdir(self.folder)
        self.process = None

    def spawn(self, line, settings):
        """Starts it with a configuration file that it may rewrite."""
        path = os.path.join(self.folder, "server.conf")
        settings = ["port %d" % self.port, "bind 127.0.0.1", "dir %s" % self.folder] + settings
        with open(path, "w") as file:
            file.write("\n".join(settings) + "\n")
        with open(os.path.join(self.folder, "log"), "wb") as log:
            self.process = subprocess.Popen(line + [path], stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, start_new_session=True,
                                            preexec_fn=harness._die_with_parent)

    def call(self, *words):
        with resp.Client(("127.0.0.1", self.port), 2) as client:
            return client.call(*words)

    def wait_ready(self):
        deadline = time.monotonic() + 20
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                if self.call("PING") == resp.PONG:
                    return
            except GONE:
                pass
            time.sleep(0.05)
        with open(os.path.join(self.folder, "log"), "rb") as log:
            raise SystemExit(log.read()[-1000:].decode("utf-8", "replace"))

    def info(self, section):
        return list(harness.parse_info(self.call("INFO", section)).values())[0]

    def stop(self):
        if self.process is None:
            return
        # One that was stopped does not hear SIGTERM.
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Replicas:
    def __init__(self, server, sentinel, folder):
        self.server = server
        self.sentinel = sentinel
        self.servers = [Node(folder, "server%d" % (i + 1)) for i in range(3)]
        self.sentinels = [Node(folder, "sentinel%d" % (i + 1)) for i in range(3)]

    def start(self):
        for node in self.servers:
            settings = ["save \"\"", "http-port 0", "repl-diskless-sync-delay 0", "threads 1"]
            if node is not self.servers[0]:
                settings.append("replicaof 127.0.0.1 %d" % self.servers[0].port)
            node.spawn([self.server, "serve"], settings)
            node.wait_ready()
        for node in self.sentinels:
            node.spawn([self.sentinel], [
                "sentinel monitor mine 127.0.0.1 %d 2" % self.servers[0].port,
                "sentinel down-after-milliseconds mine 3000",
                "sentinel failover-timeout mine 10000",
            ])
            node.wait_ready()

    def stop(self):
        for node in self.sentinels + self.servers:
            node.stop()

    def master(self):
        """The server that most sentinels take for the master; None: they do not agree."""
        told = []
        for node in self.sentinels:
            try:
                told.append(int(node.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mine")[1]))
            except GONE + (TypeError,):
                pass
        for node in self.servers:
            if told.count(node.port) >= 2:
                return node
        return None


def lag_of(node, info, masters):
    """Bytes that a replica is behind its master, and seconds since it has said so."""
    master = masters.get(info.get("master_port"))
    if master is None:
        return "", ""
    behind = max(0, int(master["master_repl_offset"]) - int(info["slave_repl_offset"]))
    for number in range(int(master["connected_slaves"])):
        fields = dict(part.split("=", 1) for part in master["slave%d" % number].split(","))
        if fields["port"] == str(node.port):
            return behind, fields["lag"] + " s"
    return behind, ""


def ask(node, section):
    """None: it does not run; {}: it does not answer."""
    if node.process.poll() is not None:
        return None
    try:
        return node.info(section)
    except GONE:
        return {}


def rows(replicas):
    infos = [ask(node, "replication") for node in replicas.servers]
    masters = {str(node.port): info for node, info in zip(replicas.servers, infos)
               if info and info["role"] == "master"}
    yield COLUMNS % ("server", "role", "of", "link", "offset", "behind", "lag", "ops/s")
    for node, info in zip(replicas.servers, infos):
        name = "127.0.0.1:%d" % node.port
        if not info:
            yield COLUMNS % (name, "down" if info is None else "silent", "", "", "", "", "", "")
            continue
        ops = (ask(node, "stats") or {}).get("instantaneous_ops_per_sec", "")
        if info["role"] == "master":
            link = "%s replicas" % info["connected_slaves"]
            yield COLUMNS % (name, "master", "", link, info["master_repl_offset"], "", "", ops)
        else:
            behind, lag = lag_of(node, info, masters)
            yield COLUMNS % (name, "replica", ":" + info["master_port"],
                             info["master_link_status"], info["slave_repl_offset"], behind, lag,
                             ops)
    master = replicas.master()
    believed = "127.0.0.1:%d" % master.port if master else "nobody yet"
    alive = sum(node.process.poll() is None for node in replicas.sentinels)
    yield "%d sentinels; the master is %s" % (alive, believed)


def show(replicas, first):
    lines = list(rows(replicas))
    if sys.stdout.isatty() and not first:
        sys.stdout.write("\x1b[%dA" % len(lines))
    clear = "\x1b[K" if sys.stdout.isatty() else ""
    print("\n".join(line + clear for line in lines), flush=True)


def put_load(replicas, until):
    """Some writes, to whom the sentinels name."""
    number = 0
    while time.monotonic() < until:
        master = replicas.master()
        try:
            if master is not None:
                with resp.Client(("127.0.0.1", master.port), 2) as client:
                    for _ in range(100):
                        number += 1
                        client.call("SET", "key:%d" % (number % 1000), "v%d" % number)
        except GONE:
            pass
        time.sleep(0.1)


def explain(replicas):
    ports = " ".join(str(node.port) for node in replicas.sentinels)
    print("sentinels on ports %s, quorum 2, name: mine\n" % ports)
    print("Try, in another terminal:")
    print("  redis-cli -p %d SENTINEL MASTER mine" % replicas.sentinels[0].port)
    print("  redis-cli -p %d SENTINEL FAILOVER mine" % replicas.sentinels[0].port)
    print("  kill -9 %d        # the master; a replica takes over\n"
          % replicas.servers[0].process.pid, flush=True)


def main():
    options = parse_arguments()
    if not options.sentinel:
        raise SystemExit("redis-sentinel is needed (Debian: redis-sentinel)")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = tempfile.mkdtemp(prefix="sava-replicas-")
    replicas = Replicas(os.path.abspath(options.server), options.sentinel, folder)
    try:
        replicas.start()
        explain(replicas)
        end = time.monotonic() + (options.seconds or 1e9)
        first = True
        while time.monotonic() < end:
            show(replicas, first)
            first = False
            if options.quiet_load:
                time.sleep(1)
            else:
                put_load(replicas, time.monotonic() + 1)
    except KeyboardInterrupt:
        print()
    finally:
        replicas.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
