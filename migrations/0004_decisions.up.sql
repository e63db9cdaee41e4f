-- The state machine of src/model/decide_*.cpp, for the functions that users call in their own transactions. Pure: a run's
-- head, its state, what was asked and the instant go in, the next state comes out. Names are the model's; a test compares
-- the two on random runs. PL/pgSQL where an SQL function would not be inlined, and be planned anew in every transaction.
--
-- status      0 queued, 1 running, 2 in doubt, 3 completed, 4 failed, 5 cancelled
-- guard       0 none, 1 once, 2 while-running
-- origin      0 claimed, 1 enqueued
-- flags       queued: 0 enqueue, 1 failed try, 2 release, 3 lease end, 4 reopen, 5 doubtful try
--             running: 1 cancel was asked, 2 a worker took it

-- What a claim or an enqueue asks for, with all defaults filled in.
CREATE TYPE latchkey.request AS (
  tenant text, function text, key bytea, hash uuid, by_call boolean, guard integer, on_doubt integer, on_failed integer,
  priority integer, fingerprint bytea, retries bigint, retry bytea, window_ms bigint, lease_ms bigint, delay_ms bigint,
  input bytea, caller bytea, call uuid
);
-- What is to be done: `ended` must first be recorded, where time had ended the run unseen; `next` is written after it.
-- A member whose seq is NULL is not there.
CREATE TYPE latchkey.decision AS (
  answer text,                    -- new, again, won_before, replay, busy, not_due, doubted, mismatch, duplicate, own, reopen
  code text,
  retry_after_ms bigint,
  ended latchkey.states,
  next latchkey.states
);

CREATE FUNCTION latchkey.guard_of(r latchkey.runs) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT r.traits & 3 $$;
CREATE FUNCTION latchkey.holds(r latchkey.runs) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT r.traits & 4 <> 0 $$;
CREATE FUNCTION latchkey.on_failed_of(r latchkey.runs) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT (r.traits >> 3) & 3 $$;
CREATE FUNCTION latchkey.made_by_latchkey(r latchkey.runs) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT r.traits & 32 <> 0 $$;
CREATE FUNCTION latchkey.is_by_call(r latchkey.runs) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT r.traits & 64 <> 0 $$;

