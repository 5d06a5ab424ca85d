#!/usr/bin/env python3
"""Tests of check_includes.py: each rule once kept and once broken, in a small tree of its own."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import check_includes

HEADER = "// What it is for.\n#pragma once\n"


class CheckIncludesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def complaints(self):
        return check_includes.check_tree(self.root)

    def assert_one(self, *parts):
        complaints = self.complaints()
        self.assertEqual(len(complaints), 1, complaints)
        for part in parts:
            self.assertIn(part, complaints[0])

    def test_accepts_a_tree_that_keeps_the_rules(self):
        self.write("src/base/bytes.h", HEADER)
        self.write("src/types/value/object.h", HEADER + '#include "base/bytes.h"\n#include <vector>\n')
        self.write("src/keyspace/table.h", HEADER + '#include "types/value/object.h"\n')
        self.write("src/keyspace/table.cc", '// Table.\n#include "keyspace/table.h"\n')
        self.write("src/cli/main.cc", '#include "keyspace/table.h"\n')
        self.assertEqual(self.complaints(), [])

    def test_every_pair_of_rooms_follows_the_table(self):
        for target in check_includes.ROOMS:
            self.write(f"src/{target}/save.h", HEADER)
        for room in check_includes.ROOMS:
            for target in check_includes.ROOMS:
                self.write(f"src/{room}/probe.cc", f'#include "{target}/save.h"\n')
                allowed = target in check_includes.MAY_INCLUDE[room]
                self.assertEqual(self.complaints() == [], allowed, f"{room} -> {target}")
            (self.root / f"src/{room}/probe.cc").unlink()

    def test_types_are_known_by_name_to_types_and_commands_only(self):
        self.write("src/types/collections/hash.h", HEADER)
        for name in ("src/types/a.cc", "src/commands/a.cc", "src/cli/bloom_a.cc"):
            self.write(name, '#include "types/collections/hash.h"\n')
        self.assertEqual(self.complaints(), [])
        for room in ("keyspace", "storage", "engine", "server", "cli"):
            self.write(f"src/{room}/a.cc", '#include "types/collections/hash.h"\n')
            self.assert_one(f"{room} may not know a type by name")
            (self.root / f"src/{room}/a.cc").unlink()

    def test_lower_rooms_never_reach_up(self):
        may = check_includes.MAY_INCLUDE
        self.assertEqual(may["base"], {"base"})
        self.assertEqual(may["types"], {"base", "types"})
        self.assertEqual(may["protocol"], {"base", "protocol"})
        self.assertNotIn("engine", may["commands"])
        self.assertNotIn("keyspace", may["net"])
        self.assertNotIn("cli", may["server"])

    def test_refuses_an_include_of_a_higher_room(self):
        self.write("src/engine/engine.h", HEADER)
        self.write("src/types/text.cc", '// Text.\n\n#include "engine/engine.h"\n')
        self.assert_one("src/types/text.cc:3", "types may not include engine")

    def test_native_families_know_no_server(self):
        for name in ("context", "session", "key_context"):
            self.write(f"src/commands/{name}.h", HEADER)
        self.write("src/commands/redis/a.cc", '#include "commands/context.h"\n')
        self.write("src/commands/native/a.cc", '#include "commands/key_context.h"\n')
        self.assertEqual(self.complaints(), [])
        for header in ("context", "session"):
            self.write("src/commands/native/a.cc", f'#include "commands/{header}.h"\n')
            self.assert_one("native families take a KeyContext")

    def test_refuses_the_same_include_in_angle_brackets(self):
        self.write("src/engine/engine.h", HEADER)
        self.write("src/types/text.cc", "#include <engine/engine.h>\n")
        self.assert_one("src/types/text.cc:1", "engine/engine.h")

    def test_leaves_libraries_in_angle_brackets_alone(self):
        self.write("src/base/text.cc", "#include <net/if.h>\n#include <fmt/format.h>\n")
        self.assertEqual(self.complaints(), [])

    def test_refuses_a_relative_include(self):
        self.write("src/base/bytes.h", HEADER)
        self.write("src/base/bytes.cc", '#include "bytes.h"\n')
        self.assert_one("src/base/bytes.cc:1", "room/file.h")

    def test_refuses_a_header_that_does_not_exist(self):
        self.write("src/base/bytes.cc", '#include "base/gone.h"\n')
        self.assert_one("base/gone.h does not exist")

    def test_refuses_an_unknown_room(self):
        self.write("src/cellar/wine.cc", "// Wine.\n")
        self.assert_one("src/cellar", "no room")

    def test_refuses_a_header_without_opening_comment(self):
        self.write("src/base/bytes.h", "#pragma once\n")
        self.assert_one("src/base/bytes.h:1", "comment")

    def test_refuses_a_header_without_pragma_once(self):
        self.write("tests/unit/help.h", "// Help.\nint x();\n")
        self.assert_one("tests/unit/help.h:2", "#pragma once")

    def test_accepts_a_block_comment_before_pragma_once(self):
        self.write("src/base/bytes.h", "/* Bytes.\n   More. */\n\n// And more.\n#pragma once\n")
        self.assertEqual(self.complaints(), [])

    def test_refuses_what_lies_outside_the_project(self):
        self.write("docs/a.md", "see .." + "/shared/notes.md\n")
        self.assert_one("docs/a.md:1", "outside")

    def test_refuses_paths_of_one_machine(self):
        self.write("docs/a.md", "fine\nrun /ro" + "ot/bin/x or http://host/ro" + "ot/x\n")
        self.assert_one("docs/a.md:2", "machine")

    def test_accepts_such_words_inside_urls_and_names(self):
        self.write("docs/a.md", "http://host/ro" + "ot/x, a/wo" + "rk/b, /tmp/x, /usr/bin/env\n")
        self.assertEqual(self.complaints(), [])

    def test_does_not_read_fuzz_corpora_or_binaries(self):
        self.write("fuzz/corpus/x/1", "/ro" + "ot/x\n")
        self.write("docs/a.png", "\0 /ro" + "ot/x\n")
        self.assertEqual(self.complaints(), [])

    def test_the_program_reports_by_its_exit_code(self):
        program = [sys.executable, check_includes.__file__, str(self.root)]
        self.write("src/base/bytes.h", HEADER)
        self.assertEqual(subprocess.run(program, capture_output=True, check=False).returncode, 0)
        self.write("src/base/bytes.h", "int x;\n")
        self.assertEqual(subprocess.run(program, capture_output=True, check=False).returncode, 1)


if __name__ == "__main__":
    unittest.main()
