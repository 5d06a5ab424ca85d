"""The ring by way of which `appendfsync always` syncs (docs/formats/aof.md): what a power failure would
take from the log's file comes back from it. A kill leaves all that was written, so the tests take
the end of the file away by themselves, down to what the ring says was not synced as a file.
"""

import os
import struct

import resp
from check_command_tests import read, run, write
from durability import contents, durable, increments, persistence, refused_start
from harness import check, eq, test, until

OPTIONS = (
    "--save", "", "--appendonly", "yes", "--appendfsync", "always",
    "--auto-aof-rewrite-percentage", "0",
)
BLOCK = 4096


def ring_path(server):
    return server.path("appendonlydir", "appendonly.aof.ring")


def with_ring(context, *options, **more):
    """A server whose syncs go by way of the ring."""
    context.sava_only("a file of Sava's")
    server = durable(context, *OPTIONS, *options, **more)
    await_ring(server)
    return server


def await_ring(server):
    """Writes until a sync goes by way of the ring: the file is there before it is in use."""
    before = int(persistence(server)["aof_ring_syncs"])

    def by_ring():
        eq(server.call("SET", "await", "x"), resp.OK)
        return int(persistence(server)["aof_ring_syncs"]) > before

    until(by_ring, 30, "a sync by way of the ring")


def ring_entries(path):
    """[(number, increment, offset, bytes)] by number; a torn one is not told from a whole one."""
    ring, found, at = read(path), [], BLOCK
    eq(ring[:8], b"SAVARNG1")
    while at < len(ring):
        magic, number, increment, offset, size = struct.unpack_from("<8sQQQI", ring, at)
        if magic != b"SAVARNG1":
            at += BLOCK
            continue
        found.append((number, increment, offset, ring[at + 56 : at + 56 + size]))
        at += (56 + size + BLOCK - 1) // BLOCK * BLOCK
    return sorted(found)


def end_of_ring(path):
    """(increment, offset, bytes): the entries that join, up to the last one."""
    *before, (number, increment, offset, data) = ring_entries(path)
    for entry in reversed(before):
        if entry[:2] != (number - 1, increment) or entry[2] + len(entry[3]) != offset:
            break
        number, _, offset, part = entry
        data = part + data
    return increment, offset, data


def fill(rng, server, count=300):
    """What was acknowledged, by key."""
    kept = {}
    with server.client() as client:
        for number in range(count):
            key, value = b"key:%d" % number, rng.randbytes(rng.randrange(2000))
            eq(client.call("SET", key, value), resp.OK)
            kept[key] = value
    return kept


def check_kept(server, kept):
    found = contents(server)
    for key, value in kept.items():
        eq(found.get((0, key), (None,))[0], value, key.decode())


def last_increment(server):
    return increments(server)[-1].path


def lose_the_end(rng, server, to):
    """The log's file as a power failure may leave it: cut at `to`, or zeros from there on."""
    path = last_increment(server)
    whole = read(path)
    lost = rng.choice((b"", bytes(len(whole) - to), bytes(700), whole[to : to + 5]))
    write(path, whole[:to] + lost)
    return whole


@test()
def it_comes_and_goes_with_the_server(context):
    server = with_ring(context)
    rng = context.rng("ring")
    eq(os.path.getsize(ring_path(server)), 16 << 20)
    # Somebody removes it: it is made again, and nothing is lost meanwhile.
    kept = fill(rng, server, 20)
    os.remove(ring_path(server))
    until(lambda: os.path.exists(ring_path(server)), 30, "another ring")
    await_ring(server)
    kept.update(fill(rng, server, 20))
    server.kill()
    lose_the_end(rng, server, end_of_ring(ring_path(server))[1])
    server.restart()
    check_kept(server, kept)
    await_ring(server)
    eq(server.terminate(), 0)
    check(not os.path.exists(ring_path(server)), "it is left behind by a clean end")
    server.restart()
    check_kept(server, kept)
    # Other policies have none.
    eq(server.call("CONFIG", "SET", "appendfsync", "everysec"), resp.OK)
    eq(server.terminate(), 0)
    check(not os.path.exists(ring_path(server)), "it is left behind")
    server.options = [word.replace("always", "everysec") for word in server.options]
    server.restart()
    eq(server.call("SET", "a", "1"), resp.OK)
    eq(persistence(server)["aof_ring_syncs"], "0")
    check(not os.path.exists(ring_path(server)), "a ring under everysec")


