"""Random histories: the pages with the cache, without it, and those of a model are the same."""

import random
import signal

from harness import Skip, World, equal, wait_until


class Model:
    """The network as plain lists."""

    def __init__(self):
        self.posts = []  # (id, owner), oldest first
        self.follows = set()

    def feed(self, user):
        return [post for post, owner in reversed(self.posts) if owner == user or (user, owner) in self.follows]

    def mutual(self, one, two):
        return sorted(b for a, b in self.follows if a == one and (two, b) in self.follows)


def play(options, steps, database="sqlite", layout="indexed", feed_length=6):
    randomness = random.Random(f"{options.seed} {database} {layout}")
    with World(options.server, options.app, database=database, layout=layout,
               arguments=["--feed-length", str(feed_length)], store_arguments=["--appendonly", "yes"]) as world:
        root = world.administrator()
        people = [root] + [world.person(f"p{i}") for i in range(4)]
        model = Model()
        if database == "mariadb":
            world.application.run("settings", "--front-page", 4)
            wait_until(lambda: root.get("/admin").json()["frontPage"] == 4, "settings of another process are not read")
        else:
            world.settings(root, frontPage=4)
        store_up = True

        def look(person):
            number = randomness.randrange(3)
            expected = model.feed(person.user)[4 * number:4 * number + 4]
            equal(person.ids(number), expected, f"page {number} of {person.user}")

        for step in range(steps):
            person, other = randomness.sample(people, 2)
            action = randomness.choices(
                ["post", "delete", "follow", "unfollow", "look", "mutual", "cache", "strategy", "store", "evict"],
                [20, 6, 8, 6, 30, 3, 2, 2, 2, 3])[0]
            if action == "post":
                model.posts.append((person.say(f"s{step}"), person.user))
            elif action == "delete":
                own = [post for post, owner in model.posts if owner == person.user]
                if own:
                    post = randomness.choice(own)
                    person.post(f"/posts/{post}/delete")
                    model.posts.remove((post, person.user))
            elif action == "follow":
                person.follow(other.user)
                model.follows.add((person.user, other.user))
            elif action == "unfollow":
                person.unfollow(other.user)
                model.follows.discard((person.user, other.user))
            elif action == "look":
                look(person)
            elif action == "mutual":
                found = [p["id"] for p in person.get(f"/users/{other.user}/mutual").json()["people"]]
                equal(found, model.mutual(person.user, other.user), "mutual friends")
            elif action == "cache":
                world.settings(root, cache=randomness.choice(["on", "off"]))
            elif action == "strategy":
                world.settings(root, strategy=randomness.choice(["update", "delete"]))
            elif action == "evict" and store_up:
                world.store.ask("DEL", f"userFeed:{person.user}", f"userFollowers:{other.user}")
            elif action == "store":
                if store_up:
                    world.store.stop(randomness.choice([signal.SIGKILL, signal.SIGTERM]))
                else:
                    world.store.start()
                store_up = not store_up
        if not store_up:
            world.store.start()
        for cache in ("on", "on", "off"):
            world.settings(root, cache=cache, frontPage=-1)
            for person in people:
                equal(person.ids(), model.feed(person.user), f"the whole timeline, cache {cache}")


def test_random_history_indexed(options):
    play(options, 500)


def test_random_history_document_layout(options):
    play(options, 500, layout="document")


def test_random_history_mariadb(options):
    if options.no_mariadb:
        raise Skip("--no-mariadb")
    play(options, 300, database="mariadb", layout=random.Random(options.seed).choice(["indexed", "document"]))
