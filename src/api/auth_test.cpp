#include "api/auth.hpp"

#include <gtest/gtest.h>

#include "api/token.hpp"
#include "store/memory/memory_store.hpp"

namespace latchkey::api {
namespace {

TEST(Token, NewTokenCanBeParsed) {
  SystemRandom random;
  const TokenText token = make_token(random), other = make_token(random);
  EXPECT_EQ(token.whole.size(), 3u + 16 + 1 + 40 + 6);
  const auto parts = parse_token(token.whole);
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->id, token.id);
  EXPECT_EQ(parts->secret_hash, token.secret_hash);
  EXPECT_NE(token.id, other.id);
  EXPECT_NE(token.secret_hash, other.secret_hash);
}

TEST(Token, RefusesEveryMistypedCharacter) {
  SystemRandom random;
  const std::string good = make_token(random).whole;
  int accepted = 0;
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = bad[i] == 'x' ? 'y' : 'x';
    accepted += parse_token(bad).has_value();
    EXPECT_FALSE(parse_token(good.substr(0, i)));
  }
  EXPECT_EQ(accepted, 0);
}

class TokenTableTest : public ::testing::Test {
 protected:
  std::string add(Role role, std::vector<std::string> tenants, std::optional<Instant> expires_at = {}) {
    const TokenText token = make_token(random);
    EXPECT_TRUE(store.add_token({token.id, token.secret_hash, "", role, std::move(tenants), {}, expires_at}));
    EXPECT_TRUE(table.refresh());
    return "Bearer " + token.whole;
  }

  SystemRandom random;
  ManualClock clock{from_ms(1'000'000)};
  MemoryStore store{clock, random};
  TokenTable table{store};
};

TEST_F(TokenTableTest, AcceptsSeveralSpacesBeforeToken) {
  const std::string header = add(Role::service, {"t"});
  EXPECT_TRUE(table.authenticate("bearer   " + header.substr(7), clock.now()));
  EXPECT_FALSE(table.authenticate("Bearer", clock.now()));
  EXPECT_FALSE(table.authenticate("Bearer   ", clock.now()));
  EXPECT_FALSE(table.authenticate("Bearer\t" + header.substr(7), clock.now()));
}

TEST_F(TokenTableTest, ForgottenTokenIsRefusedUntilRefresh) {
  const std::string header = add(Role::service, {"t"}), other = add(Role::viewer, {"t"});
  ASSERT_TRUE(table.authenticate(header, clock.now()));
  table.forget(header.substr(7 + 3, 16));
  EXPECT_FALSE(table.authenticate(header, clock.now())) << "although this thread has cached it";
  EXPECT_TRUE(table.authenticate(other, clock.now()));
  ASSERT_TRUE(table.refresh());
  EXPECT_TRUE(table.authenticate(header, clock.now()));
}

TEST_F(TokenTableTest, AcceptsAddedToken) {
  const std::string header = add(Role::service, {"t"});
  for (int i = 0; i < 3; ++i) {
    const auto principal = table.authenticate(header, clock.now());
    ASSERT_TRUE(principal);
    EXPECT_EQ((*principal)->role, Role::service);
    EXPECT_TRUE((*principal)->acts_for("t"));
    EXPECT_FALSE((*principal)->acts_for("u"));
  }
  EXPECT_FALSE(table.authenticate(std::nullopt, clock.now()));
  EXPECT_FALSE(table.authenticate("", clock.now()));
  EXPECT_FALSE(table.authenticate(header + " ", clock.now()));
}

TEST_F(TokenTableTest, RefusesRevokedAndExpiredTokens) {
  const std::string header = add(Role::admin, {});
  const std::string brief = add(Role::viewer, {"t"}, clock.now() + Duration{10});
  EXPECT_TRUE(table.authenticate(header, clock.now()));
  EXPECT_TRUE(table.authenticate(brief, clock.now()));
  EXPECT_FALSE(table.authenticate(brief, clock.now() + Duration{10}));
  EXPECT_TRUE(store.revoke_token(header.substr(10, 16)).value());
  EXPECT_TRUE(table.refresh());
  EXPECT_FALSE(table.authenticate(header, clock.now()));
}

TEST_F(TokenTableTest, OnlyAdminsHaveAllTenants) {
  EXPECT_FALSE(table.authenticate(add(Role::viewer, {}), clock.now())) << "a viewer needs a tenant";
  EXPECT_TRUE((*table.authenticate(add(Role::admin, {}), clock.now()))->acts_for("any"));
}

}  // namespace
}  // namespace latchkey::api
