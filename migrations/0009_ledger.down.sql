DO $$
BEGIN
  IF to_regclass('latchkey.migrations') IS NULL THEN RETURN; END IF;
  DROP POLICY runner ON latchkey.migrations;
  DROP POLICY engine ON latchkey.migrations;
  ALTER TABLE latchkey.migrations NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY;
  REVOKE ALL ON latchkey.migrations FROM latchkey_engine;
END $$;
