#!/usr/bin/env python3
"""The rows of the PostgreSQL table: every contender on one PostgreSQL of the run's own, in turn, round after round.

usage: bench/peers/run.py [--quick] [--rounds=N] [ROW…]     ROW: jobs keyed single single-dup snapshot guard
       letters grow security purge (all, without any)
Prints one JSON line per measurement and, at the end of each row, one with the medians; a run of all rows writes
bench/results/DATE-postgres.{json,md}. quick: small counts, one round, nothing is written.
"""
import json
import os
import platform
import signal
import statistics
import subprocess
import sys

from page import write_page
from postgres import with_postgres

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# What a row's figure is called, its number (jobs or seconds), the number with --quick, and how often it is measured.
ROWS = {
    "jobs": ("jobs_s", 100_000, 20_000, 7),
    "keyed": ("jobs_s", 100_000, 20_000, 7),
    "single": ("enqueues_s", 10, 2, 5),
    "single-dup": ("enqueues_s", 10, 2, 5),
    "snapshot": ("held_s", 120, 20, 1),
}


def node():
    """Node.js of the pinned package; fetches the packages when they are missing or not those of the lock file."""
    machine = {"x86_64": "x64", "aarch64": "arm64"}[platform.machine()]
    program = f"{HERE}/node_modules/node-linux-{machine}/bin/node"
    lock, installed = f"{HERE}/package-lock.json", f"{HERE}/node_modules/.package-lock.json"
    if not os.path.exists(program) or not os.path.exists(installed) or os.path.getmtime(installed) < os.path.getmtime(lock):
        print("  fetching the pinned peers", file=sys.stderr)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
                       cwd=HERE, stdout=sys.stderr, check=True)
    return program


class Contender:
    """A program to measure. `commands`: for each of its rows, a function of (number, url) that returns the command line
    of a program that prints one JSON object with the row's figure on its last line."""

    def __init__(self, name, commands):
        self.name = name
        self.commands = commands

    def measure(self, row, number, url):
        command = [str(word) for word in self.commands[row](number, url)]
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        return json.loads(output.strip().splitlines()[-1])


def peers(snapshot_before=60):
    program = node()

    def peer(name, file):
        def command(row):
            extra = [f"--before={snapshot_before}"] if row == "snapshot" else []
            return lambda number, url: [program, f"{HERE}/{file}", row, number, url, *extra]

        return Contender(name, {row: command(row) for row in ROWS})

    return [peer("graphile-worker", "graphile.mjs"), peer("pg-boss", "pg_boss.mjs")]


def latchkey(snapshot_before=60):
    program = f"{ROOT}/build/release/bench/postgres_bench"

    def command(row):
        extra = [snapshot_before] if row == "snapshot" else []
        return lambda number, url: [program, row, number, url, *extra]

    return Contender("latchkey", {row: command(row) for row in ROWS})


def contenders(quick):
    before = 10 if quick else 40
    return [latchkey(before), *peers(before)]


# Latchkey alone: its number, the number with --quick, and how often it is measured. Times of single calls first: ten million runs
# leave the disk busy.
OWN = {"guard": (12, 3, 5), "letters": (1_000, 50, 3), "grow": (10_000_000, 400_000, 1), "security": (15, 1, 1), "purge": (4, 1, 1)}


def measure_own(server, row, number, rounds):
    """What the row prints; of one that is measured several times the median of each figure, and what each round printed."""
    found = []
    for turn in range(rounds):
        with server.fresh_database("bench") as url:
            words = [f"{ROOT}/build/release/bench/postgres_bench", row, str(number), url]
            found.append(json.loads(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout))
        print(json.dumps({"contender": "latchkey", "row": row, "round": turn, **found[-1]}), flush=True)
    if OWN[row][2] == 1:
        return found[0]
    return {**{name: round(statistics.median(one[name] for one in found), 2) for name in found[0]}, "rounds": found}


def measure(server, all_contenders, row, number, rounds):
    """{name: [figures of each round]}; in each round the contenders follow one another, each in a database of its own."""
    figures = {one.name: [] for one in all_contenders if row in one.commands}
    for turn in range(rounds):
        # The first contender of the round before is the last of this one.
        order = [one for one in all_contenders if row in one.commands]
        order = order[turn % len(order):] + order[:turn % len(order)]
        for one in order:
            with server.fresh_database("bench") as url:
                found = one.measure(row, number, url)
            if row == "snapshot":
                found.update(snapshot_summary(found))
            figures[one.name].append(found)
            print(json.dumps({"contender": one.name, "row": row, "round": turn, **found}), flush=True)
    return figures


def snapshot_summary(found):
    """The rate before, and in the last third of the time that the snapshot was held."""
    before = statistics.median(found["before"])
    held = statistics.median(found["held"][-max(1, len(found["held"]) // 3):])
    return {"before_s": before, "held_s": held, "held_over_before": round(held / before, 3)}


def medians(figures, name):
    return {who: statistics.median(found[name] for found in rounds) for who, rounds in figures.items()}


def main():
    # An end from outside stops the server as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    words = sys.argv[1:]
    quick = "--quick" in words
    chosen = [word for word in words if not word.startswith("--")] or [*ROWS, *OWN]
    fixed = [int(word.split("=")[1]) for word in words if word.startswith("--rounds=")]
    all_contenders = contenders(quick)
    found = {}

    def record(row, **figures):
        found[row] = figures
        print(json.dumps({"row": row, **figures}), flush=True)

    # Below the project, so that the database is on the measured disk.
    with with_postgres(ROOT) as server:
        # As of a server that has run for a while: the first minute of a new one was seen to be slower by half.
        if not quick:
            print("  files of the server's log, and a round that does not count", file=sys.stderr)
            server.make_log_files()
            measure(server, all_contenders, "jobs", ROWS["jobs"][1], 1)
        for row in chosen:
            if row in OWN:
                number, small, rounds = OWN[row]
            else:
                name, number, small, rounds = ROWS[row]
            if rounds > 1:
                rounds = 1 if quick else fixed[0] if fixed else rounds
            number = small if quick else number
            if row in OWN:
                record(row, **measure_own(server, row, number, rounds))
                continue
            figures = measure(server, all_contenders, row, number, rounds)
            record(row, median=medians(figures, name), rounds=figures)
    if not quick and set(found) == {*ROWS, *OWN}:
        write_page(f"{ROOT}/bench/results", found)


if __name__ == "__main__":
    main()
