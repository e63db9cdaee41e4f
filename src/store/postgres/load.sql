-- What one round trip of a batch reads, and locks. Runs are asked for as ranges of their counters, from $1 to $2 each:
-- those that were enqueued together are settled together. Where C++ says how, it adds the FOR UPDATE.

-- name: peek_keys
SELECT k.hash, {head_columns}, {state_columns}
FROM latchkey.keys k
JOIN latchkey.runs r ON r.seq = k.seq
JOIN latchkey.all_states s ON s.seq = k.seq
WHERE k.hash = ANY($1)

-- name: hold_keys
-- In the order of the hashes, as all who hold several.
SELECT k.hash, k.seq FROM latchkey.keys k WHERE k.hash = ANY($1) ORDER BY k.hash FOR UPDATE SKIP LOCKED

-- name: find_keys
-- Those, too, that somebody else holds.
SELECT k.hash FROM latchkey.keys k WHERE k.hash = ANY($1)

-- name: find_blocks
-- A block has at most 1000 runs: the one that a range begins in is the last that begins so little before it, if that
-- reaches so far. Only then are rows locked: those that were found, and no neighbour's.
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
-- As blocks are found. They never change: nothing is locked.
SELECT {outcome_columns}
FROM unnest($1, $2) AS u(lo, hi), LATERAL (
  (SELECT * FROM latchkey.outcomes i WHERE i.lo > u.lo - 1000 AND i.lo <= u.lo ORDER BY i.lo DESC LIMIT 1)
  UNION ALL
  SELECT * FROM latchkey.outcomes i WHERE i.lo > u.lo AND i.lo <= u.hi
) o, LATERAL generate_series(greatest(u.lo, o.lo), least(u.hi, o.hi)) x(seq)

-- name: find_heads
SELECT {head_columns}
FROM unnest($1, $2) AS u(lo, hi), LATERAL (SELECT * FROM latchkey.runs i WHERE i.seq BETWEEN u.lo AND u.hi) r

-- name: find_waits
SELECT w.predecessor, w.run
FROM unnest($1, $2) AS u(lo, hi), LATERAL (
  SELECT * FROM latchkey.waits i WHERE i.predecessor BETWEEN u.lo AND u.hi
) w

-- name: open_letter
latchkey.dead_letters WHERE tenant = $1 AND function = $2 AND acknowledged_at IS NULL
-- name: find_open_letter
SELECT {letter_columns} FROM {open_letter}
-- name: find_open_number
-- One, too, that somebody else holds.
SELECT number FROM {open_letter}

-- name: draw_counters
-- Each stands for a thousand.
SELECT nextval('latchkey.counters') FROM generate_series(1, $1)
-- name: draw_fences
SELECT nextval('latchkey.fences') FROM generate_series(1, $1)

-- name: end_load
-- Behind all locks: a fence above what the last owners drew, the time, and who this is at the server's end.
SELECT nextval('latchkey.fences'), {clock}, pg_backend_pid()::bigint, now()::text,
(SELECT last_value FROM latchkey.clock)
-- name: end_load_and_identity
-- Behind a pooler the server may be another one than at the last transaction, whose fences have not jumped yet.
{end_load}, ({server_identity})
