"""The same random command streams to stock Redis and to the server under test, replies compared.

A stream runs over two connections to each server, in RESP2 or RESP3. At its end the whole contents
of the databases are compared. When replies differ the stream is replayed and shortened, and the
shortest one found is printed; the run goes on with the next stream, so that one run lists several
deviations.
The seed is printed by run.py; the same --seed gives the same streams.
"""

import random
import time

import compare
import resp
from harness import SLOW, check, eq, test
from stream import DATABASES, KEYS, Stream

LENGTH = 1500
DEFAULT_SECONDS = 20.0
MAX_FINDINGS = 12
PAYLOAD_VALUES = [
    b"",
    b"1",
    b"-5",
    b"300",
    b"70000",
    b"9223372036854775807",
    b"hello",
    b"x" * 44,
    b"y" * 45,
    b"abc" * 100,
    b"z" * 20000,
    bytes(range(256)),
    b"1.5",
    b"007",
]


class Side:
    """Two connections to one server, with what is queued in each one's transaction."""

    def __init__(self, server, protocols):
        self.clients = [server.client(proto) for proto in protocols]

    def close(self):
        for client in self.clients:
            client.close()


class Mismatch(Exception):
    def __init__(self, index, text, signature):
        super().__init__(text)
        self.index = index
        self.text = text
        self.signature = signature


def make_payloads(stock):
    """DUMP payloads of various strings, written by the stock server."""
    client = stock.client()
    payloads = []
    for value in PAYLOAD_VALUES:
        client.call("SET", "payload", value)
        payloads.append(client.call("DUMP", "payload"))
    client.call("DEL", "payload")
    client.close()
    return payloads


def wire(item):
    if len(item) > 2 and item[2] == "inline":
        return b" ".join(item[1]) + b"\r\n"
    return resp.encode(*item[1])


def describe(item):
    words = [
        a.decode() if a.isalnum() and len(a) < 80 else resp.show(a, 80)
        for a in map(resp.to_bytes, item[1])
    ]
    kind = "(%s) " % item[2] if len(item) > 2 else ""
    return "%d> %s%s" % (item[0], kind, " ".join(words))


class Run:
    """Plays one stream on both servers; raises Mismatch at the first difference."""

    def __init__(self, stock, sut, protocols):
        self.servers = (stock, sut)
        self.protocols = protocols

    def play(self, items):
        for server in self.servers:
            eq(server.call("FLUSHALL"), resp.OK)
        sides = [Side(server, self.protocols) for server in self.servers]
        self.queues = [[], []]
        self.in_multi = [False, False]
        try:
            start = 0
            while start < len(items):
                if len(items[start]) > 2 and items[start][2] != "inline":
                    self._special(start, items[start], *sides)
                    start += 1
                    continue
                end = start + 1
                while (
                    end < len(items) and self._joins(items[start], items[end]) and end - start < 60
                ):
                    end += 1
                self._batch(start, items[start:end], *sides)
                start = end
            self._compare_contents(len(items), *sides)
        finally:
            for side in sides:
                side.close()

    @staticmethod
    def _joins(first, other):
        return first[0] == other[0] and (len(other) == 2 or other[2] == "inline")

    def _batch(self, start, batch, stock, sut):
        connection = batch[0][0]
        data = b"".join(wire(item) for item in batch)
        clients = (stock.clients[connection], sut.clients[connection])
        for client in clients:
            client.raw(data)
        for offset, item in enumerate(batch):
            try:
                expected, actual = [client.reply() for client in clients]
            except (resp.ConnectionClosed, resp.ProtocolError, TimeoutError) as error:
                text = "%s\n    %s: %s" % (describe(item), type(error).__name__, error)
                raise Mismatch(start + offset, text, (item[1][0].upper(), str(error))) from None
            if not self._matches(connection, item[1], expected, actual):
                raise self._mismatch(start + offset, item, expected, actual)

    def _matches(self, connection, args, expected, actual):
        name = args[0].upper()
        if name in (b"EXEC", b"DISCARD") and not resp.is_error(expected, "ERR"):
            queue, self.queues[connection] = self.queues[connection], []
            self.in_multi[connection] = False
            return compare.transaction_matches(queue, expected, actual)
        if name == b"MULTI" and expected == resp.OK:
            self.in_multi[connection] = True
        if expected == resp.QUEUED:
            self.queues[connection].append(args)
        return compare.replies_match(args, expected, actual)

    @staticmethod
    def _mismatch(index, item, expected, actual):
        text = "%s\n    stock %s\n    sut   %s" % (
            describe(item),
            resp.show(expected, 200),
            resp.show(actual, 200),
        )
        name = item[1][0].upper() if len(item) == 2 else item[2]
        return Mismatch(index, text, (name, kind_of(expected), kind_of(actual)))

    def _special(self, index, item, stock, sut):
        if self.in_multi[item[0]]:
            return
        clients = (stock.clients[item[0]], sut.clients[item[0]])
        if item[2] == "scan":
            replies = [full_scan(client, item[1]) for client in clients]
        elif item[2] == "randomkey":
            replies = [random_key_exists(client) for client in clients]
        else:
            replies = swap_payloads(clients, item[1][0])
        if replies[0] != replies[1]:
            raise self._mismatch(index, item, *replies)

    def _compare_contents(self, index, stock, sut):
        for database in range(DATABASES):
            commands = [[b"SELECT", b"%d" % database], [b"DBSIZE"], [b"KEYS", b"*"]]
            for key in KEYS:
                commands += [[b"GET", key], [b"PEXPIRETIME", key], [b"OBJECT", b"ENCODING", key]]
            replies = [side.clients[0].pipeline(commands) for side in (stock, sut)]
            for command, expected, actual in zip(commands, *replies):
                if not compare.replies_match(command, expected, actual):
                    raise self._mismatch(index, (0, command), expected, actual)


