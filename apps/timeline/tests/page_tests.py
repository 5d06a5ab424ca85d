"""What people see and do, by the routes that tools rely on."""

from harness import World, check, equal


def test_register_sign_in_and_out(options):
    with World(options.server, options.app) as world:
        ann = world.person("ann")
        check(ann.user > 0, "a registered user has an id")
        equal(ann.get("/").json()["user"], ann.user, "who is signed in")
        ann.get("/feed")
        ann.post("/logout")
        equal(ann.get("/feed").status, 401, "the timeline after signing out")
        equal(ann.sign_in("ann", "wrong password", 400).json()["error"],
              "E-mail address and password do not match.", "a wrong password")
        ann.sign_in("ann")
        equal(ann.get("/feed").status, 200, "the timeline after signing in")
        other = world.browser()
        other.get("/")
        answer = other.post("/register", 400, email="ANN@example.org", displayName="x", password="12345678")
        equal(answer.json()["error"], "There is an account with this e-mail address.", "a second account")


def test_timeline_has_own_and_followed_posts_newest_first(options):
    for layout in ("indexed", "document"):
        with World(options.server, options.app, layout=layout) as world:
            ann, bob, cid = world.person("ann"), world.person("bob"), world.person("cid")
            bob.say("b1")
            ann.say("a1")
            cid.say("c1")
            bob.say("b2")
            equal(ann.titles(), ["a1"], "before following")
            ann.follow(bob.user)
            equal(ann.titles(), ["b2", "a1", "b1"], "after following")
            bob.say("b3")
            equal(ann.titles(), ["b3", "b2", "a1", "b1"], "a new post of somebody followed")
            ann.unfollow(bob.user)
            equal(ann.titles(), ["a1"], "after unfollowing")
            post = ann.ids()[0]
            ann.post(f"/posts/{post}/delete")
            equal(ann.titles(), [], "after deleting")
            equal(cid.titles(), ["c1"], "somebody else's timeline")


def test_pages_show_more(options):
    with World(options.server, options.app) as world:
        root = world.administrator()
        for i in range(7):
            root.say(f"p{i}")
        world.settings(root, frontPage=3, profilePage=2)
        for round_ in ("filled", "cached"):
            equal(root.titles(0), ["p6", "p5", "p4"], f"first page, {round_}")
            equal(root.titles(1), ["p3", "p2", "p1"], f"second page, {round_}")
            last = root.feed(2)
            equal(([p["title"] for p in last["posts"]], last["more"]), (["p0"], False), "last page")
            check(root.feed(1)["more"], "the second page has more")
            equal(root.titles(3), [], "a page behind the last")
        profile = root.get(f"/users/{root.user}?page=1").json()["posts"]
        equal([p["title"] for p in profile["posts"]], ["p4", "p3"], "second page of the profile")
        html = root.get("/feed?page=1", accept="text/html").body
        check('href="/feed?page=2"' in html and "Show more" in html, "the page links to the next")
        world.settings(root, frontPage=-1)
        equal(len(root.titles()), 7, "all posts on one page")
        equal(len(root.titles()), 7, "all posts on one page, again")


def test_people_followers_and_mutual_friends(options):
    for cache in ("on", "off"):
        with World(options.server, options.app) as world:
            root = world.administrator()
            world.settings(root, cache=cache)
            people = [world.person(f"p{i}") for i in range(4)]
            for other in people[1:]:
                root.follow(other.user)
            for other in people[2:]:
                people[0].follow(other.user)
            def names(path):
                return [p["displayName"] for p in root.get(path).json()["people"]]
            for _ in range(2):
                equal(names(f"/users/{root.user}/following"), ["p1", "p2", "p3"], "following")
                equal(names(f"/users/{people[2].user}/followers"), ["root", "p0"], "followers")
                equal(names(f"/users/{people[0].user}/mutual"), ["p2", "p3"], "whom both follow")
            equal(names("/people?q=p3"), ["p3"], "a search")
            equal(names("/people?q=%25"), [], "a wildcard is an ordinary character")
            equal(root.get(f"/users/{people[3].user}").json()["user"]["followers"], 2, "number of followers")
            root.unfollow(people[3].user)
            equal(names(f"/users/{people[0].user}/mutual"), ["p2"], "whom both follow after unfollowing")


def test_profile_can_be_edited(options):
    with World(options.server, options.app) as world:
        ann = world.person("ann")
        ann.say("hello")
        ann.titles()
        ann.post("/profile", displayName="Änne", about="I am", picture="https://example.org/a.png")
        user = ann.get(f"/users/{ann.user}").json()["user"]
        equal((user["displayName"], user["about"], user["picture"]),
              ("Änne", "I am", "https://example.org/a.png"), "the profile")
        equal(ann.feed()["posts"][0]["displayName"], "Änne", "the name beside a post")
        ann.post("/profile", 400, displayName="", about="", picture="")
        ann.post("/profile", 400, displayName="x", about="", picture="javascript:alert(1)")
        equal(ann.get(f"/users/{ann.user}").json()["user"]["displayName"], "Änne", "the profile after bad input")


def test_administration(options):
    with World(options.server, options.app) as world:
        ann = world.person("ann")
        equal(ann.get("/admin").status, 403, "the page for somebody else, though she registered first")
        world.application.run("admin", "ann@example.org")
        ann.say("a1")
        ann.titles()
        ann.titles()
        state = ann.get("/admin").json()
        check(state["hits"] >= 1 and state["misses"] >= 1 and state["keys"] > 0 and state["memory"] > 0,
              f"figures of the cache: {state}")
        page = ann.get("/admin", accept="text/html").body
        check("<svg" in page and "polyline" in page, "a chart of response times")
        world.store.ask("DEL", f"userFeed:{ann.user}")
        ann.post("/admin", action="invalidate", user=ann.user)
        equal(world.store.ask("LLEN", f"userFeed:{ann.user}"), 1, "the feed is loaded at once")
        ann.post("/admin", 404, action="invalidate", user=99999)
        for bad in ("0", "-2", "x", "100000"):
            ann.post("/admin", 400, action="settings", cache="on", strategy="update", frontPage=bad, profilePage=25)
        equal(world.settings(ann, frontPage=7)["frontPage"], 7, "the page length")
        world.application.stop()
        world.application.start()
        equal(ann.get("/admin").json()["frontPage"], 7, "the page length after a restart")
