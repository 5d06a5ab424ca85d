#!/usr/bin/env python3
"""A small crawl: `crawl.py PORT`, the port of a running Sava.

Three local sites, three workers, one frontier. One worker is killed while it holds leases; the
others get its URLs when the leases end. At the end the sites' logs tell whether every page was
fetched, nothing forbidden, and no host sooner than its robots.txt allows. The exit code is 0 when
all of that is true.
"""

import os
import subprocess
import sys
import time

from site_to_crawl import PAGES, Site
from store import Store

KEY = "example:crawl"
WORKERS = 3
LEASE_MS = 1000
DELAYS_MS = (20, 25, 50)
LIMIT_S = 45
HERE = os.path.dirname(os.path.abspath(__file__))


def start_worker(port):
    return subprocess.Popen([sys.executable, os.path.join(HERE, "worker.py"), str(port), KEY])


def report(store, sites):
    """Prints what the logs say; whether all is well."""
    good = True
    for site in sites:
        paths = [path for _, path, _ in site.log]
        wanted = {"/", "/trap"} | {"/page/%d" % i for i in range(1, PAGES + 1)}
        arrivals = sorted((when, asked) for when, _, asked in site.log)
        # The last page was handed out at least so long after the first one was asked for.
        span = arrivals[-1][0] - arrivals[0][1]
        least = (len(arrivals) - 1) * site.delay_ms / 1000
        again = len(paths) - len(set(paths))
        print(
            "site with a delay of %d ms: %d pages, %d fetched again, %.2f s (at least %.2f s)"
            % (site.delay_ms, len(set(paths)), again, span, least)
        )
        if set(paths) != wanted:
            print("  missing or forbidden: %s" % sorted(set(paths) ^ wanted))
            good = False
        if span < least:
            print("  too fast")
            good = False
    stats = store.map("FR.STATS", KEY)
    print("leases that ended and came back: %d" % stats["expired"])
    print("left in the frontier: %d" % (stats["queued"] + stats["delayed"] + stats["leased"]))
    return good and stats["expired"] > 0 and stats["queued"] + stats["leased"] == 0


def main(port):
    store = Store(port)
    store.run("DEL", KEY)
    sites = [Site(delay) for delay in DELAYS_MS]
    for site in sites:
        site.others = [other.address for other in sites if other is not site]
    store.run("FR.CREATE", KEY, "STRATEGY", "breadth", "DEDUP", "seen", "LEASE", LEASE_MS,
              "DELAY", max(DELAYS_MS))
    store.run("FR.ADD", KEY, "http://%s/" % sites[0].address)
    workers = [start_worker(port)]
    try:
        # The first worker is alone until one of the sites holds it: it is the one to be killed.
        deadline = time.monotonic() + LIMIT_S
        while not any(site.held.is_set() for site in sites):
            if time.monotonic() > deadline or workers[0].poll() is not None:
                raise RuntimeError("the first worker came to no trap")
            time.sleep(0.01)
        workers[0].kill()
        workers[0].wait()
        print("worker 1 was killed")
        for site in sites:
            site.held.set()
            site.release.set()
        workers += [start_worker(port) for _ in range(WORKERS - 1)]
        for worker in workers[1:]:
            code = worker.wait(max(1.0, deadline - time.monotonic()))
            if code != 0:
                raise RuntimeError("a worker ended with code %d" % code)
        return 0 if report(store, sites) else 1
    finally:
        for worker in workers:
            if worker.poll() is None:
                worker.kill()
                worker.wait()
        for site in sites:
            site.stop()
        store.run("DEL", KEY)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
