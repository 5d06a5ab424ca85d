"""TLS: handshakes, certificates, settings at run time, and bytes cut where nobody expects it."""

import os
import select
import shutil
import socket
import ssl
import subprocess
import threading

import resp
from clients_tests import HERE, need, run
from harness import SLOW, Skip, check, eq, free_port, test, until


def openssl(folder, *arguments):
    done = subprocess.run(
        [need("openssl", "openssl"), *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60 * SLOW,
    )
    check(done.returncode == 0, done.stdout.decode("utf-8", "replace"))


class Authority:
    """A folder with a certificate authority, and certificates it has signed."""

    def __init__(self, folder, name="ca"):
        self.folder = folder
        self.name = name
        self.make_key(name)
        openssl(
            folder, "req", "-x509", "-new", "-key", name + ".key", "-days", "30", "-subj",
            "/CN=" + name, "-out", name + ".crt",
        )

    def make_key(self, name):
        openssl(
            self.folder, "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-out", name + ".key",
        )

    def sign(self, name, days="30"):
        """NAME.crt and NAME.key; days below zero: it has expired."""
        self.make_key(name)
        openssl(
            self.folder, "req", "-new", "-key", name + ".key", "-subj", "/CN=" + name, "-out",
            name + ".csr",
        )
        if days.startswith("-"):
            self.sign_expired(name)
            return
        openssl(
            self.folder, "x509", "-req", "-in", name + ".csr", "-CA", self.name + ".crt", "-CAkey",
            self.name + ".key", "-CAcreateserial", "-days", days, "-out", name + ".crt",
        )

    def sign_expired(self, name):
        base = os.path.join(self.folder, "expired-" + name)
        os.mkdir(base)
        with open(os.path.join(base, "index.txt"), "w"):
            pass
        with open(os.path.join(base, "ca.cnf"), "w") as file:
            file.write(
                "[ca]\ndefault_ca=x\n[x]\ndatabase=%s/index.txt\nnew_certs_dir=%s\n"
                "rand_serial=yes\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n"
                % (base, base)
            )
        openssl(
            self.folder, "ca", "-batch", "-config", os.path.join(base, "ca.cnf"), "-cert",
            self.name + ".crt", "-keyfile", self.name + ".key", "-in", name + ".csr", "-out",
            name + ".crt", "-startdate", "20200101000000Z", "-enddate", "20200102000000Z",
        )

    def path(self, name):
        return os.path.join(self.folder, name)


def authority(context):
    ca = Authority(context.temp_dir())
    ca.sign("server")
    ca.sign("client")
    return ca


def tls_server(context, ca, *options, **more):
    """A server with a plain port and one for TLS, server.tls_port."""
    port = free_port()
    server = context.start(
        "--tls-port", str(port), "--tls-cert-file", ca.path("server.crt"),
        "--tls-key-file", ca.path("server.key"), "--tls-ca-cert-file", ca.path("ca.crt"),
        *options, **more
    )
    server.tls_port = port
    return server


def client_context(ca, certificate="client", trusted="ca.crt"):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.load_verify_locations(ca.path(trusted))
    if certificate:
        made.load_cert_chain(ca.path(certificate + ".crt"), ca.path(certificate + ".key"))
    return made


class TlsClient(resp.Client):
    """A client of tests/e2e/resp.py whose bytes are encrypted."""

    def __init__(self, port, tls, timeout=None):
        super().__init__(("127.0.0.1", port), timeout or 20 * SLOW)
        try:
            self.sock = tls.wrap_socket(self.sock)
        except (ssl.SSLError, OSError):
            self.sock.close()
            raise


def connect(context, server, ca, **options):
    client = TlsClient(server.tls_port, client_context(ca, **options))
    context.at_end(client.close)
    return client


def refused(server, tls):
    """Whether the server takes no command from who shows what `tls` says."""
    try:
        with TlsClient(server.tls_port, tls) as client:
            return client.call("PING") != resp.PONG
    except (ssl.SSLError, resp.ConnectionClosed, OSError):
        return True


@test()
def commands_over_tls(context):
    context.sava_only("the shared redis-server has no certificates")
    ca = authority(context)
    server = tls_server(context, ca)
    client = connect(context, server, ca)
    eq(client.call("PING"), resp.PONG)
    eq(client.call("SET", "k", "v"), resp.OK)
    eq(server.call("GET", "k"), b"v", "by the plain port")
    eq(client.call("CONFIG", "GET", "tls-port")[1], str(server.tls_port).encode())
    check("name=tls" in str(server.info("server")), "INFO's listeners")
    data = b"".join(resp.encode("INCR", "n") for _ in range(3000))
    client.raw(data)
    eq([client.reply() for _ in range(3000)][-1], 3000)


@test()
def large_values_and_slow_readers(context):
    context.sava_only("the shared redis-server has no certificates")
    ca = authority(context)
    server = tls_server(context, ca)
    client = connect(context, server, ca)
    rng = context.rng("tls")
    value = rng.randbytes(3 << 20)
    eq(client.call("SET", "large", value), resp.OK)
    eq(client.call("GET", "large"), value)
    # Twenty megabytes are asked for before any of it is read.
    client.raw(resp.encode("GET", "large") * 7)
    eq(server.call("PING"), resp.PONG)
    for _ in range(7):
        eq(client.reply(), value)
    for size in (1, 16383, 16384, 16385, 32768, 100000):
        eq(client.call("SET", "s%d" % size, value[:size]), resp.OK)
        eq(client.call("GET", "s%d" % size), value[:size])
    names = ["s1", "s16383", "large", "s16385", "s32768", "s16384"]
    eq([len(v) for v in client.call("MGET", *names)], [1, 16383, 3 << 20, 16385, 32768, 16384])


@test()
def records_of_one_byte(context):
    context.sava_only("the shared redis-server has no certificates")
    ca = authority(context)
    server = tls_server(context, ca)
    client = connect(context, server, ca)
    data = resp.encode("SET", "k", "value") + resp.encode("GET", "k")
    for i in range(len(data)):
        client.sock.send(data[i : i + 1])  # a record each
    eq(client.reply(), resp.OK)
    eq(client.reply(), b"value")
    # Many small records in one segment: OpenSSL has what epoll does not report.
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client_context(ca).wrap_bio(incoming, outgoing)
    with socket.create_connection(("127.0.0.1", server.tls_port), 20 * SLOW) as sock:
        shake(sock, tls, incoming, outgoing)
        for _ in range(2000):
            for byte in resp.encode("INCR", "n"):
                tls.write(bytes((byte,)))
        sock.sendall(outgoing.read())
        expected = b"".join(b":%d\r\n" % (i + 1) for i in range(2000))
        eq(read_plain(sock, tls, incoming, len(expected)), expected)


def shake(sock, tls, incoming, outgoing, piece=None):
    while True:
        try:
            tls.do_handshake()
            done = True
        except ssl.SSLWantReadError:
            done = False
        data = outgoing.read()
        for i in range(0, len(data), piece or max(1, len(data))):
            sock.sendall(data[i : i + (piece or len(data))])
        if done:
            return
        received = sock.recv(65536)
        check(received, "the server hung up in the handshake")
        incoming.write(received)


def read_plain(sock, tls, incoming, count):
    text = b""
    while len(text) < count:
        try:
            text += tls.read(65536)
        except ssl.SSLWantReadError:
            received = sock.recv(65536)
            check(received, "the server hung up after %d bytes" % len(text))
            incoming.write(received)
    return text


@test()
def bytes_cut_anywhere(context):
    """Handshake and records come byte by byte."""
    context.sava_only("the shared redis-server has no certificates")
    ca = authority(context)
    server = tls_server(context, ca)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client_context(ca).wrap_bio(incoming, outgoing)
    with socket.create_connection(("127.0.0.1", server.tls_port), 20 * SLOW) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        shake(sock, tls, incoming, outgoing, piece=7)
        tls.write(resp.encode("PING"))
        for byte in outgoing.read():
            sock.sendall(bytes((byte,)))
        eq(read_plain(sock, tls, incoming, 7), b"+PONG\r\n")


@test()
def half_handshakes_disturb_nobody(context):
    context.sava_only("the shared redis-server has no certificates")
    ca = authority(context)
    server = tls_server(context, ca, threads=1)
    halves = []
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client_context(ca).wrap_bio(incoming, outgoing)
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    hello = outgoing.read()
    for i in range(60):
        sock = socket.create_connection(("127.0.0.1", server.tls_port), 20 * SLOW)
        halves.append(sock)
        sock.sendall(hello[: i * len(hello) // 59])
    client = connect(context, server, ca)
    eq(client.call("PING"), resp.PONG)
    for sock in halves[::2]:
        sock.close()
    eq(client.call("SET", "k", "v"), resp.OK)
    eq(connect(context, server, ca).call("GET", "k"), b"v")
    for sock in halves[1::2]:
        sock.close()
    until(lambda: server.info_field("connected_clients") == "3", what="the others to be gone")


@test(timeout=60)
def many_handshakes_at_once(context):
    context.sava_only("the shared redis-server has no certificates")
    ca = authority(context)
    server = tls_server(context, ca)
    tls = client_context(ca)
    results = []

    def work():
        for _ in range(25):
            with TlsClient(server.tls_port, tls) as client:
                results.append(client.call("INCR", "n"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        eq(server.call("PING"), resp.PONG)
    for thread in threads:
        thread.join()
    eq(sorted(results), list(range(1, 201)))


@test()
def certificates_of_clients(context):
    context.sava_only("the shared redis-server has no certificates")
    ca = authority(context)
    ca.sign("old", days="-1")
    stranger = Authority(ca.folder, "other")
    stranger.sign("stranger")
    server = tls_server(context, ca)
    check(refused(server, client_context(ca, certificate=None)), "without a certificate")
    check(refused(server, client_context(ca, "stranger")), "with a stranger's")
    check(refused(server, client_context(ca, "old")), "with an expired one")
    check(not refused(server, client_context(ca)), "with the right one")
    until(lambda: b"Error accepting a client connection: error:" in server.log(), what="the log")
    for asked, nothing, foreign in (("optional", False, True), ("no", False, False)):
        eq(server.call("CONFIG", "SET", "tls-auth-clients", asked), resp.OK)
        eq(refused(server, client_context(ca, certificate=None)), nothing, asked + ", none")
        eq(refused(server, client_context(ca, "stranger")), foreign, asked + ", a stranger's")
        check(not refused(server, client_context(ca)), asked + ", the right one")
    eq(server.call("CONFIG", "SET", "tls-auth-clients", "yes"), resp.OK)
    check(refused(server, client_context(ca, certificate=None)), "without one, again")


@test()
def who_speaks_something_else(context):
    context.sava_only("the shared redis-server has no certificates")
    ca = authority(context)
    server = tls_server(context, ca)
    for text in (b"PING\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\0" * 100, b"\x16\x03\x01"):
        with socket.create_connection(("127.0.0.1", server.tls_port), 20 * SLOW) as sock:
            sock.sendall(text)
            sock.shutdown(socket.SHUT_WR)
            data = b"x"
            while data:
                data = sock.recv(4096)
                check(b"PONG" not in data and b"HTTP" not in data, "answered: %r" % data)
    client = connect(context, server, ca)
    eq(client.call("PING"), resp.PONG)


@test()
def certificates_are_replaced_at_run_time(context):
    context.sava_only("the shared redis-server has no certificates")
    ca = authority(context)
    server = tls_server(context, ca)
    before = connect(context, server, ca)
    ca.sign("second")
    shown = before.sock.getpeercert()["subject"]
    eq(
        server.call("CONFIG", "SET", "tls-cert-file", ca.path("second.crt"), "tls-key-file",
                    ca.path("second.key")),
        resp.OK,
    )
    eq(before.call("PING"), resp.PONG, "a connection that was there")
    after = connect(context, server, ca)
    check(after.sock.getpeercert()["subject"] != shown, "the new certificate is shown")
    wrong = resp.Error(
        b"ERR CONFIG SET failed (possibly related to argument 'tls-cert-file') - "
        b"Unable to update TLS configuration. Check server logs."
    )
    for path in ("/nonexistent.crt", ca.path("server.crt")):
        eq(server.call("CONFIG", "SET", "tls-cert-file", path), wrong)
        eq(server.call("CONFIG", "GET", "tls-cert-file")[1], ca.path("second.crt").encode())
    check(b"Failed to load certificate: /nonexistent.crt: " in server.log(), "the log")
    check(b"Failed to load private key: " in server.log(), "the log of keys")
    eq(connect(context, server, ca).call("PING"), resp.PONG)
    # Renewed in place: the same name set once more.
    with open(ca.path("second.crt"), "rb") as file:
        old = file.read()
    openssl(ca.folder, "x509", "-req", "-in", "second.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
            "-days", "99", "-out", "second.crt")
    eq(server.call("CONFIG", "SET", "tls-cert-file", ca.path("second.crt")), resp.OK)
    renewed = connect(context, server, ca).sock.getpeercert(binary_form=True)
    check(renewed != ssl.PEM_cert_to_DER_cert(old.decode()), "the renewed certificate")
    eq(server.call("CONFIG", "SET", "tls-protocols", "TLSv1.2"), resp.OK)
    eq(connect(context, server, ca).sock.version(), "TLSv1.2")
    eq(before.call("PING"), resp.PONG)
    eq(server.call("CONFIG", "SET", "tls-protocols", "TLSv1.3"), resp.OK)
    eq(connect(context, server, ca).sock.version(), "TLSv1.3")
    error = server.call("CONFIG", "SET", "tls-protocols", "TLSv9")
    check(resp.is_error(error), "an unknown protocol: " + resp.show(error))


@test()
def ports_change_at_run_time(context):
    context.sava_only("the shared redis-server has no certificates")
    ca = authority(context)
    server = tls_server(context, ca)
    admin = context.client(server)
    first, other = server.tls_port, free_port()
    eq(admin.call("CONFIG", "SET", "tls-port", str(other)), resp.OK)
    server.tls_port = other
    eq(connect(context, server, ca).call("PING"), resp.PONG)
    # The two kinds of port change places.
    eq(admin.call("CONFIG", "SET", "port", str(other), "tls-port", str(server.port)), resp.OK)
    server.tls_port, server.port = server.port, other
    eq(connect(context, server, ca).call("PING"), resp.PONG)
    eq(context.client(server).call("PING"), resp.PONG)
    eq(admin.call("CONFIG", "SET", "tls-port", "0"), resp.OK)
    for port in (first, server.tls_port):
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
            context.note("port %d still takes connections" % port)
        except ConnectionRefusedError:
            pass


@test()
def settings_that_cannot_work_are_refused(context):
    context.sava_only("exit codes and texts of this server's own log")
    ca = authority(context)
    ca.sign("extra")
    openssl(ca.folder, "pkey", "-in", "server.key", "-aes256", "-passout", "pass:abc", "-out",
            "locked.key")
    port = ("--tls-port", str(free_port()))
    certificate = ("--tls-cert-file", ca.path("server.crt"))
    key = ("--tls-key-file", ca.path("server.key"))
    for options, reason in (
        (port, "No tls-cert-file configured!"),
        (port + certificate, "No tls-key-file configured!"),
        (port + certificate + key, "Either tls-ca-cert-file or tls-ca-cert-dir"),
        (
            port + certificate + ("--tls-key-file", ca.path("extra.key"))
            + ("--tls-auth-clients", "no"),
            "Failed to load private key",
        ),
        (
            port + certificate + ("--tls-key-file", ca.path("locked.key"))
            + ("--tls-key-file-pass", "wrong", "--tls-auth-clients", "no"),
            "Failed to load private key",
        ),
        (
            port + certificate + key + ("--tls-auth-clients", "no", "--tls-ciphersuites", "NOPE"),
            "Failed to configure ciphersuites",
        ),
        (("--tls-cluster", "yes"), "not built yet"),
    ):
        code, output = context.try_start(*options)
        eq(code, 1, " ".join(options))
        check(reason in output, "%s: %s" % (" ".join(options), output[-600:]))
    server = context.start(
        *port, *certificate, "--tls-key-file", ca.path("locked.key"), "--tls-key-file-pass", "abc",
        "--tls-auth-clients", "no"
    )
    server.tls_port = int(port[1])
    eq(connect(context, server, ca, certificate=None).call("PING"), resp.PONG)
    eq(server.call("CONFIG", "GET", "tls-key-file-pass")[1], b"abc")


@test()
def sessions_are_resumed(context):
    context.sava_only("the shared redis-server has no certificates")
    ca = authority(context)
    for caching in ("yes", "no"):
        server = tls_server(context, ca, "--tls-session-caching", caching,
                            "--tls-protocols", "TLSv1.2")
        tls = client_context(ca)
        first = TlsClient(server.tls_port, tls)
        eq(first.call("PING"), resp.PONG)
        session = first.sock.session
        first.close()
        sock = socket.create_connection(("127.0.0.1", server.tls_port), 20 * SLOW)
        second = tls.wrap_socket(sock, session=session)
        eq(second.session_reused, caching == "yes", "tls-session-caching " + caching)
        second.close()


@test()
def redis_cli_and_sava_cli(context):
    context.sava_only("the shared redis-server has no certificates")
    ca = authority(context)
    server = tls_server(context, ca)
    options = ["-p", str(server.tls_port), "--tls", "--cacert", ca.path("ca.crt"), "--cert",
               ca.path("client.crt"), "--key", ca.path("client.key")]
    stock = [need("redis-cli", "redis-tools"), *options]
    sava = [context.options.server, "cli", *options]
    for line in (stock, sava):
        eq(run(line + ["SET", "k", "hello"]).strip(), "OK")
        eq(run(line + ["GET", "k"]).strip(), "hello")
        eq(run(line + ["--sni", "example.com", "PING"]).strip(), "PONG")
    value = "x" * (2 << 20)
    eq(run(sava + ["-x", "SET", "large"], stdin=value.encode()).strip(), "OK")
    eq(run(sava + ["--raw", "GET", "large"]).strip(), value)
    eq(len(run(stock + ["GET", "large"]).strip()), len(value))
    bare = [context.options.server, "cli", "-p", str(server.tls_port)]
    text = run(bare + ["--tls", "PING"], expect=1)
    check("certificate verify failed" in text, text)
    eq(server.call("CONFIG", "SET", "tls-auth-clients", "no"), resp.OK)
    eq(run(bare + ["--tls", "--insecure", "PING"]).strip(), "PONG")
    text = run(bare + ["PING"], expect=1)
    check("PONG" not in text, text)


@test(timeout=60)
def sava_cli_does_not_wait_for_a_silent_server(context):
    context.sava_only("it is about sava cli")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        line = [context.options.server, "cli", "-p", str(silent.getsockname()[1]), "--tls"]
        text = run(line + ["--insecure", "PING"], expect=1)
    check("timed out" in text, text)


@test()
def openssl_s_client(context):
    context.sava_only("the shared redis-server has no certificates")
    ca = authority(context)
    server = tls_server(context, ca, "--tls-auth-clients", "no")
    for flag, version in (("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")):
        text = run(
            [need("openssl", "openssl"), "s_client", "-connect", "127.0.0.1:%d" % server.tls_port,
             "-CAfile", ca.path("ca.crt"), "-brief", "-ign_eof", flag],
            stdin=b"PING\r\nQUIT\r\n",
        )
        check("+PONG" in text and version in text and "Verification: OK" in text, text)
    line = [need("openssl", "openssl"), "s_client", "-connect",
            "127.0.0.1:%d" % server.tls_port, "-tls1_2"]
    # R asks for a new handshake; the end of input would end the program before the answer.
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as program:
        context.at_end(program.kill)
        program.stdin.write(b"R\n")
        program.stdin.flush()
        text = program.stdout.read().decode("utf-8", "replace")
    check("no renegotiation" in text, text[-800:])
    eq(connect(context, server, ca, certificate=None).call("PING"), resp.PONG)


@test(timeout=60)
def log_and_output_under_always(context):
    """Answers that wait for the disk leave in order, in whole records and parts of them."""
    context.sava_only("the shared redis-server has no certificates")
    ca = authority(context)
    server = tls_server(context, ca, "--appendonly", "yes", "--appendfsync", "always")
    client = connect(context, server, ca)
    value = context.rng("always").randbytes(200000)
    data = b""
    expected = b""
    for i in range(60):
        part = value[: 1000 + i * 3000]
        data += resp.encode("SET", "k%d" % i, part) + resp.encode("GET", "k%d" % i)
        expected += b"+OK\r\n$%d\r\n%s\r\n" % (len(part), part)
    check(exchange(client.sock, data, len(expected)) == expected, "answers in order, and whole")


def exchange(sock, data, length):
    """Sends and receives as either is possible, by one thread: an SSL object is not for two."""
    received = bytearray()
    sent = 0
    sock.setblocking(False)
    while len(received) < length:
        writers = [sock] if sent < len(data) else []
        if not sock.pending():
            readable, writable, _ = select.select([sock], writers, [], 60 * SLOW)
            check(readable or writable, "%d of %d bytes came" % (len(received), length))
        # What could not be sent whole is offered again from the same place, as OpenSSL demands.
        try:
            sent += sock.send(data[sent : sent + 65536]) if writers else 0
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        try:
            part = sock.recv(65536)
            check(part, "the server closed the connection")
            received += part
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
    return bytes(received)


@test()
def clients_are_killed_and_limited(context):
    context.sava_only("the shared redis-server has no certificates")
    ca = authority(context)
    server = tls_server(context, ca)
    client = connect(context, server, ca)
    number = client.call("CLIENT", "ID")
    eq(server.call("CLIENT", "KILL", "ID", str(number)), 1)
    check(client.closed_by_server(10 * SLOW), "the killed client is told")
    eq(server.call("CONFIG", "SET", "maxclients", "1"), resp.OK)
    check(refused(server, client_context(ca)), "one too many")
    eq(server.call("CONFIG", "SET", "maxclients", "100"), resp.OK)
    check(not refused(server, client_context(ca)), "within the limit")


@test()
def http_over_tls(context):
    context.sava_only("HTTP is Sava's own")
    ca = authority(context)
    port = free_port()
    server = tls_server(context, ca, "--http-tls-port", str(port), "--tls-auth-clients", "no")
    tls = client_context(ca, certificate=None)
    tls.set_alpn_protocols(["h2", "http/1.1"])
    with tls.wrap_socket(socket.create_connection(("127.0.0.1", port), 20 * SLOW)) as sock:
        eq(sock.selected_alpn_protocol(), "http/1.1")
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2)
        text = b""
        while text.count(b"HTTP/1.1 200 OK") < 2:
            received = sock.recv(65536)
            check(received, "closed after %r" % text)
            text += received
    curl = need("curl", "curl")
    body = run([curl, "-s", "--cacert", ca.path("ca.crt"), "-k", "-X", "POST", "-H",
                "Content-Type: application/json", "-d", '{"key":"a","associatedKey":"b"}', "-w",
                "%{http_code}", "https://127.0.0.1:%d/associations" % port])
    check(body.endswith("201") or body.endswith("204") or body.endswith("200"), body)
    eq(server.call("AFC.TOP", "assoc:a", "1"), [b"b"])
    check("name=https" in str(server.info("server")), "INFO's listeners")


@test(timeout=120)
def clients_of_node(context):
    context.sava_only("the shared redis-server has no certificates")
    npm, node = shutil.which("npm"), shutil.which("node")
    if not npm or not node:
        raise Skip("npm is not installed (Debian packages nodejs, npm)")
    if not os.path.isdir(os.path.join(HERE, "node_modules", "redis")):
        run([npm, "ci", "--no-audit", "--no-fund"], seconds=120, cwd=HERE)
    ca = authority(context)
    server = tls_server(context, ca)
    files = [ca.path(name) for name in ("ca.crt", "client.crt", "client.key")]
    for script in ("ioredis_test.mjs", "node_redis_test.mjs"):
        line = [node, os.path.join(HERE, script), str(server.tls_port), *files]
        text = run(line, seconds=60)
        check(text.strip().endswith("all good"), script + ": " + text)
