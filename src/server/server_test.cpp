#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "api/token.hpp"
#include "server/admin_key.hpp"
#include "server/settings.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "support/folder.hpp"

namespace latchkey {
namespace {

TEST(Listen, AcceptsAddressesAndPorts) {
  const auto at = parse_listen("127.0.0.1:7420");
  ASSERT_TRUE(at);
  EXPECT_EQ(at->address, "127.0.0.1");
  EXPECT_EQ(at->port, 7420);
  EXPECT_TRUE(at->is_loopback);
  EXPECT_TRUE(parse_listen("[::1]:0")->is_loopback);
  EXPECT_TRUE(parse_listen("localhost:80")->is_loopback);
  EXPECT_FALSE(parse_listen("0.0.0.0:80")->is_loopback);
  EXPECT_FALSE(parse_listen("[::]:80")->is_loopback);
  for (const char* bad : {"", "7420", ":7420", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "::1:80",
                          "example.com:80", "127.0.0.1:-1"})
    EXPECT_FALSE(parse_listen(bad)) << bad;
  EXPECT_EQ(format_address("::1", 5), "[::1]:5");
}

class AdminKey : public ::testing::Test {
 protected:
  void SetUp() override { reopen("a.db"); }
  void reopen(const std::string& name) {
    store.reset();
    store = std::move(SqliteStore::open({.file = folder.file(name)}, clock, random).value());
  }
  std::string token() const {
    std::string text;
    std::ifstream(path) >> text;
    return text;
  }

  Folder folder;
  SystemClock clock;
  SystemRandom random;
  std::unique_ptr<SqliteStore> store;
  const std::string path = folder.file("admin.key");
};

TEST_F(AdminKey, IsCreatedOnce) {
  ASSERT_TRUE(ensure_admin_key(path, *store, random));
  const std::string first = token();
  EXPECT_TRUE(api::parse_token(first));
  struct stat facts{};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  ASSERT_TRUE(ensure_admin_key(path, *store, random));
  EXPECT_EQ(token(), first);
  EXPECT_EQ(store->list_tokens()->size(), 1u);
}

TEST_F(AdminKey, IsAddedToANewStore) {
  ASSERT_TRUE(ensure_admin_key(path, *store, random));
  reopen("b.db");
  ASSERT_TRUE(ensure_admin_key(path, *store, random));
  EXPECT_EQ(store->list_tokens()->at(0).id, api::parse_token(token())->id);
}

TEST_F(AdminKey, StaysRevoked) {
  ASSERT_TRUE(ensure_admin_key(path, *store, random));
  const std::string text = token();
  ASSERT_TRUE(store->revoke_token(std::string(api::parse_token(text)->id)).value());
  ASSERT_TRUE(ensure_admin_key(path, *store, random));
  EXPECT_TRUE(store->list_tokens()->at(0).revoked_at);
}

TEST_F(AdminKey, IsNeverReplaced) {
  std::ofstream(path) << "something else\n";
  EXPECT_FALSE(ensure_admin_key(path, *store, random));
  EXPECT_EQ(token(), "something");
}

}  // namespace
}  // namespace latchkey
