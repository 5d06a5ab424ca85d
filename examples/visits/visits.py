#!/usr/bin/env python3
"""Who visited the site on a day: a bitmap (one bit a user) against a set (one member a visitor).

The comparison of document S3, table 1.6, measured: `visits.py PORT [USERS]` fills both ways for many
visitors and for a hundred, checks that they agree, and prints what each takes (MEMORY USAGE).
"""

import random
import socket
import sys

BATCH = 1_000


class Connection:
    """Just enough RESP: commands in pipelines, replies that are integers or errors."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.replies = self.sock.makefile("rb")

    def run(self, commands):
        self.sock.sendall(b"".join(self.packed(words) for words in commands))
        return [self.integer() for _ in commands]

    @staticmethod
    def packed(words):
        encoded = [str(word).encode() for word in words]
        return b"*%d\r\n" % len(encoded) + b"".join(
            b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded)

    def integer(self):
        line = self.replies.readline().strip()
        if not line.startswith(b":"):
            raise RuntimeError(f"the server answered {line.decode()!r}")
        return int(line[1:])


def in_batches(commands):
    for start in range(0, len(commands), BATCH):
        yield commands[start:start + BATCH]


def compare(connection, users, visitors):
    """Bytes of the set and of the bitmap, once both hold the same visitors."""
    connection.run([("DEL", "visits:set", "visits:bitmap")])
    # The worst case for the bitmap: the user with the highest number was there.
    chosen = random.Random(visitors).sample(range(1, users), visitors - 1) + [users]
    for batch in in_batches([("SADD", "visits:set", user) for user in chosen]):
        connection.run(batch)
    for batch in in_batches([("SETBIT", "visits:bitmap", user, 1) for user in chosen]):
        connection.run(batch)
    members, bits = connection.run([("SCARD", "visits:set"), ("BITCOUNT", "visits:bitmap")])
    if members != visitors or bits != visitors:
        raise RuntimeError(f"{visitors} visitors, but {members} members and {bits} bits")
    there = set(chosen)
    absent = next(user for user in range(1, users) if user not in there)
    asked = connection.run([("SISMEMBER", "visits:set", absent), ("GETBIT", "visits:bitmap", absent),
                            ("SISMEMBER", "visits:set", users), ("GETBIT", "visits:bitmap", users)])
    if asked != [0, 0, 1, 1]:
        raise RuntimeError(f"set and bitmap disagree: {asked}")
    return connection.run([("MEMORY", "USAGE", "visits:set", "SAMPLES", 0),
                           ("MEMORY", "USAGE", "visits:bitmap", "SAMPLES", 0)])


def main():
    port = int(sys.argv[1])
    users = int(sys.argv[2]) if len(sys.argv) > 2 else 5_000_000
    connection = Connection(port)
    print(f"{'visitors of ' + format(users, ','):<24}{'set, bytes':>14}{'bitmap, bytes':>16}")
    for visitors in (users * 2 // 5, 100):
        as_set, as_bitmap = compare(connection, users, visitors)
        print(f"{visitors:<24,}{as_set:>14,}{as_bitmap:>16,}")
    connection.run([("DEL", "visits:set", "visits:bitmap")])


if __name__ == "__main__":
    main()
