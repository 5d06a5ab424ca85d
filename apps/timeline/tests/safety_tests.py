"""Hostile input: markup, forged forms and ids, sizes, guessing of passwords."""

from harness import Browser, World, check, equal

HOSTILE = """<script>alert(1)</script>"'><img src=x onerror=alert(2)> {{x}} '; DROP TABLE posts; --"""


def test_everything_people_write_is_escaped(options):
    with World(options.server, options.app) as world:
        ann = world.browser()
        ann.get("/")
        ann.user = ann.post("/register", email="a@example.org", displayName=HOSTILE, password="12345678").json()["user"]
        ann.post("/profile", displayName=HOSTILE, about=HOSTILE, picture="")
        ann.say(HOSTILE, HOSTILE)
        for path in ("/feed", f"/users/{ann.user}", "/people?q=%3Cscript%3E", "/people?q=", "/profile",
                     f"/users/{ann.user}/followers"):
            answer = ann.get(path, accept="text/html")
            equal(answer.status, 200, path)
            check("<script>alert" not in answer.body and "<img src=x" not in answer.body, f"markup in {path}")
        equal(ann.feed()["posts"][0]["message"], HOSTILE, "the text itself is kept")
        check("script-src" in answer.headers["Content-Security-Policy"]
              or "default-src 'self'" in answer.headers["Content-Security-Policy"], "a policy for scripts")


def test_changes_need_the_form_token(options):
    with World(options.server, options.app) as world:
        ann, bob = world.person("ann"), world.person("bob")
        post = ann.say("a1")
        ann.get("/feed")
        for path in ("/posts", f"/posts/{post}/delete", f"/users/{bob.user}/follow", f"/users/{bob.user}/unfollow",
                     "/profile", "/logout", "/admin"):
            for token in ("", "0" * 64, bob.token):
                answer = ann.request("POST", path, {"csrf": token, "title": "x", "message": "y", "displayName": "z"})
                equal(answer.status, 403, f"POST {path} with token {token[:5]!r}")
        stranger = Browser(world.application)
        for path in ("/register", "/login"):
            answer = stranger.request("POST", path, {"email": "x@example.org", "password": "12345678", "displayName": "x"})
            equal(answer.status, 403, f"POST {path} without a token")
        equal(ann.titles(), ["a1"], "nothing was changed")
        equal(ann.request("GET", f"/posts/{post}/delete").status, 404, "a change by GET")


def test_forged_ids_change_nothing(options):
    with World(options.server, options.app) as world:
        ann, bob = world.person("ann"), world.person("bob")
        post = ann.say("a1")
        bob.get("/feed")
        equal(bob.post(f"/posts/{post}/delete", 403).json()["error"], "This is somebody else's post.", "message")
        for bad in ("0", "999999", "999999999999999999"):
            bob.post(f"/posts/{bad}/delete", 404)
            bob.post(f"/users/{bad}/follow", 404)
            bob.post(f"/users/{bad}/unfollow", 404)
            equal(bob.get(f"/users/{bad}").status, 404, f"GET /users/{bad}")
        bob.post(f"/users/{bob.user}/follow", 404)
        for bad in ("-1", "1e3", "x", "99999999999999999999"):
            equal(bob.request("POST", f"/posts/{bad}/delete", {"csrf": bob.token}).status, 404, f"post {bad}")
        equal(ann.ids(), [post], "the post is there")
        for page in ("-5", "x", "99999999999999", "9223372036854775807"):
            for path in ("/feed", f"/users/{ann.user}"):
                answer = ann.get(f"{path}?page={page}").json()["posts"]
                equal((answer["page"] >= 0, len(answer["posts"])), (True, 1 if page in ("-5", "x") else 0), f"page {page}")
        thief = Browser(world.application)
        for cookie in ("0" * 64, "x", "' OR 1=1 --", ""):
            thief.cookies = {"session": cookie}
            equal(thief.get("/feed").status, 401, f"a made-up session {cookie!r}")


def test_sizes_are_limited(options):
    with World(options.server, options.app) as world:
        ann = world.person("ann")
        ann.say("t" * 200, "m" * 7000)
        for title, message in (("t" * 201, "m"), ("", "m"), ("t", ""), ("t", "  "), ("t\x00", "m")):
            answer = ann.post("/posts", 400, title=title, message=message)
            check(answer.json()["error"], "a message says what is wrong")
        body = b"--b\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n%s\r\n"
        def multipart(message):
            text = b"".join(body % field for field in (
                (b"csrf", ann.token.encode()), (b"title", b"t"), (b"message", message))) + b"--b--\r\n"
            return ann.request("POST", "/posts", body=text,
                               headers={"Content-Type": "multipart/form-data; boundary=b"})
        equal(multipart("ж".encode() * 4000).status, 200, "a long post")
        equal(multipart(b"m" * 8001).status, 400, "a post that is too long")
        equal(multipart(b"\xff\xfe").status, 400, "a post that is not text")
        equal(multipart(b"m" * 200000).status, 413, "a huge post")
        equal(len(ann.ids()), 2, "nothing else was posted")
        for email in ("x", "x@y", "a@b.c d", "<a@b.c>", "x" * 300 + "@example.org"):
            world.browser().get("/")
            visitor = world.browser()
            visitor.get("/")
            visitor.post("/register", 400, email=email, displayName="x", password="12345678")
        visitor.post("/register", 400, email="ok@example.org", displayName="x", password="short")
        visitor.post("/register", 400, email="ok@example.org", displayName="x", password="p" * 201)


def test_passwords_cannot_be_guessed_without_end(options):
    limits = ["--account-limit", "3", "--address-limit", "1000"]
    for store in ("sava", "redis", "none"):
        server = options.server
        if store == "redis":
            server = "/usr/bin/redis-server"
        with World(server, options.app, arguments=limits) as world:
            ann = world.person("ann")
            ann.post("/logout")
            if store == "none":
                world.store.stop()
            for _ in range(3):
                ann.sign_in("ann", "wrong password", 400)
            equal(ann.sign_in("ann", "wrong password", 429).json()["error"],
                  "Too many attempts. Please wait a minute.", f"the fourth attempt with {store}")
            ann.sign_in("ann", "correct horse", 429)
            world.browser().register("bob")


def test_cookies_cannot_be_read_by_scripts(options):
    with World(options.server, options.app) as world:
        visitor = world.browser()
        visitor.get("/")
        answer = visitor.post("/register", email="a@example.org", displayName="a", password="12345678")
        cookie = answer.headers["Set-Cookie"]
        check("HttpOnly" in cookie and "SameSite=Lax" in cookie, cookie)
        with open(world.application.database, "rb") as database:
            check(visitor.cookies["session"].encode() not in database.read(), "the token itself is not stored")
