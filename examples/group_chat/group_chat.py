#!/usr/bin/env python3
"""Group chats of document S3, kept in three kinds of sorted sets.

    chat:ID        members, each with the number of the last message it has received
    messages:ID    the messages, each with its number
    seen:USER      the chats a user belongs to, each with the number of the last message received

`group_chat.py PORT` plays a small story: members join and leave, read what they have not read yet,
also those who were away meanwhile, and a message is deleted as soon as everyone has read it. Each
step is one transaction, so it cannot be seen half done, and many may talk at the same time.
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

    def step(self, keys, plan):
        """One transaction: `plan` reads the keys and returns (commands, answer). If somebody
        changes one of the keys before the commands run, none of them does, and it starts again."""
        while True:
            self.db.run("WATCH", *keys)
            commands, answer = plan()
            if not commands:
                self.db.run("UNWATCH")
                return answer
            self.db.run("MULTI")
            for command in commands:
                self.db.run(*command)
            if self.db.run("EXEC") is not None:
                return answer

    def join(self, chat, user):
        """The user receives what is sent from now on."""
        def plan():
            last = self.db.run("GET", "last:" + chat) or 0
            return [("ZADD", "chat:" + chat, last, user),
                    ("ZADD", "seen:" + user, last, chat)], None

        self.step(["last:" + chat], plan)

    def send(self, chat, sender, text):
        def plan():
            number = int(self.db.run("GET", "last:" + chat) or 0) + 1
            message = "%d %s: %s" % (number, sender, text)
            return [("SET", "last:" + chat, number),
                    ("ZADD", "messages:" + chat, number, message)], number

        return self.step(["last:" + chat], plan)

    def unread(self, user):
        """What the user has not received yet, by chat; from now on it is received."""
        found = {}
        for chat in self.db.run("ZRANGE", "seen:" + user, 0, -1):
            texts = self.receive(chat, user)
            if texts:
                found[chat] = texts
        return found

    def receive(self, chat, user):
        """Takes the chat's messages that are new to the user, and deletes those that every member
        has received by now."""
        def plan():
            seen = self.db.run("ZSCORE", "seen:" + user, chat)
            if seen is None:
                return [], []  # the user has left meanwhile
            pairs = self.db.run(
                "ZRANGEBYSCORE", "messages:" + chat, "(" + seen, "+inf", "WITHSCORES")
            if not pairs:
                return [], []
            last = pairs[-1]
            slowest = self.slowest_but(chat, user)
            read = last if slowest is None else min(last, slowest, key=int)
            return [("ZADD", "chat:" + chat, last, user),
                    ("ZADD", "seen:" + user, last, chat),
                    ("ZREMRANGEBYSCORE", "messages:" + chat, "-inf", read)], [
                        text.split(" ", 1)[1] for text in pairs[::2]]

        return self.step(["chat:" + chat, "messages:" + chat, "seen:" + user], plan)

    def leave(self, chat, user):
        """Deletes the messages that only this user had not received; the last one to leave takes
        the chat along."""
        def plan():
            slowest = self.slowest_but(chat, user)
            if slowest is None:
                rest = ("DEL", "messages:" + chat, "last:" + chat)
            else:
                rest = ("ZREMRANGEBYSCORE", "messages:" + chat, "-inf", slowest)
            return [("ZREM", "chat:" + chat, user), ("ZREM", "seen:" + user, chat), rest], None

        self.step(["chat:" + chat], plan)

    def slowest_but(self, chat, user):
        """How far the slowest of the other members has received; None without others."""
        pairs = self.db.run("ZRANGE", "chat:" + chat, 0, 1, "WITHSCORES")
        scores = [score for member, score in zip(pairs[::2], pairs[1::2]) if member != user]
        return scores[0] if scores else None

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
