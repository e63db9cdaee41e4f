#include "effects/stored_output.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace latchkey {
namespace {

StoredOutput stored(std::string output, std::string errors = "") {
  const std::uint64_t size = output.size(), more = errors.size();
  return {0, {std::move(output), size, false}, {std::move(errors), more, false}};
}

TEST(StoredOutput, IsReadableWhereItIsText) {
  EXPECT_EQ(write_stored_output(stored("done\n")),
            R"({"exit_code":0,"stdout":{"text":"done\n","bytes":5,"truncated":false},)"
            R"("stderr":{"text":"","bytes":0,"truncated":false}})");
}

TEST(StoredOutput, EveryByteIsReadBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const std::string& bytes :
       {std::string(), std::string("\0", 1), std::string("\xff"), std::string("a\"\\\n\x01\x1b é €"), all, all + "1",
        all + "12", std::string(65'536, '\x01')}) {
    const auto read = read_stored_output(write_stored_output(stored(bytes, bytes)));
    ASSERT_TRUE(read) << bytes.size();
    EXPECT_EQ(read->output.bytes, bytes);
    EXPECT_EQ(read->errors.bytes, bytes);
    EXPECT_EQ(read->output.total, bytes.size());
  }
}

TEST(StoredOutput, RefusesOtherResults) {
  for (const char* other : {"", "{}", "null", R"({"exit_code":0})", R"({"exit_code":0,"stdout":{},"stderr":{}})",
                            R"({"exit_code":0,"stdout":{"base64":"*"},"stderr":{"text":""}})"})
    EXPECT_FALSE(read_stored_output(other)) << other;
}

TEST(LastBytes, HasTheEndAndTheLength) {
  LastBytes last(4);
  EXPECT_FALSE(last.truncated());
  for (const char* part : {"ab", "cd", "e", "", "fghijklmno"}) last.add(part);
  EXPECT_EQ(last.bytes(), "lmno");
  EXPECT_EQ(last.total(), 15u);
  EXPECT_TRUE(last.truncated());
}

}  // namespace
}  // namespace latchkey
