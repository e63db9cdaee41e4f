-- The catalog and the audit log.

-- name: record_columns
kind, tenant, name, version, change, source, is_retired, is_deleted, updated_at, updated_by, body
-- name: read_catalog_version
SELECT coalesce(max(change), 0) FROM lk_catalog
-- name: find_record
SELECT {record_columns} FROM lk_catalog WHERE kind = ?1 AND tenant = ?2 AND name = ?3
-- name: list_records
SELECT {record_columns} FROM lk_catalog WHERE change > ?1 AND (?2 OR NOT is_deleted) AND (?3 IS NULL OR kind = ?3)
-- name: put_record
INSERT OR REPLACE INTO lk_catalog ({record_columns}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)

-- name: audit_columns
id, at, actor, action, subject_kind, subject, tenant, before, after
-- name: add_audit
INSERT INTO lk_audit (number, {audit_columns}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
-- name: list_audit
SELECT {audit_columns} FROM lk_audit
WHERE (at, number) < (?1, ?2) AND at >= ?3 AND (?4 IS NULL OR tenant = ?4)
  AND (?5 = '' OR actor = ?5) AND (?6 = '' OR subject_kind = ?6) AND (?7 = '' OR subject = ?7)
ORDER BY at DESC, number DESC
-- name: find_old_audit
SELECT number FROM lk_audit WHERE at < ?1 ORDER BY at, number LIMIT ?2
-- name: erase_audit
DELETE FROM lk_audit WHERE number = ?1
