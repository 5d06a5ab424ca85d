"""Who is compared in comparison.py: Sava over HTTP and over RESP, stock Redis, the document's list,
and MariaDB and SQLite with the document's schema and with counters. All speak the same few words:

    start()            seconds until the first answer
    insert(a, m)       one association;  bulk(pairs): many, as quickly as it goes
    top(a, k)          [(member, frequency)], most frequent first;  read_top(a, k): only until it is here
    delete(a)          forgets an associator
    settle()           what was inserted is in the counters;  save(): and on the disk
    memory()           resident bytes of its processes;  disk(): bytes of its data, after stop()

Processes are started here, on free ports or sockets below the party's folder, and ended by their ids.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time

import harness
import resp

START_SECONDS = 600
STOP_SECONDS = 120


class Process:
    """A program that is running; its output goes to a file."""

    def __init__(self, words, log):
        self.words = words
        self.log = log
        with open(log, "ab") as out:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def rss(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        return 0

    def check(self):
        if self.process.poll() is not None:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                raise harness.BenchError(f"{self.words[0]} ended: {log.read()[-500:]}")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Http:
    """One kept connection, as the document's client has. Written for little time of its own."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=600)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""

    def close(self):
        self.socket.close()

    def _more(self):
        data = self.socket.recv(1 << 20)
        if not data:
            raise harness.BenchError("the service closed the connection")
        self.rest += data

    def ask(self, method, path, body=b""):
        fields = b""
        if method == b"POST":
            fields = b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
        self.socket.sendall(b"%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n%s"
                            % (method, path, fields, body))
        while (end := self.rest.find(b"\r\n\r\n")) < 0:
            self._more()
        head = self.rest[:end].lower()
        status = int(head[9:12])
        at = head.find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        while len(self.rest) < end + 4 + length:
            self._more()
        answer = self.rest[end + 4 : end + 4 + length]
        self.rest = self.rest[end + 4 + length :]
        return status, answer

    def good(self, method, path, body=b""):
        status, answer = self.ask(method, path, body)
        if status >= 300:
            raise harness.BenchError(f"{method} {path} answered {status}: {answer[:200]}")
        return answer


class Party:
    name = ""
    bulk_size = 1000

    def __init__(self, folder, tools):
        self.folder = folder
        self.tools = tools
        self.processes = []
        os.makedirs(folder, exist_ok=True)

    def spawn(self, *words):
        process = Process([str(word) for word in words], os.path.join(self.folder, "log"))
        self.processes.append(process)
        return process

    def start(self):
        began = time.perf_counter()
        self.launch()
        while not self.answers():
            for process in self.processes:
                process.check()
            if time.perf_counter() - began > START_SECONDS:
                raise harness.BenchError(f"{self.name} does not answer")
            time.sleep(0.002)
        return time.perf_counter() - began

    def stop(self):
        self.hang_up()
        for process in reversed(self.processes):
            process.stop()
        self.processes = []

    def settle(self):
        pass

    def save(self):
        pass

    def read_top(self, associator, k):
        self.top(associator, k)

    def memory(self):
        return sum(process.rss() for process in self.processes)

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class OverHttp(Party):
    """The document's three calls."""

    http = None
    port = 0

    def answers(self):
        try:
            self.http = Http(self.port)
            status, _ = self.http.ask(b"GET", b"/associations/00000000-0000-0000-0000-000000000000")
        except (OSError, harness.BenchError):
            return False
        if status == 200:
            return True
        self.http.close()  # it is loading
        return False

    def hang_up(self):
        if self.http is not None:
            self.http.close()

    def insert(self, associator, member):
        self.http.good(b"POST", b"/associations",
                       b'{"Key":"%s","AssociatedKey":"%s"}' % (associator, member))

    def bulk(self, pairs):
        body = b",".join(b'{"Key":"%s","AssociatedKey":"%s"}' % pair for pair in pairs)
        self.http.good(b"POST", b"/associations:batch", b"[" + body + b"]")

    def read_top(self, associator, k):
        return self.http.good(b"GET", b"/associations/%s?k=%d" % (associator, k))

    def top(self, associator, k):
        rows = json.loads(self.read_top(associator, k))
        return [(row["associatedKey"].encode(), row["frequency"]) for row in rows]

    def delete(self, associator):
        self.http.good(b"DELETE", b"/associations/" + associator)


class OverResp(Party):
    """A server with Redis's protocol; the words of the commands are the class's."""

    client = None
    port = 0
    program = "server"
    arguments = ()

    def launch(self):
        self.port = harness.free_port()
        self.spawn(self.tools[self.program], *self.arguments, "--port", self.port, "--dir", self.folder,
                   "--appendonly", "yes", "--appendfsync", "everysec", "--save", "")

    def answers(self):
        try:
            self.client = resp.Connection(self.port)
            self.client.command("DBSIZE")
            return True
        except (OSError, resp.ReplyError, resp.ProtocolError):
            return False

    def hang_up(self):
        if self.client is not None:
            self.client.close()

    def insert(self, associator, member):
        self.client.command(*self.insert_words(associator, member))

    def bulk(self, pairs):
        self.client.pipeline([self.insert_words(*pair) for pair in pairs])

    def delete(self, associator):
        self.client.command("DEL", associator)

    def save(self):
        keep(self.client)

    def disk(self):
        return os.path.getsize(os.path.join(self.folder, "dump.rdb"))


