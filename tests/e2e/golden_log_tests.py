"""The bytes of the log: what commands of all families leave in it is, but for comment lines, what
tests/golden/log holds, whatever the policy and however it is synced.

`python3 tests/e2e/golden_log_tests.py SERVER` writes effects.aof anew.
"""

import os
import sys

import resp
from cases import split_args
from durability import CHECK_AOF, Durable, contents, durable, increments, passes
from harness import check, eq, test

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "log")
COMMANDS = os.path.join(FOLDER, "commands.txt")
EFFECTS = os.path.join(FOLDER, "effects.aof")
LOG = ("--save", "", "--appendonly", "yes", "--auto-aof-rewrite-percentage", "0")
WAYS = (
    ("--appendfsync", "everysec"),
    ("--appendfsync", "no"),
    ("--appendfsync", "always"),
    ("--appendfsync", "always", "--aof-ring", "no"),
)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def commands():
    with open(COMMANDS) as lines:
        for line in lines:
            line = line.rstrip("\n")
            if line and not line.startswith("#"):
                yield split_args(line)


def without_comments(log):
    """The commands of an increment, byte by byte as they are, without the lines between them."""
    out, at = [], 0
    while at < len(log):
        end = log.index(b"\r\n", at) + 2
        if log[at : at + 1] == b"#":
            at = end
            continue
        begin = at
        eq(log[at : at + 1], b"*", "at %d" % at)
        words, at = int(log[at + 1 : end]), end
        for _ in range(words):
            end = log.index(b"\r\n", at) + 2
            at = end + int(log[at + 1 : end]) + 2
        out.append(log[begin:at])
    return b"".join(out)


def logged(server):
    return b"".join(without_comments(read(file.path)) for file in increments(server))


def encoded(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def run_all(server):
    with server.client() as client:
        eq(client.call("DEBUG", "SET-ACTIVE-EXPIRE", "0"), resp.OK)
        for words in commands():
            client.call(*words)


def differences(found, expected):
    at = next((i for i, (a, b) in enumerate(zip(found, expected)) if a != b), None)
    at = min(len(found), len(expected)) if at is None else at
    return "at %d: %r instead of %r" % (at, found[at - 80 : at + 80], expected[at - 80 : at + 80])


@test(timeout=90)
def of_each_family(context):
    context.sava_only("native types, and the files of Sava")
    expected = read(EFFECTS)
    for way in WAYS:
        for threads in (1, 2):
            server = durable(context, *LOG, *way, threads=threads)
            run_all(server)
            before = server.call("DEBUG", "DIGEST")
            eq(server.terminate(), 0)
            found = logged(server)
            check(found == expected, "%r: %s" % (way, differences(found, expected)))
            for file in increments(server):
                passes(CHECK_AOF, file.path)
            server.restart()
            eq(server.call("DEBUG", "DIGEST"), before, "the data after a restart")
            eq(server.terminate(), 0)


@test(timeout=90)
def of_large_values(context):
    """Values and transactions that are larger than a piece of the buffer of a thread, or end with it."""
    context.sava_only("the files of Sava")
    sizes = [1, 100, 4000, 16_000, 32_000, 65_000, 131_000, 131_073, 300_000, 2_000_000]
    sizes += [131_072 - 40 + step for step in range(0, 40, 3)]
    for way in WAYS:
        server = durable(context, *LOG, *way)
        expected = [encoded(b"SELECT", b"0")]
        with server.client() as client:
            for size in sizes:
                words = (b"SET", b"key:%d" % size, bytes([97 + size % 26]) * size)
                eq(client.call(*words), resp.OK)
                expected.append(encoded(*words))
            for count in (2, 100, 3000):
                expected.append(encoded(b"MULTI"))
                client.send("MULTI")
                for number in range(count):
                    words = (b"APPEND", b"list:%d" % (number % 7), b"x" * (1 + number % 300))
                    client.send(*words)
                    expected.append(encoded(*words))
                client.send("EXEC")
                expected.append(encoded(b"EXEC"))
                for _ in range(count + 2):
                    client.recv()
        expected = b"".join(expected)
        kept = contents(server)
        eq(server.terminate(), 0)
        found = logged(server)
        check(found == expected, "%r: %s" % (way, differences(found, expected)))
        for file in increments(server):
            passes(CHECK_AOF, file.path)
        server.restart()
        eq(contents(server) == kept, True, "the data after a restart")
        eq(server.terminate(), 0)


if __name__ == "__main__":
    server = Durable(sys.argv[1], [*LOG, "--appendfsync", "everysec"])
    server.start()
    run_all(server)
    eq(server.terminate(), 0)
    with open(EFFECTS, "wb") as out:
        out.write(logged(server))
    server.remove_files()
