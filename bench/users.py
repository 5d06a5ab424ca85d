"""Users: what ACL rules cost, in instructions per command.

SET and GET at pipeline 16 of the default user, who may do everything, against a user with patterns
of keys and a selector. Counted by valgrind's callgrind, so that it is the same on any machine. What
the default user costs against an earlier commit is said by `./dev bench guard COMMIT --only SET`.
"""

import shutil

import guard
import harness
import report

PASSWORD = "secret"
# The key of the load is allowed by the last pattern; the selector is another set of rules.
RULES = ("reset", "on", ">" + PASSWORD, "+@read", "+@write", "+@connection", "%R~shared:*",
         "~user:*:cart", "~key:*", "(+@hash ~hash:*)")
PIPELINE = 16


def count(server, name, requests, user=None):
    words = guard.COMMANDS[name]

    def load():
        return harness.redis_benchmark(server, words=words, requests=requests, pipeline=PIPELINE,
                                       clients=1, keyspace=guard.KEYSPACE, user=user)

    load()
    return server.instructions(load) / requests


def run(session):
    if shutil.which("callgrind_control") is None:
        raise harness.BenchError("valgrind is not there (Debian package valgrind)")
    requests = session.pick(20_000, 10_000)
    rows = []
    with guard.Counted(session.server, ("--threads", "1")) as server:
        with server.connect() as connection:
            connection.command("ACL", "SETUSER", "limited", *RULES)
        for name in ("SET", "GET"):
            guard.prepare(server, guard.COMMANDS[name])
            everyone = count(server, name, requests)
            limited = count(server, name, requests, user=("limited", PASSWORD))
            row = report.Row(f"{name.lower()}_p{PIPELINE}", limited, "instructions", None,
                             limited / everyone, 1.25, judged="ratio",
                             note=f"the default user: {everyone:.0f}")
            rows.append(row)
            harness.say(f"{row.name}: {limited:.0f} against {everyone:.0f} instructions, ratio "
                        f"{row.ratio:.3f} (≤ 1.25)")
    return rows


BENCHMARK = harness.Benchmark("users", "instructions of a user with rules", run)
