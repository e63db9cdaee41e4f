-- Counts of repeated requests. They lock the heads of runs, not their states: only purges and other counts lock heads,
-- for a short time. A transaction that owns a run locks its state, so it never blocks a count.

-- name: lock_run_heads
SELECT r.seq, r.id, r.tenant FROM latchkey.runs r WHERE r.seq = ANY($1) ORDER BY r.seq FOR UPDATE SKIP LOCKED
-- name: find_run_heads
-- Finds also the heads that another transaction has locked.
SELECT r.seq FROM latchkey.runs r WHERE r.seq = ANY($1)
-- name: read_seen
SELECT d.seq, d.seen FROM latchkey.duplicates d WHERE d.seq = ANY($1)
