-- Presence of live servers. Once a second, with its query for the next deadline, each server requests a shared advisory
-- lock. A tool that holds the exclusive lock for a moment sees the waiting servers in pg_locks. Unlike an
-- application_name or a row, this works through a pooler and for every role, and leaves nothing when a server dies.

-- name: set_lock_timeout_500ms
-- Bounds the wait for the exclusive lock: the same connection polls for expired leases.
SELECT set_config('lock_timeout', '500ms', true)
-- name: announce_server
SELECT pg_advisory_xact_lock_shared(7420, hashtext('latchkey.servers'))
-- name: lock_presence
SELECT pg_advisory_xact_lock(7420, hashtext('latchkey.servers'))
-- name: list_live_servers
-- Servers that wait for the exclusive lock to be released.
SELECT l.pid FROM pg_locks l
WHERE l.locktype = 'advisory' AND l.classid = 7420
AND l.objid = (hashtext('latchkey.servers')::bigint & 4294967295)::oid AND l.objsubid = 2
AND l.mode = 'ShareLock' AND NOT l.granted
AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
