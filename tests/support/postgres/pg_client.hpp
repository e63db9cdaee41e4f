// PgClient: a user's own connection to PostgreSQL, beside Latchkey's: one session, statements as text. Throws what the
// server complains of, the SQLSTATE first.
#pragma once

#include <memory>
#include <string>
#include <vector>

struct pg_conn;

namespace latchkey {

class PgClient {
 public:
  explicit PgClient(const std::string& url);
  ~PgClient();
  PgClient(PgClient&&) noexcept;

  // Any number of statements; the first column of the last one's rows. NULL is empty.
  std::vector<std::string> ask(const std::string& sql);
  void execute(const std::string& sql) { ask(sql); }
  // The first value; empty when there is none.
  std::string ask_one(const std::string& sql);
  // Starts a statement and does not wait; finish() does.
  void send(const std::string& sql);
  std::vector<std::string> finish();
  // Asks until the answer is "t": of what the server gives no sign.
  void wait_until(const std::string& sql);
  int backend() const;
  // Warnings and notices that came, as their SQLSTATEs.
  const std::vector<std::string>& notices() const { return *notices_; }

 private:
  std::unique_ptr<pg_conn, void (*)(pg_conn*)> handle_;
  std::unique_ptr<std::vector<std::string>> notices_ = std::make_unique<std::vector<std::string>>();
};

}  // namespace latchkey
