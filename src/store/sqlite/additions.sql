-- Tables that are not in every file of this format: made where they are missing, each time a file is opened.

CREATE TABLE IF NOT EXISTS lk_dead_letter_steps (
  seq INTEGER NOT NULL,          -- of the run; with the generation: the member
  generation INTEGER NOT NULL,
  kind INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 2),
  actor TEXT NOT NULL,
  at INTEGER NOT NULL,
  note BLOB NOT NULL,
  PRIMARY KEY (seq, generation, kind)
) WITHOUT ROWID;
