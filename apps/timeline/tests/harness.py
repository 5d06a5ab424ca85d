"""Starts Sava and the application for a test, and speaks with both as a user and a tool would."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse


class Failure(Exception):
    """What a test found wrong."""


class Skip(Exception):
    """Why a test cannot run here."""


def check(condition, message):
    if not condition:
        raise Failure(message)


def equal(found, expected, what):
    if found != expected:
        raise Failure(f"{what}: found {found!r}, expected {expected!r}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, message, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.02)
    raise Failure(message)


class Process:
    """A server that is ended by its process id, in order or abruptly."""

    def __init__(self, command, log, folder):
        self.log = open(log, "ab")
        self.process = subprocess.Popen(
            command, stdout=self.log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=folder
        )

    def end(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        return self.process.returncode


class Store:
    """Sava, or another server that speaks RESP, on a fixed port and folder."""

    def __init__(self, command, folder, arguments=()):
        self.port = free_port()
        self.folder = folder
        self.command = command
        self.arguments = list(arguments)
        self.process = None
        self.start()

    def start(self):
        serve = [self.command]
        if os.path.basename(self.command) == "sava":
            serve.append("serve")
        serve += ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder]
        self.process = Process(serve + self.arguments, os.path.join(self.folder, "store.log"), self.folder)
        wait_until(self.answers, "the store does not start")

    def stop(self, how=signal.SIGKILL):
        if self.process:
            self.process.end(how)
            self.process = None

    def answers(self):
        try:
            return self.ask("PING") == "PONG"
        except (OSError, Failure):
            return False

    def ask(self, *words):
        with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            parts = [str(word).encode() for word in words]
            request = b"*%d\r\n" % len(parts)
            for part in parts:
                request += b"$%d\r\n%s\r\n" % (len(part), part)
            connection.sendall(request)
            with connection.makefile("rb") as answer:
                return self.read(answer)

    def read(self, answer):
        line = answer.readline()
        if not line:
            raise Failure("the store closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            raise Failure(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if int(rest) < 0:
                return None
            return answer.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return None if int(rest) < 0 else [self.read(answer) for _ in range(int(rest))]
        raise Failure(f"an answer that is not understood: {line!r}")


class Application:
    def __init__(self, program, folder, database, store, arguments=(), port=None):
        self.program = program
        self.folder = folder
        self.database = database
        self.store = store
        self.arguments = list(arguments)
        self.port = port
        self.process = None
        self.start()

    def common(self):
        return ["--database", self.database, "--store", f"127.0.0.1:{self.store.port}"]

    def start(self):
        if self.port is None:
            self.port = free_port()
        command = [self.program, "serve", "--port", str(self.port)] + self.common() + self.arguments
        self.process = Process(command, os.path.join(self.folder, "application.log"), self.folder)
        wait_until(self.answers, "the application does not start")

    def stop(self, how=signal.SIGTERM):
        if self.process:
            code = self.process.end(how)
            self.process = None
            return code
        return None

    def answers(self):
        try:
            Browser(self).get("/style.css")
            return True
        except OSError:
            return False

    def run(self, *words, code=0):
        command = [self.program] + [str(word) for word in words] + self.common()
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=self.folder)
        equal(done.returncode, code, f"exit code of {words}: {done.stderr}")
        return done.stdout


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)


class Browser:
    """One visitor: keeps cookies, and the form token of the last page."""

    def __init__(self, application):
        self.port = application.port
        self.cookies = {}
        self.token = ""
        self.user = 0

    def request(self, method, path, fields=None, accept="application/json", headers=None, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        send = {"Accept": accept}
        if self.cookies:
            send["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if fields is not None:
            body = urllib.parse.urlencode(fields)
            send["Content-Type"] = "application/x-www-form-urlencoded"
        send.update(headers or {})
        try:
            connection.request(method, path, body, send)
            raw = connection.getresponse()
            answer = Answer(raw.status, raw.headers, raw.read().decode("utf-8", "replace"))
        finally:
            connection.close()
        for line in raw.headers.get_all("Set-Cookie") or []:
            name, value = line.split(";")[0].split("=", 1)
            if value:
                self.cookies[name] = value
            else:
                self.cookies.pop(name, None)
        return answer

    def get(self, path, accept="application/json"):
        answer = self.request("GET", path, accept=accept)
        if answer.body.startswith("{"):
            self.token = answer.json().get("csrf", self.token)
        return answer

    def post(self, path, expect=200, **fields):
        fields.setdefault("csrf", self.token)
        answer = self.request("POST", path, fields)
        equal(answer.status, expect, f"POST {path}: {answer.body[:300]}")
        if answer.body.startswith("{"):
            self.token = answer.json().get("csrf", self.token)
        return answer

    def register(self, name, password="correct horse"):
        self.get("/")
        answer = self.post("/register", email=f"{name}@example.org", displayName=name, password=password)
        self.user = answer.json()["user"]
        return self

    def sign_in(self, name, password="correct horse", expect=200):
        self.get("/")
        answer = self.post("/login", expect, email=f"{name}@example.org", password=password)
        self.user = answer.json().get("user", 0)
        return answer

    def say(self, title, message="text"):
        return self.post("/posts", title=title, message=message).json()["id"]

    def feed(self, page=0):
        answer = self.get(f"/feed?page={page}")
        equal(answer.status, 200, f"GET /feed: {answer.body[:300]}")
        return answer.json()["posts"]

    def titles(self, page=0):
        return [post["title"] for post in self.feed(page)["posts"]]

    def ids(self, page=0):
        return [post["id"] for post in self.feed(page)["posts"]]

    def follow(self, other, expect=200):
        return self.post(f"/users/{other}/follow", expect)

    def unfollow(self, other, expect=200):
        return self.post(f"/users/{other}/unfollow", expect)


class World:
    """A folder with a store and an application in it, both ended when the test is over."""

    def __init__(self, server, program, database="sqlite", layout="indexed", arguments=(), store_arguments=()):
        self.folder = tempfile.mkdtemp(prefix="timeline-test-")
        self.mariadb = None
        self.store = None
        self.application = None
        try:
            address = os.path.join(self.folder, "timeline.db")
            if database == "mariadb":
                self.mariadb = Mariadb(self.folder)
                address = self.mariadb.address
            self.store = Store(server, self.folder, store_arguments)
            limits = ["--account-limit", "1000", "--address-limit", "1000"]
            self.application = Application(
                program, self.folder, address, self.store, ["--layout", layout] + limits + list(arguments)
            )
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close(kind is not None)

    def close(self, failed=False):
        if self.application:
            self.application.stop()
        if self.store:
            self.store.stop()
        if self.mariadb:
            self.mariadb.stop()
        if failed:
            with open(os.path.join(self.folder, "application.log"), errors="replace") as log:
                print(re.sub(r"(?m)^", "    application: ", log.read()[-2000:]))
        shutil.rmtree(self.folder, ignore_errors=True)

    def browser(self):
        return Browser(self.application)

    def person(self, name):
        return self.browser().register(name)

    def administrator(self, name="root"):
        person = self.person(name)
        self.application.run("admin", f"{name}@example.org")
        return person

    def settings(self, person, **changes):
        now = person.get("/admin").json()
        fields = {
            "action": "settings",
            "cache": "on" if now["cache"] else "off",
            "frontPage": now["frontPage"],
            "profilePage": now["profilePage"],
            "strategy": now["strategy"],
        }
        fields.update(changes)
        return person.post("/admin", **fields).json()


class Mariadb:
    """A private mariadbd on a socket in its folder; no network, ended with the test."""

    def __init__(self, folder, buffer_pool="64M"):
        if not (shutil.which("mariadbd") and shutil.which("mariadb-install-db")):
            raise Skip("mariadbd is not installed")
        data = os.path.join(folder, "mariadb")
        self.socket = os.path.join(folder, "mariadb.sock")
        self.away = None
        if len(self.socket) > 100:  # a socket's path has 107 bytes at most
            self.away = tempfile.mkdtemp(prefix="timeline-")
            self.socket = os.path.join(self.away, "mariadb.sock")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        user = ["--user=root"] if os.geteuid() == 0 else []
        if not os.path.isdir(data):
            subprocess.run(
                ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--skip-test-db"] + user,
                check=True, timeout=120, **quiet,
            )
        command = ["mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={self.socket}",
                   "--skip-networking", "--skip-grant-tables", "--innodb-flush-log-at-trx-commit=2",
                   f"--innodb-buffer-pool-size={buffer_pool}", "--max-connections=400", f"--pid-file={folder}/mariadb.pid"] + user
        self.process = Process(command, os.path.join(folder, "mariadb.log"), folder)
        wait_until(self.answers, "mariadbd does not start", 60)
        subprocess.run(
            ["mariadb", "--no-defaults", f"--socket={self.socket}", "-e", "CREATE DATABASE IF NOT EXISTS timeline"],
            check=True, timeout=60,
        )
        self.address = f"mariadb://root@/timeline?socket={self.socket}"

    def answers(self):
        ask = ["mariadb", "--no-defaults", f"--socket={self.socket}", "-e", "SELECT 1"]
        return subprocess.run(ask, capture_output=True, timeout=30).returncode == 0

    def stop(self):
        self.process.end()
        if self.away:
            shutil.rmtree(self.away, ignore_errors=True)
