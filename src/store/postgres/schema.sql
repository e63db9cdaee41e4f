-- Latchkey's tables in PostgreSQL. Times are milliseconds since 1970 by the database's clock; the views give them to people as timestamps.
-- `keys` judges guards, the newest fence on a run's row judges who owns it and who settled it, a unique index judges open dead letters.
CREATE SCHEMA latchkey;

CREATE TABLE latchkey.state (
  format integer PRIMARY KEY      -- of this layout; one row only
);
INSERT INTO latchkey.state VALUES (1);

-- Drawn a thousand at a time. Fences are drawn after the rows they are for were locked: that is why they rise per key.
CREATE SEQUENCE latchkey.fences INCREMENT BY 1000 MINVALUE 1 MAXVALUE 9007199254000000;
CREATE SEQUENCE latchkey.counters INCREMENT BY 1000 MINVALUE 1 MAXVALUE 17592186000000;
-- The store's time never falls below this, whatever the database's clock does. Written about once a second, a second ahead.
CREATE SEQUENCE latchkey.clock MINVALUE 0 START 0;

CREATE TABLE latchkey.runs (
  seq bigint PRIMARY KEY,         -- the counter in the id
  id uuid NOT NULL,
  tenant text NOT NULL,
  function text NOT NULL,
  key bytea,                      -- text; bytes, because it may hold anything
  hash bytea,
  traits integer NOT NULL,        -- guard, on_doubt, on_failed, made_by, by_call: see run_columns.cpp
  priority integer NOT NULL,
  fingerprint bytea,
  retry bytea,
  window_ms bigint NOT NULL,
  lease_ms bigint NOT NULL,
  created_at bigint NOT NULL,
  input bytea,
  caller bytea,
  claim uuid,
  -- what changes
  status integer NOT NULL CHECK (status BETWEEN 0 AND 5),
  origin integer NOT NULL,
  generation integer NOT NULL,
  attempt integer NOT NULL,
  attempts_max bigint NOT NULL,
  attempts_total integer NOT NULL,
  fence bigint NOT NULL,
  first_attempt_at bigint NOT NULL,
  waiting_for integer NOT NULL,
  failures integer NOT NULL,
  at bigint NOT NULL,             -- queued: due; running: started; in doubt: since; else settled
  lease_until bigint,
  owner_lease_ms bigint,          -- what a heartbeat that names none extends by
  flags integer NOT NULL,         -- why it is queued, whether cancel was asked, whether a worker took it
  owner uuid,
  opened_by uuid,
  last_error bytea,
  last_error_code bytea,
  effect_key uuid,                -- NULL: the id
  result bytea,
  code text,
  effect integer NOT NULL,
  deadline bigint                 -- when time alone changes it
) WITH (fillfactor = 80);
CREATE INDEX runs_ready ON latchkey.runs (function, priority DESC, at, seq) WHERE status = 0 AND origin = 1 AND waiting_for = 0;
CREATE INDEX runs_deadline ON latchkey.runs (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX runs_open ON latchkey.runs (status, at) WHERE status <= 2;
CREATE INDEX runs_of_tenant ON latchkey.runs (tenant, function, seq);

CREATE TABLE latchkey.keys (
  hash bytea PRIMARY KEY,         -- over tenant, scope and key
  tenant text NOT NULL,
  seq bigint NOT NULL             -- its latest run
);

CREATE TABLE latchkey.waits (
  predecessor bigint NOT NULL,
  dependent bigint NOT NULL,
  run uuid NOT NULL,              -- the dependent's id
  PRIMARY KEY (predecessor, dependent)
);
CREATE INDEX waits_of ON latchkey.waits (dependent);

CREATE TABLE latchkey.duplicates (
  seq bigint PRIMARY KEY,
  seen bytea NOT NULL
);

CREATE TABLE latchkey.dead_letters (
  number bigint PRIMARY KEY,      -- the counter in the id
  id uuid NOT NULL,
  tenant text NOT NULL,
  function text NOT NULL,
  code text NOT NULL,
  reason bytea NOT NULL,
  latest_run uuid NOT NULL,
  count bigint NOT NULL,
  opened_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  acknowledged_at bigint,
  acknowledged_by text NOT NULL
);
CREATE UNIQUE INDEX dead_letters_open ON latchkey.dead_letters (tenant, function) WHERE acknowledged_at IS NULL;

CREATE TABLE latchkey.dead_letter_members (
  seq bigint NOT NULL,
  generation integer NOT NULL,
  letter bigint NOT NULL,
  run uuid NOT NULL,
  key bytea NOT NULL,
  code text NOT NULL,
  reason bytea NOT NULL,
  attempts integer NOT NULL,
  effect integer NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (seq, generation)
);
CREATE INDEX dead_letter_members_of ON latchkey.dead_letter_members (letter, seq, generation);

CREATE TABLE latchkey.dead_letter_steps (
  seq bigint NOT NULL,
  generation integer NOT NULL,
  kind integer NOT NULL CHECK (kind BETWEEN 0 AND 2),
  actor text NOT NULL,
  at bigint NOT NULL,
  note bytea NOT NULL,
  PRIMARY KEY (seq, generation, kind)
);

CREATE TABLE latchkey.tokens (
  id text PRIMARY KEY,
  secret_hash bytea NOT NULL,
  name text NOT NULL,
  role integer NOT NULL,
  tenants text NOT NULL,          -- separated by spaces; empty: all
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint
);
