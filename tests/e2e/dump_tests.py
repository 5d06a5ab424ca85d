"""DUMP and RESTORE at the byte level: payloads made by hand, whole, odd and damaged.

A payload is an RDB body, two bytes of RDB version (little-endian) and a CRC64 (little-endian).
"""

import resp
from durability import durable, refused_start
from harness import check, eq, test, until

CURRENT = 10
BAD = resp.Error(b"ERR Bad data format")
WRONG = resp.Error(b"ERR DUMP payload version or checksum are wrong")


def make_table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0x95AC9329AC4BC9B5 if crc & 1 else crc >> 1
        table.append(crc)
    return table


TABLE = make_table()


def crc64(data):
    crc = 0
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc


def payload(body, version=CURRENT):
    data = body + version.to_bytes(2, "little")
    return data + crc64(data).to_bytes(8, "little")


# name: body; both servers must answer the same, and hold the same value afterwards.
BODIES = {
    "a short string": b"\x00\x05hello",
    "an empty string": b"\x00\x00",
    "an 8-bit integer": b"\x00\xc0\xfb",
    "a 16-bit integer": b"\x00\xc1\x00\x80",
    "a 32-bit integer": b"\x00\xc2\x00\x00\x00\x80",
    "a number as text": b"\x00\x0212",
    "a length of 14 bits": b"\x00\x41\x00" + b"x" * 256,
    "a length of 32 bits": b"\x00\x80\x00\x00\x00\x03abc",
    "a length of 64 bits": b"\x00\x81\x00\x00\x00\x00\x00\x00\x00\x03abc",
    "compressed": b"\x00\xc3\x09\x40\x64\x01aa\xe0\x57\x00\x01aa",
    "compressed, with a wrong length": b"\x00\xc3\x09\x40\x65\x01aa\xe0\x57\x00\x01aa",
    "compressed, damaged": b"\x00\xc3\x03\x40\x64\xff\xff\xff",
    "an unknown string encoding": b"\x00\xc4\x00",
    "an unknown type": b"\x63\x05hello",
    "an opcode instead of a type": b"\xff",
    "a string cut off": b"\x00\x3fhello",
    "a length beyond memory": b"\x00\x81\x7f\xff\xff\xff\xff\xff\xff\xff",
    "a length of 4 GB": b"\x00\x80\xff\xff\xff\xffabc",
    "a type and nothing else": b"\x00",
    "nothing": b"",
    "more than the value": b"\x00\x05hello and more",
}


@test()
def checksum_of_this_test(context):
    eq(crc64(b"123456789"), 0xE9C6D914C4B8D9CA)
    client = context.client(context.stock)
    client.call("SET", "k", "hello")
    eq(client.call("DUMP", "k"), payload(b"\x00\x05hello"))


@test()
def bodies(context):
    for name, body in BODIES.items():
        answers = []
        for server in (context.stock, context.sut):
            client = context.client(server)
            answer = [client.call("RESTORE", "r", "0", payload(body), "REPLACE")]
            answer += [client.call("GET", "r"), client.call("OBJECT", "ENCODING", "r")]
            client.call("DEL", "r")
            answers.append(answer)
        context.same(answers[1], answers[0], name)


@test()
def versions(context):
    for version in (0, 1, 5, 9, 10):
        answers = [
            server.call("RESTORE", "r", "0", payload(b"\x00\x05hello", version), "REPLACE")
            for server in (context.stock, context.sut)
        ]
        context.same(answers[1], answers[0], "version %d" % version)
    for version in (80, 65535):
        for server in (context.stock, context.sut):
            eq(
                server.call("RESTORE", "r", "0", payload(b"\x00\x05hello", version), "REPLACE"),
                WRONG,
            )
    if context.is_sava:
        reply = context.sut.call("RESTORE", "r", "0", payload(b"\x00\x05hello", 11), "REPLACE")
        context.same(reply, resp.OK, "a payload of Redis 7.2")


@test()
def every_damaged_byte_is_seen(context):
    whole = payload(b"\x00\x05hello")
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 0x10
        reply = context.sut.call("RESTORE", "r", "0", bytes(damaged))
        context.same(reply, WRONG, "byte %d changed" % place)
        reply = context.sut.call("RESTORE", "r", "0", whole[:place])
        context.same(reply, WRONG, "cut at byte %d" % place)
    eq(context.sut.call("EXISTS", "r"), 0)


