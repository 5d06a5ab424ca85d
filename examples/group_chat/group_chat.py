#!/usr/bin/env python3
"""Group chats of document S3, kept in three kinds of sorted sets.

    chat:ID        members, each with the number of the last message it has received
    messages:ID    the messages, each with its number
    seen:USER      the chats a user belongs to, each with the number of the last message received

`group_chat.py PORT` plays a small story: members join and leave, read what they have not read yet,
also those who were away meanwhile, and a message is deleted as soon as everyone has read it. Each
step is one transaction, so it cannot be seen half done.
"""

import socket
import sys


class Connection:
    """Just enough RESP: strings, numbers, arrays, null."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.replies = self.socket.makefile("rb")

    def run(self, *words):
        encoded = [str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(encoded) + b"".join(
            b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded))
        return self.reply()

    def transaction(self, *commands):
        self.run("MULTI")
        for command in commands:
            self.run(*command)
        return self.run("EXEC")

    def reply(self):
        line = self.replies.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else self.replies.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return None if rest == b"-1" else [self.reply() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest.decode()


class Chats:
    def __init__(self, connection):
        self.db = connection

    def join(self, chat, user):
        """The user receives what is sent from now on."""
        last = self.db.run("GET", "last:" + chat) or 0
        self.db.transaction(
            ("ZADD", "chat:" + chat, last, user),
            ("ZADD", "seen:" + user, last, chat),
        )

    def send(self, chat, sender, text):
        number = self.db.run("INCR", "last:" + chat)
        self.db.run("ZADD", "messages:" + chat, number, "%d %s: %s" % (number, sender, text))
        return number

    def unread(self, user):
        """What the user has not received yet, by chat; from now on it is received."""
        found = {}
        chats = self.db.run("ZRANGE", "seen:" + user, 0, -1, "WITHSCORES")
        for chat, seen in zip(chats[::2], chats[1::2]):
            pairs = self.db.run(
                "ZRANGEBYSCORE", "messages:" + chat, "(" + seen, "+inf", "WITHSCORES")
            if not pairs:
                continue
            found[chat] = [text.split(" ", 1)[1] for text in pairs[::2]]
            self.db.transaction(
                ("ZADD", "chat:" + chat, pairs[-1], user),
                ("ZADD", "seen:" + user, pairs[-1], chat),
            )
            self.forget_read(chat)
        return found

    def leave(self, chat, user):
        self.db.transaction(
            ("ZREM", "chat:" + chat, user),
            ("ZREM", "seen:" + user, chat),
        )
        if self.db.run("ZCARD", "chat:" + chat) == 0:
            self.db.run("DEL", "messages:" + chat, "last:" + chat)
        else:
            self.forget_read(chat)

    def forget_read(self, chat):
        """Deletes the messages that every member has received."""
        slowest = self.db.run("ZRANGE", "chat:" + chat, 0, 0, "WITHSCORES")
        self.db.run("ZREMRANGEBYSCORE", "messages:" + chat, "-inf", slowest[1])

    def kept(self, chat):
        return self.db.run("ZCARD", "messages:" + chat)


def story(chats):
    for user in ("ana", "boris", "ceca"):
        chats.join("rowing", user)
    chats.send("rowing", "ana", "training at six")
    chats.send("rowing", "boris", "I bring the oars")
    print("ana reads:", chats.unread("ana"))
    print("boris reads:", chats.unread("boris"))
    print("kept for ceca, who is away:", chats.kept("rowing"))
    chats.join("rowing", "dule")
    chats.send("rowing", "ana", "dule is here too")
    print("dule reads:", chats.unread("dule"))
    print("ceca reads:", chats.unread("ceca"))
    print("still kept:", chats.kept("rowing"))
    chats.unread("ana")
    chats.unread("boris")
    print("when everyone has read:", chats.kept("rowing"))
    chats.send("rowing", "ceca", "see you")
    for user in ("ana", "ceca", "dule"):
        chats.unread(user)
    print("kept for boris:", chats.kept("rowing"))
    chats.leave("rowing", "boris")
    print("when boris has left:", chats.kept("rowing"))
    for user in ("ana", "ceca", "dule"):
        chats.leave("rowing", user)
    print("keys left:", chats.db.run(
        "EXISTS", "chat:rowing", "messages:rowing", "last:rowing", "seen:ana", "seen:boris"))


def main():
    connection = Connection(int(sys.argv[1]))
    connection.run("DEL", "chat:rowing", "messages:rowing", "last:rowing",
                   *("seen:" + user for user in ("ana", "boris", "ceca", "dule")))
    story(Chats(connection))


if __name__ == "__main__":
    main()
