#include "cli/exit_codes.hpp"

#include <gtest/gtest.h>

#include "cli/flag_words.hpp"

namespace latchkey {
namespace {

TEST(ExitCodes, ServerThatCannotStartIsUnavailable) {
  for (const Code code : {Code::MIGRATION_CHANGED, Code::FORBIDDEN, Code::STORE_FORMAT, Code::LISTEN_FAILED,
                          Code::MIGRATION_LOCKED, Code::STORE_UNAVAILABLE})
    EXPECT_EQ(exit_code_of_start(code), 69) << facts(code).name;
  EXPECT_EQ(exit_code_of_start(Code::STORE_LOCKED), 75);
  EXPECT_EQ(exit_code_of_start(Code::USAGE), 2);
  EXPECT_EQ(exit_code_of_start(Code::INTERNAL), 70);
}

TEST(FlagWords, MembersBecomeFlags) {
  EXPECT_EQ(with_flag_words({Code::INVALID_ARGUMENT, "`window_ms` is 100000d; it must be 0s to 3653d"}).detail,
            "`--window` is 100000d; it must be 0s to 3653d");
  const Error tenants{Code::INVALID_ARGUMENT,
                      "the token acts for several tenants: name one in Latchkey-Tenant or `tenant`"};
  EXPECT_EQ(with_flag_words(tenants).detail, "the token acts for several tenants: name one with --tenant");
  EXPECT_FALSE(
      with_flag_words({Code::UNAUTHENTICATED, "send Authorization: Bearer with a token"}).detail.contains("Bearer"));
  EXPECT_TRUE(with_flag_words({Code::FORBIDDEN, "the token may not act for tenant `default`, only for acme"})
                  .detail.ends_with("only for acme; choose with --tenant"));
}

}  // namespace
}  // namespace latchkey
