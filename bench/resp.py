"""A small RESP client for benchmarks: one blocking connection, and a bulk writer for filling.

`Connection` packs commands, reads replies and pipelines; it is exact rather than fast. `stream_ok`
is the fast path: it pushes pre-built bytes of commands that all answer `+OK` over one or several
connections and checks the replies by their bytes, so that one Python thread can fill a server with
about a million keys a second. `fill_chunks` builds such bytes.

Nothing here is thread-safe: use one connection per thread.
"""

import select
import socket

OK_REPLY = b"+OK\r\n"
RECEIVE_BYTES = 1 << 18


class ReplyError(Exception):
    """An error reply of the server, raised by `Connection.command` and returned by `pipeline`."""


class ProtocolError(Exception):
    """The server closed the connection or sent bytes that are not RESP."""


def pack(*args):
    """One command as RESP bytes; arguments are bytes, str or int."""
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        if isinstance(arg, str):
            arg = arg.encode()
        elif isinstance(arg, int):
            arg = b"%d" % arg
        parts.append(b"$%d\r\n%s\r\n" % (len(arg), arg))
    return b"".join(parts)


class Connection:
    def __init__(self, port, host="127.0.0.1", timeout=60):
        self.sock = socket.create_connection((host, port), timeout=timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        self.position = 0

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data)

    def command(self, *args):
        self.send(pack(*args))
        reply = self.read()
        if isinstance(reply, ReplyError):
            raise reply
        return reply

    def pipeline(self, commands):
        """The replies of several commands sent in one write; errors stand in the list."""
        self.send(b"".join(pack(*command) for command in commands))
        return [self.read() for _ in commands]

    def read(self):
        """The next reply: bytes, int, None, list, dict, float, bool or a ReplyError value."""
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest
        if kind == b"$":
            length = int(rest)
            return None if length < 0 else self._exactly(length)
        if kind == b":":
            return int(rest)
        if kind == b"-":
            return ReplyError(rest.decode(errors="replace"))
        if kind in b"*~>":
            length = int(rest)
            return None if length < 0 else [self.read() for _ in range(length)]
        if kind == b"%":
            return {self._hashable(self.read()): self.read() for _ in range(int(rest))}
        if kind == b"_":
            return None
        if kind == b",":
            return float(rest)
        if kind == b"#":
            return rest == b"t"
        if kind == b"=":
            return self._exactly(int(rest))[4:]
        if kind == b"(":
            return int(rest)
        raise ProtocolError(f"not a RESP reply: {line[:80]!r}")

    @staticmethod
    def _hashable(key):
        return tuple(key) if isinstance(key, list) else key

    def _more(self):
        if self.position:
            del self.buffer[: self.position]
            self.position = 0
        data = self.sock.recv(RECEIVE_BYTES)
        if not data:
            raise ProtocolError("the server closed the connection")
        self.buffer += data

    def _line(self):
        while True:
            end = self.buffer.find(b"\r\n", self.position)
            if end >= 0:
                line = bytes(self.buffer[self.position : end])
                self.position = end + 2
                return line
            self._more()

    def _exactly(self, length):
        while len(self.buffer) - self.position < length + 2:
            self._more()
        data = bytes(self.buffer[self.position : self.position + length])
        self.position += length + 2
        return data


class _Lane:
    """What one connection of `stream_ok` still has to send and to receive."""

    __slots__ = ("sock", "out", "due")

    def __init__(self, sock):
        self.sock = sock
        self.out = memoryview(b"")
        self.due = 0

    def push(self):
        try:
            sent = self.sock.send(self.out)
        except BlockingIOError:
            return
        self.out = self.out[sent:]

    def pull(self):
        data = self.sock.recv(RECEIVE_BYTES)
        if not data:
            raise ProtocolError("the server closed the connection while it was being filled")
        if b"-" in data:
            raise ProtocolError(f"error while filling: {data[data.find(b'-'):][:120]!r}")
        self.due -= len(data)
        if self.due < 0:
            raise ProtocolError("more replies than commands while filling")


def stream_ok(connections, chunks, commands_per_chunk, depth=2):
    """Sends every chunk and waits for all replies, each of which must be `+OK`.

    Each chunk holds `commands_per_chunk` commands. A connection has at most `depth` chunks
    unanswered, so a server's buffers stay small and its keys are all there on return.
    """
    reply_bytes = commands_per_chunk * len(OK_REPLY)
    source = iter(chunks)
    lanes = {c.sock.fileno(): _Lane(c.sock) for c in connections}
    timeouts = [c.sock.gettimeout() for c in connections]
    exhausted = False

    def feed(lane):
        nonlocal exhausted
        while not exhausted and not lane.out and lane.due <= (depth - 1) * reply_bytes:
            chunk = next(source, None)
            if chunk is None:
                exhausted = True
                return
            lane.out = memoryview(chunk)
            lane.due += reply_bytes
            lane.push()

    poller = select.poll()
    try:
        for fd, lane in lanes.items():
            lane.sock.setblocking(False)
            feed(lane)
            poller.register(fd, select.POLLIN | (select.POLLOUT if lane.out else 0))
        while any(lane.due for lane in lanes.values()):
            ready = poller.poll(60_000)
            if not ready:
                raise ProtocolError("no reply for 60 s while filling")
            for fd, events in ready:
                lane = lanes[fd]
                if events & ~select.POLLOUT:
                    lane.pull()
                if lane.out:
                    lane.push()
                feed(lane)
                poller.modify(fd, select.POLLIN | (select.POLLOUT if lane.out else 0))
    finally:
        for connection, timeout in zip(connections, timeouts):
            connection.sock.settimeout(timeout)


def fill_chunks(start, stop, *, prefix=b"key:", value_bytes=32, ttl=False, fixed_value=None,
                per_chunk=10_000):
    """SET commands for the keys `prefix` + 12 digits of [start, stop), `per_chunk` in each chunk.

    Values are `value_bytes` long and contain the key's number unless `fixed_value` is given. With
    `ttl` each key gets a time to live between 20,000 and 80,000 seconds. `per_chunk` is a power of
    ten and divides both ends. A chunk is made from a template by replacing the leading digits,
    which costs well under a microsecond a key.
    """
    if start % per_chunk or stop % per_chunk:
        raise ValueError("both ends must be multiples of per_chunk")
    low_digits = len(str(per_chunk)) - 1
    high_digits = 12 - low_digits
    hole = b"@" * high_digits
    parts = []
    for low in range(per_chunk):
        digits = hole + b"%0*d" % (low_digits, low)
        value = fixed_value if fixed_value is not None else digits.ljust(value_bytes, b"v")
        command = [b"SET", prefix + digits, value]
        if ttl:
            command += [b"EX", b"%d" % (20_000 + low * 7919 % 60_000)]
        parts.append(pack(*command))
    template = b"".join(parts)
    for high in range(start // per_chunk, stop // per_chunk):
        yield template.replace(hole, b"%0*d" % (high_digits, high))


def fill(connection, start, stop, **options):
    """Fills one server through one connection; see `fill_chunks` for the options."""
    per_chunk = options.setdefault("per_chunk", 10_000)
    stream_ok([connection], fill_chunks(start, stop, **options), per_chunk)
