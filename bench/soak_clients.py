"""The clients of the soak: what they send, and what the replies must be.

Each `Client` has a connection and keys of its own with an exact model of them; beside that it works
on keys shared by all: counters, accounts between which money moves, a cache with times to live that
is larger than maxmemory, a second database that is flushed now and then, and pub/sub. A batch is a
list of (command, check); a check takes the reply and returns whether it is sane.
"""

import random
import time

import resp

PRIVATE_KEYS = 60
NUMBER_KEYS = 20
VALUE_LIMIT = 4096
COUNTERS = 16
ACCOUNTS = 12
ACCOUNT_START = 1000
CACHE_KEYS = 100_000
CHANNEL = b"soak:news"

ADMIN = [
    ("INFO",), ("INFO", "everything"), ("CLIENT", "LIST"), ("CLIENT", "INFO"), ("DBSIZE",),
    ("CONFIG", "GET", "*"), ("COMMAND", "COUNT"), ("RANDOMKEY",), ("SLOWLOG", "GET", "5"),
    ("LATENCY", "LATEST"), ("MEMORY", "STATS"), ("TIME",), ("PUBSUB", "CHANNELS"), ("ROLE",),
    ("COMMAND", "DOCS", "set"), ("OBJECT", "HELP"), ("SCAN", "0", "COUNT", "100"),
]

GARBAGE = [
    b"*3\r\n$3\r\nSET\r\n$4\r\nhalf", b"*-7\r\n", b"*1\r\n$-9\r\n", b"*1000000000\r\n",
    b"\x00\xff\r\n",
    b"*2\r\n$3\r\nGET\r\n:1\r\n", b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", b"PING\r\nPING\r\n",
    b"*1\r\n$99999999999\r\n", b"$5\r\nhello\r\n", b"SET 'unbalanced\r\n",
    resp.pack("INFO", "everything") * 50, resp.pack("GET", "cache:1")[:-3],
]


class Insane(Exception):
    """A reply that no correct server gives."""


def equals(expected):
    return lambda reply: type(reply) is type(expected) and reply == expected


def no_error(reply):
    return not isinstance(reply, resp.ReplyError)


def is_integer(reply):
    return isinstance(reply, int)


def one_of(*allowed):
    return lambda reply: reply in allowed


def conserved(reply):
    return isinstance(reply, list) and sum(map(int, reply)) == ACCOUNTS * ACCOUNT_START


