"""The pages in a real browser: Debian's chromium, without a window, driven by playwright-core."""

import os
import shutil
import subprocess

from harness import Skip, World, check

HERE = os.path.dirname(os.path.abspath(__file__))


def test_pages_in_a_browser(options):
    chromium, node = shutil.which("chromium"), shutil.which("node")
    if not chromium:
        raise Skip("chromium is not installed")
    if not node or not os.path.isdir(os.path.join(HERE, "browser", "node_modules", "playwright-core")):
        raise Skip("playwright-core is not installed (npm ci in apps/timeline/tests/browser)")
    with World(options.server, options.app) as world:
        command = [node, "pages.mjs", f"http://127.0.0.1:{world.application.port}", chromium]
        if options.pictures:
            os.makedirs(options.pictures, exist_ok=True)
            command.append(os.path.abspath(options.pictures))
        process = subprocess.Popen(command, cwd=os.path.join(HERE, "browser"), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            first = process.stdout.readline()
            if first.startswith("ready"):
                world.application.run("admin", "ann@example.org")
            rest, _ = process.communicate("go\n", timeout=120)
            check(process.returncode == 0, first + rest)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
