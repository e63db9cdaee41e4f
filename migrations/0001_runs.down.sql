-- Everything in the schema and nothing outside it: without CASCADE, somebody else's view or foreign key stops it.
DO $$
DECLARE
  kind record;
  names text;
BEGIN
  FOR kind IN SELECT * FROM (VALUES (1, 'v', 'VIEW'), (2, 'r', 'TABLE'), (3, 'S', 'SEQUENCE')) k (place, relkind, word) ORDER BY place LOOP
    SELECT string_agg(format('%I.%I', 'latchkey', c.relname), ', ') INTO names
    FROM pg_class c WHERE c.relnamespace = 'latchkey'::regnamespace AND c.relkind = kind.relkind::"char";
    IF names IS NOT NULL THEN EXECUTE format('DROP %s %s', kind.word, names); END IF;
  END LOOP;
END $$;

DROP SCHEMA latchkey;
