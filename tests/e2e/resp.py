"""A small, strict RESP2/RESP3 client for the outside test-suite.

Every reply type has its own Python type, and equality is strict about it, so that a test can tell a
simple string from a bulk string, `$-1` from `*-1` from `_`, and a set from an array. Errors are
values, never exceptions. Anything the protocol does not allow raises ProtocolError.

    bulk string      bytes            simple string    Status
    integer          int              error            Error (`-` and `!`)
    array            list             null             NIL (`$-1`), NIL_ARRAY (`*-1`), NULL (`_`)
    map              Map (pairs)      set, push        Set, Push
    double           Double (text)    big number       BigNumber (text)
    boolean          Boolean          verbatim string  Verbatim (format, text)

A Client is used by one thread at a time.
"""

import select
import socket
import time

DEFAULT_TIMEOUT = 20.0


class ProtocolError(Exception):
    """The server sent bytes that are no RESP."""


class ConnectionClosed(Exception):
    """The server closed the connection."""


class _Text(bytes):
    __slots__ = ()

    def __eq__(self, other):
        return type(self) is type(other) and bytes.__eq__(self, other)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((type(self).__name__, bytes(self)))

    def __repr__(self):
        return "%s(%s)" % (type(self).__name__, bytes.__repr__(self))


class Status(_Text):
    __slots__ = ()


class Error(_Text):
    __slots__ = ()

    @property
    def code(self):
        return bytes(self).split(b" ", 1)[0]


class Double(_Text):
    __slots__ = ()

    @property
    def value(self):
        return float(bytes(self))


class BigNumber(_Text):
    __slots__ = ()


class Verbatim(_Text):
    """`fmt` is the three-letter format, the bytes are the text without it."""

    def __new__(cls, data, fmt=b"txt"):
        self = super().__new__(cls, data)
        self.fmt = fmt
        return self

    def __eq__(self, other):
        return _Text.__eq__(self, other) and self.fmt == other.fmt

    __hash__ = _Text.__hash__


class _Items(list):
    __slots__ = ()

    def __eq__(self, other):
        return type(self) is type(other) and list.__eq__(self, other)

    def __ne__(self, other):
        return not self == other

    __hash__ = None

    def __repr__(self):
        return "%s(%s)" % (type(self).__name__, list.__repr__(self))


class Set(_Items):
    __slots__ = ()


class Push(_Items):
    __slots__ = ()


class Map(_Items):
    """A list of (key, value) pairs in the order of the wire."""

    __slots__ = ()

    def dict(self):
        return {bytes(k) if isinstance(k, bytes) else k: v for k, v in self}


class _Null:
    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name

    def __bool__(self):
        return False


NIL = _Null("NIL")
NIL_ARRAY = _Null("NIL_ARRAY")
NULL = _Null("NULL")


class Boolean:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, Boolean) and self.value == other.value

    def __hash__(self):
        return hash(("Boolean", self.value))

    def __repr__(self):
        return "Boolean(%s)" % self.value


class Attribute:
    """An attribute frame and the reply it belongs to."""

    __slots__ = ("attributes", "reply")

    def __init__(self, attributes, reply):
        self.attributes = attributes
        self.reply = reply

    def __eq__(self, other):
        return (
            isinstance(other, Attribute)
            and self.attributes == other.attributes
            and self.reply == other.reply
        )

    __hash__ = None

    def __repr__(self):
        return "Attribute(%r, %r)" % (self.attributes, self.reply)


OK = Status(b"OK")
QUEUED = Status(b"QUEUED")
PONG = Status(b"PONG")


def is_null(value):
    return isinstance(value, _Null)


def is_error(value, prefix=None):
    """True for an error reply, optionally one that begins with `prefix`."""
    if not isinstance(value, Error):
        return False
    if prefix is None:
        return True
    return bytes(value).startswith(prefix if isinstance(prefix, bytes) else prefix.encode())


def to_bytes(arg):
    if isinstance(arg, bytes):
        return arg
    if isinstance(arg, str):
        return arg.encode()
    if isinstance(arg, (int, float)):
        return str(arg).encode()
    return bytes(arg)


def encode(*args):
    """One command as an array of bulk strings."""
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        data = to_bytes(arg)
        parts.append(b"$%d\r\n" % len(data))
        parts.append(data)
        parts.append(b"\r\n")
    return b"".join(parts)


