-- The roles stay: they belong to the whole PostgreSQL, and other databases of it may use them.
DO $$
DECLARE
  guarded record;
BEGIN
  FOR guarded IN SELECT p.polname, p.polrelid::regclass AS place FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
                 WHERE c.relnamespace = 'latchkey'::regnamespace LOOP
    EXECUTE format('DROP POLICY %I ON %s', guarded.polname, guarded.place);
    EXECUTE format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY', guarded.place);
  END LOOP;
  FOR guarded IN SELECT a.attname, c.oid::regclass AS place FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
                 WHERE c.relnamespace = 'latchkey'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
                   AND a.attstattarget = 0 LOOP
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS -1', guarded.place, guarded.attname);
  END LOOP;
END $$;
DROP FUNCTION latchkey.check_security, latchkey.seal_functions, latchkey.protect, latchkey.keep_to_owner, latchkey.reads_dead_letters, latchkey.is_org_admin,
  latchkey.current_tenant, latchkey.caller, latchkey.who_calls;
DROP TABLE latchkey.members, latchkey.tenant_roles;
REVOKE ALL ON ALL TABLES IN SCHEMA latchkey FROM latchkey_engine, latchkey_tenant, latchkey_service;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA latchkey FROM latchkey_engine;
REVOKE ALL ON SCHEMA latchkey FROM latchkey_engine, latchkey_tenant, latchkey_service;
