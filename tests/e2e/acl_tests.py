"""ACL: users and their rules beside redis-server, every command with a user who may and one who may
not, files of users, what happens to connected clients, HTTP, renamed commands."""

import base64
import os

import resp
from harness import check, eq, run_workers, test, until
from http_tests import Http, serve

# What a stock 7.0.15 does otherwise than 7.2: it takes %R without ~, has other texts, does not show
# sanitize-payload, and writes the rules for commands anew from what they allow.


def fields(reply):
    return dict(zip(reply[::2], reply[1::2]))


def as_user(context, server, name, password="pw", proto=2):
    client = context.client(server, proto)
    eq(client.call("AUTH", name, password), resp.OK, "AUTH " + name)
    return client


def refused(reply, part=b""):
    return resp.is_error(reply, b"NOPERM") and part in bytes(reply)


def make(server, name, *rules):
    eq(server.call("ACL", "SETUSER", name, "reset", "on", ">pw", *rules), resp.OK, "%s %r" % (name, rules))


# ---- beside redis-server ----

COMMANDS = (
    "get set mget mset del exists append strlen getset getdel incr copy rename object object|encoding "
    "object|help hset hget hgetall hdel lpush lpop rpoplpush llen sadd smembers sinterstore sunion "
    "zadd zrange zunionstore zrangestore sort sort_ro georadius xadd xread xreadgroup publish "
    "subscribe psubscribe spublish ssubscribe config config|get config|set select keys scan flushall "
    "client client|list client|kill ping multi exec watch type ttl expire bitop pfmerge"
).split()
CATEGORIES = (
    "keyspace read write set sortedset list hash string bitmap hyperloglog geo stream pubsub admin "
    "fast slow blocking dangerous connection transaction scripting all"
).split()
CALLS = [
    line.split()
    for line in """
    GET {k}|SET {k} v|SET {k} v GET|MGET {k} {k}|MSET {k} a {k} b|DEL {k} {k}|EXISTS {k}|APPEND {k} x
    STRLEN {k}|GETSET {k} v|GETDEL {k}|COPY {k} {k}|RENAME {k} {k}|OBJECT ENCODING {k}|OBJECT HELP
    HSET {k} f v|HGETALL {k}|LPUSH {k} a|LPOP {k}|RPOPLPUSH {k} {k}|SINTERSTORE {k} {k} {k}
    SUNION {k} {k}|ZADD {k} 1 a|ZUNIONSTORE {k} 2 {k} {k}|ZRANGESTORE {k} {k} 0 1|SORT {k}
    SORT {k} STORE {k}|SORT {k} STORE {k} STORE {k}|SORT_RO {k}|SORT {k} LIMIT STORE {k}
    GEORADIUS {k} 0 0 1 m STORE {k}
    XADD {k} * f v|XREAD STREAMS {k} {k} 0 0|XREADGROUP GROUP g STREAMS STREAMS {k} >
    PUBLISH {c} m|SPUBLISH {c} m|SUBSCRIBE {c} {c}|PSUBSCRIBE {c}|SSUBSCRIBE {c}|UNSUBSCRIBE {c}
    CONFIG GET x|CONFIG SET x y|SELECT 0|SELECT 1|KEYS *|SCAN 0|CLIENT LIST|CLIENT KILL x|PING|MULTI
    WATCH {k} {k}|TYPE {k}|EXPIRE {k} 1|BITOP AND {k} {k} {k}|PFMERGE {k} {k}|BLPOP {k} {k} 0
    BLMPOP 0 2 {k} {k} LEFT|LMPOP 2 {k} {k} LEFT|ZINTERCARD 2 {k} {k}
    BITFIELD {k} GET u8 0|BITFIELD {k} SET u8 0 1|BITFIELD_RO {k} GET u8 0|LCS {k} {k}|AUTH x|HELLO
    """.replace("|", "\n").split("\n")
    if line.strip()
]
KEYS = ("a", "ab", "abc", "b", "k:1", "k:22", "x*y")
KEY_PATTERNS = ("*", "a", "a*", "k:*", "?b", "[ab]", "x\\*y", "*:*", "")
CHANNELS = ("news", "news.a", "n", "news.*")
CHANNEL_PATTERNS = ("*", "news", "news.*", "n?", "")


