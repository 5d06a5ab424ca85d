"""The examples that talk to a server: they run, and say what they promise."""

import importlib.util
import os
import subprocess
import sys
import threading

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


def load_group_chat():
    spec = importlib.util.spec_from_file_location(
        "group_chat", os.path.join(EXAMPLES, "group_chat", "group_chat.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def interrupted(module, port, at, other):
    """A Chats for which `other` runs before the command numbered `at` of its next step."""
    class Interrupted(module.Connection):
        count = 0

        def run(self, *words):
            self.count += 1
            if self.count == at + 1:
                other()
            return super().run(*words)

    return module.Chats(Interrupted(port))


def received(found):
    return [text.split(": ", 1)[1] for text in found.get("c", [])]


@test(timeout=90)
def group_chat_races(context):
    """Whatever others do in the middle of a step, a member receives every message once, in
    order; what everyone has received is deleted."""
    module = load_group_chat()
    port = context.sut.port

    def member(chats, user, seen):
        seen.extend(received(chats.unread(user)))

    for step in ("send", "unread", "join", "leave"):
        for at in range(12):
            db = module.Connection(port)
            db.run("FLUSHALL")
            chats, ana, boris = module.Chats(db), [], []
            for user in ("ana", "boris", "ceca"):
                chats.join("c", user)
            chats.send("c", "ana", "first")

            def other():
                chats.send("c", "ana", "other")
                member(chats, "ana", ana)
                member(chats, "boris", boris)

            racing = interrupted(module, port, at, other)
            if step == "send":
                racing.send("c", "ceca", "raced")
            elif step == "unread":
                member(racing, "ana", ana)
            elif step == "join":
                racing.join("c", "dule")
            else:
                racing.leave("c", "ceca")
            ran = racing.db.count > at
            for user, seen in (("ana", ana), ("boris", boris)):
                member(chats, user, seen)
            sent = ["first"] + (["other"] if ran else []) + (["raced"] if step == "send" else [])
            eq(sorted(ana), sorted(sent), "%s, interrupted at %d" % (step, at))
            eq(ana, boris, "%s, interrupted at %d" % (step, at))
            chats.unread("ceca")
            chats.unread("dule")
            eq(chats.kept("c"), 0, "%s, interrupted at %d" % (step, at))


@test(timeout=90)
def group_chat_many_at_once(context):
    module = load_group_chat()
    port = context.sut.port
    setup = module.Chats(module.Connection(port))
    readers = {"r%d" % i: [] for i in range(3)}
    for user in readers:
        setup.join("c", user)
    stop = threading.Event()

    def send(number):
        chats = module.Chats(module.Connection(port))
        for i in range(50):
            chats.send("c", "s", "%d-%d" % (number, i))

    def read(user):
        chats = module.Chats(module.Connection(port))
        while not stop.is_set():
            readers[user].extend(received(chats.unread(user)))

    senders = [threading.Thread(target=send, args=(i,)) for i in range(3)]
    takers = [threading.Thread(target=read, args=(user,)) for user in readers]
    for thread in senders + takers:
        thread.start()
    for thread in senders:
        thread.join(60)
    stop.set()
    for thread in takers:
        thread.join(60)
    for user, texts in readers.items():
        texts.extend(received(setup.unread(user)))
    expected = sorted("%d-%d" % (number, i) for number in range(3) for i in range(50))
    for user, texts in readers.items():
        eq(sorted(texts), expected, user)
        eq(texts, readers["r0"], user)
    eq(setup.kept("c"), 0)
