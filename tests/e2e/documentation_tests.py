"""The pages: what a reader pastes into redis-cli gives the answers that stand in docs/types; links lead somewhere."""

import glob
import os
import re
import shutil
import subprocess

from harness import Skip, check, eq, test

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PAIR = re.compile(r"```redis\n(.*?)```\n\n[^\n]*\n\n```reply\n(.*?)```\n", re.S)
BLOCK = re.compile(r"^```.*?^```", re.S | re.M)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ +(.*)$", re.M)


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


def pages():
    patterns = ("*.md", "*/README.md", "docs/**/*.md", "examples/**/*.md")
    return sorted({os.path.normpath(path) for pattern in patterns
                   for path in glob.glob(os.path.join(ROOT, pattern), recursive=True)})


def anchors(page):
    """The names that the headings of a page can be linked by."""
    with open(page, encoding="utf-8") as source:
        headings = HEADING.findall(BLOCK.sub("", source.read()))
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading.strip()).replace(" ", "-") for heading in plain}


@test()
def links_between_pages_lead_somewhere(_context):
    """Every file, picture and heading that a page points to is there."""
    broken = []
    found = 0
    for page in pages():
        with open(page, encoding="utf-8") as source:
            text = CODE.sub("", BLOCK.sub("", source.read()))
        for target, anchor in LINK.findall(text):
            if "://" in target or target.startswith("mailto:"):
                continue
            found += 1
            path = os.path.normpath(os.path.join(os.path.dirname(page), target)) if target else page
            if not os.path.exists(path) or (
                    anchor and path.endswith(".md") and anchor not in anchors(path)):
                broken.append("%s: %s#%s" % (os.path.relpath(page, ROOT), target, anchor))
    check(found > 300, "only %d links were found" % found)
    eq(broken, [], "links that lead nowhere")


SOURCE = re.compile(r"`((?:src|include|bench|apps|tests|examples|unit|e2e)/[^`\s:,]+)(?:: ([^`]+))?`")


@test()
def documents_name_files_and_tests_that_exist(_context):
    """What docs/documents points to as met or tested is in the tree, under that name."""
    missing = []
    found = 0
    for page in sorted(glob.glob(os.path.join(ROOT, "docs", "documents", "*.md"))):
        with open(page, encoding="utf-8") as source:
            text = source.read()
        for path, names in SOURCE.findall(text):
            found += 1
            below = "tests/" + path if path.startswith(("unit/", "e2e/")) else path
            files = glob.glob(os.path.join(ROOT, below))
            here = "%s: %s" % (os.path.basename(page), path)
            if not files:
                missing.append(here)
            elif names:
                with open(files[0], encoding="utf-8") as source:
                    code = source.read()
                words = [name.strip().rstrip("*.").split(".")[-1] for name in names.split(",")]
                missing += ["%s: %s" % (here, word) for word in words if word not in code]
    check(found > 100, "only %d files and tests were found" % found)
    eq(missing, [], "named on the pages, but not there")