def random_rule(rng, inside=False):
    kind = rng.randrange(12 if inside else 18)
    sign = rng.choice("+-")
    if kind < 4:
        return sign + rng.choice(COMMANDS)
    if kind < 6:
        return sign + "@" + rng.choice(CATEGORIES)
    if kind < 8:
        return rng.choice(("~", "~", "%R~", "%W~", "%RW~", "%rw~", "%RR~", "%~")) + rng.choice(KEY_PATTERNS)
    if kind < 10:
        return "&" + rng.choice(CHANNEL_PATTERNS)
    if kind == 10:
        return rng.choice(("allkeys", "resetkeys", "allchannels", "resetchannels", "allcommands",
                           "nocommands", "AllKeys", "+@all", "-@all"))
    if kind == 11:
        return rng.choice(("+select|0", "+select|1", "+config|nosuch", "+nosuch", "-@nosuch", "+get|",
                           "~a b", "+config|get|x", "+OBJECT|Encoding", "", "bogus", "-select"))
    if kind == 12:
        return rng.choice(("on", "off", "nopass", "resetpass", "ON"))
    if kind == 13:
        return rng.choice((">one", ">two", "<one", "<two", "#" + "0" * 64, "!" + "0" * 64, "#0", "!0"))
    if kind == 14:
        return rng.choice(("clearselectors", "reset", "sanitize-payload", "skip-sanitize-payload"))
    words = [random_rule(rng, True) for _ in range(rng.randrange(4))]
    words = [word for word in words if word and " " not in word]
    if len(words) == 1 and rng.randrange(4) == 0:
        return words[0] + ")"  # with blanks 7.0 takes some of these
    return rng.choice(("(%s)", "(%s)", "(%s)", "(%s")) % " ".join(words)


def random_call(rng):
    words = rng.choice(CALLS)
    return [word.format(k=rng.choice(KEYS), c=rng.choice(CHANNELS)) for word in words]


def described(user):
    """What GETUSER tells, without how the rules for commands are worded."""
    user = fields(user)
    parts = [user] + [fields(one) for one in user[b"selectors"]]
    # 7.0 shows %RW~* as ~*, which means something else when patterns follow.
    rules = [(bytes(part[b"keys"]).replace(b"%RW~*", b"~*"), part[b"channels"]) for part in parts]
    flags = sorted(f for f in map(bytes, user[b"flags"]) if b"sanitize" not in f)
    return flags, list(map(bytes, user[b"passwords"])), rules


def without_version(reply):
    """DRYRUN's answer as far as both versions word it alike."""
    text = bytes(reply)
    if b" has no permissions to " not in text:
        return text
    return text.split(b" has no permissions to ")[1].replace(b"one of the ", b"")


@test(timeout=120)
def random_rules_beside_stock(context):
    """The same rules in the same order: the same errors, GETUSER, and answers of DRYRUN."""
    rng = context.rng("acl rules")
    stock, sut = context.pair()
    context.at_end(lambda: context.sut.call("ACL", "DELUSER", "fuzz"))
    context.at_end(lambda: context.stock.call("ACL", "DELUSER", "fuzz"))
    allowed = denied = 0
    for _ in range(300 if not context.options.long else 5000):
        if rng.randrange(6) == 0:
            for client in (stock, sut):
                client.call("ACL", "DELUSER", "fuzz")
        rules = [random_rule(rng) for _ in range(rng.randrange(1, 6))]
        if sum(rule.startswith("(") and not rule.endswith(")") for rule in rules) > 1:
            continue  # 7.0 forgets the first of two open parentheses
        expected, actual = (client.call("ACL", "SETUSER", "fuzz", *rules) for client in (stock, sut))
        eq(bytes(actual), bytes(expected), "SETUSER %r" % rules)
        if resp.is_null(stock.call("ACL", "GETUSER", "fuzz")):
            check(resp.is_null(sut.call("ACL", "GETUSER", "fuzz")), "made in spite of an error")
            continue
        users = [described(client.call("ACL", "GETUSER", "fuzz")) for client in (stock, sut)]
        eq(users[1], users[0], "GETUSER after %r" % rules)
        for _ in range(20):
            call = random_call(rng)
            replies = [client.call("ACL", "DRYRUN", "fuzz", *call) for client in (stock, sut)]
            rule_text = sut.call("ACL", "LIST")
            eq(without_version(replies[1]), without_version(replies[0]),
               "DRYRUN %r with %r" % (call, rule_text))
            allowed += replies[1] == resp.OK
            denied += replies[1] != resp.OK
    check(allowed > 100 and denied > 100, "%d allowed, %d denied" % (allowed, denied))


