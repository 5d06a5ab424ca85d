"""`sava frontier`: the document's program against a plain model, its generator, its locality."""

import csv
import os
import re
import statistics
import subprocess
import xml.etree.ElementTree

from harness import SLOW, Skip, check, eq, test

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "frontier")
STRATEGIES = {"depth": [], "breadth": ["-b"], "best": ["--best"]}
REFUSED = (".jpg", ".gif", ".mp3", ".avi", ".doc", ".pdf")
ACCESS = re.compile(r"[0-7] \d+ [RW] 0x[0-9a-f]+ \d+")


# ---- the model: as plain as can be ----


def split(url):
    """Host, rest and depth of a URL by the assignment's rules; None when it is refused."""
    url = url.split("#")[0]
    if not url.lower().startswith("http://") or re.search(r"[\x00-\x20\x7f]", url):
        return None
    match = re.fullmatch(
        r"(?:www\.(?=[^/?]*\.))*([^/?]*)([^?]*)(\?.*)?", url[7:], re.IGNORECASE)
    host, path, query = match.groups()
    host = host.lower()
    if not query:
        path = path.rstrip("/")
    if host in ("", "www.") or host[0] == ":" or "@" in host or path.lower().endswith(REFUSED):
        return None
    return host, path + (query or ""), path.count("/")


class Model:
    """Hosts in order of discovery, each with a list of (depth, URL) kept in order."""

    def __init__(self, strategy):
        self.strategy = strategy
        self.hosts = []
        self.urls = {}
        self.place = 0  # breadth: the next host to serve
        self.out = []

    def add(self, url):
        parts = split(url)
        if parts is None:
            return False
        host, rest, depth = parts
        if host not in self.urls:
            self.hosts.append(host)
            self.urls[host] = []
        entries = self.urls[host]
        line = "http://" + host + rest
        if (depth, line) not in entries:
            at = 0
            while at < len(entries) and entries[at][0] <= depth:
                at += 1
            entries.insert(at, (depth, line))
        return True

    def choose(self):
        with_urls = [i for i, host in enumerate(self.hosts) if self.urls[host]]
        if not with_urls:
            return None
        if self.strategy == "depth":
            return with_urls[0]
        if self.strategy == "best":
            return max(with_urls, key=lambda i: (len(self.urls[self.hosts[i]]), -i))
        later = [i for i in with_urls if i >= self.place]
        return (later or with_urls)[0]

    def pop(self, host):
        self.out.append(self.urls[host].pop(0)[1])

    def schedule(self, count):
        while count > 0:
            number = self.choose()
            if number is None:
                break
            self.pop(self.hosts[number])
            self.place = number + 1
            count -= 1

    def execute(self, verb, host=None, count=0):
        if verb == "ESCALONA_TUDO":
            self.schedule(float("inf"))
        elif verb == "ESCALONA":
            self.schedule(count)
        elif verb == "ESCALONA_HOST":
            for _ in range(min(count, len(self.urls.get(host, ())))):
                self.pop(host)
        elif verb == "VER_HOST":
            self.out += [url for _, url in self.urls.get(host, ())]
        elif verb == "LISTA_HOSTS":
            self.out += self.hosts
        elif verb == "LIMPA_HOST":
            if host in self.urls:
                self.urls[host] = []
        elif verb == "LIMPA_TUDO":
            self.hosts, self.urls = [], {}
        if not any(self.urls.values()):
            self.place = 0

    def text(self):
        return "".join(line + "\n" for line in self.out)


# ---- running ----


def sava(context, *arguments, expect=0):
    """(standard output, standard error) of `sava frontier ...`"""
    context.sava_only()
    done = subprocess.run([context.options.server, "frontier", *arguments],
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60 * SLOW,
                          check=False)
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    eq(done.returncode, expect, "exit code; %s%s" % (out[-500:], err[-500:]))
    return out, err


def script(context, text):
    """A file with these commands."""
    path = os.path.join(context.temp_dir(), "commands.txt")
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


def result(path):
    with open(path[: -len(".txt")] + "-out.txt", "rb") as file:
        return file.read().decode()


def run_text(context, text, *flags):
    """(output file, standard error with the file's name cut off)"""
    path = script(context, text)
    out, err = sava(context, "run", *flags, path)
    eq(out, "", "standard output")
    return result(path), err.replace(path + ":", "")


