"""Tables of directed cases: commands with the literal replies Redis gives.

A table (cases/*.txt) consists of sections that each begin on empty databases with new connections:

    [name of the section]
    # remark
    COMMAND "argument with \\x00 escapes" …
      reply of Redis 7.0 in RESP2, as resp.show() writes it; `?` stands for any reply
      7.2 reply of Redis 7.2, where it differs: expected of Sava instead; any of several such lines
    2> COMMAND …              the same over a second connection of the section

`python3 tests/e2e/cases.py FILE…` fills in and renews the 7.0 replies by asking a stock
redis-server.
"""

import os
import shutil
import sys

import resp

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "a": "\a"}


class Case:
    def __init__(self, connection, args, text, number):
        self.connection = connection
        self.args = args
        self.text = text
        self.number = number  # line in the file
        self.reply = None
        self.replies72 = []


def split_args(line):
    """Splits as redis-cli does: blanks separate, quotes group, escapes within double quotes."""
    args, i = [], 0
    while i < len(line):
        if line[i] == " ":
            i += 1
            continue
        current = []
        while i < len(line) and line[i] != " ":
            if line[i] == '"':
                i = _quoted(line, i + 1, current)
            else:
                current.append(line[i])
                i += 1
        args.append("".join(current).encode("latin-1"))
    return args


def _quoted(line, i, out):
    while line[i] != '"':
        if line[i] == "\\" and line[i + 1] == "x":
            out.append(chr(int(line[i + 2 : i + 4], 16)))
            i += 4
        elif line[i] == "\\":
            out.append(_ESCAPES.get(line[i + 1], line[i + 1]))
            i += 2
        else:
            out.append(line[i])
            i += 1
    return i + 1


def parse(path):
    """[(section, [Case…])…]"""
    sections = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            if line.startswith("["):
                sections.append((line.strip("[]"), []))
            elif line.startswith("  7.2 "):
                sections[-1][1][-1].replies72.append(line[6:])
            elif line.startswith("  "):
                sections[-1][1][-1].reply = line[2:]
            else:
                connection = 1
                text = line
                if line[1:3] == "> ":
                    connection, line = int(line[0]), line[3:]
                sections[-1][1].append(Case(connection, split_args(line), text, number))
    return sections


def record(path, client_factory):
    """Rewrites the file with the replies of the server that `client_factory` connects to."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    out, clients = [], {}
    for line in lines:
        if line.startswith("[") or not clients:
            for client in clients.values():
                client.close()
            clients = {n: client_factory() for n in (1, 2)}
            clients[1].call("FLUSHALL")
        if line.startswith("  "):
            if line.startswith("  7.2 "):
                out.append(line)
            elif line == "  ?":
                out[-1] = "  ?"
            continue
        out.append(line)
        if not line or line.startswith(("#", "[")):
            continue
        connection = 1
        if line[1:3] == "> ":
            connection, line = int(line[0]), line[3:]
        out.append("  " + resp.show(clients[connection].call(*split_args(line)), 1 << 30))
    for client in clients.values():
        client.close()
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out))


def main():
    import harness

    for path in sys.argv[1:]:
        server = harness.Server(shutil.which("redis-server")).start()
        try:
            record(path, server.client)
        finally:
            server.stop()
            server.remove_files()


if __name__ == "__main__":
    main()