@test()
def listed_rules_mean_the_same(context):
    """A user that is made of what LIST shows of another is shown and limited alike."""
    context.sava_only("7.0 words its rules anew")
    rng = context.rng("acl list")
    client = context.client()
    for name in ("one", "other"):
        context.at_end(lambda who=name: context.sut.call("ACL", "DELUSER", who))
    for _ in range(150):
        client.call("ACL", "SETUSER", "one", *[random_rule(rng) for _ in range(6)])
        shown = [bytes(line).split(b" ", 2)[2] for line in client.call("ACL", "LIST")
                 if bytes(line).startswith(b"user one ")]
        if not shown:
            continue
        eq(client.call("ACL", "SETUSER", "other", "reset", *shown[0].split(b" ")), resp.OK)
        eq(client.call("ACL", "GETUSER", "other"), client.call("ACL", "GETUSER", "one"))
        for _ in range(10):
            call = random_call(rng)
            eq(bytes(client.call("ACL", "DRYRUN", "other", *call)).replace(b"other", b"one"),
               bytes(client.call("ACL", "DRYRUN", "one", *call)), "DRYRUN %r" % call)


@test()
def texts_of_the_commands(context):
    """What ACL's commands answer, right and wrong, is what redis-server answers."""
    for words in (
        ("ACL", "SETUSER", "a b"), ("ACL", "SETUSER", "x\0y", "on"), ("ACL", "DELUSER", "default"),
        ("ACL", "DELUSER", "nobody", "default"), ("ACL", "DELUSER", "nobody"),
        ("ACL", "GETUSER", "nobody"), ("ACL", "DRYRUN", "nobody", "get", "a"),
        ("ACL", "DRYRUN", "default", "nosuch"), ("ACL", "DRYRUN", "default", "get"),
        ("ACL", "DRYRUN", "default", "acl", "nosuch"), ("ACL", "DRYRUN", "default", "get", "a"),
        ("ACL", "LOAD"), ("ACL", "SAVE"), ("ACL", "USERS"), ("ACL", "WHOAMI"), ("ACL", "GENPASS", "0"),
        ("ACL", "CAT", "nosuch"), ("AUTH", "x"), ("AUTH", "nobody", "x"), ("ACL", "LOG", "x"),
        ("CLIENT", "KILL", "USER", "nobody"),
    ):
        expected, actual = (client.call(*words) for client in context.pair())
        context.same(actual, expected, " ".join(words))


# ---- every command ----

NEVER_REFUSED = {b"auth", b"hello", b"quit", b"reset"}
# They end the server, change its role, or answer with what is no reply.
NOT_RUN = (b"shutdown", b"debug", b"monitor", b"failover", b"psync", b"sync", b"replicaof", b"slaveof")


@test(timeout=120)
def every_command(context):
    """A user with all commands but this one is refused; one with this one alone is let through."""
    context.sava_only()
    server = context.start("--enable-module-command", "yes")
    admin = context.client(server)
    names = [bytes(row[0]) for row in admin.call("COMMAND")]
    for row in admin.call("COMMAND"):
        names += [bytes(sub[0]) for sub in row[9]]
    check(len(names) > 300, "%d commands" % len(names))
    infos = admin.call("COMMAND", "INFO", *names)
    for name, info in zip(names, infos):
        words = name.split(b"|") + [b"x"] * (abs(info[1]) - 1 - name.count(b"|"))
        make(admin, "all_but", "~*", "&*", "+@all", b"-" + name)
        make(admin, "only", "~*", "&*", b"+" + name)
        if name in NEVER_REFUSED:
            continue
        if not info[9]:  # a container without its subcommand is no command
            client = as_user(context, server, "all_but")
            reply = client.call(*words)
            if name == b"exec":
                reply = resp.Error(bytes(reply).replace(
                    b"EXECABORT Transaction discarded because of: ", b""))
            check(refused(reply, b"User all_but has no permissions to run the '%s' command" % name),
                  "%s: %s" % (name, resp.show(reply)))
            client.close()
        if name.startswith(NOT_RUN) or info[9]:
            continue
        client = as_user(context, server, "only")
        reply = client.call(*words)
        check(not resp.is_error(reply, b"NOPERM"), "%s: %s" % (name, resp.show(reply)))
        client.close()
    eq(admin.call("PING"), resp.PONG)


