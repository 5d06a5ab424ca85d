"""Random command streams over a small universe of keys, for the differential test.

A stream is a list of items, fully determined by its random generator, so a stream can be replayed
and shortened:

    (connection, args)              a command; connection is 0 or 1
    (connection, args, "inline")    the same as an inline command
    (connection, options, "scan")   a whole SCAN iteration with these options
    (connection, [key], "swap")     DUMP on both servers, each payload restored by the other one
    (connection, [], "randomkey")   RANDOMKEY, and does the key exist?

The last three are left out while the connection is in a transaction.

What would depend on the clock is kept apart: relative times are multiples of 100 s that never
repeat within a stream, absolute ones are far in the future or long past, and a SET with a time in
the past is followed by a read of the key, since before it Redis itself leaves open whether the key
is counted.
"""

KEYS = [b"k%d" % i for i in range(10)] + [b"", b"bin\x00\xff key", b"{tag}a", b"long" * 30]
DATABASES = 4
FAR_MS = [4102444800000, 4102444800001, 4102444799999, 7258118400000, 32503680000000]
FAR_S = [4102444800, 4102444801, 7258118400]
# January 1970; read as a relative time by a corrupted command, still long enough.
PAST = {"EXAT": "1000000", "PXAT": "1000000000"}
BAD_INTEGERS = [
    "abc",
    "",
    " 1",
    "1 ",
    "1.5",
    "0x10",
    "1e3",
    "+5",
    "-0",
    "007",
    "9223372036854775808",
    "-9223372036854775809",
    "nan",
    "99999999999999999999999",
]
EDGE_INTEGERS = ["0", "-1", "9223372036854775807", "-9223372036854775808"]
# No number here is a short time: a corrupted command must not create a key that soon expires.
GARBAGE = BAD_INTEGERS + EDGE_INTEGERS + ["NX", "GET", "EX", "*", "\x00", "é", "COUNT", "REPLACE"]
FLOATS = "0.1 0.2 -0.3 1 -1 3.0e3 1e-5 5.0 1.5 100.25 -7 1e10 0 1e17 0.0001 123456.789".split()
BAD_FLOATS = ["abc", "", " 1", "1 ", "nan", "inf", "-inf", "1e5000", "1,5", "--1"]
PATTERNS = "* k* k? k[0-4] k[^0-4] [a-z]* bin* \\* k\\1 nope *1 k[5-0] [ k** {tag}* l*g".split()


