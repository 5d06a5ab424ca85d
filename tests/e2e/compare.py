"""When do a reply of stock Redis 7.0.15 and one of the server under test count as equal?

Equal to the byte and type, except for what the rules below name: order that Redis leaves open,
values that depend on the clock, and the few replies that changed between 7.0 and 7.2.
"""

import os

import resp

# Seconds by which two answers about the same relative time may differ.
CLOCK_TOLERANCE = 5 * float(os.environ.get("SAVA_E2E_SLOW", "1"))


def sort_key(value):
    return resp.show(value, 1 << 30)


def unordered(value):
    """The same value with every set sorted."""
    if isinstance(value, resp.Map):
        return resp.Map((unordered(k), unordered(v)) for k, v in value)
    if isinstance(value, resp.Set):
        return resp.Set(sorted((unordered(v) for v in value), key=sort_key))
    if isinstance(value, resp.Push):
        return resp.Push(unordered(v) for v in value)
    if isinstance(value, list):
        return [unordered(v) for v in value]
    return value


def _as_sets(expected, actual):
    if type(expected) is list and type(actual) is list:
        return sorted(expected, key=sort_key) == sorted(actual, key=sort_key)
    return False


def _near(unit):
    def match(expected, actual):
        if type(expected) is not int or type(actual) is not int:
            return False
        if expected < 0 or actual < 0:
            return False
        return abs(expected - actual) <= CLOCK_TOLERANCE * unit

    return match


def _same_kind(expected, actual):
    """For replies whose content is free: both a value, or (checked before) both nothing."""
    return type(expected) is type(actual) and type(expected) is bytes


def _positive(expected, actual):
    return type(expected) is int and type(actual) is int and expected > 0 and actual > 0


def _stricter_bitmap(expected, actual):
    """Redis 7.2 checks the arguments of BITCOUNT and BITPOS also when the key is missing."""
    return expected in (0, -1) and actual in (
        resp.Error(b"ERR syntax error"),
        resp.Error(b"ERR value is not an integer or out of range"),
    )


RULES = {
    b"KEYS": _as_sets,
    b"TTL": _near(1),
    b"PTTL": _near(1000),
    b"EXPIRETIME": _near(1),
    b"PEXPIRETIME": _near(1000),
    b"RANDOMKEY": _same_kind,
    b"DUMP": _same_kind,
    b"BITCOUNT": _stricter_bitmap,
    b"BITPOS": _stricter_bitmap,
}
OBJECT_RULES = {b"IDLETIME": _near(1), b"REFCOUNT": _positive}


def _cut_at_nul(args, expected, actual):
    """Redis's error texts end at a NUL byte of an echoed argument; ours need not."""
    if not any(b"\x00" in arg for arg in args):
        return False
    return resp.is_error(expected) and resp.is_error(actual) and expected[:16] == actual[:16]


def replies_match(args, expected, actual):
    if expected == actual or unordered(expected) == unordered(actual):
        return True
    if not args:
        return False
    if _cut_at_nul(args, expected, actual):
        return True
    rule = RULES.get(args[0].upper())
    if args[0].upper() == b"OBJECT" and len(args) > 1:
        rule = OBJECT_RULES.get(args[1].upper())
    return bool(rule and rule(expected, actual))


def transaction_matches(queue, expected, actual):
    """EXEC's replies against the commands that were queued."""
    if type(expected) is not list or type(actual) is not list:
        return expected == actual
    if len(expected) != len(actual) or len(expected) != len(queue):
        return False
    return all(replies_match(*triple) for triple in zip(queue, expected, actual))
