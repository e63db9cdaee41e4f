// The catalog in files that earlier versions made, and in files of later ones.
#include "store/sqlite/catalog_rows.hpp"

#include <gtest/gtest.h>

#include "store/sqlite/transfer_status.hpp"
#include "store/sqlite/schema.sql.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "support/folder.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

class SqliteCatalog : public testing::Test {
 protected:
  // A store as the version before the catalog made it.
  void make_older_file() {
    Database database(file_, nullptr, Access::write);
    database.execute("PRAGMA journal_mode = WAL; BEGIN IMMEDIATE;" + std::string(sql::schema) + "COMMIT");
  }
  Result<std::unique_ptr<SqliteStore>> open(bool opens_transferred = false) {
    return SqliteStore::open({.file = file_, .opens_transferred = opens_transferred}, clock_, random_);
  }
  static Result<ChangeReply> put(SqliteStore& store, const std::string& body) {
    return store.write_records(
        {{{.id = {RecordKind::function, "", "f"}, .write = PutRecord{.body = body}, .expected = {}}}, "pat"});
  }

  const Folder folder_;
  const std::string file_ = folder_.file("latchkey.db");
  ManualClock clock_{from_ms(1'770'000'000'000)};
  SystemRandom random_;
};

TEST_F(SqliteCatalog, OlderFileGetsTheTables) {
  make_older_file();
  for (std::uint64_t nth = 1; nth <= 2; ++nth) {
    const auto store = open();
    ASSERT_TRUE(store) << to_string(store.error());
    EXPECT_EQ((*store)->catalog_version().value(), nth - 1);
    EXPECT_TRUE(put(**store, std::to_string(nth)));
    EXPECT_EQ((*store)->catalog_version().value(), nth);
  }
}

TEST_F(SqliteCatalog, OlderMovedFileGetsTheTables) {
  make_older_file();
  write_transfer_status(file_, {.address = "db:5432/latchkey", .at = clock_.now(), .is_finished = true});
  EXPECT_EQ(open().error().code, Code::STORE_MOVED);
  const auto store = open(true);
  ASSERT_TRUE(store) << to_string(store.error());
  EXPECT_TRUE((*store)->list_records({}).value().empty());
}

// A caller that polls the version sees it as soon as the writer has its reply, and never one that was rolled back.
TEST_F(SqliteCatalog, VersionIsThatOfCommittedChanges) {
  const auto store = open();
  ASSERT_TRUE(store);
  const auto conflict = (*store)->write_records(
      {{{.id = {RecordKind::function, "", "g"}, .write = PutRecord{.body = "1"}},
        {.id = {RecordKind::function, "", "f"}, .write = PutRecord{.body = "1"}, .expected = 4}},
       "pat"});
  EXPECT_TRUE(std::holds_alternative<VersionConflict>(conflict.value()));
  EXPECT_EQ((*store)->catalog_version().value(), 0u);
  EXPECT_TRUE(put(**store, "1"));
  EXPECT_EQ((*store)->catalog_version().value(), 1u);
}

TEST_F(SqliteCatalog, UnknownKindIsRefusedOnlyWhereItIsListed) {
  const auto store = open();
  ASSERT_TRUE(store);
  EXPECT_TRUE(put(**store, "1"));
  Database(file_, nullptr, Access::write)
      .execute(
          "PRAGMA busy_timeout = 5000; INSERT INTO lk_catalog VALUES ('from_the_future', '', 'x', 1, 2, 'api', 0, 0, "
          "0, '', '{}')");
  EXPECT_EQ((*store)->list_records({}).error().code, Code::STORE_FORMAT);
  EXPECT_EQ((*store)->list_records({.kinds = {RecordKind::function}}).value().size(), 1u);
}

}  // namespace
}  // namespace latchkey
