#!/usr/bin/env python3
"""Starts Sava and the application, with a small network to look at, until it is interrupted.

    apps/timeline/run.py --server PATH_TO_sava --app PATH_TO_sava_timeline [--port N] [--mariadb]
                         [--layout document|indexed] [--users N] [--posts N] [--follows A..B] [--folder F]
"""

import argparse
import os
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "tests"))

import harness  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--app", required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--mariadb", action="store_true")
    parser.add_argument("--layout", choices=["document", "indexed"])
    parser.add_argument("--users", type=int, default=500)
    parser.add_argument("--posts", type=int, default=5000)
    parser.add_argument("--follows", default="20..80")
    parser.add_argument("--folder", default=os.path.join("build", "timeline"))
    options = parser.parse_args()
    folder = os.path.abspath(options.folder)
    os.makedirs(folder, exist_ok=True)
    server, program = os.path.abspath(options.server), os.path.abspath(options.app)
    mariadb = store = application = None
    ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ending.set())
    try:
        database = os.path.join(folder, f"timeline-{options.layout or 'indexed'}.db")
        if options.mariadb:
            mariadb = harness.Mariadb(folder)
            database = mariadb.address
        layout = ["--layout", options.layout] if options.layout else []
        made = subprocess.run(
            [program, "generate", "--users", str(options.users), "--posts", str(options.posts), "--follows",
             options.follows, "--database", database] + layout, capture_output=True, text=True)
        fresh = made.returncode == 0
        if not fresh and "not empty" not in made.stderr and "other sizes" not in made.stderr:
            print(made.stderr, file=sys.stderr)
            return 1
        store = harness.Store(server, folder)
        if fresh:
            subprocess.run([program, "admin", "demo@example.org", "--database", database], check=True,
                           stdout=subprocess.DEVNULL)
        application = harness.Application(program, folder, database, store, layout, port=options.port or None)
        print(f"http://127.0.0.1:{application.port}/   sign in as demo@example.org with demo-password")
        print(f"Sava is on port {store.port}, the data in {folder}. Ctrl-C ends all of it.", flush=True)
        ending.wait()
    finally:
        for part in (application, store, mariadb):
            if part:
                part.stop(signal.SIGTERM) if part is not mariadb else part.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
