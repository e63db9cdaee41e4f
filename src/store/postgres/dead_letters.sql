-- Dead letters, their members, the steps that operators took, and tokens.

-- name: insert_dead_letter
INSERT INTO latchkey.dead_letters VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
-- name: update_dead_letter
UPDATE latchkey.dead_letters
SET id = $2, tenant = $3, function = $4, code = $5, reason = $6, latest_run = $7, count = $8, opened_at = $9,
updated_at = $10, acknowledged_at = $11, acknowledged_by = $12
WHERE number = $1

-- name: find_dead_letter
SELECT {dead_letter_columns} FROM latchkey.dead_letters
WHERE number = $1 AND id = $2 AND ($3::text IS NULL OR tenant = $3)
-- name: dead_letter_of
SELECT l.id FROM latchkey.dead_letter_members m JOIN latchkey.dead_letters l ON l.number = m.letter
WHERE m.seq = $1 AND m.generation = $2
-- name: dead_letters_of_runs
-- A sub-select looks up each dead letter by its number.
SELECT m.seq, m.letter,
(SELECT l.acknowledged_at IS NULL FROM latchkey.dead_letters l WHERE l.number = m.letter)
FROM latchkey.dead_letter_members m
WHERE m.seq BETWEEN $1 AND $2

-- name: acknowledge_dead_letter
-- A later acknowledgement changes nothing.
UPDATE latchkey.dead_letters SET acknowledged_by = $4, acknowledged_at = $3
WHERE number = $1 AND id = $2 AND acknowledged_at IS NULL

-- name: erase_empty_dead_letters
-- Only acknowledged ones. A sub-select looks for each one's first member; a join would read all members.
DELETE FROM latchkey.dead_letters l
WHERE l.number = ANY($1) AND l.acknowledged_at IS NOT NULL
AND (SELECT m.seq FROM latchkey.dead_letter_members m WHERE m.letter = l.number LIMIT 1) IS NULL

-- name: put_member
INSERT INTO latchkey.dead_letter_members
(seq, generation, letter, run, key, code, reason, attempts, effect, at, tenant)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (seq, generation) DO UPDATE
SET letter = excluded.letter, code = excluded.code, reason = excluded.reason, attempts = excluded.attempts,
effect = excluded.effect, at = excluded.at

-- name: members_of_dead_letter
-- The row comparison uses all columns of the index, so rows are read in its order, within one dead letter.
SELECT {member_columns} FROM latchkey.dead_letter_members
WHERE (letter, seq, generation) > ($1, $2, $3) AND letter <= $1
ORDER BY letter, seq, generation LIMIT $4
-- name: find_member
-- The latest generation.
SELECT {member_columns} FROM latchkey.dead_letter_members
WHERE letter = $1 AND seq = $2 AND run = $3
ORDER BY generation DESC LIMIT 1
-- name: erase_members
DELETE FROM latchkey.dead_letter_members WHERE seq = ANY($1)

-- name: has_step
SELECT 1 FROM latchkey.dead_letter_steps WHERE seq = $1 AND generation = $2 AND kind = $3
-- name: add_step
INSERT INTO latchkey.dead_letter_steps (seq, generation, kind, actor, at, note, tenant)
SELECT $1, $2, $3, $4, $5, $6, m.tenant
FROM latchkey.dead_letter_members m
WHERE m.seq = $1 AND m.generation = $2
ON CONFLICT DO NOTHING
-- name: erase_steps
DELETE FROM latchkey.dead_letter_steps WHERE seq = ANY($1)

-- name: insert_token
INSERT INTO latchkey.tokens VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
-- name: has_token
SELECT 1 FROM latchkey.tokens WHERE id = $1
-- name: when_revoked
SELECT revoked_at FROM latchkey.tokens WHERE id = $1
-- name: revoke_token
-- A later revocation changes nothing.
UPDATE latchkey.tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL
