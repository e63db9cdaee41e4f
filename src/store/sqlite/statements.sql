-- name: begin
BEGIN IMMEDIATE
-- name: commit
COMMIT
-- name: rollback
ROLLBACK
-- name: read_state
SELECT seq, fence, merged, listed, batch, clock_mark, purged FROM lk_state
-- name: write_state
UPDATE lk_state SET seq = ?1, fence = ?2, merged = ?3, listed = ?4, batch = ?5, clock_mark = ?6, purged = ?7
-- name: find_scope
SELECT scope FROM lk_scopes WHERE tenant = ?1 AND function = ?2
-- name: read_scope
SELECT tenant, function FROM lk_scopes WHERE scope = ?1
-- name: add_scope
INSERT INTO lk_scopes (tenant, function) VALUES (?1, ?2) RETURNING scope
-- name: insert_run
INSERT INTO lk_runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
-- name: put_state
INSERT OR REPLACE INTO lk_states VALUES (?1, ?2, ?3)
-- name: erase_state
DELETE FROM lk_states WHERE seq = ?1
-- name: add_outcome
INSERT OR FAIL INTO lk_outcomes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
-- name: put_outcome
INSERT OR REPLACE INTO lk_outcomes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
-- name: read_run
SELECT r.*, o.status, o.at, o.result, o.code, o.effect, o.last_error, o.last_error_code, s.*
FROM lk_runs r LEFT JOIN lk_states s ON s.seq = r.seq
LEFT JOIN lk_outcomes o ON o.seq = r.seq AND o.generation = coalesce(s.generation, r.generation)
WHERE r.seq = ?1
-- name: read_run_bare
SELECT r.seq, r.id, r.scope, r.key, r.hash, r.traits, r.priority, r.fingerprint, r.retry, r.window_ms, r.lease_ms, r.created_at, NULL, r.caller, r.claim,
  r.generation, r.made, o.status, o.at, NULL, o.code, o.effect, o.last_error, o.last_error_code, s.*
FROM lk_runs r LEFT JOIN lk_states s ON s.seq = r.seq
LEFT JOIN lk_outcomes o ON o.seq = r.seq AND o.generation = coalesce(s.generation, r.generation)
WHERE r.seq = ?1
-- name: erase_run
DELETE FROM lk_runs WHERE seq = ?1
-- name: erase_outcome
DELETE FROM lk_outcomes WHERE seq = ?1
-- name: erase_key_page
DELETE FROM lk_keys WHERE first = ?1
-- name: erase_listed
DELETE FROM lk_lists WHERE scope = ?1 AND seq = ?2
-- name: find_key_page
SELECT first, entries FROM lk_keys WHERE first <= ?1 ORDER BY first DESC LIMIT 1
-- name: next_key_page
SELECT first FROM lk_keys WHERE first > ?1 ORDER BY first LIMIT 1
-- name: read_key_pages
SELECT first, entries FROM lk_keys WHERE first > ?1 ORDER BY first LIMIT ?2
-- name: put_key_page
INSERT OR REPLACE INTO lk_keys VALUES (?1, ?2)
-- name: set_latest_run_of_key
INSERT OR REPLACE INTO lk_pointed VALUES (?1, ?2, ?3)
-- name: read_pointed
SELECT hash, seq, at_seq FROM lk_pointed
-- name: erase_pointer
DELETE FROM lk_pointed WHERE hash = ?1 AND seq = ?2
-- name: erase_pointed
DELETE FROM lk_pointed WHERE at_seq < ?1
-- name: index_lists
INSERT OR IGNORE INTO lk_lists SELECT scope, seq FROM lk_runs WHERE seq > ?1 AND seq <= ?2
-- name: index_open
INSERT OR IGNORE INTO lk_open SELECT seq FROM lk_unsettled WHERE seq > ?1 AND seq <= ?2
-- name: add_open
INSERT OR IGNORE INTO lk_open VALUES (?1)
-- name: erase_open
DELETE FROM lk_open WHERE seq = ?1
-- name: unmerged_keys
SELECT seq, hash FROM lk_runs WHERE seq > ?1 AND hash IS NOT NULL
-- name: all_open
SELECT seq FROM lk_open
UNION
SELECT seq FROM lk_unsettled WHERE seq > ?1
-- name: purge_candidates
SELECT seq, created_at FROM lk_runs WHERE seq > ?1 ORDER BY seq LIMIT ?2
-- name: add_wait
INSERT OR IGNORE INTO lk_waits VALUES (?1, ?2)
-- name: remove_wait
DELETE FROM lk_waits WHERE predecessor = ?1 AND dependent = ?2
-- name: remove_waits_of
DELETE FROM lk_waits WHERE dependent = ?1
-- name: dependents
SELECT dependent FROM lk_waits WHERE predecessor = ?1
-- name: any_waits
SELECT EXISTS (SELECT 1 FROM lk_waits)
-- name: read_duplicates
SELECT seen FROM lk_duplicates WHERE seq = ?1
-- name: put_duplicates
INSERT OR REPLACE INTO lk_duplicates VALUES (?1, ?2)
-- name: erase_duplicates
DELETE FROM lk_duplicates WHERE seq = ?1
-- name: list_scope
SELECT seq FROM lk_lists WHERE scope = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3
-- name: list_scope_recent
SELECT seq FROM lk_runs WHERE seq > ?1 AND seq < ?2 AND scope = ?3 ORDER BY seq DESC LIMIT ?4
-- name: list_scopes
SELECT scope FROM lk_scopes WHERE (?1 IS NULL OR tenant = ?1) AND (?2 = '' OR function = ?2)
-- name: list_all
SELECT seq FROM lk_runs WHERE seq < ?1 ORDER BY seq DESC LIMIT ?2
-- name: list_unusual
SELECT seq FROM lk_outcomes WHERE status = ?1 AND status > 3 AND seq < ?2 ORDER BY seq DESC LIMIT ?3
-- name: list_open
SELECT seq FROM (
  SELECT seq FROM lk_open WHERE seq < ?2
  UNION
  SELECT seq FROM lk_unsettled WHERE seq > ?1 AND seq < ?2)
