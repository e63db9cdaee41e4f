-- B7, B10: what moves from state to state by declared moves alone. A move that is not declared is refused; the same one again
-- answers the same (where the table leads back: the same call). The state of an entity is one row, moved in the user's own transaction.

-- Tenant '*' (no tenant has that name): of every tenant; its machines cannot be changed or extended by one of them.
CREATE TABLE latchkey.transitions (
  tenant text NOT NULL,
  machine text NOT NULL CHECK (machine <> ''),
  state text NOT NULL,
  action text NOT NULL CHECK (action <> ''),
  next text NOT NULL,
  PRIMARY KEY (tenant, machine, state, action)
);
CREATE TABLE latchkey.entities (
  tenant text NOT NULL,
  machine text NOT NULL,
  entity text NOT NULL CHECK (entity <> ''),
  state text NOT NULL,
  moves bigint NOT NULL,          -- how many it made
  PRIMARY KEY (tenant, machine, entity)
);
-- Every move: what a repeat is answered from.
CREATE TABLE latchkey.entity_moves (
  tenant text NOT NULL,
  machine text NOT NULL,
  entity text NOT NULL,
  number bigint NOT NULL,
  action text NOT NULL,
  from_state text NOT NULL,
  to_state text NOT NULL,
  call uuid,
  at bigint NOT NULL,
  PRIMARY KEY (tenant, machine, entity, number)
);
CREATE UNIQUE INDEX entity_moves_call ON latchkey.entity_moves (tenant, machine, entity, call) WHERE call IS NOT NULL;

SELECT latchkey.protect('latchkey.transitions', 'tenant = (SELECT latchkey.current_tenant()) OR (tenant = ''*'' AND (SELECT latchkey.current_tenant()) IS NOT NULL)');
SELECT latchkey.protect(t::regclass, 'tenant = (SELECT latchkey.current_tenant())') FROM unnest(ARRAY['latchkey.entities', 'latchkey.entity_moves']) t;

CREATE TYPE latchkey.moved AS (
  state text,                     -- where the move led, then or now
  from_state text,
  changed boolean,                -- false: it was made before
  current_state text              -- where the entity is by now
);

-- Declares one move of a machine of the caller's tenant; the same again is nothing, another next state is refused.
CREATE FUNCTION latchkey.declare_transition(machine text, state text, action text, next text) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  of_tenant constant text := latchkey.writing_tenant();
  stands text;
BEGIN
  IF machine IS NULL OR state IS NULL OR action IS NULL OR next IS NULL OR '' IN (machine, action) THEN
    PERFORM latchkey.refuse('INVALID_ARGUMENT', 'machine, state, action and next must be said');
  END IF;
  PERFORM latchkey.check_text('machine', machine, 128);
  PERFORM latchkey.check_text('state', state, 128);
  PERFORM latchkey.check_text('action', action, 128);
  PERFORM latchkey.check_text('next', next, 128);
  IF EXISTS (SELECT FROM latchkey.transitions t WHERE t.tenant = '*' AND t.machine = declare_transition.machine) THEN
    PERFORM latchkey.refuse('FORBIDDEN', 'the machine is declared for every tenant');
  END IF;
  INSERT INTO latchkey.transitions AS t VALUES (of_tenant, machine, state, action, next) ON CONFLICT DO NOTHING;
  SELECT t.next INTO stands FROM latchkey.transitions t
  WHERE t.tenant = of_tenant AND t.machine = declare_transition.machine AND t.state = declare_transition.state AND t.action = declare_transition.action;
  IF stands <> declare_transition.next THEN
    PERFORM latchkey.refuse('MOVE_REFUSED', format('from %s, %s leads to %s already', state, action, stands));
  END IF;
END $$;