class Client:
    def __init__(self, port, number, seed):
        self.port = port
        self.number = number
        self.rng = random.Random(seed * 100_003 + number)
        self.connection = resp.Connection(port)
        self.model = {}
        self.numbers = {}
        self.added = [0] * COUNTERS
        self.published = 0
        self.commands = 0

    # ---- batches -----------------------------------------------------------------------------

    def batch(self):
        kinds = (self.private_batch, self.number_batch, self.cache_batch, self.counter_batch,
                 self.transfer_batch, self.second_database_batch, self.admin_batch,
                 self.publish_batch)
        weights = (30, 15, 35, 10, 6, 2, 1, 1)
        return self.rng.choices(kinds, weights)[0]()

    def private_key(self):
        return b"own:%d:%d" % (self.number, self.rng.randrange(PRIVATE_KEYS))

    def private_batch(self):
        return [self.private_command() for _ in range(self.rng.choice((1, 4, 16, 64)))]

    def private_command(self):
        """One command on a string of the client's own; the model is changed as it is built."""
        rng, model, key = self.rng, self.model, self.private_key()
        old = model.get(key)
        value = rng.randbytes(rng.choice((0, 3, 20, 44, 45, 300)))
        action = rng.randrange(14)
        if action < 3:
            model[key] = value
            return ("SET", key, value), equals(b"OK")
        if action < 6:
            return ("GET", key), equals(old)
        if action == 6:
            if old and len(old) > VALUE_LIMIT:
                model.pop(key)
                return ("UNLINK", key), equals(1)
            model[key] = (old or b"") + value
            return ("APPEND", key, value), equals(len(model[key]))
        if action == 7:
            model.pop(key, None)
            return ("DEL", key), equals(0 if old is None else 1)
        if action == 8:
            return ("STRLEN", key), equals(len(old or b""))
        if action == 9:
            start, size = rng.randrange(50), rng.randrange(1, 50)
            return (("GETRANGE", key, start, start + size - 1),
                    equals((old or b"")[start : start + size]))
        if action == 10:
            return self.setrange_command(key, old, value)
        if action == 11:
            return self.setbit_command(key, old)
        if action == 12:
            model[key] = value
            return ("SET", key, value, "GET"), equals(old)
        other = self.private_key()
        return ("MGET", key, other), equals([old, model.get(other)])

    def setrange_command(self, key, old, value):
        offset = self.rng.randrange(200)
        if value:
            padded = (old or b"").ljust(offset, b"\0")
            self.model[key] = padded[:offset] + value + padded[offset + len(value) :]
        length = len(self.model.get(key, b""))
        return ("SETRANGE", key, offset, value), equals(length)

    def setbit_command(self, key, old):
        bit, on = self.rng.randrange(1600), self.rng.randrange(2)
        data = bytearray((old or b"").ljust(bit // 8 + 1, b"\0"))
        mask = 128 >> bit % 8
        before = 1 if data[bit // 8] & mask else 0
        data[bit // 8] = data[bit // 8] | mask if on else data[bit // 8] & ~mask
        self.model[key] = bytes(data)
        return ("SETBIT", key, bit, on), equals(before)

    def number_batch(self):
        batch = []
        for _ in range(self.rng.choice((1, 16, 50))):
            key = b"num:%d:%d" % (self.number, self.rng.randrange(NUMBER_KEYS))
            step = self.rng.randrange(-1000, 1000)
            self.numbers[key] = self.numbers.get(key, 0) + step
            batch.append((("INCRBY", key, step), equals(self.numbers[key])))
        return batch

    def cache_batch(self):
        batch = []
        for _ in range(self.rng.choice((1, 8, 32))):
            number = int(self.rng.random() ** 2 * CACHE_KEYS)
            key, mark = b"cache:%d" % number, b"<%d>" % number
            if self.rng.random() < 0.4:
                size = 500_000 if self.rng.random() < 0.0005 else self.rng.randrange(8, 4000)
                value = mark.ljust(size, b".")
                batch.append((("SET", key, value, "PX", self.rng.randrange(500, 120_000)),
                              equals(b"OK")))
            elif self.rng.random() < 0.05:
                batch.append((("PEXPIRE", key, self.rng.randrange(1, 60_000)), one_of(0, 1)))
            else:
                batch.append((("GET", key), lambda reply, mark=mark: reply is None
                              or isinstance(reply, bytes) and reply.startswith(mark)))
        return batch

    def counter_batch(self):
        batch = []
        for _ in range(self.rng.choice((1, 10, 40))):
            counter, step = self.rng.randrange(COUNTERS), self.rng.randrange(1, 10)
            self.added[counter] += step
            batch.append((("INCRBY", b"counter:%d" % counter, step), is_integer))
        return batch

    def transfer_batch(self):
        """Money moves between two accounts; everybody always sees the same total."""
        rng = self.rng
        if rng.random() < 0.3:
            return [(("MGET", *account_keys()), conserved)]
        source, target = rng.sample(account_keys(), 2)
        amount = rng.randrange(1, 100)
        queued = equals(b"QUEUED")
        return [
            (("WATCH", source), equals(b"OK")),
            (("MULTI",), equals(b"OK")),
            (("DECRBY", source, amount), queued),
            (("INCRBY", target, amount), queued),
            (("EXEC",), lambda reply: reply is None or isinstance(reply, list)
             and len(reply) == 2 and all(map(is_integer, reply))),
        ]

    def second_database_batch(self):
        batch = [(("SELECT", 1), equals(b"OK"))]
        for _ in range(50):
            key = b"temp:%d" % self.rng.randrange(5000)
            batch.append((("SET", key, self.rng.randbytes(100), "EX", 30), equals(b"OK")))
        if self.rng.random() < 0.2:
            batch.append((("FLUSHDB", self.rng.choice(("ASYNC", "SYNC"))), equals(b"OK")))
        return batch + [(("SELECT", 0), equals(b"OK"))]

    def admin_batch(self):
        return [(self.rng.choice(ADMIN), no_error)]

    def publish_batch(self):
        self.published += 1
        return [(("PUBLISH", CHANNEL, b"%d %d" % (self.number, self.published)), is_integer)]

    # ---- sending and checking ----------------------------------------------------------------

    def send(self, batch):
        self.connection.send(b"".join(resp.pack(*command) for command, _ in batch))

    def receive(self, batch):
        for command, check in batch:
            reply = self.connection.read()
            self.commands += 1
            if not check(reply):
                words = b" ".join(x if isinstance(x, bytes) else str(x).encode() for x in command)
                raise Insane(f"client {self.number}: {words[:120]!r} answered {reply!r:.200}")

    def reconnect(self):
        self.connection.close()
        self.connection = resp.Connection(self.port)

    def verify(self):
        """Every key of the client's own must hold what the model says."""
        for start in range(PRIVATE_KEYS):
            key = b"own:%d:%d" % (self.number, start)
            reply = self.connection.command("GET", key)
            if reply != self.model.get(key):
                raise Insane(f"client {self.number}: {key!r} is not what was written last")
        for key, number in self.numbers.items():
            if self.connection.command("GET", key) != b"%d" % number:
                raise Insane(f"client {self.number}: {key!r} is not {number}")


def account_keys():
    return [b"account:%d" % number for number in range(ACCOUNTS)]


def disturb(port, rng):
    """A client that misbehaves: sends garbage or half a frame and goes away without reading."""
    try:
        with resp.Connection(port, timeout=10) as connection:
            connection.send(rng.choice(GARBAGE))
    except OSError:
        pass


def work(port, numbers, seed, deadline, results):
    """The body of one load process: drives several clients at once until the deadline.

    `deadline` is a time of the monotonic clock. Puts ("failed", text) or ("done", tallies) on
    `results`.
    """
    rng = random.Random(seed)
    try:
        clients = [Client(port, number, seed) for number in numbers]
        while time.monotonic() < deadline:
            chosen = [(c, c.batch()) for c in rng.sample(clients, min(8, len(clients)))]
            for client, batch in chosen:
                client.send(batch)
            for client, batch in chosen:
                client.receive(batch)
            if rng.random() < 0.01:
                disturb(port, rng)
            if rng.random() < 0.01:
                rng.choice(clients).reconnect()
        for client in clients:
            client.verify()
            client.connection.close()
        results.put(("done", {
            "commands": sum(c.commands for c in clients),
            "added": [sum(c.added[i] for c in clients) for i in range(COUNTERS)],
            "published": {c.number: c.published for c in clients}}))
    except Exception as error:  # whatever went wrong, the parent must hear of it
        results.put(("failed", f"{type(error).__name__}: {error}"))
