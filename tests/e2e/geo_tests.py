"""Geo commands beside stock Redis: replies to the digit, errors, random searches of all shapes."""

import resp
from harness import eq, test
from sorted_set_tests import compare, run_lines

DIRECTED = r"""
GEOADD Sicily 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
GEOADD Sicily
GEOADD Sicily 1 2
GEOADD Sicily 1 2 a 3
GEOADD Sicily NX XX 1 2 a
GEOADD Sicily NX CH CH
GEOADD Sicily x 2 a
GEOADD Sicily 1 y a
GEOADD Sicily 181 2 a
GEOADD Sicily 1 86 a
GEOADD Sicily -181.5 -85.2 a
GEOADD Sicily NX 14 38 Palermo 14 38 Enna
GEOADD Sicily XX 14.5 38.5 Enna 1 1 nobody
GEOADD Sicily CH 14.27 37.56 Enna
GEOADD Sicily XX CH 14.27 37.56 Enna
GEOADD edge 180 85.05112878 ne -180 -85.05112878 sw 0 0 zero
ZRANGE Sicily 0 -1
GEOPOS Sicily Palermo nobody Catania
GEOPOS edge ne sw zero
GEOPOS Sicily
GEOPOS none a b
GEOHASH Sicily Palermo Catania nobody
GEOHASH edge ne sw zero
GEOHASH none a
GEOHASH Sicily
GEODIST Sicily Palermo Catania
GEODIST Sicily Palermo Catania km
GEODIST Sicily Palermo Catania MI
GEODIST Sicily Palermo Catania ft
GEODIST Sicily Palermo Catania x
GEODIST Sicily Palermo Catania m m
GEODIST Sicily Palermo nobody
GEODIST Sicily Palermo Palermo
GEODIST none a b
SET str x
GEOADD str 1 2 a
GEOPOS str a
GEOHASH str a
GEODIST str a b
GEORADIUS str 1 2 3 m
GEOSEARCH str FROMLONLAT 1 2 BYRADIUS 1 m
GEORADIUS Sicily 15 37 200 km
GEORADIUS Sicily 15 37 200 km ASC
GEORADIUS Sicily 15 37 200 km DESC WITHDIST
GEORADIUS Sicily 15 37 200 km WITHDIST ASC
GEORADIUS Sicily 15 37 200 km WITHCOORD ASC
GEORADIUS Sicily 15 37 200 km WITHHASH WITHDIST WITHCOORD ASC
GEORADIUS Sicily 15 37 200 km COUNT 1
GEORADIUS Sicily 15 37 200 km COUNT 1 DESC
GEORADIUS Sicily 15 37 200 km COUNT 0
GEORADIUS Sicily 15 37 200 km COUNT -1
GEORADIUS Sicily 15 37 200 km COUNT x
GEORADIUS Sicily 15 37 200 km COUNT
GEORADIUS Sicily 15 37 200 km ANY
GEORADIUS Sicily 15 37 200 km COUNT 10 ANY ASC
GEORADIUS Sicily 15 37 200 parsec
GEORADIUS Sicily 15 37 x km
GEORADIUS Sicily 15 37 -1 km
GEORADIUS Sicily x 37 1 km
GEORADIUS Sicily 15 97 1 km
GEORADIUS Sicily 15 37 200 km NOSUCH
GEORADIUS Sicily 15 37 200 km FROMMEMBER Palermo
GEORADIUS none 15 37 200 km
GEORADIUS none 15 37 x km
GEORADIUS Sicily 15 37 200 km STORE dst
ZRANGE dst 0 -1 WITHSCORES
GEORADIUS Sicily 15 37 200 km STOREDIST dst
ZRANGE dst 0 -1
GEORADIUS Sicily 15 37 200 km STORE dst WITHDIST
GEORADIUS Sicily 15 37 200 km STORE
GEORADIUS Sicily 15 37 200 km STORE a STORE dst COUNT 1
EXISTS a
ZRANGE dst 0 -1 WITHSCORES
GEORADIUS none 15 37 200 km STORE dst
EXISTS dst
GEORADIUS_RO Sicily 15 37 200 km ASC
GEORADIUS_RO Sicily 15 37 200 km STORE dst
GEORADIUSBYMEMBER Sicily Palermo 200 km ASC
GEORADIUSBYMEMBER Sicily Palermo 200 km ASC WITHDIST
GEORADIUSBYMEMBER Sicily nobody 200 km
GEORADIUSBYMEMBER none Palermo 200 km
GEORADIUSBYMEMBER none Palermo x km
GEORADIUSBYMEMBER Sicily Palermo x km
GEORADIUSBYMEMBER Sicily Palermo 200 km STORE dst
ZRANGE dst 0 -1 WITHSCORES
GEORADIUSBYMEMBER_RO Sicily Palermo 200 km STORE dst
GEORADIUSBYMEMBER_RO Sicily Palermo 200 km ASC
GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 km ASC
GEOSEARCH Sicily FROMMEMBER Palermo BYRADIUS 200 km ASC WITHDIST WITHCOORD WITHHASH
GEOSEARCH Sicily FROMMEMBER nobody BYRADIUS 200 km
GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 400 400 km ASC WITHDIST
GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 400 x km
GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX x 400 km
GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX -4 400 km
GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 400 400 x
GEOSEARCH Sicily FROMLONLAT 15 37 BYBOX 1 1 km BYRADIUS 1 km
GEOSEARCH Sicily FROMLONLAT 15 37 FROMMEMBER Palermo BYRADIUS 1 km
GEOSEARCH Sicily FROMLONLAT 15 37 COUNT 1 ASC
GEOSEARCH Sicily BYRADIUS 200 km COUNT 1
geosearch Sicily BYRADIUS 200 km COUNT 1
GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 km STOREDIST
GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 km STORE dst
GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 km COUNT 1 ANY
GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 200 km ANY
GEOSEARCH Sicily FROMLONLAT 15 37 BYRADIUS 0 km
GEOSEARCH none FROMLONLAT 15 37 BYRADIUS 200 km
GEOSEARCH none FROMMEMBER a BYRADIUS 200 km
GEOSEARCH none FROMMEMBER a COUNT 1 ASC
GEOSEARCHSTORE dst Sicily FROMLONLAT 15 37 BYRADIUS 200 km
ZRANGE dst 0 -1 WITHSCORES
GEOSEARCHSTORE dst Sicily FROMLONLAT 15 37 BYBOX 400 400 km STOREDIST COUNT 2
ZRANGE dst 0 -1
GEOSEARCHSTORE dst Sicily FROMLONLAT 15 37 BYRADIUS 200 km WITHDIST
GEOSEARCHSTORE dst Sicily FROMLONLAT 15 37 BYRADIUS 1 m
EXISTS dst
GEOSEARCHSTORE dst none FROMLONLAT 15 37 BYRADIUS 1 m
GEOSEARCH edge FROMLONLAT 179.9 85 BYRADIUS 100 km ASC
GEOSEARCH edge FROMLONLAT 0 0 BYRADIUS 20000 km
GEOSEARCH edge FROMLONLAT 0 0 BYBOX 30000 20000 km
"""


