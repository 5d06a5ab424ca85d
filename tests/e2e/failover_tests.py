"""Failovers by stock Sentinels: how many acknowledged writes they cost, with and without WAIT and
min-replicas-to-write, when the master is killed, hangs, or is cut off with some of its clients."""

import os
import shutil
import signal
import socket
import subprocess
import threading
import time

import resp
from harness import check, eq, free_port, test, until
from replica_tests import FAST, ask_sentinel, field, follow, linked

WRITERS = 4


class Line:
    """The way to a server, which can be blocked: then nothing passes, and nobody is told."""

    def __init__(self, context, port):
        self.target = ("127.0.0.1", port)
        self.passes = threading.Event()
        self.passes.set()
        self.links = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        context.at_end(self.close)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
                self.passes.wait()
                far = socket.create_connection(self.target, 5)
            except OSError:
                if self.listener.fileno() < 0:
                    return
                near.close()
                continue
            far.settimeout(None)
            self.links += [near, far]
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source, sink):
        try:
            while data := source.recv(65536):
                self.passes.wait()
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def block(self):
        self.passes.clear()

    def unblock(self):
        """As after a long time: what was open is closed."""
        links, self.links = self.links, []
        for link in links:
            link.close()
        self.passes.set()

    def close(self):
        self.listener.close()
        self.unblock()


class Writers:
    """Clients that write keys of their own, one after another, and note what was acknowledged: by
    the master, or, with `copies`, by WAIT for so many replicas. Each stays with its server as long
    as it takes writes, then asks the sentinels."""

    def __init__(self, context, port, find, copies):
        self.port = port
        self.find = find
        self.copies = copies
        self.kept = [[] for _ in range(WRITERS)]  # numbers that were acknowledged
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(number,), daemon=True)
                        for number in range(WRITERS)]
        context.at_end(self.stop)
        for thread in self.threads:
            thread.start()

    def _run(self, who):
        port, number = self.port, 0
        while not self.stopped.is_set():
            try:
                with resp.Client(("127.0.0.1", port), 2) as client:
                    while not self.stopped.is_set():
                        number += 1
                        if client.call("SET", "w%d:%d" % (who, number), "x") != resp.OK:
                            break
                        if self.copies and client.call("WAIT", str(self.copies), "500") < self.copies:
                            continue
                        self.kept[who].append(number)
            except (OSError, resp.ConnectionClosed, TypeError):
                pass
            self.stopped.wait(0.1)
            port = self.find() or port

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join(10)

    def count(self):
        return sum(map(len, self.kept))

    def lost(self, server):
        missing = 0
        with server.client() as client:
            for who, numbers in enumerate(self.kept):
                for start in range(0, len(numbers), 1000):
                    part = numbers[start : start + 1000]
                    missing += len(part) - client.call(
                        "EXISTS", *["w%d:%d" % (who, number) for number in part])
        return missing


