"""SIGKILL at random instants under load, again and again on the same files.

Every client's keys must be as after a prefix of what it sent: with a log, whatever `appendfsync`
says, one that has all it was told is done (a killed process leaves what it has written; what a power
failure leaves is the unit tests' matter, by a recorder of writes and syncs), with snapshots alone
all up to the last one. Whoever reads under `always` reads nothing that a crash takes back. The
server always starts again. --long takes many more kills; bench/soak_tests.py runs them by the hour.
"""

import os
import random
import signal
import time

import durability
import resp
from harness import check, eq, run_workers, test, until

CLIENTS = 3
SMALL_LOG = ("--auto-aof-rewrite-percentage", "60", "--auto-aof-rewrite-min-size", "200kb")


class Crashes:
    """One data directory and its clients through a row of kills."""

    def __init__(self, context, name, *options, clients=CLIENTS):
        self.context = context
        self.rng = context.rng(name)
        self.server = durability.durable(context, *options)
        now = int(time.time() * 1000)
        self.ledgers = [
            durability.Ledger(n, context.is_sava, now - now % 1000) for n in range(clients)
        ]
        self.kills = self.operations = self.lost = self.saves = 0
        self.oldest = 0.0  # seconds before a kill at which something was acknowledged that is lost
        durability.open_accounts(self.server)

    def round(self, promised, *others, seconds=(0.15, 0.8), saving=()):
        """Load, SIGKILL, start, look. `promised(log, killed, saves)`: operations that must be
        there. `others`: functions of the address that run beside until the connection breaks."""
        address, pid = self.server.address, self.server.process.pid
        seeds = [self.rng.random() for _ in range(len(self.ledgers) + 2)]
        wait = self.rng.uniform(*seconds)

        def client(number):
            ledger = self.ledgers[number].copy()
            return durability.run_client(address, ledger, random.Random(seeds[number]))

        def killer():
            time.sleep(wait)
            now = time.time()
            os.kill(pid, signal.SIGKILL)
            return now

        work = [lambda n=n: client(n) for n in range(len(self.ledgers))]
        work += [killer, lambda: saver(address, random.Random(seeds[-1]), saving)]
        work += [lambda f=f: f(address) for f in others]
        results = run_workers(work, 60)
        logs, rest = results[: len(self.ledgers)], results[len(self.ledgers) :]
        killed, saves = rest[0], rest[1]
        self.server.kill()
        self.start_again()
        self.look(logs, killed, lambda log: promised(log, killed, saves))
        self.kills += 1
        self.saves += len(saves)
        return rest[2:]

    def start_again(self):
        """Sometimes it is killed in the middle of its recovery, too."""
        if self.rng.random() < 0.3:
            self.server.spawn_unready()
            time.sleep(self.rng.uniform(0, 0.1))
            self.server.kill()
            self.kills += 1
        self.server.restart()

    def look(self, logs, killed, promised):
        found = durability.contents(self.server)
        what = "after kill %d" % (self.kills + 1)
        durability.check_accounts(found, what)
        for number, log in enumerate(logs):
            ledger, kept = durability.recovered(
                self.ledgers[number], log, found, promised(log), what
            )
            self.ledgers[number] = ledger
            self.operations += len(log)
            lost = log[kept : durability.acknowledged(log)]
            self.lost += len(lost)
            self.oldest = max([self.oldest] + [killed - when for when, _ in lost[:1]])
        prefixes = tuple(ledger.prefix for ledger in self.ledgers) + (b"account:", b"short:")
        strangers = [name for name in found if not name[1].startswith(prefixes)]
        eq(strangers, [], what + ": keys nobody wrote")

        def lapsed():
            with self.server.client() as client:
                return not client.call("KEYS", "short:*")

        until(lapsed, 10, "the end of keys that live 40 ms")

    def summary(self):
        self.context.say(
            "%d kills, %d operations, %d saves and rewrites, %d acknowledged lost, oldest %.3f s"
            % (self.kills, self.operations, self.saves, self.lost, self.oldest)
        )


