#!/usr/bin/env python3
"""Holds the rules of the house over the project's files, and names every line that breaks one.

  * who may include whom: the folders of src/ are rooms, and a room includes only the rooms below it
    (the table MAY_INCLUDE; docs/architecture.md draws it). Includes of our own headers are written
    "room/file.h", relative to src/, and name a file that exists.
  * a type is known by name in types and commands only: others include of types what stands in
    ABOUT_TYPES, and ask through it (types/value/type_registry.h). The tools in NAMES_TYPES may.
  * the native families of commands include nothing of what only a server has (SERVER_ONLY).
  * a header opens with a comment that says what it is for, followed by #pragma once.
  * the project stands alone: no file names a folder outside it or a path of somebody's machine.

Usage: tools/check_includes.py [ROOT]      exit 0 when all rules hold, 1 otherwise
"""

import pathlib
import re
import subprocess
import sys

# Room -> rooms it may include, besides base and itself.
MAY_INCLUDE = {
    "base": set(),
    "types": set(),
    "protocol": set(),
    "keyspace": {"types"},
    "commands": {"types", "protocol"},
    "config": {"types", "commands"},
    "access": {"commands", "config"},
    "journal": {"protocol"},
    "snapshot": {"keyspace", "types"},
    "storage": {"journal", "snapshot", "keyspace", "types", "protocol"},
    "engine": {"commands", "keyspace", "journal", "snapshot", "access", "config", "protocol", "types"},
    "net": set(),
    "http": {"protocol", "commands", "access"},
    "front": {"net", "http", "protocol", "engine", "journal", "access", "config", "commands"},
    "persistence": {"engine", "storage", "snapshot", "journal", "config", "commands", "keyspace", "types",
                    "protocol"},
    "admin": {"engine", "access", "config", "commands", "keyspace", "journal", "types", "protocol"},
    # Its links and replicas are connections of the event loops: front.
    "replication": {"front", "engine", "persistence", "storage", "snapshot", "journal", "net", "access",
                    "config", "protocol", "commands", "types"},
    # One interpreter; it asks the server through a Host that the room script is.
    "lua": set(),
    # journal: redis.set_repl names the destinations of its records.
    "script": {"lua", "engine", "commands", "config", "access", "protocol", "journal"},
    "module": {"types", "protocol", "commands"},
    "library": {"types"},
}
ROOMS = set(MAY_INCLUDE) | {"server", "cli"}
MAY_INCLUDE["server"] = ROOMS - {"cli"}
MAY_INCLUDE["cli"] = set(ROOMS)
for room in ROOMS - {"base"}:
    MAY_INCLUDE[room] |= {"base", room}
MAY_INCLUDE["base"].add("base")

# What is known of types without knowing one: their interface, and algorithms.
ABOUT_TYPES = {
    "aux_data.h", "collection_limits.h", "digest_sink.h", "object.h", "rate_limit.h", "save.h",
    "type_registry.h",
}
# Command-line tools that make or measure values of one type.
NAMES_TYPES = ("src/cli/bench", "src/cli/bloom", "src/cli/frontier")

# The native families run on any host: they know of a server what KeyContext says.
ANY_HOST = "src/commands/native/"
SERVER_ONLY = {"commands/context.h", "commands/parts.h", "commands/session.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]*)"|<([^>]*)>)')
# Written in pieces so that this file does not name what it forbids.
MACHINE_PATH = re.compile(
    r"(?<![\w./:-])/(?:" + "|".join(["wo" + "rk", "ro" + "ot", r"ho" + r"me/\w+", r"Us" + r"ers/\w+"]) + r")/"
)
OUTSIDE = "../" + "shared"
# Bytes collected by fuzzers are data, not text of ours.
NOT_TEXT = ("fuzz/corpus/",)


def project_files(root):
    """Files git knows or would add; outside a repository every file but those under build/."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"],
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        names = [n.decode() for n in listed.stdout.split(b"\0") if n]
    else:
        names = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]
        names = [n for n in names if not n.startswith(("build/", ".git/"))]
    return sorted(n for n in set(names) if (root / n).is_file())


def check_include_line(root, name, number, line):
    """The complaint about one line of a file in src/, or None."""
    match = INCLUDE.match(line)
    if not match:
        return None
    quoted, angled = match.groups()
    where = f"{name}:{number}"
    room = name.split("/")[1]
    if angled is not None:
        if angled.split("/")[0] in ROOMS and (root / "src" / angled).is_file():
            return f'{where}: our own header is included as "{angled}", not <{angled}>'
        return None
    target = quoted.split("/")[0]
    if "/" not in quoted or target not in ROOMS:
        return f'{where}: "{quoted}" is not of the form "room/file.h"'
    if target not in MAY_INCLUDE[room]:
        return f"{where}: {room} may not include {target} ({quoted})"
    if (
        target == "types"
        and room not in ("types", "commands", "module", "library")
        and not name.startswith(NAMES_TYPES)
        and quoted.split("/")[-1] not in ABOUT_TYPES
    ):
        return f"{where}: {room} may not know a type by name ({quoted})"
    if name.startswith(ANY_HOST) and quoted in SERVER_ONLY:
        return f"{where}: native families take a KeyContext ({quoted})"
    if not (root / "src" / quoted).is_file():
        return f"{where}: {quoted} does not exist"
    return None


def check_header_opening(name, lines):
    """A header is: comment, then #pragma once before anything else."""
    if not lines or not lines[0].startswith(("//", "/*")):
        return f"{name}:1: a header opens with a comment that says what it is for"
    in_block = False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if in_block:
            in_block = "*/" not in text
        elif text.startswith("/*"):
            in_block = "*/" not in text
        elif text and not text.startswith("//"):
            if text == "#pragma once":
                return None
            return f"{name}:{number}: #pragma once stands before everything but the opening comment"
    return f"{name}:1: #pragma once is missing"


def check_source(root, name, lines):
    room = name.split("/")[1]
    if room not in ROOMS:
        return [f"{name}:1: src/{room} is no room of the house (see MAY_INCLUDE)"]
    found = [check_include_line(root, name, n, line) for n, line in enumerate(lines, 1)]
    return [complaint for complaint in found if complaint]


def check_stands_alone(name, lines):
    complaints = []
    for number, line in enumerate(lines, 1):
        if OUTSIDE in line:
            complaints.append(f"{name}:{number}: refers to a folder outside the project")
        if MACHINE_PATH.search(line):
            complaints.append(f"{name}:{number}: names a path of one machine")
    return complaints


def check_tree(root):
    root = pathlib.Path(root)
    complaints = []
    for name in project_files(root):
        if name.startswith(NOT_TEXT):
            continue
        data = (root / name).read_bytes()
        if b"\0" in data:
            continue
        lines = data.decode("utf-8", errors="replace").splitlines()
        complaints += check_stands_alone(name, lines)
        if name.startswith("src/") and name.endswith((".h", ".cc")) and name.count("/") >= 2:
            complaints += check_source(root, name, lines)
        if name.endswith(".h"):
            complaint = check_header_opening(name, lines)
            complaints += [complaint] if complaint else []
    return complaints


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    complaints = check_tree(root)
    for complaint in complaints:
        print(complaint)
    print(f"include check: {len(complaints)} complaints" if complaints else "include check: ok")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
