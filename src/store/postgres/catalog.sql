-- The catalog and the audit log (migrations/0012_catalog.up.sql).

-- name: record_columns
-- Of latchkey.catalog as c: read_record().
c.kind, c.tenant, c.name, c.version, c.change, c.source, c.is_retired, c.is_deleted, c.updated_at, c.updated_by, c.body

-- name: find_catalog_latch
-- C++ appends the lock. It serializes changes of the catalog, so that a version is assigned after every lower one was
-- committed.
SELECT 1 FROM latchkey.latches WHERE name = 'catalog'
-- name: catalog_version
-- One entry of an index. Deleted records have their rows, too.
SELECT coalesce(max(change), 0) FROM latchkey.catalog
-- name: find_records
-- OFFSET 0: each record is looked up by the index, whatever the planner believes about the table.
SELECT {record_columns}
FROM unnest($1, $2, $3) AS u(kind, tenant, name), LATERAL (
  SELECT * FROM latchkey.catalog i WHERE i.kind = u.kind AND i.tenant = u.tenant AND i.name = u.name OFFSET 0
) c
-- name: list_records
SELECT {record_columns} FROM latchkey.catalog c
WHERE c.change > $1 AND ($2 OR NOT c.is_deleted) AND ($3 OR c.kind = ANY($4))
-- name: on_record_conflict
ON CONFLICT (kind, tenant, name) DO UPDATE
SET version = excluded.version, change = excluded.change, source = excluded.source, body = excluded.body,
is_retired = excluded.is_retired, is_deleted = excluded.is_deleted, updated_at = excluded.updated_at,
updated_by = excluded.updated_by

-- name: audit_columns
-- Of latchkey.audit as a: read_audit_entry().
a.id, a.at, a.actor, a.action, a.subject_kind, a.subject, a.tenant, a.before, a.after
-- name: list_audit
-- The last column is false from the entry with which the page would have more than $9 bytes. Its texts are not sent.
SELECT a.id, a.at, a.actor, a.action, a.subject_kind, a.subject, a.tenant,
CASE WHEN a.bytes <= $9 OR a.place = 1 THEN a.before END, CASE WHEN a.bytes <= $9 OR a.place = 1 THEN a.after END,
a.bytes <= $9 OR a.place = 1
FROM (
  SELECT i.*, row_number() OVER w AS place,
  sum(octet_length(i.before)::bigint + octet_length(i.after)) OVER w AS bytes
  FROM (
    SELECT * FROM latchkey.audit
    WHERE (at, number) < ($1, $2) AND at >= $3 AND ($4::text IS NULL OR tenant = $4)
    AND ($5 = '' OR actor = $5) AND ($6 = '' OR subject_kind = $6) AND ($7 = '' OR subject = $7)
    ORDER BY at DESC, number DESC LIMIT $8
  ) i
  WINDOW w AS (ORDER BY i.at DESC, i.number DESC)
) a
ORDER BY a.place
-- name: find_old_audit
SELECT number FROM latchkey.audit WHERE at < $1 ORDER BY at, number LIMIT $2
-- name: erase_audit
-- Without a lock of its own: the engine may not update these rows. A policy excludes entries of the last 30 days.
DELETE FROM latchkey.audit WHERE number = ANY($1)
