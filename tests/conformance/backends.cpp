#include <gtest/gtest.h>

#include "base/assert.hpp"
#include "conformance/backend.hpp"
#include "migrate/open_postgres.hpp"
#include "store/memory/memory_store.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "support/folder.hpp"
#include "support/postgres/pg_server.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

class OpenMemory final : public OpenStore {
 public:
  Store& store() override { return *store_; }
  ManualClock& clock() override { return clock_; }
  void reopen() override { store_ = std::make_unique<MemoryStore>(clock_, random_); }
  bool is_durable() const override { return false; }

 private:
  ManualClock clock_{kNoon};
  SeededRandom random_{1};
  std::unique_ptr<MemoryStore> store_ = std::make_unique<MemoryStore>(clock_, random_);
};

class OpenSqlite final : public OpenStore {
 public:
  explicit OpenSqlite(SqliteSettings settings) : settings_(std::move(settings)) {
    settings_.file = folder_.file("latchkey.db");
    open();
  }
  Store& store() override { return *store_; }
  ManualClock& clock() override { return clock_; }
  void reopen() override {
    store_.reset();
    open();
  }
  bool is_durable() const override { return true; }

 private:
  void open() {
    auto opened = SqliteStore::open(settings_, clock_, random_);
    LK_ASSERT(opened);
    store_ = std::move(*opened);
  }

  const Folder folder_;
  ManualClock clock_{kNoon};
  SystemRandom random_;
  SqliteSettings settings_;
  std::unique_ptr<SqliteStore> store_;
};

// PreparedDatabases: databases are emptied and reused, because setting one up takes longer than most tests.
class PreparedDatabases {
 public:
  std::string borrow() {
    if (free_.empty()) return PgServer::instance().borrow_database();
    std::string url = std::move(free_.back());
    free_.pop_back();
    return url;
  }
  void give_back(const std::string& url) {
    PgClient hand(url);
    EXPECT_EQ(PgServer::find_contradiction(hand), "");
    PgServer::empty(hand);
    free_.push_back(url);
  }

 private:
  std::vector<std::string> free_;
};

PreparedDatabases& databases() {
  static PreparedDatabases all;
  return all;
}

class OpenPostgres final : public OpenStore {
 public:
  OpenPostgres() : url_(databases().borrow()) { open(); }
  ~OpenPostgres() override {
    store_.reset();
    databases().give_back(url_);
  }
  Store& store() override { return *store_; }
  ManualClock& clock() override { return clock_; }
  void reopen() override {
    store_.reset();
    open();
  }
  bool is_durable() const override { return true; }

 private:
  void open() {
    auto opened = migrate::open_postgres({.url = url_, .clock = &clock_}, host_, random_);
    if (!opened) throw std::runtime_error(to_string(opened.error()));
    store_ = std::move(*opened);
  }

  const std::string url_;
  SystemClock host_;  // the store's timeouts use real time
  ManualClock clock_{kNoon};
  SystemRandom random_;
  std::unique_ptr<PostgresStore> store_;
};

// Settings with a merge and a checkpoint after every few runs, so that every test has some.
SqliteSettings busy_merging() {
  return {.merge = {.window = 3, .window_max = 3, .slice_min = 1}, .checkpoint_pages = 10};
}

}  // namespace

const std::vector<Backend>& backends() {
  static const std::vector<Backend> kBackends{
      {"memory", [] { return std::make_unique<OpenMemory>(); }},
      {"sqlite", [] { return std::make_unique<OpenSqlite>(SqliteSettings{}); }},
      {"sqlite_merging", [] { return std::make_unique<OpenSqlite>(busy_merging()); }},
      {"postgres", [] { return std::make_unique<OpenPostgres>(); }},
      // A new back end goes here; add its library in CMakeLists.txt.
  };
  return kBackends;
}

}  // namespace latchkey
