-- Who sees and does what. Every table's rows belong to a tenant or to the engine, and FORCE ROW LEVEL SECURITY holds for
-- the tables' owner too.
--
--   latchkey_engine   the server's batches, and the owner of every function that writes for somebody else
--   latchkey_tenant   reads of one tenant's rows; what roles that belong to a tenant are granted
--   latchkey_service  its members are believed when they say which tenant they act for (app.current_tenant)
--
-- Whoever sets up, or whom a server connects as, is a member of all three, and takes one of them on for each transaction.
DO $$
DECLARE
  roles constant text[] := ARRAY['latchkey_engine', 'latchkey_tenant', 'latchkey_service'];
  -- Before any is made here: that is undone when this fails.
  missing constant text := (SELECT coalesce(string_agg(format('CREATE ROLE %I NOLOGIN; ', r.name), '' ORDER BY r.place), '')
    FROM unnest(roles) WITH ORDINALITY r (name, place) WHERE NOT EXISTS (SELECT FROM pg_roles p WHERE p.rolname = r.name));
  remedy constant text := format('have an administrator run, once: %sGRANT latchkey_engine, latchkey_tenant, latchkey_service TO %I;',
    missing, current_user);
  name text;
  is_member boolean;
BEGIN
  FOREACH name IN ARRAY roles LOOP
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN CONTINUE; END IF;
    BEGIN
      EXECUTE format('CREATE ROLE %I NOLOGIN NOINHERIT NOBYPASSRLS', name);
    EXCEPTION
      WHEN duplicate_object OR unique_violation THEN NULL;  -- another database of this server was faster
      WHEN insufficient_privilege THEN
        RAISE EXCEPTION 'Latchkey needs the role %, and % may not make roles (it lacks CREATEROLE)', name, current_user
          USING ERRCODE = 'insufficient_privilege', HINT = remedy;
    END;
  END LOOP;
  FOREACH name IN ARRAY roles LOOP
    is_member := pg_has_role(current_user, name, 'MEMBER');
    -- From PostgreSQL 16 on, who made a role may grant it, and cannot take it on; 15 does not know the word.
    IF is_member AND current_setting('server_version_num')::integer >= 160000 THEN
      EXECUTE 'SELECT pg_has_role(current_user, $1, ''SET'')' INTO is_member USING name;
    END IF;
    IF is_member THEN CONTINUE; END IF;
    BEGIN
      EXECUTE format('GRANT %I TO %I', name, current_user);
    EXCEPTION WHEN insufficient_privilege THEN
      RAISE EXCEPTION '% is not a member of the role %, and may not make itself one', current_user, name
        USING ERRCODE = 'insufficient_privilege', HINT = remedy;
    END;
  END LOOP;
END $$;

-- Roles that a tenant holds itself: whatever such a session sets, it is this tenant.
CREATE TABLE latchkey.tenant_roles (
  role text PRIMARY KEY,
  tenant text NOT NULL,
  acts_as text NOT NULL DEFAULT 'org-admin' CHECK (acts_as IN ('viewer', 'service', 'org-admin'))
);
-- Who a person is in a tenant. Only org-admins read and acknowledge dead letters.
CREATE TABLE latchkey.members (
  tenant text NOT NULL,
  actor text NOT NULL CHECK (actor <> ''),
  role text NOT NULL CHECK (role IN ('viewer', 'service', 'org-admin', 'admin')),
  PRIMARY KEY (tenant, actor)
);

-- Who calls: by the session, not by current_user, which is the engine inside our own functions. No tenant: it sees nothing.
-- A session's own binding comes first, so that SET ROLE does not get a tenant's role out of it. A session that names a person
-- (app.current_actor) has that person's rights where its own go further: none, if the person is no member of the tenant.
-- What runs as the engine asks it so; `caller` is for everybody else.
CREATE FUNCTION latchkey.who_calls(OUT tenant text, OUT acts_as text, OUT actor text)
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED AS $$
DECLARE
  login constant text := session_user;
  taken_on constant text := current_setting('role');
  acting constant text := CASE taken_on WHEN 'none' THEN login ELSE taken_on END;
  believed boolean;
