-- The server's identity, its clock, deadlines and notifications.

-- name: set_role_engine
-- search_path is set here, because an operator or function from a user's schema would run with the engine's rights.
SELECT pg_catalog.set_config('role', 'latchkey_engine', true),
pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)
-- name: set_role_engine_with_lock_timeout
-- Servers that record a failover wait for the first of them, and commits that notify wait for each other. The timeouts
-- bound that wait when one of them is silent.
{set_role_engine},
pg_catalog.set_config('lock_timeout', '5s', true), pg_catalog.set_config('enable_seqscan', 'off', true),
pg_catalog.set_config('idle_in_transaction_session_timeout', '2s', true)
-- name: reset_role
-- The engine's role may neither see nor terminate other sessions.
SELECT pg_catalog.set_config('role', 'none', true),
pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)

-- name: begin_plainly
BEGIN
-- name: find_process
SELECT pg_catalog.pg_backend_pid()::bigint
-- name: terminate_orphaned_backend
-- Returns a row while the backend exists. It terminates only a backend that waits for its client: terminating a commit
-- that waits for its standby would make it visible although the standby may never have it.
SELECT CASE WHEN wait_event_type = 'Client' THEN pg_terminate_backend(pid) END FROM pg_stat_activity
WHERE pid = $1 AND xact_start = $2::text::timestamptz AND usename = session_user AND wait_event IS DISTINCT FROM 'SyncRep'

-- name: here
(SELECT system_identifier::text AS system, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline
FROM pg_control_system()) h
-- name: server_identity
SELECT h.system || ' ' || h.timeline FROM {here}
-- name: record_server_identity
INSERT INTO latchkey.place (system, timeline)
SELECT h.system, h.timeline FROM {here} WHERE NOT EXISTS (SELECT FROM latchkey.place)
ON CONFLICT DO NOTHING
-- name: compare_identity
SELECT h.system || ' ' || h.timeline, (p.system, p.timeline) = (h.system, h.timeline)
FROM latchkey.place p, {here}
-- name: change_identity
UPDATE latchkey.place p SET system = h.system, timeline = h.timeline
FROM {here}
WHERE (p.system, p.timeline) IS DISTINCT FROM (h.system, h.timeline)
RETURNING h.timeline

-- name: jump_fences
SELECT setval('latchkey.fences', last_value + $1) FROM latchkey.fences
-- name: jump_counters
SELECT setval('latchkey.counters', last_value + $1) FROM latchkey.counters
-- name: end_block_leases
-- Skips locked rows: their transactions run on this server, after the failover. Those leases expire by themselves.
UPDATE latchkey.blocks SET lease_until = $1
WHERE ctid = ANY(ARRAY(
  SELECT b.ctid FROM latchkey.blocks b
  WHERE b.session IS NOT NULL AND b.lease_until > $1
  FOR UPDATE SKIP LOCKED
))
-- name: end_state_leases
-- As above.
UPDATE latchkey.states
SET lease_until = $1, deadline = CASE deadline WHEN lease_until THEN $1 ELSE deadline END
WHERE ctid = ANY(ARRAY(
  SELECT s.ctid FROM latchkey.states s
  WHERE s.deadline IS NOT NULL AND s.status = 1 AND s.lease_until > $1
  FOR UPDATE SKIP LOCKED
))

-- name: clock
-- A sub-select is evaluated once, so an index can be used for the comparison.
(SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
-- name: read_clock
SELECT {clock}, last_value FROM latchkey.clock
-- name: mark_clock
SELECT setval('latchkey.clock', greatest(last_value, $1)) FROM latchkey.clock
-- name: next_deadline
SELECT least((SELECT min(deadline) FROM latchkey.states WHERE deadline IS NOT NULL),
(SELECT min(lease_until) FROM latchkey.blocks WHERE session IS NOT NULL))
-- name: read_marks
SELECT ({next_deadline}), {clock}, last_value FROM latchkey.clock

-- name: notify_dead_letters
SELECT latchkey.tell_dead_letter(u.tenant, u.function) FROM unnest($1, $2) AS u(tenant, function)
-- name: notify_work
-- Skipped when the notification queue is nearly full: listeners poll, and the NOTIFY could fail or block other users.
SELECT pg_notify('latchkey_work', '') WHERE pg_notification_queue_usage() < 0.9
