-- What was asked by the functions for users' transactions (0007): who asks, whether it may be asked so, and all of it with its
-- defaults.

-- Every refusal: the SQLSTATE and the detail say which, the message why. Never about another tenant: what is foreign is not found.
CREATE FUNCTION latchkey.refuse(code text, why text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING MESSAGE = code || ': ' || why, DETAIL = code, ERRCODE = CASE code
    WHEN 'INVALID_ARGUMENT' THEN 'LK400' WHEN 'BODY_TOO_LARGE' THEN 'LK413' WHEN 'FORBIDDEN' THEN 'LK403' WHEN 'NOT_FOUND' THEN 'LK404'
    WHEN 'LEASE_LOST' THEN 'LK409' WHEN 'ALREADY_SETTLED' THEN 'LK410' WHEN 'MOVE_REFUSED' THEN 'LK411'
    WHEN 'PREDECESSOR_UNKNOWN' THEN 'LK422' WHEN 'STORE_UNAVAILABLE' THEN 'LK503' ELSE 'LK500' END;
END $$;

-- The tenant that the caller may write for.
CREATE FUNCTION latchkey.writing_tenant() RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  who constant record := latchkey.who_calls();
BEGIN
  -- By ltrim, as every claim comes this way and a regular expression takes ten times as long.
  IF who.acts_as IN ('service', 'org-admin') AND octet_length(who.tenant) BETWEEN 1 AND 128
      AND ltrim(who.tenant, 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-') = '' THEN
    RETURN who.tenant;
  END IF;
  IF who.tenant IS NULL THEN
    PERFORM latchkey.refuse('FORBIDDEN', 'no tenant: set app.current_tenant as a member of latchkey_service, or have the role bound in latchkey.tenant_roles');
  END IF;
  IF who.tenant !~ '^[A-Za-z0-9._-]{1,128}$' THEN
    PERFORM latchkey.refuse('INVALID_ARGUMENT', 'the tenant must be 1 to 128 of letters, digits, ''.'', ''_'' and ''-''');
  END IF;
  IF who.acts_as = 'viewer' THEN PERFORM latchkey.refuse('FORBIDDEN', 'a viewer only reads'); END IF;
  PERFORM latchkey.refuse('FORBIDDEN', 'app.current_actor is no member of the tenant');
END $$;

CREATE FUNCTION latchkey.check_text(name text, value text, bytes_max integer) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF octet_length(convert_to(value, 'UTF8')) > bytes_max THEN
    PERFORM latchkey.refuse('INVALID_ARGUMENT', format('%s has more than %s bytes', name, bytes_max));
  END IF;
  IF value ~ E'[\\x01-\\x1f\\x7f]' THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', format('%s has a control character', name)); END IF;
END $$;

-- Certainly without control characters: JSON writes it as it is. Quicker than a regular expression; what is not plain is asked by one.
CREATE FUNCTION latchkey.is_plain(value text) RETURNS boolean LANGUAGE sql STABLE AS
$$ SELECT octet_length(to_json(value)::text) = octet_length(value) + 2 AND strpos(value, chr(127)) = 0 $$;

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

-- Refuses what cannot be asked.
CREATE FUNCTION latchkey.check_request(function text, key text, guard text, lease_ms bigint, window_ms bigint, on_doubt text,
  retry_policy jsonb, fingerprint text, caller text) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF coalesce(function, '') = '' THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', 'the function is missing'); END IF;
  PERFORM latchkey.check_text('function', function, 128);
  PERFORM latchkey.check_text('key', key, 512);
  PERFORM latchkey.check_text('caller', caller, 512);
  IF jsonb_typeof(retry_policy) <> 'object' THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', 'the retry policy must be an object'); END IF;
  IF fingerprint !~ '^[0-9a-fA-F]{64}$' THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', 'fingerprint must be 64 hexadecimal digits'); END IF;
  IF key = '' THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', 'key must not be empty'); END IF;
  PERFORM latchkey.place_of('guard', guard, 'none', 'once', 'while-running');
  PERFORM latchkey.place_of('on_doubt', on_doubt, 'rerun', 'hold');
  PERFORM latchkey.check_span('lease', lease_ms, 1000, 86400000);
  PERFORM latchkey.check_span('window_span', window_ms, 0, 315619200000);
END $$;

-- What was asked, with its defaults. Every claim passes here and every expression costs it: what most ask is seen to be in order
-- at one look, and only what is not is looked at closely.
CREATE FUNCTION latchkey.make_request(function text, key text, guard text, input bytea, lease interval, window_span interval, on_doubt text,
  retries integer, retry_policy jsonb, fingerprint text, call_id uuid, caller text) RETURNS latchkey.request
LANGUAGE plpgsql STABLE AS $$
DECLARE
  of_tenant constant text := latchkey.writing_tenant();
  call constant uuid := nullif(call_id, '00000000-0000-0000-0000-000000000000');  -- nil names no call, as elsewhere
  key_bytes constant bytea := convert_to(key, 'UTF8');
  lease_ms constant bigint := coalesce(latchkey.span_ms(lease), 60000);
  window_ms constant bigint := coalesce(latchkey.span_ms(window_span), 86400000);
  guards integer;
  by_call boolean;                -- nothing guards it, but its call has a name
  scope bytea;
  retry bytea;
BEGIN
  guard := coalesce(guard, CASE WHEN key IS NULL THEN 'none' ELSE 'once' END);
  on_doubt := coalesce(on_doubt, 'rerun');
  IF NOT coalesce(octet_length(function) BETWEEN 1 AND 128 AND octet_length(coalesce(key, '-')) BETWEEN 1 AND 512 AND caller IS NULL
      AND latchkey.is_plain(function || coalesce(key, '')) AND guard IN ('none', 'once', 'while-running') AND on_doubt IN ('rerun', 'hold')
      AND lease_ms BETWEEN 1000 AND 86400000 AND window_ms BETWEEN 0 AND 315619200000 AND retry_policy IS NULL AND fingerprint IS NULL, false) THEN
    PERFORM latchkey.check_request(function, key, guard, lease_ms, window_ms, on_doubt, retry_policy, fingerprint, caller);
  END IF;
  IF retries IS NOT NULL OR retry_policy IS NOT NULL THEN
    retry := latchkey.pack_retry(coalesce(retry_policy, '{}')
      || CASE WHEN retries IS NULL THEN '{}' ELSE jsonb_build_object('retries', retries) END);
  END IF;
  guards := CASE WHEN key IS NULL OR guard = 'none' THEN 0 WHEN guard = 'once' THEN 1 ELSE 2 END;
  by_call := guards = 0 AND call IS NOT NULL;
  scope := latchkey.prefixed(convert_to(of_tenant, 'UTF8')) || latchkey.prefixed(convert_to(function, 'UTF8'));
  RETURN (of_tenant, function, key_bytes,
    CASE WHEN by_call THEN latchkey.half_hash(scope || latchkey.prefixed('') || latchkey.prefixed(uuid_send(call)))
         WHEN guards <> 0 THEN latchkey.half_hash(scope || latchkey.prefixed(key_bytes)) END,
    by_call, guards, CASE on_doubt WHEN 'hold' THEN 1 ELSE 0 END, 0, 0,
    CASE WHEN by_call THEN sha256(latchkey.prefixed(coalesce(input, ''))) WHEN guards = 1 THEN decode(fingerprint, 'hex') END,
    CASE WHEN retry IS NULL THEN 3 ELSE latchkey.retry_field(retry, 0) END, retry, window_ms, lease_ms, 0,
    input, convert_to(coalesce(caller, session_user), 'UTF8'), call)::latchkey.request;
END $$;

SELECT latchkey.seal_functions();
