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

TEST(OutputText, HasBothStreams) {
  const auto text = [](const StoredOutput& of, std::string_view known = "") {
    return write_output_text(of.output, of.errors, known);
  };
  EXPECT_EQ(text(stored("")), "");
  EXPECT_EQ(text(stored("", "boom\n"), "boom"), "") << "the error has this line already";
  EXPECT_EQ(text(stored("out\n", "a\nboom\n"), "boom"), "\n--- stdout\nout\n--- stderr\na\nboom");
  EXPECT_EQ(text(stored("\xff")), "\n--- stdout\n\\377");
}

TEST(OutputText, FitsIntoAStoredError) {
  const std::string big(65'536, 'x');
  for (const auto& [out, err] : {std::pair{big, big}, {big, std::string("e")}, {std::string("o"), big}}) {
    const auto both = stored(out, err);
    const std::string text = write_output_text(both.output, both.errors, "");
    EXPECT_LT(text.size(), 63u * 1024);
    EXPECT_GT(text.size(), 61u * 1024) << "a short stream leaves its room to the other one";
    EXPECT_NE(text.find("(the end of 65536 bytes)"), text.npos);
  }
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
