"""The commands: generating, dumps, sessions, both load tests."""

import json
import os
import subprocess
import sys

from harness import Browser, World, check, equal

HERE = os.path.dirname(os.path.abspath(__file__))


def generate(world, *words, code=0):
    return world.application.run("generate", "--users", 60, "--posts", 300, "--follows", "5..20", *words, code=code)


def look_around(world):
    """Signs in as the demo user; the timeline with the cache and without is the same."""
    demo = world.browser()
    demo.sign_in("demo", "demo-password")
    equal(demo.user, 1, "the demo user")
    people = demo.get("/users/1/following").json()
    check(5 <= people["count"] <= 20, f"follows {people['count']}")
    world.application.run("admin", "demo@example.org")
    world.settings(demo, frontPage=-1, cache="off")
    without = demo.ids()
    world.settings(demo, cache="on")
    equal(demo.ids(), without, "the timeline, filled")
    equal(demo.ids(), without, "the timeline, cached")
    check(len(without) > 10, f"posts on the timeline: {len(without)}")
    return without


def test_generate_both_layouts_gives_the_same_network(options):
    found = []
    for layout in ("indexed", "document"):
        with World(options.server, options.app, layout=layout) as world:
            generate(world, "--seed", 7)
            generate(world, "--seed", 7)  # nothing is left to do
            world.application.run("generate", "--users", 70, "--posts", 1, code=1)
            world.application.stop()
            world.application.start()
            found.append(look_around(world))
    equal(found[0], found[1], "timelines of both layouts")


def test_generate_goes_on_after_an_interruption(options):
    with World(options.server, options.app) as world:
        command = [options.app, "generate", "--users", "9000", "--posts", "9000", "--follows", "5..20"]
        command += world.application.common()
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        for line in process.stderr:
            if line.startswith("users") and "of 9000" in line and not line.split("]")[1].strip().startswith("0"):
                break
        process.kill()
        process.wait()
        process.stderr.close()
        subprocess.run(command, check=True, capture_output=True)
        world.application.stop()
        world.application.start()
        demo = world.browser()
        demo.sign_in("demo", "demo-password")
        equal(demo.get("/users/9000").status, 200, "the last user")
        equal(demo.get("/users/9001").status, 404, "one more")
        user = demo.get("/users/1").json()["user"]
        equal(len(demo.get("/users/1/followers").json()["people"]), user["followers"], "number of followers")


def test_generate_from_a_dump(options):
    with World(options.server, options.app) as world:
        users, posts = os.path.join(world.folder, "Users.xml"), os.path.join(world.folder, "Posts.xml")
        with open(users, "w") as file:
            file.write('<?xml version="1.0" encoding="utf-8"?>\n<users>\n')
            file.write('  <row Id="-1" DisplayName="Community" />\n')
            for i in range(10):
                picture = "https://example.org/2.png" if i == 2 else "javascript:alert(1)"
                file.write(f'  <row Id="{i * 10 + 7}" DisplayName="N&#233;{i} &amp; co" AboutMe="&lt;p&gt;hi&lt;/p&gt;" '
                           f'ProfileImageUrl="{picture}" />\n')
            file.write("</users>\n")
        with open(posts, "w") as file:
            file.write("<posts>\n")
            for i in range(40):
                file.write(f'  <row Id="{i}" PostTypeId="1" CreationDate="2012-01-{i % 28 + 1:02}T10:00:0{i % 10}.123" '
                           f'OwnerUserId="{i % 10 * 10 + 7}" Title="Q{i} &quot;x&quot;" Body="&lt;p&gt;a &amp;lt; b&lt;/p&gt;" />\n')
            file.write('  <row Id="99" CreationDate="2012-01-01T10:00:00.000" OwnerUserId="12345" Body="x" />\n</posts>\n')
        world.application.run("generate", "--users", 10, "--posts", 40, "--follows", "3..3", "--from", users, posts)
        world.application.stop()
        world.application.start()
        demo = world.browser()
        demo.sign_in("demo", "demo-password")
        user = demo.get("/users/2").json()["user"]
        equal((user["displayName"], user["about"], user["following"]), ("Né1 & co", "hi", 3), "a user")
        equal(user["picture"], "", "no address of the web")
        equal(demo.get("/users/3").json()["user"]["picture"], "https://example.org/2.png", "a picture")
        mine = demo.get("/users/2").json()["posts"]["posts"]
        equal([post["title"] for post in mine], ['Q21 "x"', 'Q11 "x"', 'Q31 "x"', 'Q1 "x"'], "posts by time")
        equal(mine[0]["message"], "a < b", "the text of a post")


def test_sessions_and_both_load_tests(options):
    with World(options.server, options.app) as world:
        generate(world)
        world.application.stop()
        world.application.start()
        sessions = os.path.join(world.folder, "sessions")
        with open(sessions, "w") as file:
            file.write(world.application.run("sessions", "--count", 20))
        user, token = open(sessions).readline().split()
        visitor = Browser(world.application)
        visitor.cookies = {"session": token}
        equal(visitor.get("/").json()["user"], int(user), "whose session it is")
        rows = world.application.run("direct", "--threads", "4,160", "--rounds", 2, "--users", 20).splitlines()
        for line, threads in zip(rows, (4, 160)):
            row = json.loads(line)
            equal((row["threads"], row["requests"], row["errors"]), (threads, 2 * threads, 0), "direct")
            check(0 < row["mean"] <= row["max"], line)
        url = f"http://127.0.0.1:{world.application.port}"
        done = subprocess.run([options.app, "http", "--url", url, "--sessions", sessions, "--threads", "160",
                               "--rounds", "3", "--warm"], capture_output=True, text=True, check=True)
        row = json.loads(done.stdout)
        equal((row["requests"], row["errors"]), (480, 0), "http, 160 connections at once")
        check(row["min"] <= row["mean"] <= row["p90"] <= row["p95"] <= row["max"] or row["mean"] > row["p90"], done.stdout)


def test_bench_script_measures_everything(options):
    with World(options.server, options.app) as world:
        for test in ("direct", "http"):
            out = os.path.join(world.folder, test)
            subprocess.run(
                [sys.executable, os.path.join(HERE, "..", "load", "bench.py"), test, "--server", options.server,
                 "--app", options.app, "--users", "50", "--posts", "200", "--follows", "5..20", "--threads", "2,4",
                 "--sessions", "10", "--databases", "sqlite", "--layouts", "document", "--out", out],
                check=True, capture_output=True, timeout=120)
            results = json.load(open(os.path.join(out, f"results-{test}.json")))
            equal(len(results[0]["rows"]), 6, "rows: off, cold, warm with two numbers of threads")
            number = 1 if test == "direct" else 3
            check(os.path.exists(os.path.join(out, f"figure-4.{number}-sqlite-document.svg")), "a figure")


def test_run_script_serves_a_network(options):
    with World(options.server, options.app) as world:
        folder = os.path.join(world.folder, "run")
        command = [sys.executable, os.path.join(HERE, "..", "run.py"), "--server", options.server, "--app", options.app,
                   "--folder", folder, "--users", "30", "--posts", "50", "--follows", "3..9"]
        for _ in range(2):  # the second time the network is there
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            try:
                line = process.stdout.readline()
                check("demo-password" in line, line)
                world.application.port, kept = int(line.split("/")[2].split(":")[1]), world.application.port
                demo = world.browser()
                world.application.port = kept
                demo.sign_in("demo", "demo-password")
                equal(demo.get("/admin").status, 200, "the demo user is an administrator")
            finally:
                process.terminate()
                process.wait(30)
                process.stdout.close()
            equal(process.returncode, 0, "exit code")
