#!/usr/bin/env python3
"""A bounded soak: many clients, mixed load, invariants checked all along.

`bench/soak.py [--part load|durability|differential|all] [--minutes N] [--clients N] [--seed N]
               [--server PROGRAM] [-- server options]`

Holds while it runs: the server lives and answers, every reply is what a model of the client's own
keys says, money moved by transactions is conserved, used_memory stays near maxmemory, messages of a
publisher arrive complete and in order. Holds at the end: counters equal the sum of what clients
added, resident memory has not grown since the steady state, connections are gone, SIGTERM ends the
server with code 0. Then soak_tests.py: for as long again kills, snapshots under load and bad
disks, and for half an hour random commands beside stock Redis. Exit code 0 when all of it held,
else 1 with what did not.
"""

import argparse
import multiprocessing
import os
import queue
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import harness
import resp
import soak_clients

MAXMEMORY_MB = 100
MEMORY_SLACK = 1.10
MEMORY_SLACK_MB = 16
GROWTH_ALLOWED = 0.10
GROWTH_ALLOWED_MB = 16
STEADY_SECONDS = 20
PROCESSES = 2


class Failed(Exception):
    """An invariant does not hold."""


class Subscriber(threading.Thread):
    """Listens to the clients' channel and checks each publisher's numbering."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.connection = server.connect()
        self.connection.command("SUBSCRIBE", soak_clients.CHANNEL)
        self.connection.sock.settimeout(0.5)
        self.last = {}
        self.failure = None
        self.ended = False

    def run(self):
        while not self.ended and self.failure is None:
            try:
                kind, _, text = self.connection.read()
            except socket.timeout:
                continue
            except (OSError, resp.ProtocolError) as error:
                self.failure = f"the subscriber lost its connection: {error}"
                return
            number, sequence = map(int, text.split())
            if kind != b"message" or sequence != self.last.get(number, 0) + 1:
                self.failure = (f"client {number}'s message {sequence} came after "
                                f"{self.last.get(number, 0)}")
            self.last[number] = sequence


def sample(server):
    """One look at the server: (resident MB, used MB, clients); fails if it is not healthy."""
    if not server.alive():
        raise Failed(f"the server died:\n{server.log_tail()}")
    try:
        info = server.info("everything")
    except (OSError, resp.ProtocolError, resp.ReplyError) as error:
        raise Failed(f"the server does not answer INFO: {error}\n{server.log_tail()}") from error
    used = int(info["used_memory"]) / 2**20
    if used > MAXMEMORY_MB * MEMORY_SLACK + MEMORY_SLACK_MB:
        raise Failed(f"used_memory is {used:.0f} MB at maxmemory {MAXMEMORY_MB} MB")
    return server.rss() / 2**20, used, int(info["connected_clients"])


def check_growth(samples):
    """Resident memory at the end against the beginning of the steady state.

    `samples` are (time, look); the steady state begins when the cache first nears maxmemory.
    """
    full = next((at for at, (_, used, _) in samples if used > 0.9 * MAXMEMORY_MB), None)
    steady = [(at, look[0]) for at, look in samples if full is not None and at >= full]
    if not steady or steady[-1][0] - full < STEADY_SECONDS:
        return "too little steady state to judge growth"
    half = len(steady) // 2
    early = max(rss for _, rss in steady[:half])
    late = max(rss for _, rss in steady[half:])
    if late > early * (1 + GROWTH_ALLOWED) + GROWTH_ALLOWED_MB:
        raise Failed(f"resident memory grew from {early:.0f} to {late:.0f} MB")
    return f"resident memory {early:.0f} MB in the first half, {late:.0f} MB in the second"


def watch(server, subscriber, results, deadline, workers):
    """Samples the server until all load processes have reported; returns (samples, tallies)."""
    samples, tallies = [], []
    next_line = time.monotonic() + 10
    interval = max(0.25, min(2.0, (deadline - time.monotonic()) / 60))
    while len(tallies) < len(workers):
        try:
            verdict, content = results.get(timeout=interval)
            if verdict == "failed":
                time.sleep(0.5)
                state = "alive" if server.alive() else f"dead:\n{server.log_tail()}"
                raise Failed(f"{content}\nthe server is {state}")
            tallies.append(content)
        except queue.Empty:
            pass
        if any(worker.exitcode for worker in workers):
            raise Failed("a load process died")
        if time.monotonic() > deadline + 120:
            raise Failed("the load did not end in time")
        looked = sample(server)
        if time.monotonic() < deadline:
            samples.append((time.monotonic(), looked))
        if subscriber.failure:
            raise Failed(subscriber.failure)
        if time.monotonic() > next_line:
            next_line += 30
            harness.say("%.0f MB resident, %.0f MB used, %d clients" % looked)
    return samples, tallies


def check_end(server, subscriber, tallies):
    with server.connect() as connection:
        for number in range(soak_clients.COUNTERS):
            expected = sum(tally["added"][number] for tally in tallies)
            found = int(connection.command("GET", f"counter:{number}") or 0)
            if found != expected:
                raise Failed(f"counter:{number} is {found}, the clients added {expected}")
        if not soak_clients.conserved(connection.command("MGET", *soak_clients.account_keys())):
            raise Failed("the accounts' total changed")
    published = {n: count for tally in tallies for n, count in tally["published"].items() if count}
    waiting = time.monotonic() + 10
    while subscriber.last != published and not subscriber.failure:
        if time.monotonic() > waiting:
            raise Failed("not all published messages arrived")
        time.sleep(0.1)
    subscriber.ended = True
    subscriber.join()
    subscriber.connection.close()
    if subscriber.failure:
        raise Failed(subscriber.failure)
    waiting = time.monotonic() + 10
    while sample(server)[2] > 1:
        if time.monotonic() > waiting:
            raise Failed("connections of clients that left are still there")
        time.sleep(0.2)


def soak(server, options):
    with server.connect() as connection:
        for key in soak_clients.account_keys():
            connection.command("SET", key, soak_clients.ACCOUNT_START)
    subscriber = Subscriber(server)
    subscriber.start()
    deadline = time.monotonic() + options.minutes * 60
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    workers = []
    for index in range(PROCESSES):
        numbers = list(range(index, options.clients, PROCESSES))
        workers.append(context.Process(target=soak_clients.work, daemon=True, args=(
            server.port, numbers, options.seed + index, deadline, results)))
    try:
        for worker in workers:
            worker.start()
        samples, tallies = watch(server, subscriber, results, deadline, workers)
    finally:
        for worker in workers:
            if worker.pid is not None:
                worker.join(0.1 if sys.exc_info()[0] else 10)
                if worker.is_alive():
                    worker.kill()
                    worker.join()
    check_end(server, subscriber, tallies)
    growth = check_growth(samples)
    commands = sum(tally["commands"] for tally in tallies)
    harness.say(f"{commands:,} commands checked; {growth}")


def parse_arguments():
    parser = argparse.ArgumentParser(prog="soak", description="A bounded soak of the server.")
    parser.add_argument("--part", choices=("load", "durability", "differential", "all"),
                        default="all")
    parser.add_argument("--minutes", type=float, default=None,
                        help="of each part; 10, and 30 of differential")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--server", default=os.path.join(harness.ROOT, "build/release/sava"))
    parser.add_argument("args", nargs="*", metavar="-- OPTIONS", help="options for the server")
    options = parser.parse_args()
    if options.minutes is None:
        options.minutes = 10
        options.differential_minutes = 30
    else:
        options.differential_minutes = options.minutes
    if options.clients < PROCESSES or options.minutes <= 0:
        parser.error(f"at least {PROCESSES} clients and some time are needed")
    if options.seed is None:
        options.seed = random.randrange(1_000_000)
    return options


def load_part(options):
    harness.say(f"soak of {options.minutes:g} minutes, {options.clients} clients, "
                f"seed {options.seed}")
    server = harness.Server(options.server, "sava", (
        "--maxmemory", f"{MAXMEMORY_MB}mb", "--maxmemory-policy", "volatile-lru", *options.args))
    try:
        with server:
            soak(server, options)
            code = server.stop()
        if code != 0:
            raise Failed(f"the server ended with code {code} after SIGTERM")
    except (Failed, harness.BenchError, OSError, resp.ProtocolError, resp.ReplyError) as error:
        print(f"soak FAILED (seed {options.seed}): {error}", file=sys.stderr)
        return 1
    print("soak passed")
    return 0


def tests_part(options, part, minutes):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "soak_tests.py")
    sys.stdout.flush()
    return subprocess.call([sys.executable, script, "--part", part, "--minutes", str(minutes),
                            "--seed", str(options.seed), "--server", options.server])


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = parse_arguments()
    code = 0
    if options.part in ("load", "all"):
        code = load_part(options)
    if options.part in ("durability", "all"):
        code = tests_part(options, "durability", options.minutes) or code
    if options.part in ("differential", "all"):
        code = tests_part(options, "differential", options.differential_minutes) or code
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
