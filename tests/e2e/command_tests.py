"""COMMAND: which commands there are and what is said about them, against the stock server."""

import resp
from harness import check, eq, test

REQUIRED = """
append bitcount bitfield bitfield_ro bitop bitpos decr decrby get getbit getdel getex getrange
getset incr incrby incrbyfloat lcs mget mset msetnx psetex set setbit setex setnx setrange
strlen substr copy dbsize del dump exists expire expireat expiretime flushall flushdb keys move
object persist pexpire pexpireat pexpiretime pttl randomkey rename renamenx restore scan swapdb
touch ttl type unlink discard exec multi unwatch watch psubscribe publish pubsub punsubscribe
spublish ssubscribe subscribe sunsubscribe unsubscribe acl auth client cluster command config
debug echo hello info latency memory module monitor ping quit reset select shutdown slowlog time
wait readonly readwrite asking
""".split()
REQUIRED_SUBCOMMANDS = """
object|encoding object|freq object|help object|idletime object|refcount client|getname
client|help client|id client|info client|kill client|list client|no-evict client|pause
client|reply client|setname client|unpause config|get config|set config|rewrite config|resetstat
config|help command|count command|docs command|getkeys command|getkeysandflags command|info
command|list command|help slowlog|get slowlog|len slowlog|reset slowlog|help latency|doctor
latency|graph latency|help latency|histogram latency|history latency|latest latency|reset
memory|doctor memory|help memory|malloc-stats memory|purge memory|stats memory|usage
pubsub|channels pubsub|help pubsub|numpat pubsub|numsub pubsub|shardchannels pubsub|shardnumsub
acl|cat acl|getuser acl|help acl|list acl|users acl|whoami module|list
""".split()
# Flags that Redis 7.2 knows and 7.0 does not.
NEWER_FLAGS = {b"touches_arbitrary_keys", b"touches-arbitrary-keys"}


# Commands that take more arguments in 7.2.
# Since 7.2 they run in scripts, without waiting.
ALLOWED_IN_SCRIPTS = {
    "blmove",
    "blpop",
    "brpop",
    "brpoplpush",
    "bzpopmax",
    "bzpopmin",
    "wait",
}
NEWER_ARITY = {"zrank", "zrevrank"}


def command_map(server):
    return {bytes(info[0]): info for info in server.call("COMMAND")}


def subcommands(info):
    return {bytes(sub[0]): sub for sub in info[9]}


def describe(info):
    """What must agree: arity, flags, key positions, categories."""
    return {
        "arity": info[1],
        "flags": sorted(bytes(f) for f in info[2] if bytes(f) not in NEWER_FLAGS),
        "keys": info[3:6],
        "categories": sorted(bytes(c) for c in info[6]),
    }


def compare_info(context, name, expected, actual):
    first, second = describe(expected), describe(actual)
    for part in first:
        if part == "arity" and name in NEWER_ARITY:
            continue
        if part == "flags" and name in ALLOWED_IN_SCRIPTS:
            first[part] = [flag for flag in first[part] if flag != b"noscript"]
        if first[part] != second[part]:
            context.note("%s %s: stock %s, sut %s" % (name, part, first[part], second[part]))


@test()
def all_commands_are_there(context):
    names = {bytes(name).decode() for name in context.sut.call("COMMAND", "LIST")}
    context.expect(set(REQUIRED) <= names, "missing: %s" % sorted(set(REQUIRED) - names))
    commands = command_map(context.sut)
    found = {name.decode() for info in commands.values() for name in subcommands(info)}
    missing = sorted(set(REQUIRED_SUBCOMMANDS) - found)
    context.expect(not missing, "missing subcommands: %s" % missing)
    if context.is_sava:
        for name in ("client|setinfo", "client|no-touch"):
            context.expect(name in found, "missing subcommand of 7.2: " + name)


@test()
def count_and_list(context):
    for server in (context.stock, context.sut):
        names = server.call("COMMAND", "LIST")
        top = {name for name in names if b"|" not in name}
        eq(server.call("COMMAND", "COUNT"), len(top), server.name)
        eq(len(server.call("COMMAND")), len(top), server.name)
        some = server.call("COMMAND", "LIST", "FILTERBY", "PATTERN", "getr*")
        eq(sorted(some), [b"getrange"], server.name)
        category = server.call("COMMAND", "LIST", "FILTERBY", "ACLCAT", "bitmap")
        check({b"setbit", b"getbit", b"bitcount"} <= set(category), server.name)


@test()
def info_agrees(context):
    stock, sut = command_map(context.stock), command_map(context.sut)
    check(len(set(stock) & set(sut)) >= 90, "too few commands in common")
    for name in sorted(set(stock) & set(sut)):
        compare_info(context, name.decode(), stock[name], sut[name])
        first, second = subcommands(stock[name]), subcommands(sut[name])
        for sub in sorted(set(first) & set(second)):
            compare_info(context, sub.decode(), first[sub], second[sub])


