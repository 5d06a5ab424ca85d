"""The comparison of document S0's chapter 7 in its small form: every party counts what it is sent,
answers in order, forgets, and has it all after a restart (bench/comparison.py checks this itself).
"""

import glob
import json
import os
import shutil
import subprocess
import sys

from harness import SLOW, check, eq, test

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SETS = ["20x20x5", "60x5x5", "3x100x5"]
# What its results have for every party and set.
FIGURES = ["insert_ms", "first_ms", "top_ms", "delete_ms", "memory", "disk", "start_s", "series"]


def service(context):
    return os.path.join(context.options.built, "sava_comparison_service")


def compare(context, *arguments, expect=0):
    """Runs it to its end; what it said."""
    done = subprocess.run(
        [sys.executable, os.path.join(ROOT, "bench", "comparison.py"), "--server",
         context.options.server, "--service", service(context), "--redis", context.options.stock,
         *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=300 * SLOW, check=False,
    )
    eq(done.returncode, expect, done.stdout[-2000:])
    return done.stdout


def parties(context):
    """Those that can be taken here, as --only wants them."""
    context.sava_only("Sava is what the others are compared with")
    context.no_sanitizer("what is measured says nothing")
    names = ["sava", "redis"]
    if not os.path.exists(service(context)):
        return names
    names += ["list", "sqlite"]
    if shutil.which("mariadbd") and shutil.which("mariadb-install-db"):
        names.append("mariadb")
    return names


def results(folder):
    found = {}
    for path in glob.glob(os.path.join(folder, "small", "*.json")):
        with open(path, encoding="utf-8") as file:
            one = json.load(file)
        found[one["set"], one["party"]] = one
    return found


@test(timeout=240)
def every_party_counts_the_same(context):
    folder = context.temp_dir()
    names = parties(context)
    out = compare(context, "--out", folder, "--only", ",".join(names))
    found = results(folder)
    taken = {party for _, party in found}
    eq({set_ for set_, _ in found}, set(SETS))
    eq(len(found), len(taken) * len(SETS))
    for name in names:
        check(any(party.startswith(name) for party in taken), name)
    for (set_, party), one in found.items():
        missing = [figure for figure in FIGURES if not one[figure] and figure != "memory"]
        eq(missing, [], f"{party} {set_}")
        eq(one["associations"], found[set_, "sava-http"]["associations"])
    with open(os.path.join(folder, "small", "report.md"), encoding="utf-8") as file:
        report = file.read()
    for words in ("tables 4 and 7", "table 8", "table 5", "tables 6 and 9", "insert-20x20x5.svg"):
        check(words in report, words)
    check("report.md" in out, out)
    with open(os.path.join(folder, "small", "insert-3x100x5.svg"), encoding="utf-8") as file:
        check(file.read().rstrip().endswith("</svg>"), "the chart")


@test()
def it_goes_on_where_it_was(context):
    parties(context)
    folder = context.temp_dir()
    only = ("--out", folder, "--only", "20x20x5,sava-resp,redis", "--inserts", "100")
    compare(context, *only)
    before = results(folder)
    eq(len(before), 2)
    eq([one["timed"] for one in before.values()], [100, 100], "the rest goes in in bulk")
    os.remove(os.path.join(folder, "small", "20x20x5-redis.json"))
    compare(context, *only, "--report")
    eq(len(results(folder)), 1, "--report measures nothing")
    with open(os.path.join(folder, "small", "report.md"), encoding="utf-8") as file:
        check("sava-resp" in file.read(), "--report")
    out = compare(context, *only)
    after = results(folder)
    eq(after["20x20x5", "sava-resp"], before["20x20x5", "sava-resp"])
    check("20x20x5 redis" in out and "20x20x5 sava-resp" not in out, out)
    compare(context, *only, "--fresh")
    check(results(folder)["20x20x5", "sava-resp"] != before["20x20x5", "sava-resp"], "--fresh")
    check("nothing is called" in compare(context, "--out", folder, "--only", "nobody", expect=2), "")