def golden(name):
    with open(os.path.join(GOLDEN, name + ".txt"), encoding="utf-8") as file:
        return file.read()


def same_text(actual, expected, what):
    if actual == expected:
        return
    for number, (a, b) in enumerate(
            zip(actual.split("\n"), expected.split("\n"), strict=False), 1):
        check(a == b, "%s: line %d: expected %r, got %r" % (what, number, b, a))
    check(False, "%s: %d lines expected, got %d" % (what, expected.count("\n"), actual.count("\n")))


# ---- the program ----


@test()
def frontier_appendix_b(context):
    text = golden("appendix_b")
    for name, flags in STRATEGIES.items():
        out, err = run_text(context, text, *flags)
        same_text(out, golden("appendix_b_" + name), name)
        eq(err, "", "standard error")
        for damaged in (text.replace("\n", "\r\n"), text.rstrip("\n"),
                        text.replace("\n", "\r\n").rstrip("\r\n")):
            same_text(run_text(context, damaged, *flags)[0], out, name + ", other line ends")


@test()
def frontier_flags_before_and_after_the_file(context):
    path = script(context, golden("appendix_b"))
    for words in (["-b", path], [path, "-b"], [path, "-b", "-l"], ["-l", path, "-b"],
                  ["--norm", "ufmg", path, "-b"], ["-b", "--", path]):
        sava(context, "run", *words)
        same_text(result(path), golden("appendix_b_breadth"), " ".join(words))
        log = path[: -len(".txt")] + "-access.log"
        eq(os.path.exists(log), "-l" in words, "the log is there")
        if os.path.exists(log):
            os.remove(log)


@test()
def frontier_names_of_the_output(context):
    folder = context.temp_dir()
    for name, output in (("a.b.txt", "a.b-out.txt"), ("plain", "plain-out.txt"),
                         ("x.dat", "x-out.txt")):
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write("ADD_URLS 1\nhttp://h/x\nESCALONA_TUDO")
        sava(context, "run", os.path.join(folder, name))
        with open(os.path.join(folder, output), encoding="ascii") as file:
            eq(file.read(), "http://h/x\n", name)


@test()
def frontier_without_a_file_writes_saida_out(context):
    context.sava_only()
    commands = b"ADD_URLS 1\nhttp://h/x\nESCALONA_TUDO"
    program = os.path.abspath(context.options.server)
    for words in ([], ["-"], ["-l"]):
        folder = context.temp_dir()
        done = subprocess.run([program, "frontier", "run", *words], input=commands, cwd=folder,
                              capture_output=True, timeout=60 * SLOW, check=False)
        eq((done.returncode, done.stdout, done.stderr), (0, b"", b""), str(words))
        eq(sorted(os.listdir(folder)),
           ["saida-access.log"] * ("-l" in words) + ["saida-out.txt"], str(words))
        with open(os.path.join(folder, "saida-out.txt"), "rb") as file:
            eq(file.read(), b"http://h/x\n", str(words))
        os.remove(os.path.join(folder, "saida-out.txt"))
    done = subprocess.run([program, "frontier", "run"], input=b"x\n", cwd=context.temp_dir(),
                          capture_output=True, timeout=60 * SLOW, check=False)
    eq(done.stderr, b'standard input:1: unknown command "x"\n')
    path = script(context, commands)
    named = os.path.join(context.temp_dir(), "named.txt")
    sava(context, "run", path, "-o", named)
    with open(named, "rb") as file:
        eq(file.read(), b"http://h/x\n", "-o")
    eq(sava(context, "run", path, "-o", "-")[0], "http://h/x\n", "standard output")


