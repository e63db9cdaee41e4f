#include "keying/cache_key.hpp"

#include <gtest/gtest.h>

#include "base/hex.hpp"
#include "base/sha256.hpp"
#include "keying/key_hash.hpp"

namespace latchkey {
namespace {

// covers: D1
TEST(CacheKey, HashesJobCanonicalInputsAndProcess) {
  EXPECT_EQ(compute_cache_key("job-1", R"({"b":2.0, "a":1})", "buffer"),
            to_hex(sha256(R"(job-1:{"a":1,"b":2}:buffer)")));
  EXPECT_EQ(compute_cache_key("", "[]", "buffer"), to_hex(sha256(":[]:buffer")));
}

TEST(CacheKey, RefusesAmbiguousProcessIds) {
  // job "a:1", inputs 2, process "p" is the same text as job "a", inputs 1, process "2:p".
  EXPECT_TRUE(compute_cache_key("a:1", "2", "p"));
  EXPECT_EQ(compute_cache_key("a", "1", "2:p").error().code, Code::INVALID_ARGUMENT);
  EXPECT_EQ(compute_cache_key("a", "1", "").error().code, Code::INVALID_ARGUMENT);
  EXPECT_EQ(compute_cache_key("a", "{", "p").error().code, Code::INVALID_JSON);
}

TEST(KeyHash, DependsOnTheBordersOfItsParts) {
  EXPECT_EQ(compute_key_hash("t", "s", "k"), compute_key_hash("t", "s", "k"));
  EXPECT_NE(compute_key_hash("ts", "", "k"), compute_key_hash("t", "s", "k"));
  EXPECT_NE(compute_key_hash("t", "sk", ""), compute_key_hash("t", "s", "k"));
}

}  // namespace
}  // namespace latchkey
