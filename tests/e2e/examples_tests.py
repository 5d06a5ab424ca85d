"""The examples that talk to a server: they run, and say what they promise."""

import os
import subprocess
import sys

from harness import check, eq, test

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")


def run_example(context, *words):
    """Runs examples/WORDS[0] with the server's port and the other words; returns what it printed."""
    done = subprocess.run(
        [sys.executable, os.path.join(EXAMPLES, words[0]), str(context.sut.port), *words[1:]],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=60, check=False)
    eq(done.returncode, 0, done.stdout)
    return done.stdout


@test(timeout=90)
def visits(context):
    """Document S3, table 1.6: for many visitors the bitmap is smaller, for few the set."""
    lines = run_example(context, "visits/visits.py", "100000").splitlines()
    many, few = ([int(word.replace(",", "")) for word in line.split()] for line in lines[1:])
    eq((many[0], few[0]), (40_000, 100), "visitors")
    check(many[1] > many[2], "for many visitors the bitmap is to be smaller: %r" % many)
    check(few[1] < few[2], "for few visitors the set is to be smaller: %r" % few)


@test(timeout=90)
def work_queue(context):
    """Document S3: messages wait for an absent receiver, wake one that waits, and are shared."""
    lines = run_example(context, "work_queue/work_queue.py", "500").splitlines()
    eq(lines, [
        "kept for the absent receiver: first, second, third",
        "then: None",
        "the receiver that waited: good morning",
        "500 messages, received once each: True, in order: True, left: 0",
    ])


@test()
def group_chat(context):
    """Document S3: three sorted sets; a message goes when everyone has read it."""
    lines = run_example(context, "group_chat/group_chat.py").splitlines()
    eq(lines, [
        "ana reads: {'rowing': ['ana: training at six', 'boris: I bring the oars']}",
        "boris reads: {'rowing': ['ana: training at six', 'boris: I bring the oars']}",
        "kept for ceca, who is away: 2",
        "dule reads: {'rowing': ['ana: dule is here too']}",
        "ceca reads: {'rowing': ['ana: training at six', 'boris: I bring the oars', "
        "'ana: dule is here too']}",
        "still kept: 1",
        "when everyone has read: 0",
        "kept for boris: 1",
        "when boris has left: 0",
        "keys left: 0",
    ])
