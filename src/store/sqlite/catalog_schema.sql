-- The catalog and the audit log. Stores that an earlier version made get these tables when they are opened.

CREATE TABLE lk_catalog (
  kind TEXT NOT NULL,
  tenant TEXT NOT NULL,          -- empty: shared by all tenants
  name TEXT NOT NULL CHECK (length(CAST(name AS BLOB)) BETWEEN 1 AND 128),
  version INTEGER NOT NULL CHECK (version > 0),
  change INTEGER NOT NULL,       -- the catalog's version of the record's latest change
  source TEXT NOT NULL CHECK (source IN ('config', 'api')),
  is_retired INTEGER NOT NULL,
  is_deleted INTEGER NOT NULL,   -- the row stays, so that the version goes on rising
  updated_at INTEGER NOT NULL,
  updated_by TEXT NOT NULL,
  body TEXT NOT NULL CHECK (length(CAST(body AS BLOB)) <= 1048576),
  PRIMARY KEY (kind, tenant, name)
);
CREATE INDEX lk_catalog_change ON lk_catalog (change);

CREATE TABLE lk_audit (
  number INTEGER PRIMARY KEY,    -- the counter in the id
  id BLOB NOT NULL,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  subject_kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  tenant TEXT NOT NULL,
  before TEXT NOT NULL,          -- JSON; empty: there was nothing
  after TEXT NOT NULL
);
CREATE INDEX lk_audit_at ON lk_audit (at);
