"""The page of a whole run: each row of the table, what it is to reach and what it reached."""
import datetime
import json
import statistics

PEERS = ("graphile-worker", "pg-boss")


def beside(median, goal):
    """(what was reached, whether it is met) of a row that every contender has."""
    own = median["latchkey"]
    ratios = {peer: own / median[peer] for peer in PEERS}
    text = f"{own:,.0f}/s: " + ", ".join(f"{ratio:.2f} × {peer} ({median[peer]:,.0f})" for peer, ratio in ratios.items())
    return text, all(ratio >= goal for ratio in ratios.values())


def snapshot(found, jobs):
    own = found["rounds"]["latchkey"][0]
    # Whichever is more: its rate in the row above, or in this one before the snapshot.
    peer = max(jobs["median"]["graphile-worker"], found["rounds"]["graphile-worker"][0]["before_s"])
    over = own["held_s"] / peer
    falls = ", ".join(f"{peer} {one['before_s']:,.0f} to {one['held_s']:,.0f} ({one['held_over_before']} ×)"
                      for peer in PEERS for one in found["rounds"][peer])
    return (f"{own['before_s']:,.0f}/s to {own['held_s']:,.0f}/s: {own['held_over_before']} ×; {over:.2f} × graphile-worker without one "
            f"({peer:,.0f}). The peers' fall: {falls}"), own["held_over_before"] >= 0.6 and over >= 1.5


def growth(found, runs, goal):
    step = next(one for one in found["steps"] if one["runs"] >= runs)
    text = (f"no keys {step['jobs_over_empty']:.2f} × ({step['jobs_s']:,}/s beside {step['empty_jobs_s']:,}), keys "
            f"{step['keyed_over_empty']:.2f} × ({step['keyed_s']:,}/s beside {step['empty_keyed_s']:,})")
    return text, step["jobs_over_empty"] >= goal and step["keyed_over_empty"] >= goal


def security(found):
    middle = {row: statistics.median(pairs) for row, pairs in found.items()}
    text = "the rate with it over that without, medians of pairs: " + ", ".join(f"{row} {ratio:.2f}" for row, ratio in middle.items())
    return text, min(middle.values()) >= 0.9


def each(found, figure):
    """A figure's values in the rounds, the least first."""
    return "rounds " + ", ".join(str(one) for one in sorted(one[figure] for one in found["rounds"]))


def purging(found):
    """What it costs to purge jobs that were done, beside doing them."""
    rates = [(keyed, [statistics.median(one[name] for one in found["rounds"] if one["keyed"] == keyed) for name in ("purged_s", "jobs_s")])
             for keyed in (False, True)]
    texts = [f"{'keys' if keyed else 'no keys'} {purged:,.0f}/s beside {done:,.0f}/s done" for keyed, (purged, done) in rates]
    return ("by one server, in slices of 500 one after another: " + ", ".join(texts) +
            f"; in time {found['purge_over_work']:.2f} × the work.")


def table(found):
    guard, letters = found["guard"], found["letters"]
    yield "enqueue + take + complete, no keys, batches of 500", "≥ 3 × both", beside(found["jobs"]["median"], 3)
    yield "the same with a unique `once` key per job", "≥ 2.5 × both", beside(found["keyed"]["median"], 2.5)
    yield ("the same (no keys) while a REPEATABLE READ snapshot that has read `job_runs` is held for 2 min",
           "≥ 0.6 × before; ≥ 1.5 × graphile-worker", snapshot(found["snapshot"], found["jobs"]))
    yield "enqueue one at a time, 50 in flight", "≥ 10 × both", beside(found["single"]["median"], 10)
    yield "the same with 50 % duplicate keys", "≥ 10 × both", beside(found["single-dup"]["median"], 10)
    yield ("what `begin_run` and `complete_run` add to a user's own transaction, 200/s", "p99 < 5 ms",
           (f"p99 {guard['within_p99_ms']} ms ({each(guard, 'within_p99_ms')}), p50 {guard['within_p50_ms']}, both calls together", guard["within_p99_ms"] < 5))
    yield ("`begin_run` in a transaction of its own, with its commit, 200/s", "p99 < 5 ms",
           (f"p99 {guard['guard_p99_ms']} ms ({each(guard, 'guard_p99_ms')}), p50 {guard['guard_p50_ms']}; in turn with it, second by second, "
            f"a plain INSERT {guard['insert_p99_ms']} and {guard['insert_p50_ms']}, through the store {guard['claim_p99_ms']} and "
            f"{guard['claim_p50_ms']}; the callers were let go on {guard['late_p99_ms']} ms late (p99) by the machine alone",
            guard["guard_p99_ms"] < 5))
    yield ("dead letter with its NOTIFY received", "p99 < 100 ms",
           (f"p99 {letters['letter_p99_ms']} ms ({each(letters, 'letter_p99_ms')}), p50 {letters['letter_p50_ms']}", letters["letter_p99_ms"] < 100))
    yield "at 5 M finished runs, beside an empty store", "≥ 0.8 ×", growth(found["grow"], 5_000_000, 0.8)
    yield "at 10 M", "≥ 0.7 ×", growth(found["grow"], 10_000_000, 0.7)
    yield "row-level security on", "≤ 10 % off", security(found["security"])


def write_page(folder, found):
    day = datetime.date.today().isoformat()
    with open(f"{folder}/{day}-postgres.json", "w") as file:
        json.dump(found, file, indent=1)
    with open(f"{folder}/{day}-postgres.md", "w") as file:
        file.write(f"# PostgreSQL: benchmark of {day}\n\n`bench/peers/run.py`, in one run, on the cores that PostgreSQL 15 and the "
                   "contenders share; fsync and synchronous_commit on; medians of rounds, interleaved where there are contenders, each in a fresh database. "
                   "Jobs go through the store as the server's workers and handlers call it, in its process: a client over HTTP pays for HTTP as well; "
                   "the peers' through their own clients in Node.js. "
                   "Settings of server and peers: `bench/peers/README.md`. Every figure: the JSON beside this page.\n\n"
                   "| what | to reach | reached | |\n|---|---|---|---|\n")
        for what, goal, (text, is_met) in table(found):
            file.write(f"| {what} | {goal} | {text} | {'met' if is_met else '**missed**'} |\n")
        file.write(f"\nPurging is not in the table: {purging(found['purge'])}\n")
