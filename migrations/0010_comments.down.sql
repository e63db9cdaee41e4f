DO $$
DECLARE
  described record;
BEGIN
  FOR described IN
    SELECT CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END AS kind, c.oid::regclass::text AS name FROM pg_catalog.pg_class c
    WHERE c.relnamespace = 'latchkey'::regnamespace AND c.relkind IN ('r', 'v')
    UNION ALL SELECT 'FUNCTION', p.oid::regprocedure::text FROM pg_catalog.pg_proc p WHERE p.pronamespace = 'latchkey'::regnamespace
    UNION ALL SELECT 'SCHEMA', 'latchkey'
  LOOP
    EXECUTE format('COMMENT ON %s %s IS NULL', described.kind, described.name);
  END LOOP;
END $$;
