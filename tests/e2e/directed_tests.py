"""The tables in cases/: literal replies in RESP2, and the same calls compared live in RESP3.

In RESP2 both servers must give the literal reply, so the tables stay true of stock Redis. In RESP3
the server under test is compared with the stock server. One test per section of a table.
"""

import glob
import os

import cases
import compare
import harness
import resp


def run_section(context, section):
    literal(context, section, context.stock, False)
    literal(context, section, context.sut, context.is_sava)
    for server in (context.stock, context.sut):
        server.call("FLUSHALL")
    live(context, section)


def connections(context, server, proto):
    return {number: context.client(server, proto) for number in (1, 2)}


def literal(context, section, server, newer):
    clients = connections(context, server, 2)
    for case in section:
        reply = resp.show(clients[case.connection].call(*case.args), 1 << 30)
        expected = case.replies72 if newer and case.replies72 else [case.reply]
        if case.reply != "?" and reply not in expected:
            context.note(
                "%s line %d: %s\n    expected %s\n    got      %s"
                % (server.name, case.number, case.text, " or ".join(expected), reply)
            )


def live(context, section):
    stock = connections(context, context.stock, 3)
    sut = connections(context, context.sut, 3)
    for case in section:
        expected = stock[case.connection].call(*case.args)
        actual = sut[case.connection].call(*case.args)
        if case.reply == "?" or (context.is_sava and case.replies72):
            continue
        if not compare.replies_match(case.args, expected, actual):
            context.note(
                "RESP3, line %d: %s\n    expected %s\n    got      %s"
                % (case.number, case.text, resp.show(expected), resp.show(actual))
            )


def register():
    for path in sorted(glob.glob(os.path.join(cases.FOLDER, "*.txt"))):
        table = os.path.splitext(os.path.basename(path))[0]
        for name, section in cases.parse(path):
            full = "directed.%s.%s" % (table, name.replace(" ", "_"))
            harness.TESTS.append(
                (full, lambda context, section=section: run_section(context, section), 30.0)
            )


register()
