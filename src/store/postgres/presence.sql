-- How a server shows that it lives: with every question for the next deadline, once a second, it asks for a lock that
-- nobody else wants. Whoever holds that one for a moment sees who waits for it. Unlike a session's name or a row of its
-- own it is seen through a pooler and by every role, and nothing of it is left when the server dies.

-- name: wait_shortly
-- For whoever looks, or keeps us from it: leases that end are watched for on the same connection.
SELECT set_config('lock_timeout', '500ms', true)
-- name: announce_server
SELECT pg_advisory_xact_lock_shared(7420, hashtext('latchkey.servers'))
-- name: hold_presence
SELECT pg_advisory_xact_lock(7420, hashtext('latchkey.servers'))
-- name: list_live_servers
-- Servers that wait for whoever holds it.
SELECT l.pid FROM pg_locks l
WHERE l.locktype = 'advisory' AND l.classid = 7420
AND l.objid = (hashtext('latchkey.servers')::bigint & 4294967295)::oid AND l.objsubid = 2
AND l.mode = 'ShareLock' AND NOT l.granted
AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