def saver(address, rng, commands):
    """Sends saving commands; the times at which those were sent that ended well."""
    done = []
    if not commands:
        return done
    try:
        with resp.Client(address) as client:
            while True:
                command = rng.choice(commands)
                before = saves(client)
                sent = time.time()
                if not resp.is_error(client.call(command)):
                    while True:
                        time.sleep(0.01)
                        fields, count = info(client), saves(client)
                        if fields["rdb_bgsave_in_progress"] == "0" and count > before:
                            check(fields["rdb_last_bgsave_status"] == "ok", "a save failed")
                            done.append(sent)
                            break
                        names = ("aof_rewrite_in_progress", "aof_rewrite_scheduled")
                        if command != "BGSAVE" and all(fields[name] == "0" for name in names):
                            done.append(sent)
                            break
                time.sleep(rng.random() * 0.2)
    except durability.GONE:
        return done


def info(client):
    lines = client.call("INFO", "persistence").decode().split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)


def saves(client):
    return int(info(client)["rdb_saves"])


def rounds(context, few):
    return few * (8 if context.options.long else 1)


def all_acknowledged(log, killed, saves):
    return durability.acknowledged(log)


def up_to_the_last_save(log, killed, saves):
    return durability.acknowledged(log, saves[-1]) if saves else 0


def watcher(names):
    """Reads counters of others until the connection breaks: the highest values seen."""

    def watch(address):
        seen = {}
        try:
            with resp.Client(address) as client:
                while True:
                    for name, value in zip(names, client.call("MGET", *names)):
                        if not resp.is_null(value):
                            seen[name] = max(seen.get(name, 0), int(value))
        except durability.GONE:
            return seen

    return watch


@test(timeout=120)
def always_keeps_what_was_acknowledged(context):
    crashes = Crashes(
        context, "always", "--appendonly", "yes", "--appendfsync", "always", "--save", "",
        *SMALL_LOG
    )
    names = [ledger.prefix + b"c0" for ledger in crashes.ledgers]
    for _ in range(rounds(context, 3)):
        (seen,) = crashes.round(
            all_acknowledged, watcher(names), saving=("BGSAVE", "BGREWRITEAOF", "BGREWRITEAOF")
        )
        for name, value in seen.items():
            now = int(crashes.server.call("GET", name))
            check(now >= value, "a reader saw %s at %d, now it is %d" % (name, value, now))
    crashes.summary()


@test(timeout=120)
def everysec_keeps_what_was_acknowledged(context):
    crashes = Crashes(
        context, "everysec", "--appendonly", "yes", "--appendfsync", "everysec", "--save", "",
        *SMALL_LOG
    )
    for number in range(rounds(context, 3)):
        long = number % 3 == 2
        crashes.round(
            all_acknowledged,
            seconds=(2.2, 2.6) if long else (0.15, 0.8),
            saving=("BGREWRITEAOF", "BGSAVE"),
        )
    crashes.summary()


@test(timeout=120)
def snapshots_alone_keep_the_last_one(context):
    """No log: the state is that of one instant, not before the last finished BGSAVE."""
    crashes = Crashes(context, "snapshots", "--appendonly", "no", "--save", "")
    eq(crashes.server.call("SAVE"), resp.OK)
    for _ in range(rounds(context, 2)):
        crashes.round(up_to_the_last_save, seconds=(0.3, 1.0), saving=("BGSAVE",))
    crashes.summary()


@test(timeout=120)
def commands_in_the_base(context):
    """aof-use-rdb-preamble no: the base is commands; and no sync at all leaves whole prefixes."""
    crashes = Crashes(
        context, "commands", "--appendonly", "yes", "--appendfsync", "no", "--save", "",
        "--aof-use-rdb-preamble", "no", *SMALL_LOG
    )
    for _ in range(rounds(context, 2)):
        crashes.round(all_acknowledged, saving=("BGREWRITEAOF",))
    crashes.summary()


@test(timeout=120)
def the_default_settings_survive_kills(context):
    """Nothing is set: the log is on."""
    context.sava_only("Redis keeps nothing by default but hourly snapshots")
    crashes = Crashes(context, "default")
    for _ in range(rounds(context, 1)):
        crashes.round(all_acknowledged, seconds=(0.4, 0.8))
    crashes.summary()
