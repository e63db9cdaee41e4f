// `latchkey init` and `latchkey check`, as users call them.
#include <filesystem>
#include <fstream>

#include "cli/cli_fixture.hpp"

namespace latchkey {
namespace {

class ConfigCommands : public CliTest {
 protected:
  std::string write(const std::string& text) const {
    std::ofstream(file("latchkey.yaml")) << text;
    return file("latchkey.yaml");
  }
};

TEST_F(ConfigCommands, InitWritesAConfigWithoutFaults) {
  const Answer made = call({"init", file("shop")});
  EXPECT_EQ(made.exit, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("latchkey check --config " + file("shop/latchkey.yaml")));
  const Answer checked = call({"check", "--config", file("shop/latchkey.yaml")});
  EXPECT_EQ(checked.exit, 0) << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("hello: safe to run twice: no"));
  EXPECT_THAT(checked.out, HasSubstr("no fault, 2 functions"));
}

TEST_F(ConfigCommands, InitNeverOverwrites) {
  std::filesystem::create_directories(file("shop"));
  std::ofstream(file("shop/hello.sh")) << "mine";
  const Answer refused = call({"init", file("shop")});
  EXPECT_EQ(refused.exit, 2);
  EXPECT_THAT(refused.err, HasSubstr("hello.sh exists already; nothing was written"));
  EXPECT_FALSE(std::filesystem::exists(file("shop/latchkey.yaml")));
}

// covers: A8
TEST_F(ConfigCommands, CheckReportsFaultsAndTheChecklist) {
  const std::string faulty = write("functions:\n  a: {http: http://x/, tmeout: 3s}\n  b: {}\n");
  const Answer refused = call({"check", "--config", faulty});
  EXPECT_EQ(refused.exit, 65);
  EXPECT_THAT(refused.err, HasSubstr(faulty + ":2:32: `tmeout` is not known; did you mean `timeout`?"));
  EXPECT_THAT(refused.err, HasSubstr(faulty + ":3:6: a function has exactly one of"));
  EXPECT_THAT(refused.err, HasSubstr("2 faults"));

  const Answer good = call({"check", "--config", write("functions:\n  a: {http: http://x/, effect: keyed}\n")});
  EXPECT_EQ(good.exit, 0);
  EXPECT_THAT(good.out, HasSubstr("a: safe to run twice: yes"));
  EXPECT_THAT(good.out, HasSubstr("[ ] key"));
  EXPECT_THAT(good.out, HasSubstr("[x] dead_letter"));

  EXPECT_EQ(call({"check", "--config", file("none.yaml")}).exit, 2);
}

TEST_F(ConfigCommands, CheckPrintsTheSchema) {
  const Answer schema = call({"check", "--print-schema"});
  EXPECT_EQ(schema.exit, 0);
  EXPECT_THAT(schema.out, HasSubstr("http://json-schema.org/draft-07/schema#"));
}

}  // namespace
}  // namespace latchkey
