"""`appendfsync always` and threads: on few cores new connections share the first loop unless a number
of threads was asked for; with several loops their clients are served as ever.
"""

import os

import resp
from durability import durable
from harness import Skip, eq, parse_info, test, until

ALWAYS = ("--save", "", "--appendonly", "yes", "--appendfsync", "always")
THREADS = 3


def loop_clients(client):
    """The connections of each loop."""
    field = parse_info(client.call("INFO", "sava"))["Sava"]["loop_clients"]
    return [int(count) for count in field.split(",")]


@test(timeout=60)
def connections_share_a_loop_on_few_cores(context):
    context.sava_only("threads are Sava's")
    if not 1 < os.cpu_count() <= 4:
        raise Skip("two to four cores")
    server = durable(context, *ALWAYS, threads=0)
    first = context.client(server)
    clients = [context.client(server) for _ in range(5)]
    for client in clients:
        eq(client.call("INCR", "n"), clients.index(client) + 1)
    eq(sum(loop_clients(first)[1:]), 0, "connections of the other loops")
    eq(first.call("CONFIG", "SET", "appendfsync", "everysec"), resp.OK)
    more = [context.client(server) for _ in range(8)]
    for client in more:
        eq(client.call("PING"), resp.Status(b"PONG"))
    eq(sum(loop_clients(first)[1:]) > 0, True, "they spread without `always`")


@test(timeout=60)
def a_number_of_threads_is_kept(context):
    context.sava_only("threads are Sava's")
    server = durable(context, *ALWAYS, threads=THREADS)
    clients = [context.client(server) for _ in range(3 * THREADS)]
    for client in clients:
        eq(client.call("PING"), resp.Status(b"PONG"))
    counts = loop_clients(clients[0])
    eq(len(counts), THREADS)
    eq(min(counts) > 0, True, "each loop has connections: %r" % counts)


@test(timeout=90)
def clients_of_several_loops(context):
    context.sava_only("threads are Sava's")
    server = durable(context, *ALWAYS, threads=THREADS)
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
    eq(server.terminate(), 0)
    server.start()
    eq(server.call("GET", "all"), b"%d" % len(clients))