ORDER BY seq DESC LIMIT ?3
-- name: find_open_dead_letter
SELECT * FROM lk_dead_letters WHERE tenant = ?1 AND function = ?2 AND acknowledged_at IS NULL
-- name: put_dead_letter
INSERT OR REPLACE INTO lk_dead_letters VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
-- name: add_member
INSERT OR REPLACE INTO lk_dead_letter_members VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
-- name: read_dead_letter
SELECT * FROM lk_dead_letters WHERE number = ?1
-- name: dead_letter_of
SELECT l.id FROM lk_dead_letter_members m JOIN lk_dead_letters l ON l.number = m.letter WHERE m.seq = ?1 AND m.generation = ?2
-- name: has_unacknowledged_dead_letter
SELECT EXISTS (SELECT 1 FROM lk_dead_letter_members m JOIN lk_dead_letters l ON l.number = m.letter
  WHERE m.seq = ?1 AND l.acknowledged_at IS NULL)
-- name: list_dead_letters
SELECT * FROM lk_dead_letters
WHERE number < ?1 AND (?2 IS NULL OR tenant = ?2) AND (?3 = '' OR function = ?3) AND (?4 OR acknowledged_at IS NULL)
ORDER BY number DESC LIMIT ?5
-- name: count_unacknowledged_dead_letters
SELECT count(*) FROM lk_dead_letters WHERE acknowledged_at IS NULL
-- name: list_members
SELECT run, generation, key, code, reason, attempts, effect, at FROM lk_dead_letter_members
WHERE letter = ?1 AND (seq, generation) > (?2, ?3) ORDER BY seq, generation LIMIT ?4
-- name: find_member
SELECT run, generation, key, code, reason, attempts, effect, at FROM lk_dead_letter_members
WHERE seq = ?1 AND letter = ?2 ORDER BY generation DESC LIMIT 1
-- name: dead_letters_of_run
SELECT DISTINCT letter FROM lk_dead_letter_members WHERE seq = ?1
-- name: erase_members
DELETE FROM lk_dead_letter_members WHERE seq = ?1
-- name: erase_empty_dead_letter
DELETE FROM lk_dead_letters WHERE number = ?1 AND acknowledged_at IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM lk_dead_letter_members WHERE letter = ?1)
-- name: has_step
SELECT 1 FROM lk_dead_letter_steps WHERE seq = ?1 AND generation = ?2 AND kind = ?3
-- name: add_step
INSERT INTO lk_dead_letter_steps VALUES (?1, ?2, ?3, ?4, ?5, ?6)
-- name: list_steps
SELECT kind, actor, at, note FROM lk_dead_letter_steps WHERE seq = ?1 AND generation = ?2 ORDER BY kind
-- name: erase_steps
DELETE FROM lk_dead_letter_steps WHERE seq = ?1
-- name: add_token
INSERT INTO lk_tokens VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
-- name: list_tokens
SELECT * FROM lk_tokens ORDER BY created_at, id
-- name: revoke_token
UPDATE lk_tokens SET revoked_at = coalesce(revoked_at, ?2) WHERE id = ?1 RETURNING 1
-- name: read_format
SELECT format FROM lk_state
-- name: write_format
UPDATE lk_state SET format = ?1
-- name: create_transfer_status
CREATE TABLE IF NOT EXISTS lk_moved (place TEXT NOT NULL, at INTEGER NOT NULL, finished INTEGER NOT NULL)
-- name: drop_transfer_status
DROP TABLE IF EXISTS lk_moved
-- name: erase_transfer_status
DELETE FROM lk_moved
-- name: insert_transfer_status
INSERT INTO lk_moved VALUES (?1, ?2, ?3)
-- name: read_transfer_status
SELECT place, at, finished FROM lk_moved
-- name: list_waits
SELECT w.predecessor, w.dependent, r.id FROM lk_waits w JOIN lk_runs r ON r.seq = w.dependent ORDER BY w.predecessor, w.dependent
-- name: list_own_tables
SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'lk\_%' ESCAPE '\' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name
