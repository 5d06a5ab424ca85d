// A client of the HTTP service through Node's fetch. Usage: node fetch_test.mjs PORT
// Prints "all good" and exits with 0, or throws.

import assert from "node:assert/strict";

const base = `http://127.0.0.1:${process.argv[2]}`;
const json = { "Content-Type": "application/json" };

function record(key, associatedKey) {
  const body = JSON.stringify({ key, associatedKey });
  return fetch(`${base}/associations`, { method: "POST", headers: json, body });
}

async function top(key, query = "") {
  const response = await fetch(`${base}/associations/${encodeURIComponent(key)}${query}`);
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type"), /^application\/json/);
  return response.json();
}

async function associations() {
  for (const key of ["fetch u1", "ključ/😀?#%", 42, "a\u0000\n\"b\\"]) {
    for (const associated of ["x", "y", "y", 7, "č"]) {
      assert.equal((await record(key, associated)).status, 204);
    }
    assert.deepEqual(await top(String(key)), [
      { associatedKey: "y", frequency: 2 },
      { associatedKey: "x", frequency: 1 },
      { associatedKey: "7", frequency: 1 },
      { associatedKey: "č", frequency: 1 },
    ]);
    assert.equal((await top(String(key), "?k=1")).length, 1);
    const path = `${base}/associations/${encodeURIComponent(String(key))}`;
    const gone = await fetch(path, { method: "DELETE" });
    assert.equal(gone.status, 200);
    assert.equal(await gone.text(), "");
    assert.deepEqual(await top(String(key)), []);
  }
}

async function manyAtOnce() {
  const answers = await Promise.all(
    Array.from({ length: 300 }, (_, i) => record("fetch many", `m${i % 3}`)),
  );
  assert.ok(answers.every((answer) => answer.status === 204));
  const counts = await top("fetch many");
  assert.deepEqual(counts.map((row) => row.frequency), [100, 100, 100]);
}

async function streamedBatch() {
  const lines = new ReadableStream({
    start(controller) {
      for (let i = 0; i < 1000; ++i) {
        const line = JSON.stringify({ key: "fetch stream", associatedKey: i % 10 });
        controller.enqueue(new TextEncoder().encode(line + "\n"));
      }
      controller.close();
    },
  });
  const response = await fetch(`${base}/associations:batch`, {
    method: "POST",
    headers: { "Content-Type": "application/x-ndjson" },
    body: lines,
    duplex: "half",
  });
  assert.equal(response.status, 200);
  assert.deepEqual(await response.json(), { accepted: 1000, new: 10 });
  assert.equal((await top("fetch stream"))[0].frequency, 100);
}

async function problems() {
  const bad = await fetch(`${base}/associations`, { method: "POST", headers: json, body: "{}" });
  assert.equal(bad.status, 400);
  assert.equal(bad.headers.get("content-type"), "application/problem+json");
  const problem = await bad.json();
  assert.equal(problem.status, 400);
  assert.equal(problem.title, "Bad Request");
  assert.match(problem.detail, /key is missing/);
  const plain = await fetch(`${base}/associations`, { method: "POST", body: "text" });
  assert.equal(plain.status, 415);
}

async function limits() {
  const body = JSON.stringify({ algorithm: "window", limit: 2, periodMs: 600000 });
  const seen = [];
  for (let i = 0; i < 3; ++i) {
    const url = `${base}/v1/limits/fetch-limit`;
    const response = await fetch(url, { method: "POST", headers: json, body });
    const answer = await response.json();
    seen.push([response.status, answer.allowed, answer.remaining]);
    assert.match(response.headers.get("ratelimit"), /^"window";r=\d+;t=\d+$/);
    assert.equal(response.headers.get("ratelimit-policy"), '"window";q=2;w=600');
    assert.equal(response.headers.has("retry-after"), response.status === 429);
  }
  assert.deepEqual(seen, [[200, true, 1], [200, true, 0], [429, false, 0]]);
}

await associations();
await manyAtOnce();
await streamedBatch();
await problems();
await limits();
console.log("all good");
