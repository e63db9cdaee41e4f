// PgClient: a user's connection to PostgreSQL, beside Latchkey's: one session, statements as text. On a server error it
// throws the SQLSTATE and the message. One thread at a time may use it.
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

  // Executes any number of statements. Returns the first column of the last statement's rows; NULL is empty.
  std::vector<std::string> ask(const std::string& sql);
  void execute(const std::string& sql) { ask(sql); }
  // The first value, or an empty string if there is none.
  std::string ask_one(const std::string& sql);
  // Starts a statement without waiting. finish() waits for its result.
  void send(const std::string& sql);
  std::vector<std::string> finish();
  // Repeats the query until its result is "t". Throws after a minute.
  void wait_until(const std::string& sql);
  int backend() const;
  // The SQLSTATEs of the received warnings and notices.
  const std::vector<std::string>& notices() const { return *notices_; }

 private:
  std::unique_ptr<pg_conn, void (*)(pg_conn*)> handle_;
  std::unique_ptr<std::vector<std::string>> notices_ = std::make_unique<std::vector<std::string>>();
};

}  // namespace latchkey