@test()
def frontier_rules_of_the_assignment(context):
    out, err = run_text(context, "\n".join((
        "ADD_URLS 14",
        "http://www.a.com/x/",
        "http://a.com/x",              # the same
        "http://a.com/x#part",         # the same
        "http://a.com/photo.JPG",
        "http://a.com/get.php?f=photo.jpg",
        "https://a.com/y",
        "ftp://b.com/y",
        "nonsense",
        "http:///y",
        "",
        "http://c.com/song.mp3",       # does not make c.com known
        "  http://d.com  ",
        "http://d.com/",               # the same
        "http://d.com/deep/er?q=/1/2",
        "LISTA_HOSTS", "VER_HOST www.a.com", "VER_HOST d.com", "VER_HOST c.com",
        "ESCALONA_HOST a.com 1", "LIMPA_HOST d.com", "ESCALONA_TUDO", "LISTA_HOSTS",
        "ADD_URLS 1", "http://a.com/x",  # may come back once scheduled
        "ESCALONA 5", "LIMPA_TUDO", "LISTA_HOSTS", "ESCALONA_TUDO", "ESCALONA 3",
    )))
    same_text(out, "\n".join((
        "a.com", "d.com",
        "http://a.com/x", "http://a.com/get.php?f=photo.jpg",
        "http://d.com", "http://d.com/deep/er?q=/1/2",
        "http://a.com/x",
        "http://a.com/get.php?f=photo.jpg", "a.com", "d.com",
        "http://a.com/x", "")), "output")
    eq([int(line.split(":")[0]) for line in err.splitlines()], [5, 7, 8, 9, 10, 11, 12], err)
    check(all("refused URL: " in line for line in err.splitlines()), err)


@test()
def frontier_malformed_lines(context):
    out, err = run_text(context, "\n".join((
        "ADD_URLS 1", "http://a/x", "", "ADD URLS 3", "ESCALONA", "ESCALONA -1", "ESCALONA x",
        "ESCALONA 1 2", "VER_HOST", "VER_HOST a b", "ESCALONA_HOST a", "ESCALONA_HOST 5",
        "ESCALONA 18446744073709551616", "escalona_tudo", "LISTA_HOSTS now", " \tLISTA_HOSTS\t ",
        "ADD_URLS 0", "ESCALONA 0", "ESCALONA 007", "ADD_URLS 3", "http://b/x", "LISTA_HOSTS")))
    same_text(out, "a\nhttp://a/x\n", "output")
    lines = err.splitlines()
    eq([int(line.split(":")[0]) for line in lines], [*range(4, 16), 22, 20], err)
    check(lines[0] == '4: unknown command "ADD URLS 3"', lines[0])
    check("needs a number" in lines[2] and "should be ESCALONA n" in lines[1], err)
    check("ends 1 lines before the last URL" in lines[-1], err)


@test()
def frontier_breadth_goes_on_where_it_stopped(context):
    urls = ["http://%s/%d" % (host, i) for host in "abcd" for i in range(3)]
    out, _ = run_text(context, "\n".join((
        "ADD_URLS 12", *urls, "ESCALONA 2", "ESCALONA_HOST a 1", "ESCALONA 3", "LISTA_HOSTS",
        "LIMPA_HOST c", "ESCALONA_TUDO", "ADD_URLS 2", "http://d/9", "http://a/9", "ESCALONA 1")),
        "-b")
    same_text(out, "\n".join((
        "http://a/0", "http://b/0", "http://a/1", "http://c/0", "http://d/0", "http://a/2",
        "a", "b", "c", "d", "http://b/1", "http://d/1", "http://b/2", "http://d/2", "http://a/9",
        "")), "output")


