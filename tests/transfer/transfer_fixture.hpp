// An SQLite store with runs in every state, and an empty PostgreSQL to move it into.
#pragma once

#include <source_location>

#include "cli/cli_fixture.hpp"
#include "conformance/store_test.hpp"
#include "keying/key_hash.hpp"
#include "migrate/open_postgres.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "support/postgres/pg_client.hpp"
#include "support/postgres/pg_server.hpp"
#include "transfer/transfer_store.hpp"

namespace latchkey {

using transfer::Summary;
using transfer::TransferReport;

// The runs that a test continues with after the move.
struct Filled {
  Won lock, doubt, first;  // a held lock; a run in doubt; a job that another job waits for
  Taken taken;             // a job that a worker has taken
  RunId done, dependent, called, given_back;
  ClaimId call;
  std::uint64_t fence = 0;    // the highest fence
  std::uint64_t counter = 0;  // the highest counter in an id
};

inline ClaimRequest again(const std::string& key, Guard guard = Guard::once) {
  ClaimRequest request = a_claim(key);
  request.guard = guard;
  return request;
}

class MoveTest : public CliTest {
 protected:
  using Run = latchkey::Run;  // not testing::Test::Run

  MoveTest() {
    std::filesystem::create_directory(data_dir_);
    environment_ = {"LATCHKEY_DATABASE=", "LATCHKEY_STORE="};
  }
  ~MoveTest() override {
    PgClient(url_).execute("DROP SCHEMA IF EXISTS held CASCADE");
    PgServer::instance().give_back(url_);
  }

  std::string store_file() const { return data_dir_ + "/latchkey.db"; }
  Result<std::unique_ptr<SqliteStore>> open_file() {
    return SqliteStore::open({.file = store_file()}, clock_, random_);
  }
  std::unique_ptr<PostgresStore> open_copy() {
    auto opened = migrate::open_postgres({.url = url_}, clock_, random_);
    if (!opened) throw std::runtime_error(to_string(opened.error()));
    return std::move(*opened);
  }
  Result<TransferReport> move(bool unmarked = false) {
    return transfer::transfer_store({.file = store_file(), .url = url_, .leaves_file_in_use = unmarked}, clock_,
                                    random_);
  }
  Code refusal(bool unmarked = false) {
    const auto moved = move(unmarked);
    EXPECT_FALSE(moved);
    return moved ? Code::INTERNAL : moved.error().code;
  }
  std::string ask(const std::string& sql) { return PgClient(url_).ask_one(sql); }
  Words words(Words more = {}) const {
    Words all{"move", "--to", url_};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Uuid some_id() { return make_uuid_v7(clock_.now(), random_.next(), random_.next()); }

  // Creates runs in every state, for two tenants, with dead letters, tokens and waiting jobs.
  Filled fill(int many = 0);
  void fill_dead_letters(Store& store);
  // Creates a key that an operator pointed back to an older run.
  RunId fill_given_back(Store& store);
  void fill_many(Store& store, int many);

  SystemClock clock_;
  SystemRandom random_;
  const std::string url_ = PgServer::instance().borrow_database();
};

template <class T, class Reply>
T as(Reply reply, std::source_location where = std::source_location::current()) {
  if (!std::holds_alternative<T>(reply))
    throw std::runtime_error("another reply than expected, number " + std::to_string(reply.index()) + ", at line " +
                             std::to_string(where.line()));
  return std::get<T>(std::move(reply));
}

}  // namespace latchkey
