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
  remedy constant text := format('have an administrator run, once: CREATE ROLE latchkey_engine NOLOGIN; '
    'CREATE ROLE latchkey_tenant NOLOGIN; CREATE ROLE latchkey_service NOLOGIN; '
    'GRANT latchkey_engine, latchkey_tenant, latchkey_service TO %I;', current_user);
  name text;
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
    IF pg_has_role(current_user, name, 'MEMBER') THEN CONTINUE; END IF;
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
-- A session's own binding comes first, so that SET ROLE does not get a tenant's role out of it.
CREATE FUNCTION latchkey.caller(OUT tenant text, OUT acts_as text, OUT actor text)
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  taken_on constant text := current_setting('role');
  acting constant text := CASE taken_on WHEN 'none' THEN session_user ELSE taken_on END;
  believed boolean;
BEGIN
  actor := nullif(current_setting('app.current_actor', true), '');
  SELECT b.tenant, b.acts_as INTO tenant, acts_as FROM latchkey.tenant_roles b
  WHERE b.role IN (session_user, acting) ORDER BY b.role = session_user DESC LIMIT 1;
  IF FOUND THEN RETURN; END IF;
  believed := pg_has_role(acting, 'latchkey_service', 'MEMBER')
    OR (acting IN ('latchkey_tenant', 'latchkey_engine') AND pg_has_role(session_user, 'latchkey_service', 'MEMBER'));
  IF NOT believed THEN RETURN; END IF;
  tenant := nullif(current_setting('app.current_tenant', true), '');
  acts_as := CASE WHEN tenant IS NOT NULL THEN 'org-admin' END;
END $$;

CREATE FUNCTION latchkey.current_tenant() RETURNS text
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS
$$ SELECT c.tenant FROM latchkey.caller() c $$;

