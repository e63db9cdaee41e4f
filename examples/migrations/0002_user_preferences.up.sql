CREATE TABLE user_preferences (
  user_id INTEGER PRIMARY KEY REFERENCES users (id),
  theme TEXT NOT NULL DEFAULT 'light'
);
