-- How often requests were made again. Heads are held, not the runs: nobody but a purge and others who count ever does
-- that, and not for long. Whoever owns a run, in however long a transaction, is not in the way.

-- name: lock_run_heads
SELECT r.seq, r.id, r.tenant FROM latchkey.runs r WHERE r.seq = ANY($1) ORDER BY r.seq FOR UPDATE SKIP LOCKED
-- name: find_run_heads
-- Those, too, that somebody else holds.
SELECT r.seq FROM latchkey.runs r WHERE r.seq = ANY($1)
-- name: read_seen
SELECT d.seq, d.seen FROM latchkey.duplicates d WHERE d.seq = ANY($1)
