"""The pages of docs/types: what a reader pastes into redis-cli gives the answers that stand there."""

import glob
import os
import re
import shutil
import subprocess

from harness import Skip, check, eq, test

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PAIR = re.compile(r"```redis\n(.*?)```\n\n[^\n]*\n\n```reply\n(.*?)```\n", re.S)


def pasted(port, commands):
    """What redis-cli prints when the lines are pasted into it."""
    done = subprocess.run(
        ["redis-cli", "-p", str(port), "--no-raw"], input=commands, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    return done.stdout


def matches(expected, actual):
    """Line by line; `…` stands for anything within its line."""
    pattern = "".join(
        ".*".join(re.escape(part) for part in line.split("…")) + "\n"
        for line in expected.splitlines())
    return re.fullmatch(pattern, actual) is not None


@test(timeout=120)
def pages_of_types_can_be_pasted(context):
    """Each page has at least one block of commands with its answers, and they are what comes."""
    if shutil.which("redis-cli") is None:
        raise Skip("no redis-cli")
    pages = sorted(glob.glob(os.path.join(ROOT, "docs", "types", "*.md")))
    check(len(pages) >= 16, "pages of types: %d" % len(pages))
    client = context.client(context.sut)
    for page in pages:
        with open(page, encoding="utf-8") as source:
            text = source.read()
        pairs = PAIR.findall(text)
        name = os.path.basename(page)
        check(pairs, name + " has nothing to paste")
        eq(len(pairs), text.count("```redis\n"), name + ": blocks without their answers")
        client.call("FLUSHALL")
        for commands, expected in pairs:
            actual = pasted(context.sut.port, commands)
            check(matches(expected, actual), "%s:\n%s\n---- got\n%s" % (name, expected, actual))