def show(value, limit=300):
    """A reply in one readable line, the same notation as in cases/*.txt."""
    text = _show(value)
    return text if len(text) <= limit else text[:limit] + "…(%d characters)" % len(text)


def _quote(data):
    out = ['"']
    for byte in data:
        char = chr(byte)
        if char in '"\\':
            out.append("\\" + char)
        elif 32 <= byte < 127:
            out.append(char)
        elif char in "\n\r\t":
            out.append({"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char])
        else:
            out.append("\\x%02x" % byte)
    out.append('"')
    return "".join(out)


def _show(value):
    if isinstance(value, (Status, Error)):
        text = bytes(value).decode("latin-1")
        if text.endswith(" "):
            text = text[:-1] + "\\x20"
        return ("+" if isinstance(value, Status) else "-") + text
    if isinstance(value, Double):
        return "," + bytes(value).decode("latin-1")
    if isinstance(value, BigNumber):
        return "(" + bytes(value).decode("latin-1")
    if isinstance(value, Verbatim):
        return "=" + value.fmt.decode() + ":" + _quote(value)
    if isinstance(value, bytes):
        return _quote(value)
    if isinstance(value, Boolean):
        return "#t" if value.value else "#f"
    if isinstance(value, int):
        return ":%d" % value
    if value is NIL:
        return "(nil)"
    if value is NIL_ARRAY:
        return "(nil array)"
    if value is NULL:
        return "(null)"
    if isinstance(value, Map):
        return "{" + ", ".join(_show(k) + " => " + _show(v) for k, v in value) + "}"
    if isinstance(value, Set):
        return "~[" + ", ".join(_show(v) for v in value) + "]"
    if isinstance(value, Push):
        return ">[" + ", ".join(_show(v) for v in value) + "]"
    if isinstance(value, list):
        return "[" + ", ".join(_show(v) for v in value) + "]"
    if isinstance(value, Attribute):
        return "|%s %s" % (_show(value.attributes), _show(value.reply))
    return repr(value)


class Client:
    """One connection. `address` is (host, port) or the path of a unix socket."""

    def __init__(self, address, timeout=DEFAULT_TIMEOUT, rcvbuf=None):
        if isinstance(address, str):
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        else:
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            self.sock = socket.socket(family, socket.SOCK_STREAM)
        if rcvbuf is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.settimeout(timeout)
        try:
            self.sock.connect(address)
        except OSError:
            self.sock.close()
            raise
        if not isinstance(address, str):
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pushes = []
        self._buf = bytearray()
        self._pos = 0

    # Sending.

    def raw(self, data):
        """Sends bytes as they are."""
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ConnectionClosed(str(error)) from None

    def send(self, *args):
        self.raw(encode(*args))

    # Receiving.

    def recv(self):
        """The next frame, pushes included."""
        self._compact()
        return self._frame()

    def recv_raw(self):
        """The next frame and the bytes it was made of."""
        self._compact()
        start = self._pos
        value = self._frame()
        return value, bytes(self._buf[start : self._pos])

    def reply(self):
        """The next frame that is no push; pushes on the way are kept in `self.pushes`."""
        while True:
            value = self.recv()
            if not isinstance(value, Push):
                return value
            self.pushes.append(value)

    def call(self, *args):
        self.send(*args)
        return self.reply()

    def pipeline(self, commands):
        """Sends all commands at once (reading meanwhile) and returns all replies."""
        data = b"".join(encode(*command) for command in commands)
        return self.exchange(data, len(commands))

    def exchange(self, data, count):
        """Sends raw bytes, reads `count` replies; never deadlocks on full socket buffers."""
        view = memoryview(data)
        timeout = self.sock.gettimeout()
        sent = 0
        while sent < len(view):
            readable, writable, _ = select.select([self.sock], [self.sock], [], timeout)
            if not readable and not writable:
                raise TimeoutError("the server neither reads nor writes")
            if readable:
                self._fill()
            if writable:
                try:
                    sent += self.sock.send(view[sent : sent + 262144], socket.MSG_DONTWAIT)
                except BlockingIOError:
                    pass
                except (BrokenPipeError, ConnectionResetError) as error:
                    raise ConnectionClosed(str(error)) from None
        return [self.reply() for _ in range(count)]

    def waiting(self, seconds):
        """True when something can be read, or the end is reached, within `seconds`."""
        if self._pos < len(self._buf):
            return True
        return bool(select.select([self.sock], [], [], seconds)[0])

    def read_to_end(self, limit=1 << 26):
        """All bytes until the server closes the connection."""
        try:
            while len(self._buf) - self._pos < limit:
                self._fill()
        except ConnectionClosed:
            pass
        data = bytes(self._buf[self._pos :])
        self._pos = len(self._buf)
        return data

    def read_bytes(self, count):
        self._compact()
        while len(self._buf) - self._pos < count:
            self._fill()
        data = bytes(self._buf[self._pos : self._pos + count])
        self._pos += count
        return data

    def closed_by_server(self, seconds):
        """Waits until the server closes; False when it has not within `seconds`."""
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.sock], [], [], left)[0]:
                return False
            try:
                self._fill()
            except ConnectionClosed:
                return True

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # The parser.

    def _compact(self):
        if self._pos:
            del self._buf[: self._pos]
            self._pos = 0

    def _fill(self):
        try:
            data = self.sock.recv(262144)
        except ConnectionResetError as error:
            raise ConnectionClosed(str(error)) from None
        if not data:
            raise ConnectionClosed("the server closed the connection")
        self._buf += data

    def _line(self):
        scan = self._pos
        while True:
            end = self._buf.find(b"\n", scan)
            if end >= 0:
                break
            scan = len(self._buf)
            self._fill()
        if end == self._pos or self._buf[end - 1] != 13:
            raise ProtocolError("a line without CRLF: %r" % bytes(self._buf[self._pos : end + 1]))
        line = bytes(self._buf[self._pos : end - 1])
        if b"\r" in line:
            raise ProtocolError("a line with a bare CR: %r" % line)
        self._pos = end + 1
        return line

    @staticmethod
    def _integer(text):
        digits = text[1:] if text[:1] == b"-" else text
        if not digits.isdigit() or (len(digits) > 1 and digits[:1] == b"0") or text == b"-0":
            raise ProtocolError("no integer: %r" % text)
        value = int(text)
        if not -(1 << 63) <= value < (1 << 63):
            raise ProtocolError("an integer beyond 64 bits: %r" % text)
        return value

    def _blob(self, text):
        length = self._integer(text)
        if length < 0:
            raise ProtocolError("a negative length: %r" % text)
        while len(self._buf) - self._pos < length + 2:
            self._fill()
        end = self._pos + length
        if self._buf[end : end + 2] != b"\r\n":
            raise ProtocolError("a bulk string does not end with CRLF")
        data = bytes(self._buf[self._pos : end])
        self._pos = end + 2
        return data

    def _count(self, text):
        count = self._integer(text)
        if count < 0:
            raise ProtocolError("a negative count: %r" % text)
        return count

    def _frame(self):
        line = self._line()
        kind, text = line[:1], line[1:]
        if kind == b"$":
            return NIL if text == b"-1" else self._blob(text)
        if kind == b":":
            return self._integer(text)
        if kind == b"+":
            return Status(text)
        if kind == b"-":
            return Error(text)
        if kind == b"*":
            if text == b"-1":
                return NIL_ARRAY
            return [self._frame() for _ in range(self._count(text))]
        if kind == b"%":
            return self._pairs(text)
        if kind == b"~":
            return Set(self._frame() for _ in range(self._count(text)))
        if kind == b">":
            return Push(self._frame() for _ in range(self._count(text)))
        return self._rare(kind, text)

    def _pairs(self, text):
        return Map((self._frame(), self._frame()) for _ in range(self._count(text)))

    def _rare(self, kind, text):
        if kind == b"_":
            if text:
                raise ProtocolError("a null with text: %r" % text)
            return NULL
        if kind == b"#":
            if text not in (b"t", b"f"):
                raise ProtocolError("no boolean: %r" % text)
            return Boolean(text == b"t")
        if kind == b",":
            try:
                float(text)
            except ValueError:
                raise ProtocolError("no double: %r" % text) from None
            return Double(text)
        if kind == b"(":
            if not (text[1:] if text[:1] in b"-+" else text).isdigit():
                raise ProtocolError("no big number: %r" % text)
            return BigNumber(text)
        if kind == b"!":
            return Error(self._blob(text))
        if kind == b"=":
            data = self._blob(text)
            if len(data) < 4 or data[3:4] != b":":
                raise ProtocolError("no verbatim string: %r" % data[:20])
            return Verbatim(data[4:], data[:3])
        if kind == b"|":
            return Attribute(self._pairs(text), self._frame())
        raise ProtocolError("unknown type %r in %r" % (kind, text[:60]))
