"""TLS: what an encrypted GET and a new connection cost beside redis-server with TLS.

Both servers have the same certificate (RSA, 2048 bits) and ask clients for none.
"""

import os
import socket
import ssl
import statistics
import subprocess
import tempfile

import harness
import report

KEYSPACE = 100_000


def make_certificate(folder):
    """tls.crt, signed by itself, and tls.key."""
    done = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=localhost", "-keyout", "tls.key", "-out", "tls.crt"],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise harness.BenchError(f"openssl: {done.stderr[-300:]}")


class Encrypted:
    """The settings of a server with TLS on a port of its own."""

    def __init__(self, folder):
        self.port = harness.free_port()
        self.args = ("--tls-port", str(self.port), "--tls-auth-clients", "no",
                     "--tls-cert-file", os.path.join(folder, "tls.crt"),
                     "--tls-key-file", os.path.join(folder, "tls.key"))


def connect_often(server, port, count):
    """Server CPU seconds for so many connections, each with a whole handshake and one PING."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    before = server.cpu_seconds()
    for _ in range(count):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as plain:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with context.wrap_socket(plain) as encrypted:
                encrypted.sendall(b"PING\r\n")
                if encrypted.recv(16) != b"+PONG\r\n":
                    raise harness.BenchError("PING over TLS was not answered")
    return server.cpu_seconds() - before


def measure_get(session, servers, ports, pipeline):
    requests = session.pick(1_000_000, 200_000) // (1 if pipeline > 1 else 5)

    def load(server):
        return harness.redis_benchmark(server, test="get", requests=requests, pipeline=pipeline,
                                       keyspace=KEYSPACE, tls_port=ports[server.role]).cpu_us

    for server in servers:
        load(server)
    pairs = harness.interleave(session, *servers, load)
    return report.Row(f"get_p{pipeline}", statistics.median(p[0] for p in pairs), "µs CPU",
                      statistics.median(p[1] for p in pairs), harness.median_ratio(pairs), 0.9,
                      judged="ratio", pairs=len(pairs),
                      details={"ratios": [round(a / b, 4) for a, b in pairs]})


def measure_connections(session, servers, ports):
    count = session.pick(2000, 300)

    def load(server):
        return count / connect_often(server, ports[server.role], count)

    for server in servers:
        load(server)
    pairs = harness.interleave(session, *servers, load)
    return report.Row("connections", statistics.median(p[0] for p in pairs), "per CPU second",
                      statistics.median(p[1] for p in pairs), harness.median_ratio(pairs), 1.0,
                      judged="ratio", sense="min", pairs=len(pairs),
                      details={"ratios": [round(a / b, 4) for a, b in pairs]})


def run(session):
    with tempfile.TemporaryDirectory(prefix="sava-bench-") as folder:
        make_certificate(folder)
        ours, theirs = Encrypted(folder), Encrypted(folder)
        with session.sava("--threads", "1", *ours.args) as sava, session.stock(*theirs.args) as redis:
            ports = {sava.role: ours.port, redis.role: theirs.port}
            for server in (sava, redis):
                harness.preload(server, KEYSPACE, value_bytes=64)
            rows = [measure_get(session, (sava, redis), ports, 1),
                    measure_get(session, (sava, redis), ports, 16),
                    measure_connections(session, (sava, redis), ports)]
    for row in rows:
        harness.say(f"{row.name}: {row.value:.2f} against {row.redis:.2f} {row.unit}, "
                    f"ratio {row.ratio:.3f} ({row.bar_text})")
    return rows


BENCHMARK = harness.Benchmark("tls", "encrypted GET and new connections", run)
