-- Runs in the user's own transaction, from any language: an effect and its settlement commit together or not at all. They act
-- for the caller's tenant (see 0002), and run as the engine because they write what the caller may not. docs/sql.md tells how
-- they are used; 0004 decides, 0005 reads what was asked, 0006 writes.

-- What begin_run answers.
CREATE TYPE latchkey.begun AS (
  status text,                    -- won; replayed; busy, not_due, in_doubt, mismatch: refused, and `code` says why
  code text,                      -- as over HTTP: ALREADY_RUNNING, ALREADY_QUEUED, NOT_DUE, OUTCOME_UNKNOWN, KEY_REUSED, MOVE_REFUSED
  message text,
  run uuid,                       -- the run that was won, or the one that stands in the way
  fence bigint,                   -- won: with which to settle
  lease_until timestamptz,        -- won
  effect_key uuid,                -- won: the same on every try
  attempt integer,
  generation integer,
  retry_after interval,           -- where asking again helps
  result bytea,                   -- replayed: as it was given
  result_text text,               -- replayed: as text
  repeated boolean                -- won before, by the very same call
);
CREATE TYPE latchkey.enqueued AS (status text, code text, run uuid, duplicate boolean);  -- status: enqueued, duplicate, mismatch
CREATE TYPE latchkey.settled AS (run uuid, status text, changed boolean, result bytea, result_text text, retry_at timestamptz, dead_letter uuid);
CREATE TYPE latchkey.extended AS (lease_until timestamptz, cancel boolean);

CREATE FUNCTION latchkey.describe_claim(d latchkey.decision, r latchkey.runs, s latchkey.states, busy_code text) RETURNS latchkey.begun
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  a latchkey.begun;
BEGIN
  a.status := CASE d.answer WHEN 'again' THEN 'won' WHEN 'won_before' THEN 'won' WHEN 'replay' THEN 'replayed'
    WHEN 'doubted' THEN 'in_doubt' ELSE d.answer END;
  a.code := CASE d.code WHEN 'ALREADY_RUNNING' THEN coalesce(busy_code, d.code) ELSE d.code END;
  a.message := CASE d.code
    WHEN 'ALREADY_RUNNING' THEN 'the key is held by a run whose lease is good'
    WHEN 'ALREADY_QUEUED' THEN 'the key''s run is queued and waits for a worker'
    WHEN 'NOT_DUE' THEN 'the run waits for its next try'
    WHEN 'OUTCOME_UNKNOWN' THEN 'the last try may have had its effect: a person decides'
    WHEN 'KEY_REUSED' THEN 'the key was used before with another request'
    WHEN 'MOVE_REFUSED' THEN 'only a person opens this run again' END;
  a.run := r.id;
  IF d.answer = 'mismatch' THEN RETURN a; END IF;
  a.attempt := s.attempt;
  a.generation := s.generation;
  a.retry_after := nullif(d.retry_after_ms, 0) * interval '1 millisecond';
  IF a.status = 'won' THEN
    a.fence := s.fence;
    a.lease_until := latchkey.as_time(s.lease_until);
    a.effect_key := coalesce(s.effect_key, r.id);
    a.repeated := d.answer = 'won_before';
  ELSIF a.status = 'replayed' THEN
    a.result := coalesce(s.result, '');
    a.result_text := latchkey.as_text(a.result);
  END IF;
  RETURN a;
END $$;

-- A new run, claimed: its head and its first try, under the key that is held. All that `owned` and `next_deadline` would make of it,
-- written straight away: this is what every guard waits for.
CREATE FUNCTION latchkey.start_claimed(ask latchkey.request, of_seq bigint) RETURNS latchkey.begun LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  now constant bigint := latchkey.store_now();
  new_fence constant bigint := latchkey.draw_fence();
  leased_until constant bigint := latchkey.add_capped(now, ask.lease_ms);
  id uuid;
BEGIN
  id := latchkey.insert_run(ask, of_seq, now);
  INSERT INTO latchkey.states (seq, tenant, function, priority, status, origin, generation, attempt, attempts_max, attempts_total, fence,
    first_attempt_at, waiting_for, failures, at, lease_until, owner_lease_ms, flags, owner, effect, deadline)
  VALUES (of_seq, ask.tenant, ask.function, ask.priority, 1, 0, 1, 1, ask.retries + 1, 1, new_fence, now, 0, 0, now, leased_until, ask.lease_ms, 0,
    ask.call, 0, CASE WHEN ask.on_doubt = 1 OR ask.retries = 0 THEN leased_until
      ELSE greatest(leased_until, least(leased_until + 86400000, latchkey.retries_end(ask.retry, now))) END);
  RETURN ('won', NULL, NULL, id, new_fence, latchkey.as_time(leased_until), id, 1, 1, NULL, NULL, NULL, false)::latchkey.begun;