class Stream:
    def __init__(self, rng, payloads):
        self.rng = rng
        self.payloads = payloads
        self.in_multi = [False, False]
        self.relative = list(range(1000, 1000 + 100 * 4000, 100))
        rng.shuffle(self.relative)
        self.table = [entry for entry in _commands(self) for _ in range(entry[0])]

    def make(self, length):
        items = []
        connection = 0
        while len(items) < length:
            if self.rng.random() < 0.08:
                connection = 1 - connection
            items += self._group(connection)
        for connection in (0, 1):
            if self.in_multi[connection]:
                items.append((connection, [b"EXEC"]))
        return items

    def _group(self, connection):
        rng = self.rng
        if self.in_multi[connection]:
            if rng.random() < 0.12:
                self.in_multi[connection] = False
                return [(connection, [b"DISCARD" if rng.random() < 0.15 else b"EXEC"])]
        else:
            special = rng.random()
            if special < 0.03:
                self.in_multi[connection] = True
                return [(connection, [b"MULTI"])]
            if special < 0.045:
                return [(connection, [b"WATCH"] + self.keys(1, 3))]
            if special < 0.05:
                return [(connection, [b"UNWATCH"])]
            if special < 0.06:
                return [(connection, self._scan_options(), "scan")]
            if special < 0.07:
                return [(connection, [self.key()], "swap")]
            if special < 0.075:
                return [(connection, [], "randomkey")]
        commands = rng.choice(self.table)[1]()
        if not isinstance(commands[0], list):
            commands = [commands]
        items = [self._finish(connection, commands[0], True)]
        for command in commands[1:]:
            if command[0] == "EXISTS" and len(items[0][1]) > 1:
                command = ["EXISTS", items[0][1][1]]
            items.append(self._finish(connection, command, False))
        return items

    def _finish(self, connection, command, may_corrupt):
        """An item; a group's later commands stay whole and read the key the first one wrote."""
        args = [a if isinstance(a, bytes) else str(a).encode() for a in command]
        if may_corrupt and self.rng.random() < 0.04:
            args = self._corrupt(args)
        if self.rng.random() < 0.1:
            args[0] = bytes(
                self.rng.choice([c, c ^ 32]) if chr(c).isalpha() else c for c in args[0]
            )
        plain = all(a and all(48 <= c <= 122 and c not in b"\\`^[]" for c in a) for a in args)
        if plain and sum(map(len, args)) < 1000 and self.rng.random() < 0.05:
            return (connection, args, "inline")
        return (connection, args)

    def _corrupt(self, args):
        """Drops, adds, doubles or replaces an argument; the command's name stays."""
        rng = self.rng
        args = list(args)
        place = rng.randrange(1, len(args)) if len(args) > 1 else None
        kind = rng.randrange(4)
        if kind == 0 and place:
            del args[place]
        elif kind == 1 and place:
            args.insert(place, args[place])
        elif kind == 2 and place:
            args[place] = rng.choice(GARBAGE).encode()
        else:
            args.append(rng.choice(GARBAGE).encode())
        return args

    def _scan_options(self):
        options = []
        if self.rng.random() < 0.6:
            options += ["MATCH", self.rng.choice(PATTERNS)]
        if self.rng.random() < 0.6:
            options += ["COUNT", self.rng.choice(["1", "2", "5", "10", "1000"])]
        if self.rng.random() < 0.4:
            options += ["TYPE", self.rng.choice(["string", "STRING", "list", "hash", "bogus"])]
        return options

    # Arguments.

    def key(self):
        return self.rng.choice(KEYS)

    def keys(self, low, high):
        return [self.key() for _ in range(self.rng.randint(low, high))]

    def value(self):
        rng = self.rng
        kind = rng.randrange(12)
        if kind < 3:
            return str(rng.choice([0, 1, -1, 9999, 10000, rng.randint(-(10**6), 10**6)]))
        if kind == 3:
            return rng.choice(BAD_INTEGERS + EDGE_INTEGERS + FLOATS)
        if kind == 4:
            return str(rng.randint(-(1 << 63), (1 << 63) - 1))
        if kind == 5:
            return rng.randbytes(rng.choice([0, 1, 3, 8, 20, 43, 44, 45, 64]))
        if kind == 6:
            return b"x" * rng.choice([1, 20, 21, 39, 43, 44, 45, 46, 63, 64, 65, 255, 256])
        if kind == 7 and rng.random() < 0.15:
            return (b"abc%d" % rng.randrange(10)) * rng.choice([100, 1000, 16000, 40000])
        if kind == 8:
            return "".join(rng.choice("abcd") for _ in range(rng.randint(0, 30)))
        return rng.choice(["hello", "foobar", "a", "", "value", "\r\n", "12", "3.5", "ffff"])

    def integer(self, low=-20, high=120):
        rng = self.rng
        kind = rng.random()
        if kind < 0.05:
            return rng.choice(BAD_INTEGERS)
        if kind < 0.1:
            return rng.choice(EDGE_INTEGERS)
        return str(rng.randint(low, high))

    def number(self):
        rng = self.rng
        if rng.random() < 0.15:
            return str(rng.randint(-(1 << 63), (1 << 63) - 1))
        return self.integer(-1000, 1000)

    def offset(self):
        """A byte offset that never makes a value of hundreds of megabytes."""
        rng = self.rng
        if rng.random() < 0.1:
            return rng.choice(["-1", "536870912", "9223372036854775807", "abc", "", "30000"])
        return str(rng.choice([0, 1, 2, 7, 8, 40, 43, 44, 45, 100, 500]))

    def bit_offset(self):
        rng = self.rng
        if rng.random() < 0.08:
            return rng.choice(["-1", "4294967296", "abc", "", "9223372036854775808"])
        return str(rng.choice([0, 1, 7, 8, 15, 63, 64, 100, 351, 352, 1000, rng.randrange(800)]))

    def unit(self):
        return self.rng.choice(["BYTE", "BIT", "byte", "bit", "BYTE", "BIT", "BITS", ""])

    def expiry(self, flags="EX PX EXAT PXAT"):
        """(option, time); relative times are unique within the stream."""
        rng = self.rng
        flag = rng.choice(flags.split())
        if rng.random() < 0.06:
            return [flag, rng.choice(BAD_INTEGERS + EDGE_INTEGERS)]
        return [self.case(flag), self.time(flag)]

    def time(self, flag):
        rng = self.rng
        if flag in ("EX", "PX"):
            seconds = self.relative.pop() if self.relative else 50000
            return str(seconds if flag == "EX" else seconds * 1000)
        if rng.random() < 0.1:
            return PAST[flag]
        return str(rng.choice(FAR_S if flag == "EXAT" else FAR_MS))

    def case(self, word):
        return word.lower() if self.rng.random() < 0.2 else word

    def some(self, options, chance=0.3):
        return [self.case(o) for o in options.split() if self.rng.random() < chance]

    def database(self):
        rng = self.rng
        if rng.random() < 0.06:
            return rng.choice(["16", "-1", "abc", "", "9223372036854775808", "100"])
        return str(rng.randrange(DATABASES))

    def payload(self):
        data = self.rng.choice(self.payloads)
        if self.rng.random() < 0.15 and data:
            damaged = bytearray(data)
            damaged[self.rng.randrange(len(damaged))] ^= 1 << self.rng.randrange(8)
            return bytes(damaged)
        if self.rng.random() < 0.05:
            return data[: self.rng.randrange(len(data))]
        return data