@test()
def what_a_power_failure_takes_comes_back(context):
    server = with_ring(context)
    rng = context.rng("ring")
    kept = {}
    for _ in range(4):
        kept.update(fill(rng, server))
        server.kill()
        increment, offset, data = end_of_ring(ring_path(server))
        files = {file.sequence: file for file in increments(server)}
        whole = read(files[increment].path)
        eq(whole[offset : offset + len(data)], data, "the ring's bytes stand in the file")
        cut = offset + rng.randrange(len(data))
        eq(files[increment].path, last_increment(server))
        lose_the_end(rng, server, cut)
        server.restart()
        check(b"restored from appendonly.aof.ring" in server.log(), "the log tells")
        eq(read(files[increment].path)[: offset + len(data)], whole[: offset + len(data)])
        check_kept(server, kept)
        await_ring(server)


@test()
def a_kill_needs_nothing_of_it(context):
    server = with_ring(context)
    rng = context.rng("ring")
    kept = fill(rng, server, 50)
    server.kill()
    check(os.path.exists(ring_path(server)), "a ring")
    os.remove(ring_path(server))
    server.restart()
    check_kept(server, kept)


@test()
def after_a_rewrite_it_follows_the_new_increment(context):
    server = with_ring(context)
    rng = context.rng("ring")
    fill(rng, server, 50)
    eq(server.call("BGREWRITEAOF"), resp.Status(b"Background append only file rewriting started"))
    until(lambda: persistence(server)["aof_rewrite_in_progress"] == "0", 30, "the rewrite")
    kept = fill(rng, server, 50)
    await_ring(server)
    kept.update(fill(rng, server, 10))
    server.kill()
    increment, offset, _ = end_of_ring(ring_path(server))
    eq(increment, increments(server)[-1].sequence)
    lose_the_end(rng, server, offset)
    server.restart()
    check_kept(server, kept)


@test()
def check_and_export_know_of_it(context):
    server = with_ring(context)
    rng = context.rng("ring")
    kept = fill(rng, server, 50)
    server.kill()
    binary, place = context.options.server, server.dir
    eq(run(binary, "check", place)[0], 0)
    _, offset, data = end_of_ring(ring_path(server))
    write(last_increment(server), read(last_increment(server))[:offset])
    code, _, err = run(binary, "check", place)
    eq(code, 1)
    check("lacks %d bytes that were synced" % len(data) in err, err)
    out = os.path.join(context.temp_dir(), "out.rdb")
    code, _, err = run(binary, "export", "--from", place, out)
    eq(code, 1, err)
    check("check --repair" in err, err)
    check(not os.path.exists(out), "something was exported")
    code, shown, err = run(binary, "check", "--repair", place)
    eq(code, 0, err)
    check("the log's ring has them: written" in shown, shown)
    check(not os.path.exists(ring_path(server)), "the ring is not needed any more")
    eq(run(binary, "check", place)[0], 0)
    eq(run(binary, "export", "--from", place, out)[0], 0)
    # Now a stock server has all of it, too.
    stock = durable(context, *OPTIONS, binary=context.options.stock, directory=place)
    check_kept(stock, kept)


