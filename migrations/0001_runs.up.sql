-- Latchkey's tables. Times are milliseconds since 1970 by the database's clock; the views give them to people as timestamps.
--
-- A run's head never changes and is appended to `runs`. What becomes of it lies in one of three places:
--   blocks    jobs that were enqueued together and have all fared alike: one row for a whole range of them
--   outcomes  jobs that completed at their first try, with their neighbours that ended alike: appended
--   states    everything else: a row for each run, changed in place
-- A run goes from a block to an outcome or to a row of its own, never back. `all_states` puts it together.
--
-- The judges: `keys` who has a key; a block's row or a run's own, with its fence, who owns it; `settlements` that it is settled
-- once; a unique index which dead letter is open.
DO $$ BEGIN
  IF current_setting('server_encoding') <> 'UTF8' THEN
    RAISE EXCEPTION 'the encoding of this database is %, and must be UTF8', current_setting('server_encoding')
      USING HINT = 'CREATE DATABASE … ENCODING ''UTF8'' TEMPLATE template0';
  END IF;
END $$;
CREATE SCHEMA latchkey;

-- Which PostgreSQL this is: another one (restored, or promoted) may have lost what the last one promised.
CREATE TABLE latchkey.place (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  system text NOT NULL,           -- the system identifier
  timeline text NOT NULL
);
INSERT INTO latchkey.place (system, timeline)
SELECT system_identifier::text, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) FROM pg_control_system();

-- Drawn a thousand at a time. Fences are drawn after the rows they are for were locked: that is why they rise per key.
CREATE SEQUENCE latchkey.fences INCREMENT BY 1000 MINVALUE 1 MAXVALUE 9007199254000000;
-- Counters have 54 bits: where each of a thousand runs a second draws a thousand for itself, as SQL functions do, they last
-- for five hundred years.
CREATE SEQUENCE latchkey.counters INCREMENT BY 1000 MINVALUE 1 MAXVALUE 18014398509481000;
-- The store's time never falls below this, whatever the database's clock does. Written about once a second, a second ahead.
CREATE SEQUENCE latchkey.clock MINVALUE 0 START 0;

-- Where purging goes on: the last run that was looked at.
CREATE SEQUENCE latchkey.purged MINVALUE 0 START 0;

-- Every batch that changes something leaves its name: one whose commit is unknown is written again under the same name,
-- and this primary key says whether it had been kept.
CREATE TABLE latchkey.batches (
  id uuid PRIMARY KEY,
  at bigint NOT NULL              -- below 0: it was not kept, and can no more be
);
CREATE INDEX batches_at ON latchkey.batches (abs(at));

-- What one batch does at a time, whichever server's: it holds the row. Advisory locks would do, but those anybody can take.
CREATE TABLE latchkey.latches (
  name text PRIMARY KEY
);
INSERT INTO latchkey.latches VALUES ('purge');

CREATE TABLE latchkey.tenants (
  name text PRIMARY KEY,
  -- The name where it is a UUID, else its UUIDv5: what the seeds' columns show. No index: this saves computing it, two names
  -- may have one, and by an index a tenant could find out whether another is there.
  id uuid NOT NULL
);

CREATE TABLE latchkey.runs (
  seq bigint PRIMARY KEY,         -- the counter in the id
  id uuid NOT NULL,
  tenant text NOT NULL,
  function text NOT NULL,
  key bytea,                      -- text; bytes, because it may hold anything
  hash uuid,                      -- what `keys` finds it by; NULL: it has no key
  traits integer NOT NULL,        -- guard, on_doubt, on_failed, made_by, by_call: see store/packing.cpp
  priority integer NOT NULL,
  fingerprint bytea,
  retries bigint NOT NULL,
  retry bytea,                    -- the rest of the retry policy; NULL: the default one
  window_ms bigint NOT NULL,
  lease_ms bigint NOT NULL,
  created_at bigint NOT NULL,
  input bytea,
  caller bytea,
  claim uuid
);
CREATE INDEX runs_of_tenant ON latchkey.runs (tenant, function, seq);
-- For people who have an id: with the tenant, so that another's is not found before a policy is asked.
CREATE UNIQUE INDEX runs_id ON latchkey.runs (id, tenant);

