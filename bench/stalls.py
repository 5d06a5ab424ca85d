"""Stalls of the server's event loops while it grows to 10M keys and while these are flushed.

The server measures itself: INFO's section `sava` has `loop_stall_max_us`, the longest time one turn
of an event loop kept everyone else waiting, and `loop_stalls_over_5ms`, how many turns took longer
than 5 ms; CONFIG RESETSTAT clears both. Keys come over 16 connections, 100 commands at a time.

Beside it, for information, a prober sends PING every few milliseconds over a connection of its own
and keeps the longest wait: that one includes the scheduler, since load, prober and server share the
machine. In a virtual machine a turn may also be long because the host ran somebody else: how much CPU
it took is in the note.
"""

import os
import threading
import time

import harness
import report
import resp

MEGA = 1_000_000
CONNECTIONS = 16
PER_WRITE = 100
LIMIT_MS = 5.0
SETTLE_SECONDS = 3.0


class Prober(threading.Thread):
    """Sends PING every 2 ms until stopped; `worst` is the longest round trip in seconds."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.connection = server.connect()
        self.worst = 0.0
        self.ended = threading.Event()

    def run(self):
        try:
            while not self.ended.wait(0.002):
                began = time.perf_counter()
                self.connection.command("PING")
                self.worst = max(self.worst, time.perf_counter() - began)
        except (OSError, resp.ProtocolError):
            self.worst = float("inf")

    def stop(self):
        self.ended.set()
        self.join(60)
        self.connection.close()
        return self.worst


def stolen_ms():
    """CPU time that the host has given to others, all cores, as the kernel counts it."""
    with open("/proc/stat", encoding="ascii") as stat:
        return int(stat.readline().split()[8]) * 1000 / os.sysconf("SC_CLK_TCK")


def watch(server, work):
    """Does the work; returns the server's own stall figures, the prober's longest wait, and what the
    host took."""
    with server.connect() as connection:
        connection.command("CONFIG", "RESETSTAT")
    prober = Prober(server)
    prober.start()
    stolen = stolen_ms()
    try:
        work()
    finally:
        waited = prober.stop()
        stolen = stolen_ms() - stolen
    info = server.info("sava")
    longest, over = info.get("loop_stall_max_us"), info.get("loop_stalls_over_5ms")
    return (None if longest is None else float(longest) / 1000,
            None if over is None else int(over), waited * 1000, stolen)


def rows_of(name, figures):
    longest, over, waited, stolen = figures
    missing = "" if longest is not None else "INFO sava does not report it"
    return [
        report.Row(f"{name}_longest_stall", longest, "ms", bar=LIMIT_MS, note=missing),
        report.Row(f"{name}_stalls_over_5ms", over, "", bar=0, note=missing),
        report.Row(f"{name}_longest_ping", waited, "ms",
                   note=f"as a client saw it, scheduler included; the host took {stolen:.0f} ms"),
    ]


def run(session):
    keys = session.pick(10 * MEGA, MEGA)
    harness.need_memory(session.pick(3, 1) * 2**30)
    with session.sava() as sava:
        connections = [sava.connect() for _ in range(CONNECTIONS)]

        def insert():
            chunks = resp.fill_chunks(0, keys, per_chunk=PER_WRITE)
            resp.stream_ok(connections, chunks, PER_WRITE)

        def flush():
            connections[0].command("FLUSHALL")
            time.sleep(SETTLE_SECONDS)

        harness.say(f"inserting {keys / MEGA:g}M keys over {CONNECTIONS} connections")
        inserting = watch(sava, insert)
        if connections[0].command("DBSIZE") != keys:
            raise harness.BenchError("DBSIZE is not what was filled in")
        harness.say("FLUSHALL")
        flushing = watch(sava, flush)
        for connection in connections:
            connection.close()
    return rows_of("insert", inserting) + rows_of("flushall", flushing)


BENCHMARK = harness.Benchmark("stalls", "event-loop stalls while growing and flushing", run)