BEGIN
  actor := nullif(current_setting('app.current_actor', true), '');
  SELECT b.tenant, b.acts_as INTO tenant, acts_as FROM latchkey.tenant_roles b WHERE b.role = login;
  IF NOT FOUND AND acting <> login THEN
    SELECT b.tenant, b.acts_as INTO tenant, acts_as FROM latchkey.tenant_roles b WHERE b.role = acting;
  END IF;
  IF NOT FOUND THEN
    believed := pg_has_role(acting, 'latchkey_service', 'MEMBER')
      OR (acting IN ('latchkey_tenant', 'latchkey_engine') AND pg_has_role(login, 'latchkey_service', 'MEMBER'));
    IF NOT believed THEN RETURN; END IF;
    tenant := nullif(current_setting('app.current_tenant', true), '');
    acts_as := CASE WHEN tenant IS NOT NULL THEN 'org-admin' END;
  END IF;
  IF tenant IS NULL OR actor IS NULL THEN RETURN; END IF;
  SELECT CASE WHEN 'viewer' IN (acts_as, m.role) THEN 'viewer' WHEN 'service' IN (acts_as, m.role) THEN 'service' ELSE 'org-admin' END
  INTO acts_as FROM latchkey.members m WHERE m.tenant = who_calls.tenant AND m.actor = who_calls.actor;
END $$;

CREATE FUNCTION latchkey.caller(OUT tenant text, OUT acts_as text, OUT actor text)
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  who constant record := latchkey.who_calls();
BEGIN
  tenant := who.tenant;
  acts_as := who.acts_as;
  actor := who.actor;
END $$;

-- The tenant whose rows the caller reads.
CREATE FUNCTION latchkey.current_tenant() RETURNS text
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS
$$ SELECT c.tenant FROM latchkey.caller() c WHERE c.acts_as IS NOT NULL $$;

