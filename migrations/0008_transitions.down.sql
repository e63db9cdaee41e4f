DROP FUNCTION latchkey.transition, latchkey.declare_transition;
DROP TYPE latchkey.moved;
DROP TABLE latchkey.entity_moves, latchkey.entities, latchkey.transitions;
