"""maxmemory-clients: the clients that take most are closed, those that are spared stay."""

import resp
from harness import SLOW, check, eq, test, until

LIMIT = 2 << 20


def closed(client):
    return client.closed_by_server(10 * SLOW)


def send_until_closed(client, data):
    """Whether the server closes the connection while, or after, it is sent this."""
    try:
        client.raw(data)
    except (resp.ConnectionClosed, OSError):
        return True
    return closed(client)


@test()
def large_queries_are_closed(context):
    server = context.start("--maxmemory-clients", str(LIMIT))
    small, large = context.client(server), context.client(server)
    eq(small.call("PING"), resp.PONG)
    query = b"*2\r\n$3\r\nGET\r\n$100000000\r\n" + b"x" * (LIMIT * 2)
    check(send_until_closed(large, query), "the client with a large query")
    eq(small.call("PING"), resp.PONG)
    eq(server.info_field("evicted_clients"), "1")
    check(b"Evicting client: id=" in server.log(), "the log")


@test()
def large_answers_are_closed(context):
    server = context.start("--maxmemory-clients", str(LIMIT))
    context.client(server).call("SET", "k", "x" * 100000)
    slow = context.client(server, rcvbuf=4096)
    try:
        slow.raw(resp.encode("GET", "k") * 200)
    except resp.ConnectionClosed:
        pass
    until(lambda: server.info_field("evicted_clients") == "1", what="the slow client's end")


@test()
def queues_and_names_count(context):
    server = context.start("--maxmemory-clients", str(LIMIT))
    queuer = context.client(server)
    eq(queuer.call("MULTI"), resp.OK)
    fate = []
    for _ in range(40):
        try:
            queuer.call("SET", "k", "x" * 100000)
        except (resp.ConnectionClosed, OSError):
            fate.append("closed")
            break
    eq(fate, ["closed"], "a long queue")
    subscriber = context.client(server)
    fate = []
    for i in range(200):
        try:
            for k in range(500):
                subscriber.send("SUBSCRIBE", "%d-%d-%s" % (i, k, "x" * 100))
            for k in range(500):
                subscriber.recv()
        except (resp.ConnectionClosed, OSError):
            fate.append("closed")
            break
    eq(fate, ["closed"], "many subscriptions")


def closed_by(client, rounds):
    """Whether the server closes the connection during these rounds of (commands, replies)."""
    try:
        for commands, replies in rounds:
            client.raw(b"".join(resp.encode(*words) for words in commands))
            for _ in range(replies):
                client.recv()
    except (resp.ConnectionClosed, OSError):
        return True
    return False


@test()
def what_is_kept_counts_not_only_its_text(context):
    """Short commands in a queue, names that take the place of others, words of who is blocked."""
    server = context.start("--maxmemory-clients", str(LIMIT))
    queuer = context.client(server)
    eq(queuer.call("MULTI"), resp.OK)
    pings = [("PING",)] * 500
    check(closed_by(queuer, [(pings, 500)] * 100), "a long queue of short commands")
    subscriber = context.client(server)
    for i in range(100):
        subscriber.call("SUBSCRIBE", "s%d" % i)
    swaps = [
        ([("UNSUBSCRIBE", "s%d" % i), ("SUBSCRIBE", "%d-%s" % (i, "x" * 30000))], 2)
        for i in range(100)
    ]
    check(closed_by(subscriber, swaps), "long names instead of short ones")
    blocked = context.client(server)
    blocked.raw(resp.encode("BLPOP", *("%d-%s" % (i, "x" * 1000) for i in range(500)), "0"))
    until(lambda: server.info_field("blocked_clients") == "1", what="the client to be blocked")
    line = next(one for one in server.call("CLIENT", "LIST").split(b"\n") if b"cmd=blpop" in one)
    held = int(line.split(b" argv-mem=")[1].split()[0])
    check(held >= 500 * 1000, "the words of a blocked client: %d" % held)


@test()
def the_largest_goes_first_and_some_are_spared(context):
    server = context.start()
    spared, large, small = (context.client(server) for _ in range(3))
    eq(spared.call("CLIENT", "NO-EVICT", "ON"), resp.OK)
    for client, size in ((spared, 3 * LIMIT), (large, LIMIT), (small, LIMIT // 4)):
        # Nearly all of it comes: there is room for the whole from the beginning.
        client.raw(b"*2\r\n$3\r\nGET\r\n$%d\r\n" % (size + 1))
        client.raw(b"x" * size)
    lines = lambda: server.call("CLIENT", "LIST").count(b"\n")
    until(lambda: int(server.info_field("client_recent_max_input_buffer")) >= LIMIT)
    before = lines()
    eq(server.call("CONFIG", "SET", "maxmemory-clients", str(LIMIT)), resp.OK)
    check(closed(large), "the largest that may be closed")
    eq(lines(), before - 1, "only that one")
    eq(server.info_field("evicted_clients"), "1")
    eq(server.call("CONFIG", "SET", "maxmemory-clients", "0"), resp.OK)
    other = context.client(server)
    other.raw(b"*2\r\n$3\r\nGET\r\n$%d\r\n" % (8 * LIMIT))
    other.raw(b"x" * (2 * LIMIT))
    until(lambda: int(server.info_field("client_recent_max_input_buffer")) >= 2 * LIMIT)
    eq(server.info_field("evicted_clients"), "1", "without a limit")


@test()
def a_limit_counts_who_is_idle(context):
    """Nobody waits for the next time that memory is counted."""
    server = context.start()
    control, idle = context.client(server), context.client(server)
    idle.raw(b"*2\r\n$3\r\nGET\r\n$%d\r\n" % (3 * LIMIT) + b"x" * (2 * LIMIT))
    until(lambda: int(server.info_field("client_recent_max_input_buffer")) >= 2 * LIMIT)
    eq(control.call("DEBUG", "PAUSE-CRON", "1"), resp.OK)
    eq(control.call("CONFIG", "SET", "maxmemory-clients", str(LIMIT)), resp.OK)
    check(closed(idle), "the idle client")
    eq(server.info_field("evicted_clients"), "1")


@test()
def a_part_of_maxmemory(context):
    server = context.start("--maxmemory", "100mb", "--maxmemory-clients", "2%")
    large = context.client(server)
    query = b"*2\r\n$3\r\nGET\r\n$100000000\r\n" + b"x" * (4 << 20)
    check(send_until_closed(large, query), "the client with a large query")
    eq(server.call("CONFIG", "GET", "maxmemory-clients")[1], b"2%")


@test()
def strangers_have_small_buffers(context):
    """Who has not given the password may not have a query of more than a megabyte."""
    server = context.start("--requirepass", "secret")
    stranger = context.client(server)
    check(send_until_closed(stranger, b"x" * (3 << 20)), "a long line of a stranger")
    friend = context.client(server)
    eq(friend.call("AUTH", "secret"), resp.OK)
    eq(friend.call("SET", "k", "x" * (3 << 20)), resp.OK)
