"""Files that are cut off or have wrong bytes: refused with a clear message, repaired when that is
asked for, or harmless; never a crash, never a guess, never a file that is worse afterwards.
"""

import os
import re
import shutil

import durability
import resp
from durability import contents, durable, increments, log_base, refused_start, run_tool
from harness import READY, Failure, check, eq, test, until

NO_SAVE = ("--save", "")
NO_LOG = ("--appendonly", "no")
LOG = ("--appendonly", "yes")


def cut(path, size):
    with open(path, "r+b") as file:
        file.truncate(size)


def flip(path, offset, bit):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ (1 << bit)]))


def write_log(context, name, count=120):
    """A log with `count` operations in its increment: (server, ledger's states by operation)."""
    rng = context.rng(name)
    server = durable(context, *NO_SAVE, *LOG)
    server.call("SET", "in the base", "1")
    durability.rewrite(server)
    ledger = durability.Ledger(0, context.is_sava, 0)
    log = []
    with server.client() as client:
        while len(log) < count:
            kinds = [ledger.counter, ledger.plain, ledger.timed, ledger.several, ledger.together]
            kinds += [ledger.removal, ledger.copying, ledger.renaming]
            kinds += [ledger.association] if context.is_sava else []
            operation = rng.choice(kinds)(rng)
            ledger.apply(operation)
            for reply in client.pipeline(operation):
                check(not resp.is_error(reply), resp.show(reply))
            log.append((0.0, operation))
    server.terminate()
    return server, log


def starts_in_a_known_state(context, server, log, what):
    """What it loads is the state after some prefix of the operations; how many."""
    server.restart()
    found = contents(server)
    eq(found.pop((0, b"in the base"), None), (b"1", -1), what + ": the base")
    start = durability.Ledger(0, context.is_sava, 0)
    _, kept = durability.recovered(start, log, found, 0, what)
    server.call("SET", "works", "1")
    eq(server.call("GET", "works"), b"1")
    server.kill()
    return kept


