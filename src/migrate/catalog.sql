-- The schema of this database without the ledger ($1): one object per line, sorted. Names are qualified (search_path is
-- empty). Objects of an extension are represented by the extension. Absent grants are written as the default ones.
WITH ledger AS (
  SELECT pg_catalog.to_regclass($1::text)::oid AS oid
), members AS (
  SELECT classid, objid FROM pg_catalog.pg_depend WHERE deptype = 'e'
), spaces AS (
  SELECT n.oid, n.nspname, n.nspowner, n.nspacl FROM pg_catalog.pg_namespace n
  WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    AND NOT EXISTS (SELECT FROM members m WHERE m.classid = 'pg_catalog.pg_namespace'::regclass AND m.objid = n.oid)
), relations AS (
  SELECT c.*, pg_catalog.format('%I.%I', n.nspname, c.relname) AS full_name
  FROM pg_catalog.pg_class c JOIN spaces n ON n.oid = c.relnamespace
  WHERE c.oid IS DISTINCT FROM (SELECT oid FROM ledger)
    AND NOT EXISTS (SELECT FROM members m WHERE m.classid = 'pg_catalog.pg_class'::regclass AND m.objid = c.oid)
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indexrelid = c.oid AND i.indrelid = (SELECT oid FROM ledger))
), routines AS (
  SELECT p.*, n.nspname FROM pg_catalog.pg_proc p JOIN spaces n ON n.oid = p.pronamespace
  WHERE NOT EXISTS (SELECT FROM members m WHERE m.classid = 'pg_catalog.pg_proc'::regclass AND m.objid = p.oid)
), lines AS (
  SELECT pg_catalog.format('schema %I owner %s grants %s', nspname, nspowner::regrole,
    (SELECT pg_catalog.string_agg(a::text, ',' ORDER BY a::text) FROM pg_catalog.unnest(coalesce(nspacl, pg_catalog.acldefault('n', nspowner))) a)) AS line
  FROM spaces
  UNION ALL
  SELECT pg_catalog.format('extension %I %s', extname, extversion) FROM pg_catalog.pg_extension
  UNION ALL
  SELECT pg_catalog.format('relation %s kind %s persistence %s owner %s options %s security %s%s replica %s grants %s', full_name, relkind,
    relpersistence, relowner::regrole, (SELECT pg_catalog.string_agg(o, ',' ORDER BY o) FROM pg_catalog.unnest(reloptions) o), relrowsecurity, relforcerowsecurity, relreplident,
    (SELECT pg_catalog.string_agg(a::text, ',' ORDER BY a::text)
     FROM pg_catalog.unnest(coalesce(relacl, pg_catalog.acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner))) a))
  FROM relations WHERE relkind IN ('r', 'p', 'v', 'm', 'S', 'f', 'c')
  UNION ALL
  SELECT pg_catalog.format('column %s %s %I %s null %s default %s identity %s generated %s collation %s storage %s compression %s statistics %s options %s %s grants %s', c.full_name,
    pg_catalog.row_number() OVER (PARTITION BY c.oid ORDER BY a.attnum), a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
    NOT a.attnotnull, pg_catalog.pg_get_expr(d.adbin, d.adrelid), a.attidentity, a.attgenerated, nullif(a.attcollation, 0)::regcollation,
    a.attstorage, nullif(pg_catalog.to_jsonb(a) ->> 'attcompression', ''), nullif(a.attstattarget, -1),
    -- PostgreSQL 15.20 and others store an own value here, a different one each time.
    (SELECT pg_catalog.string_agg(o, ',' ORDER BY o) FROM pg_catalog.unnest(a.attoptions) o WHERE NOT pg_catalog.starts_with(o, 'pg_attver=')),
    a.attfdwoptions,
    (SELECT pg_catalog.string_agg(g::text, ',' ORDER BY g::text) FROM pg_catalog.unnest(a.attacl) g))
  FROM relations c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'c')
  UNION ALL
  SELECT pg_catalog.format('parent %s of %s %s', i.inhparent::regclass, c.full_name, pg_catalog.pg_get_expr(c.relpartbound, c.oid))
  FROM relations c JOIN pg_catalog.pg_inherits i ON i.inhrelid = c.oid
  UNION ALL
  SELECT pg_catalog.format('partitioned %s by %s', full_name, pg_catalog.pg_get_partkeydef(oid)) FROM relations WHERE relkind = 'p'
  UNION ALL
  SELECT pg_catalog.format('sequence %s %s from %s by %s between %s and %s cache %s cycle %s', c.full_name, s.seqtypid::regtype, s.seqstart, s.seqincrement,
    s.seqmin, s.seqmax, s.seqcache, s.seqcycle)
  FROM relations c JOIN pg_catalog.pg_sequence s ON s.seqrelid = c.oid
  UNION ALL
  SELECT pg_catalog.format('view %s %s', full_name, pg_catalog.pg_get_viewdef(oid)) FROM relations WHERE relkind IN ('v', 'm')
  UNION ALL
  SELECT pg_catalog.format('constraint %s %I %s valid %s', c.full_name, k.conname, pg_catalog.pg_get_constraintdef(k.oid), k.convalidated)
  FROM relations c JOIN pg_catalog.pg_constraint k ON k.conrelid = c.oid
  UNION ALL
  SELECT pg_catalog.format('index %s valid %s', pg_catalog.pg_get_indexdef(i.indexrelid), i.indisvalid)
  FROM relations c JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
  UNION ALL
  SELECT pg_catalog.format('policy %s %I permissive %s for %s to %s using %s check %s', c.full_name, p.polname, p.polpermissive, p.polcmd,
    (SELECT pg_catalog.string_agg(CASE r WHEN 0 THEN 'public' ELSE r::regrole::text END, ',' ORDER BY r::regrole::text) FROM pg_catalog.unnest(p.polroles) r),
    pg_catalog.pg_get_expr(p.polqual, p.polrelid), pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid))
  FROM relations c JOIN pg_catalog.pg_policy p ON p.polrelid = c.oid
  UNION ALL
  SELECT pg_catalog.format('trigger %s %s enabled %s', c.full_name, pg_catalog.pg_get_triggerdef(t.oid), t.tgenabled)
  FROM relations c JOIN pg_catalog.pg_trigger t ON t.tgrelid = c.oid AND NOT t.tgisinternal
  UNION ALL
  SELECT pg_catalog.format('event trigger %I on %s calls %s tags %s enabled %s', evtname, evtevent, evtfoid::regprocedure, evttags, evtenabled)
  FROM pg_catalog.pg_event_trigger
  UNION ALL
  SELECT pg_catalog.format('rule %s', pg_catalog.pg_get_ruledef(r.oid))
  FROM relations c JOIN pg_catalog.pg_rewrite r ON r.ev_class = c.oid AND r.rulename <> '_RETURN'
  UNION ALL
  SELECT pg_catalog.format('routine %I.%I(%s) owner %s grants %s %s', nspname, proname, pg_catalog.pg_get_function_identity_arguments(oid), proowner::regrole,
    (SELECT pg_catalog.string_agg(a::text, ',' ORDER BY a::text) FROM pg_catalog.unnest(coalesce(proacl, pg_catalog.acldefault('f', proowner))) a),
    CASE WHEN prokind IN ('f', 'p', 'w') THEN pg_catalog.pg_get_functiondef(oid) ELSE 'aggregate ' ||
      (SELECT pg_catalog.format('%s %s %s final %s %s combine %s serial %s %s moving %s %s %s %s %s %s sort %s state %s %s %s starts %s %s', g.aggkind, g.aggnumdirectargs,
        g.aggtransfn, g.aggfinalfn, g.aggfinalmodify, g.aggcombinefn, g.aggserialfn, g.aggdeserialfn, g.aggmtransfn, g.aggminvtransfn, g.aggmfinalfn,
        nullif(g.aggmtranstype, 0)::regtype, g.aggmtransspace, g.aggmfinalmodify, nullif(g.aggsortop, 0)::regoperator, g.aggtranstype::regtype, g.aggtransspace,
        g.aggfinalextra, g.agginitval, g.aggminitval) FROM pg_catalog.pg_aggregate g WHERE g.aggfnoid = routines.oid) END)
  FROM routines
  UNION ALL
  SELECT pg_catalog.format('type %I.%I kind %s labels %s base %s null %s default %s owner %s grants %s', n.nspname, t.typname, t.typtype,
    (SELECT pg_catalog.string_agg(e.enumlabel, ',' ORDER BY e.enumsortorder) FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid),
    pg_catalog.format_type(nullif(t.typbasetype, 0), t.typtypmod), NOT t.typnotnull, t.typdefault, t.typowner::regrole,
    (SELECT pg_catalog.string_agg(a::text, ',' ORDER BY a::text) FROM pg_catalog.unnest(coalesce(t.typacl, pg_catalog.acldefault('T', t.typowner))) a))
  FROM pg_catalog.pg_type t JOIN spaces n ON n.oid = t.typnamespace
  WHERE t.typtype IN ('e', 'd', 'r', 'm')
    AND NOT EXISTS (SELECT FROM members m WHERE m.classid = 'pg_catalog.pg_type'::regclass AND m.objid = t.oid)
  UNION ALL
  SELECT pg_catalog.format('constraint on domain %s %I %s', k.contypid::regtype, k.conname, pg_catalog.pg_get_constraintdef(k.oid))
  FROM pg_catalog.pg_constraint k JOIN spaces n ON n.oid = k.connamespace WHERE k.contypid <> 0
  UNION ALL
  SELECT pg_catalog.format('statistics %s', pg_catalog.pg_get_statisticsobjdef(s.oid))
  FROM pg_catalog.pg_statistic_ext s JOIN spaces n ON n.oid = s.stxnamespace
  UNION ALL
  SELECT pg_catalog.format('operator %s owner %s calls %s commutator %s negator %s restrict %s join %s merges %s hashes %s', o.oid::regoperator, o.oprowner::regrole,
    o.oprcode, nullif(o.oprcom, 0)::regoperator, nullif(o.oprnegate, 0)::regoperator, o.oprrest, o.oprjoin, o.oprcanmerge, o.oprcanhash)
  FROM pg_catalog.pg_operator o JOIN spaces n ON n.oid = o.oprnamespace
  WHERE NOT EXISTS (SELECT FROM members m WHERE m.classid = 'pg_catalog.pg_operator'::regclass AND m.objid = o.oid)
  UNION ALL
  SELECT pg_catalog.format('cast %s to %s by %s %s context %s', castsource::regtype, casttarget::regtype, castmethod, nullif(castfunc, 0)::regprocedure, castcontext) FROM pg_catalog.pg_cast
  WHERE oid >= 16384 AND NOT EXISTS (SELECT FROM members m WHERE m.classid = 'pg_catalog.pg_cast'::regclass AND m.objid = pg_cast.oid)
  UNION ALL
  SELECT pg_catalog.format('publication %I all %s insert %s update %s delete %s truncate %s root %s owner %s', pubname, puballtables, pubinsert, pubupdate, pubdelete,
    pubtruncate, pubviaroot, pubowner::regrole) FROM pg_catalog.pg_publication
  UNION ALL
  SELECT pg_catalog.format('published %I: %s', pubname, pg_catalog.to_jsonb(t)) FROM pg_catalog.pg_publication_tables t
  UNION ALL
  SELECT pg_catalog.format('collation %I.%I owner %s %s', n.nspname, c.collname, c.collowner::regrole, pg_catalog.to_jsonb(c) - ARRAY['oid', 'collnamespace', 'collowner'])
  FROM pg_catalog.pg_collation c JOIN spaces n ON n.oid = c.collnamespace
  WHERE NOT EXISTS (SELECT FROM members m WHERE m.classid = 'pg_catalog.pg_collation'::regclass AND m.objid = c.oid)
  UNION ALL
  SELECT pg_catalog.format('text search dictionary %s owner %s template %s.%s options %s', d.oid::regdictionary, d.dictowner::regrole,
    t.tmplnamespace::regnamespace, t.tmplname, d.dictinitoption)
  FROM pg_catalog.pg_ts_dict d JOIN spaces n ON n.oid = d.dictnamespace JOIN pg_catalog.pg_ts_template t ON t.oid = d.dicttemplate
  WHERE NOT EXISTS (SELECT FROM members m WHERE m.classid = 'pg_catalog.pg_ts_dict'::regclass AND m.objid = d.oid)
  UNION ALL
  SELECT pg_catalog.format('text search configuration %s owner %s parser %s.%s maps %s', c.oid::regconfig, c.cfgowner::regrole, p.prsnamespace::regnamespace, p.prsname,
    (SELECT pg_catalog.string_agg(m.maptokentype || ' ' || m.mapdict::regdictionary::text, ', ' ORDER BY m.maptokentype, m.mapseqno)
     FROM pg_catalog.pg_ts_config_map m WHERE m.mapcfg = c.oid))
  FROM pg_catalog.pg_ts_config c JOIN spaces n ON n.oid = c.cfgnamespace JOIN pg_catalog.pg_ts_parser p ON p.oid = c.cfgparser
  WHERE NOT EXISTS (SELECT FROM members m WHERE m.classid = 'pg_catalog.pg_ts_config'::regclass AND m.objid = c.oid)
  UNION ALL
  SELECT pg_catalog.format('foreign data wrapper %I owner %s handler %s validator %s options %s', w.fdwname, w.fdwowner::regrole, nullif(w.fdwhandler, 0)::regproc,
    nullif(w.fdwvalidator, 0)::regproc, w.fdwoptions) FROM pg_catalog.pg_foreign_data_wrapper w
  WHERE NOT EXISTS (SELECT FROM members m WHERE m.classid = 'pg_catalog.pg_foreign_data_wrapper'::regclass AND m.objid = w.oid)
  UNION ALL
  SELECT pg_catalog.format('foreign server %I owner %s wrapper %I type %s version %s options %s grants %s', s.srvname, s.srvowner::regrole, w.fdwname, s.srvtype, s.srvversion,
    s.srvoptions, (SELECT pg_catalog.string_agg(a::text, ',' ORDER BY a::text) FROM pg_catalog.unnest(coalesce(s.srvacl, pg_catalog.acldefault('S', s.srvowner))) a))
  FROM pg_catalog.pg_foreign_server s JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = s.srvfdw
  UNION ALL
  SELECT pg_catalog.format('user mapping of %s on %I', nullif(umuser, 0)::regrole, srvname) FROM pg_catalog.pg_user_mappings
  UNION ALL
  SELECT pg_catalog.format('foreign table %s on %I options %s', c.full_name, s.srvname, t.ftoptions)
  FROM relations c JOIN pg_catalog.pg_foreign_table t ON t.ftrelid = c.oid JOIN pg_catalog.pg_foreign_server s ON s.oid = t.ftserver
  UNION ALL
  SELECT pg_catalog.format('default grants of %s in %s on %s: %s', defaclrole::regrole, nullif(defaclnamespace, 0)::regnamespace, defaclobjtype,
    (SELECT pg_catalog.string_agg(a::text, ',' ORDER BY a::text) FROM pg_catalog.unnest(defaclacl) a))
  FROM pg_catalog.pg_default_acl
  UNION ALL
  SELECT pg_catalog.format('database grants %s', (SELECT pg_catalog.string_agg(a::text, ',' ORDER BY a::text)
    FROM pg_catalog.unnest(coalesce(datacl, pg_catalog.acldefault('d', datdba))) a))
  FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()
  UNION ALL
  SELECT pg_catalog.format('settings of %s: %s', nullif(setrole, 0)::regrole, setconfig) FROM pg_catalog.pg_db_role_setting
  WHERE setdatabase = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
  UNION ALL
  SELECT pg_catalog.format('comment on %s %s: %s', i.type, i.identity, d.description)
  FROM pg_catalog.pg_description d, LATERAL pg_catalog.pg_identify_object(d.classoid, d.objoid, d.objsubid) i
  WHERE d.objoid >= 16384
    AND NOT EXISTS (SELECT FROM members m WHERE m.classid = d.classoid AND m.objid = d.objoid)
)
SELECT pg_catalog.replace(line, E'\n', ' ') FROM lines ORDER BY line COLLATE "C";
