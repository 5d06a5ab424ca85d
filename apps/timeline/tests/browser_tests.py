"""The pages in a real browser: Debian's chromium, without a window, driven by playwright-core."""

import os
import shutil
import subprocess

from harness import Skip, World, check

HERE = os.path.dirname(os.path.abspath(__file__))


def browse(options, database, pictures=None):
    chromium, node = shutil.which("chromium"), shutil.which("node")
    if not chromium:
        raise Skip("chromium is not installed")
    if not node or not os.path.isdir(os.path.join(HERE, "browser", "node_modules", "playwright-core")):
        raise Skip("playwright-core is not installed (npm ci in apps/timeline/tests/browser)")
    with World(options.server, options.app, database=database) as world:
        command = [node, "pages.mjs", f"http://127.0.0.1:{world.application.port}", chromium]
        if pictures:
            os.makedirs(pictures, exist_ok=True)
            command.append(os.path.abspath(pictures))
        process = subprocess.Popen(command, cwd=os.path.join(HERE, "browser"), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            first = process.stdout.readline()
            if first.startswith("ready"):
                world.application.run("admin", "ann@example.org")
            rest, _ = process.communicate("go\n", timeout=240)
            check(process.returncode == 0, first + rest)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def test_pages_in_a_browser(options):
    browse(options, "sqlite", options.pictures)


def test_pages_in_a_browser_on_mariadb(options):
    if options.no_mariadb:
        raise Skip("--no-mariadb")
    browse(options, "mariadb")
