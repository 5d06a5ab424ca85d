"""The store's keys: what is in them, when the store is asked, and how what it missed is repaired."""

import signal
import threading

from harness import Browser, World, check, equal, wait_until


def feed_of(world, user):
    return [int(post) for post in world.store.ask("LRANGE", f"userFeed:{user}", 0, -1)]


def members(world, key):
    return sorted(int(member) for member in world.store.ask("SMEMBERS", key))


def test_keys_hold_the_ids(options):
    with World(options.server, options.app) as world:
        ann, bob = world.person("ann"), world.person("bob")
        ann.follow(bob.user)
        posts = [bob.say("b1"), ann.say("a1"), bob.say("b2")]
        ann.titles()
        equal(feed_of(world, ann.user), posts[::-1], "the feed, newest first, own posts included")
        posts.append(bob.say("b3"))
        equal(feed_of(world, ann.user), posts[::-1], "a new post is pushed")
        bob.post(f"/posts/{posts[2]}/delete")
        del posts[2]
        equal(feed_of(world, ann.user), posts[::-1], "a deleted post is removed")
        ann.get(f"/users/{ann.user}/following")
        bob.get(f"/users/{bob.user}/followers")
        equal(members(world, f"userFollowing:{ann.user}"), [bob.user], "whom she follows")
        equal(members(world, f"userFollowers:{bob.user}"), [ann.user], "who follows him")
        ann.unfollow(bob.user)
        equal(feed_of(world, ann.user), [posts[1]], "his posts are removed")
        equal(members(world, f"userFollowing:{ann.user}"), [], "whom she follows after unfollowing")


def test_feeds_are_bounded_and_the_rest_comes_from_the_database(options):
    with World(options.server, options.app, arguments=["--feed-length", "5"]) as world:
        root = world.administrator()
        world.settings(root, frontPage=3)
        posts = [root.say(f"p{i}") for i in range(9)][::-1]
        for _ in range(2):
            shown = root.ids(0) + root.ids(1) + root.ids(2)
            equal(shown, posts, "all pages")
        equal(feed_of(world, root.user), posts[:5], "the feed holds the newest five")
        root.post(f"/posts/{posts[1]}/delete")
        del posts[1]
        equal(world.store.ask("EXISTS", f"userFeed:{root.user}"), 0, "a full feed that lost a post is deleted")
        equal(root.ids(0) + root.ids(1) + root.ids(2), posts, "all pages after deleting")
        equal(feed_of(world, root.user), posts[:5], "the feed is full again")
        posts.insert(0, root.say("new"))
        equal(feed_of(world, root.user), posts[:5], "the oldest made room")


def test_strategy_delete_refills_at_the_next_read(options):
    with World(options.server, options.app) as world:
        root, bob = world.administrator(), world.person("bob")
        world.settings(root, strategy="delete")
        root.follow(bob.user)
        root.titles()
        bob.say("b1")
        equal(world.store.ask("EXISTS", f"userFeed:{root.user}"), 0, "a post deletes the feed")
        equal(root.titles(), ["b1"], "the page")
        equal(len(feed_of(world, root.user)), 1, "the read filled the feed")


def test_a_cache_that_is_off_is_not_asked(options):
    with World(options.server, options.app) as world:
        root, bob = world.administrator(), world.person("bob")
        root.follow(bob.user)
        bob.say("b1")
        equal(root.titles(), ["b1"], "with the cache")
        eve = world.person("eve")
        eve.get("/feed")
        cookies = dict(eve.cookies)
        before = world.settings(root, cache="off")["storeCommands"]
        equal(root.titles(), ["b1"], "without the cache")
        bob.say("b2")
        root.get(f"/users/{bob.user}/mutual")
        root.post("/logout")
        root.sign_in("root")
        equal(root.titles(), ["b2", "b1"], "what was written without the cache")
        eve.post("/logout")
        eve.cookies = cookies
        equal(root.get("/admin").json()["storeCommands"], before, "commands sent to the store")
        world.application.run("settings", "--cache", "on")  # by another process
        wait_until(lambda: root.get("/admin").json()["cache"], "the setting is not read")
        equal(eve.get("/feed").status, 401, "a session that ended while the cache was off")
        equal(root.titles(), ["b2", "b1"], "after it is switched on again")
        equal(len(feed_of(world, root.user)), 2, "the feed was told what it missed")


def test_store_killed_and_restarted(options):
    for keep in ("no", "yes"):
        with World(options.server, options.app, store_arguments=["--appendonly", keep, "--save", ""]) as world:
            ann, bob = world.person("ann"), world.person("bob")
            ann.follow(bob.user)
            bob.say("b1")
            equal(ann.titles(), ["b1"], "before")
            world.store.stop(signal.SIGKILL)
            equal(ann.titles(), ["b1"], "while the store is down")
            gone = bob.say("b2")
            bob.say("b3")
            bob.post(f"/posts/{gone}/delete")
            equal(ann.titles(), ["b3", "b1"], "written while the store is down")
            other = Browser(world.application)
            other.sign_in("bob")
            token = dict(other.cookies)
            other.post("/logout")
            world.store.start()
            for _ in range(3):
                equal(ann.titles(), ["b3", "b1"], "after the store is back")
            bob.say("b4")
            equal(ann.titles(), ["b4", "b3", "b1"], "a post after that")
            wait_until(lambda: ann.ids() == feed_of(world, ann.user), "the feed in the store is not repaired")
            other.cookies = token
            equal(other.get("/feed").status, 401, "a session that ended while the store was down")


