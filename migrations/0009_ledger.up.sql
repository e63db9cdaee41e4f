-- A server reads the ledger of migrations at its start, whoever it connects as: as a member of the engine, which reads it and
-- changes nothing. Its owner, who runs migrations, is under row-level security as everywhere.
DO $$
BEGIN
  IF to_regclass('latchkey.migrations') IS NULL THEN RETURN; END IF;  -- made by hand, without a ledger
  ALTER TABLE latchkey.migrations ENABLE ROW LEVEL SECURITY;
  ALTER TABLE latchkey.migrations FORCE ROW LEVEL SECURITY;
  REVOKE ALL ON latchkey.migrations FROM PUBLIC;
  GRANT SELECT ON latchkey.migrations TO latchkey_engine;
  CREATE POLICY engine ON latchkey.migrations FOR SELECT TO latchkey_engine USING (true);
  EXECUTE format('CREATE POLICY runner ON latchkey.migrations TO %s USING (true) WITH CHECK (true)',
                 (SELECT relowner::regrole FROM pg_class WHERE oid = 'latchkey.migrations'::regclass));
END $$;
