// PgTarget: migrations in PostgreSQL. It has one connection and never reconnects, because later statements would run
// outside the lost transaction. An advisory lock of the transaction excludes other runners, also through a pooler.
#pragma once

#include <libpq-fe.h>

#include "migrate/pg_notices.hpp"
#include "migrate/target.hpp"

namespace latchkey::migrate {

class PgTarget final : public Target {
 public:
  PgTarget(TargetSettings settings, Random& random);
  ~PgTarget() override;

  std::vector<Applied> read_ledger() override;
  std::vector<Fault> lint(const std::string& file, const std::string& script) override;
  void begin(Duration patience, const std::function<void()>& on_wait) override;
  void apply(const std::string& file, const std::string& script) override;
  void record(const Migration& migration) override;
  void erase(const Migration& migration) override;
  void amend(const Migration& migration) override;
  std::string ask(const std::string& query) override;
  void commit() override;
  void roll_back() noexcept override;
  std::string describe() override;
  std::unique_ptr<Target> make_scratch() override;
  std::string scratch_name() const override;
  void interrupt() noexcept override;

  // The reason why this role cannot serve on Latchkey's schema, with the statement that grants what is missing: it is
  // not a member of all three roles. None if it is, or if there is no such schema.
  std::optional<std::string> find_missing_grant();
  // True if there is a schema of this name.
  bool has_schema(const std::string& name);
  // "UTF8", "LATIN1"
  std::string encoding();

 private:
  PgTarget(TargetSettings settings, Random& random, const std::string& database);
  // Executes a query; the result is text, row by row.
  std::vector<std::vector<std::string>> query(const std::string& sql, const std::vector<std::string>& parameters = {});
  // Executes one or more statements without a result. Throws pg::Failure.
  void execute(const std::string& sql);
  // Lets PostgreSQL notice the death of this runner during a statement, so that the next runner need not wait for it.
  void watch_runner();
  void drop_scratch() noexcept;
  bool has_ledger();

  const TargetSettings settings_;
  Random& random_;
  std::string ledger_;  // its quoted name
  PgNotices notices_;
  std::unique_ptr<PGconn, decltype(&PQfinish)> handle_{nullptr, &PQfinish};
  std::unique_ptr<PGcancel, decltype(&PQfreeCancel)> cancel_{nullptr, &PQfreeCancel};
  std::string transaction_;       // the id of the open one
  std::string file_;              // that was applied last
  std::string scratch_database_;  // dropped with the object
};

}  // namespace latchkey::migrate