def test_a_store_that_went_back_in_time_is_repaired(options):
    with World(options.server, options.app) as world:
        ann, bob = world.person("ann"), world.person("bob")
        ann.follow(bob.user)
        bob.say("b1")
        ann.titles()
        position = world.store.ask("GET", "timeline:position")
        old = world.store.ask("LRANGE", f"userFeed:{ann.user}", 0, -1)
        bob.say("b2")
        ann.titles()
        # What an older snapshot of the store would hold, with a session that has ended since.
        eve = world.person("eve")
        eve.get("/feed")
        sessions = {key: world.store.ask("GET", key) for key in world.store.ask("KEYS", "userSession:*")}
        cookies = dict(eve.cookies)
        eve.post("/logout")
        for key, value in sessions.items():
            world.store.ask("SET", key, value)
        world.store.ask("DEL", f"userFeed:{ann.user}")
        world.store.ask("RPUSH", f"userFeed:{ann.user}", *old)
        world.store.ask("SET", "timeline:position", position)
        equal(ann.titles(), ["b2", "b1"], "the page")
        equal(len(feed_of(world, ann.user)), 2, "the feed")
        eve.cookies = cookies
        equal(eve.get("/feed").status, 401, "the session that has ended")


def test_a_store_of_another_database_is_emptied(options):
    with World(options.server, options.app) as world:
        ann = world.person("ann")
        ann.say("a1")
        ann.titles()
        world.application.stop()
        world.store.ask("RPUSH", "userFeed:77", 1, 2, 3)
        world.store.ask("SET", "timeline:position", "another/1000 5")
        world.store.ask("SET", "unrelated", "stays")
        world.application.start()
        equal(ann.titles(), ["a1"], "the page")
        equal(world.store.ask("EXISTS", "userFeed:77"), 0, "feeds of the other database")
        equal(world.store.ask("GET", "unrelated"), "stays", "keys that are not ours")


def test_nobody_is_signed_out_by_a_restart(options):
    with World(options.server, options.app) as world:
        ann = world.person("ann")
        equal(ann.get("/feed").status, 200, "before")
        world.application.stop()
        world.application.start()
        equal(ann.get("/feed").status, 200, "after a restart of the application")
        world.store.ask("FLUSHALL")
        for _ in range(2):
            equal(ann.get("/feed").status, 200, "after the store lost everything")
        sessions = world.store.ask("KEYS", "userSession:*")
        equal(len(sessions), 1, "sessions in the store")
        check(0 < world.store.ask("TTL", sessions[0]) <= 600, "a session in the store has a time to live")


def test_application_killed_between_database_and_store(options):
    with World(options.server, options.app) as world:
        ann = world.person("ann")
        ann.say("a1")
        ann.titles()
        # The application ends while the store is away: nobody is left who knows what it missed.
        world.store.stop(signal.SIGTERM)
        ann.say("a2")
        world.application.stop(signal.SIGKILL)
        world.store.start()
        world.application.start()
        wait_until(lambda: ann.get("/").status == 200, "the application does not answer")
        equal(ann.titles(), ["a2", "a1"], "the page")


def test_two_users_at_once(options):
    with World(options.server, options.app) as world:
        people = [world.person(f"p{i}") for i in range(4)]
        for one in people:
            for other in people:
                if one is not other:
                    one.follow(other.user)
        problems = []

        def work(person, other, number):
            try:
                for i in range(12):
                    post = person.say(f"{number}-{i}")
                    check(post in person.ids(), "one's own new post is missing")
                    if i % 4 == 3:
                        person.post(f"/posts/{post}/delete")
                    if i % 5 == 4:
                        person.unfollow(other)
                        person.follow(other)
            except Exception as problem:  # noqa: BLE001
                problems.append(problem)

        threads = [
            threading.Thread(target=work, args=(person, people[(i + 1) % 4].user, i))
            for i, person in enumerate(people)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        equal(problems, [], "problems")
        for person in people:
            expected = [p["id"] for q in people for p in q.get(f"/users/{q.user}").json()["posts"]["posts"]]
            equal(person.ids(), sorted(expected, reverse=True)[:25], "the timeline in the end")
            equal(feed_of(world, person.user), sorted(expected, reverse=True), "the feed in the end")


def test_a_store_without_room_makes_pages_slow_not_wrong(options):
    with World(options.server, options.app) as world:
        ann, bob = world.person("ann"), world.person("bob")
        ann.follow(bob.user)
        bob.say("b1")
        equal(ann.titles(), ["b1"], "before")
        world.store.ask("CONFIG", "SET", "maxmemory", "1")
        for i in range(2, 4):
            bob.say(f"b{i}")
        equal(ann.titles(), ["b3", "b2", "b1"], "while the store refuses writes")
        world.store.ask("CONFIG", "SET", "maxmemory", "0")
        for _ in range(2):
            equal(ann.titles(), ["b3", "b2", "b1"], "after there is room again")
        equal(feed_of(world, ann.user), ann.ids(), "the feed")


def test_a_key_of_another_type_is_replaced(options):
    with World(options.server, options.app) as world:
        ann = world.person("ann")
        ann.say("a1")
        ann.titles()
        world.store.ask("SET", f"userFeed:{ann.user}", "x")
        ann.say("a2")
        for _ in range(2):
            equal(ann.titles(), ["a2", "a1"], "the page")
        equal(feed_of(world, ann.user), ann.ids(), "the feed")
