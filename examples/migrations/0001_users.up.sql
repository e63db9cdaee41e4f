CREATE TABLE users (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL
);
INSERT INTO users (id, name) VALUES (1, 'ada'), (2, 'grace');
