"""With `appendfsync always` the first loop's thread runs the other loops, too, as long as it keeps up
(docs/adr/0010-one-thread-for-writers-that-wait.md): clients of all loops are served as ever, and the
threads go back to work when there is much to do, or answers do not wait for the disk any more.
"""

import resp
from durability import durable
from harness import SLOW, eq, parse_info, run_workers, test, until

ALWAYS = ("--save", "", "--appendonly", "yes", "--appendfsync", "always")
THREADS = 3


def at_work(client):
    """Of a server, or by way of one connection."""
    return int(parse_info(client.call("INFO", "sava"))["Sava"]["threads_at_work"])


def gathered(context):
    context.sava_only("threads are Sava's")
    server = durable(context, *ALWAYS, threads=THREADS)
    until(lambda: at_work(server) == 1, 30, "one thread runs all loops")
    return server


@test(timeout=90)
def one_thread_serves_the_clients_of_all_loops(context):
    server = gathered(context)
    clients = [context.client(server) for _ in range(2 * THREADS)]
    for number, client in enumerate(clients):
        eq(client.call("SET", "key:%d" % number, "x"), resp.OK)
        eq(client.call("INCR", "all"), number + 1)
    for client in clients:
        eq(client.call("GET", "all"), b"%d" % len(clients))
    # What one loop does for the clients of another.
    clients[0].send("BLPOP", "queue", "0")
    clients[1].send("SUBSCRIBE", "news")
    eq(clients[1].recv(), [b"subscribe", b"news", 1])
    until(lambda: server.info_field("blocked_clients") == "1", 15, "a client waits")
    eq(clients[2].call("RPUSH", "queue", "a"), 1)
    eq(clients[0].recv(), [b"queue", b"a"])
    eq(clients[3].call("PUBLISH", "news", "b"), 1)
    eq(clients[1].recv(), [b"message", b"news", b"b"])
    until(lambda: at_work(server) == 1, 60, "one thread still runs all loops, or again")


@test(timeout=90)
def threads_work_where_answers_do_not_wait_for_the_disk(context):
    server = gathered(context)
    client = context.client(server)
    for _ in range(2):
        eq(client.call("CONFIG", "SET", "appendfsync", "everysec"), resp.OK)
        until(lambda: at_work(server) == THREADS, 30, "all threads work")
        eq(client.call("SET", "key", "x"), resp.OK)
        eq(client.call("CONFIG", "SET", "appendfsync", "always"), resp.OK)
        until(lambda: at_work(server) == 1, 30, "one thread runs all loops")
        eq(client.call("SET", "key", "y"), resp.OK)
    eq(client.call("CONFIG", "SET", "appendonly", "no"), resp.OK)
    until(lambda: at_work(server) == THREADS, 30, "all threads work without a log")
    eq(server.terminate(), 0)


@test(timeout=120)
def a_thread_that_does_not_keep_up_gets_help(context):
    server = gathered(context)
    with context.client(server) as client:
        for begin in range(0, 20_000, 500):
            client.call("RPUSH", "list", *("%d" % n for n in range(begin, begin + 500)))

    def load():
        with server.client(timeout=60 * SLOW) as client:
            for _ in range(300):
                replies = client.pipeline([("LPOS", "list", "none"), ("INCR", "done")] * 20)
                eq(all(resp.is_null(reply) for reply in replies[::2]), True)
                if at_work(client) > 1:
                    return True
        return False

    seen = run_workers([load] * 6, 90)
    eq(any(seen), True, "threads went back to work")
    eq(int(server.call("GET", "done")) % 20, 0)
    until(lambda: at_work(server) == 1, 60, "one thread runs all loops again")


@test(timeout=60)
def a_server_ends_while_loops_are_guests(context):
    server = gathered(context)
    clients = [context.client(server) for _ in range(2 * THREADS)]
    for client in clients:
        eq(client.call("INCR", "n"), clients.index(client) + 1)
    eq(server.terminate(), 0)
    server.start()
    eq(server.call("GET", "n"), b"%d" % len(clients))