CREATE TABLE latchkey.blocks (
  lo bigint PRIMARY KEY,          -- the first and the last run; a block has 1000 at most, and no two share a run
  hi bigint NOT NULL,
  tenant text NOT NULL,
  function text NOT NULL,
  priority integer NOT NULL,
  due bigint NOT NULL,
  -- NULL until it is taken
  fence_from bigint,              -- a run's fence is this plus its seq
  started_at bigint,
  lease_until bigint,
  lease_ms bigint,
  session uuid,
  CHECK (hi BETWEEN lo AND lo + 999)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0);
-- Of the usual priority apart from the others: what is due begins at one place there, and the remains of what was taken
-- before it need not be looked at.
CREATE INDEX blocks_ready ON latchkey.blocks (function, due, lo) WHERE session IS NULL AND priority = 0;
CREATE INDEX blocks_ready_by_priority ON latchkey.blocks (function, priority DESC, due, lo) WHERE session IS NULL AND priority <> 0;
-- Only for who asks for a tenant's: `tenant <> ''`, which always holds, keeps others from it.
CREATE INDEX blocks_ready_of_tenant ON latchkey.blocks (tenant, function, priority DESC, due, lo) WHERE session IS NULL AND tenant <> '';
CREATE INDEX blocks_leased ON latchkey.blocks (lease_until) WHERE session IS NOT NULL;

CREATE TABLE latchkey.outcomes (
  lo bigint PRIMARY KEY,          -- the first and the last run, as in blocks
  hi bigint NOT NULL,
  tenant text NOT NULL,
  fence_from bigint NOT NULL,
  started_at bigint NOT NULL,
  at bigint NOT NULL,
  result bytea,
  CHECK (hi BETWEEN lo AND lo + 999)
);

-- That a generation of a run is settled once, wherever its state lies: nobody settles without leaving this.
CREATE TABLE latchkey.settlements (
  seq bigint NOT NULL,
  generation integer NOT NULL,
  PRIMARY KEY (seq, generation)
);

