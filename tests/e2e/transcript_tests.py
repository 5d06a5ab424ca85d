"""What README.md and docs/*.md show as a session in a terminal: it gives the answers that stand
there. The pages of types have a form of their own, see documentation_tests.py."""

import glob
import os
import re
import shutil
import subprocess

from documentation_tests import ROOT, matches, pasted
from harness import Skip, check, test
from http_tests import serve

BLOCK = re.compile(r"^```\n(.*?)^```$", re.S | re.M)
PROMPT = re.compile(r"127\.0\.0\.1:6379[^> ]*> ?(.*)")
SHOWN_RESP, SHOWN_HTTP = "6379", "7379"


def pages():
    return [os.path.join(ROOT, "README.md"), *sorted(glob.glob(os.path.join(ROOT, "docs", "*.md")))]


def steps(block):
    """(command line, expected lines) of a block; a command may go on behind a backslash."""
    found = []
    for line in block.splitlines():
        prompt = PROMPT.fullmatch(line)
        if prompt and prompt[1]:
            found.append(["redis", prompt[1], []])
        elif prompt:
            found.append(["end", "", []])
        elif line.startswith("$ curl") or line.startswith("$ printf"):
            found.append(["shell", line[2:], []])
        elif line.startswith("$"):
            found.append(["end", "", []])
        elif found and not found[-1][2] and found[-1][1].endswith("\\"):
            found[-1][1] = found[-1][1][:-1] + line.strip()
        elif found:
            if line or found[-1][0] == "redis":
                found[-1][2].append(line)
    return found


def run_redis(port, group):
    """All lines at once, so that MULTI and SELECT hold for what follows them."""
    expected = "\n".join(line for _, _, lines in group for line in lines if line)
    actual = pasted(port, "".join(command + "\n" for _, command, _ in group))
    return expected, actual


def run_shell(server, command):
    command = command.replace(":" + SHOWN_HTTP, ":%d" % server.http_port)
    done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=30, check=False)
    return done.stdout


@test(timeout=120)
def sessions_give_the_answers_that_stand_there(context):
    for program in ("redis-cli", "curl"):
        if shutil.which(program) is None:
            raise Skip("no " + program)
    server = serve(context)
    ran = 0
    for page in pages():
        server.call("FLUSHALL")
        with open(page, encoding="utf-8") as source:
            blocks = BLOCK.findall(source.read())
        for block in blocks:
            group = []
            for step in [*steps(block), ["end", "", []]]:
                if step[0] == "redis":
                    group.append(step)
                    continue
                if group:
                    expected, actual = run_redis(server.port, group)
                    compare(page, expected, actual)
                    ran += len(group)
                    group = []
                if step[0] == "shell":
                    compare(page, "\n".join(step[2]), run_shell(server, step[1]))
                    ran += 1
    check(ran > 40, "only %d commands were found" % ran)


def compare(page, expected, actual):
    lines = "\n".join(line for line in actual.splitlines() if line)
    check(matches(expected, lines + "\n" if lines else ""),
          "%s:\n%s\n---- got\n%s" % (os.path.basename(page), expected, lines))