END $$;

-- Claims a key that has a run, or had one.
CREATE FUNCTION latchkey.claim_again(ask latchkey.request, busy_code text) RETURNS latchkey.begun LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  d latchkey.decision;
  held record;
  r latchkey.runs;
  s latchkey.states;
  now bigint;
BEGIN
  -- A replay waits for nobody and holds nothing: until its window is over, a completed run stays as it is.
  SELECT k.seq INTO held FROM latchkey.keys k WHERE k.hash = ask.hash;
  IF FOUND AND NOT ask.by_call THEN
    r := latchkey.run_of_key(ask, held.seq);
    s := latchkey.peek_state(held.seq);
    d := latchkey.decide_claim(r, s, ask, latchkey.store_now());
    IF s.status = 3 AND d.answer = 'replay' THEN RETURN latchkey.describe_claim(d, r, s, busy_code); END IF;
    r := NULL;
  END IF;
  SELECT * INTO held FROM latchkey.hold_key(ask.hash, ask.tenant);
  IF NOT held.is_new THEN r := latchkey.run_of_key(ask, held.seq); END IF;
  IF r.seq IS NOT NULL THEN
    IF ask.by_call AND r.fingerprint IS DISTINCT FROM ask.fingerprint THEN
      RETURN latchkey.describe_claim(('mismatch', 'KEY_REUSED', NULL, NULL, NULL), r, s, busy_code);
    END IF;
    PERFORM latchkey.check_snapshot(held.seq);
    s := latchkey.peek_state(held.seq);
    d := latchkey.decide_claim(r, s, ask, latchkey.store_now());
    -- A refusal takes no run out of its block, which would hold up others until this transaction ends: the sweeper records it.
    IF d.answer IN ('new', 'again') OR ((d.ended).seq IS NOT NULL AND EXISTS (SELECT FROM latchkey.states t WHERE t.seq = held.seq)) THEN
      s := latchkey.lock_state(held.seq);
      now := latchkey.store_now();
      d := latchkey.decide_claim(r, s, ask, now);
      IF (d.ended).seq IS NOT NULL THEN PERFORM latchkey.write_state(r, s, d.ended, now); END IF;
      IF d.answer = 'again' THEN
        s := latchkey.owned(d.next, latchkey.draw_fence(), ask.call, ask.lease_ms, now);
        PERFORM latchkey.update_state(r, s);
      END IF;
    END IF;
    IF d.answer <> 'new' THEN RETURN latchkey.describe_claim(d, r, s, busy_code); END IF;
  END IF;
  IF NOT held.is_new THEN
    held.seq := nextval('latchkey.counters');
    UPDATE latchkey.keys k SET seq = held.seq WHERE k.hash = ask.hash;
  END IF;
  RETURN latchkey.start_claimed(ask, held.seq);
END $$;

-- Claims the key, as POST /v1/runs does: by the repeat table, time first. Waits for a transaction that holds the same key, and
-- for nobody else; under REPEATABLE READ whoever waited gets 40001 instead. Settle with the fence.
CREATE FUNCTION latchkey.begin_run(function text, key text DEFAULT NULL, guard text DEFAULT 'once', input text DEFAULT NULL,
  lease interval DEFAULT '60 s', window_span interval DEFAULT '24 h', on_doubt text DEFAULT 'rerun', retries integer DEFAULT NULL,
  fingerprint text DEFAULT NULL, call_id uuid DEFAULT NULL, busy_code text DEFAULT NULL, retry_policy jsonb DEFAULT NULL,
  input_bytes bytea DEFAULT NULL, caller text DEFAULT NULL) RETURNS latchkey.begun
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  ask constant latchkey.request := latchkey.make_request(function, key, guard,
    CASE WHEN coalesce(input, '') = '' AND input_bytes IS NULL THEN NULL ELSE latchkey.body('input', input, input_bytes) END, lease, window_span,
    on_doubt, retries, retry_policy, fingerprint, call_id, caller);
  counter bigint;