def _commands(s):
    """(weight, function that makes one command or a group of them)."""
    return _string_commands(s) + _bitmap_commands(s) + _key_commands(s) + _expiry_commands(s)


def _string_commands(s):
    def set_():
        key = s.key()
        options = s.some("NX XX GET KEEPTTL", 0.12)
        if s.rng.random() < 0.35:
            options += s.expiry()
        s.rng.shuffle(options) if s.rng.random() < 0.1 else None
        return [["SET", key, s.value()] + options, ["EXISTS", key]]

    def getex():
        key = s.key()
        options = s.expiry() if s.rng.random() < 0.6 else s.some("PERSIST", 0.7)
        return [["GETEX", key] + options, ["EXISTS", key]]

    def setex():
        name, flag = s.rng.choice([("SETEX", "EX"), ("PSETEX", "PX")])
        time = s.time(flag) if s.rng.random() < 0.9 else s.rng.choice(BAD_INTEGERS + EDGE_INTEGERS)
        return [name, s.key(), time, s.value()]

    def mset():
        args = [s.rng.choice(["MSET", "MSETNX"])]
        for key in s.keys(1, 4):
            args += [key, s.value()]
        return args

    def lcs():
        options = s.some("LEN IDX WITHMATCHLEN", 0.35)
        if s.rng.random() < 0.3:
            options += [s.case("MINMATCHLEN"), s.integer(0, 4)]
        a, b = s.rng.choice(KEYS[:3]), s.rng.choice(KEYS[:3])
        return [
            ["SETRANGE", a, "0", s.rng.choice(["abcd", "bca", "dab"])],
            ["SET", b, "".join(s.rng.choice("abc") for _ in range(s.rng.randint(0, 40)))],
            ["LCS", a, b] + options,
        ]

    return [
        (20, set_),
        (10, lambda: ["GET", s.key()]),
        (3, lambda: ["GETSET", s.key(), s.value()]),
        (3, lambda: ["GETDEL", s.key()]),
        (5, getex),
        (4, lambda: ["MGET"] + s.keys(1, 5)),
        (5, mset),
        (3, lambda: ["SETNX", s.key(), s.value()]),
        (4, setex),
        (5, lambda: ["APPEND", s.key(), s.value()]),
        (4, lambda: ["STRLEN", s.key()]),
        (5, lambda: [s.rng.choice(["GETRANGE", "SUBSTR"]), s.key(), s.integer(), s.integer()]),
        (5, lambda: ["SETRANGE", s.key(), s.offset(), s.value()]),
        (4, lambda: [s.rng.choice(["INCR", "DECR"]), s.key()]),
        (5, lambda: [s.rng.choice(["INCRBY", "DECRBY"]), s.key(), s.number()]),
        (4, lambda: ["INCRBYFLOAT", s.key(), s.rng.choice(FLOATS * 3 + BAD_FLOATS)]),
        (2, lcs),
    ]


