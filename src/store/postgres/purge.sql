-- Purging of settled runs and of old batch ids.

-- name: purge_candidates
-- The position is a sequence: it advances even if the transaction that purges the slice rolls back.
SELECT r.seq, r.created_at FROM latchkey.runs r
WHERE r.seq > (SELECT last_value FROM latchkey.purged)
ORDER BY r.seq LIMIT $1
-- name: mark_purged
SELECT setval('latchkey.purged', $1)

-- name: find_old_batches
-- A negative time is that of an id that was inserted to prevent its batch's commit. C++ appends LIMIT and the lock.
SELECT b.id FROM latchkey.batches b WHERE abs(b.at) < $1 ORDER BY abs(b.at)
-- name: erase_batches
DELETE FROM latchkey.batches WHERE id = ANY($1)
