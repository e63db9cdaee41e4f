-- The seeds' tables, for people and dashboards: read-only views, under the reader's own row-level security. What they
-- promise is held by the tables below them: a key's one latest run by the primary key of `keys`, the one open dead letter by
-- the unique index `dead_letters_open`.

-- SHA-1, which PostgreSQL has for nobody; only UUIDv5 needs it, and only for names.
CREATE FUNCTION latchkey.sha1(message bytea) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  word constant bigint := 4294967295;
  size constant integer := length(message);
  padded constant bytea := message || decode('80', 'hex')
    || decode(repeat('00', (119 - size % 64) % 64), 'hex') || int8send(size::bigint * 8);
  h bigint[] := ARRAY[1732584193, 4023233417, 2562383102, 271733878, 3285377520];
  w bigint[];
  a bigint; b bigint; c bigint; d bigint; e bigint; f bigint; t bigint;
BEGIN
  FOR chunk IN 0 .. length(padded) / 64 - 1 LOOP
    FOR i IN 0 .. 15 LOOP
      w[i] := ('x' || encode(substr(padded, chunk * 64 + i * 4 + 1, 4), 'hex'))::bit(32)::bigint;
    END LOOP;
    FOR i IN 16 .. 79 LOOP
      t := w[i - 3] # w[i - 8] # w[i - 14] # w[i - 16];
      w[i] := ((t << 1) | (t >> 31)) & word;
    END LOOP;
    a := h[1]; b := h[2]; c := h[3]; d := h[4]; e := h[5];
    FOR i IN 0 .. 79 LOOP
      f := CASE i / 20
        WHEN 0 THEN ((b & c) | ((word # b) & d)) + 1518500249
        WHEN 1 THEN (b # c # d) + 1859775393
        WHEN 2 THEN ((b & c) | (b & d) | (c & d)) + 2400959708
        ELSE (b # c # d) + 3395469782 END;
      t := ((((a << 5) | (a >> 27)) & word) + f + e + w[i]) & word;
      e := d; d := c; c := ((b << 30) | (b >> 2)) & word; b := a; a := t;
    END LOOP;
    h := ARRAY[(h[1] + a) & word, (h[2] + b) & word, (h[3] + c) & word, (h[4] + d) & word, (h[5] + e) & word];
  END LOOP;
  RETURN decode(lpad(to_hex(h[1]), 8, '0') || lpad(to_hex(h[2]), 8, '0') || lpad(to_hex(h[3]), 8, '0')
    || lpad(to_hex(h[4]), 8, '0') || lpad(to_hex(h[5]), 8, '0'), 'hex');
END $$;

-- A name in a column of UUIDs: itself where it is a UUID as PostgreSQL writes it, else its UUIDv5 (RFC 9562) in the
-- namespace of DNS names.
CREATE FUNCTION latchkey.name_uuid(name text) RETURNS uuid
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  hash bytea;
BEGIN
  IF name ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN RETURN name::uuid; END IF;
  hash := substr(latchkey.sha1(decode('6ba7b8109dad11d180b400c04fd430c8', 'hex') || convert_to(name, 'UTF8')), 1, 16);
  hash := set_byte(hash, 6, (get_byte(hash, 6) & 15) | 80);
  hash := set_byte(hash, 8, (get_byte(hash, 8) & 63) | 128);
  RETURN encode(hash, 'hex')::uuid;
END $$;

-- Bytes as people read them: text where they are UTF-8, else escaped as in C (\ooo). Never an error.
CREATE FUNCTION latchkey.as_text(bytes bytea) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  escaped constant text := encode(bytes, 'escape');
BEGIN
  IF octet_length(escaped) = length(bytes) THEN RETURN escaped; END IF;  -- plain ASCII: nothing had to be escaped
  RETURN convert_from(bytes, 'UTF8');
EXCEPTION WHEN OTHERS THEN
  RETURN escaped;
END $$;

-- Bytes as JSON: what they say where they are JSON that PostgreSQL can hold, else their text as a string. Never an error, and
-- never much longer than they are: PostgreSQL writes 1e131071 with all its noughts.
CREATE FUNCTION latchkey.as_json(bytes bytea) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  said constant text := latchkey.as_text(bytes);
BEGIN
  -- In numbers, that is: not in a string, where identifiers look so.
  IF said ~ '[0-9][eE][-+]?0*[0-9]{3}' AND regexp_replace(said, '"(?:[^"\\]|\\.)*"', '', 'g') ~ '[0-9][eE][-+]?0*[0-9]{3}' THEN
    RETURN to_jsonb(said);
  END IF;
  RETURN convert_from(bytes, 'UTF8')::jsonb;
EXCEPTION WHEN OTHERS THEN
  RETURN to_jsonb(said);
END $$;

-- Whoever reads a view calls these two: bodies that are parsed now, and so mean the same by every search_path, and can be
-- inlined, as they could not with one of their own, nor with anything in them that is less than IMMUTABLE (timestamptz + interval).
CREATE FUNCTION latchkey.as_time(ms bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN to_timestamp(ms / 1000.0::double precision);

CREATE FUNCTION latchkey.status_name(status integer) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (ARRAY['queued', 'running', 'in_doubt', 'completed', 'failed', 'cancelled'])[status + 1];

-- A tenant's UUID. The table saves computing it; whoever cannot see the row yet computes.
CREATE FUNCTION latchkey.tenant_id(tenant text) RETURNS uuid
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS
$$ SELECT coalesce((SELECT t.id FROM latchkey.tenants t WHERE t.name = tenant), latchkey.name_uuid(tenant)) $$;

-- Keeps a tenant that is seen for the first time. Whoever is keeping it just now will do: that is not waited for longer than a
-- moment. No advisory lock tells of it: everybody sees those, and could try names on them.
CREATE FUNCTION latchkey.note_tenant(tenant text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '1ms' AS $$
BEGIN
  IF EXISTS (SELECT FROM latchkey.tenants t WHERE t.name = note_tenant.tenant) THEN RETURN; END IF;
  -- Two names of one UUID (a name that is another's UUIDv5) are no error either. Nor is a row that was kept since the snapshot of
  -- a transaction under REPEATABLE READ.
  BEGIN
    INSERT INTO latchkey.tenants (name, id) VALUES (note_tenant.tenant, latchkey.name_uuid(note_tenant.tenant)) ON CONFLICT DO NOTHING;
  EXCEPTION WHEN serialization_failure OR lock_not_available THEN NULL;
  END;
END $$;

-- What the views below share: a run with its state, as people see it. started_at is the first try of this generation. The state is
-- put together as in all_states, which would read every head twice.
CREATE VIEW latchkey.readable_runs WITH (security_invoker = true) AS
SELECT r.seq, r.id, r.tenant, coalesce(t.id, latchkey.name_uuid(r.tenant)) AS tenant_id, r.function, r.key, r.hash, r.traits,
  r.window_ms, r.input,
  s.status, latchkey.status_name(s.status) AS status_name, s.generation, s.attempt, s.result, s.last_error, s.at,
  latchkey.as_time(nullif(s.first_attempt_at, 0)) AS started_at,
  CASE WHEN s.status >= 3 THEN latchkey.as_time(s.at) END AS completed_at,
  latchkey.as_time(r.created_at) AS created_at,
  CASE WHEN s.status >= 3 AND s.first_attempt_at > 0 THEN s.at - s.first_attempt_at END AS duration_ms
FROM latchkey.runs r
LEFT JOIN latchkey.states i ON i.seq = r.seq
LEFT JOIN LATERAL (
  SELECT * FROM latchkey.outcomes n WHERE i.seq IS NULL AND n.lo <= r.seq AND n.lo > r.seq - 1000 ORDER BY n.lo DESC LIMIT 1
) o ON o.hi >= r.seq
LEFT JOIN LATERAL (
  SELECT * FROM latchkey.blocks n WHERE i.seq IS NULL AND o.lo IS NULL AND n.lo <= r.seq AND n.lo > r.seq - 1000 ORDER BY n.lo DESC LIMIT 1
) b ON b.hi >= r.seq
CROSS JOIN LATERAL (
  SELECT CASE WHEN i.seq IS NOT NULL THEN i.status WHEN o.lo IS NOT NULL THEN 3 WHEN b.session IS NOT NULL THEN 1 ELSE 0 END AS status,
    coalesce(i.generation, 1) AS generation,
    coalesce(i.attempt, CASE WHEN o.lo IS NULL AND b.session IS NULL THEN 0 ELSE 1 END) AS attempt,
    coalesce(i.result, o.result) AS result, i.last_error, coalesce(i.at, o.at, b.started_at, b.due) AS at,
    coalesce(i.first_attempt_at, o.started_at, b.started_at, 0) AS first_attempt_at
) s
LEFT JOIN latchkey.tenants t ON t.name = r.tenant;

-- A4. lock_key is never NULL: a run without a key shows its id.
CREATE VIEW latchkey.job_runs WITH (security_invoker = true) AS
SELECT r.id, r.tenant_id, r.function AS function_name, coalesce(latchkey.as_text(r.key), r.id::text) AS lock_key,
  r.status_name AS status, latchkey.as_json(r.input) AS input_params, latchkey.as_json(r.result) AS result,
  latchkey.as_text(r.last_error) AS error_message, greatest(r.attempt - 1, 0) AS retry_count,
  r.started_at, r.completed_at, r.created_at, CASE WHEN r.duration_ms IS NOT NULL THEN least(r.duration_ms, 2147483647)::integer END AS duration_ms
FROM latchkey.readable_runs r;

-- C1
CREATE VIEW latchkey.sync_run_log WITH (security_invoker = true) AS
SELECT r.id, r.tenant_id AS org_id, r.function AS integration_type, r.status_name AS status, r.started_at, r.completed_at,
  latchkey.as_text(r.last_error) AS error_message, greatest(r.attempt - 1, 0) AS retry_count, r.created_at
FROM latchkey.readable_runs r;

-- C3, C4: a row for each entry. acknowledged_by is a UUID as in the seed; acknowledged_by_actor is what was said.
CREATE VIEW latchkey.dead_letter_queue WITH (security_invoker = true) AS
SELECT d.id, latchkey.tenant_id(d.tenant) AS org_id, d.function AS integration_type, d.latest_run AS failed_run_id,
  latchkey.as_text(d.reason) AS failure_reason, latchkey.as_time(d.opened_at) AS created_at,
  latchkey.as_time(d.acknowledged_at) AS acknowledged_at, latchkey.name_uuid(nullif(d.acknowledged_by, '')) AS acknowledged_by,
  nullif(d.acknowledged_by, '') AS acknowledged_by_actor, d.code AS failure_code, d.count AS failures,
  latchkey.as_time(d.updated_at) AS updated_at
FROM latchkey.dead_letters d;

-- A7: a row for each failed run (each generation of it). Resolved: a person did something about it, or the run went on.
CREATE VIEW latchkey.sync_errors WITH (security_invoker = true) AS
SELECT md5(m.run::text || ':' || m.generation)::uuid AS id, latchkey.tenant_id(m.tenant) AS tenant_id,
  'job_failure'::text AS error_type, m.code AS error_code, latchkey.as_text(m.reason) AS error_message,
  jsonb_build_object('function_name', d.function, 'lock_key', coalesce(latchkey.as_text(nullif(m.key, '')), m.run::text), 'input_params', latchkey.as_json(r.input),
    'retry_count', greatest(m.attempts - 1, 0), 'last_attempt_at', latchkey.as_time(m.at),
    'effect', CASE m.effect WHEN 0 THEN 'none' ELSE 'unknown' END) AS error_details,
  'job_run'::text AS source_entity_type, m.run AS source_entity_id,
  (EXISTS (SELECT FROM latchkey.dead_letter_steps t WHERE t.seq = m.seq AND t.generation = m.generation)
    OR r.generation > m.generation OR r.status <> 4) AS is_resolved,
  latchkey.as_time(m.at) AS created_at, d.id AS dead_letter_id
FROM latchkey.dead_letter_members m
JOIN latchkey.dead_letters d ON d.number = m.letter
LEFT JOIN latchkey.readable_runs r ON r.seq = m.seq;

-- Whether a run that the caller reads is the latest of its key. Tenants do not read `keys`: it is looked into for a run of the
-- caller's own, with that very hash, and whatever else is asked takes the same way. Whoever is above the policies, or the engine,
-- reads every tenant's.
CREATE FUNCTION latchkey.is_latest(of_seq bigint, of_hash uuid) RETURNS boolean
LANGUAGE plpgsql STABLE STRICT SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  taken_on constant text := current_setting('role');
  acting constant text := CASE taken_on WHEN 'none' THEN session_user ELSE taken_on END;
  reads_all constant boolean := EXISTS (SELECT FROM pg_roles a WHERE a.rolname = acting
    AND (a.rolsuper OR a.rolbypassrls OR pg_has_role(a.oid, 'latchkey_engine', 'USAGE')));
  of_tenant constant text := latchkey.current_tenant();
BEGIN
  IF NOT EXISTS (SELECT FROM latchkey.runs r WHERE r.seq = of_seq AND r.hash = of_hash AND (reads_all OR r.tenant = of_tenant)) THEN
    RETURN false;
  END IF;
  RETURN EXISTS (SELECT FROM latchkey.keys k WHERE k.hash = of_hash AND k.seq = of_seq);
END $$;

-- D2: what `once` keeps, expired or not. The job and the features are what input and result say of them.
CREATE VIEW latchkey.geoprocessing_idempotency WITH (security_invoker = true) AS
SELECT latchkey.as_text(r.key) AS idempotency_key,
  coalesce(CASE jsonb_typeof(p.input) WHEN 'object' THEN coalesce(p.input ->> 'job_id', p.input ->> 'jobId') END, r.id::text) AS job_id,
  encode(sha256(coalesce(r.result, '')), 'hex') AS result_hash, coalesce(p.result, 'null') AS result_payload, r.completed_at,
  -- Windows are at most ten years, and no instant is kept that lies after the year 9999.
  r.completed_at + r.window_ms * interval '1 millisecond' AS expires_at,
  r.tenant_id, r.function AS process_id, r.duration_ms,
  CASE WHEN p.features ~ '^[0-9]{1,18}$' THEN p.features::bigint END AS features_processed
FROM latchkey.readable_runs r
CROSS JOIN LATERAL (
  SELECT i.input, o.result,
    CASE jsonb_typeof(o.result) WHEN 'object' THEN coalesce(o.result ->> 'features_processed', o.result ->> 'featuresProcessed') END AS features
  FROM (SELECT latchkey.as_json(r.input) AS input) i, (SELECT latchkey.as_json(r.result) AS result) o
) p
WHERE r.status = 3 AND (r.traits & 3) = 1 AND r.key IS NOT NULL AND latchkey.is_latest(r.seq, r.hash);

-- C5, C8: ids only, never a reason or a person. It only informs: a queue that is full (somebody listens in a transaction that is
-- left open) would refuse the whole commit, and so nobody is told when it is nearly so.
CREATE FUNCTION latchkey.tell_dead_letter(of_tenant text, of_function text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_notification_queue_usage() < 0.9 THEN
    PERFORM pg_notify('dead_letter_inserted',
      json_build_object('orgId', latchkey.tenant_id(of_tenant), 'integrationType', of_function)::text);
  END IF;
END $$;
CREATE FUNCTION latchkey.notify_dead_letter() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM latchkey.tell_dead_letter(NEW.tenant, NEW.function);
  RETURN NULL;
END $$;
-- But for what the engine itself writes, which is nobody else's role: of commits that give notice PostgreSQL lets one happen at a time, and
-- all that is in a server's batch would wait for everybody's. A server tells of its letters when they are committed.
CREATE TRIGGER notify AFTER INSERT OR UPDATE ON latchkey.dead_letters
FOR EACH ROW WHEN (current_setting('role') <> 'latchkey_engine') EXECUTE FUNCTION latchkey.notify_dead_letter();

SELECT latchkey.seal_functions();
SELECT latchkey.keep_to_owner(v::regclass)
FROM unnest(ARRAY['latchkey.readable_runs', 'latchkey.job_runs', 'latchkey.sync_run_log', 'latchkey.dead_letter_queue',
                  'latchkey.sync_errors', 'latchkey.geoprocessing_idempotency']) v;
GRANT SELECT ON latchkey.readable_runs, latchkey.job_runs, latchkey.sync_run_log, latchkey.dead_letter_queue, latchkey.sync_errors,
  latchkey.geoprocessing_idempotency TO latchkey_engine, latchkey_tenant, latchkey_service;
GRANT EXECUTE ON FUNCTION latchkey.as_text(bytea), latchkey.as_json(bytea), latchkey.as_time(bigint), latchkey.status_name(integer),
  latchkey.sha1(bytea), latchkey.name_uuid(text), latchkey.tenant_id(text), latchkey.is_latest(bigint, uuid) TO latchkey_tenant, latchkey_service;
