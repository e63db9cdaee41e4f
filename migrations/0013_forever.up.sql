-- A window without an end: a span of '1000 years' or more is stored as 1000 years and means forever (model/window.hpp).
-- The control characters U+0080 to U+009F are refused, as over HTTP (engine/validate.cpp): check_text() finds them, so is_plain() is
-- true only for ASCII.
CREATE OR REPLACE FUNCTION latchkey.check_text(name text, value text, bytes_max integer) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF octet_length(convert_to(value, 'UTF8')) > bytes_max THEN
    PERFORM latchkey.refuse('INVALID_ARGUMENT', format('%s has more than %s bytes', name, bytes_max));
  END IF;
  IF value ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', format('%s has a control character', name)); END IF;
END $$;

CREATE OR REPLACE FUNCTION latchkey.is_plain(value text) RETURNS boolean LANGUAGE sql STABLE AS
$$ SELECT octet_length(to_json(value)::text) = octet_length(value) + 2 AND strpos(value, chr(127)) = 0
  AND octet_length(convert_to(value, 'UTF8')) = length(value) $$;

CREATE OR REPLACE FUNCTION latchkey.check_request(function text, key text, guard text, lease_ms bigint, window_ms bigint, on_doubt text,
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
  IF window_ms <> 31557600000000 THEN PERFORM latchkey.check_span('window_span', window_ms, 0, 315619200000); END IF;
END $$;

CREATE OR REPLACE FUNCTION latchkey.make_request(function text, key text, guard text, input bytea, lease interval, window_span interval, on_doubt text,
  retries integer, retry_policy jsonb, fingerprint text, call_id uuid, caller text) RETURNS latchkey.request
LANGUAGE plpgsql STABLE AS $$
DECLARE
  of_tenant constant text := latchkey.writing_tenant();
  call constant uuid := nullif(call_id, '00000000-0000-0000-0000-000000000000');  -- nil names no call, as elsewhere
  key_bytes constant bytea := convert_to(key, 'UTF8');
  lease_ms constant bigint := coalesce(latchkey.span_ms(lease), 60000);
  window_ms constant bigint := least(coalesce(latchkey.span_ms(window_span), 86400000), 31557600000000);
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
