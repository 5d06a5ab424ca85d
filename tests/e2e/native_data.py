"""Values of every native type, and what tells that two servers have the same: for the tests of
sava.so and of clusters."""

import random

# Family -> TYPE in Sava, TYPE in a stock server with sava.so.
TYPES = {
    "afc": (b"afc", b"sava-afc1"),
    "bf": (b"MBbloom--", b"sava-bf01"),
    "cf": (b"MBbloomCF", b"sava-cf01"),
    "cms": (b"CMSk-TYPE", b"sava-cms1"),
    "topk": (b"TopK-TYPE", b"sava-top1"),
    "simhash": (b"simhash", b"sava-sim1"),
    "fr": (b"frontier", b"savafront"),
}


def commands(prefix="", seed=1, size=300):
    """Commands that make several keys of every type; key names begin with `prefix`."""
    rng = random.Random(seed)
    made = []

    def add(*words):
        made.append((words[0], prefix + words[1], *[str(word) for word in words[2:]]))

    words = ["w%d" % rng.randrange(size * 2) for _ in range(size)]
    for i in range(12):  # members that many counters share
        add("AFC.ADD", "afc:%d" % i, *(words[: size // 2] + words[i : i + 5] * 3))
    add("AFC.RESERVE", "afc:bounded", "MAXLEN", 20)
    add("AFC.ADD", "afc:bounded", *words)
    add("AFC.RESERVE", "afc:window", "WINDOW", 360000)
    add("AFC.ADD", "afc:window", *words)
    add("AFC.RESERVE", "afc:decay", "HALFLIFE", 36000000)
    add("AFC.INCRBY", "afc:decay", "one", 1000)
    add("AFC.ADD", "afc:large", *["m%d" % i for i in range(size * 10)])
    add("BF.RESERVE", "bf:fixed", 0.01, size)
    add("BF.MADD", "bf:fixed", *words)
    add("BF.RESERVE", "bf:deletable", 0.01, size, "DELETABLE")
    add("BF.MADD", "bf:deletable", *words)
    add("BF.MADD", "bf:grown", *["g%d" % i for i in range(size * 3)])
    add("CF.RESERVE", "cf:1", size)
    for word in words:
        add("CF.ADD", "cf:1", word)
    add("CMS.INITBYDIM", "cms:small", 50, 4)
    add("CMS.INITBYDIM", "cms:large", 20000, 5)
    add("TOPK.RESERVE", "topk:1", 10)
    for key in ("cms:small", "cms:large"):
        add("CMS.INCRBY", key, *[part for word in words for part in (word, 3)])
    add("TOPK.ADD", "topk:1", *words)
    for i, word in enumerate(words):
        add("SIMHASH.ADD", "simhash:1", word, "HASH", "%016x" % rng.getrandbits(64))
    add("FR.CREATE", "fr:1", "DELAY", 50, "LEASE", 60000)
    for i in range(0, size, 10):
        urls = ["http://host%d.example/%d" % (rng.randrange(20), i + j) for j in range(10)]
        add("FR.ADD", "fr:1", *urls)
    add("FR.NEXT", "fr:1", 7)
    add("RL.TAKE", "rl:window", "WINDOW", 1000, 3600000)
    add("RL.TAKE", "rl:token", "TOKEN", 1000, 3600000, "COST", 5)
    add("RL.TAKE", "rl:gcra", "GCRA", 10, 36000000)
    add("RL.TAKE", "rl:sliding", "SLIDING", 1000, 3600000)
    add("CL.THROTTLE", "cl:1", 15, 30, 3600)
    add("INCREX", "count", "BYINT", 5, "EX", 3600)
    return made


def keys(client):
    return sorted(client.call("KEYS", "*"))


def digests(client):
    """The digest of every value, by key."""
    names = keys(client)
    found = []
    for at in range(0, len(names), 500):
        found += client.call("DEBUG", "DIGEST-VALUE", *names[at : at + 500])
    return dict(zip(names, found, strict=True))