@test()
def info_shape(context):
    """Ten elements; flags and categories are statuses (sets in RESP3); unknown names are null."""
    for proto in (2, 3):
        shapes = []
        for server in (context.stock, context.sut):
            client = context.client(server, proto)
            reply = client.call("COMMAND", "INFO", "get", "nosuch", "config|get", "CONFIG")
            eq(len(reply), 4)
            info = reply[0]
            shapes.append(
                [type(reply[1]).__name__, reply[1], len(info), len(reply[2]), len(reply[3])]
                + [type(item).__name__ for item in info]
                + [type(info[2][0]).__name__, type(info[6][0]).__name__]
                + [info[0], reply[2][0], reply[3][0]]
            )
        eq(shapes[1], shapes[0], "RESP%d" % proto)


@test()
def key_specifications_agree(context):
    """Where a command's keys are: what cluster clients and proxies read."""
    stock, sut = command_map(context.stock), command_map(context.sut)

    def plain(value):
        if isinstance(value, list):
            return [plain(v) for v in value]
        return value if isinstance(value, int) else bytes(value)

    def places(info):
        result = []
        for spec in info[8]:
            fields = dict(zip([bytes(k) for k in spec[::2]], spec[1::2]))
            flags = sorted(bytes(f) for f in fields[b"flags"])
            result.append([flags, plain(fields[b"begin_search"]), plain(fields[b"find_keys"])])
        return result

    for name in sorted(set(stock) & set(sut)):
        expected, actual = places(stock[name]), places(sut[name])
        context.expect(
            expected == actual, "%s: stock %s, sut %s" % (name.decode(), expected, actual)
        )


@test()
def docs(context):
    """Our own words, but the same names: group, since, arguments."""
    answers = []
    for server in (context.stock, context.sut):
        client = context.client(server, 3)
        docs_map = client.call("COMMAND", "DOCS")
        check(isinstance(docs_map, resp.Map), "no map")
        answers.append({bytes(name): doc.dict() for name, doc in docs_map})
    stock, sut = answers
    for name in sorted(set(stock) & set(sut)):
        for field in (b"group", b"since"):
            context.same(sut[name].get(field), stock[name].get(field), "%s %s" % (name, field))
        context.expect(sut[name].get(b"summary"), "%s has no summary" % name)
        if b"arguments" in stock[name]:
            context.expect(b"arguments" in sut[name], "%s has no arguments" % name)
    one = context.client(proto=3).call("COMMAND", "DOCS", "set", "nosuch", "GET")
    eq(sorted(bytes(name) for name, _ in one), [b"get", b"set"])


@test()
def docs_of_alternatives(context):
    """redis-cli writes its hints from these."""

    def shape(argument):
        argument = argument.dict()
        inner = argument.get(b"arguments")
        text = argument.get(b"token", b"") + b" " + argument.get(b"display_text", b"")
        if inner:
            text = b"(" + b"|".join(shape(part) for part in inner) + b")"
        flags = [bytes(flag) for flag in argument.get(b"flags", [])]
        return text.strip() + (b"?" if b"optional" in flags else b"")

    context.sava_only("7.0 has no display_text, and STORE and STOREDIST side by side")
    client = context.client(proto=3)
    where = b"(LEFT left|RIGHT right)"
    geo = b"(STORE key|STOREDIST key)?"
    for name, index, expected in (
        ("blmove", 2, [where, where, b"timeout"]),
        ("lmove", 2, [where, where]),
        ("lmpop", 2, [where, b"COUNT count?"]),
        ("blmpop", 3, [where, b"COUNT count?"]),
        ("linsert", 1, [b"(BEFORE before|AFTER after)", b"pivot", b"element"]),
        ("georadius", -1, [geo]),
        ("georadiusbymember", -1, [geo]),
    ):
        arguments = client.call("COMMAND", "DOCS", name).dict()[name.encode()].dict()[b"arguments"]
        eq([shape(argument) for argument in arguments[index:]], expected, name)
        names = [argument.dict()[b"name"] for argument in arguments]
        if name in ("lmove", "blmove"):
            eq(names[2:4], [b"wherefrom", b"whereto"])
    store = arguments[-1].dict()
    eq(store[b"name"], b"store")
    eq([part.dict()[b"name"] for part in store[b"arguments"]], [b"storekey", b"storedistkey"])


@test()
def help_texts(context):
    """Every container has HELP: an array of simple strings that names its subcommands."""
    for name in "OBJECT CLIENT CONFIG COMMAND SLOWLOG LATENCY MEMORY PUBSUB ACL DEBUG".split():
        reply = context.sut.call(name, "HELP")
        good = type(reply) is list and len(reply) > 3
        good = good and all(isinstance(line, resp.Status) for line in reply)
        context.expect(good, "%s HELP: %s" % (name, resp.show(reply, 120)))