@test(timeout=60)
def logs_cut_anywhere(context):
    """aof-load-truncated yes: a whole prefix, transactions all or nothing; no: refused."""
    server, log = write_log(context, "cut")
    path = increments(server)[-1].path
    size = os.path.getsize(path)
    saved = context.temp_dir()
    shutil.copytree(server.dir, saved, dirs_exist_ok=True)
    rng = context.rng("offsets")
    times = 60 if context.options.long else 8
    kept = []
    for offset in sorted([0, size // 2, size - 1] + [rng.randrange(1, size) for _ in range(times)]):
        shutil.rmtree(server.dir)
        shutil.copytree(saved, server.dir)
        cut(path, offset)
        server.options[4:] = ["--aof-load-truncated", "yes"]
        kept.append(starts_in_a_known_state(context, server, log, "cut at %d" % offset))
    eq(kept, sorted(kept), "a longer file keeps more")
    check(kept[0] < kept[-1], "nothing was cut off")
    check(kept[len(kept) // 2] < len(log), "a record that was cut off is there")
    context.say("%d cuts" % len(kept))


@test()
def a_cut_log_is_refused_when_told_so(context):
    server, log = write_log(context, "refuse", 40)
    file = increments(server)[-1]
    cut(file.path, os.path.getsize(file.path) - 3)
    before = durability.digest_of_files(server.dir)
    server.options += ["--aof-load-truncated", "no"]
    output = refused_start(server)
    check(file.name in output, "the file is not named: " + output[-800:])
    eq(durability.digest_of_files(server.dir), before, "the files")
    if context.is_sava:
        check("offset" in output or "byte" in output, "no offset: " + output[-800:])


@test()
def a_cut_in_an_earlier_increment(context):
    """Only the last file may end early; a hole in the middle is corruption."""
    server, log = write_log(context, "earlier", 20)
    first = increments(server)[-1]
    server.restart()
    server.call("SET", "later", "1")
    server.terminate()
    later = increments(server)
    if later[-1].name == first.name:
        # The same file went on: name a second one by hand.
        second = first.path.replace(".%d.incr" % first.sequence, ".%d.incr" % (first.sequence + 1))
        with open(second, "wb") as file:
            file.write(resp.encode("SELECT", "0") + resp.encode("SET", "later", "2"))
        with open(server.path("appendonlydir", "appendonly.aof.manifest"), "a") as manifest:
            manifest.write(
                "file %s seq %d type i\n" % (os.path.basename(second), first.sequence + 1))
    cut(first.path, os.path.getsize(first.path) - 3)
    before = durability.digest_of_files(server.dir)
    output = refused_start(server)
    check(first.name in output, output[-800:])
    if context.is_sava:
        eq(durability.digest_of_files(server.dir), before, "the files")


@test(timeout=60)
def flipped_bits_in_the_log(context):
    """A wrong byte in an increment is refused, or is a value that nobody can tell from a right one;
    the base has a checksum and is always refused."""
    server, log = write_log(context, "flip", 60)
    saved = context.temp_dir()
    shutil.copytree(server.dir, saved, dirs_exist_ok=True)
    rng = context.rng("bits")
    increment, base = increments(server)[-1], log_base(server)
    outcomes = {"refused": 0, "started": 0}
    for number in range(60 if context.options.long else 12):
        file = base if number % 3 == 2 else increment
        shutil.rmtree(server.dir)
        shutil.copytree(saved, server.dir)
        offset = rng.randrange(os.path.getsize(file.path))
        flip(file.path, offset, rng.randrange(8))
        before = durability.digest_of_files(server.dir)
        what = "byte %d of %s" % (offset, file.name)
        server.spawn_unready()
        until(
            lambda: server.process.poll() is not None or READY in server.log(), 30, "an outcome")
        if server.process.poll() is None:
            check(file is increment, what + ": a wrong base was loaded")
            outcomes["started"] += 1
            check(isinstance(server.call("DBSIZE"), int), what + ": no answer")
            server.kill()
            continue
        output = server.log().decode("utf-8", "replace")
        eq(server.process.returncode, 1, "%s: exit code; %s" % (what, output[-800:]))
        check(file.name in output, "%s: the file is not named: %s" % (what, output[-800:]))
        eq(durability.digest_of_files(server.dir), before, what + ": the files")
        outcomes["refused"] += 1
    context.say("%(refused)d refused, %(started)d started" % outcomes)


def write_dump(context, name):
    server = durable(context, *NO_SAVE, *NO_LOG)
    ledger = durability.Ledger(0, context.is_sava, 0)
    rng = context.rng(name)
    with server.client() as client:
        for _ in range(300):
            client.pipeline(ledger.next(rng))
        client.call("DEL", *[key for key in durability.keys_of(client) if b"short" in key])
    eq(server.call("SAVE"), resp.OK)
    server.kill()
    return server


@test(timeout=60)
def damaged_dumps(context):
    """Cut or flipped anywhere: refused with the file's name, exit code 1, the file untouched."""
    server = write_dump(context, "dump")
    path = server.path("dump.rdb")
    with open(path, "rb") as file:
        whole = file.read()
    rng = context.rng("damage")
    for number in range(80 if context.options.long else 14):
        offset = rng.randrange(9, len(whole))
        damaged = bytearray(whole)
        if number % 3 == 0:
            del damaged[offset:]
        else:
            damaged[offset] ^= 1 << rng.randrange(8)
        with open(path, "wb") as file:
            file.write(damaged)
        what = "%s at %d of %d" % ("cut" if number % 3 == 0 else "flipped", offset, len(whole))
        try:
            output = refused_start(server)
        except Failure as failure:
            raise Failure(what + ": " + str(failure)) from None
        if context.is_sava:
            check("dump.rdb" in output, "%s: the file is not named: %s" % (what, output[-800:]))
        with open(path, "rb") as file:
            check(file.read() == damaged, what + ": the file was touched")
        if context.is_sava and number < 6:
            code, out = run_tool(context.options.server, "check", path)
            eq(code, 1, "%s: sava check; %s" % (what, out))
    for content in (b"", b"RED", b"REDIS0099" + whole[9:], os.urandom(500)):
        with open(path, "wb") as file:
            file.write(content)
        if content or context.is_sava:
            refused_start(server)
    with open(path, "wb") as file:
        file.write(whole)
    server.restart()


@test()
def damaged_manifests(context):
    """A manifest that makes no sense is refused, naming it; nothing is touched."""
    server, log = write_log(context, "manifest", 10)
    path = server.path("appendonlydir", "appendonly.aof.manifest")
    with open(path) as file:
        good = file.read()
    first = good.splitlines()[0]
    for bad in (
        "",
        "rubbish\n",
        good + "file nosuch.aof seq 99 type i\n",
        good + "file ../outside.aof seq 99 type i\n",
        good + first + "\n",
        good.replace("type b", "type q"),
        re.sub(r"seq \d+ type i", "seq x type i", good),
        good + "file a.aof seq 1\n",
    ):
        with open(path, "w") as file:
            file.write(bad)
        before = durability.digest_of_files(server.dir)
        output = refused_start(server)
        check("manifest" in output or "nosuch.aof" in output, "%r: %s" % (bad, output[-600:]))
        eq(durability.digest_of_files(server.dir), before, "the files with %r" % bad)
    with open(path, "w") as file:
        file.write(good)
    server.restart()
    eq(len(contents(server)) > 1, True)


# ---- sava check ----


def sava_check(context, *arguments):
    return run_tool(context.options.server, "check", *arguments)


@test()
def check_of_a_directory(context):
    context.sava_only()
    server, log = write_log(context, "check", 60)
    folder = server.path("appendonlydir")
    code, out = sava_check(context, folder)
    eq(code, 0, out)
    file = increments(server)[-1]
    cut(file.path, os.path.getsize(file.path) - 5)
    before = durability.digest_of_files(server.dir)
    code, out = sava_check(context, folder)
    eq(code, 1, out)
    check(file.name in out, out)
    eq(durability.digest_of_files(server.dir), before, "the files")


@test()
def repair_of_a_broken_tail(context):
    """--repair cuts the tail to the last whole record, after a copy; then `no` starts, too."""
    context.sava_only()
    server, log = write_log(context, "repair", 60)
    folder = server.path("appendonlydir")
    file = increments(server)[-1]
    rng = context.rng("tail")
    for number in range(4):
        size = os.path.getsize(file.path)
        if number % 2:
            with open(file.path, "ab") as tail:
                tail.write(b"*3\r\n$3\r\nSET\r\n$" if number == 1 else bytes(50))
        else:
            cut(file.path, size - rng.randrange(1, size // 4))
        with open(file.path, "rb") as broken:
            content = broken.read()
        code, out = sava_check(context, "--repair", folder)
        eq(code, 0, "repair %d: %s" % (number, out))
        with open(file.path, "rb") as repaired:
            kept = repaired.read()
        check(content.startswith(kept), "repair %d: something else than a cut" % number)
        check(len(kept) < len(content) or number % 2 == 0, "repair %d: nothing was cut" % number)
        copies = [
            data for data in durability.digest_of_files(folder).values() if data == content
        ]
        check(copies or kept == content, "repair %d: no copy of the file as it was" % number)
        eq(sava_check(context, folder)[0], 0, "after repair %d" % number)
    server.options += ["--aof-load-truncated", "no"]
    starts_in_a_known_state(context, server, log, "after repairs")
