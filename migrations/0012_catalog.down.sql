-- As 0002 made it.
CREATE OR REPLACE FUNCTION latchkey.check_security() RETURNS TABLE (problem text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET standard_conforming_strings = on AS $$
  WITH ours AS (
         SELECT c.* FROM pg_class c
         WHERE c.relnamespace = 'latchkey'::regnamespace
           -- The ledger of migrations holds no tenant's rows; it is its owner's alone.
           AND NOT (c.relname = 'migrations'
                    AND NOT EXISTS (SELECT FROM aclexplode(c.relacl) a WHERE a.grantee <> c.relowner))),
       functions AS (SELECT p.* FROM pg_proc p WHERE p.pronamespace = 'latchkey'::regnamespace),
       of_tenants AS (
         SELECT r.oid FROM pg_roles r
         WHERE r.rolname IN ('latchkey_tenant', 'latchkey_service') OR r.rolname IN (SELECT b.role FROM latchkey.tenant_roles b)),
       policies AS (
         SELECT o.relname, y.*, pg_get_expr(y.polqual, y.polrelid) AS using_text, pg_get_expr(y.polwithcheck, y.polrelid) AS check_text
         FROM ours o JOIN pg_policy y ON y.polrelid = o.oid),
       grants AS (  -- on whole tables and on columns; not to their owner
         SELECT DISTINCT o.oid, o.relname, o.relkind, a.grantee, a.privilege_type AS privilege
         FROM ours o CROSS JOIN LATERAL (
           SELECT o.relacl AS acl UNION ALL SELECT t.attacl FROM pg_attribute t WHERE t.attrelid = o.oid AND t.attacl IS NOT NULL
         ) l CROSS JOIN LATERAL aclexplode(l.acl) a
         WHERE a.grantee <> o.relowner)
  SELECT format('table %s does not force row-level security', o.oid::regclass) FROM ours o
  WHERE o.relkind IN ('r', 'p') AND NOT (o.relrowsecurity AND o.relforcerowsecurity)
  UNION ALL
  SELECT format('table %s has no policy for the engine', o.oid::regclass) FROM ours o
  WHERE o.relkind IN ('r', 'p')
    AND NOT EXISTS (SELECT FROM pg_policy y WHERE y.polrelid = o.oid AND y.polroles = ARRAY['latchkey_engine'::regrole::oid])
  UNION ALL
  SELECT format('table %s has the policy %I, which is not Latchkey''s or was changed', y.polrelid::regclass, y.polname) FROM policies y
  WHERE NOT coalesce(CASE y.polname
    WHEN 'engine' THEN y.polpermissive AND y.polroles = ARRAY['latchkey_engine'::regrole::oid] AND y.using_text = 'true'
      AND CASE y.relname WHEN 'migrations' THEN y.polcmd = 'r' ELSE y.polcmd = '*' AND y.check_text = 'true' END
    WHEN 'runner' THEN y.relname = 'migrations' AND NOT y.polroles && (ARRAY[0::oid] || ARRAY(SELECT t.oid FROM of_tenants t))
    -- Compared without what PostgreSQL writes into it by itself: brackets and the names of columns.
    WHEN 'tenant' THEN y.polpermissive AND y.polcmd = 'r' AND y.polroles = ARRAY[0::oid]
      AND regexp_replace(y.using_text, '\s+AS \w+|[\s()]', '', 'g') = CASE
        WHEN y.relname IN ('keys', 'settlements', 'tokens', 'batches', 'place', 'latches', 'tenant_roles', 'migrations') THEN NULL
        WHEN y.relname LIKE 'dead\_letter%' THEN 'tenant=SELECTlatchkey.current_tenantANDSELECTlatchkey.reads_dead_letters'
        WHEN y.relname = 'tenants' THEN 'name=SELECTlatchkey.current_tenant'
        WHEN y.relname = 'transitions' THEN
          'tenant=SELECTlatchkey.current_tenantORtenant=''*''::textANDSELECTlatchkey.current_tenantISNOTNULL'
        ELSE 'tenant=SELECTlatchkey.current_tenant' END
    END, false)
  UNION ALL
  SELECT DISTINCT format('table %s is read by tenants and has no policy for them', g.oid::regclass) FROM grants g
  WHERE g.relkind IN ('r', 'p') AND g.grantee IN (SELECT t.oid FROM of_tenants t) AND g.privilege = 'SELECT'
    AND NOT EXISTS (SELECT FROM policies y WHERE y.polrelid = g.oid AND y.polname = 'tenant')
  UNION ALL
  SELECT format('view %s is not security_invoker', o.oid::regclass) FROM ours o
  WHERE o.relkind = 'v' AND NOT coalesce(lower(array_to_string(o.reloptions, ' ')) ~ 'security_invoker=(true|on|yes|1)\M', false)
  UNION ALL
  SELECT format('%s is a materialized or foreign table: no policy guards it', o.oid::regclass) FROM ours o WHERE o.relkind IN ('m', 'f')
  UNION ALL
  SELECT DISTINCT format('%s may be read or written by everybody', g.oid::regclass) FROM grants g WHERE g.grantee = 0
  UNION ALL
  SELECT format('role %s has the right to %s on %s', g.grantee::regrole, g.privilege, g.oid::regclass) FROM grants g
  WHERE g.grantee <> 0 AND NOT g.privilege = ANY (CASE
    WHEN g.grantee <> 'latchkey_engine'::regrole THEN
      CASE WHEN g.relkind = 'S' AND g.grantee IN (SELECT t.oid FROM of_tenants t) THEN '{}'::text[] ELSE '{SELECT}' END
    WHEN g.relkind = 'S' THEN '{SELECT, USAGE, UPDATE}'
    WHEN g.relkind = 'v' OR g.relname = 'migrations' THEN '{SELECT}'
    ELSE '{SELECT, INSERT, UPDATE, DELETE}' END)
  UNION ALL
  SELECT format('role %s may make things in the schema latchkey', CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END)
  FROM pg_namespace n CROSS JOIN LATERAL aclexplode(n.nspacl) a
  WHERE n.nspname = 'latchkey' AND a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner
  UNION ALL
  SELECT format('function %s runs as its owner without a fixed search_path', f.oid::regprocedure) FROM functions f
  WHERE f.prosecdef AND NOT coalesce(array_to_string(f.proconfig, ' ') LIKE '%search_path=%', false)
  UNION ALL
  SELECT format('function %s runs as %s, not as latchkey_engine', f.oid::regprocedure, f.proowner::regrole) FROM functions f
  WHERE f.prosecdef AND f.proowner <> 'latchkey_engine'::regrole
  UNION ALL
  SELECT format('function %s may be called by everybody', f.oid::regprocedure) FROM functions f
  WHERE f.proacl IS NULL OR EXISTS (SELECT FROM aclexplode(f.proacl) a WHERE a.grantee = 0)
  UNION ALL
  SELECT format('function %s may be called by %s', f.oid::regprocedure, a.grantee::regrole) FROM functions f, aclexplode(f.proacl) a
  WHERE a.grantee NOT IN (0, f.proowner, 'latchkey_engine'::regrole) AND f.proname <> ALL (ARRAY[
    'caller', 'current_tenant', 'is_org_admin', 'reads_dead_letters',
    'as_json', 'as_text', 'as_time', 'is_latest', 'name_uuid', 'sha1', 'status_name', 'tenant_id',
    'begin_run', 'enqueue', 'heartbeat', 'complete_run', 'fail_run', 'acknowledge_dlq_entry',
    'declare_transition', 'transition'])
  UNION ALL
  SELECT format('role %s is a superuser or has BYPASSRLS', r.rolname) FROM pg_roles r
  WHERE r.rolname IN ('latchkey_engine', 'latchkey_tenant', 'latchkey_service') AND (r.rolsuper OR r.rolbypassrls)
  UNION ALL
  SELECT format('role %s is a member of latchkey_engine', r.rolname) FROM pg_roles r
  WHERE r.rolname IN ('latchkey_tenant', 'latchkey_service') AND pg_has_role(r.oid, 'latchkey_engine', 'MEMBER')
  UNION ALL
  SELECT format('role %s, which the server connects as, is not a member of %s', session_user, r.rolname) FROM pg_roles r
  WHERE r.rolname IN ('latchkey_engine', 'latchkey_tenant', 'latchkey_service') AND NOT pg_has_role(session_user, r.oid, 'MEMBER')
  UNION ALL
  SELECT format('role %s can log in', r.rolname) FROM pg_roles r
  WHERE r.rolname IN ('latchkey_engine', 'latchkey_tenant', 'latchkey_service') AND r.rolcanlogin
  UNION ALL
  -- By itself, or by a role that it can take on: with CREATEROLE, or as who may grant one of the three, it makes itself what it is not.
  SELECT format('role %s is bound to a tenant and %s', r.rolname, w.why)
  FROM pg_roles r JOIN latchkey.tenant_roles b ON b.role = r.rolname CROSS JOIN LATERAL (
    SELECT 'a member of latchkey_engine' AS why WHERE pg_has_role(r.oid, 'latchkey_engine', 'MEMBER')
    UNION SELECT 'has ' || a.name FROM pg_roles t
      CROSS JOIN LATERAL (VALUES (t.rolsuper, 'SUPERUSER'), (t.rolbypassrls, 'BYPASSRLS'), (t.rolcreaterole, 'CREATEROLE')) a (has, name)
      WHERE a.has AND pg_has_role(r.oid, t.oid, 'MEMBER')
    UNION SELECT 'may grant ' || t.rolname FROM pg_roles t
      WHERE t.rolname IN ('latchkey_engine', 'latchkey_tenant', 'latchkey_service')
        AND pg_has_role(r.oid, t.oid, 'MEMBER WITH ADMIN OPTION')) w
$$;

DROP TABLE latchkey.audit, latchkey.catalog;
DROP FUNCTION latchkey.audit_floor, latchkey.is_engine_only, latchkey.engine_rights;
DO $$
DECLARE
  role_before constant text := current_setting('role');
BEGIN
  PERFORM set_config('role', 'latchkey_engine', true);
  DELETE FROM latchkey.latches WHERE name = 'catalog';
  PERFORM set_config('role', role_before, true);
END $$;
