-- The transaction of a batch, the resolution of an unknown COMMIT, and probes for contention.

-- name: begin
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE
-- name: commit
COMMIT
-- name: rollback
ROLLBACK

-- name: name_batch
INSERT INTO latchkey.batches (id, at) VALUES ($1, $2)
-- name: resolve_unknown_commit
-- Returns the time of the batch if it was committed. Otherwise it inserts the batch's id with a negative time, so that
-- the batch can no longer commit. Both write: when this transaction is durable, so is every earlier one.
INSERT INTO latchkey.batches AS b (id, at) VALUES ($1, $2)
ON CONFLICT (id) DO UPDATE SET at = b.at
RETURNING at

-- name: backend_pid_and_clock
SELECT pg_backend_pid()::bigint, now()::text, {clock}, last_value FROM latchkey.clock

-- name: probe_keys
SELECT latchkey.are_held($1, $2)
-- name: set_lock_timeout_1ms
-- For the probe of a dead letter that another transaction may be inserting.
SELECT set_config('lock_timeout', '1ms', true)