@test()
def a_log_with_which_others_went_on_is_refused(context):
    server = with_ring(context)
    rng = context.rng("ring")
    fill(rng, server, 50)
    server.kill()
    _, offset, _ = end_of_ring(ring_path(server))
    path = last_increment(server)
    whole = read(path)
    other = b"*3\r\n$3\r\nSET\r\n$5\r\nother\r\n$1\r\n1\r\n"
    another = b"#SYNCED:0\r\n" + other * (offset // len(other) + 2)
    for damaged in (whole[:offset] + other, whole[: offset - 1], another):
        write(path, damaged)
        log = refused_start(server)
        check("To go on without them, remove " in log and "appendonly.aof.ring" in log, log)
        eq(read(path), damaged, "the file")
    write(path, whole[:offset] + other)
    os.remove(ring_path(server))
    server.restart()
    eq(server.call("GET", "other"), b"1")


@test()
def with_one_thread(context):
    """Where the loop syncs by itself."""
    server = with_ring(context, threads=1)
    rng = context.rng("ring")
    kept = fill(rng, server, 200)
    with server.client() as writer, server.client() as reader:
        writer.send("MULTI")
        writer.send("SET", "a", "1")
        writer.send("SET", "b", "1")
        writer.send("EXEC")
        for _ in range(3):
            writer.recv()
        eq(writer.recv(), [resp.OK, resp.OK])
        eq(reader.call("MGET", "a", "b"), [b"1", b"1"])
    server.kill()
    _, offset, _ = end_of_ring(ring_path(server))
    lose_the_end(rng, server, offset)
    server.restart()
    check_kept(server, {**kept, b"a": b"1", b"b": b"1"})


@test()
def a_refused_start_leaves_the_log_as_it_was(context):
    """The ring has what the increment lacks, but the base is damaged, or a later file is."""
    server = with_ring(context)
    rng = context.rng("ring")
    kept = fill(rng, server, 30)
    server.kill()
    _, offset, data = end_of_ring(ring_path(server))
    lose_the_end(rng, server, offset + rng.randrange(len(data)))
    directory = server.path("appendonlydir")
    [base] = [name for name in os.listdir(directory) if ".base." in name]
    base = os.path.join(directory, base)
    good = read(base)
    write(base, good[:-4] + b"XXXX")

    def files():
        return {name: read(os.path.join(directory, name)) for name in os.listdir(directory)}

    before = files()
    refused_start(server)
    eq(files() == before, True, "the log is as it was")
    write(base, good)
    # Behind it another increment, of which nothing says that it was synced, and which is no log.
    manifest = os.path.join(directory, "appendonly.aof.manifest")
    text = read(manifest)
    last = max(file.sequence for file in increments(server)) + 1
    name = "appendonly.aof.%d.incr.aof" % last
    write(os.path.join(directory, name), b"#SYNCED:0\r\n*1\r\n!nonsense\r\n")
    write(manifest, text + b"file %s seq %d type i\n" % (name.encode(), last))
    before = files()
    refused_start(server)
    eq(files() == before, True, "the log is as it was, with a later file that is damaged")
    write(manifest, text)
    os.remove(os.path.join(directory, name))
    server.restart()
    check(b"restored from appendonly.aof.ring" in server.log(), "the log tells")
    check_kept(server, kept)


@test()
def without_a_ring_the_log_is_plain(context):
    """aof-ring no: after a kill, whatever the power took, a stock server needs nothing but the files."""
    context.sava_only("a setting of Sava's")
    server = durable(context, *OPTIONS, "--aof-ring", "no")
    rng = context.rng("ring")
    eq(server.call("CONFIG", "GET", "aof-ring"), [b"aof-ring", b"no"])
    kept = fill(rng, server, 200)
    with server.client() as writer, server.client() as reader:
        writer.send("MULTI")
        writer.send("SET", "a", "1")
        writer.send("SET", "b", "1")
        writer.send("EXEC")
        for _ in range(3):
            writer.recv()
        eq(writer.recv(), [resp.OK, resp.OK])
        eq(reader.call("MGET", "a", "b"), [b"1", b"1"])
    eq(persistence(server)["aof_ring_syncs"], "0")
    check(not os.path.exists(ring_path(server)), "a ring")
    kept.update({b"a": b"1", b"b": b"1"})
    server.kill()
    server.restart()
    check_kept(server, kept)
    eq(server.call("SET", "c", "1"), resp.OK)
    check(not os.path.exists(ring_path(server)), "a ring after a kill")
    server.kill()
    stock = durable(context, *OPTIONS, binary=context.options.stock, directory=server.dir)
    check_kept(stock, {**kept, b"c": b"1"})


@test()
def the_setting_changes_while_the_server_runs(context):
    server = with_ring(context)
    rng = context.rng("ring")
    kept = fill(rng, server, 50)
    eq(server.call("CONFIG", "SET", "aof-ring", "no"), resp.OK)
    until(lambda: not os.path.exists(ring_path(server)), 30, "the ring goes")
    before = persistence(server)["aof_ring_syncs"]
    kept.update(fill(rng, server, 50))
    eq(persistence(server)["aof_ring_syncs"], before)
    server.kill()
    # The options of the start have it.
    server.restart()
    check_kept(server, kept)
    await_ring(server)
    eq(server.call("CONFIG", "SET", "aof-ring", "no"), resp.OK)
    until(lambda: not os.path.exists(ring_path(server)), 30, "the ring goes again")
    eq(server.call("CONFIG", "SET", "aof-ring", "yes"), resp.OK)
    await_ring(server)
    kept.update(fill(rng, server, 50))
    server.kill()
    increment, offset, _ = end_of_ring(ring_path(server))
    eq(increment, increments(server)[-1].sequence)
    lose_the_end(rng, server, offset)
    server.restart()
    check_kept(server, kept)