@test()
def keys_and_channels_at_run_time(context):
    context.sava_only("7.0 has other texts")
    server = context.start()
    admin = context.client(server)
    make(admin, "ann", "+@all", "~a*", "%R~r*", "&news.*")
    ann = as_user(context, server, "ann")
    eq(ann.call("SET", "a1", "v"), resp.OK)
    eq(ann.call("SET", "b1", "v"), resp.Error(b"NOPERM No permissions to access a key"))
    check(refused(ann.call("SET", "r1", "v")), "only reading")
    check(refused(ann.call("MSET", "a1", "v", "b1", "v")), "one of two keys")
    check(refused(ann.call("RENAME", "a1", "b")), "the second key")
    check(refused(ann.call("SORT", "a1", "STORE", "a2", "STORE", "b")), "the last STORE counts")
    eq(ann.call("SORT", "al", "BY", "w_*"),
       resp.Error(b"ERR BY option of SORT denied due to insufficient ACL permissions."))
    eq(ann.call("SORT", "al", "GET", "#"),
       resp.Error(b"ERR GET option of SORT denied due to insufficient ACL permissions."))
    eq(ann.call("SORT", "al", "BY", "nosort"), [])
    eq(ann.call("PUBLISH", "other", "m"), resp.Error(b"NOPERM No permissions to access a channel"))
    eq(ann.call("PUBLISH", "news.a", "m"), 0)
    check(refused(ann.call("PSUBSCRIBE", "news.a*")), "a pattern that is no rule")
    eq(ann.call("PSUBSCRIBE", "news.*")[0], b"psubscribe")
    entries = [fields(entry) for entry in admin.call("ACL", "LOG", "50")]
    eq({(e[b"reason"], e[b"object"]) for e in entries},
       {(b"key", b"b1"), (b"key", b"r1"), (b"key", b"b"), (b"channel", b"other"),
        (b"channel", b"news.a*")})
    for entry in entries:
        eq((entry[b"username"], entry[b"context"]), (b"ann", b"toplevel"))
        check(b"user=ann" in entry[b"client-info"], entry[b"client-info"])
    counts = {e[b"object"]: e[b"count"] for e in entries}
    eq(counts[b"b1"], 2)
    eq([int(server.info_field("acl_access_denied_" + kind)) for kind in ("auth", "cmd", "key", "channel")],
       [0, 0, 5, 2])
    eq(admin.call("ACL", "LOG", "RESET"), resp.OK)
    eq(admin.call("ACL", "LOG"), [])
    eq(admin.call("CONFIG", "SET", "acllog-max-len", "2"), resp.OK)
    bob = context.client(server)
    for name in ("x", "y", "z"):
        check(resp.is_error(bob.call("AUTH", name, "no"), b"WRONGPASS"), "nobody")
    eq([fields(e)[b"username"] for e in admin.call("ACL", "LOG")], [b"z", b"y"])


@test()
def rules_that_change_meanwhile(context):
    """A transaction and a blocked command are asked again; what was queued wrongly is refused."""
    context.sava_only("7.0 has other texts, and does not ask blocked commands again")
    server = context.start()
    admin = context.client(server)
    make(admin, "ann", "+@all", "~*", "&*", "-config")
    ann = as_user(context, server, "ann")
    eq(ann.call("MULTI"), resp.OK)
    check(refused(ann.call("CONFIG", "GET", "x")), "while queueing")
    eq(ann.call("EXEC"), resp.Error(b"EXECABORT Transaction discarded because of previous errors."))
    eq(fields(admin.call("ACL", "LOG")[0])[b"context"], b"multi")
    eq(ann.call("MULTI"), resp.OK)
    for words in (("GET", "k"), ("SET", "k", "v"), ("PUBLISH", "c", "m"), ("GET", "k")):
        eq(bytes(ann.call(*words)), b"QUEUED")
    eq(admin.call("ACL", "SETUSER", "ann", "resetkeys", "%R~*", "resetchannels", "-ping"), resp.OK)
    reason = (b"NOPERM ACLs rules changed between the moment the transaction was accumulated and the "
              b"EXEC call. This command is no longer allowed for the following reason: ")
    eq(ann.call("EXEC"),
       [resp.NIL, resp.Error(reason + b"no permission to touch the specified keys"),
        resp.Error(reason + b"no permission to access one of the channels used as arguments"), resp.NIL])
    make(admin, "bob", "+@all", "~*")
    bob = as_user(context, server, "bob")
    eq(bob.call("MULTI"), resp.OK)
    eq(bytes(bob.call("ACL", "SETUSER", "bob", "-set")), b"QUEUED")
    eq(bytes(bob.call("SET", "k", "v")), b"QUEUED")
    eq(bob.call("EXEC"),
       [resp.OK, resp.Error(reason + b"no permission to execute the command or subcommand")])

    make(admin, "eve", "+@all", "~*")
    eve = as_user(context, server, "eve")
    eve.send("BLPOP", "list", "0")
    until(lambda: b"cmd=blpop" in bytes(admin.call("CLIENT", "LIST")), what="the client to wait")
    eq(admin.call("ACL", "SETUSER", "eve", "resetkeys", "~other"), resp.OK)
    eq(admin.call("RPUSH", "list", "x"), 1)
    eq(eve.reply(), resp.Error(b"NOPERM No permissions to access a key"))
    eq(admin.call("LLEN", "list"), 1, "nothing was taken")


