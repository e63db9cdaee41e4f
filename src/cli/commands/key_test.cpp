#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "cli/commands/commands.hpp"

namespace latchkey {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Ran {
  int exit = -1;
  std::string out, err;
};

Ran run(std::vector<std::string> arguments, const std::string& input = "") {
  std::istringstream in(input);
  std::ostringstream out, err;
  ManualClock clock(from_ms(1'770'372'000'000));  // 2026-02-06T10:00:00Z
  SystemRandom random;
  Ran ran;
  const CliContext context{.in = in,
                           .out = out,
                           .err = err,
                           .clock = clock,
                           .random = random,
                           .behind_dashes = {},
                           .set_exit = [&](int exit) { ran.exit = exit; }};
  CLI::App app;
  add_key_command(app, context);
  std::ranges::reverse(arguments);  // as CLI11 wants it
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    app.exit(error, out, err);
  }
  ran.out = out.str();
  ran.err = err.str();
  return ran;
}

std::vector<std::string> lock(std::vector<std::string> more) {
  more.insert(more.begin(), {"key", "lock", "--function", "detect-alerts", "--tenant", "acme"});
  return more;
}

TEST(KeyCommand, PrintsLockKeys) {
  EXPECT_EQ(run(lock({})).out, "detect-alerts:acme:2026-02-06\n");
  EXPECT_EQ(run(lock({})).exit, 0);
  EXPECT_EQ(run(lock({"--grain", "week", "--at", "2027-01-01T00:00:00Z"})).out, "detect-alerts:acme:2026-W53\n");
  EXPECT_EQ(run(lock({"--at", "2026-02-06T23:30:00Z", "--time-zone", "Europe/Oslo"})).out,
            "detect-alerts:acme:2026-02-07\n");
  EXPECT_EQ(run(lock({"--entity", "{}"})).out, "detect-alerts:acme:2026-02-06:4f53cda18c2b\n");
  // The JavaScript of the standard computes sha256(JSON.stringify([["rule_id","r123"]])), 12 digits.
  EXPECT_EQ(run(lock({"--entity", R"({"rule_id":"r123"})"})).out, "detect-alerts:acme:2026-02-06:d692718ec602\n");
  EXPECT_EQ(run({"key", "entity"}, R"({"rule_id":"r123"})").out, "d692718ec602\n");
  EXPECT_EQ(run(lock({"--template", "gen:{tenant}:{input./alertId}:{day}", "--input", R"({"alertId":"a-7"})"})).out,
            "gen:acme:a-7:2026-02-06\n");
}

// covers: D1
TEST(KeyCommand, PrintsWhatItMakesOfStdin) {
  EXPECT_EQ(run({"key", "canonical"}, "{\"b\":2, \"a\":1.50}\n").out, "{\"a\":1.5,\"b\":2}\n");
  EXPECT_EQ(run({"key", "fingerprint"}, "{ }").out,
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\n");
  EXPECT_EQ(run({"key", "entity"}, "{}").out, "4f53cda18c2b\n");
  EXPECT_EQ(run({"key", "cache", "--job", "j", "--process", "p"}, "[ 1 ]").out,
            "723c9490ad0b1c7113da7508b3c2e0c96e67ddb03cf40ce6a232044072ce12ed\n");
}

TEST(KeyCommand, DistinguishesBadDataFromBadUsage) {
  const Ran data = run({"key", "canonical"}, "{");
  EXPECT_EQ(data.exit, EXIT_BAD_DATA);
  EXPECT_EQ(data.out, "");
  EXPECT_EQ(data.err, "latchkey: INVALID_JSON: unexpected end at byte 1\n");
  EXPECT_EQ(run(lock({"--entity", "[]"})).exit, EXIT_BAD_DATA);
  for (const auto& flags : std::vector<std::vector<std::string>>{{"--grain", "year"},
                                                                 {"--at", "yesterday"},
                                                                 {"--time-zone", "Mars"},
                                                                 {"--template", "{x}"},
                                                                 {"--template", "{entity}"}}) {
    const Ran usage = run(lock(flags));
    EXPECT_EQ(usage.exit, EXIT_USAGE) << flags[1];
    EXPECT_THAT(usage.err, StartsWith("latchkey: INVALID_ARGUMENT: "));
  }
}

// On the command line and on stdin alike: nothing is printed that could be taken for a key.
TEST(KeyCommand, SaysWhatIsWrongWithTheJson) {
  const std::string deep = std::string(129, '[') + std::string(129, ']');
  const std::pair<std::string, std::string> cases[] = {
      {R"({"a":1,"a":2})", "duplicate member name at byte 7"},
      {R"({"a":1,"\u0061":2})", "duplicate member name at byte 7"},
      {R"({"a":"\ud800"})", "lone surrogate at byte 6"},
      {R"({"a":"\udc00\ud800"})", "lone surrogate at byte 6"},
      {R"({"a":)" + deep + "}", "nesting deeper than 128 levels at byte 132"},
      {R"({"a":1} x)", "unexpected content after the value at byte 8"},
      {"{\"a\":\"\xff\"}", "not valid UTF-8"},
      {R"({"a":9007199254740993})", "number cannot be represented exactly; send it as a string, at byte 5"},
      {R"({"a":01})", "malformed number at byte 6"},
      {R"({"a":1e999})", "number is beyond the range of a double; send it as a string, at byte 5"},
      {"", "the text is empty"}};
  for (const auto& [json, why] : cases) {
    for (const Ran& ran : {run({"key", "canonical"}, json), run({"key", "fingerprint"}, json),
                           run({"key", "entity"}, json), run(lock({"--entity", json}))}) {
      EXPECT_EQ(ran.exit, EXIT_BAD_DATA) << json;
      EXPECT_EQ(ran.out, "") << json;
      EXPECT_THAT(ran.err, StartsWith("latchkey: INVALID_JSON: ")) << json;
      EXPECT_THAT(ran.err, HasSubstr(why)) << json;
    }
  }
}

TEST(KeyCommand, HelpsWithExamples) {
  for (const char* command : {"lock", "entity", "canonical", "fingerprint", "cache"})
    EXPECT_THAT(run({"key", command, "--help"}).out, HasSubstr("latchkey key " + std::string(command)));
  EXPECT_THAT(run({"key", "--help"}).out, HasSubstr("detect-alerts"));
  EXPECT_EQ(run({"key"}).exit, -1);
}

}  // namespace
}  // namespace latchkey
