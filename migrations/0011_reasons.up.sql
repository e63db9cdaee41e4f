-- The reasons of failures in plain words, as model/endings.cpp has them. Stored reasons do not change.
CREATE OR REPLACE FUNCTION latchkey.give_up(s latchkey.states, code text, effect integer, now bigint) RETURNS latchkey.states
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  s := latchkey.with_state(s, 4, now, 0, code, effect);
  IF coalesce(s.last_error, '') = '' THEN
    s.last_error := convert_to(CASE code WHEN 'PREDECESSOR_FAILED' THEN 'a predecessor of the run did not complete'
      ELSE 'the lease expired without a result' END, 'UTF8');
  END IF;
  RETURN s;
END $$;

CREATE OR REPLACE FUNCTION latchkey.give_up_queued(s latchkey.states, now bigint) RETURNS latchkey.states
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  why constant text := CASE s.flags
    WHEN 2 THEN 'the last attempt was released, and the run was not claimed again within 24 h'
    WHEN 4 THEN 'the run was opened again, and was not claimed within 24 h' END;
BEGIN
  IF s.flags IN (3, 5) THEN RETURN latchkey.give_up(s, 'OUTCOME_UNKNOWN', 1, now); END IF;
  IF why IS NOT NULL THEN
    s.last_error := convert_to(why, 'UTF8');
    s.last_error_code := NULL;
  ELSIF coalesce(s.last_error, '') = '' THEN
    s.last_error := convert_to('the last attempt failed, and no further attempt started in time', 'UTF8');
  END IF;
  RETURN latchkey.give_up(s, 'MAX_RETRIES_EXCEEDED', 0, now);
END $$;

CREATE OR REPLACE FUNCTION latchkey.keep_error(message bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  cut integer := 65536 - 64;
BEGIN
  IF coalesce(length(message), 0) <= 65536 THEN RETURN message; END IF;
  FOR back IN 0 .. 3 LOOP
    IF get_byte(message, cut - back) & 192 <> 128 THEN
      cut := cut - back;
      EXIT;
    END IF;
  END LOOP;
  RETURN substr(message, 1, cut) || convert_to(format(E'\n… (%s more bytes were not stored)', length(message) - cut), 'UTF8');
END $$;