-- No instant that is kept lies after the year 9999.
CREATE FUNCTION latchkey.add_capped(at bigint, span bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF span >= 253402300799999 - at THEN RETURN 253402300799999; END IF;
  RETURN at + greatest(span, 0);
END $$;

-- The retry policy: little-endian numbers of eight bytes (see store/packing.cpp). NULL is the default one.
CREATE FUNCTION latchkey.le8(value bigint) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS
$$ SELECT string_agg(substr(int8send(value), 9 - i, 1), '' ORDER BY i) FROM generate_series(1, 8) i $$;
CREATE FUNCTION latchkey.retry_field(retry bytea, number integer) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  bytes bytea;
  field bigint := 0;
BEGIN
  IF retry IS NULL OR length(retry) < greatest(number * 8 + 8, 48) THEN
    RETURN (ARRAY[3, 1000, 5, 30000, 9223372036854775807, 0, 10])[number + 1];
  END IF;
  bytes := substr(retry, number * 8 + 1, 8);
  FOR i IN REVERSE 7 .. 0 LOOP
    field := (field << 8) | get_byte(bytes, i);
  END LOOP;
  RETURN field;
END $$;

-- The delay after failed try number `failures`, before any jitter.
CREATE FUNCTION latchkey.plain_delay(retry bytea, failures integer) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  scheduled constant integer := greatest(coalesce(length(retry), 0) / 8 - 7, 0);
  ceiling constant bigint := latchkey.retry_field(retry, 3);
  factor constant bigint := latchkey.retry_field(retry, 2);
  delay bigint := least(latchkey.retry_field(retry, 1), ceiling);
BEGIN
  IF scheduled > 0 THEN RETURN latchkey.retry_field(retry, 6 + least(failures, scheduled)); END IF;
  IF factor = 0 AND failures > 1 THEN RETURN 0; END IF;
  FOR i IN 2 .. failures LOOP
    EXIT WHEN factor <= 1 OR delay = 0 OR delay >= ceiling;
    delay := CASE WHEN delay > ceiling / factor THEN ceiling ELSE delay * factor END;
  END LOOP;
  RETURN least(delay, ceiling);
END $$;

-- With jitter: `roll` in [0, 1) is the caller's draw. A decorrelated walk draws its earlier steps itself.
CREATE FUNCTION latchkey.delay_after(retry bytea, failures integer, roll double precision) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  plain constant bigint := latchkey.plain_delay(retry, failures);
  scheduled constant integer := greatest(coalesce(length(retry), 0) / 8 - 7, 0);
  first bigint := least(latchkey.retry_field(retry, 1), latchkey.retry_field(retry, 3));
  ceiling bigint := latchkey.retry_field(retry, 3);
  most bigint;
BEGIN
  IF scheduled > 0 THEN
    first := latchkey.retry_field(retry, 7);
    SELECT max(latchkey.retry_field(retry, 6 + i)) INTO ceiling FROM generate_series(1, scheduled) i;
  END IF;
  CASE latchkey.retry_field(retry, 5)
    WHEN 1 THEN RETURN trunc(plain * roll)::bigint;
    WHEN 2 THEN RETURN plain / 2 + trunc((plain - plain / 2) * roll)::bigint;
    WHEN 3 THEN RETURN least(plain + trunc(first * roll)::bigint, greatest(plain, ceiling));
    WHEN 4 THEN
      most := first;
      FOR i IN 1 .. least(failures, 64) LOOP
        most := least(first + trunc(greatest(least(most * 3, ceiling) - first, 0) * roll)::bigint, ceiling);
        roll := random();
      END LOOP;
      RETURN most;
    WHEN 5 THEN
      most := plain * least(latchkey.retry_field(retry, 6), 100) / 100;
      RETURN least(plain - most + trunc(2 * most * roll)::bigint, greatest(plain, ceiling));
    ELSE RETURN plain;
  END CASE;
END $$;

-- The state with another status; what only the old status had is gone.
CREATE FUNCTION latchkey.with_state(s latchkey.states, status integer, at bigint, flags integer DEFAULT 0, code text DEFAULT NULL,
                                    effect integer DEFAULT 0, result bytea DEFAULT NULL) RETURNS latchkey.states
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  s.status := with_state.status;
  s.at := with_state.at;
  s.flags := with_state.flags;
  s.code := with_state.code;
  s.effect := with_state.effect;
  s.result := with_state.result;
  s.lease_until := NULL;
  s.owner_lease_ms := NULL;
  s.owner := NULL;
  RETURN s;
END $$;

-- A worker's or a caller's next try.
CREATE FUNCTION latchkey.owned(s latchkey.states, fence bigint, call uuid, lease_ms bigint, now bigint) RETURNS latchkey.states
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF fence <= s.fence THEN
    RAISE EXCEPTION 'INTERNAL: the sequence of fences has fallen behind the fences that were given' USING ERRCODE = 'LK500', DETAIL = 'INTERNAL';
  END IF;
  s := latchkey.with_state(s, 1, now);
  s.attempt := s.attempt + 1;
  s.attempts_total := s.attempts_total + 1;
  s.fence := owned.fence;
  IF s.attempt = 1 THEN s.first_attempt_at := now; END IF;
  s.lease_until := latchkey.add_capped(now, owned.lease_ms);
  s.owner_lease_ms := owned.lease_ms;
  s.owner := owned.call;
  RETURN s;
END $$;

CREATE FUNCTION latchkey.may_try_again(r latchkey.runs, s latchkey.states, at bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT s.attempt < s.attempts_max AND at - s.first_attempt_at <= latchkey.retry_field(r.retry, 4) $$;

-- From when on no retry of this generation may start; NULL: there is no such time.
CREATE FUNCTION latchkey.retries_end(retry bytea, first_attempt_at bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  total bigint;
BEGIN
  IF retry IS NULL THEN RETURN NULL; END IF;
  total := latchkey.retry_field(retry, 4);
  IF total = 9223372036854775807 THEN RETURN NULL; END IF;
  RETURN latchkey.add_capped(latchkey.add_capped(first_attempt_at, total), 1);
END $$;

-- A claimed run that may run again stays as it is after its lease: its caller's late word is still the truth.
CREATE FUNCTION latchkey.waits_for_caller(r latchkey.runs, s latchkey.states) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT s.status = 1 AND s.origin = 0 AND NOT latchkey.holds(r) AND s.flags & 1 = 0 AND s.attempt < s.attempts_max $$;

-- When time alone changes it. 86400000: how long a run waits for its caller.
CREATE FUNCTION latchkey.next_deadline(r latchkey.runs, s latchkey.states) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  deadline bigint;
BEGIN
  IF s.status >= 2 THEN RETURN NULL; END IF;
  IF s.status = 1 THEN
    IF NOT latchkey.waits_for_caller(r, s) THEN RETURN s.lease_until; END IF;
    RETURN greatest(s.lease_until, least(s.lease_until + 86400000, latchkey.retries_end(r.retry, s.first_attempt_at)));
  END IF;
  IF s.origin = 0 THEN deadline := s.at + 86400000; END IF;
  IF s.flags IN (1, 3, 5) THEN deadline := least(deadline, latchkey.retries_end(r.retry, s.first_attempt_at)); END IF;
  RETURN deadline;
END $$;

-- Failed for good; whoever writes it writes its dead letter too.
CREATE FUNCTION latchkey.give_up(s latchkey.states, code text, effect integer, now bigint) RETURNS latchkey.states
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  s := latchkey.with_state(s, 4, now, 0, code, effect);
  IF coalesce(s.last_error, '') = '' THEN
    s.last_error := convert_to(CASE code WHEN 'PREDECESSOR_FAILED' THEN 'a predecessor of the run did not complete'
      ELSE 'the lease expired without a result' END, 'UTF8');
  END IF;
  RETURN s;
END $$;

CREATE FUNCTION latchkey.give_up_queued(s latchkey.states, now bigint) RETURNS latchkey.states
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

CREATE FUNCTION latchkey.end_lease(r latchkey.runs, s latchkey.states, now bigint) RETURNS latchkey.states
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF s.flags & 1 <> 0 THEN RETURN latchkey.with_state(s, 5, now, 0, 'CANCELLED', 1); END IF;
  IF latchkey.holds(r) THEN RETURN latchkey.with_state(s, 2, now); END IF;
  IF latchkey.may_try_again(r, s, now) THEN RETURN latchkey.with_state(s, 0, now, 3); END IF;
  RETURN latchkey.give_up(s, 'OUTCOME_UNKNOWN', 1, now);
END $$;

-- What the passing of time makes of a run; NULL when nothing is due.
CREATE FUNCTION latchkey.decide_deadline(r latchkey.runs, s latchkey.states, now bigint) RETURNS latchkey.states
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  deadline constant bigint := latchkey.next_deadline(r, s);
BEGIN
  IF deadline IS NULL OR now < deadline THEN RETURN NULL; END IF;
  IF s.status = 0 THEN RETURN latchkey.give_up_queued(s, now); END IF;
  IF latchkey.waits_for_caller(r, s) THEN RETURN latchkey.give_up(s, 'OUTCOME_UNKNOWN', 1, now); END IF;
  RETURN latchkey.end_lease(r, s, now);
END $$;

-- A new generation, queued and due now: attempts from 0, the fence goes on.
CREATE FUNCTION latchkey.reopened(s latchkey.states, origin integer, retries bigint, now bigint) RETURNS latchkey.states
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  s := latchkey.with_state(s, 0, now, 4);
  s.origin := reopened.origin;
  s.generation := s.generation + 1;
  s.opened_by := NULL;
  s.attempt := 0;
  s.attempts_max := reopened.retries + 1;
  s.failures := 0;
  s.first_attempt_at := 0;
  s.waiting_for := 0;
  RETURN s;
END $$;

CREATE FUNCTION latchkey.in_window(r latchkey.runs, s latchkey.states, now bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT s.status = 3 AND latchkey.guard_of(r) = 1 AND now - s.at < r.window_ms $$;

CREATE FUNCTION latchkey.is_free(r latchkey.runs, s latchkey.states, now bigint) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE
    WHEN s.status = 5 THEN true
    WHEN s.status <= 2 OR latchkey.is_by_call(r) THEN false
    WHEN latchkey.guard_of(r) <> 1 THEN true
    ELSE s.status = 3 AND NOT latchkey.in_window(r, s, now) END
$$;

CREATE FUNCTION latchkey.is_mismatch(r latchkey.runs, fingerprint bytea) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT coalesce(latchkey.guard_of(r) = 1 AND r.fingerprint <> is_mismatch.fingerprint, false) $$;

-- Its effect may have happened, and the run or whoever asks now wants a person to decide.
CREATE FUNCTION latchkey.is_held(r latchkey.runs, s latchkey.states, on_doubt integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT s.status = 2 OR (s.status = 4 AND s.effect = 1 AND (latchkey.holds(r) OR on_doubt = 1)) $$;

-- Of a key that has a run. `again`: next is to be owned by the caller, with the fence that is drawn then.
CREATE FUNCTION latchkey.decide_claim(r latchkey.runs, s latchkey.states, ask latchkey.request, now bigint) RETURNS latchkey.decision
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  ended constant latchkey.states := latchkey.decide_deadline(r, s, now);
  none constant latchkey.states := NULL;
BEGIN
  IF ended.seq IS NOT NULL THEN s := ended; END IF;  -- time first
  IF latchkey.made_by_latchkey(r) AND s.status >= 3 THEN
    IF s.status = 3 THEN RETURN ('replay', NULL, NULL, none, none)::latchkey.decision; END IF;
    RETURN ('busy', 'MOVE_REFUSED', 0, none, none)::latchkey.decision;
  END IF;
  IF latchkey.is_free(r, s, now) THEN RETURN ('new', NULL, NULL, ended, none)::latchkey.decision; END IF;
  IF latchkey.is_mismatch(r, ask.fingerprint) THEN RETURN ('mismatch', 'KEY_REUSED', NULL, none, none)::latchkey.decision; END IF;
  IF latchkey.is_held(r, s, ask.on_doubt) THEN RETURN ('doubted', 'OUTCOME_UNKNOWN', NULL, ended, none)::latchkey.decision; END IF;
  IF s.status = 3 THEN RETURN ('replay', NULL, NULL, none, none)::latchkey.decision; END IF;
  IF s.status = 4 THEN
    RETURN ('again', NULL, NULL, ended, latchkey.reopened(s, 0, ask.retries, now))::latchkey.decision;
  END IF;
  IF s.status = 0 THEN
    IF s.origin = 1 THEN RETURN ('busy', 'ALREADY_QUEUED', 1000, ended, none)::latchkey.decision; END IF;
    IF now < s.at THEN RETURN ('not_due', 'NOT_DUE', s.at - now, none, none)::latchkey.decision; END IF;
    RETURN ('again', NULL, NULL, none, s)::latchkey.decision;
  END IF;
  IF now >= s.lease_until THEN RETURN ('again', NULL, NULL, none, s)::latchkey.decision; END IF;
  -- The same call: its reply was lost.
  IF s.flags & 2 = 0 AND s.owner = ask.call THEN RETURN ('won_before', NULL, NULL, none, none)::latchkey.decision; END IF;
  RETURN ('busy', 'ALREADY_RUNNING', s.lease_until - now, none, none)::latchkey.decision;
END $$;

-- Of a key that has a run. `own`: this very call made it, or opened it.
CREATE FUNCTION latchkey.decide_enqueue(r latchkey.runs, s latchkey.states, ask latchkey.request, now bigint) RETURNS latchkey.decision
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  ended constant latchkey.states := latchkey.decide_deadline(r, s, now);
  none constant latchkey.states := NULL;
  next latchkey.states;
BEGIN
  IF ended.seq IS NOT NULL THEN s := ended; END IF;
  IF ask.call IN (r.claim, s.opened_by) THEN RETURN ('own', NULL, NULL, ended, none)::latchkey.decision; END IF;
  IF latchkey.is_free(r, s, now) AND NOT latchkey.made_by_latchkey(r) THEN
    RETURN ('new', NULL, NULL, ended, none)::latchkey.decision;
  END IF;
  IF latchkey.is_mismatch(r, ask.fingerprint) THEN RETURN ('mismatch', 'KEY_REUSED', NULL, none, none)::latchkey.decision; END IF;
  IF s.status = 4 AND NOT latchkey.made_by_latchkey(r) AND NOT latchkey.is_held(r, s, ask.on_doubt) THEN
    next := latchkey.reopened(s, 1, ask.retries, now);
    next.at := latchkey.add_capped(now, ask.delay_ms);
    next.opened_by := ask.call;
    RETURN ('reopen', NULL, NULL, ended, next)::latchkey.decision;
  END IF;
  RETURN ('duplicate', NULL, NULL, ended, none)::latchkey.decision;
END $$;

-- A predecessor ended: the run as it is afterwards; NULL when it does not change.
CREATE FUNCTION latchkey.decide_predecessor(r latchkey.runs, s latchkey.states, ended_as integer, now bigint) RETURNS latchkey.states
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF s.status <> 0 OR s.waiting_for = 0 OR ended_as <= 2 THEN RETURN NULL; END IF;
  IF ended_as = 3 OR latchkey.on_failed_of(r) = 2 THEN
    s.waiting_for := s.waiting_for - 1;
    RETURN s;
  END IF;
  CASE latchkey.on_failed_of(r)
    WHEN 1 THEN RETURN latchkey.with_state(s, 5, now, 0, 'PREDECESSOR_FAILED');
    WHEN 3 THEN RETURN latchkey.give_up(s, 'PREDECESSOR_FAILED', 0, now);
    ELSE RETURN NULL;
  END CASE;
END $$;

-- A settlement that is refused (code LEASE_LOST or ALREADY_SETTLED), repeated (`same`), or what becomes of the run (`next`).
CREATE FUNCTION latchkey.refuse_settle(s latchkey.states, fence bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN fence IS DISTINCT FROM s.fence OR fence = 0 THEN 'LEASE_LOST'
              WHEN s.status >= 3 THEN 'ALREADY_SETTLED'
              WHEN s.status = 0 THEN 'LEASE_LOST' END
$$;

CREATE FUNCTION latchkey.decide_complete(s latchkey.states, fence bigint, result bytea, now bigint) RETURNS latchkey.decision
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  none constant latchkey.states := NULL;
  refused constant text := latchkey.refuse_settle(s, fence);
BEGIN
  IF s.fence = decide_complete.fence AND fence > 0 AND s.status = 3 THEN RETURN ('same', NULL, NULL, none, none)::latchkey.decision; END IF;
  IF refused IS NOT NULL THEN RETURN ('refused', refused, NULL, none, none)::latchkey.decision; END IF;
  RETURN ('next', NULL, NULL, none, latchkey.with_state(s, 3, now, 0, NULL, 0, nullif(result, '')))::latchkey.decision;
END $$;

CREATE TYPE latchkey.failure AS (message bytea, code bytea, retryable boolean, outcome_unknown boolean, retry_after_ms bigint);

-- What is kept of a message: all of it, or its first 64 KiB, whole characters, with a last line that says how much is missing.
CREATE FUNCTION latchkey.keep_error(message bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
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

CREATE FUNCTION latchkey.fail_try(r latchkey.runs, s latchkey.states, how latchkey.failure, roll double precision, now bigint)
RETURNS latchkey.states LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  failed_tries constant integer := least(s.failures + 1, s.attempt);  -- one in doubt may be told of twice
  due bigint;
BEGIN
  s.last_error := latchkey.keep_error(how.message);
  s.last_error_code := how.code;
  IF how.outcome_unknown AND latchkey.holds(r) THEN
    s.failures := failed_tries;
    RETURN latchkey.with_state(s, 2, CASE s.status WHEN 2 THEN s.at ELSE now END);
  END IF;
  IF NOT how.retryable AND NOT how.outcome_unknown THEN RETURN latchkey.give_up(s, 'EXECUTION_ERROR', 0, now); END IF;
  due := latchkey.add_capped(now, greatest(latchkey.delay_after(r.retry, failed_tries, roll),
                                           CASE WHEN how.retry_after_ms < 86400000 THEN how.retry_after_ms
                                                WHEN how.retry_after_ms IS NOT NULL THEN 86400000 END));
  IF NOT latchkey.may_try_again(r, s, due) THEN
    IF how.outcome_unknown THEN RETURN latchkey.give_up(s, 'OUTCOME_UNKNOWN', 1, now); END IF;
    RETURN latchkey.give_up(s, 'MAX_RETRIES_EXCEEDED', 0, now);
  END IF;
  s.failures := failed_tries;
  RETURN latchkey.with_state(s, 0, due, CASE WHEN how.outcome_unknown THEN 5 ELSE 1 END);
END $$;

CREATE FUNCTION latchkey.decide_fail(r latchkey.runs, s latchkey.states, fence bigint, how latchkey.failure, roll double precision, now bigint)
RETURNS latchkey.decision LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  none constant latchkey.states := NULL;
  refused constant text := latchkey.refuse_settle(s, fence);
  is_repeat constant boolean := CASE s.status
    WHEN 0 THEN s.flags IN (1, 5)
    WHEN 2 THEN how.outcome_unknown AND latchkey.holds(r) AND coalesce(latchkey.keep_error(how.message), '') = coalesce(s.last_error, '')
                AND coalesce(how.code, '') = coalesce(s.last_error_code, '')
    ELSE s.status IN (4, 5) END;
BEGIN
  IF s.fence = decide_fail.fence AND fence > 0 AND is_repeat THEN RETURN ('same', NULL, NULL, none, none)::latchkey.decision; END IF;
  IF refused IS NOT NULL THEN RETURN ('refused', refused, NULL, none, none)::latchkey.decision; END IF;
  IF s.status = 1 AND s.flags & 1 <> 0 THEN
    RETURN ('next', NULL, NULL, none, latchkey.with_state(s, 5, now, 0, 'CANCELLED', how.outcome_unknown::integer))::latchkey.decision;
  END IF;
  RETURN ('next', NULL, NULL, none, latchkey.fail_try(r, s, how, roll, now))::latchkey.decision;
END $$;

SELECT latchkey.seal_functions();
