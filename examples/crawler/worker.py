#!/usr/bin/env python3
"""A crawler's worker: `worker.py PORT KEY`. Any number of them share the frontier at KEY.

It leases URLs, fetches them, adds the links it finds and says that it is done. Politeness is not
its business: what it learns from robots.txt it tells the frontier, which then keeps every host's
distance for all workers together. When it dies, its leases end and others get its URLs.
"""

import html.parser
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import urllib.robotparser

from store import Store

BATCH = 3
BLOCK_MS = 300


class Links(html.parser.HTMLParser):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.found = []

    def handle_starttag(self, tag, attributes):
        if tag == "a":
            self.found += [
                urllib.parse.urljoin(self.base, value)
                for name, value in attributes
                if name == "href" and value
            ]


class Worker:
    def __init__(self, port, key):
        self.store = Store(port)
        self.key = key
        self.rules = {}
        self.asked = 0.0

    def run(self):
        while True:
            self.asked = time.time()
            leases = self.store.run("FR.NEXT", self.key, BATCH, "BLOCK", BLOCK_MS)
            for lease, url in leases:
                self.work(lease, url)
            if not leases and self.finished():
                return

    def finished(self):
        stats = self.store.map("FR.STATS", self.key)
        return stats["queued"] + stats["delayed"] + stats["leased"] == 0

    def work(self, lease, url):
        if not self.allowed(url):
            self.store.run("FR.ACK", self.key, lease)
            return
        try:
            links = Links(url)
            links.feed(self.fetch(url))
        except (urllib.error.URLError, OSError):
            self.store.run("FR.NACK", self.key, lease, "RETRY", 100)
            return
        if links.found:
            self.store.run("FR.ADD", self.key, *links.found)
        self.store.run("FR.ACK", self.key, lease)

    def allowed(self, url):
        host = urllib.parse.urlsplit(url).netloc
        if host not in self.rules:
            rules = urllib.robotparser.RobotFileParser()
            rules.parse(self.fetch("http://%s/robots.txt" % host).splitlines())
            self.rules[host] = rules
            rate = rules.request_rate("*")
            if rate is not None:
                delay_ms = 1000 * rate.seconds // rate.requests
                self.store.run("FR.HOST", self.key, host, "DELAY", delay_ms)
        return self.rules[host].can_fetch("*", url)

    def fetch(self, url):
        # When it asked for the URL is what the site's log needs to judge politeness.
        request = urllib.request.Request(url, headers={"X-Asked": repr(self.asked)})
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.read().decode()


if __name__ == "__main__":
    Worker(int(sys.argv[1]), sys.argv[2]).run()
