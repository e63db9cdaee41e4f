-- Latchkey's tables in an SQLite file. The file may also have user tables: every name here starts with lk_.
-- Rows of lk_runs and lk_outcomes are appended by seq and rewritten only for a new generation. lk_keys, lk_lists and
-- lk_open are indexes. Each commit merges a slice into them, up to the marks in lk_state; newer runs are indexed in
-- memory, and the index is rebuilt when the file is opened.

CREATE TABLE lk_state (
  format INTEGER PRIMARY KEY,    -- the version of this layout (kStoreFormat); the table has one row
  seq INTEGER NOT NULL,          -- of the newest run
  fence INTEGER NOT NULL,        -- the last one that was drawn
  merged INTEGER NOT NULL,       -- keys of runs up to this seq are in lk_keys
  listed INTEGER NOT NULL,       -- runs up to this seq are in lk_lists and, while open, in lk_open
  batch INTEGER NOT NULL,        -- number of commits; shows whether an unknown commit took effect
  clock_mark INTEGER NOT NULL,   -- the store's clock is never earlier than this
  purged INTEGER NOT NULL        -- the purge continues after this run; 0: from the oldest
);
INSERT INTO lk_state VALUES (5, 0, 0, 0, 0, 0, 0, 0);

CREATE TABLE lk_scopes (
  scope INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  function TEXT NOT NULL,
  UNIQUE (tenant, function)
);

CREATE TABLE lk_runs (
  seq INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  scope INTEGER NOT NULL,
  key BLOB,
  hash BLOB,
  traits INTEGER NOT NULL,       -- guard, on_doubt, on_failed, made_by, by_call: see run_rows.cpp
  priority INTEGER NOT NULL,
  fingerprint BLOB,
  retry BLOB,                    -- NULL: 3 retries after 1 s, 5 s and 25 s, independent of today's default
  window_ms INTEGER NOT NULL,
  lease_ms INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  input BLOB,
  caller BLOB,
  claim BLOB,
  -- the state at the insert; lk_states has a later open state
  generation INTEGER NOT NULL,
  made BLOB NOT NULL             -- packed: open_state.hpp
);

-- The latest open state of a run that differs from its state at the insert. The rows are small, because a lease or a
-- retry must not rewrite the input.
CREATE TABLE lk_states (
  seq INTEGER PRIMARY KEY,
  generation INTEGER NOT NULL,
  state BLOB NOT NULL
);

-- A run is settled when this table has the outcome of its generation.
CREATE TABLE lk_outcomes (
  seq INTEGER PRIMARY KEY,
  generation INTEGER NOT NULL,
  status INTEGER NOT NULL CHECK (status BETWEEN 3 AND 5),
  at INTEGER NOT NULL,
  result BLOB,
  code TEXT,
  effect INTEGER NOT NULL,
  last_error BLOB,
  last_error_code BLOB
);
-- Runs that are not settled.
CREATE VIEW lk_unsettled AS
SELECT r.seq FROM lk_runs r
LEFT JOIN lk_states s ON s.seq = r.seq
LEFT JOIN lk_outcomes o ON o.seq = r.seq
WHERE o.seq IS NULL OR o.generation <> coalesce(s.generation, r.generation);
CREATE INDEX lk_outcomes_unusual ON lk_outcomes (status, seq) WHERE status > 3;

-- Sorted entries of hash and seq; a row fills one page of the file: see key_pages.hpp.
CREATE TABLE lk_keys (first INTEGER PRIMARY KEY, entries BLOB NOT NULL);
-- A key that an operator action has returned to an older run, until the merge has passed `at_seq`.
CREATE TABLE lk_pointed (hash BLOB PRIMARY KEY, seq INTEGER NOT NULL, at_seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE lk_lists (scope INTEGER, seq INTEGER, PRIMARY KEY (scope, seq)) WITHOUT ROWID;
CREATE TABLE lk_open (seq INTEGER PRIMARY KEY);
CREATE TABLE lk_waits (predecessor INTEGER, dependent INTEGER, PRIMARY KEY (predecessor, dependent)) WITHOUT ROWID;
CREATE INDEX lk_waits_dependent ON lk_waits (dependent);
CREATE TABLE lk_duplicates (seq INTEGER PRIMARY KEY, seen BLOB NOT NULL);

CREATE TABLE lk_dead_letters (
  number INTEGER PRIMARY KEY,    -- the counter in the id
  id BLOB NOT NULL,
  tenant TEXT NOT NULL,
  function TEXT NOT NULL,
  code TEXT NOT NULL,
  reason BLOB NOT NULL,
  latest_run BLOB NOT NULL,
  count INTEGER NOT NULL,
  opened_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  acknowledged_at INTEGER,
  acknowledged_by TEXT NOT NULL
);
CREATE UNIQUE INDEX lk_dead_letters_open ON lk_dead_letters (tenant, function) WHERE acknowledged_at IS NULL;

CREATE TABLE lk_dead_letter_members (
  seq INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  letter INTEGER NOT NULL,
  run BLOB NOT NULL,
  key BLOB NOT NULL,
  code TEXT NOT NULL,
  reason BLOB NOT NULL,
  attempts INTEGER NOT NULL,
  effect INTEGER NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (seq, generation)
) WITHOUT ROWID;
CREATE INDEX lk_dead_letter_members_letter ON lk_dead_letter_members (letter);

-- Operator actions on members.
CREATE TABLE lk_dead_letter_steps (
  seq INTEGER NOT NULL,          -- of the run; identifies the member together with the generation
  generation INTEGER NOT NULL,
  kind INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 2),
  actor TEXT NOT NULL,
  at INTEGER NOT NULL,
  note BLOB NOT NULL,
  PRIMARY KEY (seq, generation, kind)
) WITHOUT ROWID;

CREATE TABLE lk_tokens (
  id TEXT PRIMARY KEY,
  secret_hash BLOB NOT NULL,
  name TEXT NOT NULL,
  role INTEGER NOT NULL,
  tenants TEXT NOT NULL,         -- separated by spaces; empty: all
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) WITHOUT ROWID;
