// The rows of the speed table for one peer: node PEER.mjs ROW [NUMBER] postgres://… [--setting=value…]
// Prints one JSON line per measurement. ROW: jobs N | keyed N | single SECONDS | single-dup SECONDS |
// snapshot [SECONDS] | drain (a helper process of the others).
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { startDrain, serveDrain } from "./drain.mjs";

const BATCH = 500;
const common = { payload: 100, warm: 5_000, history: 0, before: 60, window: 10, backlog: 20_000 };

const key = (number) => `order:2026-02-06:${number}`;
const now = () => performance.now() / 1000;
const rate = (count, seconds) => Math.round(count / seconds);

function settingsOf(Peer, words) {
  const settings = { ...common, ...Peer.defaults };
  for (const word of words) {
    const [name, value] = word.slice(2).split("=");
    if (!(name in settings)) throw new Error(`no such setting: ${name}; there are ${Object.keys(settings)}`);
    settings[name] = Number.isNaN(Number(value)) ? value : Number(value);
  }
  return settings;
}

// Completions as they are answered, and a wait for a number of them.
class Completed {
  count = 0;
  #waiting = [];
  add = (more) => {
    this.count += more;
    this.#waiting = this.#waiting.filter(({ at, resolve }) => this.count < at || resolve());
  };
  reach(at) {
    return this.count >= at ? Promise.resolve() : new Promise((resolve) => this.#waiting.push({ at, resolve }));
  }
}

// Batches until `total` jobs are in, `producers` of them in flight.
async function enqueueAll(peer, total, keyedFrom) {
  let next = 0;
  const producer = async () => {
    while (next < total) {
      const from = next;
      const count = Math.min(BATCH, total - from);
      next += count;
      await peer.enqueue(keyedFrom === undefined ? undefined : keysFrom(keyedFrom + from, count), count);
    }
  };
  await Promise.all(Array.from({ length: peer.settings.producers }, producer));
}

function keysFrom(from, count) {
  return Array.from({ length: count }, (_, i) => key(from + i));
}

async function round(peer, drainers, total, keyedFrom) {
  const completed = new Completed();
  let stop;
  const start = now();
  if (peer.settings.mode === "together") stop = await drainers.start(completed.add);
  const began = now();
  await enqueueAll(peer, total, keyedFrom);
  const enqueued = now();
  // After, not together: the workers' start is not counted.
  if (!stop) stop = await drainers.start(completed.add);
  const draining = peer.settings.mode === "together" ? enqueued : now();
  await completed.reach(total);
  const end = now();
  await stop();
  if (completed.count !== total) throw new Error(`${completed.count} jobs completed of ${total}`);
  const seconds = enqueued - began + (end - draining);
  return { jobs_s: rate(total, seconds), seconds, enqueue_s: enqueued - began, drain_s: end - draining, start_s: began - start };
}

async function jobs(peer, drainers, total, keyed) {
  if (peer.settings.warm > 0) await round(peer, drainers, peer.settings.warm, keyed ? 1e9 : undefined);
  if (peer.settings.history > 0) await peer.addHistory(peer.settings.history);
  const figures = await round(peer, drainers, total, keyed ? 0 : undefined);
  return { mode: peer.settings.mode, jobs: total, history: peer.settings.history, ...figures };
}

// One at a time, 50 in flight. With duplicates every odd one repeats a key that was enqueued a moment before.
async function single(peer, seconds, duplicates) {
  let next = 0;
  let until = Infinity;
  const producer = async () => {
    while (now() < until) {
      const number = next++;
      await peer.enqueueOne(duplicates ? key(number % 2 === 0 ? number : Math.max(0, number - 201)) : undefined);
    }
  };
  const producers = Array.from({ length: 50 }, producer);
  await sleep(1000);
  const [from, start] = [next, now()];
  until = start + seconds;
  await Promise.all(producers);
  return { enqueues: next - from, enqueues_s: rate(next - from, now() - start), duplicates };
}

// Jobs all the time, at most `backlog` of them waiting; completions per window before and while a session that has
// read the table holds its snapshot.
async function snapshot(peer, drainers, seconds, url, table) {
  const { before, window, backlog, producers } = peer.settings;
  const completed = new Completed();
  const stop = await drainers.start(completed.add);
  let enqueued = 0;
  let running = true;
  const producer = async () => {
    while (running) {
      if (enqueued - completed.count >= backlog) await completed.reach(enqueued - backlog + BATCH);
      enqueued += BATCH;
      await peer.enqueue(undefined, BATCH);
    }
  };
  const all = Array.from({ length: producers }, producer);
  await sleep(3000);
  const windows = async (length) => {
    const rates = [];
    for (const end = now() + length; now() < end - 0.5; ) {
      const [from, start] = [completed.count, now()];
      await sleep(window * 1000);
      rates.push(rate(completed.count - from, now() - start));
    }
    return rates;
  };
  const free = await windows(before);
  const reader = new pg.Client(url);
  await reader.connect();
  await reader.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
  await reader.query(`SELECT count(*) FROM ${table}`);
  const held = await windows(seconds);
  await reader.query("COMMIT");
  await reader.end();
  running = false;
  await Promise.all(all);
  await completed.reach(enqueued);
  await stop();
  return { window_s: window, before: free, held };
}

export async function main(Peer, file) {
  const words = process.argv.slice(2);
  const settings = settingsOf(Peer, words.filter((word) => word.startsWith("--")));
  const url = words.find((word) => word.startsWith("postgres"));
  const row = words[0];
  const number = Number(words[1]);
  settings.keyed = row === "keyed" || row === "single-dup" || process.env.PEER_KEYED === "1";
  const payload = { data: "i".repeat(Math.max(0, settings.payload - '{"data":""}'.length)) };
  const peer = new Peer(url, settings, payload);
  await peer.prepare(row !== "drain");
  if (row === "drain") return serveDrain(peer);
  const drainers = await startDrain(peer, file, settings, url);
  const figures = {
    jobs: () => jobs(peer, drainers, number, false),
    keyed: () => jobs(peer, drainers, number, true),
    single: () => single(peer, number, false),
    "single-dup": () => single(peer, number, true),
    snapshot: () => snapshot(peer, drainers, number || 120, url, Peer.table),
  };
  if (!figures[row]) throw new Error(`no such row: ${row}`);
  const result = await figures[row]();
  console.log(JSON.stringify({ peer: Peer.title, row, ...result, settings }, (_, value) =>
    typeof value === "number" ? Math.round(value * 1000) / 1000 : value));
  await drainers.close();
  await peer.close();
}
