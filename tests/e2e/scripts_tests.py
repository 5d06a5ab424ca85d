"""Scripts and functions: the same calls beside stock Redis, random scripts, what a script leaves in
the log, many threads with scripts that keep to their keys and others that do not, and scripts that
take long.
"""

import hashlib
import http.client
import os
import random
import shutil
import threading
import time

import resp
from clients_tests import HERE, cli, run
from durability import durable
from harness import SLOW, Skip, check, eq, free_port, test, until

LONG = "while true do end"
NO_SHA = "f" * 40


def library(name, body):
    return "#!lua name=%s\n%s" % (name, body)


def answering(name, function, answer):
    return library(
        name, "redis.register_function('%s', function() return '%s' end)" % (function, answer)
    )


# Calls that both servers answer alike; a name in front of the words is the differing version's.
CALLS = [
    ("EVAL", "return 1", "0"),
    ("EVAL", "return {1,2,{3,'four'}}", "0"),
    ("EVAL", "return {1,nil,3}", "0"),
    ("EVAL", "return 3.99", "0"),
    ("EVAL", "return -3.99", "0"),
    ("EVAL", "return true", "0"),
    ("EVAL", "return false", "0"),
    ("EVAL", "return nil", "0"),
    ("EVAL", "return {ok='fine'}", "0"),
    ("EVAL", "return {err='My Err'}", "0"),
    ("EVAL", "return {err='ERR mine'}", "0"),
    ("EVAL", "return redis.error_reply('MY ERR')", "0"),
    ("EVAL", "return redis.error_reply('word')", "0"),
    ("EVAL", "return redis.status_reply('MY STATUS')", "0"),
    ("EVAL", "return {KEYS[1],KEYS[2],ARGV[1],ARGV[2]}", "2", "a", "b", "c", "d"),
    ("EVAL", "return #KEYS + #ARGV", "1", "a", "b", "c"),
    ("EVAL", "return redis.call('SET',KEYS[1],ARGV[1])", "1", "k", "v"),
    ("EVAL", "return redis.call('GET',KEYS[1])", "1", "k"),
    ("EVAL", "return redis.call('GET','missing')", "0"),
    ("EVAL", "return redis.call('INCR',KEYS[1])", "1", "n"),
    ("EVAL", "return redis.call('INCR',KEYS[1])", "1", "k"),
    ("EVAL", "return redis.pcall('INCR',KEYS[1])", "1", "k"),
    ("EVAL", "return redis.pcall('INCR',KEYS[1]).err", "1", "k"),
    ("EVAL", "local ok,e = pcall(redis.call,'INCR',KEYS[1]) return {ok, tostring(e)}", "1", "k"),
    ("EVAL", "return redis.call('LRANGE',KEYS[1],0,-1)", "1", "l"),
    ("EVAL", "return type(redis.call('GET','missing'))", "0"),
    ("EVAL", "return redis.call('nosuchcommand')", "0"),
    ("EVAL", "return redis.call('GET')", "0"),
    ("EVAL", "return redis.call()", "0"),
    ("EVAL", "return redis.call({})", "0"),
    ("EVAL", "return redis.call('SUBSCRIBE','x')", "0"),
    ("EVAL", "return redis.call('MULTI')", "0"),
    ("EVAL", "return redis.call('EVAL','return 1',0)", "0"),
    ("EVAL", "return redis.call('CONFIG','GET','x')", "0"),
    ("EVAL", "return redis.call('SCRIPT','FLUSH')", "0"),
    ("EVAL", "error('boom')", "0"),
    ("EVAL", "error({err='boom table'})", "0"),
    ("EVAL", "return notthere", "0"),
    ("EVAL", "x = 1", "0"),
    ("EVAL", "redis.x = 1", "0"),
    ("EVAL", "this is no lua", "0"),
    ("EVAL", "return 1", "x"),
    ("EVAL", "return 1", "-1"),
    ("EVAL", "return 1", "3", "a"),
    ("EVAL", "return 1"),
    ("EVALSHA", NO_SHA, "0"),
    ("EVALSHA", "short", "0"),
    ("EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"),
    ("EVALSHA", "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB", "0"),
    ("EVAL_RO", "return redis.call('GET',KEYS[1])", "1", "k"),
    ("EVAL_RO", "return redis.call('SET',KEYS[1],'x')", "1", "k"),
    ("EVAL_RO", "return redis.call('PUBLISH','a','x')", "0"),
    ("EVALSHA_RO", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"),
    ("EVAL", "#!lua\nreturn 1", "0"),
    ("EVAL", "#!lua flags=no-writes\nreturn redis.call('SET',KEYS[1],'x')", "1", "k"),
    ("EVAL", "#!lua flags=no-writes,allow-oom\nreturn redis.call('GET',KEYS[1])", "1", "k"),
    ("EVAL", "#!lua flags=nosuch\nreturn 1", "0"),
    ("EVAL", "#!lua name=x\nreturn 1", "0"),
    ("EVAL", "#!python\nreturn 1", "0"),
    ("EVAL", "#!lua", "0"),
    ("EVAL_RO", "#!lua\nreturn 1", "0"),
    ("EVAL", "#!lua\n\nerror('on line three')", "0"),
    ("EVAL", "redis.call('SELECT',9) redis.call('SET','in9','x') return 1", "0"),
    ("EXISTS", "in9"),
    ("EVAL", "local t = redis.call('TIME') return t[1] == redis.call('TIME')[1]", "0"),
    ("EVAL", "return {redis.sha1hex(''), redis.sha1hex('abc')}", "0"),
    ("EVAL", "return redis.sha1hex()", "0"),
    ("EVAL", "redis.setresp(3) return redis.call('HGETALL',KEYS[1])", "1", "h"),
    ("EVAL", "return redis.call('HGETALL',KEYS[1])", "1", "h"),
    ("EVAL", "redis.setresp(4)", "0"),
    ("EVAL", "redis.setresp(3) return redis.call('ZSCORE',KEYS[1],'a')", "1", "z"),
    ("EVAL", "redis.setresp(3) return redis.call('SMEMBERS',KEYS[1])", "1", "s"),
    ("EVAL", "return redis.call('SORT',KEYS[1],'BY','nosort')", "1", "words"),
    ("EVAL", "return redis.set_repl(redis.REPL_ALL)", "0"),
    ("EVAL", "return redis.set_repl(99)", "0"),
    ("EVAL", "return redis.replicate_commands()", "0"),
    ("EVAL", "return redis.call('XREAD','BLOCK',0,'STREAMS','x','$')", "1", "x"),
    ("EVAL", "return cjson.encode({a=1})..cjson.encode({1,2,3})", "0"),
    ("EVAL", "return cjson.decode('[1,{\"a\":null}]')[1]", "0"),
    ("EVAL", "return cmsgpack.unpack(cmsgpack.pack({1,2,3}))", "0"),
    ("EVAL", "return struct.pack('>I2',258)", "0"),
    ("EVAL", "return bit.band(12,10)", "0"),
    ("EVAL", "return {math.random(1000),math.random(1000)} ~= nil", "0"),
    ("EVAL", "return redis.acl_check_cmd('SET','a','b')", "0"),
    ("EVAL", "return redis.acl_check_cmd('nosuch')", "0"),
    ("EVAL", "return tostring(redis.REPL_ALL)..redis.LOG_WARNING", "0"),
    ("EVAL", "return redis.log(1)", "0"),
    ("EVAL", "return string.rep('x', 10)", "0"),
    ("SCRIPT", "EXISTS", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", NO_SHA),
    ("SCRIPT", "LOAD", "return 'loaded'"),
    ("SCRIPT", "LOAD", "return ("),
    ("SCRIPT", "FLUSH", "SOMETIMES"),
    ("SCRIPT", "FLUSH", "ASYNC"),
    ("SCRIPT", "FLUSH"),
    ("SCRIPT", "EXISTS", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"),
    ("SCRIPT", "KILL"),
    ("SCRIPT", "DEBUG", "PERHAPS"),
    ("SCRIPT", "NOSUCH"),
    ("SCRIPT",),
    ("FUNCTION", "KILL"),
    ("FUNCTION", "LIST"),
    ("FUNCTION", "STATS"),
    ("FUNCTION", "LOAD", "return 1"),
    ("FUNCTION", "LOAD", "#!lua"),
    ("FUNCTION", "LOAD", "#!lua\nreturn 1"),
    ("FUNCTION", "LOAD", "#!lua name=a-b\nreturn 1"),
    ("FUNCTION", "LOAD", "#!lua name=a name=b\nreturn 1"),
    ("FUNCTION", "LOAD", "#!lua what=a\nreturn 1"),
    ("FUNCTION", "LOAD", "#!other name=a\nreturn 1"),
    ("FUNCTION", "LOAD", "#!lua name=a\nreturn 1"),
    ("FUNCTION", "LOAD", "#!lua name=a\nreturn ("),
    ("FUNCTION", "LOAD", "#!lua name=a\nredis.call('PING')"),
    ("FUNCTION", "LOAD", "#!lua name=a\nredis.register_function('f')"),
    ("FUNCTION", "LOAD", "#!lua name=a\nredis.register_function('f', 1)"),
    ("FUNCTION", "LOAD", "#!lua name=a\nredis.register_function('f-g', function() end)"),
    ("FUNCTION", "LOAD", "REPLACE"),
    ("FUNCTION", "LOAD", "PERHAPS", "#!lua name=a\nreturn 1"),
    (
        "FUNCTION",
        "LOAD",
        "#!lua name=one\n"
        "redis.register_function('get', function(k,a) return redis.call('GET',k[1]) end)\n"
        "redis.register_function{function_name='peek', callback=function(k,a) return a end,"
        " flags={'no-writes'}, description='looks'}\n"
        "redis.register_function('put', function(k,a) return redis.call('SET',k[1],a[1]) end)",
    ),
    ("FUNCTION", "LOAD", "#!lua name=one\nredis.register_function('x', function() end)"),
    ("FUNCTION", "LOAD", "#!lua name=one\nredis.call('PING')"),
    ("FUNCTION", "LOAD", "#!lua name=one"),
    ("FUNCTION", "FLUSH", "ASYNC", "SYNC"),
    ("FUNCTION", "LOAD", "#!lua name=two\nredis.register_function('get', function() end)"),
    (
        "FUNCTION",
        "LOAD",
        "REPLACE",
        "#!lua name=three\nredis.register_function{function_name='alone', callback=function(k,a)"
        " return a end, flags={'no-writes'}, description='looks'}",
    ),
    ("FUNCTION", "LIST", "LIBRARYNAME", "THR*", "WITHCODE"),
    ("FUNCTION", "LIST", "LIBRARYNAME"),
    ("FUNCTION", "LIST", "WHAT"),
    ("FCALL", "put", "1", "fk", "fv"),
    ("FCALL", "GET", "1", "fk"),
    ("FCALL_RO", "peek", "1", "fk", "x", "y"),
    ("FCALL_RO", "put", "1", "fk", "x"),
    ("FCALL", "nosuch", "0"),
    ("FCALL", "get", "x"),
    ("FCALL", "get", "-1"),
    ("FCALL", "get", "2", "a"),
    ("FCALL", "get", "0"),
    ("FUNCTION", "STATS"),
    ("FUNCTION", "DELETE", "nosuch"),
    ("FUNCTION", "RESTORE", "rubbish"),
    ("FUNCTION", "RESTORE", "rubbish", "SOMEHOW"),
    ("FUNCTION", "FLUSH", "SOMETIMES"),
    ("FUNCTION", "DELETE", "one"),
    ("FUNCTION", "LIST"),
    ("FUNCTION", "FLUSH"),
]


def prepared(client):
    client.call("FLUSHALL")
    client.call("SCRIPT", "FLUSH")
    client.call("FUNCTION", "FLUSH")
    client.call("RPUSH", "l", "a", "b", "c")
    client.call("HSET", "h", "f", "v")
    client.call("ZADD", "z", "1.5", "a")
    client.call("SADD", "s", "a")
    client.call("SADD", "words", "pear", "apple", "fig")


def same_calls(context, proto):
    theirs, ours = context.pair(proto)
    for client in (ours, theirs):
        prepared(client)
    for words in CALLS:
        context.same(ours.call(*words), theirs.call(*words), " ".join(words)[:90])
    ours.close()
    theirs.close()


@test(timeout=60)
def calls_are_answered_as_redis_does(context):
    same_calls(context, 2)


@test(timeout=60)
def calls_are_answered_as_redis_does_in_resp3(context):
    same_calls(context, 3)


@test()
def scripts_run_inside_transactions(context):
    theirs, ours = context.pair()
    for client in (ours, theirs):
        prepared(client)
    for words in (
        ("MULTI",),
        ("EVAL", "return redis.call('INCR',KEYS[1])", "1", "n"),
        ("EVAL", "return redis.call('INCR','other')", "0"),
        ("EVALSHA", NO_SHA, "0"),
        ("INCR", "n"),
        ("EXEC",),
        ("GET", "n"),
        ("GET", "other"),
    ):
        context.same(ours.call(*words), theirs.call(*words), " ".join(words))


@test()
def blocking_commands_do_not_block_in_scripts(context):
    context.sava_only("as in 7.2; 7.0 refuses them")
    client = context.client()
    prepared(client)
    eq(client.call("EVAL", "return redis.call('BLPOP','nolist',0)", "0"), resp.NIL)
    eq(client.call("EVAL", "return redis.call('BLPOP',KEYS[1],0)", "1", "l"), [b"l", b"a"])
    eq(client.call("EVAL", "return redis.call('BRPOPLPUSH','nolist','x',0)", "0"), resp.NIL)
    eq(client.call("EVAL", "return redis.call('BZPOPMIN','noset',0)", "0"), resp.NIL)


# ---- random scripts ----


def random_script(rng):
    keys = ["a", "b", "c", "d"]
    lines = ["local r = {}"]
    for _ in range(rng.randrange(1, 7)):
        key = rng.choice(["KEYS[1]", "KEYS[2]", "'%s'" % rng.choice(keys), "ARGV[1]"])
        lines.append(
            "r[#r+1] = redis.%s(%s)"
            % (
                rng.choice(["call", "pcall", "pcall"]),
                rng.choice(
                    [
                        "'SET',%s,ARGV[2]" % key,
                        "'GET',%s" % key,
                        "'INCR',%s" % key,
                        "'RPUSH',%s,ARGV[1],'x'" % key,
                        "'LRANGE',%s,0,-1" % key,
                        "'LPOP',%s" % key,
                        "'HSET',%s,'f',ARGV[2]" % key,
                        "'HGETALL',%s" % key,
                        "'DEL',%s" % key,
                        "'TYPE',%s" % key,
                        "'ZADD',%s,1,ARGV[1]" % key,
                        "'ZRANGE',%s,0,-1,'WITHSCORES'" % key,
                        "'EXISTS',%s,KEYS[1]" % key,
                        "'PEXPIRE',%s,100000" % key,
                        "'DBSIZE'",
                        "'APPEND',%s,'z'" % key,
                    ]
                ),
            )
        )
    if rng.random() < 0.1:
        lines.append("error('the end')")
    lines.append("return r")
    return "\n".join(lines)


@test(timeout=90)
def random_scripts_do_as_redis_does(context):
    rng = context.rng("scripts")
    theirs, ours = context.pair(3 if rng.random() < 0.5 else 2)
    for client in (ours, theirs):
        prepared(client)
        client.call("FLUSHALL")
    known = []
    for _ in range(600):
        script = rng.choice(known) if known and rng.random() < 0.7 else random_script(rng)
        known.append(script)
        keys = [rng.choice("abcd"), rng.choice("abcd")]
        words = ("EVAL", script, "2", *keys, rng.choice("abcd"), str(rng.randrange(100)))
        answers = [client.call(*words) for client in (ours, theirs)]
        eq(answers[0], answers[1], "%s %s: " % (script, words[3:]))
    for key in "abcd":
        eq(ours.call("EXISTS", key), theirs.call("EXISTS", key), key)
        eq(ours.call("TYPE", key), theirs.call("TYPE", key), key)


# ---- what a script leaves behind ----


@test(timeout=60)
def a_script_is_one_unit_of_the_log(context):
    context.sava_only()
    server = durable(context, "--appendonly", "yes", "--save", "")
    client = context.client(server)
    for _ in range(3):
        client.call("EVAL", "redis.call('SET',KEYS[1],'1') redis.call('INCR',KEYS[1])", "1", "a")
        client.call("EVAL", "redis.call('INCR','b') redis.call('INCR',KEYS[1])", "1", "a")
        client.call("EVAL", "redis.call('INCR',KEYS[1]) error('half way')", "1", "c")
        client.call("EVAL", "redis.set_repl(redis.REPL_NONE) redis.call('SET','lost','1')", "0")
        client.call("EVAL", "redis.call('SELECT',3) redis.call('INCR','in3')", "0")
    client.call("FUNCTION", "LOAD", answering("kept", "f", "f"))
    server.terminate()
    again = durable(context, "--appendonly", "yes", "--save", "", directory=server.dir)
    client = context.client(again)
    eq(client.call("MGET", "a", "b", "c", "lost"), [b"3", b"3", b"3", resp.NIL])
    eq(client.call("FCALL", "f", "0"), b"f")
    client.call("SELECT", "3")
    eq(client.call("GET", "in3"), b"3")
    check(b"multi" not in again.log().lower(), "nothing was passed over")


@test(timeout=60)
def scripts_log_renamed_commands_by_their_own_names(context):
    context.sava_only()
    options = ("--appendonly", "yes", "--save", "", "--rename-command", "SET", "put")
    server = durable(context, *options)
    call = "return redis.call('put', KEYS[1], ARGV[1])"
    eq(server.call("EVAL", call, "1", "a", "1"), resp.OK)
    check("Unknown Redis command" in str(server.call("EVAL", call.replace("put", "set"), "1", "a", "2")),
          "only by the new name")
    client = context.client(server)
    for words in (("MULTI",), ("EVAL", call, "1", "b", "1"), ("put", "c", "1"), ("EXEC",)):
        client.call(*words)
    server.terminate()
    server.restart()
    eq(server.call("MGET", "a", "b", "c"), [b"1", b"1", b"1"])


@test(timeout=60)
def a_stale_replica_runs_only_what_allows_it(context):
    context.sava_only("it starts both")
    ours = context.start("--save", "", "--appendonly", "no")
    theirs = context.start_stock("--save", "")
    sha = [server.call("SCRIPT", "LOAD", "return 1") for server in (ours, theirs)]
    for server in (ours, theirs):
        server.call("FUNCTION", "LOAD", answering("lib", "f", "f"))
        server.call("CONFIG", "SET", "replica-serve-stale-data", "no")
        server.call("REPLICAOF", "127.0.0.1", "1")
    allowed = "#!lua flags=allow-stale,no-writes\n"
    for words in (
        ("EVAL", "return 1", "0"), ("EVALSHA", sha[0], "0"), ("EVALSHA", b"0" * 40, "0"),
        ("EVAL_RO", "return 1", "0"), ("EVAL", "#!lua flags=no-writes\nreturn 1", "0"),
        ("EVAL", "#!lua\nreturn 1", "0"), ("EVAL", allowed + "return redis.call('ECHO','x')", "0"),
        ("EVAL", allowed + "return redis.pcall('GET','x')", "0"), ("FCALL", "f", "0"),
        ("FCALL", "unknown", "0"),
    ):
        eq(ours.call(*words), theirs.call(*words), str(words))


@test()
def a_script_publishes_to_its_own_client(context):
    """What it publishes is no answer of its commands; the client gets it beside the script's answer."""
    script = (
        "redis.call('PUBLISH', 'c', 'one') "
        "return {redis.call('PUBLISH', 'c', 'two'), redis.pcall('GET', KEYS[1])}"
    )
    for client in context.pair():
        client.call("HELLO", "3")
        client.send("SUBSCRIBE", "c")
        client.recv()
        client.send("EVAL", script, "1", "k")
        seen = [str(client.recv()) for _ in range(3)]
        for text in ("one", "two"):
            eq(sum("message" in one and text in one for one in seen), 1, text + " in %s" % seen)
        eq(sum("message" not in one and "1" in one for one in seen), 1, "the answer in %s" % seen)


@test(timeout=60)
def functions_move_by_dump_and_files(context):
    theirs, ours = context.pair()
    for client in (ours, theirs):
        prepared(client)
        client.call("FUNCTION", "LOAD", answering("one", "f", "one"))
        client.call("FUNCTION", "LOAD", answering("two", "g", "two"))
    dumps = [client.call("FUNCTION", "DUMP") for client in (ours, theirs)]
    for client in (ours, theirs):
        client.call("FUNCTION", "FLUSH")
    for client in (ours, theirs):
        eq(client.call("FUNCTION", "RESTORE", dumps[1]), resp.OK)
        # Redis names the library that its hash table has first.
        refused = client.call("FUNCTION", "RESTORE", dumps[1])
        names = (b"ERR Library one already exists", b"ERR Library two already exists")
        check(bytes(refused) in names, refused)
    for words in (
        ("FUNCTION", "RESTORE", dumps[1], "REPLACE"),
        ("FUNCTION", "RESTORE", dumps[1], "FLUSH"),
        ("FCALL", "f", "0"),
        ("FCALL", "g", "0"),
        ("FUNCTION", "RESTORE", dumps[1][:-1] + b"x"),
        ("FUNCTION", "RESTORE", dumps[1][: len(dumps[1]) // 2]),
    ):
        context.same(ours.call(*words), theirs.call(*words), "FUNCTION RESTORE")
    context.same(theirs.call("FUNCTION", "RESTORE", dumps[0], "FLUSH"), resp.OK, "ours at theirs")
    if context.is_sava:
        eq(ours.call("DEBUG", "RELOAD"), resp.OK)
        eq(ours.call("FCALL", "g", "0"), b"two")


@test(timeout=60)
def the_first_call_of_a_loaded_function_is_judged_by_its_flags(context):
    server = context.start(
        "--save", "", "--appendonly", "no", "--enable-debug-command", "yes",
        binary=None if context.is_sava else context.options.stock,
    )
    client = context.client(server)
    code = library(
        "lib",
        "redis.register_function('may_write', function() return 1 end)\n"
        "redis.register_function{function_name='reads', callback=function() return 1 end,"
        " flags={'no-writes'}}",
    )
    eq(client.call("FUNCTION", "LOAD", code), b"lib")
    eq(client.call("DEBUG", "RELOAD"), resp.OK)
    eq(client.call("CONFIG", "SET", "maxmemory", "1"), resp.OK)
    check("OOM" in str(client.call("FCALL", "may_write", "0")), "it may write")
    eq(client.call("FCALL", "reads", "0"), 1)


@test()
def monitors_see_the_script_and_its_commands(context):
    client = context.client()
    client.call("SET", "k", "v")
    watcher = context.client()
    eq(watcher.call("MONITOR"), resp.OK)
    client.call("EVAL", "return redis.call('GET',KEYS[1])", "1", "k")
    first, second = watcher.recv(), watcher.recv()
    check(b'"EVAL"' in first, first)
    check(b"lua] " in second and b'"GET" "k"' in second, second)


@test()
def statistics_count_what_a_script_calls(context):
    theirs, ours = context.pair()
    for client in (ours, theirs):
        prepared(client)
        client.call("CONFIG", "RESETSTAT")
        client.call("EVAL", "redis.call('GET',KEYS[1]) redis.pcall('INCR',KEYS[1])", "1", "l")
        client.call("EVAL", "redis.call('INCR',KEYS[1])", "1", "l")
        client.call("EVAL", "redis.call('GET')", "0")
        client.call("EVAL", "error('x')", "0")

    def counts(client):
        found = {}
        text = client.call("INFO", "commandstats") + client.call("INFO", "errorstats")
        for line in text.decode().splitlines():
            name, _, values = line.partition(":")
            if name.split("_")[-1] in ("get", "incr", "eval", "ERR", "WRONGTYPE"):
                found[name] = [v for v in values.split(",") if "usec" not in v]
        return found

    eq(counts(ours), counts(theirs))


# ---- many threads ----


def figure(server, name):
    return int(server.info_field(name, "stats"))


ADD_UP = (
    "local s = 0 for i,k in ipairs(KEYS) do s = s + tonumber(redis.call('GET',k)) end return s"
)


def transfers(server, seed, seconds, failures):
    """Moves amounts between accounts by scripts of every conduct; the sum stays the same."""
    rng = random.Random(seed)
    client = server.client()
    declared = (
        "local n = tonumber(ARGV[1]) redis.call('DECRBY',KEYS[1],n) redis.call('INCRBY',KEYS[2],n)"
        " return n"
    )
    undeclared = (
        "local n = tonumber(ARGV[1]) redis.call('DECRBY',ARGV[2],n) redis.call('INCRBY',ARGV[3],n)"
        " return n"
    )
    # Keeps to its keys, until an argument makes it stray after it has written.
    betrays = (
        "local n = tonumber(ARGV[1]) redis.call('DECRBY',KEYS[1],n)"
        " redis.call('INCRBY',ARGV[2] == '' and KEYS[2] or ARGV[2],n) return n -- %d"
    )
    names = ["account:%d" % i for i in range(24)]
    end = time.monotonic() + seconds
    round_number = 0
    while time.monotonic() < end:
        round_number += 1
        a, b = rng.sample(names, 2)
        n = str(rng.randrange(100))
        kind = rng.randrange(5)
        if kind == 0:
            client.call("EVAL", declared, "2", a, b, n)
        elif kind == 1:
            client.call("EVAL", undeclared, "0", n, a, b)
        elif kind == 2:
            script = betrays % (round_number // 20 % 7)
            stray = rng.choice(["", "", "", rng.choice(names)])
            if stray == a:
                stray = ""
            answer = client.call("EVAL", script, "2", a, b, n, stray)
            if isinstance(answer, resp.Error):
                # The one case that ends half way: what it had taken is put back.
                if b"from now on it runs alone" not in answer:
                    failures.append(answer)
                client.call("INCRBY", a, n)
        elif kind == 3:
            client.call("MULTI")
            client.call("DECRBY", a, n)
            add = "return redis.call('INCRBY',ARGV[2] or KEYS[1],ARGV[1]) -- %d"
            stray = [b] if rng.random() < 0.1 else []
            client.call("EVAL", add % (round_number // 20 % 7), "1", a if stray else b, n, *stray)
            answers = client.call("EXEC")
            if isinstance(answers[1], resp.Error):
                if b"from now on it runs alone" not in answers[1]:
                    failures.append(answers[1])
                client.call("INCRBY", a, n)
        else:
            total = client.call("EVAL", ADD_UP, str(len(names)), *names)
            if not isinstance(total, int):
                failures.append(total)
    client.close()


@test(timeout=90)
def scripts_of_all_kinds_keep_sums(context):
    context.sava_only()
    server = context.start("--save", "", "--appendonly", "no", threads=4)
    client = context.client(server)
    for i in range(24):
        client.call("SET", "account:%d" % i, "1000")
    failures = []
    seconds = 4.0
    workers = [
        threading.Thread(target=transfers, args=(server, seed, seconds, failures))
        for seed in range(8)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60 * SLOW)
        check(not worker.is_alive(), "a worker came to no end")
    eq(failures, [])
    names = ["account:%d" % i for i in range(24)]
    eq(client.call("EVAL", ADD_UP, "24", *names), 24000)
    check(figure(server, "script_runs_declared") > 0, "some ran beside others")
    check(figure(server, "script_runs_exclusive") > 0, "some ran alone")


@test(timeout=60)
def nobody_sees_half_a_script(context):
    context.sava_only()
    server = context.start("--save", "", "--appendonly", "no", threads=4)
    stop = threading.Event()
    wrong = []
    write = (
        "for i=1,#KEYS do redis.call('SET',KEYS[i],ARGV[1]) end"
        " if ARGV[2] then redis.call('SET',ARGV[2],ARGV[1]) end"
    )

    def writer(seed):
        rng = random.Random(seed)
        client = server.client()
        while not stop.is_set():
            mark = str(rng.randrange(1 << 30))
            if rng.random() < 0.5:
                client.call("EVAL", write, "3", "x", "y", "z", mark)
            else:
                client.call("EVAL", write + " return 1", "0", mark, "x")
        client.close()

    def reader():
        client = server.client()
        while not stop.is_set():
            both = "return {redis.call('GET',KEYS[1]),redis.call('GET',KEYS[2])}"
            values = client.call("EVAL", both, "2", "y", "z")
            if values[0] != values[1]:
                wrong.append(values)
            pair = client.call("MGET", "y", "z")
            if pair[0] != pair[1]:
                wrong.append(pair)
        client.close()

    workers = [threading.Thread(target=writer, args=(i,)) for i in range(4)]
    workers += [threading.Thread(target=reader) for _ in range(4)]
    for worker in workers:
        worker.start()
    time.sleep(2)
    stop.set()
    for worker in workers:
        worker.join(30 * SLOW)
        check(not worker.is_alive(), "a worker came to no end")
    eq(wrong, [])


@test(timeout=60)
def a_script_that_strays_runs_again_alone(context):
    context.sava_only()
    server = context.start("--save", "", "--appendonly", "no", threads=4)
    client = context.client(server)
    # Several other keys: one alone may have the lock of "k".
    script = (
        "local v = redis.call('MGET', KEYS[1], unpack(ARGV))"
        " redis.call('SET', KEYS[1], 'x') return v"
    )
    others = ["other%d" % i for i in range(8)]
    eq(client.call("EVAL", script, "1", "k"), [resp.NIL])
    eq(client.call("EVAL", script, "1", "k"), [b"x"])
    check(figure(server, "script_runs_declared") >= 1, "it runs beside others")
    eq(figure(server, "script_runs_restarted"), 0)
    eq(client.call("EVAL", script, "1", "k", *others), [b"x"] + [resp.NIL] * 8)
    eq(figure(server, "script_runs_restarted"), 1)
    late = (
        "redis.call('SET', KEYS[1], 'a')"
        " for i,k in ipairs(ARGV) do redis.call('INCR', k) end return 1"
    )
    eq(client.call("EVAL", late, "1", "k"), 1)
    eq(client.call("EVAL", late, "1", "k"), 1)
    eq(client.call("EVAL", late, "1", "k", *others), 1)
    check(figure(server, "script_locks_extended") > 0, "locks were taken")
    eq(client.call("MGET", *others), [b"1"] * 8)


@test(timeout=60)
def transactions_of_scripts_that_keep_to_their_keys_share_the_server(context):
    context.sava_only()
    server = context.start("--save", "", "--appendonly", "no", threads=4)
    client = context.client(server)
    others = ["other%d" % i for i in range(8)]

    def execute(*calls, watch=()):
        if watch:
            client.call("WATCH", *watch)
        client.call("MULTI")
        for call in calls:
            eq(client.call(*call), resp.Status(b"QUEUED"))
        before = [figure(server, "script_runs_" + name) for name in NAMES]
        answers = client.call("EXEC")
        after = [figure(server, "script_runs_" + name) for name in NAMES]
        return answers, dict(zip(NAMES, (b - a for a, b in zip(before, after))))

    NAMES = ("declared", "exclusive", "restarted")
    read = "return redis.call('MGET', KEYS[1], unpack(ARGV))"
    write = (
        "local n = redis.call('INCR', KEYS[1])"
        " for i,k in ipairs(ARGV) do redis.call('INCR', k) end return n"
    )
    for script in (read, write):
        client.call("EVAL", script, "1", "n")  # it is learned
    answers, runs = execute(
        ("EVAL", write, "1", "n"), ("GET", "n"), ("EVAL", read, "1", "n"), watch=["n", "w"]
    )
    eq(answers, [2, b"2", [b"2"]])
    eq(runs, {"declared": 2, "exclusive": 0, "restarted": 0})
    # One strays when nothing was done yet: the whole transaction runs again, alone.
    answers, runs = execute(
        ("GET", "n"), ("SELECT", "1"), ("SELECT", "0"), ("EVAL", read, "1", "n", *others)
    )
    eq(answers[3], [b"2"] + [resp.NIL] * 8)
    answers, runs = execute(("GET", "n"), ("EVAL", read + " -- 2", "1", "n"))
    answers, runs = execute(("GET", "n"), ("EVAL", read + " -- 2", "1", "n", *others), watch=["w"])
    eq(answers, [b"2", [b"2"] + [resp.NIL] * 8])
    eq(runs, {"declared": 0, "exclusive": 1, "restarted": 1})
    # One strays after something was written: it takes the locks.
    answers, runs = execute(
        ("SET", "first", "1"), ("EVAL", write, "1", "n", *others), ("MGET", *others)
    )
    eq(answers, [resp.OK, 3, [b"1"] * 8])
    eq(runs["restarted"], 0)
    # What is watched stays watched until it has run.
    client.call("WATCH", "w")
    client.call("MULTI")
    client.call("EVAL", "return redis.call('SET', KEYS[1], 'x')", "1", "w")
    with context.client(server) as second:
        second.call("SET", "w", "theirs")
    eq(client.call("EXEC"), resp.NIL_ARRAY)
    eq(client.call("GET", "w"), b"theirs")


@test(timeout=60)
def two_scripts_that_stray_at_once_do_not_lock_each_other_out(context):
    context.sava_only()
    server = context.start("--save", "", "--appendonly", "no", threads=4)
    workers, ends = [], []

    # Each writes its own key, then wants the other's.
    def work(own, other):
        client = server.client()
        for round_number in range(60):
            script = (
                "redis.call('INCR',KEYS[1]) for i=1,20000 do end"
                " return redis.call('INCR',ARGV[1] or KEYS[1]) -- %d" % round_number
            )
            client.call("EVAL", script, "1", own)
            client.call("EVAL", script, "1", own)
            client.call("EVAL", script, "1", own, other)
        client.close()
        ends.append(own)

    for own, other in (("a", "b"), ("b", "a"), ("a", "c"), ("c", "a")):
        workers.append(threading.Thread(target=work, args=(own, other)))
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(40 * SLOW)
        check(not worker.is_alive(), "they lock each other out")
    eq(len(ends), 4)


# ---- scripts that take long ----


def busy(server):
    client = server.client(timeout=1.0 * SLOW)
    try:
        return "BUSY" in str(client.call("GET", "x"))
    except TimeoutError:
        return False
    finally:
        client.close()


def begin(server, *words):
    client = server.client()
    client.send(*words)
    return client


@test(timeout=60)
def a_long_script_can_be_killed_from_any_connection(context):
    server = context.sut
    server.call("CONFIG", "SET", "lua-time-limit", "50")
    kill_from_anywhere(server)
    server.call("CONFIG", "SET", "lua-time-limit", "5000")


@test(timeout=60)
def a_long_script_on_the_only_thread_can_be_killed(context):
    context.sava_only()
    kill_from_anywhere(
        context.start(
            "--save", "", "--appendonly", "no", "--lua-time-limit", "50", threads=1
        )
    )


def kill_from_anywhere(server):
    others = [server.client() for _ in range(8)]
    for other in others:
        eq(other.call("PING"), resp.Status(b"PONG"))
    stubborn = "while true do pcall(redis.call,'GET',KEYS[1]) end"
    for words in (("EVAL", LONG, "0"), ("EVAL", stubborn, "1", "k")):
        runs = begin(server, *words)
        until(lambda: busy(server), what="the script to be busy")
        for other in others:
            check("BUSY" in str(other.call("GET", "x")), "BUSY everywhere")
            check("BUSY" in str(other.call("FUNCTION", "KILL")), "not a function")
        eq(others[3].call("SCRIPT", "KILL"), resp.OK)
        check("killed by user" in str(runs.recv()), "it was told")
        runs.close()
        until(lambda: not busy(server), what="the server to go on")
        for other in others:
            eq(other.call("GET", "x"), resp.NIL)
    for other in others:
        check("NOTBUSY" in str(other.call("SCRIPT", "KILL")), "nothing runs")
        other.close()


@test(timeout=60)
def who_is_read_together_with_a_long_script_is_told(context):
    """All that is sent while the only thread sleeps is one batch."""
    context.sava_only()
    server = context.start(
        "--save", "", "--appendonly", "no", "--lua-time-limit", "50",
        "--enable-debug-command", "yes", "--rename-command", "EVAL", "EV", threads=1,
    )
    sleeper, runs = server.client(), server.client()
    others = [server.client() for _ in range(4)]
    for client in (runs, *others):
        eq(client.call("PING"), resp.Status(b"PONG"))
    sleeper.send("DEBUG", "SLEEP", "0.3")
    time.sleep(0.1)
    others[0].send("SET", "k", "v")  # before the script
    time.sleep(0.02)
    runs.send("EV", LONG, "0")
    runs.send("ECHO", "behind it")
    time.sleep(0.02)
    for other in others:
        other.send("GET", "k")
    others[1].send("MULTI")
    eq(sleeper.recv(), resp.OK)
    eq([others[0].recv(), others[0].recv()], [resp.OK, b"v"])  # they came first
    for other in others[1:]:
        check("BUSY" in str(other.recv()), "it is told at once")
    eq(others[1].recv(), resp.OK)
    check("BUSY" in str(others[1].call("GET", "k")), "also in a transaction")
    check("BUSY" in str(others[2].call("GET", "k")), "and again")
    others[3].close()
    eq(others[2].call("SCRIPT", "KILL"), resp.OK)
    check("killed by user" in str(runs.recv()), "it was told")
    eq(runs.recv(), b"behind it")
    check("EXECABORT" in str(others[1].call("EXEC")), "a command of it was refused")
    for other in others[:3]:
        eq(other.call("GET", "k"), b"v")


@test(timeout=60)
def a_long_script_that_has_written_cannot_be_killed(context):
    server = context.start(
        "--save", "", "--appendonly", "no", "--lua-time-limit", "50",
        binary=None if context.is_sava else context.options.stock,
    )
    runs = begin(server, "EVAL", "redis.call('SET',KEYS[1],'x') " + LONG, "1", "k")
    until(lambda: busy(server), what="the script to be busy")
    client = server.client()
    check("UNKILLABLE" in str(client.call("SCRIPT", "KILL")), "it has written")
    check("BUSY" in str(client.call("SHUTDOWN")), "only without saving")
    client.send("SHUTDOWN", "NOSAVE")
    eq(server.wait_exit(), 0, "its end")
    runs.close()


@test(timeout=60)
def the_end_waits_for_a_long_script(context):
    """A signal comes behind the script; meanwhile the server is reached, and SHUTDOWN NOSAVE ends it."""
    def start():
        options = ("--save", "", "--appendonly", "yes", "--lua-time-limit", "50")
        if context.is_sava:
            return durable(context, *options)
        return context.start(*options, binary=context.options.stock)

    for write in (False, True):
        server = start()
        first = "redis.call('SET',KEYS[1],'x') " if write else ""
        runs = begin(server, "EVAL", first + LONG, "1", "k")
        until(lambda s=server: busy(s), what="the script to be busy")
        server.process.terminate()
        time.sleep(0.3)
        check(busy(server), "it is still reached")
        client = server.client()
        if write:
            client.send("SHUTDOWN", "NOSAVE")
        else:
            eq(client.call("SCRIPT", "KILL"), resp.OK)
        eq(server.wait_exit(), 0, "its end")
        runs.close()
    if not context.is_sava:
        return
    server = start()
    client = context.client(server)
    client.call("CONFIG", "SET", "lua-time-limit", "5000")
    runs = begin(server, "EVAL", "for i = 1, 1000000 do redis.call('EXISTS', KEYS[1]) end "
                 "redis.call('SET', KEYS[1], 'x')", "1", "k")
    time.sleep(0.1)
    server.terminate()
    runs.close()
    server.restart()
    eq(server.call("GET", "k"), b"x", "all of the script")


@test(timeout=90)
def a_signal_does_not_wait_for_ever(context):
    """After shutdown-timeout the process ends; what the script has done so far is not kept."""
    context.sava_only("redis-server waits")
    server = durable(context, "--save", "", "--appendonly", "yes", "--lua-time-limit", "50",
                     "--shutdown-timeout", "1")
    eq(server.call("SET", "before", "1"), resp.OK)
    runs = begin(server, "EVAL", "redis.call('SET', KEYS[1], 'x') " + LONG, "1", "k")
    until(lambda: busy(server), what="the script to be busy")
    eq(server.terminate(), 0, "its end")
    runs.close()
    server.restart()
    eq(server.call("MGET", "before", "k"), [b"1", resp.NIL])


@test(timeout=60)
def who_hangs_up_while_a_script_runs_takes_nothing(context):
    context.sava_only()
    server = context.start("--save", "", "--appendonly", "no", "--lua-time-limit", "50")
    waiters = [server.client() for _ in range(8)]
    for waits, waiter in enumerate(waiters, 1):
        waiter.send("BLPOP", "l", "0")
        until(lambda n=waits: server.info_field("blocked_clients") == str(n), what="it waits")
    runs = begin(server, "EVAL", "for i = 1, 3000000 do redis.call('EXISTS', KEYS[1]) end "
                 "redis.call('RPUSH', KEYS[1], 1, 2, 3)", "1", "l")
    until(lambda: busy(server), what="the script to be busy")
    for waiter in waiters[:5]:
        waiter.close()
    runs.recv()
    eq([waiter.recv() for waiter in waiters[5:]], [[b"l", b"%d" % n] for n in (1, 2, 3)])
    eq(server.call("EXISTS", "l"), 0)


def kills(server):
    client = server.client(timeout=1.0 * SLOW)
    try:
        return client.call("SCRIPT", "KILL") == resp.OK
    except TimeoutError:
        return False
    finally:
        client.close()


@test(timeout=60)
def a_long_script_under_load_is_killed(context):
    context.sava_only()
    server = context.start("--save", "", "--appendonly", "no", "--lua-time-limit", "50", threads=4)
    stop = threading.Event()
    strange = []

    def load(i):
        client = server.client()
        while not stop.is_set():
            answer = client.call("INCR", "n%d" % i)
            if isinstance(answer, resp.Error) and "BUSY" not in str(answer):
                strange.append(answer)
            answer = client.call("MSET", "n%d" % i, "1", "m", "2", "k", "3")
            if isinstance(answer, resp.Error) and "BUSY" not in str(answer):
                strange.append(answer)
        client.close()

    workers = [threading.Thread(target=load, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    # The second kind runs under its key's lock: the first calls have shown that it keeps to it.
    steady = "if ARGV[1] then while true do end end return redis.call('GET',KEYS[1])"
    server.call("EVAL", steady, "1", "k")
    server.call("EVAL", steady, "1", "k")
    for words in (("EVAL", LONG, "0"), ("EVAL", steady, "1", "k", "long")) * 2:
        runs = begin(server, *words)
        until(lambda: kills(server), what="the script to be killed")
        check("killed by user" in str(runs.recv()), "it was told")
        runs.close()
    stop.set()
    for worker in workers:
        worker.join(30 * SLOW)
        check(not worker.is_alive(), "a worker came to no end")
    eq(strange, [])


@test(timeout=60)
def a_long_function_is_killed_as_a_function(context):
    server = context.start(
        "--save", "", "--appendonly", "no", "--lua-time-limit", "50",
        binary=None if context.is_sava else context.options.stock,
    )
    spin = "redis.register_function('spin', function() %s end)" % LONG
    server.call("FUNCTION", "LOAD", library("l", spin))
    runs = begin(server, "FCALL", "spin", "0")
    until(lambda: busy(server), what="the function to be busy")
    client = server.client()
    stats = client.call("FUNCTION", "STATS")
    eq(stats[1][:4], [b"name", b"spin", b"command", [b"FCALL", b"spin", b"0"]])
    check("FUNCTION KILL" in str(client.call("SCRIPT", "KILL")), "it is a function")
    eq(client.call("FUNCTION", "KILL"), resp.OK)
    check("killed by user" in str(runs.recv()), "it was told")


@test(timeout=60)
def memory_without_end_is_an_error(context):
    context.sava_only()
    server = context.start("--save", "", "--appendonly", "no", "--script-max-memory", "8mb")
    client = context.client(server)
    greedy = "local t = {} while true do t[#t+1] = string.rep('x', 100000) .. #t end"
    for _ in range(5):
        check(isinstance(client.call("EVAL", greedy, "0"), resp.Error), "it has a bound")
        eq(client.call("EVAL", "return 1", "0"), 1)


# ---- settings ----


@test()
def keys_may_have_to_be_declared(context):
    context.sava_only()
    server = context.start("--save", "", "--appendonly", "no", "--script-keys", "strict")
    client = context.client(server)
    eq(client.call("EVAL", "return redis.call('SET',KEYS[1],'v')", "1", "k"), resp.OK)
    answer = client.call("EVAL", "return redis.call('SET','other','v')", "1", "k")
    check("undeclared key" in str(answer), answer)
    eq(client.call("CONFIG", "SET", "script-keys", "exclusive"), resp.OK)
    eq(client.call("EVAL", "return redis.call('SET','other','v')", "1", "k"), resp.OK)


@test()
def scripts_seen_once_make_room_for_others(context):
    context.sava_only()
    client = context.client()
    client.call("SCRIPT", "FLUSH")
    kept = client.call("SCRIPT", "LOAD", "return 'kept'").decode()
    for i in range(600):
        client.call("EVAL", "return %d" % i, "0")
    eq(int(context.sut.info_field("number_of_cached_scripts")), 501)
    first = hashlib.sha1(b"return 0").hexdigest()
    last = hashlib.sha1(b"return 599").hexdigest()
    eq(client.call("SCRIPT", "EXISTS", kept, first, last), [1, 0, 1])


# ---- clients ----


@test(timeout=60)
def command_line_tools_run_scripts(context):
    path = context.temp_dir() + "/script.lua"
    with open(path, "w", encoding="utf-8") as file:
        file.write("return {KEYS[1], ARGV[1], redis.call('SET', KEYS[1], ARGV[1])}")
    text = cli(context, "--eval", path, "k", ",", "v")
    eq(text.split(), ["1)", '"k"', "2)", '"v"', "3)", "OK"] if '"k"' in text else ["k", "v", "OK"])
    if context.is_sava:
        line = [context.options.server, "cli", "-p", str(context.sut.port)]
        text = run(line + ["--eval", path, "k", ",", "v"])
        check("OK" in text, text)


@test(timeout=240)
def libraries_of_npm_do_the_same_as_beside_redis(context):
    """The program in scripts_test.mjs, on both servers; its packages are installed on first use."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if not npm or not node:
        raise Skip("npm is not installed (Debian packages nodejs, npm)")
    if not os.path.isdir(os.path.join(HERE, "node_modules", "bull")):
        run([npm, "ci", "--no-audit", "--no-fund"], seconds=120, cwd=HERE)
    program = os.path.join(HERE, "scripts_test.mjs")
    texts = [
        run([node, program, str(server.port)], seconds=60) for server in (context.sut, context.stock)
    ]
    check(texts[1].strip().endswith('"all good"'), texts[1])
    eq(texts[0], texts[1])


@test(timeout=90)
def a_crash_leaves_no_half_of_a_script(context):
    context.sava_only()
    server = durable(context, "--save", "", "--appendonly", "yes", threads=4)
    move = (
        "redis.call('DECRBY',KEYS[1] or ARGV[2],ARGV[1]) "
        "return redis.call('INCRBY',KEYS[2] or ARGV[3],ARGV[1])"
    )
    names = ["account:%d" % i for i in range(10)]

    def work(seed):
        rng = random.Random(seed)
        client = server.client()
        try:
            while True:
                pair = rng.sample(names, 2)
                n = str(rng.randrange(50))
                if rng.random() < 0.5:
                    client.call("EVAL", move, "2", *pair, n)
                else:
                    client.call("EVAL", move + " -- undeclared", "0", n, *pair)
        except (resp.ConnectionClosed, OSError):
            client.close()

    for round_number in range(3):
        workers = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for worker in workers:
            worker.start()
        time.sleep(0.4)
        server.kill()
        for worker in workers:
            worker.join(20 * SLOW)
            check(not worker.is_alive(), "a worker came to no end")
        server.restart()
        values = [int(value) for value in server.call("MGET", *names) if not resp.is_null(value)]
        check(len(values) > 0 or round_number == 0, "nothing was kept")
        eq(sum(values), 0, "the sum after a crash")


@test(timeout=60)
def http_answers_503_while_a_script_takes_long(context):
    context.sava_only()
    port = free_port()
    server = context.start(
        "--save", "", "--appendonly", "no", "--lua-time-limit", "50", "--http-port", str(port)
    )

    def status():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10 * SLOW)
        connection.request("GET", "/associations/x")
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status

    before = status()
    check(before in (200, 404), before)
    runs = begin(server, "EVAL", LONG, "0")
    until(lambda: busy(server), what="the script to be busy")
    eq([status() for _ in range(6)], [503] * 6)
    eq(server.call("SCRIPT", "KILL"), resp.OK)
    check("killed by user" in str(runs.recv()), "it was told")
    eq(status(), before)


@test()
def reads_of_a_script_are_tracked_for_its_client(context):
    """What a client's script has read is invalidated for the client when it changes (as in 7.2; 7.0
    tracks the declared keys instead)."""
    context.sava_only()
    client, other = context.client(proto=3), context.client()
    other.call("MSET", "a", "1", "b", "2", "c", "3")
    client.call("CLIENT", "TRACKING", "ON")
    client.call("EVAL", "return redis.call('GET',ARGV[1]) .. redis.call('GET','b')", "1", "c", "a")
    for key in ("a", "b", "c"):
        other.call("SET", key, "new")
    client.send("PING")
    frames = []
    while not frames or frames[-1] != resp.Status(b"PONG"):
        frames.append(client.recv())
    eq([frame[1] for frame in frames[:-1]], [[b"a"], [b"b"]])


@test()
def the_slow_log_has_the_time_of_the_whole_script(context):
    for server in (context.stock, context.sut):
        client = context.client(server)
        client.call("CONFIG", "SET", "slowlog-log-slower-than", "0")
        client.call("SLOWLOG", "RESET")
        client.call("EVAL", "for i=1,2000 do redis.call('PING') end return 1", "0")
        client.call("CONFIG", "SET", "slowlog-log-slower-than", "10000")
        entries = client.call("SLOWLOG", "GET", "10")
        eq([entry[3][0] for entry in entries[:2]], [b"EVAL", b"PING"], server.name)
        check(entries[0][2] > 20 * entries[1][2], "%s: %s" % (server.name, entries[:2]))
        eq(entries[1][4], b"?:0", server.name)