@test()
def checksums_can_be_left_out(context):
    for server in (context.start_stock(), context.start()):
        bad = payload(b"\x00\x03abc")[:-8] + b"checksum"
        eq(server.call("RESTORE", "k", "0", bad), WRONG, server.name)
        eq(server.call("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "1"), resp.OK, server.name)
        eq(server.call("RESTORE", "k", "0", bad), resp.OK, server.name)
        eq(server.call("GET", "k"), b"abc")
        eq(server.call("DEBUG", "SET-SKIP-CHECKSUM-VALIDATION", "0"), resp.OK, server.name)
        eq(server.call("RESTORE", "m", "0", bad), WRONG, server.name)


@test()
def a_refused_payload_changes_nothing(context):
    for server in (context.stock, context.sut):
        client = context.client(server)
        client.call("SET", "k", "old", "PXAT", "4102444800000")
        for bad, error in ((payload(b"\x00\x3fhello"), BAD), (b"x" * 20, WRONG)):
            eq(client.call("RESTORE", "k", "0", bad, "REPLACE"), error, server.name)
            eq(client.call("GET", "k"), b"old", server.name)
            eq(client.call("PEXPIRETIME", "k"), 4102444800000, server.name)


@test()
def the_log_says_why_a_payload_is_refused(context):
    context.sava_only("Redis has other words for it")
    server = context.start()
    client = context.client(server)
    good = payload(b"\x00\x03abc")
    cases = (
        ("seal", good[:-1] + b"?", "at byte 7: the checksum is wrong"),
        ("version", payload(b"\x00\x03abc", 99), "at byte 5: RDB version 99 is newer than 12"),
        ("short", b"abc", "3 bytes are less than version and checksum"),
        ("string", payload(b"\x00\x05abc"), "at byte 2: integrity check failed for a value of RDB "
         "type 0: the bytes end early"),
        ("list", payload(b"\x12\x01\x02\x03abc"), "at byte 7: integrity check failed for a value of "
         "RDB type 18: the listpack or ziplist of a list"),
        ("set", payload(b"\x02\x02\x01a\x01a"), "at byte 6: integrity check failed for a value of "
         "RDB type 2: no member of a set twice"),
        ("hash", payload(b"\x10\x03abc"), "at byte 5: integrity check failed for a value of RDB type "
         "16: the listpack, ziplist or zipmap of a hash"),
        ("type", payload(b"\xc8\x03abc"), "at byte 1: integrity check failed for a value of RDB type "
         "200: a type that is known here"),
    )
    for key, bytes_, reason in cases:
        check(resp.is_error(client.call("RESTORE", key, "0", bytes_)), key)
        line = 'RESTORE of key "%s" is refused: %s\n' % (key, reason)
        until(lambda: line.encode() in server.log(), 5, line)
    eq(client.call("DBSIZE"), 0)


@test()
def the_log_says_why_a_file_is_refused(context):
    context.sava_only("Redis has other words for it")
    server = durable(context, "--save", "", "--appendonly", "no", started=False)
    body = b"REDIS0010" + b"\x02\x01k\x02\x01a\x01a" + b"\xff"
    with open(server.path("dump.rdb"), "wb") as file:
        file.write(body + bytes(8))
    log = refused_start(server)
    check("at offset 12: key \"k\": its value of RDB type 2 (set) is damaged or cut off: integrity "
          "check failed 5 bytes into it: no member of a set twice" in log, log)


@test()
def payloads_go_both_ways(context):
    """Values of every kind and size: what one server dumps the other one restores."""
    rng = context.rng("dump")
    values = [b"", b"0", b"-1", b"127", b"128", b"32768", b"2147483648", b"-9223372036854775808"]
    values += [
        b"007",
        b"1.5",
        b"x" * 20,
        b"x" * 21,
        b"x" * 63,
        b"x" * 64,
        b"x" * 16384,
        bytes(300),
    ]
    values += [rng.randbytes(size) for size in (1, 43, 44, 45, 300, 70000, 1 << 20)]
    values += [bytes(rng.choice(b"ab") for _ in range(size)) for size in (30, 1000, 100000)]
    values += [b"abcdefgh" * 40000]
    stock, sut = context.pair()
    for value in values:
        for source, target in ((stock, sut), (sut, stock)):
            source.call("SET", "k", value)
            dump = source.call("DUMP", "k")
            check(isinstance(dump, bytes), resp.show(dump, 80))
            eq(target.call("RESTORE", "k", "0", dump, "REPLACE"), resp.OK)
            check(target.call("GET", "k") == value, "%d bytes came back changed" % len(value))
            expected = source.call("OBJECT", "ENCODING", "k")
            eq(
                target.call("OBJECT", "ENCODING", "k"),
                expected,
                "a value of %d bytes" % len(value),
            )
    sut.call("SET", "k", b"abc" * 10000)
    check(len(sut.call("DUMP", "k")) < 5000, "rdbcompression does not compress")
