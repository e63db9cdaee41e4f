// graphile-worker with its documented fast settings: a local queue and batched completions.
// It logs each success unless this variable is set before it is loaded. Its own benchmark sets it, too.
process.env.NO_LOG_SUCCESS = "1";
const { Logger, makeWorkerUtils, run } = await import("graphile-worker");
const { default: pg } = await import("pg");
const { main } = await import("./rows.mjs");

const silent = new Logger(() => (level, message) => {
  if (level === "error") console.error(message);
});

// A job counts as done when the statement that completes it has been answered. The worker's own events come earlier:
// at the moment when the completion is put into the next batch.
function countingClient(completed) {
  return class extends pg.Client {
    query(statement, ...rest) {
      const answer = super.query(statement, ...rest);
      if (statement?.name?.startsWith("complete_job")) answer.then((result) => completed(result.rowCount), () => {});
      return answer;
    }
  };
}

function makePool(options) {
  const pool = new pg.Pool(options);
  // The worker asks for both.
  pool.on("error", (error) => console.error(error.message));
  pool.on("connect", (client) => client.on("error", (error) => console.error(error.message)));
  return pool;
}

class Graphile {
  static title = "graphile-worker";
  static table = "graphile_worker._private_jobs";
  static defaults = {
    mode: "together", producers: 2, processes: 2, workers: 1, jobs: 100, queue: 2000, delay: 5, pool: 25, keyMode: "unsafe_dedupe",
    singlePool: 20,
  };

  constructor(url, settings, payload) {
    Object.assign(this, { url, settings, payload });
    this.pool = makePool({ connectionString: url, max: settings.singlePool });
  }

  async prepare(migrate) {
    this.utils = await makeWorkerUtils({ pgPool: this.pool, logger: silent });
    if (migrate) await this.utils.migrate();
  }

  enqueue(keys, count) {
    const specs = [];
    for (let i = 0; i < count; ++i) specs.push({ identifier: "bench", payload: this.payload, jobKey: keys?.[i] });
    return this.utils.addJobs(specs);
  }

  enqueueOne(key) {
    const spec = key === undefined ? {} : { jobKey: key, jobKeyMode: this.settings.keyMode };
    return this.utils.addJob("bench", this.payload, spec);
  }

  async drain(completed) {
    const pool = makePool({ connectionString: this.url, max: this.settings.pool, Client: countingClient(completed) });
    const { jobs, queue, delay } = this.settings;
    const worker = { concurrentJobs: jobs, completeJobBatchDelay: delay, failJobBatchDelay: delay };
    if (queue > 0) worker.localQueue = { size: queue };
    const options = { pgPool: pool, logger: silent, noHandleSignals: true, taskList: { bench: () => {} }, preset: { worker } };
    const runners = [];
    for (let i = 0; i < this.settings.workers; ++i) runners.push(await run(options));
    return async () => {
      await Promise.all(runners.map((runner) => runner.stop()));
      await pool.end();
    };
  }

  // It deletes a job when it completes: there is no history.
  async addHistory() {}

  async close() {
    await this.utils.release();
    await this.pool.end();
  }
}

await main(Graphile, import.meta.filename);
