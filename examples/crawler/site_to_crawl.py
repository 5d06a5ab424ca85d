"""Small web sites to crawl, each on a port of its own: pages that link to each other and to other
sites, a robots.txt, and a log of every request. One page holds its first visitor for a while."""

import http.server
import threading
import time

PAGES = 24
ROBOTS = "User-agent: *\nRequest-rate: %d/1\nDisallow: /private/\n"
HELD_S = 15


class Site:
    """`others` are the addresses its pages link to; known once all sites have a port."""

    def __init__(self, delay_ms):
        self.delay_ms = delay_ms
        self.others = []
        self.log = []  # (time, path, when the visitor asked its frontier)
        self.lock = threading.Lock()
        self.held = threading.Event()  # somebody is being held
        self.release = threading.Event()
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                site.answer(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = "127.0.0.1:%d" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, handler):
        if handler.path != "/robots.txt":
            with self.lock:
                self.log.append((time.time(), handler.path, float(handler.headers["X-Asked"])))
        if handler.path == "/trap" and not self.held.is_set():
            self.held.set()
            self.release.wait(HELD_S)
        body = self.page(handler.path)
        try:
            handler.send_response(200 if body is not None else 404)
            data = (body or "").encode()
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data)
        except OSError:
            pass  # the visitor is gone

    def page(self, path):
        if path == "/robots.txt":
            return ROBOTS % (1000 // self.delay_ms)
        if path == "/":
            links = ["/page/%d" % i for i in range(1, 4)] + ["/private/diary", "/trap"]
            return self.html(links + ["http://%s/" % other for other in self.others])
        if path == "/trap":
            return self.html([])
        if path.startswith("/page/"):
            number = int(path[6:])
            next_ones = [n for n in (2 * number, 2 * number + 1, 3 * number) if 3 < n <= PAGES]
            return self.html(["/page/%d" % n for n in next_ones] + ["/page/%d#end" % number, "/"])
        return None

    @staticmethod
    def html(links):
        return "<html>%s</html>" % "".join('<a href="%s">x</a>' % link for link in links)

    def stop(self):
        self.release.set()
        self.server.shutdown()
        self.server.server_close()