BEGIN
  -- A key that came out NULL ('order-' || NULL) must not mean that nothing guards the run.
  IF ask.key IS NULL AND guard IS DISTINCT FROM 'none' AND NOT (ask.by_call AND guard = 'once') THEN
    PERFORM latchkey.refuse('INVALID_ARGUMENT', 'the key is missing; guard => ''none'' is for a run that nothing guards');
  END IF;
  IF busy_code IS NOT NULL THEN PERFORM latchkey.check_text('busy_code', busy_code, 128); END IF;
  -- Mostly nobody has had the key, and there is nothing to decide: its primary key says whether that is so.
  IF ask.hash IS NOT NULL AND NOT EXISTS (SELECT FROM latchkey.keys k WHERE k.hash = ask.hash) THEN
    counter := nextval('latchkey.counters');
    INSERT INTO latchkey.keys (hash, tenant, seq) VALUES (ask.hash, ask.tenant, counter) ON CONFLICT DO NOTHING;
    IF FOUND THEN RETURN latchkey.start_claimed(ask, counter); END IF;
  END IF;
  RETURN latchkey.claim_again(ask, busy_code);
END $$;

-- The runs of this tenant that `after` names, each once and locked, so that none of them ends before the wait is kept.
CREATE FUNCTION latchkey.lock_predecessors(of_tenant text, named uuid[], except_for bigint) RETURNS SETOF latchkey.states
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  predecessor uuid;
  seqs bigint[] := '{}';
  one bigint;
  locked latchkey.states;
BEGIN
  IF array_ndims(named) > 1 THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', 'after must be a list of one dimension'); END IF;
  IF cardinality(named) > 1000 THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', 'after names more than 1000 runs'); END IF;
  IF array_position(named, NULL) IS NOT NULL THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', 'after names a run that is NULL'); END IF;
  FOREACH predecessor IN ARRAY coalesce(named, '{}') LOOP
    SELECT r.seq INTO one FROM latchkey.runs r WHERE r.seq = latchkey.counter_of(predecessor) AND r.id = predecessor AND r.tenant = of_tenant;
    IF NOT FOUND THEN PERFORM latchkey.refuse('PREDECESSOR_UNKNOWN', format('after names %s, which does not exist', predecessor)); END IF;
    seqs := seqs || one;
  END LOOP;
  FOR one IN SELECT DISTINCT u FROM unnest(seqs) u WHERE u IS DISTINCT FROM except_for ORDER BY u LOOP
    IF NOT EXISTS (SELECT FROM latchkey.states s WHERE s.seq = one) THEN PERFORM latchkey.leave_block(one); END IF;
  END LOOP;
  FOR one IN SELECT DISTINCT u FROM unnest(seqs) u WHERE u IS DISTINCT FROM except_for ORDER BY u LOOP
    locked := latchkey.lock_state(one);
    -- It was purged while it was waited for.
    IF locked.seq IS NULL THEN PERFORM latchkey.refuse('PREDECESSOR_UNKNOWN', 'after names a run that does not exist any more'); END IF;
    RETURN NEXT locked;
  END LOOP;
END $$;

