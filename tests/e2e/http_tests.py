"""The HTTP service: raw sockets, curl and Node's fetch; pipelines, chunks, slow clients."""

import base64
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import urllib.parse

import resp
from harness import READY, SLOW, Server, Skip, check, eq, free_port, run_workers, test, until

HERE = os.path.dirname(os.path.abspath(__file__))
JSON = {"Content-Type": "application/json"}
CHUNKED = dict(JSON, **{"Transfer-Encoding": "chunked"})


class Answer:
    """A response; names of header fields are lower case."""

    def __init__(self, status, fields, body):
        self.status = status
        self.fields = fields
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)


class Http:
    """A connection that sends bytes as they are told and reads responses strictly."""

    def __init__(self, port, timeout=20.0):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout * SLOW)
        self.kept = b""

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def _more(self):
        data = self.socket.recv(65536)
        self.kept += data
        return bool(data)

    def read(self, head_only=False):
        """The next response, None at the end of the connection."""
        while b"\r\n\r\n" not in self.kept:
            if not self._more():
                check(not self.kept, "the connection ended within a response: %r" % self.kept)
                return None
        head, self.kept = self.kept.split(b"\r\n\r\n", 1)
        lines = head.decode("ascii").split("\r\n")
        version, status, _ = lines[0].split(" ", 2)
        eq(version, "HTTP/1.1")
        fields = {}
        for line in lines[1:]:
            name, value = line.split(": ", 1)
            fields[name.lower()] = value
        status = int(status)
        if status in (100, 204):
            check("content-length" not in fields, "a length without a body")
        length = 0 if head_only else int(fields.get("content-length", 0))
        while len(self.kept) < length:
            check(self._more(), "the connection ended within a body")
        body, self.kept = self.kept[:length], self.kept[length:]
        return Answer(status, fields, body)

    def ask(self, method, path, body=None, headers=None):
        self.send(encode(method, path, body, headers))
        return self.read(method == "HEAD")

    def at_end(self):
        """True when the server has closed and sent nothing more."""
        try:
            return self.read() is None
        except ConnectionResetError:
            return True


def encode(method, path, body=None, headers=None):
    if isinstance(body, (dict, list)):
        body = json.dumps(body)
    if isinstance(body, str):
        body = body.encode()
    fields = {"Host": "localhost"}
    if body is not None:
        fields.update(JSON)
        fields["Content-Length"] = str(len(body))
    fields.update(headers or {})
    head = "%s %s HTTP/1.1\r\n" % (method, path)
    head += "".join("%s: %s\r\n" % item for item in fields.items() if item[1] is not None)
    return head.encode() + b"\r\n" + (body or b"")


def serve(context, *options, **more):
    """A server with HTTP; its port is server.http_port."""
    context.sava_only("HTTP is Sava's")
    port = free_port()
    server = context.start("--http-port", str(port), *options, **more)
    server.http_port = port
    return server


def connect(context, server, **options):
    connection = Http(server.http_port, **options)
    context.at_end(connection.close)
    return connection


def pair(key, associated):
    return {"key": key, "associatedKey": associated}


def path_of(key):
    return "/associations/" + urllib.parse.quote(key, safe="")


def need(program, package):
    path = shutil.which(program)
    check(path, "%s is not installed (Debian package %s)" % (program, package))
    return path


def run(command, seconds=60, stdin=None):
    done = subprocess.run(
        command, input=stdin, capture_output=True, timeout=seconds * SLOW, check=False
    )
    text = done.stdout.decode("utf-8", "replace")
    eq(done.returncode, 0, " ".join(command) + "\n" + text + done.stderr.decode()[-1000:])
    return text


# ---- the service ----


@test()
def where_it_listens(context):
    server = serve(context)
    check("http://127.0.0.1:%d" % server.http_port in server.log().decode(), "not in the log")
    eq(server.info_field("http_port", "server"), str(server.http_port))
    answer = connect(context, server).ask("GET", "/healthz")
    eq((answer.status, answer.json), (200, {"status": "ok"}))
    check("date" in answer.fields, "no Date")
    code, output = context.try_start("--http-port", str(server.http_port))
    eq(code, 1, "a port that is taken")
    check(str(server.http_port) in output and "HTTP" in output, output)
    info = server.call("INFO", "server").decode()
    check("listener0:name=tcp,bind=" in info, info)
    check(",port=%d\r\n" % server.http_port in info.split(":name=http,bind=127.0.0.1")[1], info)
    off = context.start()
    check("HTTP  off" in off.log().decode(), "http-port 0")
    check("name=http" not in off.call("INFO", "server").decode(), "it does not listen")