def keep(client):
    """A snapshot, for its size, and a fresh base of the log, for a start as after a quiet hour."""
    client.command("SAVE")
    client.command("BGREWRITEAOF")
    while b"aof_rewrite_in_progress:0" not in bytes(client.command("INFO", "persistence")):
        time.sleep(0.01)


class SavaResp(OverResp):
    name = "sava-resp"
    arguments = ("serve", "--http-port", "0")

    @staticmethod
    def insert_words(associator, member):
        return "AFC.ADD", associator, member

    def top(self, associator, k):
        return [(bytes(m), n) for m, n in pairs_of(self.client.command("AFC.TOP", associator, k,
                                                                      "WITHCOUNTS"))]


class SavaHttp(OverHttp):
    name = "sava-http"
    resp_port = 0

    def launch(self):
        self.port = harness.free_port()
        self.resp_port = harness.free_port()
        self.spawn(self.tools["server"], "serve", "--port", self.resp_port, "--http-port", self.port,
                   "--dir", self.folder, "--appendonly", "yes", "--appendfsync", "everysec",
                   "--save", "", "--associations-guid-keys", "yes")

    def save(self):
        with resp.Connection(self.resp_port) as client:
            keep(client)

    def disk(self):
        return os.path.getsize(os.path.join(self.folder, "dump.rdb"))


class Redis(OverResp):
    name = "redis"
    program = "redis"
    arguments = ("--daemonize", "no", "--bind", "127.0.0.1")

    @staticmethod
    def insert_words(associator, member):
        return "ZINCRBY", associator, 1, member

    def top(self, associator, k):
        flat = self.client.command("ZREVRANGE", associator, 0, k - 1, "WITHSCORES")
        return [(bytes(m), int(float(n))) for m, n in pairs_of(flat)]


def pairs_of(flat):
    return zip(flat[::2], flat[1::2])


class List(OverHttp):
    """The document's queue and list. The job runs every two minutes, as there."""

    name = "list"

    def launch(self):
        self.port = harness.free_port()
        self.spawn(self.tools["service"], self.port, "list", os.path.join(self.folder, "afc.bin"))

    def settle(self):
        self.http.good(b"POST", b"/drain")

    def save(self):
        self.http.good(b"POST", b"/save")

    def disk(self):
        return os.path.getsize(os.path.join(self.folder, "afc.bin"))


class ListDirect(List):
    """Its list without the queue: what the job does with each association (7.1.2)."""

    name = "list-direct"

    def insert(self, associator, member):
        self.bulk([(associator, member)])


class Sqlite(OverHttp):
    schema = ""

    @property
    def file(self):
        return os.path.join(self.folder, "associations.db")

    def launch(self):
        self.port = harness.free_port()
        self.spawn(self.tools["service"], self.port, self.schema, "sqlite:" + self.file)

    def disk(self):
        return sum(os.path.getsize(self.file + end) for end in ("", "-wal")
                   if os.path.exists(self.file + end))


class SqliteDocument(Sqlite):
    name = "sqlite-document"
    schema = "document"


class SqliteCounter(Sqlite):
    name = "sqlite-counter"
    schema = "counter"


class Mariadb(OverHttp):
    """A private mariadbd on a socket, without network, and the service in front of it."""

    schema = ""

    def __init__(self, folder, tools):
        super().__init__(folder, tools)
        self.data = os.path.join(folder, "data")
        self.socket = os.path.join(tools["sockets"], "mariadb.sock")
        self.user = ["--user=root"] if os.geteuid() == 0 else []
        if not os.path.isdir(tools["template"]):
            self._install(tools["template"])
        shutil.copytree(tools["template"], self.data)

    def _install(self, template):
        """An empty data directory, made once: it takes longer than a small measurement."""
        shutil.rmtree(template + ".new", ignore_errors=True)
        made = subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={template}.new",
                               "--skip-test-db", *self.user],
                              capture_output=True, text=True, timeout=120, check=False)
        if made.returncode:
            raise harness.BenchError(f"mariadb-install-db: {made.stderr[-300:]}")
        os.rename(template + ".new", template)

    def launch(self):
        self.port = harness.free_port()
        self.spawn("mariadbd", "--no-defaults", f"--datadir={self.data}", f"--socket={self.socket}",
                   "--skip-networking", "--skip-grant-tables", "--innodb-flush-log-at-trx-commit=2",
                   f"--pid-file={self.folder}/pid", *self.user)
        ask = ["mariadb", "--no-defaults", f"--socket={self.socket}", "-e",
               "CREATE DATABASE IF NOT EXISTS counted"]
        deadline = time.monotonic() + START_SECONDS
        while subprocess.run(ask, capture_output=True, timeout=60, check=False).returncode:
            self.processes[0].check()
            if time.monotonic() > deadline:
                raise harness.BenchError("mariadbd does not start")
            time.sleep(0.01)
        self.spawn(self.tools["service"], self.port, self.schema,
                   f"mariadb://root@/counted?socket={self.socket}")

    def disk(self):
        folder = os.path.join(self.data, "counted")
        return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))


class MariadbDocument(Mariadb):
    name = "mariadb-document"
    schema = "document"


class MariadbCounter(Mariadb):
    name = "mariadb-counter"
    schema = "counter"


ALL = (SavaHttp, SavaResp, Redis, List, ListDirect, MariadbDocument, MariadbCounter, SqliteDocument,
       SqliteCounter)
