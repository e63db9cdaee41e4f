// SqliteTarget: migrations in an SQLite file. An exclusive transaction excludes other runners. Foreign keys are checked
// before the commit and not per statement, because a table can only be rebuilt without that.
#pragma once

#include <atomic>
#include <filesystem>
#include <optional>

#include "migrate/target.hpp"
#include "store/sqlite/database.hpp"
#include "store/sqlite/store_lock.hpp"

namespace latchkey::migrate {

class SqliteTarget final : public Target {
 public:
  SqliteTarget(std::string file, Clock& clock, Random& random);
  ~SqliteTarget() override;

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

 private:
  Database& database();
  std::vector<std::vector<std::string>> query(const std::string& sql);
  [[noreturn]] void fail_query();
  std::vector<std::string> list_orphans();

  const std::string file_;
  Clock& clock_;
  Random& random_;
  std::optional<StoreLock> lock_;  // if the file is also a store; released after the file is closed
  std::unique_ptr<Database> database_;
  std::atomic<sqlite3*> handle_ = nullptr;  // the database's, for interrupt()
  std::vector<std::string> orphans_before_;
  std::filesystem::path scratch_folder_;  // removed with the object
};

}  // namespace latchkey::migrate