@test(timeout=60)
def the_front_page(context):
    """A browser gets a page, a program JSON; every example of it works."""
    server = serve(context)
    http = connect(context, server)
    host = {"Host": "127.0.0.1:%d" % server.http_port}
    browser = dict(host, Accept="text/html,application/xhtml+xml,*/*;q=0.8")
    page = http.ask("GET", "/", None, browser)
    eq((page.status, page.fields["content-type"]), (200, "text/html; charset=utf-8"))
    html = page.body.decode()
    check(html.startswith("<!doctype html>") and html.endswith("</html>\n"), html[:200])
    answer = http.ask("GET", "/", None, dict(host, Accept="*/*"))
    eq((answer.status, answer.fields["content-type"]), (200, "application/json"))
    info = answer.json
    eq(info["version"], server.info_field("sava_version", "server"))
    check(0 <= info["uptimeSeconds"] < 3600, str(info["uptimeSeconds"]))
    need("curl", "curl")
    for route in info["routes"]:
        text = run(["sh", "-c", route["example"] + " -s -w '\n%{http_code}'"])
        check(text.split("\n")[-1] in ("200", "204"), route["example"] + text)
        check(route["path"] in html, route["path"])
    eq(http.ask("HEAD", "/", None, browser).fields["content-length"], str(len(page.body)))
    eq(http.ask("POST", "/", {}).status, 405)


@test()
def the_documentation_lists_the_routes(context):
    """The table at the top of docs/http.md and the front page name the same requests and commands."""
    server = serve(context)
    routes = connect(context, server).ask("GET", "/").json["routes"]
    told = {(route["method"] + " " + route["path"], route["command"]) for route in routes}
    with open(os.path.join(HERE, "..", "..", "docs", "http.md"), encoding="utf-8") as file:
        table = file.read().split("|---|---|---|\n", 1)[1].split("\n\n", 1)[0]
    written = set()
    for line in table.split("\n"):
        requests, command = (cell.strip() for cell in line.split("|")[1:3])
        name = re.match("`([A-Z.]+)", command)
        methods, path = requests.strip("`").rsplit(" ", 1)
        written |= {(method + " " + path, name and name[1]) for method in methods.split(", ")}
    eq(written - {("GET /", None)}, told)
    check(("GET /", None) in written, "the front page stands in the table")


@test()
def a_taken_port_that_nobody_asked_for(context):
    """Two servers on one machine differ in their port alone: the second one does without HTTP."""
    context.sava_only("HTTP is Sava's")
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 7379))
            taken.listen()
        except OSError:
            pass  # somebody else has it
        server = Server(context.options.server, (), context.options.threads)
        try:
            line = server.command_line(free_port())
            at = line.index("--http-port")
            server.spawn(line[:at] + line[at + 2 :])
            until(lambda: b"HTTP is off" in server.log(), what="the server to say so")
            until(lambda: READY in server.log(), what="the server")
            check(b"7379: Address already in use" in server.log(), "no reason")
            check(b"HTTP  off" in server.log(), "not in the banner")
            eq(server.terminate(), 0)
        finally:
            server.stop()
            server.remove_files()


@test()
def only_http(context):
    """Without a RESP port the service runs all the same."""
    context.sava_only("HTTP is Sava's")
    port = free_port()
    server = context.start("--http-port", str(port), "--port", "0", "--unixsocket", "s.sock")
    eq(Http(port).ask("GET", "/healthz").status, 200)
    eq(server.terminate(), 0)


@test()
def the_service_of_the_document(context):
    server = serve(context)
    http = connect(context, server)
    answer = http.ask("GET", "/associations/u1")
    eq((answer.status, answer.json), (200, []))
    for member in ("a", "b", "c", "b", "c", "c", "d"):
        answer = http.ask("POST", "/associations", {"Key": "u1", "AssociatedKey": member})
        eq((answer.status, answer.body), (204, b""))
    answer = http.ask("GET", "/associations/u1")
    rows = [(row["associatedKey"], row["frequency"]) for row in answer.json]
    eq(rows, [("c", 3), ("b", 2), ("a", 1), ("d", 1)])
    eq(answer.fields["content-type"], "application/json")
    eq(len(http.ask("GET", "/associations/u1?k=2").json), 2)
    eq(http.ask("GET", "/associations/u1?k=0").status, 400)
    with server.configured(associations_top="3"):
        eq(len(http.ask("GET", "/associations/u1").json), 3)
    eq(server.call("AFC.TOP", "assoc:u1", "1", "WITHCOUNTS"), [b"c", 3])
    answer = http.ask("DELETE", "/associations/u1")
    eq((answer.status, answer.body), (200, b""))
    eq(server.call("EXISTS", "assoc:u1"), 0)
    eq(http.ask("DELETE", "/associations/u1").status, 200)
    with server.configured(associations_prefix="p:"):
        eq(http.ask("POST", "/associations", pair("u", "m")).status, 204)
    eq(server.call("KEYS", "*"), [b"p:u"])


