"""Just enough RESP to talk to Sava: one command at a time over one connection."""

import socket


class Store:
    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.replies = self.sock.makefile("rb")

    def run(self, *words):
        encoded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.sock.sendall(
            b"*%d\r\n" % len(encoded)
            + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded)
        )
        return self.reply()

    def reply(self):
        line = self.replies.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest.decode()
        if kind == b"$":
            return None if rest == b"-1" else self.replies.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return None if rest == b"-1" else [self.reply() for _ in range(int(rest))]
        raise RuntimeError("the server answered %r" % line.decode())

    def map(self, *words):
        flat = self.run(*words)
        return dict(zip(flat[::2], flat[1::2]))