@test()
def clients_of_users(context):
    """Who is deleted is sent away; who may not listen any more, too; CLIENT LIST and KILL know names."""
    context.sava_only("7.2 and later")
    server = context.start()
    admin = context.client(server)
    make(admin, "ann", "+@all", "~*", "&news")
    make(admin, "bob", "+@all", "~*", "&*")
    ann, bob, listener = (as_user(context, server, name) for name in ("ann", "bob", "ann"))
    eq(ann.call("ACL", "WHOAMI"), b"ann")
    check(resp.is_error(admin.call("ACL", "SETUSER", "", "on"), b"ERR Usernames"), "no name")
    lines = bytes(admin.call("CLIENT", "LIST")).decode()
    eq(lines.count("user=ann"), 2, lines)
    eq(lines.count("user=bob"), 1, lines)
    eq(listener.call("SUBSCRIBE", "news")[0], b"subscribe")
    eq(admin.call("ACL", "SETUSER", "ann", "&more"), resp.OK)
    eq(admin.call("PUBLISH", "news", "m"), 1)
    eq(listener.reply()[2], b"m")
    eq(admin.call("ACL", "SETUSER", "ann", "resetchannels", "&more"), resp.OK)
    check(listener.closed_by_server(10), "it listens to what it may not")
    eq(ann.call("PING"), resp.PONG)
    eq(admin.call("CLIENT", "KILL", "USER", "bob"), 1)
    check(bob.closed_by_server(10), "killed")
    eq(admin.call("ACL", "SETUSER", "ann", "off"), resp.OK)
    eq(ann.call("PING"), resp.PONG, "who is connected stays")
    check(resp.is_error(context.client(server).call("AUTH", "ann", "pw"), b"WRONGPASS"), "off")
    eq(admin.call("ACL", "DELUSER", "ann", "nobody"), 1)
    check(ann.closed_by_server(10), "deleted")
    # A user who deletes himself is answered.
    eq(admin.call("ACL", "SETUSER", "tom", "on", "nopass", "+@all", "~*"), resp.OK)
    tom = as_user(context, server, "tom", "anything")
    eq(tom.call("ACL", "DELUSER", "tom"), 1)
    check(tom.closed_by_server(10), "deleted by himself")
    # The default user's password, by rules and by requirepass.
    eq(admin.call("CONFIG", "SET", "requirepass", "secret"), resp.OK)
    stranger = context.client(server)
    check(resp.is_error(stranger.call("PING"), b"NOAUTH"), "a password is needed")
    eq(stranger.call("AUTH", "secret"), resp.OK)
    eq(admin.call("ACL", "SETUSER", "default", ">second"), resp.OK)
    eq(context.client(server).call("AUTH", "second"), resp.OK)
    eq(stranger.call("RESET"), resp.Status(b"RESET"))
    check(resp.is_error(stranger.call("PING"), b"NOAUTH"), "RESET forgets who it is")
    eq(stranger.call("HELLO", "3", "AUTH", "default", "secret").dict()[b"proto"], 3)


# ---- files ----


