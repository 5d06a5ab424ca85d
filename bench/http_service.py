"""Server CPU per HTTP request against the same server's own SET at pipeline 1.

wrk posts associations over kept connections (100,000 associators, 100 associated keys each, as
many connections as redis-benchmark has), redis-benchmark sets 1M keys of 64 bytes, in turns on one
server. The bar holds the price of HTTP and JSON together: a POST may cost half as much again as a
SET. GET of the 20 most frequent is given beside it.
"""

import dataclasses
import re
import shutil
import statistics
import subprocess
import tempfile

import harness
import report

CONNECTIONS = 50
BAR = 1.5

# Requests are made beforehand, so that wrk spends its time sending.
COMMON = """
local requests, at = {}, 0
function init(args)
  math.randomseed(42)
  for i = 1, 20000 do
    local associator = math.random(0, 99999)
    requests[i] = make(associator, math.random(0, 99))
  end
end
function request()
  at = at % #requests + 1
  return requests[at]
end
"""
POST = COMMON + """
local headers = {["Content-Type"] = "application/json"}
function make(associator, associated)
  local body = string.format('{"key":"user:%05d","associatedKey":"category:%02d"}', associator,
                             associated)
  return wrk.format("POST", "/associations", headers, body)
end
"""
GET = COMMON + """
function make(associator)
  return wrk.format("GET", string.format("/associations/user:%05d", associator))
end
"""


@dataclasses.dataclass
class Load:
    cpu_us: float
    rps: float
    p99_ms: float


def wrk(server, port, script, seconds):
    """Runs wrk and reads the server's CPU per request around it."""
    if shutil.which("wrk") is None:
        raise harness.BenchError("wrk is not there (Debian package wrk)")
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        before = server.cpu_seconds()
        done = subprocess.run(
            ["wrk", "-t", "1", "-c", str(CONNECTIONS), "-d", f"{seconds}s", "--latency", "-s",
             file.name, f"http://127.0.0.1:{port}/"],
            capture_output=True, text=True, timeout=600, check=False)
        used = server.cpu_seconds() - before
    text = done.stdout
    count = re.search(r"(\d+) requests in", text)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", text)
    if done.returncode or not count or not rate or not server.alive():
        raise harness.BenchError(f"wrk failed: {text[-300:]}{done.stderr[-300:]}")
    if "Non-2xx" in text or "Socket errors" in text:
        raise harness.BenchError(f"wrk met errors: {text[-300:]}")
    late = re.search(r"99%\s+([\d.]+)(us|ms|s)", text)
    scale = {"us": 0.001, "ms": 1.0, "s": 1000.0}
    p99 = float(late.group(1)) * scale[late.group(2)] if late else 0.0
    return Load(used / int(count.group(1)) * 1e6, float(rate.group(1)), p99)


def row(name, pairs, bar):
    ratios = [http.cpu_us / plain.cpu_us for http, plain in pairs]

    def middle(side, field):
        return statistics.median(getattr(pair[side], field) for pair in pairs)

    note = (f"against its own SET; {middle(0, 'rps'):,.0f} requests/s, "
            f"p99 {middle(0, 'p99_ms'):.2f} ms")
    return report.Row(name, middle(0, "cpu_us"), "µs CPU", middle(1, "cpu_us"),
                      statistics.median(ratios), bar, judged="ratio" if bar else None,
                      pairs=len(pairs), note=note,
                      details={"ratios": [round(x, 4) for x in ratios]})


def run(session):
    seconds = session.pick(6, 3)
    sets = session.pick(200_000, 60_000)
    rows = []
    port = harness.free_port()
    with session.sava("--threads", "1", "--http-port", str(port)) as sava:
        def own_set():
            return harness.redis_benchmark(sava, test="set", requests=sets, clients=CONNECTIONS)

        for name, script, bar in (("post_association", POST, BAR), ("get_top20", GET, None)):
            wrk(sava, port, script, 1)
            own_set()
            pairs = []
            for number in range(session.pairs):
                if number % 2 == 0:
                    http = wrk(sava, port, script, seconds)
                    pairs.append((http, own_set()))
                else:
                    plain = own_set()
                    pairs.append((wrk(sava, port, script, seconds), plain))
            rows.append(row(name, pairs, bar))
            harness.say(f"{name}: {rows[-1].value:.2f} against {rows[-1].redis:.2f} µs for SET, "
                        f"ratio {rows[-1].ratio:.3f} ({bar})")
    return rows


BENCHMARK = harness.Benchmark("http", "server CPU per HTTP request against its own SET", run)