def _bitmap_commands(s):
    def ranged(name, head):
        args = [name, s.key()] + head
        for _ in range(s.rng.choice([0, 1, 2, 2])):
            args.append(s.integer(-70, 400))
        if len(args) == 4 + len(head) and s.rng.random() < 0.6:
            args.append(s.unit())
        return args

    def bitfield_type():
        if s.rng.random() < 0.05:
            return s.rng.choice(["u64", "i65", "x8", "", "u", "i0", "u0", "8"])
        kind = s.rng.choice("ui")
        return kind + str(s.rng.choice([1, 2, 4, 5, 8, 13, 16, 31, 32, 33, 62, 63]))

    def bitfield_offset():
        if s.rng.random() < 0.3:
            return "#" + s.rng.choice(["0", "1", "2", "3", "10", "-1", "abc"])
        return s.bit_offset()

    def bitfield():
        args = [s.rng.choice(["BITFIELD", "BITFIELD", "BITFIELD", "BITFIELD_RO"]), s.key()]
        for _ in range(s.rng.randint(0, 4)):
            if s.rng.random() < 0.4:
                args += ["OVERFLOW", s.rng.choice(["WRAP", "SAT", "FAIL", "sat", "fail", "OOPS"])]
            operation = s.rng.choice(["GET", "SET", "INCRBY", "get"])
            args += [operation, bitfield_type(), bitfield_offset()]
            if operation.upper() != "GET":
                args.append(s.number())
        return args

    return [
        (6, lambda: ["SETBIT", s.key(), s.bit_offset(), s.rng.choice("0111011012")]),
        (4, lambda: ["GETBIT", s.key(), s.bit_offset()]),
        (5, lambda: ranged("BITCOUNT", [])),
        (5, lambda: ranged("BITPOS", [s.rng.choice(["0", "1", "0", "1", "2", "x"])])),
        (4, lambda: ["BITOP", s.rng.choice("AND OR XOR NOT and MIX".split())] + s.keys(1, 4)),
        (8, bitfield),
    ]


def _key_commands(s):
    def copy():
        options = (["DB", s.database()] if s.rng.random() < 0.4 else []) + s.some("REPLACE", 0.4)
        return ["COPY", s.key(), s.key()] + options

    def restore():
        key = s.key()
        args = ["RESTORE", key]
        if s.rng.random() < 0.4:
            args += [
                s.rng.choice([str(t) for t in FAR_MS] + [PAST["PXAT"]]),
                s.payload(),
                s.case("ABSTTL"),
            ]
        else:
            args += [s.rng.choice(["0", "0", "0", s.time("PX"), "-1", "abc"]), s.payload()]
        args += s.some("REPLACE", 0.6)
        if s.rng.random() < 0.2:
            args += ["IDLETIME", s.rng.choice(["0", "100", "-1", "abc"])]
        if s.rng.random() < 0.15:
            args += ["FREQ", s.rng.choice(["0", "10", "255", "256", "-1", "abc"])]
        return [args, ["EXISTS", key]]

    def object_():
        what = s.rng.choice(["ENCODING"] * 6 + ["REFCOUNT", "FREQ", "encoding", "BOGUS"])
        return ["OBJECT", what, s.key()]

    def odd():
        return s.rng.choice(
            [
                ["NOSUCHCOMMAND", s.value(), s.value()],
                ["PING"],
                ["PING", s.value()],
                ["ECHO", s.value()],
                ["GETT", s.key()],
                ["OBJECT"],
                ["EXEC"],
                ["DISCARD"],
            ]
        )

    def flush():
        if s.rng.random() < 0.8:
            return ["DBSIZE"]
        name = s.rng.choice(["FLUSHDB", "FLUSHDB", "FLUSHALL"])
        return [name] + s.rng.choice([[], ["SYNC"], ["ASYNC"], ["async"], ["BOGUS"]])

    return [
        (5, lambda: [s.rng.choice(["DEL", "UNLINK"])] + s.keys(1, 3)),
        (3, lambda: [s.rng.choice(["EXISTS", "TOUCH"])] + s.keys(1, 4)),
        (2, lambda: ["TYPE", s.key()]),
        (4, lambda: [s.rng.choice(["RENAME", "RENAMENX"]), s.key(), s.key()]),
        (5, copy),
        (3, lambda: ["MOVE", s.key(), s.database()]),
        (3, lambda: ["SELECT", s.database()]),
        (1, lambda: ["SWAPDB", s.database(), s.database()]),
        (3, lambda: ["DBSIZE"]),
        (2, flush),
        (2, lambda: ["KEYS", s.rng.choice(PATTERNS)]),
        (9, object_),
        (1, lambda: ["DUMP", s.key()]),
        (5, restore),
        (2, odd),
    ]


def _expiry_commands(s):
    flags = {"EXPIRE": "EX", "PEXPIRE": "PX", "EXPIREAT": "EXAT", "PEXPIREAT": "PXAT"}

    def expire():
        name = s.rng.choice(list(flags))
        time = s.time(flags[name])
        if s.rng.random() < 0.08:
            time = s.rng.choice(BAD_INTEGERS + EDGE_INTEGERS)
        options = s.some("NX XX GT LT", 0.2)
        return [name, s.key(), time] + (["BOGUS"] if s.rng.random() < 0.02 else options)

    return [
        (10, expire),
        (8, lambda: [s.rng.choice(["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"]), s.key()]),
        (3, lambda: ["PERSIST", s.key()]),
    ]