class House:
    """A master behind a Line, two replicas, and sentinels that watch the master's Line."""

    def __init__(self, context, count, quorum):
        binary = shutil.which("redis-sentinel")
        if binary is None:
            context.skip("redis-sentinel is not installed")
        self.master = context.start(*FAST)
        self.line = Line(context, self.master.port)
        self.replicas = [context.start(*FAST) for _ in range(2)]
        for replica in self.replicas:
            follow(replica, self.line.port)
        for replica in self.replicas:
            until(lambda r=replica: linked(r), 30, "the link")
        self.sentinels = []
        self.processes = []
        context.at_end(self.end)
        folder = context.temp_dir()
        for number in range(count):
            port = free_port()
            path = os.path.join(folder, "sentinel%d.conf" % number)
            with open(path, "w") as file:
                file.write("port %d\nbind 127.0.0.1\ndir %s\n"
                           "sentinel monitor mine 127.0.0.1 %d %d\n"
                           "sentinel down-after-milliseconds mine 1500\n"
                           "sentinel failover-timeout mine 6000\n"
                           % (port, folder, self.line.port, quorum))
            process = subprocess.Popen([binary, path], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.processes.append(process)
            self.sentinels.append(port)
        for port in self.sentinels:
            until(lambda p=port: self.knows_all(p), 90, "what a sentinel has to know")

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()
        for server in (self.master, *self.replicas):
            server.stop()
        self.line.close()

    def knows_all(self, port):
        try:
            words = ask_sentinel(port, "MASTER", "mine")
            fields = dict(zip(words[::2], words[1::2]))
            return (fields[b"num-slaves"], fields[b"num-other-sentinels"]) == (
                b"2", b"%d" % (len(self.sentinels) - 1))
        except (OSError, resp.ConnectionClosed, KeyError, TypeError):
            return False

    def find(self, sentinel=None):
        """The port of the master that the sentinel names, itself and not its Line."""
        try:
            port = int(ask_sentinel(sentinel or self.sentinels[0], "GET-MASTER-ADDR-BY-NAME",
                                    "mine")[1])
        except (OSError, resp.ConnectionClosed, TypeError, IndexError):
            return None
        return self.master.port if port == self.line.port else port

    def new_master(self):
        """The replica that all sentinels name, and that is one."""
        for replica in self.replicas:
            if field(replica, "role") == "master" and all(
                    self.find(port) == replica.port for port in self.sentinels):
                return replica
        return None


def fail_over(context, event, copies=0, least=0, count=3, quorum=2):
    """One failover under load. Returns how many writes were acknowledged, and how many are lost."""
    house = House(context, count, quorum)
    for server in (house.master, *house.replicas):
        server.call("CONFIG", "SET", "min-replicas-to-write", str(least),
                    "min-replicas-max-lag", "2")
    writers = Writers(context, house.master.port, house.find, copies)
    until(lambda: writers.count() > 400, 60, "writes")
    time.sleep(3 if context.options.long else 0)  # of load
    if event == "kill -9":
        house.master.process.kill()
        house.master.process.wait()
    elif event == "SIGSTOP":
        house.master.process.send_signal(signal.SIGSTOP)
    else:
        house.line.block()
    try:
        until(lambda: house.new_master() is not None, 90, "the failover")
        new = house.new_master()
        for server in house.replicas:  # one is left to acknowledge
            server.call("CONFIG", "SET", "min-replicas-to-write", "0")
        with new.client() as client:
            eq(client.call("SET", "after", "it"), resp.OK)
        time.sleep(2)  # of writes on both sides, where there are two
    finally:
        if event == "SIGSTOP":
            house.master.process.send_signal(signal.SIGCONT)
        house.line.unblock()
    if event != "kill -9":
        until(lambda: field(house.master, "role") == "slave" and linked(house.master), 90,
              "the old master follows")
    else:
        until(lambda: linked(next(r for r in house.replicas if r is not new)), 60, "the other one")
    writers.stop()
    eq(house.find(), new.port, "one failover")
    lost = writers.lost(new)
    context.say("%s, %d sentinels, %s: %d of %d acknowledged writes lost"
                % (event, count,
                   "WAIT %d" % copies if copies else "min-replicas-to-write %d" % least,
                   lost, writers.count()))
    house.end()
    return writers.count(), lost


@test(timeout=120)
def what_wait_counted_survives_a_partition(context):
    """A master that is cut off with its clients: none of what WAIT has counted is lost."""
    context.sava_only()
    acknowledged, lost = fail_over(context, "cut off", copies=2)
    eq(lost, 0, "lost of %d" % acknowledged)


@test(timeout=900)
def losses_of_failovers(context):
    """All kinds of trouble, with all guards. Long: it takes minutes and shows figures."""
    context.sava_only()
    if not context.options.long:
        context.skip("--long")
    for count, quorum in ((3, 2), (5, 2)):
        for event in ("kill -9", "SIGSTOP", "cut off"):
            for copies, least in ((0, 0), (0, 1), (2, 0)):
                acknowledged, lost = fail_over(context, event, copies, least, count, quorum)
                check(acknowledged > 400, "%d writes" % acknowledged)
                if copies:
                    eq(lost, 0, "lost of %d" % acknowledged)