@test()
def guids_are_one_key_in_any_text(context):
    server = serve(context)
    http = connect(context, server)
    canonical = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
    texts = [canonical, canonical.upper(), canonical.replace("-", ""), "{%s}" % canonical,
             "(%s)" % canonical.upper()]
    for text in texts:
        eq(http.ask("POST", "/associations", pair(text, text)).status, 204)
    eq(server.call("DBSIZE"), 5, "texts are texts")
    for text in texts:
        eq(http.ask("DELETE", path_of(text)).status, 200)
    with server.configured(associations_guid_keys="yes"):
        for text in texts:
            eq(http.ask("POST", "/associations", pair(text, text)).status, 204)
        eq(server.call("KEYS", "*"), [b"assoc:" + canonical.encode()])
        for text in texts:
            rows = http.ask("GET", path_of(text)).json
            eq(rows, [{"associatedKey": canonical, "frequency": 5}], text)
        eq(http.ask("POST", "/associations", pair("User", "A book")).status, 204)
        eq(http.ask("GET", path_of("User")).json, [{"associatedKey": "A book", "frequency": 1}])
        answer = http.ask("POST", "/associations:batch", [pair(text, text) for text in texts])
        eq(answer.status, 200, answer.body)
        eq(http.ask("GET", path_of(canonical)).json,
           [{"associatedKey": canonical, "frequency": 10}])
        eq(http.ask("DELETE", path_of(texts[3])).status, 200)
        eq(server.call("KEYS", "*"), [b"assoc:User"])


@test()
def any_key(context):
    http = connect(context, serve(context))
    keys = ["ključ", "a/b?c#d%20 +&=", "日本語", "😀", "x" * 1000, "\x00\x01\n\"\\", "..", "%41"]
    for key in keys:
        eq(http.ask("POST", "/associations", pair(key, key)).status, 204, repr(key))
        rows = http.ask("GET", path_of(key)).json
        eq(rows, [{"associatedKey": key, "frequency": 1}])
        raw = '{"key":"%s","associatedKey":"z"}' % key.replace("\\", "\\\\").replace('"', '\\"')
        if "\x00" not in key:
            eq(http.ask("POST", "/associations", raw).status, 204, "not escaped: %r" % key)
            eq(len(http.ask("GET", path_of(key)).json), 2)
    # A number is the text it is written as.
    for text in ("42", "-0.50", "123456789012345678901234567890", "1e400"):
        body = '{"key":%s,"associatedKey":%s}' % (text, text)
        eq(http.ask("POST", "/associations", body).status, 204, text)
        eq(http.ask("GET", path_of(text)).json, [{"associatedKey": text, "frequency": 1}])


@test()
def keys_of_another_type(context):
    server = serve(context)
    http = connect(context, server)
    server.call("SET", "assoc:s", "text")
    for method, path, body in (
        ("POST", "/associations", pair("s", "x")),
        ("GET", "/associations/s", None),
        ("DELETE", "/associations/s", None),
        ("POST", "/associations:batch", [pair("t", "x"), pair("s", "x")]),
    ):
        answer = http.ask(method, path, body)
        eq(answer.status, 409, method + path)
        eq(answer.fields["content-type"], "application/problem+json")
        eq(answer.json["status"], 409)
    eq(server.call("GET", "assoc:s"), b"text")
    eq(server.call("EXISTS", "assoc:t"), 0, "a batch is all or nothing")


@test(timeout=60)
def batches(context):
    server = serve(context)
    http = connect(context, server)
    batch = "/associations:batch"
    answer = http.ask("POST", batch, [pair("a", "x"), pair("a", "x"), pair("b", "é")])
    eq((answer.status, answer.json), (200, {"accepted": 3, "new": 2}))
    lines = "\n".join(json.dumps(pair("a", str(i))) for i in range(5)) + "\n"
    answer = http.ask("POST", batch, lines, {"Content-Type": "application/x-ndjson"})
    eq(answer.json, {"accepted": 5, "new": 5})
    answer = http.ask("POST", batch, [pair("c", "x"), {"key": "c"}])
    eq((answer.status, answer.json["index"]), (400, 1))
    eq(server.call("EXISTS", "assoc:c"), 0, "nothing of a bad batch")
    rows = [pair("k%d" % (i % 997), "m%d" % (i % 7)) for i in range(60000)]
    # While a large one is worked on, others are served.
    http.send(encode("POST", batch, rows))
    other = connect(context, server)
    for _ in range(20):
        eq(other.ask("GET", "/associations/nobody").json, [])
    eq(http.read().json, {"accepted": 60000, "new": 997 * 7})
    eq(server.call("AFC.TOTAL", "assoc:k0"), len(range(0, 60000, 997)))


