"""A straightforward model of a URL frontier: lists, sorting and searching, no cleverness.

It answers what FR.* of the same arguments must answer; docs/types/frontier/frontier.md has the rules. Times
are given, so that a history is the same whenever it runs.
"""

FIRST_BACKOFF = 1000
MAX_BACKOFF = 3_600_000


class Url:
    def __init__(self, host, path, priority=0, meta=b""):
        self.host = host
        self.path = path
        self.depth = path.count("/")
        self.priority = priority
        self.meta = meta
        self.failures = 0

    @property
    def text(self):
        return ("http://%s%s" % (self.host, self.path)).encode()


class Host:
    def __init__(self):
        self.queued = []  # in order of arrival
        self.delay = None
        self.limit = None
        self.blocked_until = 0
        self.next_at = 0

    @property
    def ready_at(self):
        return max(self.next_at, self.blocked_until)

    def ordered(self, by_priority=False):
        if by_priority:
            return sorted(self.queued, key=lambda url: (-url.priority, url.depth))
        return sorted(self.queued, key=lambda url: (url.depth, -url.priority))


class Frontier:
    def __init__(self, strategy="depth", dedup="pending", delay=0, maxhost=0, lease=0, retries=3):
        self.strategy = strategy
        self.dedup = dedup
        self.delay = delay
        self.maxhost = maxhost
        self.lease = lease
        self.retries = retries
        self.hosts = {}  # in order of discovery
        self.seen = set()
        self.pending = set()
        self.delayed = []  # (time, number, url)
        self.leased = {}  # id: (time, url)
        self.dead = []
        self.now = 0
        self.next_id = 1
        self.cursor = 0

    # ---- time ----

    def advance(self, now):
        self.now = max(now, self.now)
        while True:
            due = [(time, number, None, url) for time, number, url in self.delayed]
            due += [(time, number, number, url) for number, (time, url) in self.leased.items()]
            due = sorted((event for event in due if event[0] <= self.now), key=lambda e: e[:2])
            if not due:
                return
            time, number, lease, url = due[0]
            if lease is None:
                self.delayed.remove((time, number, url))
                self.hosts[url.host].queued.append(url)
            else:
                del self.leased[lease]
                self.fail(url, time)

    def delay_until(self, url, time):
        if time <= self.now:
            self.hosts[url.host].queued.append(url)
        else:
            self.delayed.append((time, self.next_id, url))
            self.next_id += 1

    def fail(self, url, retry_at):
        url.failures += 1
        if url.failures > self.retries:
            self.dead.append(url)
            self.next_id += 1
            self.pending.discard(url.text)
        else:
            self.delay_until(url, retry_at)

    # ---- adding and serving ----

    def held(self, name):
        return len(self.hosts[name].queued) + sum(1 for d in self.delayed if d[2].host == name)

    def add(self, now, urls, at=0):
        self.advance(now)
        return [self.add_one(url, at) for url in urls]

    def add_one(self, url, at):
        if url is None:
            return -1
        known = url.text in (self.pending if self.dedup == "pending" else self.seen)
        if known:
            return 0
        host = self.hosts.get(url.host)
        limit = self.maxhost if host is None or host.limit is None else host.limit
        if host is not None and limit and self.held(url.host) >= limit:
            return -2
        self.seen.add(url.text)
        self.pending.add(url.text)
        if host is None:
            self.hosts[url.host] = Host()
        self.delay_until(url, at)
        return 1

    def choose(self, strategy, exhausted):
        ready = [
            (number, name, host)
            for number, (name, host) in enumerate(self.hosts.items())
            if host.queued and host.ready_at <= self.now and name not in exhausted
        ]
        if not ready:
            return None
        if strategy == "breadth":
            later = [entry for entry in ready if entry[0] >= self.cursor]
            return (later or ready)[0]
        if strategy == "best":
            return max(ready, key=lambda entry: (len(entry[2].queued), -entry[0]))
        if strategy == "priority":
            return max(
                ready, key=lambda entry: (max(u.priority for u in entry[2].queued), -entry[0])
            )
        return ready[0]

    def next(self, now, count, strategy=None, host=None, perhost=0, lease=None, restart=False):
        self.advance(now)
        strategy = strategy or self.strategy
        lease = self.lease if lease is None else lease
        taken, served, before = {}, [], self.cursor
        if restart and host is None:
            self.cursor = 0
        while len(served) < count:
            exhausted = {name for name, n in taken.items() if perhost and n >= perhost}
            if host is not None:
                exhausted |= set(self.hosts) - {host}
            found = self.choose("depth" if host is not None else strategy, exhausted)
            if found is None:
                break
            number, name, record = found
            if strategy == "breadth" and host is None:
                self.cursor = number + 1
            url = record.ordered(strategy == "priority")[0]
            record.queued.remove(url)
            taken[name] = taken.get(name, 0) + 1
            if lease:
                self.leased[self.next_id] = (self.now + lease, url)
                served.append([self.next_id, url.text])
                self.next_id += 1
            else:
                self.pending.discard(url.text)
                served.append(url.text)
            delay = self.delay if record.delay is None else record.delay
            if delay:
                record.next_at = self.now + delay
            if not any(h.queued for h in self.hosts.values()):
                self.cursor = 0
        if not served:
            self.cursor = before
        return served

    # ---- leases ----

    def take(self, ids):
        return [self.leased.pop(i)[1] for i in ids if i in self.leased]

    def ack(self, now, ids, refetch=None):
        self.advance(now)
        urls = self.take(dict.fromkeys(ids))
        for url in urls:
            if refetch is None:
                self.pending.discard(url.text)
            else:
                url.failures = 0
                self.delay_until(url, now + refetch)
        return len(urls)

    def nack(self, now, ids, retry=None):
        self.advance(now)
        urls = self.take(dict.fromkeys(ids))
        for url in urls:
            backoff = min(FIRST_BACKOFF << min(url.failures, 12), MAX_BACKOFF)
            self.fail(url, self.now + backoff if retry is None else now + retry)
        return len(urls)

    def extend(self, now, ids, lease):
        self.advance(now)
        known = [i for i in ids if i in self.leased]
        for i in known:
            self.leased[i] = (max(now + lease, self.now), self.leased[i][1])
        return len(known)

    # ---- hosts ----

    def change_host(self, now, name, delay=None, blocked_until=None, limit=None):
        self.advance(now)
        host = self.hosts.setdefault(name, Host())
        if delay is not None:
            host.delay = None if delay < 0 else delay
        if blocked_until is not None:
            host.blocked_until = blocked_until
        if limit is not None:
            host.limit = limit

    def peek(self, name):
        host = self.hosts.get(name)
        return [url.text for url in host.ordered()] if host else []

    def purge(self, now, name):
        self.advance(now)
        if name not in self.hosts:
            return 0
        gone = self.hosts[name].queued + [d[2] for d in self.delayed if d[2].host == name]
        self.hosts[name].queued = []
        self.delayed = [d for d in self.delayed if d[2].host != name]
        for url in gone:
            self.pending.discard(url.text)
        if not any(h.queued for h in self.hosts.values()):
            self.cursor = 0
        return len(gone)

    def clear(self, now):
        self.advance(now)
        next_id = self.next_id
        self.__init__(
            self.strategy, self.dedup, self.delay, self.maxhost, self.lease, self.retries
        )
        self.next_id = next_id

    def counts(self):
        return {
            b"hosts": len(self.hosts),
            b"queued": sum(len(host.queued) for host in self.hosts.values()),
            b"delayed": len(self.delayed),
            b"leased": len(self.leased),
            b"dead": len(self.dead),
        }