def kind_of(value):
    """What a reply is like, to tell findings apart."""
    return bytes(value)[:24] if isinstance(value, resp.Error) else type(value).__name__


def full_scan(client, options):
    found, cursor = set(), b"0"
    for _ in range(100000):
        reply = client.call("SCAN", cursor, *options)
        if not isinstance(reply, list) or len(reply) != 2:
            return [reply]
        cursor = reply[0]
        found.update(reply[1])
        if cursor == b"0":
            return sorted(found)
    return [b"the iteration does not end"]


def random_key_exists(client):
    key = client.call("RANDOMKEY")
    if resp.is_null(key) or not isinstance(key, bytes):
        return [key]
    return [b"a key that exists", client.call("EXISTS", key)]


def swap_payloads(clients, key):
    """Each server restores what the other one dumped; returns both outcomes."""
    dumps = [client.call("DUMP", key) for client in clients]
    if any(not isinstance(dump, bytes) or isinstance(dump, resp.Status) for dump in dumps):
        return dumps
    outcomes = []
    for client, dump in zip(clients, reversed(dumps)):
        outcome = [client.call("RESTORE", "swapped", "0", dump, "REPLACE")]
        outcome += [client.call("GET", "swapped"), client.call("OBJECT", "ENCODING", "swapped")]
        outcome.append(client.call("GET", key) == client.call("GET", "swapped"))
        client.call("DEL", "swapped")
        outcomes.append(outcome)
    return outcomes


def attempt(run, items):
    """The mismatch of a stream, or None."""
    try:
        run.play(items)
    except Mismatch as mismatch:
        return mismatch
    return None


def shorten(run, items, mismatch, seconds):
    """Leaves out what the same mismatch does not need; bounded in time."""
    deadline = time.monotonic() + seconds
    best, items = mismatch, items[: mismatch.index + 1]
    size = max(1, len(items) // 2)
    while size >= 1 and time.monotonic() < deadline:
        start = 0
        while start < len(items) and time.monotonic() < deadline:
            candidate = items[:start] + items[start + size :]
            found = attempt(run, candidate)
            if found is not None and found.signature == mismatch.signature:
                items, best = candidate[: found.index + 1], found
            else:
                start += size
        size //= 2
    return items, best


def random_streams(context, proto):
    seconds = context.options.seconds or DEFAULT_SECONDS
    if context.options.long:
        seconds *= 3
    payloads = make_payloads(context.stock)
    deadline = time.monotonic() + seconds
    seen, count = set(), 0
    while time.monotonic() < deadline and len(seen) < MAX_FINDINGS:
        rng = random.Random("%s:%d:%d" % (context.options.seed, proto, count))
        protocols = (proto, proto if rng.random() < 0.7 else 5 - proto)
        items = Stream(rng, payloads).make(LENGTH)
        run = Run(context.stock, context.sut, protocols)
        mismatch = attempt(run, items)
        count += 1
        if mismatch is None or mismatch.signature in seen:
            continue
        if sum(signature[0] == mismatch.signature[0] for signature in seen) >= 3:
            continue
        seen.add(mismatch.signature)
        shortest, last = shorten(run, items, mismatch, 6 * SLOW)
        steps = "\n      ".join(describe(item) for item in shortest[-20:])
        context.note("stream %d:\n      %s\n  differs at %s" % (count - 1, steps, last.text))
    context.say("%d streams of %d commands, seed %s" % (count, LENGTH, context.options.seed))
    check(count > 0, "no stream was played")


@test(timeout=200)
def random_streams_resp2(context):
    random_streams(context, 2)


@test(timeout=200)
def random_streams_resp3(context):
    random_streams(context, 3)