-- Moves an entity. `start`: the state of one that is not there yet. `expected`: only from that state (a conditional update).
-- `call_id` names the call; it tells a repeat, also a late one, from the same action meant twice, where the table leads back.
--
-- In this order: the call was made before: its answer. (state, action) is declared, and the state is the expected one: the
-- move. The action was done before: the answer that it got. Else refused.
CREATE FUNCTION latchkey.transition(machine text, entity text, action text, start text DEFAULT NULL, expected text DEFAULT NULL,
  call_id uuid DEFAULT NULL) RETURNS latchkey.moved
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  of_tenant constant text := latchkey.writing_tenant();
  declared_by constant text := CASE WHEN EXISTS (SELECT FROM latchkey.transitions t WHERE t.tenant = '*' AND t.machine = transition.machine)
    THEN '*' ELSE of_tenant END;
  by_call constant uuid := nullif(call_id, '00000000-0000-0000-0000-000000000000');
  e latchkey.entities;
  made latchkey.entity_moves;
  leads_to text;
BEGIN
  PERFORM latchkey.check_text('machine', machine, 128);
  PERFORM latchkey.check_text('entity', entity, 512);
  PERFORM latchkey.check_text('action', action, 128);
  PERFORM latchkey.check_text('start', start, 128);
  IF NOT EXISTS (SELECT FROM latchkey.transitions t WHERE t.tenant = declared_by AND t.machine = transition.machine) THEN
    PERFORM latchkey.refuse('NOT_FOUND', 'there is no such machine');
  END IF;
  IF start IS NOT NULL AND coalesce(entity, '') <> '' THEN
    INSERT INTO latchkey.entities VALUES (of_tenant, machine, entity, start, 0) ON CONFLICT DO NOTHING;
  END IF;
  SELECT * INTO e FROM latchkey.entities t WHERE t.tenant = of_tenant AND t.machine = transition.machine AND t.entity = transition.entity FOR UPDATE;
  IF NOT FOUND THEN PERFORM latchkey.refuse('NOT_FOUND', 'there is no such entity'); END IF;
  SELECT * INTO made FROM latchkey.entity_moves m
  WHERE m.tenant = of_tenant AND m.machine = e.machine AND m.entity = e.entity AND m.call = by_call;
  IF FOUND THEN
    IF made.action <> transition.action THEN PERFORM latchkey.refuse('MOVE_REFUSED', 'the call was made before with another action'); END IF;
    RETURN (made.to_state, made.from_state, false, e.state)::latchkey.moved;
  END IF;
  SELECT t.next INTO leads_to FROM latchkey.transitions t
  WHERE t.tenant = declared_by AND t.machine = e.machine AND t.state = e.state AND t.action = transition.action
    AND coalesce(expected, e.state) = e.state;
  IF FOUND THEN
    UPDATE latchkey.entities t SET state = leads_to, moves = e.moves + 1 WHERE t.tenant = of_tenant AND t.machine = e.machine AND t.entity = e.entity;
    INSERT INTO latchkey.entity_moves VALUES (of_tenant, e.machine, e.entity, e.moves + 1, action, e.state, leads_to, by_call, latchkey.store_now());
    RETURN (leads_to, e.state, true, leads_to)::latchkey.moved;
  END IF;
  SELECT * INTO made FROM latchkey.entity_moves m
  WHERE m.tenant = of_tenant AND m.machine = e.machine AND m.entity = e.entity AND m.action = transition.action
    AND m.from_state = coalesce(expected, m.from_state)
  ORDER BY m.number DESC LIMIT 1;
  IF NOT FOUND THEN PERFORM latchkey.refuse('MOVE_REFUSED', format('from %s there is no %s', e.state, action)); END IF;
  RETURN (made.to_state, made.from_state, false, e.state)::latchkey.moved;
END $$;

SELECT latchkey.seal_functions();
GRANT EXECUTE ON FUNCTION latchkey.declare_transition(text, text, text, text), latchkey.transition(text, text, text, text, text, uuid)
TO latchkey_tenant, latchkey_service;