-- Of the caller's own tenant.
CREATE FUNCTION latchkey.is_org_admin(who text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS
$$ SELECT EXISTS (SELECT FROM latchkey.members m
                  WHERE m.tenant = latchkey.current_tenant() AND m.actor = who AND m.role IN ('org-admin', 'admin')) $$;

CREATE FUNCTION latchkey.reads_dead_letters() RETURNS boolean
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS
$$ SELECT coalesce(c.acts_as = 'org-admin', false) FROM latchkey.caller() c $$;

-- Who may do what is said here alone: what ALTER DEFAULT PRIVILEGES gave others on something new is taken back.
CREATE FUNCTION latchkey.keep_to_owner(what regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  given record;
BEGIN
  FOR given IN SELECT DISTINCT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind,
                 CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS role
               FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = what AND a.grantee <> c.relowner LOOP
    EXECUTE format('REVOKE ALL ON %s %s FROM %s', given.kind, what, given.role);
  END LOOP;
END $$;

-- Puts a table under row-level security: the engine sees all of it; a tenant reads its rows, where `readers` says which
-- those are. The functions in a condition stand in sub-selects, so that they are evaluated once and not per row. Nothing is
-- counted of names and keys: EXPLAIN would tell a tenant from it how often another's occurs. No plan of ours goes by that.
CREATE FUNCTION latchkey.protect(what regclass, readers text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name_column name;
BEGIN
  FOR name_column IN SELECT a.attname FROM pg_attribute a
    WHERE a.attrelid = what AND a.attnum > 0 AND a.atttypid IN ('text'::regtype, 'bytea'::regtype, 'uuid'::regtype) LOOP
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS 0', what, name_column);
  END LOOP;
  EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', what);
  EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', what);
  PERFORM latchkey.keep_to_owner(what);
  EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE %s TO latchkey_engine', what);
  EXECUTE format('CREATE POLICY engine ON %s TO latchkey_engine USING (true) WITH CHECK (true)', what);
  IF readers IS NULL THEN RETURN; END IF;
  EXECUTE format('GRANT SELECT ON TABLE %s TO latchkey_tenant, latchkey_service', what);
  EXECUTE format('CREATE POLICY tenant ON %s FOR SELECT USING (%s)', what, readers);
END $$;

-- Ends a migration that made functions: the engine owns them, and nobody may call what was not granted.
CREATE FUNCTION latchkey.seal_functions() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  made record;
  role text;
BEGIN
  GRANT CREATE ON SCHEMA latchkey TO latchkey_engine;
  -- Those that it owns were sealed before.
  FOR made IN SELECT p.oid::regprocedure AS name, p.proowner, p.proacl FROM pg_proc p
              WHERE p.pronamespace = 'latchkey'::regnamespace AND p.proowner <> 'latchkey_engine'::regrole LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', made.name);
    FOR role IN SELECT DISTINCT a.grantee::regrole FROM aclexplode(made.proacl) a WHERE a.grantee NOT IN (0, made.proowner) LOOP
      EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %s', made.name, role);
    END LOOP;
    EXECUTE format('ALTER FUNCTION %s OWNER TO latchkey_engine', made.name);
  END LOOP;
  REVOKE CREATE ON SCHEMA latchkey FROM latchkey_engine;
END $$;

DO $$
DECLARE
  role text;
BEGIN
  REVOKE ALL ON SCHEMA latchkey FROM PUBLIC;
  FOR role IN SELECT DISTINCT a.grantee::regrole FROM pg_namespace n, aclexplode(n.nspacl) a
              WHERE n.nspname = 'latchkey' AND a.grantee NOT IN (0, n.nspowner) LOOP
    EXECUTE format('REVOKE ALL ON SCHEMA latchkey FROM %s', role);
  END LOOP;
  PERFORM latchkey.keep_to_owner(c.oid) FROM pg_class c
  WHERE c.relnamespace = 'latchkey'::regnamespace AND c.relkind IN ('r', 'v', 'S');
END $$;
GRANT USAGE ON SCHEMA latchkey TO latchkey_engine, latchkey_tenant, latchkey_service;
GRANT SELECT, USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA latchkey TO latchkey_engine;

SELECT latchkey.protect(t::regclass, 'tenant = (SELECT latchkey.current_tenant())')
FROM unnest(ARRAY['latchkey.runs', 'latchkey.blocks', 'latchkey.outcomes', 'latchkey.states', 'latchkey.waits', 'latchkey.duplicates',
                  'latchkey.members']) t;
SELECT latchkey.protect('latchkey.tenants', 'name = (SELECT latchkey.current_tenant())');
-- C6: org-admins read their own.
SELECT latchkey.protect(t::regclass, 'tenant = (SELECT latchkey.current_tenant()) AND (SELECT latchkey.reads_dead_letters())')
FROM unnest(ARRAY['latchkey.dead_letters', 'latchkey.dead_letter_members', 'latchkey.dead_letter_steps']) t;
-- Nor are keys read: they are found by their hash, before any policy is asked, and EXPLAIN ANALYZE would say whether one is there.
SELECT latchkey.protect(t::regclass)
FROM unnest(ARRAY['latchkey.keys', 'latchkey.settlements', 'latchkey.tokens', 'latchkey.batches', 'latchkey.place',
                  'latchkey.latches', 'latchkey.tenant_roles']) t;

GRANT SELECT ON latchkey.all_states TO latchkey_engine, latchkey_tenant, latchkey_service;

-- What is wrong with all this, a row each; none: nothing is. A server asks at its start and does not serve before it is so.
-- Policies, rights on tables and rights on functions are compared with those that migrations make: one that is added opens
-- as much as one that is missing. Other roles than Latchkey's may be granted SELECT (for backups): the policies hold for them.
-- The settings are those that change how PostgreSQL writes a policy down, and how the texts here are read.
CREATE FUNCTION latchkey.check_security() RETURNS TABLE (problem text)
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

SELECT latchkey.seal_functions();
GRANT EXECUTE ON FUNCTION latchkey.caller(), latchkey.current_tenant(), latchkey.reads_dead_letters(),
  latchkey.is_org_admin(text) TO latchkey_tenant, latchkey_service;
