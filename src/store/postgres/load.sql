-- The reads of one round trip of a batch. Runs are given as ranges of their counters, from $1 to $2 each, because runs
-- that were enqueued together are mostly settled together. C++ appends FOR UPDATE or FOR UPDATE SKIP LOCKED.

-- name: peek_keys
SELECT k.hash, {head_columns}, {state_columns}
FROM latchkey.keys k
JOIN latchkey.runs r ON r.seq = k.seq
JOIN latchkey.all_states s ON s.seq = k.seq
WHERE k.hash = ANY($1)

-- name: lock_keys
-- In the order of the hashes: every transaction that locks several keys uses it, so none of them deadlock.
SELECT k.hash, k.seq FROM latchkey.keys k WHERE k.hash = ANY($1) ORDER BY k.hash FOR UPDATE SKIP LOCKED

-- name: find_keys
-- Finds also the keys that another transaction has locked.
SELECT k.hash FROM latchkey.keys k WHERE k.hash = ANY($1)

-- name: find_blocks
-- A block has at most 1000 runs, so the block that contains u.lo is the last one that begins in the 1000 counters up to
-- it. The sub-select finds the rows; the outer query locks only those.
SELECT {block_columns}
FROM latchkey.blocks b
WHERE b.lo = ANY(ARRAY(
  SELECT x.lo
  FROM unnest($1, $2) AS u(lo, hi), LATERAL (
    SELECT n.lo
    FROM (SELECT i.lo, i.hi FROM latchkey.blocks i WHERE i.lo > u.lo - 1000 AND i.lo <= u.lo ORDER BY i.lo DESC LIMIT 1) n
    WHERE n.hi >= u.lo
    UNION ALL
    SELECT i.lo FROM latchkey.blocks i WHERE i.lo > u.lo AND i.lo <= u.hi
  ) x
))
ORDER BY b.lo

-- name: find_states
SELECT s.seq, {state_columns}
FROM latchkey.states s
WHERE s.seq = ANY(ARRAY(
  SELECT x.seq
  FROM unnest($1, $2) AS u(lo, hi), LATERAL (SELECT i.seq FROM latchkey.states i WHERE i.seq BETWEEN u.lo AND u.hi) x
))
ORDER BY s.seq

-- name: find_outcomes
-- Found as blocks are. Outcomes never change, so they are not locked.
SELECT {outcome_columns}
FROM unnest($1, $2) AS u(lo, hi), LATERAL (
  (SELECT * FROM latchkey.outcomes i WHERE i.lo > u.lo - 1000 AND i.lo <= u.lo ORDER BY i.lo DESC LIMIT 1)
  UNION ALL
  SELECT * FROM latchkey.outcomes i WHERE i.lo > u.lo AND i.lo <= u.hi
) o, LATERAL generate_series(greatest(u.lo, o.lo), least(u.hi, o.hi)) x(seq)

-- name: find_heads
SELECT {head_columns}
FROM unnest($1, $2) AS u(lo, hi), LATERAL (SELECT * FROM latchkey.runs i WHERE i.seq BETWEEN u.lo AND u.hi) r

-- name: find_dependents
SELECT w.predecessor, w.run
FROM unnest($1, $2) AS u(lo, hi), LATERAL (
  SELECT * FROM latchkey.waits i WHERE i.predecessor BETWEEN u.lo AND u.hi
) w

-- name: open_dead_letter
latchkey.dead_letters WHERE tenant = $1 AND function = $2 AND acknowledged_at IS NULL
-- name: find_open_dead_letter
SELECT {dead_letter_columns} FROM {open_dead_letter}
-- name: find_open_dead_letter_number
-- Finds also a dead letter that another transaction has locked.
SELECT number FROM {open_dead_letter}

-- name: draw_counters
-- Each value of the sequence reserves a thousand counters.
SELECT nextval('latchkey.counters') FROM generate_series(1, $1)
-- name: draw_fences
SELECT nextval('latchkey.fences') FROM generate_series(1, $1)

-- name: end_load
-- Runs after all locks were acquired: a fence above those of earlier owners, the time, and the backend's identity.
SELECT nextval('latchkey.fences'), {clock}, pg_backend_pid()::bigint, now()::text,
(SELECT last_value FROM latchkey.clock)
-- name: end_load_and_identity
-- Behind a pooler each transaction may reach another server, whose fences were not advanced after a failover yet.
{end_load}, ({server_identity})
