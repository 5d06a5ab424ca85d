#!/usr/bin/env python3
"""Both load tests of the application, with the cache off and on.

    apps/timeline/load/bench.py direct|http --server PATH_TO_sava --app PATH_TO_sava_timeline
        [--users 2000] [--posts 20000] [--follows 200..800] [--databases sqlite,mariadb]
        [--layouts document,indexed] [--threads 10,20,40,80,160] [--rounds 3] [--sessions 500]
        [--pages 25] [--store redis-server] [--out FOLDER] [--jmeter]

Databases are made once for each size and kept in the folder. Results: results-direct.json or
results-http.json, tables in the same names with .md, and the document's figures as SVG.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests"))

import harness  # noqa: E402
import report  # noqa: E402


def say(text):
    print(f"==> {text}", file=sys.stderr, flush=True)


def lines_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


class Ground:
    """One database with its data, a store and, for the HTTP test, the application."""

    def __init__(self, options, database, layout):
        size = f"{options.users}-{options.posts}-{options.follows.replace('..', '-')}"
        self.options = options
        self.folder = os.path.join(options.out, f"{database}-{layout}-{size}")
        os.makedirs(self.folder, exist_ok=True)
        self.mariadb = None
        self.store = None
        self.application = None
        self.database = os.path.join(self.folder, "timeline.db")
        if database == "mariadb":
            self.mariadb = harness.Mariadb(self.folder, buffer_pool="1G")
            self.database = self.mariadb.address
        start = time.monotonic()
        subprocess.run(
            [options.app, "generate", "--users", str(options.users), "--posts", str(options.posts),
             "--follows", options.follows, "--layout", layout, "--database", self.database],
            check=True, stdout=subprocess.DEVNULL,
        )
        self.generated = time.monotonic() - start
        server = shutil.which(options.store) if options.store else options.server
        self.store = harness.Store(server, self.folder, ["--save", "", "--appendonly", "no"])

    def arguments(self):
        return ["--database", self.database, "--store", f"127.0.0.1:{self.store.port}"]

    def close(self):
        for part in (self.application, self.store, self.mariadb):
            if part:
                part.stop()

    def settings(self, **changes):
        words = [word for name, value in changes.items() for word in (f"--{name}", str(value))]
        subprocess.run([self.options.app, "settings"] + words + self.arguments(), check=True,
                       stdout=subprocess.DEVNULL)
        time.sleep(1.2)  # the application reads its settings twice a second

    def memory(self):
        text = self.store.ask("INFO", "memory")
        return int(text.split("used_memory:")[1].split()[0])


def direct(options, ground):
    rows = []
    for page in options.pages.split(","):
        for cache, cold in (("off", False), ("on", True), ("on", False)):
            say(f"direct, page {page}, cache {cache}{', cold' if cold else ''}")
            for threads in options.threads.split(","):
                command = [options.app, "direct", "--threads", threads, "--rounds", str(options.rounds),
                           "--cache", cache, "--page", page, "--users", str(options.sessions)]
                rows += [dict(row, cache=cache, cold=cold, page=int(page))
                         for row in lines_of(command + (["--cold"] if cold else []) + ground.arguments())]
    return rows


def http(options, ground):
    ground.application = harness.Application(
        options.app, ground.folder, ground.database, ground.store,
        # A generator on a busy machine may let a connection rest for longer than a browser does.
        ["--connections", "32", "--keep-alive", "60"])
    sessions = os.path.join(ground.folder, "sessions")
    with open(sessions, "w") as file:
        subprocess.run([options.app, "sessions", "--count", str(options.sessions)] + ground.arguments(),
                       check=True, stdout=file)
    url = f"http://127.0.0.1:{ground.application.port}"
    rows = []
    for page in options.pages.split(","):
        for cache, cold in (("off", False), ("on", True), ("on", False)):
            say(f"http, page {page}, cache {cache}{', cold' if cold else ''}")
            ground.settings(cache=cache, **{"front-page": page})
            for threads in options.threads.split(","):
                if cold:
                    ground.store.ask("FLUSHALL")
                command = [options.app, "http", "--url", url, "--sessions", sessions, "--threads", threads,
                           "--rounds", str(options.rounds)]
                if cache == "on" and not cold:
                    command.append("--warm")
                if options.jmeter and not cold:
                    if cache == "on":
                        lines_of(command + ["--threads", "1", "--rounds", "1"])  # fills the cache
                    found = [report.jmeter(options, ground, url, sessions, threads)]
                else:
                    found = lines_of(command)
                rows += [dict(row, cache=cache, cold=cold, page=int(page)) for row in found]
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("test", choices=["direct", "http"])
    parser.add_argument("--server", required=True)
    parser.add_argument("--app", required=True)
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--posts", type=int, default=20000)
    parser.add_argument("--follows", default="200..800")
    parser.add_argument("--databases", default="sqlite,mariadb")
    parser.add_argument("--layouts", default="document,indexed")
    parser.add_argument("--threads", default="10,20,40,80,160")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--pages", default="25")
    parser.add_argument("--store", help="another server than Sava, for instance redis-server")
    parser.add_argument("--out", default=os.path.join("build", "timeline-bench"))
    parser.add_argument("--jmeter", action="store_true", help="Apache JMeter instead of our own generator")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended then, too
    for name in ("server", "app", "out"):
        setattr(options, name, os.path.abspath(getattr(options, name)))
    results = []
    for database in options.databases.split(","):
        for layout in options.layouts.split(","):
            say(f"{database}, {layout} layout, {options.users} users, {options.posts} posts")
            ground = Ground(options, database, layout)
            try:
                rows = direct(options, ground) if options.test == "direct" else http(options, ground)
                memory = ground.memory()
            finally:
                ground.close()
            results.append({"database": database, "layout": layout, "users": options.users,
                            "posts": options.posts, "follows": options.follows,
                            "store": options.store or "sava", "generateSeconds": round(ground.generated, 1),
                            "storeMemory": memory, "rows": rows})
            if any(row["errors"] for row in rows):
                say("SOME REQUESTS FAILED")
    name = os.path.join(options.out, f"results-{options.test}{'-' + options.store if options.store else ''}")
    with open(name + ".json", "w") as file:
        json.dump(results, file, indent=1)
    text = report.tables(options.test, results)
    with open(name + ".md", "w") as file:
        file.write(text)
    report.figures(options.test, results, options.out)
    print(text)
    return 1 if any(row["errors"] for result in results for row in result["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
