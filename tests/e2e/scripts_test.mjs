// Libraries that live by Lua: BullMQ, Bull, rate-limiter-flexible, redlock, connect-redis, ioredis'
// defineCommand. Usage: node scripts_test.mjs PORT
// Prints what came of each, one line after the other, the same for every right server; exits with 0, or
// throws.

import assert from "node:assert/strict";
import Bull from "bull";
import { RedisStore } from "connect-redis";
import { FlowProducer, Queue, QueueEvents, Worker } from "bullmq";
import Redis from "ioredis";
import { RateLimiterRedis } from "rate-limiter-flexible";
import { createClient } from "redis";
import Redlock from "redlock";

const port = Number(process.argv[2]);
const connection = { port, host: "127.0.0.1", maxRetriesPerRequest: null };
const say = (...words) => console.log(words.map((word) => JSON.stringify(word)).join(" "));

async function define() {
  const redis = new Redis({ ...connection, maxRetriesPerRequest: 1 });
  redis.defineCommand("both", {
    numberOfKeys: 2,
    lua: "redis.call('SET',KEYS[1],ARGV[1]) return {redis.call('GET',KEYS[1]),KEYS[2],ARGV[2]}",
  });
  say("define", await redis.both("a", "b", "x", "y"), await redis.both("a", "b", "1", "2"));
  await redis.script("FLUSH");
  say("after a flush", await redis.both("a", "b", "3", "4"));
  const pipeline = redis.pipeline();
  for (let i = 0; i < 50; i++) pipeline.both("p" + i, "q", i, "z");
  say("pipeline", (await pipeline.exec()).map(([error, reply]) => error ?? reply[0]));
  const multi = await redis.multi().both("m", "n", "5", "6").get("m").exec();
  say("multi", multi);
  await redis.quit();
}

async function limiters() {
  const redis = new Redis({ ...connection, enableOfflineQueue: false, lazyConnect: true });
  await redis.connect();
  const limiter = new RateLimiterRedis({
    storeClient: redis,
    points: 5,
    duration: 100,
    blockDuration: 200,
    keyPrefix: "limit",
  });
  const answers = await Promise.all(
    Array.from({ length: 8 }, () =>
      limiter.consume("one").then(
        (answer) => answer.remainingPoints,
        (refusal) => "refused " + refusal.remainingPoints,
      ),
    ),
  );
  say("limiter", answers.sort());
  say("penalty", (await limiter.penalty("two", 3)).consumedPoints);
  say("reward", (await limiter.reward("two", 1)).consumedPoints);
  say("get", (await limiter.get("two")).remainingPoints, await limiter.delete("two"));
  await redis.quit();
}

async function locks() {
  const redis = new Redis({ ...connection });
  const redlock = new Redlock([redis], { retryCount: 0 });
  const lock = await redlock.lock("lock:a", 10000);
  const second = await redlock.lock("lock:a", 10000).then(
    () => "taken twice",
    (error) => error.name,
  );
  await lock.extend(20000);
  const ttl = await redis.pttl("lock:a");
  assert.ok(ttl > 10000 && ttl <= 20000);
  await lock.unlock();
  say("redlock", second, await redis.exists("lock:a"));
  let counter = 0;
  const patient = new Redlock([redis], { retryCount: 1000, retryDelay: 5 });
  await Promise.all(
    Array.from({ length: 10 }, async () => {
      const mine = await patient.lock("lock:b", 5000);
      const seen = counter;
      await new Promise((done) => setTimeout(done, 2));
      counter = seen + 1;
      await mine.unlock();
    }),
  );
  say("redlock, many", counter);
  await redis.quit();
}

async function sessions() {
  const client = createClient({ url: `redis://127.0.0.1:${port}` });
  await client.connect();
  const store = new RedisStore({ client, prefix: "sess:", ttl: 100 });
  const cookie = { originalMaxAge: 60000 };
  await store.set("1", { cookie, name: "ana" });
  await store.set("2", { cookie, name: "milan" });
  await store.touch("1", { cookie, name: "ana" });
  say("sessions", (await store.get("1")).name, await store.length(), (await store.ids()).sort());
  await store.destroy("1");
  say("destroyed", (await store.get("1")) ?? null, (await store.all()).map((one) => one.name));
  await store.clear();
  say("cleared", await store.length());
  await client.quit();
}

