-- What the functions for users' transactions (0007) are made of: the clock, locks, and rows written as the server's batches
-- write them. Locks are taken in the same order everywhere: keys by hash, then blocks by lo, then states by seq, then dead
-- letters.

-- --- time, ids, locks ------------------------------------------------------------------------------------------------

-- The store's clock, read after the locks: the database's, never behind the mark (which is kept a second ahead).
CREATE FUNCTION latchkey.store_now() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  mark constant bigint := coalesce(pg_sequence_last_value('latchkey.clock'), 0);  -- NULL: nobody has marked it yet
  now constant bigint := greatest((extract(epoch FROM clock_timestamp()) * 1000)::bigint, mark - 1000);
BEGIN
  IF now >= mark THEN PERFORM setval('latchkey.clock', greatest(c.last_value, now + 1000)) FROM latchkey.clock c; END IF;
  RETURN now;
END $$;

-- UUIDv7 with the counter behind the time, as base/uuid.cpp makes it.
CREATE FUNCTION latchkey.make_id(at bigint, counter bigint) RETURNS uuid LANGUAGE sql VOLATILE AS $$
  SELECT (encode(int8send((at << 16) | 28672 | (counter >> 42)), 'hex')
    || to_hex((1::bigint << 63) | ((counter & 4398046511103) << 20) | ('x' || left(gen_random_uuid()::text, 5))::bit(20)::bigint))::uuid
$$;
CREATE FUNCTION latchkey.counter_of(id uuid) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  digits constant text := replace(id::text, '-', '');
BEGIN
  RETURN (('x' || substr(digits, 14, 3))::bit(12)::integer::bigint << 42) | ((('x' || substr(digits, 17, 16))::bit(64)::bigint >> 20) & 4398046511103);
END $$;

-- Locks the key: waits for whoever holds it. A key that nobody has is made, for the run whose counter is given back: the
-- primary key says who made it. Without a hash nothing is locked.
CREATE FUNCTION latchkey.hold_key(of_hash uuid, of_tenant text, OUT seq bigint, OUT is_new boolean) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  LOOP
    SELECT k.seq, false INTO seq, is_new FROM latchkey.keys k WHERE k.hash = of_hash FOR UPDATE;
    IF FOUND THEN RETURN; END IF;
    seq := nextval('latchkey.counters');
    is_new := true;
    IF of_hash IS NULL THEN RETURN; END IF;
    INSERT INTO latchkey.keys AS k (hash, tenant, seq) VALUES (of_hash, of_tenant, hold_key.seq) ON CONFLICT DO NOTHING;
    IF FOUND THEN RETURN; END IF;
  END LOOP;
END $$;

-- A fence, drawn while the key is held. None where no server of Latchkey has come since this PostgreSQL took another's place (a standby
-- that was promoted, a backup that was restored): the other one may have given out what the sequence has next, and a server makes it
-- jump. Not done here: two who jump at once must wait for each other, and this transaction may stay open for long.
CREATE FUNCTION latchkey.draw_fence() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  fence constant bigint := (SELECT nextval('latchkey.fences') FROM pg_control_system() h WHERE NOT EXISTS (SELECT FROM latchkey.place p
    WHERE (p.system, p.timeline) <> (h.system_identifier::text, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))));
BEGIN
  IF fence IS NULL THEN
    PERFORM latchkey.refuse('STORE_UNAVAILABLE', 'no server of Latchkey has connected since this PostgreSQL took another''s place; try again when one has');
  END IF;
  RETURN fence;
END $$;

-- Whether somebody is inserting each of these keys in a transaction that is still open. No row can be seen or locked then:
-- whether one would have to wait is found out by trying, and undone; for so long in all: of those after that nothing is said.
CREATE FUNCTION latchkey.are_held(hashes uuid[], most_ms bigint) RETURNS SETOF boolean LANGUAGE plpgsql VOLATILE
SET lock_timeout = '1ms' SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  one uuid;
  ends constant timestamptz := clock_timestamp() + most_ms * interval '1 ms';
