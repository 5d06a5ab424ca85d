"""What a person meets at the shell: help, misspelt words, and a bare configuration file."""

import os
import subprocess

import resp
from harness import SLOW, Server, check, eq, free_port, test

SUBCOMMANDS = ("serve", "cli", "bench", "check", "export", "bloom", "frontier", "version")


def run(context, *words):
    context.sava_only("the subcommands are Sava's")
    return subprocess.run(
        [context.options.server, *words],
        cwd=context.temp_dir(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20 * SLOW,
        text=True,
    )


class WithoutSubcommand(Server):
    def command_line(self, port):
        line = super().command_line(port)
        line.remove("serve")
        return line


@test()
def version_and_help(context):
    for words in (["--help"], ["-h"], ["help"], ["version"], ["--version"]):
        done = run(context, *words)
        eq((done.returncode, done.stderr), (0, ""), " ".join(words))
        check(len(done.stdout) > 3, "nothing was printed")


@test()
def every_help_is_its_own(context):
    """It names the subcommand, shows an example of it, and is the same by both ways."""
    texts = set()
    for words in [[name] for name in SUBCOMMANDS] + [["bench", "associations"]]:
        name = "sava " + " ".join(words)
        done = run(context, *words, "--help")
        eq((done.returncode, done.stderr), (0, ""), name)
        context.expect(done.stdout.startswith("Usage: " + name), done.stdout[:60])
        _, _, examples = done.stdout.partition("\nExample")
        context.expect("\n  " + name in examples, name + " --help has no example")
        texts.add(done.stdout)
        if len(words) == 1:
            eq(run(context, "help", *words).stdout, done.stdout, "sava help " + words[0])
    eq(len(texts), len(SUBCOMMANDS) + 1, "different texts")
    for words in (["bloom", "create"], ["frontier", "run"]):
        done = run(context, *words, "--help")
        eq(done.returncode, 0, " ".join(words))
        context.expect("sava " + " ".join(words) in done.stdout, " ".join(words))


@test()
def misspelt_words_get_a_suggestion(context):
    for words, meant in (
        (["chekc"], "check"),
        (["Serve"], "serve"),
        (["frontir"], "frontier"),
        (["--port", "7000"], "sava serve --port"),
        (["serve", "--prot", "7000"], "port"),
        (["cli", "--jsn", "PING"], "--json"),
        (["bench", "asociations"], "associations"),
        (["bench", "associations", "--client", "5"], "--clients"),
        (["bench", "associations", "--kep"], "--keep"),
        (["check", "--repiar", "x"], "--repair"),
        (["export", "--portabel", "x"], "--portable"),
        (["bloom", "crate", "x"], "create"),
        (["bloom", "create", "x", "--bit", "100"], "--bits"),
        (["frontier", "genrate"], "generate"),
        (["frontier", "run", "x", "--bets"], "--best"),
    ):
        done = run(context, *words)
        line = " ".join(words)
        context.expect(done.returncode in (1, 2), "%s: exit code %d" % (line, done.returncode))
        context.expect("did you mean '%s'?" % meant in done.stderr, line + ": " + done.stderr)


@test()
def strange_words_get_no_suggestion(context):
    for words in (["xyzzy"], ["check", "--xyzzy", "x"], ["cli", "-q"]):
        done = run(context, *words)
        eq(done.returncode, 1, " ".join(words))
        check(words[min(1, len(words) - 1)] in done.stderr, done.stderr)
        check("did you mean" not in done.stderr, done.stderr)


@test()
def a_configuration_file_alone_is_served(context):
    context.sava_only("redis-server has no subcommands")
    path = os.path.join(context.temp_dir(), "some settings")
    with open(path, "w") as file:
        file.write("maxmemory-samples 7\n")
    server = WithoutSubcommand(context.options.server, (), context.options.threads, path)
    context.at_end(server.remove_files)
    context.at_end(server.stop)
    server.start()
    eq(server.call("CONFIG", "GET", "maxmemory-samples"), [b"maxmemory-samples", b"7"])
    eq(server.call("PING"), resp.PONG)
    missing = run(context, "nosuch.conf", "--port", str(free_port()))
    eq(missing.returncode, 1)
    check("can't open config file 'nosuch.conf'" in missing.stderr, missing.stderr)