async function queues() {
  const queue = new Queue("jobs", { connection });
  const events = new QueueEvents("jobs", { connection });
  await events.waitUntilReady();
  const results = {};
  const attempts = {};
  const workers = Array.from(
    { length: 4 },
    () =>
      new Worker(
        "jobs",
        async (job) => {
          attempts[job.name] = (attempts[job.name] ?? 0) + 1;
          if (job.name === "flaky" && attempts.flaky < 3) throw new Error("not yet");
          if (job.name === "hopeless") throw new Error("never");
          await job.updateProgress(50);
          return job.data.n * 2;
        },
        { connection, concurrency: 5 },
      ),
  );
  const jobs = await queue.addBulk(
    Array.from({ length: 100 }, (_, n) => ({ name: "job" + n, data: { n } })),
  );
  jobs.push(await queue.add("late", { n: 1000 }, { delay: 50 }));
  jobs.push(await queue.add("first", { n: 2000 }, { priority: 1 }));
  jobs.push(await queue.add("flaky", { n: 3000 }, { attempts: 5, backoff: 10 }));
  for (const job of jobs) results[job.name] = await job.waitUntilFinished(events, 30000);
  const sum = Object.values(results).reduce((a, b) => a + b, 0);
  say("bullmq", jobs.length, sum, attempts.flaky);
  const hopeless = await queue.add("hopeless", {}, { attempts: 2 });
  say("hopeless", await hopeless.waitUntilFinished(events, 30000).catch((error) => error.message));
  say("counts", await queue.getJobCounts("completed", "failed", "waiting", "active", "delayed"));
  await queue.pause();
  await queue.add("paused", { n: 1 });
  say("paused", await queue.isPaused(), await queue.getJobCounts("paused", "waiting"));
  await queue.drain();
  await queue.resume();

  const flow = new FlowProducer({ connection });
  const tree = await flow.add({
    name: "parent",
    queueName: "jobs",
    data: { n: 7 },
    children: [1, 2, 3].map((n) => ({ name: "child", queueName: "jobs", data: { n } })),
  });
  say("flow", await tree.job.waitUntilFinished(events, 30000));
  say("children", Object.values(await tree.job.getChildrenValues()).sort());
  await flow.close();
  await Promise.all(workers.map((worker) => worker.close()));
  await queue.obliterate({ force: true });
  say("obliterated", await queue.getJobCounts("completed", "failed"));
  await events.close();
  await queue.close();
}

async function olderQueues() {
  const queue = new Bull("older", { redis: { port, host: "127.0.0.1" } });
  await queue.isReady();
  const attempts = {};
  queue.process("*", 3, async (job) => {
    attempts[job.name] = (attempts[job.name] ?? 0) + 1;
    if (job.name === "flaky" && attempts.flaky < 3) throw new Error("not yet");
    if (job.name === "hopeless") throw new Error("never");
    await job.progress(50);
    await job.log("half way");
    return job.data.n * 2;
  });
  const jobs = await queue.addBulk(
    Array.from({ length: 50 }, (_, n) => ({ name: "job" + n, data: { n } })),
  );
  jobs.push(await queue.add("late", { n: 100 }, { delay: 50 }));
  jobs.push(await queue.add("first", { n: 200 }, { priority: 1 }));
  jobs.push(await queue.add("flaky", { n: 300 }, { attempts: 5, backoff: 10 }));
  let sum = 0;
  for (const job of jobs) sum += await job.finished();
  say("bull", jobs.length, sum, attempts.flaky, (await queue.getJobLogs(jobs[0].id)).logs);
  const hopeless = await queue.add("hopeless", {}, { attempts: 2 });
  say("bull, hopeless", await hopeless.finished().catch((error) => error.message));
  await queue.pause();
  const paused = await queue.add("paused", { n: 7 });
  say("bull, paused", await queue.getJobCounts());
  await queue.resume();
  say("bull, resumed", await paused.finished());
  await queue.obliterate({ force: true });
  say("bull, obliterated", await queue.getJobCounts());
  await queue.close();
}

await define();
await limiters();
await locks();
await sessions();
await queues();
await olderQueues();
say("all good");
process.exit(0);