BEGIN
  FOREACH one IN ARRAY hashes LOOP
    EXIT WHEN clock_timestamp() > ends;
    BEGIN
      INSERT INTO latchkey.keys (hash, tenant, seq) VALUES (one, '', 0) ON CONFLICT DO NOTHING;
      IF FOUND THEN RAISE EXCEPTION USING ERRCODE = 'LK000'; END IF;
      RETURN NEXT false;
    EXCEPTION
      WHEN lock_not_available THEN RETURN NEXT true;
      WHEN SQLSTATE 'LK000' THEN RETURN NEXT false;
    END;
  END LOOP;
END $$;

-- The run's state as it is committed, without a lock.
CREATE FUNCTION latchkey.peek_state(of_seq bigint) RETURNS latchkey.states LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  s latchkey.states;
BEGIN
  SELECT * INTO s FROM latchkey.states t WHERE t.seq = of_seq;  -- what most have who ask; it is cheaper than the view
  IF FOUND THEN RETURN s; END IF;
  SELECT a.* INTO s FROM latchkey.all_states a WHERE a.seq = of_seq;
  RETURN s;
END $$;

-- Under REPEATABLE READ and SERIALIZABLE: raises 40001 where what the snapshot says of the run's state is no longer so. Whoever
-- looks without a lock asks this first. Holds nothing afterwards (undoing the inner block gives the locks back) and waits for
-- nobody: what another transaction has changed and not committed is as it was. A completed job does not change.
CREATE FUNCTION latchkey.check_snapshot(of_seq bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('repeatable read', 'serializable') THEN RETURN; END IF;
  BEGIN
    PERFORM FROM latchkey.states s WHERE s.seq = of_seq FOR SHARE SKIP LOCKED;
    PERFORM FROM latchkey.blocks b WHERE b.lo <= of_seq AND b.lo > of_seq - 1000 AND b.hi >= of_seq FOR SHARE SKIP LOCKED;
    RAISE EXCEPTION USING ERRCODE = 'LK000';
  EXCEPTION WHEN SQLSTATE 'LK000' THEN NULL;
  END;
END $$;

-- Gives a run that lies in a block a row of its own, under the block's lock. The rest of the block goes on as it was.
CREATE FUNCTION latchkey.leave_block(of_seq bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  b latchkey.blocks;
BEGIN
  SELECT * INTO b FROM latchkey.blocks
  WHERE lo = (SELECT i.lo FROM latchkey.blocks i WHERE i.lo <= of_seq AND i.lo > of_seq - 1000 ORDER BY i.lo DESC LIMIT 1)
    AND hi >= of_seq
  FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  IF EXISTS (SELECT FROM latchkey.states s WHERE s.seq = of_seq) OR (latchkey.peek_state(of_seq)).status = 3 THEN RETURN; END IF;
  INSERT INTO latchkey.states SELECT a.* FROM latchkey.all_states a WHERE a.seq = of_seq;
  IF b.lo = b.hi THEN
    DELETE FROM latchkey.blocks WHERE lo = b.lo;
  ELSIF of_seq = b.lo THEN
    UPDATE latchkey.blocks SET lo = of_seq + 1 WHERE lo = b.lo;
  ELSE
    UPDATE latchkey.blocks SET hi = of_seq - 1 WHERE lo = b.lo;
    b.lo := of_seq + 1;
    IF b.lo <= b.hi THEN INSERT INTO latchkey.blocks SELECT b.*; END IF;
  END IF;
END $$;

-- Locks the run's own row, and makes it one first if it lies in a block. A completed job has none and needs none: it never
-- changes. NULL: the run is gone.
CREATE FUNCTION latchkey.lock_state(of_seq bigint) RETURNS latchkey.states LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  s latchkey.states;
BEGIN
  LOOP
    SELECT * INTO s FROM latchkey.states WHERE seq = of_seq FOR UPDATE;
    IF FOUND THEN RETURN s; END IF;
    s := latchkey.peek_state(of_seq);
    IF s.status = 3 OR s.seq IS NULL THEN RETURN s; END IF;
    PERFORM latchkey.leave_block(of_seq);
  END LOOP;
END $$;

-- --- writing ---------------------------------------------------------------------------------------------------------

CREATE FUNCTION latchkey.update_state(r latchkey.runs, s latchkey.states) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  UPDATE latchkey.states t SET (status, origin, generation, attempt, attempts_max, attempts_total, fence, first_attempt_at, waiting_for,
      failures, at, lease_until, owner_lease_ms, flags, owner, opened_by, last_error, last_error_code, effect_key, result, code, effect, deadline)
    = (s.status, s.origin, s.generation, s.attempt, s.attempts_max, s.attempts_total, s.fence, s.first_attempt_at, s.waiting_for,
      s.failures, s.at, s.lease_until, s.owner_lease_ms, s.flags, s.owner, s.opened_by, s.last_error, s.last_error_code, s.effect_key,
      s.result, s.code, s.effect, latchkey.next_deadline(r, s))
  WHERE t.seq = s.seq;
END $$;

-- A failed run joins its group's open entry, which is made if there is none. Gives the entry's id.
CREATE FUNCTION latchkey.add_dead_letter(r latchkey.runs, s latchkey.states) RETURNS uuid LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  entry latchkey.dead_letters;
  made bigint;
BEGIN
  LOOP
    UPDATE latchkey.dead_letters d SET code = s.code, reason = coalesce(s.last_error, ''), latest_run = r.id, updated_at = s.at, count = d.count + 1
    WHERE d.tenant = r.tenant AND d.function = r.function AND d.acknowledged_at IS NULL RETURNING d.* INTO entry;
    EXIT WHEN FOUND;
    made := nextval('latchkey.counters');
    INSERT INTO latchkey.dead_letters AS d VALUES (made, latchkey.make_id(s.at, made), r.tenant, r.function, s.code, coalesce(s.last_error, ''),
      r.id, 1, s.at, s.at, NULL, '') ON CONFLICT DO NOTHING RETURNING d.* INTO entry;
    EXIT WHEN FOUND;
  END LOOP;
  INSERT INTO latchkey.dead_letter_members (seq, generation, tenant, letter, run, key, code, reason, attempts, effect, at)
  VALUES (s.seq, s.generation, r.tenant, entry.number, r.id, coalesce(r.key, ''), s.code, coalesce(s.last_error, ''), s.attempt, s.effect, s.at);
  RETURN entry.id;
END $$;

-- Writes one change, with its dead letter if it failed for good; gives that letter's id.
CREATE FUNCTION latchkey.write_one(r latchkey.runs, before latchkey.states, after latchkey.states) RETURNS uuid
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM latchkey.update_state(r, after);
  IF after.status >= 3 AND before.status < 3 THEN INSERT INTO latchkey.settlements VALUES (after.seq, after.generation); END IF;
  -- A later generation waits for its own predecessors alone.
  IF before.waiting_for > 0 AND after.status >= 3 THEN DELETE FROM latchkey.waits w WHERE w.dependent = after.seq; END IF;
  IF after.status = 4 AND before.status <> 4 THEN RETURN latchkey.add_dead_letter(r, after); END IF;
  RETURN NULL;
END $$;

-- Wakes whoever waits for work; polling covers what a queue that is nearly full does not take.
CREATE FUNCTION latchkey.tell_work() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF pg_notification_queue_usage() < 0.9 THEN PERFORM pg_notify('latchkey_work', ''); END IF;  -- at most one per commit: equal ones are folded
END $$;

-- What a settled run means for those that wait for it, and theirs in turn.
CREATE FUNCTION latchkey.release_dependents(settled latchkey.states, now bigint) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  ended latchkey.states[] := ARRAY[settled];
  waiting bigint;
  r latchkey.runs;
  s latchkey.states;
  next latchkey.states;
BEGIN
  WHILE cardinality(ended) > 0 LOOP
    settled := ended[1];
    ended := ended[2:];
    FOR waiting IN SELECT w.dependent FROM latchkey.waits w WHERE w.predecessor = settled.seq ORDER BY w.dependent LOOP
      SELECT * INTO r FROM latchkey.runs WHERE seq = waiting;
      CONTINUE WHEN NOT FOUND;
      s := latchkey.lock_state(waiting);
      next := latchkey.decide_predecessor(r, s, settled.status, now);
      CONTINUE WHEN next.seq IS NULL AND s.status <= 2 AND s.waiting_for > 0;  -- goes on waiting
      DELETE FROM latchkey.waits w WHERE w.predecessor = settled.seq AND w.dependent = waiting;
      CONTINUE WHEN next.seq IS NULL;
      PERFORM latchkey.write_one(r, s, next);
      IF next.status >= 3 THEN ended := ended || next;
      ELSIF next.waiting_for = 0 THEN PERFORM latchkey.tell_work(); END IF;
    END LOOP;
  END LOOP;
END $$;

-- Writes a change with all that follows from it: the dead letter, and what waited for this run.
CREATE FUNCTION latchkey.write_state(r latchkey.runs, before latchkey.states, after latchkey.states, now bigint) RETURNS uuid
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  letter constant uuid := latchkey.write_one(r, before, after);
BEGIN
  IF after.status >= 3 THEN PERFORM latchkey.release_dependents(after, now); END IF;
  RETURN letter;
END $$;

-- A new run's head, written under the counter; gives its id.
CREATE FUNCTION latchkey.insert_run(ask latchkey.request, counter bigint, now bigint) RETURNS uuid LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  id constant uuid := latchkey.make_id(now, counter);
BEGIN
  INSERT INTO latchkey.runs (seq, id, tenant, function, key, hash, traits, priority, fingerprint, retries, retry, window_ms, lease_ms, created_at, input,
    caller, claim)
  VALUES (counter, id, ask.tenant, ask.function, ask.key, ask.hash,
    ask.guard | (ask.on_doubt << 2) | (ask.on_failed << 3) | (ask.by_call::integer << 6), ask.priority, ask.fingerprint, ask.retries, ask.retry,
    ask.window_ms, ask.lease_ms, now, ask.input, ask.caller, ask.call);
  IF NOT EXISTS (SELECT FROM latchkey.tenants t WHERE t.name = ask.tenant) THEN PERFORM latchkey.note_tenant(ask.tenant); END IF;
  RETURN id;
END $$;

-- How a new run stands before its first try.
CREATE FUNCTION latchkey.first_state(r latchkey.runs, origin integer, due bigint, waiting_for integer) RETURNS latchkey.states
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  s latchkey.states;
BEGIN
  s.seq := r.seq;
  s.tenant := r.tenant;
  s.function := r.function;
  s.priority := r.priority;
  s.origin := first_state.origin;
  s.generation := 1;
  s.attempt := 0;
  s.attempts_max := r.retries + 1;
  s.attempts_total := 0;
  s.fence := 0;
  s.first_attempt_at := 0;
  s.waiting_for := first_state.waiting_for;
  s.failures := 0;
  RETURN latchkey.with_state(s, 0, due);
END $$;

CREATE FUNCTION latchkey.insert_state(r latchkey.runs, s latchkey.states) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  s.deadline := latchkey.next_deadline(r, s);
  INSERT INTO latchkey.states SELECT s.*;
END $$;

-- The key's run, by what `hold_key` gave; compares the whole text, not only the hash.
CREATE FUNCTION latchkey.run_of_key(ask latchkey.request, of_seq bigint) RETURNS latchkey.runs LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  r latchkey.runs;
BEGIN
  SELECT * INTO r FROM latchkey.runs WHERE seq = of_seq;
  IF FOUND AND ((r.tenant, r.function) <> (ask.tenant, ask.function) OR (NOT ask.by_call AND r.key <> ask.key)) THEN
    PERFORM latchkey.refuse('INTERNAL', 'two keys have one hash');
  END IF;
  RETURN r;
END $$;

SELECT latchkey.seal_functions();