@test()
def geo_one_by_one_resp2(context):
    run_lines(context, DIRECTED, 2)


@test()
def geo_one_by_one_resp3(context):
    run_lines(context, DIRECTED, 3)


def exact(expected, actual):
    return expected == actual


def position(rng, near=None):
    if near is None or rng.random() < 0.3:
        return rng.uniform(-180, 180), rng.uniform(-85, 85)
    spread = 10 ** rng.uniform(-4, 1)
    longitude = near[0] + rng.uniform(-spread, spread)
    latitude = near[1] + rng.uniform(-spread, spread)
    return max(-180, min(180, longitude)), max(-85.05, min(85.05, latitude))


def shape(rng):
    unit = rng.choice(["m", "km", "ft", "mi"])
    size = "%.3f" % 10 ** rng.uniform(-1, 5)
    if rng.random() < 0.5:
        return ["BYRADIUS", size, unit]
    return ["BYBOX", size, "%.2f" % 10 ** rng.uniform(-1, 5), unit]


def search(rng, centres):
    if rng.random() < 0.3:
        words = ["FROMMEMBER", "m%d" % rng.randrange(400)]
    else:
        words = ["FROMLONLAT"] + ["%.6f" % x for x in position(rng, rng.choice(centres))]
    words += shape(rng)
    # Without an order the whole is compared as Redis gives it: cell by cell.
    words += rng.choice([[], ["ASC"], ["DESC"]])
    if rng.random() < 0.2:
        words += ["COUNT", str(rng.randrange(1, 20)), "ANY"]
    return words


@test(timeout=60)
def searches_like_redis(context):
    rng = context.rng("geo")
    stock, sut = context.pair(proto=rng.choice([2, 3]))
    for client in (stock, sut):
        client.call("FLUSHALL")
    centres = [position(rng) for _ in range(6)]
    points = []
    for i in range(400):
        points += ["%.7f" % x for x in position(rng, rng.choice(centres))] + ["m%d" % i]
    for at in range(0, len(points), 90):
        compare(context, stock, sut, ["GEOADD", "g"] + points[at : at + 90], exact)
    names = ["m%d" % i for i in range(400)]
    compare(context, stock, sut, ["GEOHASH", "g"] + names, exact)
    compare(context, stock, sut, ["GEOPOS", "g"] + names, exact)
    for step in range(1500):
        command = ["GEOSEARCH", "g"] + search(rng, centres)
        command += ["WITHDIST", "WITHHASH", "WITHCOORD"][: rng.randrange(4)]
        if rng.random() < 0.1:
            pair = rng.sample(names, 2)
            command = ["GEODIST", "g"] + pair + [rng.choice(["m", "km", "ft", "mi"])]
        elif rng.random() < 0.1:
            command = ["GEOSEARCHSTORE", "d", "g"] + search(rng, centres)
        elif rng.random() < 0.1:
            command = ["ZRANGE", "d", "0", "-1", "WITHSCORES"]
        if not compare(context, stock, sut, command, exact):
            return context.note("at step %d" % step)


@test()
def geo_is_a_sorted_set(context):
    client = context.client()
    client.call("FLUSHALL")
    client.call("GEOADD", "g", "13.361389", "38.115556", "Palermo")
    eq(client.call("TYPE", "g"), resp.Status(b"zset"))
    eq(client.call("ZSCORE", "g", "Palermo"), b"3479099956230698")
    eq(client.call("ZADD", "g", "3479447370796909", "Catania"), 1)
    eq(client.call("GEOHASH", "g", "Catania"), [b"sqdtr74hyu0"])
