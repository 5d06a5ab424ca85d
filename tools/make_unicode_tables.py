#!/usr/bin/env python3
"""Writes src/base/unicode_tables.h: which code points belong to words, and their lower case.

    python3 tools/make_unicode_tables.py > src/base/unicode_tables.h

The version of Unicode is that of the Python that runs this; it is named in the file, because
fingerprints of texts depend on it (docs/types/sketches/simhash.md).
"""

import sys
import unicodedata

LAST = 0x110000


def word_ranges():
    """Ranges of letters, marks and numbers."""
    ranges = []
    for point in range(LAST):
        if unicodedata.category(chr(point))[0] not in "LMN":
            continue
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    return ranges


def lower(point):
    """The simple mapping: one code point to one."""
    text = chr(point).lower()
    return ord(text[0]) if len(text) == 1 or point == 0x130 else point


def lower_ranges():
    """[first, last, step, distance]: runs of code points whose lower case is as far away."""
    ranges = []
    for point in range(LAST):
        distance = lower(point) - point
        if distance == 0:
            continue
        if ranges:
            first, last, step, far = ranges[-1]
            gap = point - last
            if far == distance and gap <= 2 and (first == last or gap == step):
                ranges[-1] = [first, point, gap, far]
                continue
        ranges.append([point, point, 1, distance])
    return ranges


def rows(items, per_line):
    for i in range(0, len(items), per_line):
        yield "    " + " ".join(items[i : i + per_line])


def main():
    words = ["{0x%x, 0x%x}," % tuple(r) for r in word_ranges()]
    lowers = ["{0x%x, 0x%x, %d, %d}," % tuple(r) for r in lower_ranges()]
    out = sys.stdout.write
    out("// Written by tools/make_unicode_tables.py from Unicode %s; not to be edited.\n"
        % unicodedata.unidata_version)
    out("#pragma once\n\n#include <cstdint>\n\n// clang-format off\n")
    out("namespace sava::base::unicode_tables {\n\n")
    out("struct Range {\n  uint32_t first;\n  uint32_t last;\n};\n\n")
    out("// Letters, marks and numbers.\n")
    out("inline constexpr Range kWord[] = {\n%s\n};\n\n" % "\n".join(rows(words, 4)))
    out("struct LowerRange {\n  uint32_t first;\n  uint32_t last;\n  uint32_t step;\n"
        "  int32_t distance;\n};\n\n")
    out("// Every step-th code point of a range has its lower case `distance` further on.\n")
    out("inline constexpr LowerRange kLower[] = {\n%s\n};\n\n" % "\n".join(rows(lowers, 3)))
    out("}  // namespace sava::base::unicode_tables\n// clang-format on\n")


if __name__ == "__main__":
    main()
