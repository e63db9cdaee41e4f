-- A batch's transaction, and whether it was kept.

-- name: begin
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE
-- name: commit
COMMIT
-- name: rollback
ROLLBACK

-- name: name_batch
INSERT INTO latchkey.batches (id, at) VALUES ($1, $2)
-- name: resolve_unknown_commit
-- It is kept if its name is there. If not, the name is taken now; either way something is written, and with it all that
-- came before is durable.
INSERT INTO latchkey.batches AS b (id, at) VALUES ($1, $2)
ON CONFLICT (id) DO UPDATE SET at = b.at
RETURNING at

-- name: backend_pid_and_clock
SELECT pg_backend_pid()::bigint, now()::text, {clock}, last_value FROM latchkey.clock

-- name: are_held
SELECT latchkey.are_held($1, $2)
-- name: set_lock_timeout_1ms
-- For a letter that somebody may be making: it is enough to see that.
SELECT set_config('lock_timeout', '1ms', true)