-- Of the caller's own tenant.
CREATE FUNCTION latchkey.is_org_admin(who text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS
$$ SELECT EXISTS (SELECT FROM latchkey.members m
                  WHERE m.tenant = latchkey.current_tenant() AND m.actor = who AND m.role IN ('org-admin', 'admin')) $$;

-- Who names a person (app.current_actor) has that person's rights, no more.
CREATE FUNCTION latchkey.reads_dead_letters() RETURNS boolean
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS
$$ SELECT c.tenant IS NOT NULL AND c.acts_as = 'org-admin'
          AND (c.actor IS NULL OR latchkey.is_org_admin(c.actor))
   FROM latchkey.caller() c $$;

-- Puts a table under row-level security: the engine sees all of it; a tenant reads its rows, where `readers` says which
-- those are. The functions in a condition stand in sub-selects, so that they are evaluated once and not per row.
CREATE FUNCTION latchkey.protect(what regclass, readers text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', what);
  EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', what);
  EXECUTE format('REVOKE ALL ON TABLE %s FROM PUBLIC', what);
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
  made regprocedure;
BEGIN
  GRANT CREATE ON SCHEMA latchkey TO latchkey_engine;
  FOR made IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'latchkey'::regnamespace LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', made);
    EXECUTE format('ALTER FUNCTION %s OWNER TO latchkey_engine', made);
  END LOOP;
  REVOKE CREATE ON SCHEMA latchkey FROM latchkey_engine;
END $$;

REVOKE ALL ON SCHEMA latchkey FROM PUBLIC;
GRANT USAGE ON SCHEMA latchkey TO latchkey_engine, latchkey_tenant, latchkey_service;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA latchkey FROM PUBLIC;
GRANT SELECT, USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA latchkey TO latchkey_engine;

SELECT latchkey.protect(t::regclass, 'tenant = (SELECT latchkey.current_tenant())')
FROM unnest(ARRAY['latchkey.runs', 'latchkey.blocks', 'latchkey.outcomes', 'latchkey.states', 'latchkey.keys', 'latchkey.waits',
                  'latchkey.duplicates', 'latchkey.members']) t;
SELECT latchkey.protect('latchkey.tenants', 'name = (SELECT latchkey.current_tenant())');
-- C6: org-admins read their own.
SELECT latchkey.protect(t::regclass, 'tenant = (SELECT latchkey.current_tenant()) AND (SELECT latchkey.reads_dead_letters())')
FROM unnest(ARRAY['latchkey.dead_letters', 'latchkey.dead_letter_members', 'latchkey.dead_letter_steps']) t;
SELECT latchkey.protect(t::regclass)
FROM unnest(ARRAY['latchkey.tokens', 'latchkey.batches', 'latchkey.place', 'latchkey.tenant_roles']) t;

REVOKE ALL ON latchkey.all_states FROM PUBLIC;
GRANT SELECT ON latchkey.all_states TO latchkey_engine, latchkey_tenant, latchkey_service;

-- What is wrong with all this, a row each; none: nothing is. A server asks at its start and does not serve before it is so.
CREATE FUNCTION latchkey.check_security() RETURNS TABLE (problem text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH ours AS (
         SELECT c.* FROM pg_class c
         WHERE c.relnamespace = 'latchkey'::regnamespace
           -- The ledger of migrations holds no tenant's rows; it is its owner's alone.
           AND NOT (c.relname = 'migrations'
                    AND NOT EXISTS (SELECT FROM aclexplode(c.relacl) a WHERE a.grantee <> c.relowner))),
       functions AS (SELECT p.* FROM pg_proc p WHERE p.pronamespace = 'latchkey'::regnamespace)
  SELECT format('table %s does not force row-level security', o.oid::regclass) FROM ours o
  WHERE o.relkind IN ('r', 'p') AND NOT (o.relrowsecurity AND o.relforcerowsecurity)
  UNION ALL
  SELECT format('table %s has no policy for the engine', o.oid::regclass) FROM ours o
  WHERE o.relkind IN ('r', 'p')
    AND NOT EXISTS (SELECT FROM pg_policy y WHERE y.polrelid = o.oid AND y.polroles = ARRAY['latchkey_engine'::regrole::oid])
  UNION ALL
  SELECT format('view %s is not security_invoker', o.oid::regclass) FROM ours o
  WHERE o.relkind = 'v' AND NOT coalesce(lower(array_to_string(o.reloptions, ' ')) ~ 'security_invoker=(true|on|yes|1)\M', false)
  UNION ALL
  SELECT format('%s is a materialized or foreign table: no policy guards it', o.oid::regclass) FROM ours o WHERE o.relkind IN ('m', 'f')
  UNION ALL
  SELECT format('%s may be read or written by everybody', o.oid::regclass) FROM ours o, aclexplode(o.relacl) a WHERE a.grantee = 0
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
  SELECT format('role %s is a superuser or has BYPASSRLS', r.rolname) FROM pg_roles r
  WHERE r.rolname IN ('latchkey_engine', 'latchkey_tenant', 'latchkey_service') AND (r.rolsuper OR r.rolbypassrls)
  UNION ALL
  SELECT format('role %s is a member of latchkey_engine', r.rolname) FROM pg_roles r
  WHERE r.rolname IN ('latchkey_tenant', 'latchkey_service') AND pg_has_role(r.oid, 'latchkey_engine', 'MEMBER')
  UNION ALL
  SELECT format('role %s is bound to a tenant and a member of latchkey_engine', r.rolname)
  FROM pg_roles r JOIN latchkey.tenant_roles b ON b.role = r.rolname
  WHERE pg_has_role(r.oid, 'latchkey_engine', 'MEMBER')
$$;

SELECT latchkey.seal_functions();
GRANT EXECUTE ON FUNCTION latchkey.caller(), latchkey.current_tenant(), latchkey.reads_dead_letters(),
  latchkey.is_org_admin(text) TO latchkey_tenant, latchkey_service;