@test()
def limits(context):
    server = serve(context)
    http = connect(context, server)
    wanted = {"algorithm": "window", "limit": 2, "periodMs": 600000}
    query = "?" + urllib.parse.urlencode(wanted)
    seen = [http.ask("GET", "/v1/limits/u" + query)]
    seen += [http.ask("POST", "/v1/limits/u", wanted) for _ in range(3)]
    seen += [http.ask("GET", "/v1/limits/u" + query)]
    eq([answer.status for answer in seen], [200, 200, 200, 429, 429])
    eq([answer.json["remaining"] for answer in seen], [2, 1, 0, 0, 0])
    eq([answer.json["allowed"] for answer in seen], [True, True, True, False, False])
    for answer in seen:
        eq(answer.fields["ratelimit-policy"], '"window";q=2;w=600')
        eq(answer.fields["ratelimit"].split(";t=")[0], '"window";r=%d' % answer.json["remaining"])
        eq("retry-after" in answer.fields, answer.status == 429)
    check(0 < int(seen[3].fields["retry-after"]) <= 601, seen[3].fields["retry-after"])
    eq(seen[3].fields["content-type"], "application/problem+json")
    eq(server.call("RL.PEEK", "u", "WINDOW", "2", "600000")[0], 0, "the same bucket over RESP")
    for algorithm in ("token", "gcra", "sliding"):
        wanted = {"algorithm": algorithm, "limit": 5, "periodMs": 60000, "cost": 2}
        answer = http.ask("POST", "/v1/limits/" + algorithm, wanted)
        eq((answer.status, answer.json["allowed"]), (200, True), algorithm)
    eq(http.ask("POST", "/v1/limits/u", {"algorithm": "window"}).status, 400)
    eq(http.ask("POST", "/v1/limits/u", dict(wanted, limit=-1)).status, 400)
    server.call("SET", "other", "text")
    eq(http.ask("POST", "/v1/limits/other", dict(wanted, algorithm="window")).status, 409)
    eq(server.call("GET", "other"), b"text")


@test()
def the_servers_own_limiter(context):
    server = serve(context)
    http = connect(context, server)
    eq(http.ask("POST", "/associations", pair("u", "m")).status, 204)
    eq(server.call("CONFIG", "SET", "ratelimit-default", "window 2 600s"), resp.OK)
    eq(server.call("CONFIG", "SET", "ratelimit-enabled", "yes"), resp.OK)
    statuses = [http.ask("POST", "/associations", pair("u", "m")) for _ in range(4)]
    eq(statuses[-1].status, 429)
    check(0 < int(statuses[-1].fields["retry-after"]) <= 601, "Retry-After")
    check(statuses[-1].fields["ratelimit"].startswith('"server";r=0;t='), "RateLimit")
    eq(statuses[-1].fields["ratelimit-policy"], '"server";q=2;w=600')
    eq(http.ask("GET", "/healthz").status, 200, "healthz runs no command")


# ---- the protocol ----


