-- The writes of a batch, except for bulk inserts and updates (Bulk in pg/codec.cpp).

-- name: erase_states
DELETE FROM latchkey.states WHERE seq = ANY($1)
-- name: erase_runs
DELETE FROM latchkey.runs WHERE seq = ANY($1)
-- name: find_settlement
SELECT 1 FROM latchkey.settlements WHERE seq = $1 AND generation = $2
-- name: erase_settlements
DELETE FROM latchkey.settlements WHERE seq = ANY($1)
-- name: erase_duplicates
DELETE FROM latchkey.duplicates WHERE seq = ANY($1)
-- name: erase_blocks
DELETE FROM latchkey.blocks WHERE lo = ANY($1)

-- name: lock_purge
-- Serializes batches that remove runs from rows of outcomes.
SELECT 1 FROM latchkey.latches WHERE name = 'purge' FOR UPDATE
-- name: erase_from_outcomes
-- The remaining runs of a row are split into contiguous pieces: seq minus its row number is constant within a piece.
-- NOT IN is hashed; <> ALL would compare every pair.
WITH o AS (
  DELETE FROM latchkey.outcomes o
  WHERE o.lo = ANY(ARRAY(
    SELECT (
      SELECT CASE WHEN i.hi >= g.seq THEN i.lo END
      FROM latchkey.outcomes i
      WHERE i.lo <= g.seq AND i.lo > g.seq - 1000
      ORDER BY i.lo DESC LIMIT 1
    )
    FROM unnest($1) AS g(seq)
  ))
  RETURNING *
), rest AS (
  SELECT o.*, x.seq, x.seq - row_number() OVER (PARTITION BY o.lo ORDER BY x.seq) AS piece
  FROM o, generate_series(o.lo, o.hi) AS x(seq)
  WHERE x.seq NOT IN (SELECT g.seq FROM unnest($1) AS g(seq))
)
INSERT INTO latchkey.outcomes (lo, hi, tenant, fence_from, started_at, at, result)
SELECT min(seq), max(seq), tenant, fence_from, started_at, at, result
FROM rest
GROUP BY lo, piece, tenant, fence_from, started_at, at, result

-- name: move_keys
UPDATE latchkey.keys k SET seq = u.seq FROM unnest($1, $2) AS u(hash, seq) WHERE k.hash = u.hash
-- name: erase_keys
DELETE FROM latchkey.keys WHERE hash = ANY($1)

-- name: remove_dependencies_of
DELETE FROM latchkey.waits WHERE dependent = ANY($1)
-- name: remove_dependencies
DELETE FROM latchkey.waits w USING unnest($1, $2) AS u(predecessor, dependent)
WHERE w.predecessor = u.predecessor AND w.dependent = u.dependent
-- name: add_dependencies
INSERT INTO latchkey.waits (predecessor, dependent, run, tenant)
SELECT u.p, u.d, u.r, r.tenant
FROM unnest($1, $2, $3) AS u(p, d, r) JOIN latchkey.runs r ON r.seq = u.d
ON CONFLICT DO NOTHING

-- name: note_tenant
SELECT latchkey.note_tenant($1)

-- name: probe
-- Every batch that writes inserts its id: that insert is the actual probe of the database.
SELECT 1