CREATE TABLE latchkey.states (
  seq bigint PRIMARY KEY,
  tenant text NOT NULL,
  function text NOT NULL,
  priority integer NOT NULL,
  status integer NOT NULL CHECK (status BETWEEN 0 AND 5), -- queued, running, in doubt, completed, failed, cancelled
  origin integer NOT NULL CHECK (origin IN (0, 1)),       -- claimed, enqueued
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
  flags integer NOT NULL,         -- queued: why; running: 1 cancel was asked, 2 a worker took it
  owner uuid,                     -- running: the claim, or the worker's session
  opened_by uuid,
  last_error bytea,
  last_error_code bytea,
  effect_key uuid,                -- NULL: the id
  result bytea,
  code text,
  effect integer NOT NULL,        -- 0 none, 1 unknown
  deadline bigint                 -- when time alone changes it
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX states_ready ON latchkey.states (function, at, seq) WHERE status = 0 AND origin = 1 AND waiting_for = 0 AND priority = 0;
CREATE INDEX states_ready_by_priority ON latchkey.states (function, priority DESC, at, seq)
  WHERE status = 0 AND origin = 1 AND waiting_for = 0 AND priority <> 0;
CREATE INDEX states_ready_of_tenant ON latchkey.states (tenant, function, priority DESC, at, seq)
  WHERE status = 0 AND origin = 1 AND waiting_for = 0 AND tenant <> '';
CREATE INDEX states_deadline ON latchkey.states (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX states_by_status ON latchkey.states (status, seq);
-- Lists of what went wrong: what goes well never enters it.
CREATE INDEX states_of_tenant ON latchkey.states (tenant, status, function, seq) WHERE status IN (2, 4, 5);

CREATE TABLE latchkey.keys (
  hash uuid PRIMARY KEY,          -- the first half of SHA-256 over tenant, scope and key
  tenant text NOT NULL,
  seq bigint NOT NULL             -- its latest run
);

CREATE TABLE latchkey.waits (
  predecessor bigint NOT NULL,
  dependent bigint NOT NULL,
  run uuid NOT NULL,              -- the dependent's id
  tenant text NOT NULL,
  PRIMARY KEY (predecessor, dependent)
);
CREATE INDEX waits_of ON latchkey.waits (dependent);

CREATE TABLE latchkey.duplicates (
  seq bigint PRIMARY KEY,
  tenant text NOT NULL,
  seen bytea NOT NULL
);

CREATE TABLE latchkey.dead_letters (
  number bigint PRIMARY KEY,      -- the counter in the id
  id uuid NOT NULL,
  tenant text NOT NULL,
  function text NOT NULL,
  code text NOT NULL,
  reason bytea NOT NULL,
  latest_run uuid NOT NULL,       -- no foreign key: the letter outlives the run
  count bigint NOT NULL,
  opened_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  acknowledged_at bigint,
  acknowledged_by text NOT NULL
);
-- By its id: with the tenant, so that another's is not found before a policy is asked.
CREATE UNIQUE INDEX dead_letters_id ON latchkey.dead_letters (id, tenant);
CREATE UNIQUE INDEX dead_letters_open ON latchkey.dead_letters (tenant, function) WHERE acknowledged_at IS NULL;

CREATE TABLE latchkey.dead_letter_members (
  seq bigint NOT NULL,
  generation integer NOT NULL,
  tenant text NOT NULL,
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
  tenant text NOT NULL,
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

-- Every run's state, wherever it lies, in the columns of `states`.
CREATE VIEW latchkey.all_states WITH (security_invoker = true) AS
SELECT r.seq, r.tenant, r.function, r.priority,
  CASE WHEN s.seq IS NOT NULL THEN s.status WHEN o.lo IS NOT NULL THEN 3 WHEN b.session IS NOT NULL THEN 1 ELSE 0 END AS status,
  coalesce(s.origin, 1) AS origin,
  coalesce(s.generation, 1) AS generation,
  coalesce(s.attempt, CASE WHEN o.lo IS NULL AND b.session IS NULL THEN 0 ELSE 1 END) AS attempt,
  coalesce(s.attempts_max, r.retries + 1) AS attempts_max,
  coalesce(s.attempts_total, CASE WHEN o.lo IS NULL AND b.session IS NULL THEN 0 ELSE 1 END) AS attempts_total,
  coalesce(s.fence, o.fence_from + r.seq, b.fence_from + r.seq, 0) AS fence,
  coalesce(s.first_attempt_at, o.started_at, b.started_at, 0) AS first_attempt_at,
  coalesce(s.waiting_for, 0) AS waiting_for,
  coalesce(s.failures, 0) AS failures,
  coalesce(s.at, o.at, b.started_at, b.due) AS at,
  coalesce(s.lease_until, b.lease_until) AS lease_until,
  coalesce(s.owner_lease_ms, b.lease_ms) AS owner_lease_ms,
  coalesce(s.flags, CASE WHEN b.session IS NOT NULL THEN 2 ELSE 0 END) AS flags,
  coalesce(s.owner, b.session) AS owner,
  s.opened_by, s.last_error, s.last_error_code, s.effect_key,
  coalesce(s.result, o.result) AS result,
  s.code,
  coalesce(s.effect, 0) AS effect,
  coalesce(s.deadline, b.lease_until) AS deadline
FROM latchkey.runs r
LEFT JOIN latchkey.states s ON s.seq = r.seq
LEFT JOIN LATERAL (
  SELECT * FROM latchkey.outcomes i
  WHERE s.seq IS NULL AND i.lo <= r.seq AND i.lo > r.seq - 1000
  ORDER BY i.lo DESC LIMIT 1      -- the nearest below: if that does not have it, none has
) o ON o.hi >= r.seq
LEFT JOIN LATERAL (
  SELECT * FROM latchkey.blocks i
  WHERE s.seq IS NULL AND o.lo IS NULL AND i.lo <= r.seq AND i.lo > r.seq - 1000
  ORDER BY i.lo DESC LIMIT 1
) b ON b.hi >= r.seq;