-- A queued run that was just written waits for those of its predecessors that have not ended as wanted.
CREATE FUNCTION latchkey.start_waiting(r latchkey.runs, queued latchkey.states, predecessors latchkey.states[], now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  s latchkey.states := queued;
  next latchkey.states;
  predecessor latchkey.states;
BEGIN
  FOREACH predecessor IN ARRAY predecessors LOOP
    next := latchkey.decide_predecessor(r, s, predecessor.status, now);
    IF next.seq IS NOT NULL THEN
      s := next;
    ELSIF s.status <= 2 THEN
      -- Written again as it is: who settles it by an older snapshot, which cannot see this wait, gets 40001.
      UPDATE latchkey.states SET seq = seq WHERE seq = predecessor.seq;
      INSERT INTO latchkey.waits (predecessor, dependent, run, tenant) VALUES (predecessor.seq, s.seq, r.id, r.tenant) ON CONFLICT DO NOTHING;
    END IF;
  END LOOP;
  IF s.waiting_for <> queued.waiting_for OR s.status >= 3 THEN PERFORM latchkey.write_state(r, queued, s, now); END IF;
END $$;

-- Enqueues a job, as POST /v1/jobs does; a worker takes it when this transaction has committed. Due at run_at or after `delay`.
CREATE FUNCTION latchkey.enqueue(function text, key text DEFAULT NULL, input text DEFAULT NULL, run_at timestamptz DEFAULT NULL,
  delay interval DEFAULT NULL, priority integer DEFAULT 0, guard text DEFAULT NULL, window_span interval DEFAULT '24 h',
  lease interval DEFAULT '60 s', on_doubt text DEFAULT 'rerun', retries integer DEFAULT NULL, fingerprint text DEFAULT NULL,
  call_id uuid DEFAULT NULL, after uuid[] DEFAULT NULL, on_failed text DEFAULT 'wait', retry_policy jsonb DEFAULT NULL,
  input_bytes bytea DEFAULT NULL, caller text DEFAULT NULL) RETURNS latchkey.enqueued
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  ask latchkey.request := latchkey.make_request(function, key, guard, latchkey.body('input', input, input_bytes), lease, window_span,
    on_doubt, retries, retry_policy, fingerprint, call_id, caller);
  d latchkey.decision := ('new', NULL, NULL, NULL, NULL);
  held record;
  r latchkey.runs;
  s latchkey.states;
  predecessors latchkey.states[];
  is_locked boolean := false;
  now bigint;
BEGIN
  IF enqueue.priority NOT BETWEEN -100 AND 100 THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', 'priority must be -100 to 100'); END IF;
  IF ask.key IS NULL AND enqueue.guard <> 'none' THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', 'a guard needs a key'); END IF;
  IF NOT isfinite(run_at) THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', 'run_at must be a time'); END IF;
  IF run_at IS NOT NULL AND delay IS NOT NULL THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', 'run_at and delay exclude each other'); END IF;
  ask.priority := coalesce(enqueue.priority, 0);
  ask.on_failed := latchkey.place_of('on_failed', coalesce(enqueue.on_failed, 'wait'), 'wait', 'skip', 'run', 'fail');
  ask.delay_ms := coalesce(latchkey.span_ms(delay), greatest((extract(epoch FROM run_at) * 1000)::bigint - latchkey.store_now(), 0), 0);
  PERFORM latchkey.check_span('delay', ask.delay_ms, 0, 315619200000);
  SELECT * INTO held FROM latchkey.hold_key(ask.hash, ask.tenant);
  IF NOT held.is_new THEN r := latchkey.run_of_key(ask, held.seq); END IF;
  IF r.seq IS NOT NULL THEN
    IF ask.by_call AND r.fingerprint IS DISTINCT FROM ask.fingerprint THEN RETURN ('mismatch', 'KEY_REUSED', r.id, false)::latchkey.enqueued; END IF;
    PERFORM latchkey.check_snapshot(held.seq);
    s := latchkey.peek_state(held.seq);
    d := latchkey.decide_enqueue(r, s, ask, latchkey.store_now());
    IF d.answer IN ('new', 'reopen') OR ((d.ended).seq IS NOT NULL AND EXISTS (SELECT FROM latchkey.states t WHERE t.seq = held.seq)) THEN
      s := latchkey.lock_state(held.seq);
      is_locked := true;
      d := latchkey.decide_enqueue(r, s, ask, latchkey.store_now());
    END IF;
    IF d.answer = 'mismatch' THEN RETURN ('mismatch', d.code, r.id, false)::latchkey.enqueued; END IF;
  END IF;
  IF d.answer IN ('new', 'reopen') THEN
    predecessors := ARRAY(SELECT p FROM latchkey.lock_predecessors(ask.tenant, enqueue.after, CASE d.answer WHEN 'reopen' THEN r.seq END) p);
  END IF;
  now := latchkey.store_now();
  IF is_locked AND (d.ended).seq IS NOT NULL THEN PERFORM latchkey.write_state(r, s, d.ended, now); END IF;
  IF d.answer = 'own' THEN RETURN ('enqueued', NULL, r.id, false)::latchkey.enqueued; END IF;
  IF d.answer = 'duplicate' THEN RETURN ('duplicate', NULL, r.id, true)::latchkey.enqueued; END IF;
  IF d.answer = 'reopen' THEN
    s := d.next;
    s.waiting_for := cardinality(predecessors);
    PERFORM latchkey.update_state(r, s);
  ELSE
    IF NOT held.is_new THEN
      held.seq := nextval('latchkey.counters');
      UPDATE latchkey.keys k SET seq = held.seq WHERE k.hash = ask.hash;
    END IF;
    PERFORM latchkey.insert_run(ask, held.seq, now);
    SELECT * INTO r FROM latchkey.runs t WHERE t.seq = held.seq;
    s := latchkey.first_state(r, 1, latchkey.add_capped(now, ask.delay_ms), cardinality(predecessors));
    PERFORM latchkey.insert_state(r, s);
  END IF;
  PERFORM latchkey.start_waiting(r, s, predecessors, now);
  PERFORM latchkey.tell_work();
  RETURN ('enqueued', NULL, r.id, false)::latchkey.enqueued;
END $$;

-- --- by owner --------------------------------------------------------------------------------------------------------

-- The run of the caller's tenant. What is foreign and what does not exist is refused in the same words.
CREATE FUNCTION latchkey.own_run(id uuid) RETURNS latchkey.runs LANGUAGE plpgsql STABLE AS $$
DECLARE
  of_tenant constant text := latchkey.writing_tenant();
  r latchkey.runs;
BEGIN
  SELECT * INTO r FROM latchkey.runs t WHERE t.seq = latchkey.counter_of(own_run.id) AND t.id = own_run.id AND t.tenant = of_tenant;
  IF NOT FOUND THEN PERFORM latchkey.refuse('NOT_FOUND', 'there is no such run'); END IF;
  RETURN r;
END $$;

-- Locks the run's state for whoever shows its fence. A stale one is told without a lock: fences only rise.
CREATE FUNCTION latchkey.lock_owned(r latchkey.runs, fence bigint) RETURNS latchkey.states LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  s latchkey.states := latchkey.peek_state(r.seq);
BEGIN
  IF s.fence IS DISTINCT FROM lock_owned.fence THEN
    PERFORM latchkey.check_snapshot(r.seq);
    PERFORM latchkey.refuse('LEASE_LOST', 'another owner has had the run since');
  END IF;
  RETURN latchkey.lock_state(r.seq);
END $$;

-- Extends the lease, by what the owner asked for if nothing is said; never shortens it. Commit it at once: nobody sees it before.
CREATE FUNCTION latchkey.heartbeat(run uuid, fence bigint, lease interval DEFAULT NULL) RETURNS latchkey.extended
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r constant latchkey.runs := latchkey.own_run(run);
  s latchkey.states;
BEGIN
  IF lease IS NOT NULL THEN PERFORM latchkey.check_span('lease', latchkey.span_ms(lease), 1000, 86400000); END IF;
  s := latchkey.lock_owned(r, fence);
  IF s.status IS DISTINCT FROM 1 OR s.fence IS DISTINCT FROM heartbeat.fence THEN PERFORM latchkey.refuse('LEASE_LOST', 'the lease is not yours any more'); END IF;
  s.lease_until := greatest(s.lease_until, latchkey.add_capped(latchkey.store_now(), coalesce(latchkey.span_ms(lease), s.owner_lease_ms)));
  PERFORM latchkey.update_state(r, s);
  RETURN (latchkey.as_time(s.lease_until), s.flags & 1 <> 0)::latchkey.extended;
END $$;

-- Writes what was decided about a settlement, or refuses it: the caller's whole transaction is then undone, its effect with it.
CREATE FUNCTION latchkey.settle(r latchkey.runs, s latchkey.states, d latchkey.decision, now bigint) RETURNS latchkey.settled
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  letter uuid;
BEGIN
  IF d.code = 'LEASE_LOST' THEN PERFORM latchkey.refuse(d.code, 'another owner has had the run since, or it was queued again'); END IF;
  IF d.code = 'ALREADY_SETTLED' THEN PERFORM latchkey.refuse(d.code, 'the run is ' || latchkey.status_name(s.status)); END IF;
  IF d.answer = 'next' THEN
    letter := latchkey.write_state(r, s, d.next, now);
    s := d.next;
  ELSIF s.status = 4 THEN
    SELECT l.id INTO letter FROM latchkey.dead_letter_members m JOIN latchkey.dead_letters l ON l.number = m.letter
    WHERE m.seq = s.seq AND m.generation = s.generation;
  END IF;
  RETURN (r.id, latchkey.status_name(s.status), d.answer = 'next', CASE s.status WHEN 3 THEN coalesce(s.result, '') END,
    CASE s.status WHEN 3 THEN latchkey.as_text(coalesce(s.result, '')) END, CASE s.status WHEN 0 THEN latchkey.as_time(s.at) END, letter)::latchkey.settled;
END $$;

-- The run succeeded. With the newest fence also after the lease, while nobody else has it.
--
-- Of a run that was completed before under this fence (the COMMIT's answer was lost, or two programs share a call_id) nothing
-- changes, and the call is refused: this transaction has the effect a second time. if_settled => 'answer', for whoever has no
-- effect in it, answers what stands instead.
CREATE FUNCTION latchkey.complete_run(run uuid, fence bigint, result text DEFAULT NULL, result_bytes bytea DEFAULT NULL,
  if_settled text DEFAULT 'refuse') RETURNS latchkey.settled
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r constant latchkey.runs := latchkey.own_run(run);
  kept constant bytea := latchkey.body('result', result, result_bytes);
  answers constant boolean := latchkey.place_of('if_settled', coalesce(if_settled, 'refuse'), 'refuse', 'answer') = 1;
  s constant latchkey.states := latchkey.lock_owned(r, fence);
  now constant bigint := latchkey.store_now();
  d constant latchkey.decision := latchkey.decide_complete(s, fence, kept, now);
BEGIN
  IF d.answer = 'same' AND NOT answers THEN
    PERFORM latchkey.refuse('ALREADY_SETTLED', 'the run was completed before by this owner, and nothing of this transaction may be kept');
  END IF;
  RETURN latchkey.settle(r, s, d, now);
END $$;

-- The try failed: queued for another, or failed for good with a dead letter. outcome_unknown: its effect may have happened.
CREATE FUNCTION latchkey.fail_run(run uuid, fence bigint, message text, code text DEFAULT NULL, retryable boolean DEFAULT true,
  retry_after interval DEFAULT NULL, outcome_unknown boolean DEFAULT false) RETURNS latchkey.settled
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r constant latchkey.runs := latchkey.own_run(run);
  how latchkey.failure;
  s latchkey.states;
  now bigint;
BEGIN
  PERFORM latchkey.check_text('code', code, 128);
  IF retry_after < interval '0' THEN PERFORM latchkey.refuse('INVALID_ARGUMENT', 'retry_after is negative'); END IF;
  how := (latchkey.body('message', message, NULL), nullif(convert_to(code, 'UTF8'), ''), coalesce(retryable, true), coalesce(outcome_unknown, false),
    latchkey.span_ms(retry_after));
  s := latchkey.lock_owned(r, fence);
  now := latchkey.store_now();
  RETURN latchkey.settle(r, s, latchkey.decide_fail(r, s, fence, how, random(), now), now);
END $$;

-- --- dead letters ----------------------------------------------------------------------------------------------------

-- C7: a person, who must be org-admin in this tenant, has seen the entry. The first acknowledgement stands.
CREATE FUNCTION latchkey.acknowledge_dlq_entry(dlq_id uuid, actor text, OUT id uuid, OUT acknowledged_at timestamptz, OUT acknowledged_by text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  of_tenant constant text := latchkey.writing_tenant();
  who record;
  entry latchkey.dead_letters;
BEGIN
  SELECT * INTO who FROM latchkey.caller();
  IF who.acts_as <> 'org-admin' OR who.actor <> acknowledge_dlq_entry.actor OR NOT latchkey.is_org_admin(coalesce(acknowledge_dlq_entry.actor, '')) THEN
    PERFORM latchkey.refuse('FORBIDDEN', 'acknowledging needs the role org-admin in this tenant');
  END IF;
  SELECT * INTO entry FROM latchkey.dead_letters d
  WHERE d.number = latchkey.counter_of(dlq_id) AND d.id = dlq_id AND d.tenant = of_tenant FOR UPDATE;
  IF NOT FOUND THEN PERFORM latchkey.refuse('NOT_FOUND', 'there is no such dead letter'); END IF;
  IF entry.acknowledged_at IS NULL THEN
    UPDATE latchkey.dead_letters d SET acknowledged_at = latchkey.store_now(), acknowledged_by = acknowledge_dlq_entry.actor
    WHERE d.number = entry.number RETURNING d.* INTO entry;
  END IF;
  id := entry.id;
  acknowledged_at := latchkey.as_time(entry.acknowledged_at);
  acknowledged_by := entry.acknowledged_by;
END $$;

SELECT latchkey.seal_functions();
GRANT EXECUTE ON FUNCTION
  latchkey.begin_run(text, text, text, text, interval, interval, text, integer, text, uuid, text, jsonb, bytea, text),
  latchkey.enqueue(text, text, text, timestamptz, interval, integer, text, interval, interval, text, integer, text, uuid, uuid[], text, jsonb, bytea, text),
  latchkey.heartbeat(uuid, bigint, interval), latchkey.complete_run(uuid, bigint, text, bytea, text),
  latchkey.fail_run(uuid, bigint, text, text, boolean, interval, boolean), latchkey.acknowledge_dlq_entry(uuid, text)
TO latchkey_tenant, latchkey_service;
