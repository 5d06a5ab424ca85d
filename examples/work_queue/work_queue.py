#!/usr/bin/env python3
"""A work queue of document S3: RPUSH sends, BLPOP receives, first in, first out.

`work_queue.py PORT [MESSAGES]` shows three things. The receiver may be absent: what is sent
meanwhile waits in the list. The receiver may wait for the sender: it is woken by the next message.
And several receivers share the work: each message goes to exactly one of them, those that wait
longest first.
"""

import socket
import sys
import threading

QUEUE = "queue:mail"


class Connection:
    """Just enough RESP: one command at a time, replies of strings, integers, arrays and null."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.replies = self.sock.makefile("rb")

    def run(self, *words):
        encoded = [str(word).encode() for word in words]
        self.sock.sendall(b"*%d\r\n" % len(encoded) + b"".join(
            b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded))
        return self.reply()

    def reply(self):
        line = self.replies.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b":":
            return int(rest)
        if kind == b"$" and int(rest) >= 0:
            return self.replies.read(int(rest) + 2)[:-2].decode()
        if kind == b"*" and int(rest) >= 0:
            return [self.reply() for _ in range(int(rest))]
        if kind in (b"$", b"*"):
            return None
        raise RuntimeError(f"the server answered {line.decode()!r}")


def receive(connection, seconds):
    """The next message, or None when none came in time."""
    found = connection.run("BLPOP", QUEUE, seconds)
    return None if found is None else found[1]


def absent_receiver(port):
    sender = Connection(port)
    sender.run("DEL", QUEUE)
    for text in ("first", "second", "third"):
        sender.run("RPUSH", QUEUE, text)
    receiver = Connection(port)  # comes only now
    print("kept for the absent receiver:", ", ".join(receive(receiver, 1) for _ in range(3)))
    print("then:", receive(receiver, 0.01))


def waiting_receiver(port):
    got = []
    receiver = threading.Thread(target=lambda: got.append(receive(Connection(port), 60)))
    receiver.start()
    Connection(port).run("RPUSH", QUEUE, "good morning")
    receiver.join()
    print("the receiver that waited:", got[0])


def shared_work(port, messages):
    shares = [[] for _ in range(4)]

    def work(share):
        connection = Connection(port)
        while (text := receive(connection, 60)) != "the end":
            share.append(int(text))

    workers = [threading.Thread(target=work, args=(share,)) for share in shares]
    for worker in workers:
        worker.start()
    sender = Connection(port)
    for number in range(messages):
        sender.run("RPUSH", QUEUE, number)
    for _ in workers:
        sender.run("RPUSH", QUEUE, "the end")
    for worker in workers:
        worker.join()
    done = sorted(number for share in shares for number in share)
    ordered = all(share == sorted(share) for share in shares)
    print(f"{messages} messages, received once each: {done == list(range(messages))}, "
          f"in order: {ordered}, left: {sender.run('LLEN', QUEUE)}")


def main():
    port = int(sys.argv[1])
    absent_receiver(port)
    waiting_receiver(port)
    shared_work(port, int(sys.argv[2]) if len(sys.argv) > 2 else 1_000)


if __name__ == "__main__":
    main()
