-- What was asked by the functions for users' transactions (0007): who asks, whether it may be asked so, and all of it with its
-- defaults.

-- Every refusal: the SQLSTATE and the detail say which, the message why. Never about another tenant: what is foreign is not found.
CREATE FUNCTION latchkey.refuse(code text, why text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING MESSAGE = code || ': ' || why, DETAIL = code, ERRCODE = CASE code
    WHEN 'INVALID_ARGUMENT' THEN 'LK400' WHEN 'BODY_TOO_LARGE' THEN 'LK413' WHEN 'FORBIDDEN' THEN 'LK403' WHEN 'NOT_FOUND' THEN 'LK404'
    WHEN 'LEASE_LOST' THEN 'LK409' WHEN 'ALREADY_SETTLED' THEN 'LK410' WHEN 'MOVE_REFUSED' THEN 'LK411'
    WHEN 'PREDECESSOR_UNKNOWN' THEN 'LK422' ELSE 'LK500' END;
END $$;

-- The tenant that the caller may write for.
CREATE FUNCTION latchkey.writing_tenant() RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  who record;
BEGIN
  SELECT * INTO who FROM latchkey.caller();
  IF who.tenant IS NULL THEN
    PERFORM latchkey.refuse('FORBIDDEN', 'no tenant: set app.current_tenant as a member of latchkey_service, or have the role bound in latchkey.tenant_roles');
  END IF;
  IF who.tenant !~ '^[A-Za-z0-9._-]{1,128}$' THEN
    PERFORM latchkey.refuse('INVALID_ARGUMENT', 'the tenant must be 1 to 128 of letters, digits, ''.'', ''_'' and ''-''');
  END IF;
  IF who.acts_as = 'viewer' THEN PERFORM latchkey.refuse('FORBIDDEN', 'a viewer only reads'); END IF;
  IF who.acts_as IS NULL THEN PERFORM latchkey.refuse('FORBIDDEN', 'app.current_actor is no member of the tenant'); END IF;
  RETURN who.tenant;
END $$;

CREATE FUNCTION latchkey.check_text(name text, value text, bytes_max integer) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF octet_length(convert_to(value, 'UTF8')) > bytes_max THEN
    PERFORM latchkey.refuse('INVALID_ARGUMENT', format('%s has more than %s bytes', name, bytes_max));
  END IF;
  IF value ~ E'[\\x01-\\x1f\\x7f]' THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', format('%s has a control character', name)); END IF;
END $$;

CREATE FUNCTION latchkey.check_span(name text, value bigint, least_ms bigint, most_ms bigint) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF value BETWEEN least_ms AND most_ms THEN RETURN; END IF;
  PERFORM latchkey.refuse('INVALID_ARGUMENT', format('%s must be %s ms to %s ms', name, least_ms, most_ms));
END $$;

-- Text or bytes; empty is NULL in the tables.
CREATE FUNCTION latchkey.body(name text, of_text text, of_bytes bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  bytes constant bytea := coalesce(of_bytes, convert_to(of_text, 'UTF8'));
BEGIN
  IF of_bytes IS NOT NULL AND of_text IS NOT NULL THEN
    PERFORM latchkey.refuse('INVALID_ARGUMENT', format('%s and %s_bytes exclude each other', name, name));
  END IF;
  IF length(bytes) > 1048576 THEN PERFORM latchkey.refuse('BODY_TOO_LARGE', name || ' has more than 1048576 bytes'); END IF;
  RETURN nullif(bytes, '');
END $$;

CREATE FUNCTION latchkey.span_ms(span interval) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT AS
$$ SELECT (extract(epoch FROM span) * 1000)::bigint $$;

-- One of a list of names, by its place from 0.
CREATE FUNCTION latchkey.place_of(name text, value text, VARIADIC known text[]) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF value = ANY (known) THEN RETURN array_position(known, value) - 1; END IF;
  PERFORM latchkey.refuse('INVALID_ARGUMENT', format('%s must be one of %s', name, array_to_string(known, ', ')));
END $$;

-- As HTTP's `retry`: {retries, first_ms, factor, ceiling_ms, total_ms, jitter, jitter_percent, schedule_ms}. NULL: the default.
CREATE FUNCTION latchkey.pack_retry(policy jsonb) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  names constant text[] := ARRAY['retries', 'first_ms', 'factor', 'ceiling_ms', 'total_ms', 'jitter', 'jitter_percent', 'schedule_ms'];
  most constant bigint[] := ARRAY[1000, 315619200000, 1000, 315619200000, 315619200000, 5, 100];
  fields bigint[] := ARRAY[3, 1000, 5, 30000, 9223372036854775807, 0, 10];
  name text;
  number integer;
  value jsonb;
BEGIN
  FOR name, value IN SELECT * FROM jsonb_each(policy) LOOP
    number := array_position(names, name);
    IF number IS NULL THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', 'the retry policy has no member ' || quote_ident(name)); END IF;
    CONTINUE WHEN number = 8;
    IF number = 6 THEN
      fields[6] := latchkey.place_of('jitter', value #>> '{}', 'none', 'full', 'equal', 'additive', 'decorrelated', 'percent');
    ELSIF jsonb_typeof(value) = 'number' AND value #>> '{}' ~ '^[0-9]{1,12}$' AND (value #>> '{}')::bigint <= most[number] THEN
      fields[number] := (value #>> '{}')::bigint;
    ELSE
      PERFORM latchkey.refuse('INVALID_ARGUMENT', format('the retry policy''s %s must be a whole number from 0 to %s', name, most[number]));
    END IF;
  END LOOP;
  IF policy -> 'schedule_ms' = '[]' THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', 'the retry policy''s schedule_ms is empty'); END IF;
  IF jsonb_typeof(policy -> 'schedule_ms') <> 'array' THEN
    PERFORM latchkey.refuse('INVALID_ARGUMENT', 'the retry policy''s schedule_ms must be a list of milliseconds');
  END IF;
  FOR value IN SELECT * FROM jsonb_array_elements(coalesce(policy -> 'schedule_ms', '[]')) LOOP
    IF jsonb_typeof(value) <> 'number' OR value #>> '{}' !~ '^[0-9]{1,12}$' OR (value #>> '{}')::bigint > most[2] OR cardinality(fields) >= 71 THEN
      PERFORM latchkey.refuse('INVALID_ARGUMENT', 'the retry policy''s schedule_ms must be at most 64 whole numbers of milliseconds');
    END IF;
    fields := fields || (value #>> '{}')::bigint;
  END LOOP;
  IF fields = ARRAY[3, 1000, 5, 30000, 9223372036854775807, 0, 10] THEN RETURN NULL; END IF;
  IF fields[7:] = ARRAY[10::bigint] THEN fields := fields[:6]; END IF;
  RETURN (SELECT string_agg(latchkey.le8(f), '' ORDER BY at) FROM unnest(fields) WITH ORDINALITY AS u(f, at));
END $$;

-- The length as 8 bytes, then the bytes: parts hashed so cannot run into each other.
CREATE FUNCTION latchkey.prefixed(part bytea) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS
$$ SELECT int8send(length(part)::bigint) || part $$;
CREATE FUNCTION latchkey.half_hash(bytes bytea) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT AS
$$ SELECT encode(substr(sha256(bytes), 1, 16), 'hex')::uuid $$;

CREATE FUNCTION latchkey.make_request(function text, key text, guard text, input bytea, lease interval, window_span interval, on_doubt text,
  retries integer, retry_policy jsonb, fingerprint text, call_id uuid, caller text) RETURNS latchkey.request
LANGUAGE plpgsql STABLE AS $$
DECLARE
  ask latchkey.request;
  policy constant jsonb := coalesce(retry_policy, '{}') || CASE WHEN retries IS NULL THEN '{}' ELSE jsonb_build_object('retries', retries) END;
  call constant uuid := nullif(call_id, '00000000-0000-0000-0000-000000000000');  -- nil names no call, as elsewhere
  scope bytea;
BEGIN
  ask.tenant := latchkey.writing_tenant();
  IF coalesce(function, '') = '' THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', 'the function is missing'); END IF;
  PERFORM latchkey.check_text('function', function, 128);
  PERFORM latchkey.check_text('key', key, 512);
  PERFORM latchkey.check_text('caller', caller, 512);
  IF jsonb_typeof(policy) <> 'object' THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', 'the retry policy must be an object'); END IF;
  IF fingerprint !~ '^[0-9a-fA-F]{64}$' THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', 'fingerprint must be 64 hexadecimal digits'); END IF;
  ask.function := make_request.function;
  IF key = '' THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', 'key must not be empty'); END IF;
  ask.key := convert_to(make_request.key, 'UTF8');
  ask.guard := latchkey.place_of('guard', coalesce(make_request.guard, CASE WHEN ask.key IS NULL THEN 'none' ELSE 'once' END), 'none', 'once', 'while-running');
  IF ask.key IS NULL THEN ask.guard := 0; END IF;
  ask.on_doubt := latchkey.place_of('on_doubt', coalesce(make_request.on_doubt, 'rerun'), 'rerun', 'hold');
  ask.on_failed := 0;
  ask.priority := 0;
  ask.delay_ms := 0;
  ask.retry := latchkey.pack_retry(policy);
  ask.retries := latchkey.retry_field(ask.retry, 0);
  ask.lease_ms := coalesce(latchkey.span_ms(lease), 60000);
  PERFORM latchkey.check_span('lease', ask.lease_ms, 1000, 86400000);
  ask.window_ms := coalesce(latchkey.span_ms(window_span), 86400000);
  PERFORM latchkey.check_span('window_span', ask.window_ms, 0, 315619200000);
  ask.input := make_request.input;
  ask.caller := convert_to(coalesce(make_request.caller, session_user), 'UTF8');
  ask.call := call;
  -- Nothing guards it, but its call has a name.
  ask.by_call := ask.guard = 0 AND call IS NOT NULL;
  scope := latchkey.prefixed(convert_to(ask.tenant, 'UTF8')) || latchkey.prefixed(convert_to(ask.function, 'UTF8'));
  IF ask.by_call THEN
    ask.hash := latchkey.half_hash(scope || latchkey.prefixed('') || latchkey.prefixed(uuid_send(call)));
    ask.fingerprint := sha256(latchkey.prefixed(coalesce(ask.input, '')));
  ELSIF ask.guard <> 0 THEN
    ask.hash := latchkey.half_hash(scope || latchkey.prefixed(ask.key));
    IF ask.guard = 1 THEN ask.fingerprint := decode(make_request.fingerprint, 'hex'); END IF;
  END IF;
  RETURN ask;
END $$;

SELECT latchkey.seal_functions();
