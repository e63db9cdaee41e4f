-- Reads, each in a transaction of its own. pg_list.cpp builds the query for a page of runs.

-- name: select_run
SELECT {head_columns}, {state_columns} FROM latchkey.runs r JOIN latchkey.all_states s ON s.seq = r.seq

-- name: find_run
{select_run} WHERE r.seq = $1 AND r.id = $2 AND ($3::text IS NULL OR r.tenant = $3)
-- name: find_latest
{select_run} JOIN latchkey.keys k ON k.seq = r.seq WHERE k.hash = $1
-- name: find_duplicates
SELECT seen FROM latchkey.duplicates WHERE seq = $1

-- name: stats
-- lo > 0 makes the count of blocks use the primary key: their table may consist mostly of dead rows.
SELECT
count(*) FILTER (WHERE status = 0) +
(SELECT coalesce(sum(hi - lo + 1), 0)::bigint FROM latchkey.blocks WHERE lo > 0 AND session IS NULL),
count(*) FILTER (WHERE status = 1) +
(SELECT coalesce(sum(hi - lo + 1), 0)::bigint FROM latchkey.blocks WHERE lo > 0 AND session IS NOT NULL),
count(*) FILTER (WHERE status = 2),
min(at) FILTER (WHERE status = 2),
(SELECT count(*) FROM latchkey.dead_letters WHERE acknowledged_at IS NULL)
FROM latchkey.states
WHERE status <= 2

-- name: list_dead_letters
SELECT {dead_letter_columns} FROM latchkey.dead_letters
WHERE number < $1 AND ($2::text IS NULL OR tenant = $2) AND ($3 = '' OR function = $3)
AND ($4 OR acknowledged_at IS NULL)
ORDER BY number DESC LIMIT $5
-- name: list_members
-- The last column says whether the member has steps: few do, and only those need another query.
SELECT {member_columns},
(SELECT array_agg(s.kind) FROM latchkey.dead_letter_steps s WHERE s.seq = m.seq AND s.generation = m.generation)
IS NOT NULL
FROM latchkey.dead_letter_members m
WHERE letter = $1 AND (seq, generation) > ($2, $3)
ORDER BY seq, generation LIMIT $4
-- name: list_steps
SELECT kind, actor, at, note FROM latchkey.dead_letter_steps WHERE seq = $1 AND generation = $2 ORDER BY kind
-- name: list_tokens
SELECT * FROM latchkey.tokens ORDER BY created_at, id

-- name: check_security
SELECT problem FROM latchkey.check_security()
