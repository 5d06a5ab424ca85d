// A client of the server through node-redis and its own client-side cache.
// Usage: node node_redis_test.mjs PORT [CA CERTIFICATE KEY]
// With certificates the connection is encrypted. Prints "all good" and exits with 0, or throws.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { BasicClientSideCache, createClient } from "redis";

const [port, ca, certificate, key] = process.argv.slice(2);
const socket = { host: "127.0.0.1", port: Number(port), reconnectStrategy: false };
if (ca) {
  socket.tls = true;
  socket.ca = readFileSync(ca);
  socket.cert = readFileSync(certificate);
  socket.key = readFileSync(key);
  socket.checkServerIdentity = () => undefined;
}

async function connect(options) {
  const client = createClient({ socket, RESP: 3, ...options });
  client.on("error", (error) => console.error(error));
  await client.connect();
  return client;
}

async function eventually(condition, what) {
  for (let i = 0; i < 500; i++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.fail(what);
}

async function caching() {
  const cache = new BasicClientSideCache({ ttl: 0, maxEntries: 0, evictPolicy: "LRU" });
  const reader = await connect({ clientSideCache: cache });
  const writer = await connect({});
  await writer.set("k", "1");
  await writer.hSet("h", "f", "v");
  for (let i = 0; i < 10; i++) {
    assert.equal(await reader.get("k"), "1");
    assert.equal((await reader.hGetAll("h")).f, "v");
  }
  assert.equal(cache.stats().missCount, 2);
  assert.equal(cache.stats().hitCount, 18);
  await writer.set("k", "2");
  await writer.hSet("h", "f", "w");
  await eventually(async () => (await reader.get("k")) === "2", "the string's new value");
  await eventually(async () => (await reader.hGetAll("h")).f === "w", "the hash's new value");
  assert.equal(await reader.get("gone"), null);
  await writer.flushAll();
  await eventually(async () => (await reader.get("k")) === null, "the flush");
  for (let i = 0; i < 200; i++) {
    await writer.set("n", String(i));
    await eventually(async () => (await reader.get("n")) === String(i), `value ${i}`);
  }
  reader.destroy();
  writer.destroy();
}

async function basics() {
  const client = await connect({});
  assert.equal(await client.ping(), "PONG");
  const large = "x".repeat(1 << 20);
  await client.set("large", large);
  assert.equal(await client.get("large"), large);
  const replies = await Promise.all(Array.from({ length: 2000 }, () => client.incr("counter")));
  assert.equal(replies.at(-1), 2000);
  assert.deepEqual(await client.multi().set("a", "1").get("a").exec(), ["OK", "1"]);
  client.destroy();
}

await basics();
await caching();
console.log("all good");
