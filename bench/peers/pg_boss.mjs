// pg-boss with whole batches: insert() of many, fetch() of many, complete() of many.
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { PgBoss } from "pg-boss";
import { main } from "./rows.mjs";

class Boss {
  static title = "pg-boss";
  static table = "pgboss.job";
  static defaults = { mode: "together", producers: 2, processes: 0, workers: 4, batch: 500, partition: 0, supervise: 1, singlePool: 20 };

  constructor(url, settings, payload) {
    Object.assign(this, { url, settings, payload });
    this.queue = settings.keyed ? "keyed" : "plain";
    const connections = Math.max(settings.singlePool, settings.producers + settings.workers);
    this.boss = new PgBoss({ connectionString: url, max: connections, schedule: false, supervise: Boolean(settings.supervise) });
    this.boss.on("error", (error) => console.error(error.message));
  }

  async prepare(migrate) {
    await this.boss.start();
    if (!migrate) return;
    // Of its policies, `exclusive` is the one whose unique index holds a key from enqueue to completion.
    const partition = Boolean(this.settings.partition);
    await this.boss.createQueue("plain", { partition });
    await this.boss.createQueue("keyed", { partition, policy: "exclusive" });
  }

  enqueue(keys, count) {
    const jobs = [];
    for (let i = 0; i < count; ++i) jobs.push(keys ? { data: this.payload, singletonKey: keys[i] } : { data: this.payload });
    return this.boss.insert(this.queue, jobs);
  }

  enqueueOne(key) {
    return this.boss.send(this.queue, this.payload, key === undefined ? {} : { singletonKey: key });
  }

  // The loop of work() with burstWhenBatchFull (fetch, handler, complete), without its wait after a short batch.
  async drain(completed) {
    let stopping = false;
    const loop = async () => {
      while (!stopping) {
        const jobs = await this.boss.fetch(this.queue, { batchSize: this.settings.batch });
        if (jobs.length === 0) {
          await sleep(5);
          continue;
        }
        const { affected } = await this.boss.complete(this.queue, jobs.map((job) => job.id));
        completed(affected);
      }
    };
    const loops = Array.from({ length: this.settings.workers }, loop);
    return async () => {
      stopping = true;
      await Promise.all(loops);
    };
  }

  // Completed jobs stay in its table (seven days by default): `count` more of them, as copies of one that it completed.
  async addHistory(count) {
    const client = new pg.Client(this.url);
    await client.connect();
    const { rows } = await client.query(
      "SELECT column_name FROM information_schema.columns WHERE table_schema = 'pgboss' AND table_name = 'job' AND is_generated = 'NEVER'");
    const names = rows.map((row) => row.column_name);
    const values = { id: "gen_random_uuid()", singleton_key: "CASE WHEN singleton_key IS NULL THEN NULL ELSE 'old:' || n END" };
    const list = names.map((name) => values[name] ?? name).join(", ");
    await client.query(`INSERT INTO pgboss.job (${names.join(", ")}) SELECT ${list}
      FROM (SELECT * FROM pgboss.job WHERE name = $1 AND state = 'completed' LIMIT 1) one, generate_series(1, $2::bigint) n`,
      [this.queue, count]);
    await client.query("VACUUM ANALYZE pgboss.job");
    await client.end();
  }

  close() {
    return this.boss.stop({ graceful: false });
  }
}

await main(Boss, import.meta.filename);
