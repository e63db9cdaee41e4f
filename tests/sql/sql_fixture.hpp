// A database with Latchkey's migrations and connections to it as any role: what a user's own program sees.
#pragma once

#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/run.hpp"

namespace latchkey {

// A statement's error: its SQLSTATE, message and DETAIL.
struct SqlError : std::runtime_error {
  SqlError(std::string state, const std::string& message, std::string detail)
      : std::runtime_error(message), state(std::move(state)), detail(std::move(detail)) {}
  std::string state;
  std::string detail;
};

using Value = std::optional<std::string>;  // as text; none is NULL
using Rows = std::vector<std::vector<Value>>;

class Sql {
 public:
  explicit Sql(const std::string& url);

  // One statement with parameters, or several without. Throws SqlError.
  Rows rows(const std::string& sql, const std::vector<Value>& values = {});
  // The first row, and its first column.
  std::vector<Value> row(const std::string& sql, const std::vector<Value>& values = {});
  Value one(const std::string& sql, const std::vector<Value>& values = {});
  void run(const std::string& sql) { rows(sql); }

  // Starts a statement whose result is fetched later.
  void send(const std::string& sql);
  Rows fetch();
  bool in_transaction() const { return PQtransactionStatus(handle_.get()) != PQTRANS_IDLE; }
  int pid() const { return PQbackendPID(handle_.get()); }
  // Payloads that came on any channel that it listens to, as "channel payload".
  std::vector<std::string> notifications();

 private:
  Rows take(PGresult* result);

  std::unique_ptr<PGconn, decltype(&PQfinish)> handle_;
};

// The error of a statement that must fail.
SqlError refusal(Sql& sql, const std::string& statement, const std::vector<Value>& values = {});
// Runs the files of migrations/ in their order.
void apply_migrations(Sql& sql);
std::vector<std::string> migration_files();

class SqlTest : public ::testing::Test {
 public:
  using Run = latchkey::Run;  // not GoogleTest's

 protected:
  SqlTest();
  ~SqlTest() override;

  // Another connection; `role` logs in with its name.
  std::string url_as(const std::string& role) const;
  Sql connect(const std::string& role = "latchkey") const { return Sql(url_as(role)); }
  // Makes a role that can log in and drops it at the end; "app" becomes a name of its own.
  std::string make_role(const std::string& name, const std::string& options = "");
  // A session of a role whose app.current_tenant is trusted, set to `tenant`.
  Sql service(const std::string& tenant);
  // A role that is bound to the tenant.
  std::string bound_role(const std::string& tenant, const std::string& acts_as = "org-admin");
  // Until that session waits for a lock.
  void wait_until_blocked(int pid);

  const std::string url_;
  Sql admin;  // a superuser; acts for no tenant

 private:
  std::vector<std::string> roles_;
};

}  // namespace latchkey