def random_history(rng, hosts, commands):
    """Steps: (line, what the model does with it, whether it is reported)."""
    names = ["h%d.%s" % (i, rng.choice(("com", "com.br", "org"))) for i in range(hosts)]
    names[-1] = "www.com"

    def spelt(host):
        host = "www." * (rng.random() < 0.2) + host
        return host.upper() if rng.random() < 0.1 else host

    def url():
        host = rng.choice(names) if rng.random() < 0.7 else rng.choice(names[: max(1, hosts // 50)])
        path = "".join("/" + rng.choice("abc") for _ in range(rng.randrange(6)))
        return rng.choice(("http://", "HTTP://")) + spelt(host) + path + rng.choice(
            ("", "", "", "/", "?q=%d" % rng.randrange(3), "#frag", ".pdf", ".Gif", "//"))

    damaged = ("", "http://", "gopher://x/y", "//x/y", "LISTA_HOSTS", "\x00\xff", "http://u@h/x",
               "http://a b/c", "a" * 5000)
    for _ in range(commands):
        verb = rng.choice(("ADD_URLS",) * 6 + (
            "ESCALONA_TUDO", "ESCALONA", "ESCALONA", "ESCALONA", "ESCALONA_HOST", "ESCALONA_HOST",
            "VER_HOST", "VER_HOST", "LISTA_HOSTS", "LIMPA_HOST", "damaged", "blank"))
        host = rng.choice(names)
        count = rng.choice((0, 1, 2, 5, 30, 200))
        if verb == "ADD_URLS":
            count = rng.choice((0, 1, 3, 10, 60, 61, 64, 65, 200))
            yield "ADD_URLS %d" % count, lambda model: None, False
            for _ in range(count):
                line = url() if rng.random() < 0.95 else rng.choice(damaged)
                yield line, lambda model, line=line: model.add(line), split(line) is None
        elif verb == "blank":
            yield rng.choice(("", "   ", "\t")), lambda model: None, False
        elif verb == "damaged":
            if rng.random() < 0.2:
                yield "LIMPA_TUDO", lambda model: model.execute("LIMPA_TUDO"), False
            else:
                yield rng.choice(("ESCALONA", "VER_HOST", "x", "ADD_URLS -1", "LIMPA_TUDO 1",
                                  "ESCALONA_HOST 1")), lambda model: None, True
        else:
            line = verb
            if "HOST" in verb and verb != "LISTA_HOSTS":
                line += " " + spelt(host)
            if verb in ("ESCALONA", "ESCALONA_HOST"):
                line += " %d" % count
            yield line, (lambda model, verb=verb, host=host, count=count:
                         model.execute(verb, host, count)), False


@test(timeout=120.0)
def frontier_random_histories(context):
    rng = context.rng("frontier histories")
    for number in range(24):
        hosts = rng.choice((1, 3, 40, 300))
        steps = list(random_history(rng, hosts, rng.choice((10, 60))))
        end = rng.choice(("\n", "\r\n"))
        # An empty last line is a line only when it is ended.
        last_end = rng.choice(("", end)) if steps[-1][0] else end
        text = end.join(line for line, _, _ in steps) + last_end
        for name, flags in STRATEGIES.items():
            model = Model(name)
            for _, act, _ in steps:
                act(model)
            out, err = run_text(context, text.encode("latin-1"), *flags)
            what = "history %d, %s" % (number, name)
            same_text(out, model.text(), what)
            eq([int(line.split(":")[0]) for line in err.splitlines()],
               [at for at, (_, _, reported) in enumerate(steps, 1) if reported], what)


@test(timeout=120.0)
def frontier_thousands_of_hosts(context):
    rng = context.rng("frontier hosts")
    urls = ["http://host%d.com%s" % (rng.randrange(4000), "".join(
        "/" + rng.choice("abcdefgh") for _ in range(rng.randrange(5)))) for _ in range(12000)]
    later = ["http://host%d.com/%d" % (rng.randrange(5000), i) for i in range(2000)]
    for name, flags in STRATEGIES.items():
        quota = 300 if name == "best" else 5000
        model = Model(name)
        for url in urls:
            model.add(url)
        # Host by host the plain model would take minutes.
        fast = FastModel(model)
        fast.schedule(quota)
        for url in later:
            model.add(url)
        fast.schedule(quota)
        model.execute("LISTA_HOSTS")
        out, err = run_text(context, "\n".join((
            "ADD_URLS %d" % len(urls), *urls, "ESCALONA %d" % quota,
            "ADD_URLS %d" % len(later), *later, "ESCALONA %d" % quota, "LISTA_HOSTS")), *flags)
        eq(err, "")
        same_text(out, model.text(), name)


class FastModel:
    """The model's schedule without looking at every host for every URL."""

    def __init__(self, model):
        self.model = model

    def schedule(self, count):
        model = self.model
        if model.strategy == "best":
            return model.schedule(count)
        while count > 0 and any(model.urls[host] for host in model.hosts):
            if model.strategy == "breadth" and model.place >= len(model.hosts):
                model.place = 0
            first = 0 if model.strategy == "depth" else model.place
            for number in range(first, len(model.hosts)):
                model.place = number + 1
                while count > 0 and model.urls[model.hosts[number]]:
                    model.pop(model.hosts[number])
                    count -= 1
                    if model.strategy == "breadth":
                        break
                if count == 0:
                    break
        return None


@test()
def frontier_norm_rfc3986(context):
    text = "\n".join((
        "ADD_URLS 7", "https://A.com/x/../y#f", "http://MÜ.de/é",
        "http://a.com:80/y", "http://www.a.com/p.pdf",
        "http://a.com/%7ex/", "ftp://a.com/", "http://a.com", "LISTA_HOSTS", "VER_HOST mü.de",
        "ESCALONA_TUDO"))
    out, err = run_text(context, text, "--norm", "rfc3986")
    same_text(out, "\n".join((
        "a.com", "xn--m-eha.de", "www.a.com", "http://xn--m-eha.de/%C3%A9", "https://a.com/y",
        "http://a.com/y", "http://a.com/",
        "http://a.com/~x/", "http://xn--m-eha.de/%C3%A9", "http://www.a.com/p.pdf", "")), "output")
    eq([line.split(":")[0] for line in err.splitlines()], ["7"], err)


@test()
def frontier_any_bytes(context):
    rng = context.rng("frontier bytes")
    words = (b"ADD_URLS", b"ESCALONA", b"ESCALONA_HOST", b"VER_HOST", b"LIMPA_HOST", b"\n", b"\r\n",
             b" ", b"http://", b"a.com", b"/", b"?", b"#", b"9",
             b"99999999999999999999", b"\0", b"\xff")
    run_text(context, b"")
    run_text(context, b"\xef\xbb\xbfLISTA_HOSTS\n")
    for _ in range(20):
        text = b"".join(rng.choice(words) for _ in range(rng.randrange(400)))
        run_text(context, text, *rng.choice(list(STRATEGIES.values())))


@test()
def frontier_what_cannot_be_done(context):
    folder = context.temp_dir()
    path = script(context, "LISTA_HOSTS\n")
    for words, reason in (
        (["run", path, path], "one file"),
        (["run", "-b", "--best", path], "either -b or --best"),
        (["run", "--norm", "latin", path], "--norm: 'latin' is not valid"),
        (["run", path, "--norm"], "--norm needs a value"),
        (["run", "-x", path], "no option -x"),
        (["run", os.path.join(folder, "missing.txt")], "missing.txt"),
        (["run", folder], folder),
        (["generate", "--hosts", "0"], "--hosts: '0' is not valid"),
        (["generate", "--urls-mean", "-1"], "--urls-mean: '-1' is not valid"),
        (["generate", "--hosts", "100000000", "--urls-mean", "1000000"], "at most"),
        (["generate", "-o", os.path.join(folder, "no", "x.txt")], "x.txt"),
        (["generate", "more"], "'more'"),
        (["generate", "--hosts", "11", "--urls", "10"], "need at least 11 URLs"),
        (["generate", "--urls", "0"], "--urls: '0' is not valid"),
        (["locality", path], "needs -o DIR"),
        (["locality", path, "-o", os.path.join(folder, "figures")], "no accesses"),
        (["teach"], "'teach' is not a subcommand"),
    ):
        out, err = sava(context, *words, expect=2)
        eq(out, "")
        check(err.startswith("sava frontier: ") and reason in err, "%s: %s" % (words, err))
    for words in (["--help"], ["help"], ["run", "--help"]):
        check(sava(context, *words)[0].startswith("Usage: sava frontier run FILE"), str(words))


# ---- generate ----


def generated(context, **options):
    """(text, {host: [URL...]}) of a generated file."""
    words = [word for name, value in options.items()
             for word in ("--" + name.replace("_", "-"), str(value))]
    out, err = sava(context, "generate", *words)
    eq(err, "")
    lines = out.split("\n")
    count = int(lines[0].removeprefix("ADD_URLS "))
    eq(lines[count + 1:], ["LISTA_HOSTS", "ESCALONA_TUDO", "LIMPA_TUDO", ""])
    urls = lines[1: count + 1]
    eq(len(set(urls)), count, "different URLs")
    hosts = {}
    for url in urls:
        host, _, depth = split(url)
        hosts.setdefault(host, []).append(depth)
    return out, hosts


@test()
def frontier_generate_has_the_parameters_of_chapter_5(context):
    for mean in (10, 20, 30, 40, 50):
        _, hosts = generated(context, hosts=10, urls_mean=mean, urls_variance=5, depth_mean=5,
                             depth_variance=5)
        eq(len(hosts), 10)
        check(abs(sum(map(len, hosts.values())) - 10 * mean) < 60, str(mean))
        # Its five files have exactly 114, 214, 314, 414 and 514 URLs.
        for options in ({}, {"urls_mean": mean}, {"urls_mean": 100, "urls_variance": 0}):
            _, hosts = generated(context, urls=10 * mean + 14, **options)
            eq((len(hosts), sum(map(len, hosts.values()))), (10, 10 * mean + 14), str(options))
    _, hosts = generated(context, hosts=700, urls=700, urls_variance=90)
    eq([len(depths) for depths in hosts.values()], [1] * 700)
    _, hosts = generated(context, hosts=3000, urls_mean=20, urls_variance=9, depth_mean=8,
                         depth_variance=4, seed=7)
    eq(len(hosts), 3000)
    counts = [len(depths) for depths in hosts.values()]
    depths = [depth for some in hosts.values() for depth in some]
    for values, mean, variance in ((counts, 20, 9), (depths, 8, 4)):
        check(abs(statistics.fmean(values) - mean) < 0.3, "mean %f" % statistics.fmean(values))
        found = statistics.pvariance(values)  # rounding adds a twelfth
        check(abs(found - variance) < 0.15 * variance, "variance %f" % found)
    eq(min(depths) >= 1, True)


@test()
def frontier_generate_scenarios_and_seeds(context):
    _, hosts = generated(context, hosts=1, urls_mean=5000, urls_variance=0, depth_variance=0)
    eq([len(depths) for depths in hosts.values()], [5000])
    eq({depth for depths in hosts.values() for depth in depths}, {5})
    _, hosts = generated(context, hosts=5000, urls_mean=1, urls_variance=0)
    eq({len(depths) for depths in hosts.values()}, {1})
    eq(len(hosts), 5000)
    first, _ = generated(context, seed=3)
    eq(generated(context, seed=3)[0] == first, True, "the same seed")
    eq(generated(context, seed=4)[0] == first, False, "another seed")
    path = os.path.join(context.temp_dir(), "load.txt")
    sava(context, "generate", "--seed", "3", "-o", path)
    with open(path, encoding="ascii") as file:
        eq(file.read() == first, True, "-o")


@test()
def frontier_generate_and_run(context):
    text, hosts = generated(context, hosts=50, urls_mean=40, urls_variance=100)
    for name, flags in STRATEGIES.items():
        model = Model(name)
        for url in text.split("\n")[1:-4]:
            model.add(url)
        model.execute("LISTA_HOSTS")
        model.execute("ESCALONA_TUDO")
        same_text(run_text(context, text, *flags)[0], model.text(), name)
    eq(len(hosts), 50)


# ---- the access log and locality ----


def read_log(path):
    """[(phase, id, operation, address)]"""
    with open(path, encoding="ascii") as file:
        lines = file.read().split("\n")
    eq(lines.pop(), "", "the last line's end")
    for line in lines:
        check(ACCESS.fullmatch(line), "no access: %r" % line)
    fields = [line.split(" ") for line in lines]
    return [(int(phase), int(number), operation, address)
            for phase, number, operation, address, _ in fields]


def stack_distances(addresses):
    """How many other addresses lie between two touches of one, for all touches but the first."""
    stack = []
    for address in addresses:
        if address in stack:
            yield stack.index(address)
            stack.remove(address)
        stack.insert(0, address)


@test()
def frontier_access_log(context):
    path = script(context, golden("appendix_b"))
    sava(context, "run", path, "-l")
    same_text(result(path), golden("appendix_b_depth"), "output")
    accesses = read_log(path[: -len(".txt")] + "-access.log")
    # LIMPA_TUDO gives memory back in blocks: it need not look at anything.
    eq(sorted({phase for phase, *_ in accesses} - {7}), [0, 1, 5], "phases")
    allowed = {0, 100, *range(1, 6), *range(101, 106)}
    check({number for _, number, *_ in accesses} <= allowed, "ids")
    eq({number for _, number, *_ in accesses} >= {100, *range(101, 106)}, True, "hosts and URLs")
    check({"R", "W"} == {operation for *_, operation, _ in accesses}, "reads and writes")
    for host, urls in enumerate((6, 7, 4, 4, 5), 101):
        written = {address for phase, number, operation, address in accesses
                   if number == host and phase == 0 and operation == "W"}
        check(len(written) >= urls, "host %d: %d URLs written" % (host, len(written)))


def svg(path):
    root = xml.etree.ElementTree.parse(path).getroot()
    eq(root.tag, "{http://www.w3.org/2000/svg}svg", path)
    return root


def check_figures(folder, accesses):
    """The figures are all there and well formed, and the table says what the log says."""
    with open(os.path.join(folder, "summary.csv"), encoding="ascii") as file:
        rows = {(int(row["phase"]), int(row["structure"])): row for row in csv.DictReader(file)}
    eq(set(rows), {(phase, number) for phase, number, *_ in accesses}, "phases and structures")
    for (phase, number), row in rows.items():
        own = [one for one in accesses if one[:2] == (phase, number)]
        distances = list(stack_distances([address for *_, address in own]))
        eq([int(row[name]) for name in ("reads", "writes", "addresses", "reuses",
                                        "total stack distance", "greatest")],
           [sum(one[2] == "R" for one in own), sum(one[2] == "W" for one in own),
            len({one[3] for one in own}), len(distances), sum(distances),
            max(distances, default=0)], "phase %d, structure %d" % (phase, number))
        svg(os.path.join(folder, "map-%d.svg" % number))
        figure = os.path.join(folder, "distance-%d-%d.svg" % (phase, number))
        eq(os.path.exists(figure), len(distances) > 0, figure)
        if os.path.exists(figure):
            svg(figure)
    return rows


# The document's table 1: the insertions of appendix B that go to each list.
TABLE_1 = {1: (1, 2, 3, 9, 10, 19), 2: (4, 5, 12, 13, 16, 17, 25), 3: (6, 7, 18, 24),
           4: (8, 11, 20, 22), 5: (14, 15, 21, 23, 26)}


def check_table_1(folder):
    with open(os.path.join(folder, "insertions.csv"), encoding="ascii") as file:
        rows = [(int(row["insertion"]), int(row["list"])) for row in csv.DictReader(file)]
    eq(rows, sorted((at, number) for number, places in TABLE_1.items() for at in places),
       "insertions")
    with open(os.path.join(folder, "index.html"), encoding="ascii") as file:
        page = file.read()
    for number, places in TABLE_1.items():
        cells = "".join("<td>X</td>" if at in places else "<td></td>" for at in range(1, 27))
        check("<tr><th>L%d</th>%s</tr>" % (number, cells) in page, "list %d" % number)


@test()
def frontier_locality_shows_table_1(context):
    path = script(context, golden("appendix_b"))
    sava(context, "run", path, "-l")
    folder = os.path.join(context.temp_dir(), "figures")
    sava(context, "locality", path[: -len(".txt")] + "-access.log", "-o", folder)
    check_table_1(folder)


@test(timeout=60.0)
def frontier_locality(context):
    text, _ = generated(context, hosts=12, urls_mean=8)
    path = script(context, text + "ADD_URLS 1\nhttp://x/y\nVER_HOST x\nLIMPA_HOST x\n")
    log = path[: -len(".txt")] + "-access.log"
    for flags in STRATEGIES.values():
        sava(context, "run", path, "-l", *flags)
        folder = os.path.join(context.temp_dir(), "figures", "here")
        out, _ = sava(context, "locality", log, "-o", folder, "--structures", "1000")
        accesses = read_log(log)
        check(" %d accesses to " % len(accesses) in out, out)
        check_figures(folder, accesses)
        eq(os.path.exists(os.path.join(folder, "index.html")), True)


@test(timeout=60.0)
def frontier_locality_of_made_up_logs(context):
    rng = context.rng("logs")
    folder = context.temp_dir()
    log = os.path.join(folder, "made-access.log")
    for size in (1, 50, 5000):
        addresses = [rng.randrange(1 << rng.choice((4, 12, 40, 64))) for _ in range(size // 3 + 1)]
        lines = ["%d %d %s 0x%x %d" % (rng.randrange(8), rng.choice((0, 1, 100, 101)),
                                       rng.choice("RW"), rng.choice(addresses), rng.randrange(99))
                 for _ in range(size)]
        with open(log, "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")
        target = os.path.join(folder, "figures%d" % size)
        _, err = sava(context, "locality", log, "-o", target)
        eq(err, "")
        check_figures(target, read_log(log))
    with open(log, "a", encoding="ascii") as file:
        file.write("9 9\nx\n0 0 Q 0x1 1\n0 0 R 1 1\n")
    out, err = sava(context, "locality", log, "-o", target, "--structures", "2")
    check("2 less used ones left out" in out, out)
    check("4 lines are no accesses" in err, err)


@test()
def frontier_the_documents_lists(context):
    """The literal port gives the same output, and the document's stack distances."""
    context.sava_only()
    port = os.path.join(context.options.built or "", "sava_frontier_lists")
    if not os.path.exists(port):
        raise Skip("sava_frontier_lists is not built")
    path = script(context, golden("appendix_b"))
    subprocess.run([port, path, "-l"], check=True, timeout=30 * SLOW)
    stem = path[: -len(".txt")] + "-lists"
    with open(stem + "-out.txt", encoding="ascii") as file:
        same_text(file.read(), golden("appendix_b_depth"), "output")
    accesses = read_log(stem + "-access.log")
    folder = os.path.join(context.temp_dir(), "lists")
    sava(context, "locality", stem + "-access.log", "-o", folder)
    rows = check_figures(folder, accesses)
    total = {key: int(row["total stack distance"]) for key, row in rows.items()}
    check_table_1(folder)
    eq(total[7, 0], 4, "figure 24")
    eq(total[5, 100], 0, "figure 23 (b)")
    check(os.path.exists(os.path.join(folder, "distance-5-100.svg")), "figure 23 (b) is drawn")
    of_lists = (*range(1, 6), *range(101, 106))
    eq([total[1, number] for number in of_lists], [0] * 10, "phase 1, lists")
    for number in range(1, 6):  # figures 17 to 21: cells are farther apart than items
        check(total[0, number] > total[0, 100 + number], "list %d: %s" % (number, total))
    check(total[0, 2] > total[0, 1] > total[0, 5] > total[0, 3], str(total))
    check(total[0, 103] > total[0, 104], str(total))
    # The port also agrees where hosts and URLs are many.
    text, _ = generated(context, hosts=20, urls_mean=20)
    path = script(context, text + "ADD_URLS 2\nhttp://a/x/y\nhttp://a/x\nVER_HOST a\nESCALONA 1\n"
                  "ESCALONA_HOST a 1\nLIMPA_HOST a\nVER_HOST a\nLISTA_HOSTS\n")
    subprocess.run([port, path], check=True, timeout=30 * SLOW)
    sava(context, "run", path)
    with open(path[: -len(".txt")] + "-lists-out.txt", encoding="ascii") as file:
        same_text(file.read(), result(path), "generated")
    rng = context.rng("lists")
    for number in range(10):
        steps = random_history(rng, rng.choice((1, 3, 40)), 40)
        path = script(context, "".join(line + "\n" for line, _, _ in steps).encode("latin-1"))
        for flags in ([], ["-b"], ["-b", "-l"]):
            subprocess.run([port, path, *flags], check=True, timeout=30 * SLOW)
            sava(context, "run", path, *[flag for flag in flags if flag != "-l"])
            with open(path[: -len(".txt")] + "-lists-out.txt", encoding="latin-1") as file:
                same_text(file.read(), result(path), "history %d %s" % (number, flags))


@test()
def frontier_reads_by_order_of_depth(context):
    """Figure 11: URLs in ascending depth read all that are there, in descending depth one each."""
    context.sava_only()
    port = os.path.join(context.options.built or "", "sava_frontier_lists")
    if not os.path.exists(port):
        raise Skip("sava_frontier_lists is not built")
    for count in (4, 30):
        for depths, expected in ((range(1, count + 1), count * (count - 1) // 2),
                                 (range(count, 0, -1), count - 1)):
            urls = ["http://h" + "/d" * depth for depth in depths]
            path = script(context, "\n".join(("ADD_URLS %d" % count, *urls, "")))
            subprocess.run([port, path, "-l"], check=True, timeout=30 * SLOW)
            reads = sum(number == 101 and operation == "R" for _, number, operation, _
                        in read_log(path[: -len(".txt")] + "-lists-access.log"))
            eq(reads, expected, "%d URLs, depths %s" % (count, depths))