@test()
def the_acl_file(context):
    path = os.path.join(context.temp_dir(), "users.acl")

    def write(text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    write("user ann on >pw ~a* +get (+set ~s)\nuser bob on nopass +@all ~* &news\n")
    server = context.start("--aclfile", path)
    admin = context.client(server)
    eq(sorted(map(bytes, admin.call("ACL", "USERS"))), [b"ann", b"bob", b"default"])
    eq(admin.call("CONFIG", "GET", "aclfile")[1], path.encode())
    ann = as_user(context, server, "ann")
    eq(ann.call("GET", "a"), resp.NIL)
    eq(admin.call("ACL", "SETUSER", "tom", "on", "+ping"), resp.OK)
    before = list(map(bytes, admin.call("ACL", "LIST")))
    eq(admin.call("ACL", "SAVE"), resp.OK)
    with open(path, encoding="utf-8") as file:
        saved = file.read()
    eq(sorted(saved.splitlines()), sorted(line.decode() for line in before))
    eq(admin.call("ACL", "LOAD"), resp.OK)
    eq(list(map(bytes, admin.call("ACL", "LIST"))), before)
    write("user ann on +nosuch\nuser bob\nnonsense\n")
    reply = admin.call("ACL", "LOAD")
    check(resp.is_error(reply) and b"no change to the previously active" in bytes(reply),
          resp.show(reply))
    eq(list(map(bytes, admin.call("ACL", "LIST"))), before, "nothing was changed")
    os.remove(path)
    check(resp.is_error(admin.call("ACL", "LOAD"), b"ERR Error loading ACLs, opening file"), "no file")
    os.mkdir(path)
    check(resp.is_error(admin.call("ACL", "SAVE"), b"ERR There was an error trying to save"), "a folder")


@test()
def the_acl_file_and_clients(context):
    """LOAD closes only those whose user is gone or lost a channel, as 7.4 does."""
    context.sava_only("7.0 and 7.2 close all")
    path = os.path.join(context.temp_dir(), "users.acl")
    with open(path, "w", encoding="utf-8") as file:
        file.write("user ann on >pw +@all ~* &*\nuser bob on >pw +@all ~*\n")
    server = context.start("--aclfile", path)
    admin = context.client(server)
    ann, bob, listener = (as_user(context, server, name) for name in ("ann", "bob", "ann"))
    eq(listener.call("SUBSCRIBE", "c")[0], b"subscribe")
    with open(path, "w", encoding="utf-8") as file:
        file.write("user ann on >pw +get ~k\n")
    eq(admin.call("ACL", "LOAD"), resp.OK)
    check(bob.closed_by_server(10), "bob is gone")
    check(listener.closed_by_server(10), "she may not listen")
    eq(ann.call("GET", "k"), resp.NIL)
    check(refused(ann.call("SET", "k", "v")), "the new rules")


@test()
def users_in_the_configuration(context):
    path = os.path.join(context.temp_dir(), "some.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write("# first\nrequirepass old\nuser ann on >pw ~a* +get (+set ~s)\n"
                   "user default on >new +@all ~*\n")
    server = context.start(config=path)
    eq(context.client(server).call("AUTH", "new"), resp.OK, "the line wins over requirepass")
    check(resp.is_error(context.client(server).call("AUTH", "old"), b"WRONGPASS"), "old")
    admin = as_user(context, server, "default", "new")
    eq(as_user(context, server, "ann").call("GET", "a"), resp.NIL)
    eq(admin.call("ACL", "SETUSER", "tom", "on", "nopass", "~t", "+get"), resp.OK)
    eq(admin.call("ACL", "DELUSER", "ann"), 1)
    eq(admin.call("CONFIG", "REWRITE"), resp.OK)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    check("user tom on nopass" in text and "user ann" not in text, text)
    check(text.startswith("# first\n"), text)
    again = context.start(config=path)
    eq(as_user(context, again, "tom", "x").call("GET", "t"), resp.NIL)
    eq(context.client(again).call("AUTH", "new"), resp.OK)


@test()
def starts_that_fail(context):
    context.sava_only("the texts are Sava's")
    path = os.path.join(context.temp_dir(), "users.acl")
    with open(path, "w", encoding="utf-8") as file:
        file.write("user ann on +nosuch\n")
    for options, part in (
        (("--aclfile", path), "users.acl:1: Unknown command or category name in ACL"),
        (("--aclfile", path + ".missing"), "No such file or directory"),
        (("--aclfile", path, "--user", "ann", "on"), "not in both"),
        (("--user", "ann", "on", "+nosuch"), "Error in user declaration '+nosuch'"),
        (("--user", "ann", "on", "(+get"), "Unmatched parenthesis"),
        (("--user", "ann", "on", "--user", "ann", "off"), "Duplicate user"),
        (("--rename-command", "nosuch", "x"), "No such command in rename-command"),
        (("--rename-command", "get", "set"), "already exists"),
        (("--rename-command", "get"), "rename-command"),
    ):
        code, output = context.try_start(*options)
        context.expect(code == 1, "%s: exit code %s" % (options, code))
        context.expect(part in output, "%s: %s" % (options, output[-300:]))


# ---- other doors ----


@test()
def renamed_commands(context):
    """Clients use the new name; MONITOR, ACL, the slow log and the log of writes the old one."""
    context.sava_only("MONITOR of redis-server shows the new name")
    server = context.start("--rename-command", "set", "put", "--rename-command", "FLUSHALL", "",
                           "--rename-command", "config", "settings", "--appendonly", "yes")
    client, watcher = context.client(server), context.client(server)
    eq(watcher.call("MONITOR"), resp.OK)
    check(resp.is_error(client.call("SET", "k", "v"), b"ERR unknown command 'SET'"), "the old name")
    check(resp.is_error(client.call("FLUSHALL"), b"ERR unknown command"), "none")
    eq(client.call("PUT", "k", "v"), resp.OK)
    check(b'"set" "k" "v"' in bytes(watcher.reply()).lower(), "MONITOR")
    eq(client.call("SETTINGS", "SET", "slowlog-log-slower-than", "0"), resp.OK)
    eq(client.call("put", "k", "w"), resp.OK)
    check(any(entry[3][0].lower() == b"set" for entry in client.call("SLOWLOG", "GET", "10")), "slow log")
    eq(client.call("MULTI"), resp.OK)
    eq(bytes(client.call("PUT", "m", "1")), b"QUEUED")
    eq(client.call("EXEC"), [resp.OK])
    make(client, "ann", "+set", "~k")
    eq(client.call("ACL", "DRYRUN", "ann", "PUT", "k", "v"), resp.OK)
    ann = as_user(context, server, "ann")
    eq(ann.call("PUT", "k", "x"), resp.OK)
    check(refused(ann.call("GET", "k"), b"'get'"), "get")
    make(client, "ann", "+get", "~k")
    check(refused(ann.call("PUT", "k", "y"), b"run the 'set' command"), "the old name")
    names = {bytes(name) for name in client.call("COMMAND", "LIST")}
    check(b"flushall" not in names, "COMMAND LIST")
    eq(client.call("DEBUG", "LOADAOF"), resp.OK)
    eq(client.call("GET", "k"), b"x", "the log is read by the old names")
    eq(client.call("GET", "m"), b"1")


def basic(user, password):
    pair = base64.b64encode(("%s:%s" % (user, password)).encode()).decode()
    return {"Authorization": "Basic " + pair}


@test()
def http_users(context):
    server = serve(context)
    admin = context.client(server)
    make(admin, "reader", "+@read", "%R~assoc:*")
    make(admin, "other", "+@all", "~x*")
    http = Http(server.http_port)
    context.at_end(http.close)
    record = b'{"key":"u","associatedKey":"b"}'
    json = {"Content-Type": "application/json"}
    eq(http.ask("POST", "/associations", record, json).status // 100, 2, "the default user")
    eq(http.ask("GET", "/associations/u", None, basic("reader", "pw")).status, 200)
    eq(http.ask("POST", "/associations", record, dict(json, **basic("reader", "pw"))).status, 403)
    eq(http.ask("GET", "/associations/u", None, basic("other", "pw")).status, 403, "keys count")
    eq(http.ask("GET", "/associations/u", None, basic("reader", "no")).status, 401)
    eq(http.ask("GET", "/associations/u", None, basic("nobody", "pw")).status, 401)
    eq(http.ask("GET", "/healthz", None, basic("nobody", "pw")).status, 200)
    eq(http.ask("GET", "/associations/u").status, 200, "the next request is the default user's")
    entries = [fields(entry) for entry in admin.call("ACL", "LOG")]
    eq({(e[b"reason"], e[b"username"]) for e in entries},
       {(b"command", b"reader"), (b"key", b"other"), (b"auth", b"reader"), (b"auth", b"nobody")})
    for entry in entries:
        check(b"lib-name=http" in entry[b"client-info"], entry[b"client-info"])
    eq(admin.call("CONFIG", "SET", "requirepass", "secret"), resp.OK)
    eq(http.ask("GET", "/associations/u").status, 401)
    bearer = {"Authorization": "Bearer secret"}
    eq(http.ask("GET", "/associations/u", None, bearer).status, 200)
    eq(http.ask("GET", "/associations/u", None, {"Authorization": "Bearer pw"}).status, 401)
    eq(http.ask("GET", "/associations/u", None, basic("reader", "pw")).status, 200)


@test()
def limits_by_user(context):
    """Each user with a rule has a bucket of his own, an ordinary key."""
    server = serve(context, "--ratelimit-enabled", "yes", "--user", "ann", "on", ">pw", "+@all", "~*",
                           "--ratelimit-user", "ann window 3 60s ghost window 1 1s")
    check(b"ratelimit-user ghost: there is no such user" in server.log(), "told at start")
    admin = context.client(server)
    first, second = (as_user(context, server, "ann") for _ in range(2))
    answers = [client.call("GET", "k") for client in (first, second, first, second)]
    eq([resp.is_error(reply, b"RATELIMITED") for reply in answers], [False, False, False, True])
    http = Http(server.http_port)
    context.at_end(http.close)
    eq(http.ask("GET", "/associations/u", None, basic("ann", "pw")).status, 429, "her bucket, too")
    eq(http.ask("GET", "/associations/u").status, 200)
    eq(admin.call("GET", "k"), resp.NIL, "others are not limited")
    eq(admin.call("EXISTS", "__rl:ann"), 1)
    reply = admin.call("CONFIG", "SET", "ratelimit-user", "nobody window 1 1s")
    check(resp.is_error(reply) and b"there is no user 'nobody'" in bytes(reply), resp.show(reply))
    eq(admin.call("CONFIG", "SET", "ratelimit-user", "default window 100 60s"), resp.OK)
    eq(first.call("GET", "k"), resp.NIL, "no rule for her any more")
    eq(first.call("AUTH", "default", ""), resp.OK)
    eq(first.call("GET", "k"), resp.NIL)
    eq(admin.call("EXISTS", "__rl:default"), 1)


@test(timeout=60)
def rules_under_load(context):
    """Users come, change and go while their clients run, wait and listen; nobody does what he never may."""
    context.sava_only("7.0 closes other clients")
    server = context.start()
    admin = context.client(server)
    rounds = 150

    def work(name):
        done = 0
        client = None
        for i in range(rounds * 4):
            try:
                client = client or server.client()
                if i % 10 == 0 and client.call("AUTH", name, "pw") != resp.OK:
                    continue
                client.call("SET", "mine:" + name, "v")
                check(client.call("SET", "forbidden", "v") != resp.OK, "a key nobody may write")
                client.call("MULTI")
                client.call("LPUSH", "mine:list", "x")
                client.call("GET", "mine:" + name)
                client.call("EXEC")
                client.call("BLPOP", "mine:list", "0.001")
                client.call("SUBSCRIBE", "news")
                client.call("UNSUBSCRIBE", "news")
                done += 1
            except (resp.ConnectionClosed, OSError):
                client = None
        return done

    def change():
        for i in range(rounds):
            for name in ("ann", "bob"):
                eq(admin.call("ACL", "SETUSER", name, "on", ">pw", "resetkeys", "~mine:*",
                              "+@all", "-ping" if i % 2 else "-lpush", "resetchannels",
                              "&news" if i % 3 else "&other"), resp.OK)
            if i % 5 == 4:
                admin.call("ACL", "DELUSER", "ann")
            if i % 7 == 6:
                admin.call("CLIENT", "KILL", "USER", "bob")
        return 0

    # Who has not signed in yet may not write the key either.
    eq(admin.call("ACL", "SETUSER", "root", "on", ">pw", "~*", "&*", "+@all"), resp.OK)
    eq(admin.call("AUTH", "root", "pw"), resp.OK)
    eq(admin.call("ACL", "SETUSER", "default", "resetkeys", "~mine:*"), resp.OK)
    counts = run_workers([lambda: work("ann"), lambda: work("bob"), lambda: work("bob"), change], 50)
    check(sum(counts) > 0, "%s" % counts)
    eq(admin.call("EXISTS", "forbidden"), 0)
    eq(admin.call("PING"), resp.PONG)
