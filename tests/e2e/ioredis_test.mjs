// A client of the server through ioredis. Usage: node ioredis_test.mjs PORT [CA CERTIFICATE KEY]
// With certificates the connection is encrypted.
// Prints "all good" and exits with 0, or throws.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import Redis from "ioredis";

const port = Number(process.argv[2]);
const tls = process.argv[3] && {
  ca: readFileSync(process.argv[3]),
  cert: readFileSync(process.argv[4]),
  key: readFileSync(process.argv[5]),
  checkServerIdentity: () => undefined,
};
const options = { tls, port, host: "127.0.0.1", maxRetriesPerRequest: 1, retryStrategy: null };

// A subscription that leaves before ioredis has sent its own INFO makes that one an error, and the
// connection never becomes ready.
async function ready(redis) {
  if (redis.status !== "ready") await new Promise((done) => redis.once("ready", done));
  return redis;
}

async function basics() {
  const redis = new Redis({ ...options, connectionName: "ioredis-test", db: 2 });
  assert.equal(await redis.client("GETNAME"), "ioredis-test");
  assert.match(await redis.client("INFO"), / db=2 /);
  assert.equal(await redis.set("a", "1"), "OK");
  assert.equal(await redis.get("a"), "1");
  assert.equal(await redis.get("nope"), null);
  assert.equal(await redis.incrby("a", 41), 42);
  assert.deepEqual(await redis.mget("a", "nope"), ["42", null]);
  assert.equal(await redis.set("a", "x", "EX", 100, "NX"), null);
  assert.equal(await redis.set("a", "x", "PX", 100000, "XX", "GET"), "42");
  assert.ok((await redis.ttl("a")) > 90);
  const binary = Buffer.from([0, 255, 13, 10]);
  await redis.set("binary", binary);
  assert.deepEqual(await redis.getBuffer("binary"), binary);
  await assert.rejects(redis.incr("binary"), /ERR value is not an integer or out of range/);
  await assert.rejects(redis.call("NOSUCH", "x"), /ERR unknown command 'NOSUCH'/);
  assert.match(await redis.info("server"), /redis_version:7\./);
  const hello = await redis.call("HELLO", "2");
  assert.equal(hello[hello.indexOf("proto") + 1], 2);
  await redis.quit();
}

async function pipelines() {
  const redis = new Redis(options);
  const pipeline = redis.pipeline();
  for (let i = 0; i < 3000; i++) pipeline.set(`p${i}`, i).get(`p${i}`);
  const results = await pipeline.exec();
  assert.equal(results.length, 6000);
  results.forEach(([error, value], i) => {
    assert.equal(error, null);
    assert.equal(value, i % 2 ? String((i - 1) / 2) : "OK");
  });
  const mixed = await redis.pipeline().set("s", "x").incr("s").get("s").exec();
  assert.equal(mixed[0][1], "OK");
  assert.ok(mixed[1][0] instanceof Error);
  assert.equal(mixed[2][1], "x");
  const automatic = new Redis({ ...options, enableAutoPipelining: true });
  const values = await Promise.all([...Array(200).keys()].map((i) => automatic.get(`p${i}`)));
  assert.deepEqual(values, [...Array(200).keys()].map(String));
  automatic.disconnect();
  await redis.quit();
}

async function transactions() {
  const redis = new Redis(options);
  const other = new Redis(options);
  const results = await redis.multi().set("t", 1).incr("t").get("t").exec();
  assert.deepEqual(results, [[null, "OK"], [null, 2], [null, "2"]]);
  await redis.watch("t");
  await other.set("t", "changed");
  assert.equal(await redis.multi().set("t", "mine").exec(), null);
  assert.equal(await redis.get("t"), "changed");
  await assert.rejects(redis.multi().set("t").exec(), /EXECABORT/);
  await redis.quit();
  await other.quit();
}

async function publishing() {
  const subscriber = await ready(new Redis(options));
  const publisher = new Redis(options);
  const messages = [];
  const patterned = [];
  const done = new Promise((resolve) => {
    const check = () => messages.length === 100 && patterned.length === 100 && resolve();
    subscriber.on("message", (channel, text) => messages.push([channel, text]) && check());
    subscriber.on("pmessage", (pattern, _, text) => patterned.push([pattern, text]) && check());
  });
  assert.equal(await subscriber.subscribe("news"), 1);
  assert.equal(await subscriber.psubscribe("n*"), 2);
  for (let i = 0; i < 100; i++) assert.equal(await publisher.publish("news", `m${i}`), 2);
  await done;
  assert.deepEqual(messages, [...Array(100).keys()].map((i) => ["news", `m${i}`]));
  assert.deepEqual(patterned, [...Array(100).keys()].map((i) => ["n*", `m${i}`]));
  assert.equal(await subscriber.unsubscribe("news"), 1);
  assert.equal(await subscriber.punsubscribe("n*"), 0);
  assert.equal(await subscriber.ping(), "PONG");
  await subscriber.quit();
  await publisher.quit();
}

async function keyspaceEvents() {
  const redis = new Redis(options);
  const listener = await ready(new Redis(options));
  const before = (await redis.config("GET", "notify-keyspace-events"))[1];
  await redis.config("SET", "notify-keyspace-events", "Ex$g");
  const events = [];
  const expired = new Promise((resolve) => {
    listener.on("pmessage", (pattern, channel, key) => {
      events.push(`${channel.split(":")[1]} ${key}`);
      if (channel.endsWith(":expired")) resolve();
    });
  });
  await listener.psubscribe("__keyevent@0__:*");
  await redis.set("e", "1", "PX", 50);
  await redis.incr("f");
  await redis.del("f");
  await expired;
  for (const event of ["set e", "expire e", "incrby f", "del f", "expired e"]) {
    assert.ok(events.includes(event), `${event} in ${events}`);
  }
  await redis.config("SET", "notify-keyspace-events", before);
  await redis.quit();
  await listener.quit();
}

async function scanning() {
  const redis = new Redis({ ...options, db: 5, keyPrefix: "" });
  const names = [...Array(2500).keys()].map((i) => `scan:${i}`);
  await redis.mset(...names.flatMap((name) => [name, "v"]));
  const found = new Set();
  const stream = redis.scanStream({ match: "scan:*", count: 100, type: "string" });
  for await (const keys of stream) keys.forEach((key) => found.add(key));
  assert.equal(found.size, 2500);
  await redis.flushdb();
  assert.equal(await redis.dbsize(), 0);
  await redis.quit();
}

for (const part of [basics, pipelines, transactions, publishing, keyspaceEvents, scanning]) {
  await part();
}
console.log("all good");
