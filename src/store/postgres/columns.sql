-- Column lists that several statements share, in the order in which C++ reads them.

-- name: head_columns
-- Of latchkey.runs as r: read_head(), HeadAt.
r.seq, r.id, r.tenant, r.function, r.key, r.hash, r.traits, r.priority, r.fingerprint, r.retries, r.retry,
r.window_ms, r.lease_ms, r.created_at, r.input, r.caller, r.claim

-- name: state_columns
-- Of latchkey.states or latchkey.all_states as s: read_state(), StateAt.
s.status, s.origin, s.generation, s.attempt, s.attempts_max, s.attempts_total, s.fence, s.first_attempt_at,
s.waiting_for, s.failures, s.at, s.lease_until, s.owner_lease_ms, s.flags, s.owner, s.opened_by, s.last_error,
s.last_error_code, s.effect_key, s.result, s.code, s.effect

-- name: block_columns
-- Of latchkey.blocks as b: read_block().
b.lo, b.hi, b.tenant, b.function, b.priority, b.due, b.fence_from, b.started_at, b.lease_until, b.lease_ms,
b.session

-- name: outcome_columns
-- Of latchkey.outcomes as o, for the run x: read_outcome().
x.seq, o.fence_from + x.seq, o.started_at, o.at, o.result

-- name: dead_letter_columns
-- Of latchkey.dead_letters: read_dead_letter().
id, tenant, function, code, reason, latest_run, count, opened_at, updated_at, acknowledged_at, acknowledged_by

-- name: member_columns
-- Of latchkey.dead_letter_members: read_member().
run, generation, key, code, reason, attempts, effect, at