@test(timeout=60)
def pipelines(context):
    server = serve(context)
    http = connect(context, server)
    requests = []
    for i in range(300):
        requests.append(encode("POST", "/associations", pair("p", "m%d" % (i % 5))))
        requests.append(encode("GET", "/associations/p?k=1"))
    http.send(b"".join(requests))
    for i in range(300):
        eq(http.read().status, 204)
        eq(http.read().json[0]["frequency"], i // 5 + 1)
    # The same in pieces of any size.
    rng = context.rng("pipelines")
    data = b"".join(requests[:100])
    while data:
        size = rng.randint(1, 400)
        http.send(data[:size])
        data = data[size:]
    for i in range(50):
        eq(http.read().status, 204)
        eq(http.read().status, 200)
    eq(server.call("AFC.TOTAL", "assoc:p"), 350)


@test()
def chunks(context):
    http = connect(context, serve(context))
    head = encode("POST", "/associations:batch", None, CHUNKED)
    body = json.dumps([pair("c", str(i)) for i in range(2000)]).encode()
    for size in (1, 7, 1000, len(body)):
        pieces = [body[i : i + size] for i in range(0, len(body), size)]
        data = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
        http.send(head + data + b"0\r\nTrailer: x\r\n\r\n")
        eq(http.read().json["accepted"], 2000)
    eq(http.ask("GET", "/associations/c?k=1").json[0]["frequency"], 4)


@test()
def expect_continue(context):
    http = connect(context, serve(context))
    body = json.dumps(pair("e", "x")).encode()
    fields = dict(JSON, **{"Expect": "100-continue", "Content-Length": str(len(body))})
    http.send(encode("POST", "/associations", None, fields))
    eq(http.read().status, 100)
    http.send(body)
    eq(http.read().status, 204)
    # Who will be refused is told before he sends the body.
    fields["Content-Length"] = str(1 << 30)
    http.send(encode("POST", "/associations", None, fields))
    eq(http.read().status, 413)
    check(http.at_end(), "the connection stays")


@test()
def keep_alive_and_head(context):
    server = serve(context)
    http = connect(context, server)
    http.ask("POST", "/associations", pair("h", "x"))
    got, head = http.ask("GET", "/associations/h"), http.ask("HEAD", "/associations/h")
    eq(head.status, 200)
    eq(head.fields["content-length"], got.fields["content-length"])
    eq(http.ask("HEAD", "/nothing").status, 404)
    answer = http.ask("GET", "/healthz", None, {"Connection": "close"})
    eq(answer.fields["connection"], "close")
    check(http.at_end(), "Connection: close")
    old = connect(context, server)
    old.send(b"GET /healthz HTTP/1.0\r\n\r\n")
    eq(old.read().fields["connection"], "close")
    check(old.at_end(), "HTTP/1.0 ends with its answer")
    old = connect(context, server)
    for _ in range(2):
        old.send(b"GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        eq(old.read().fields["connection"], "keep-alive")
    half = connect(context, server)
    half.send(encode("GET", "/associations/h"))
    half.socket.shutdown(socket.SHUT_WR)
    eq(half.read().status, 200, "a client that has nothing more to say")
    check(half.at_end(), "and its end")


@test(timeout=60)
def malformed(context):
    server = serve(context)
    rows = [
        (400, b"nonsense\r\n\r\n"),
        (400, b"GET /healthz\r\n\r\n"),
        (400, b"GET /healthz HTTP/1.1\r\n\r\n"),
        (400, b"GET /healthz HTTP/1.1\nHost: x\n\n"),
        (400, b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"),
        (400, b"GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n"),
        (400, b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n"),
        (400, b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n"),
        (400, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        (400, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n"
              b"Transfer-Encoding: chunked\r\n\r\n"),
        (400, b"POST /associations HTTP/1.1\r\nHost: localhost\r\n"
              b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        (501, b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n"),
        (501, b"BREW / HTTP/1.1\r\nHost: x\r\n\r\n"),
        (505, b"GET / HTTP/3.0\r\nHost: x\r\n\r\n"),
        (417, b"GET / HTTP/1.1\r\nHost: x\r\nExpect: much\r\n\r\n"),
        (400, b"*1\r\n$4\r\nPING\r\n"),
        (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
    ]
    for status, data in rows:
        http = Http(server.http_port)
        http.send(data + b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = http.read()
        context.same(answer.status, status, repr(data))
        context.same(answer.fields.get("connection"), "close", repr(data))
        context.expect(answer.json["status"] == status, "problem of %r" % data)
        context.expect(http.at_end(), "goes on after %r" % data)
        http.close()
    rng = context.rng("malformed")
    valid = encode("POST", "/associations", pair("m", "x"))
    for _ in range(300):
        data = bytearray(valid)
        for _ in range(rng.randint(1, 5)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        http = Http(server.http_port)
        http.send(bytes(data))
        http.socket.shutdown(socket.SHUT_WR)
        while not http.at_end():
            pass
        http.close()
    check(server.alive(), "the server is gone")


@test()
def problems(context):
    http = connect(context, serve(context))
    for status, method, path, body, headers in (
        (404, "GET", "/nothing", None, {}),
        (404, "GET", "/associations/a/b", None, {}),
        (405, "GET", "/associations", None, {}),
        (405, "PUT", "/associations/a", {}, {}),
        (415, "POST", "/associations", "x", {"Content-Type": "text/plain"}),
        (415, "POST", "/associations", "x", {"Content-Type": None}),
        (415, "POST", "/associations", "x", {"Content-Encoding": "gzip"}),
        (400, "POST", "/associations", "{", {}),
        (400, "POST", "/associations", b'{"key":"\xff","associatedKey":1}', {}),
        (400, "POST", "/associations", None, {}),
        (400, "GET", "/associations/%zz", None, {}),
    ):
        answer = http.ask(method, path, body, headers)
        eq(answer.status, status, method + " " + path)
        eq(answer.fields["content-type"], "application/problem+json")
        eq(sorted(answer.json)[:4], ["detail", "status", "title", "type"])
        if status == 405:
            check(answer.fields["allow"], "no Allow")
    eq(http.ask("GET", "/healthz").status, 200, "the connection goes on")


@test()
def oversized(context):
    server = serve(context, "--http-max-header", "2kb", "--http-max-body", "1kb")
    large = pair("k", "x" * 2000)

    def status(data):
        http = connect(context, server)
        http.send(data)
        answer = http.read()
        check(http.at_end(), "the connection stays")
        return answer.status

    eq(status(b"GET /" + b"a" * 4000 + b" HTTP/1.1\r\n"), 414)
    eq(status(encode("GET", "/healthz", None, {"X": "y" * 4000})), 431)
    many = {"X%d" % i: "y" for i in range(120)}
    eq(status(encode("GET", "/healthz", None, many)), 431)
    eq(status(encode("POST", "/associations", large)), 413)
    # A client that goes on sending still sees why it is refused.
    head = encode("POST", "/associations", None, CHUNKED)
    eq(status(head + b"10000\r\n" + b"x" * 65536 + b"\r\n" + b"8000\r\n" + b"x" * 32768), 413)
    with server.configured(http_max_body="1mb"):
        eq(connect(context, server).ask("POST", "/associations", large).status, 204)


@test()
def a_key_that_can_be_written_can_be_read(context):
    """The worst key, all of it percent-encoded, and one byte more, by every way in."""
    for options in ((), ("--http-max-header", "1kb")):
        server = serve(context, *options)
        http = connect(context, server)
        most = 256 if options else 2048
        for key, good in (("/" * most, True), ("/" * (most + 1), False)):
            path = path_of(key) if good else "/associations/" + key.replace("/", "a")
            eq(http.ask("POST", "/associations", pair(key, "m")).status, 204 if good else 400)
            batch = http.ask("POST", "/associations:batch", [pair(key, "m")])
            eq(batch.status, 200 if good else 400)
            answer = http.ask("GET", path)
            eq(answer.status, 200 if good else 400)
            if good:
                eq(answer.json, [{"associatedKey": "m", "frequency": 2}])
            eq(http.ask("DELETE", path).status, 200 if good else 400)
            rule = {"algorithm": "window", "limit": 3, "periodMs": 1000}
            limit = path.replace("/associations/", "/v1/limits/")
            eq(http.ask("POST", limit, rule).status, 200 if good else 400)


@test(timeout=90)
def slow_clients(context):
    server = serve(context, "--http-timeout", "1", "--http-idle-timeout", "1")
    starts = [
        b"GET /healthz HT",
        b"GET /healthz HTTP/1.1\r\nHost: local",
        encode("POST", "/associations", None, dict(JSON, **{"Content-Length": "100"})) + b"{",
    ]
    for start in starts:
        http = connect(context, server)
        http.send(start)
        answer = http.read()
        eq(answer.status, 408, repr(start))
        check(http.at_end(), "the connection stays")
    http = connect(context, server)
    check(http.at_end(), "an idle connection is closed without a word")
    # A byte now and then does not prolong the head's time.
    http = connect(context, server)
    dripping = iter(b"GET /healthz HTTP/1.1\r\nX: " + b"y" * 1000)
    http.socket.settimeout(0.05)

    def refused():
        try:
            http.send(bytes([next(dripping)]))
            return http.read()
        except socket.timeout:
            return None

    eq(until(refused, 30, "an end of the patience").status, 408)
    with server.configured(http_timeout="30", http_idle_timeout="60"):
        http = connect(context, server)
        for byte in encode("POST", "/associations", pair("slow", "x")):
            http.send(bytes([byte]))
        eq(http.read().status, 204)
    check(server.alive(), "the server is gone")


# ---- who may come in ----


@test()
def password(context):
    server = serve(context, "--requirepass", "se:cret")
    http = connect(context, server)

    def basic(text):
        return {"Authorization": "Basic " + base64.b64encode(text.encode()).decode()}

    for headers in ({}, basic("default:wrong"), basic("alice:se:cret"), basic("se:cret"),
                    {"Authorization": "Bearer wrong"}, {"Authorization": "se:cret"}):
        answer = http.ask("POST", "/associations", pair("u", "m"), headers)
        eq(answer.status, 401, str(headers))
        check("www-authenticate" in answer.fields, "no WWW-Authenticate")
    for headers in (basic("default:se:cret"), basic(":se:cret"),
                    {"Authorization": "Bearer se:cret"}):
        eq(http.ask("POST", "/associations", pair("u", "m"), headers).status, 204, str(headers))
    eq(http.ask("GET", "/healthz").status, 200, "healthz asks for nothing")
    # Who is not known cannot make the server hold a body for him.
    http.send(encode("POST", "/associations", None, dict(JSON, **{"Content-Length": "1000000"})))
    eq(http.read().status, 401)
    check(http.at_end(), "the connection stays")
    client = context.client(server)
    eq(client.call("AUTH", "se:cret"), resp.OK)
    eq(client.call("AFC.TOTAL", "assoc:u"), 3)
    # Who tried a password stands in the log of refusals, who sent none does not.
    entries = [dict(zip(entry[::2], entry[1::2])) for entry in client.call("ACL", "LOG")]
    eq(
        sorted((entry[b"username"], entry[b"count"]) for entry in entries),
        [(b"alice", 1), (b"default", 3), (b"se", 1)],
    )
    for entry in entries:
        eq((entry[b"reason"], entry[b"context"], entry[b"object"]), (b"auth", b"toplevel", b"HTTP"))
        check(b"lib-name=http" in entry[b"client-info"], entry[b"client-info"])
    info = client.call("INFO", "stats").decode()
    check("acl_access_denied_auth:5\r\n" in info, info)
    eq(client.call("CONFIG", "SET", "requirepass", "new"), resp.OK)
    http = connect(context, server)
    eq(http.ask("GET", "/associations/u", None, basic("default:se:cret")).status, 401)
    eq(http.ask("GET", "/associations/u", None, basic("default:new")).status, 200)


@test()
def hosts_and_other_sites(context):
    server = serve(context)
    http = connect(context, server)
    write = ("POST", "/associations", pair("u", "m"))
    for host in ("localhost", "127.0.0.1:%d" % server.http_port, "[::1]:80", "10.0.0.1"):
        eq(http.ask(*write, {"Host": host}).status, 204, host)
    for host in ("evil.example", "evil.example:%d" % server.http_port, "127.0.0.1.evil.example"):
        eq(http.ask(*write, {"Host": host}).status, 421, host)
        eq(http.ask("GET", "/associations/u", None, {"Host": host}).status, 421, host)
    with server.configured(http_hosts="sava.example other.example"):
        eq(http.ask(*write, {"Host": "Sava.example:80"}).status, 204)
        eq(http.ask(*write, {"Host": "evil.example"}).status, 421)
    with server.configured(http_hosts="*"):
        eq(http.ask(*write, {"Host": "evil.example"}).status, 204)
    check(resp.is_error(server.call("CONFIG", "SET", "http-hosts", "a:80")), "a port in http-hosts")
    here = "http://localhost"
    eq(http.ask(*write, {"Origin": here}).status, 204)
    eq(http.ask(*write, {"Origin": "http://evil.example"}).status, 403)
    eq(http.ask(*write, {"Origin": "null"}).status, 403)
    eq(http.ask(*write, {"Sec-Fetch-Site": "cross-site"}).status, 403)
    eq(http.ask("DELETE", "/associations/u", None, {"Origin": "http://a.b"}).status, 403)
    preflight = http.ask("OPTIONS", "/associations", None, {"Origin": "http://a.b"})
    eq(preflight.status, 405)
    eq(server.call("AFC.TOTAL", "assoc:u"), 7)


# ---- with everything else ----


@test()
def paused_clients_lose_nothing(context):
    server = serve(context)
    http, reader = connect(context, server), connect(context, server)
    eq(server.call("CLIENT", "PAUSE", "60000", "WRITE"), resp.OK)
    data = encode("POST", "/associations", pair("w", "x")) + encode("GET", "/associations/w")
    http.send(data * 3)
    batch = connect(context, server)
    batch.send(encode("POST", "/associations:batch", [pair("v%d" % i, "x") for i in range(100)]))
    eq(reader.ask("GET", "/associations/w").json, [], "reads are not paused")
    eq(server.call("CLIENT", "UNPAUSE"), resp.OK)
    for i in range(3):
        eq(http.read().status, 204)
        eq(http.read().json, [{"associatedKey": "x", "frequency": i + 1}])
    eq(batch.read().json, {"accepted": 100, "new": 100})


@test(timeout=90)
def many_on_one_associator(context):
    server = serve(context, threads=4)

    def worker():
        http = Http(server.http_port)
        for i in range(500):
            http.send(encode("POST", "/associations", pair("hot", "m%d" % (i % 3))) * 4)
            for _ in range(4):
                eq(http.read().status, 204)
        return http.ask("GET", "/associations/hot").status

    eq(run_workers([worker] * 6, 60), [200] * 6)
    eq(server.call("AFC.TOTAL", "assoc:hot"), 6 * 500 * 4)


@test(timeout=60)
def who_does_not_read_is_not_served_on(context):
    server = serve(context)
    http = connect(context, server)
    rows = [pair("big", "member %d %s" % (i, "x" * 100)) for i in range(5000)]
    eq(http.ask("POST", "/associations:batch", rows).status, 200)
    http.send(encode("GET", "/associations/big?k=5000") * 100)

    def held():
        return int(server.info_field("client_recent_max_output_buffer", "clients"))

    until(held, 15, "answers that wait")
    longest = max(held() for _ in range(50))
    size = None
    for _ in range(100):
        body = http.read().body
        check(size in (None, len(body)), "answers differ")
        size = len(body)
    check(longest < 3 * size, "%d bytes were kept for one client" % longest)
    eq(http.ask("GET", "/healthz").status, 200)


@test()
def clients_are_counted_listed_and_killed(context):
    server = serve(context, "--maxclients", "3")
    http = connect(context, server)
    eq(http.ask("GET", "/associations/a").status, 200)
    lines = server.call("CLIENT", "LIST").decode().splitlines()
    mine = [line for line in lines if "lib-name=http" in line]
    eq(len(mine), 1, str(lines))
    check("cmd=afc.top" in mine[0], mine[0])
    more = connect(context, server)
    eq(more.ask("GET", "/healthz").status, 200)
    refused = connect(context, server)
    eq(refused.read().status, 503)
    check(refused.at_end(), "the refused one stays")
    fields = dict(field.split("=", 1) for field in mine[0].split(" "))
    eq(server.call("CLIENT", "KILL", "ID", fields["id"]), 1)
    check(http.at_end(), "killed, and still there")


@test(timeout=60)
def curl(context):
    server = serve(context)
    program = need("curl", "curl")
    base = "http://127.0.0.1:%d" % server.http_port

    def call(*arguments, stdin=None):
        return run([program, "-sS", "-w", "%{http_code}", *arguments], stdin=stdin)

    post = ("-H", "Content-Type: application/json", base + "/associations", "-d")
    eq(call(*post, '{"key":"u1","associatedKey":"books"}'), "204")
    eq(call(base + "/associations/u1"), '[{"associatedKey":"books","frequency":1}]200')
    eq(call("-I", "-o", os.devnull, base + "/associations/u1"), "200")
    rows = json.dumps([pair("large", "m%d" % i) for i in range(40000)]).encode()
    check(len(rows) > 1 << 20, "too small for Expect")
    batch = ("-H", "Content-Type: application/json", base + "/associations:batch",
             "--data-binary", "@-")
    eq(call(*batch, stdin=rows), '{"accepted":40000,"new":40000}200')
    chunked = call("-H", "Transfer-Encoding: chunked", *batch, stdin=rows)
    eq(chunked, '{"accepted":40000,"new":0}200')
    eq(call("-X", "DELETE", base + "/associations/large"), "200")
    eq(call("--http1.0", base + "/healthz"), '{"status":"ok"}200')
    # curl asks for HTTP/2 by an upgrade that a server may ignore.
    eq(call("--http2", base + "/healthz"), '{"status":"ok"}200')
    body = '{"algorithm":"window","limit":1,"periodMs":60000}'
    take = ("-H", "Content-Type: application/json", "-d", body, base + "/v1/limits/c")
    check(call(*take).endswith("200") and call(*take).endswith("429"), "limits")
    eq(server.call("CONFIG", "SET", "requirepass", "secret"), resp.OK)
    eq(call("-u", "default:secret", base + "/associations/nobody"), "[]200")
    check(call(base + "/associations/nobody").endswith("401"), "without the password")


@test(timeout=60)
def fetch(context):
    """The program in fetch_test.mjs."""
    node = shutil.which("node")
    if not node:
        raise Skip("node is not installed (Debian package nodejs)")
    server = serve(context)
    text = run([node, os.path.join(HERE, "fetch_test.mjs"), str(server.http_port)])
    check(text.strip().endswith("all good"), text)


@test(timeout=60)
def examples_of_the_documentation(context):
    """Every `$ command` of docs/http.md prints what stands below it."""
    need("curl", "curl")
    server = serve(context)
    path = os.path.join(HERE, "..", "..", "docs", "http.md")
    with open(path, encoding="utf-8") as file:
        blocks = file.read().split("```\n")[1::2]
    ran = 0
    for block in (block for block in blocks if block.startswith("$ ")):
        for example in ("\n" + block).split("\n$ ")[1:]:
            command, expected = example.split("\n", 1)
            command = command.replace("127.0.0.1:7379", "127.0.0.1:%d" % server.http_port)
            context.same(run(["sh", "-c", command]).strip(), expected.strip(), command)
            ran += 1
    check(ran >= 12, "only %d examples were found" % ran)


@test(timeout=60)
def shutdown_finishes_what_has_begun(context):
    # One loop: that the idle connection has gone says that the others know of the end too.
    server = serve(context, "--threads", "1")
    body = json.dumps(pair("last", "x")).encode()
    begun = connect(context, server)
    fields = dict(JSON, **{"Content-Length": str(len(body))})
    begun.send(encode("POST", "/associations", None, fields))
    waiting = connect(context, server)
    idle = connect(context, server)
    eq(idle.ask("GET", "/healthz").status, 200)
    admin = context.client(server)
    eq(admin.call("CLIENT", "PAUSE", "60000", "WRITE"), resp.OK)
    waiting.send(encode("POST", "/associations", pair("last", "y")))
    until(lambda: sum("qbuf=0" not in line for line in
                      admin.call("CLIENT", "LIST").decode().splitlines()
                      if "lib-name=http" in line) == 2, 15, "both requests")
    server.process.send_signal(signal.SIGTERM)
    check(idle.at_end(), "an idle connection outlives the signal")
    begun.send(body)
    eq(admin.call("CLIENT", "UNPAUSE"), resp.OK)
    for http in (begun, waiting):
        answer = http.read()
        eq((answer.status, answer.fields["connection"]), (204, "close"))
        check(http.at_end(), "the connection stays")
    eq(server.wait_exit(), 0)


@test(timeout=60)
def shutdown_does_not_wait_for_ever(context):
    server = serve(context, "--shutdown-timeout", "1")
    begun = connect(context, server)
    begun.send(encode("POST", "/associations", None, dict(JSON, **{"Content-Length": "10"})) + b"{")
    half = connect(context, server)
    half.send(b"GET /heal")
    until(lambda: b"qbuf=9 " in server.call("CLIENT", "LIST"), 15, "the half request")
    eq(server.terminate(), 0)


@test()
def shutdown_now_does_not_wait(context):
    server = serve(context, "--shutdown-timeout", "600")
    begun = connect(context, server)
    begun.send(encode("POST", "/associations", None, dict(JSON, **{"Content-Length": "10"})) + b"{")
    half = connect(context, server)
    half.send(b"GET /heal")
    until(lambda: b"qbuf=9 " in server.call("CLIENT", "LIST"), 15, "the half request")
    client = server.client()
    client.send("SHUTDOWN", "NOW")
    eq(server.wait_exit(), 0)
