-- What time takes away.

-- name: purge_candidates
-- From the mark on, which is a sequence: it is kept even when the slice is not.
SELECT r.seq, r.created_at FROM latchkey.runs r
WHERE r.seq > (SELECT last_value FROM latchkey.purged)
ORDER BY r.seq LIMIT $1
-- name: mark_purged
SELECT setval('latchkey.purged', $1)

-- name: find_old_names
-- Of batches. A name that was taken so that its batch cannot be kept any more has the time, negated. C++ adds how many.
SELECT b.id FROM latchkey.batches b WHERE abs(b.at) < $1 ORDER BY abs(b.at)
-- name: erase_names
DELETE FROM latchkey.batches WHERE id = ANY($1)
