// Configs: what is read, and every fault with its line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "config/config_file.hpp"
#include "config/function_settings.hpp"
#include "config/placeholder.hpp"
#include "config/retry_settings.hpp"

namespace latchkey::config {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> faults_of(std::string_view text) {
  std::vector<Fault> faults;
  parse_config(text, "l.yaml", faults);
  std::vector<std::string> lines;
  for (const Fault& fault : faults) lines.push_back(describe(fault, "l.yaml"));
  return lines;
}

ConfigFile read(std::string_view text) {
  std::vector<Fault> faults;
  ConfigFile config = parse_config(text, "l.yaml", faults);
  EXPECT_TRUE(faults.empty()) << describe(faults.at(0), "l.yaml");
  return config;
}

constexpr std::string_view kWhole = R"(
store: sqlite:latchkey.db
listen: 127.0.0.1:7421
workers: {http: 8, command: 2, drain: 5s}
functions:
  sync-xledger:
    description: Export bookings to Xledger
    http: http://127.0.0.1:3000/sync
    headers: {Authorization: "Bearer ${env:SYNC_TOKEN}"}
    timeout: 90s
    guard: while-running
    key: "{function}:{tenant}"
    busy_code: SYNC_ALREADY_RUNNING
    effect: keyed
    on_doubt: probe
    probe: {http: http://127.0.0.1:3000/sync/status}
    retry: {retries: 3, first: 1s, factor: 5, ceiling: 30s}
    priority: -5
    concurrency: {total: 8, per_tenant: 1}
    rate: {count: 100, per: 1m}
    then: [{function: notify, input: {rows: "{result./rows}"}}]
  notify:
    command: [./notify.sh, --now]
    retry: background
  import: {pull: true}
)";

TEST(Config, ReadsEveryMember) {
  const ConfigFile config = read(kWhole);
  EXPECT_EQ(config.server.listen, "127.0.0.1:7421");
  EXPECT_EQ(config.server.store, "sqlite:" + config.folder + "/latchkey.db") << "relative to the file's folder";
  EXPECT_EQ(config.workers.http, 8u);
  EXPECT_EQ(config.workers.drain, 5s);
  ASSERT_EQ(config.functions->size(), 3u);
  const FunctionDefinition& sync = config.functions->at(0);
  EXPECT_EQ(sync.name, "sync-xledger");
  EXPECT_EQ(sync.headers.at("Authorization"), "Bearer ${env:SYNC_TOKEN}") << "placeholders stay as written";
  EXPECT_EQ(sync.timeout, 90s);
  EXPECT_EQ(sync.guard, Guard::while_running);
  EXPECT_EQ(sync.on_doubt, DoubtPolicy::probe);
  EXPECT_EQ(sync.retry->factor, 5u);
  EXPECT_EQ(sync.priority, -5);
  EXPECT_EQ(sync.concurrency->per_tenant, 1u);
  EXPECT_EQ(sync.rate->per, 60s);
  EXPECT_EQ(sync.then.at(0).input, R"({"rows":"{result./rows}"})");
  const FunctionDefinition& notify = config.functions->at(1);
  EXPECT_THAT(notify.command, ElementsAre(config.folder + "/notify.sh", "--now"));
  EXPECT_EQ(notify.retry->total, 5min) << "the kind `background`";
  EXPECT_EQ(notify.effect_or_default(), EffectKind::plain);
  EXPECT_EQ(notify.on_doubt_or_default(), DoubtPolicy::hold);
  EXPECT_TRUE(config.functions->at(2).pull);
}

TEST(Config, StoredFormReadsBackTheSame) {
  for (const FunctionDefinition& function : *read(kWhole).functions) {
    const auto again = read_function(function.name, to_json(function));
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_EQ(*again, function) << to_json(function);
    EXPECT_EQ(to_json(*again), to_json(function));
  }
}

TEST(Config, ReportsEveryFaultWithItsLine) {
  EXPECT_THAT(faults_of("lisen: 1\n"
                        "workers: {http: many}\n"
                        "functions:\n"
                        "  a:\n"
                        "    htp: http://x/\n"
                        "    timeout: soon\n"
                        "    retry: {retires: 3}\n"
                        "  b: {http: http://x/, command: [y]}\n"),
              ElementsAre(HasSubstr("l.yaml:2:17: `http` must be a whole number"),
                          HasSubstr("l.yaml:6:14: `timeout` must be a duration"),
                          HasSubstr("l.yaml:7:22: `retires` is not known; did you mean `retries`?"),
                          HasSubstr("l.yaml:5:10: `htp` is not known; did you mean `http`?"),
                          HasSubstr("a function has exactly one of"), HasSubstr("l.yaml:8:6: a function has exactly"),
                          HasSubstr("l.yaml:1:8: `lisen` is not known; did you mean `listen`?")));
}

TEST(Config, RefusesWhatIsNoConfig) {
  EXPECT_THAT(faults_of("- a\n"), ElementsAre(HasSubstr("a config is a mapping")));
  EXPECT_THAT(faults_of("a: [1\n"), ElementsAre(HasSubstr("not YAML")));
  EXPECT_THAT(faults_of("listen: a\nlisten: b\n"), Contains(HasSubstr("l.yaml:2:1: `listen` occurs twice")));
  EXPECT_THAT(faults_of("x: &a 1\ny: *a\n"), Contains(HasSubstr("not supported")));
  EXPECT_THAT(faults_of(std::string(100'000, '[')), Contains(HasSubstr("l.yaml:")));
  EXPECT_THAT(faults_of("listen: \"\xff\"\n"), ElementsAre(HasSubstr("not UTF-8")));
  EXPECT_THAT(faults_of(""), IsEmpty()) << "an empty file is a config";
}

TEST(Config, AbsentAndEmptyFunctionsDiffer) {
  EXPECT_FALSE(read("listen: a:1\n").functions);
  EXPECT_TRUE(read("functions: {}\n").functions);
  EXPECT_TRUE(read("functions:\n").functions);
}

TEST(Config, RulesOverSeveralMembers) {
  const auto faults = [](const std::string& members) {
    return faults_of("functions:\n  f: {http: http://x/, " + members + "}\n");
  };
  EXPECT_THAT(faults("effect: transactional"), Contains(HasSubstr("only through the library and SQL")));
  EXPECT_THAT(faults("on_doubt: probe"), Contains(HasSubstr("go together")));
  EXPECT_THAT(faults("guard: none, key: \"{tenant}\""), Contains(HasSubstr("no effect with `guard: none`")));
  EXPECT_THAT(faults("key: \"{tennant}\""), Contains(HasSubstr("tennant")));
  EXPECT_THAT(faults("headers: {A: \"${evn:X}\"}"), Contains(HasSubstr("is not a placeholder")));
  EXPECT_THAT(faults_of("functions:\n  f: {http: ftp://x/}\n"), Contains(HasSubstr("http:// or https://")));
  EXPECT_THAT(faults("retry: often"), Contains(HasSubstr("api, background, webhook or scheduled")));
}

TEST(Config, NamesEveryFaultOfAnApiBody) {
  const auto wrong = read_function("f", R"({"http":"http://x/","timeout":"soon","retires":1})");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::INVALID_ARGUMENT);
  EXPECT_THAT(wrong.error().detail, HasSubstr("`timeout` must be a duration"));
  EXPECT_THAT(wrong.error().detail, HasSubstr("`retires` is not known"));
  EXPECT_FALSE(read_function("f", "[]"));
  EXPECT_FALSE(read_function("f", "{"));
  EXPECT_FALSE(read_function("", R"({"pull":true})"));
  EXPECT_FALSE(read_function("f", R"({"pull":true,"pull":true})"));
}

TEST(Config, PlaceholdersReadTheEnvironmentAndFiles) {
  ::setenv("LK_CONFIG_TEST", "s3cret", 1);
  EXPECT_EQ(substitute("Bearer ${env:LK_CONFIG_TEST}!", "."), "Bearer s3cret!");
  EXPECT_EQ(substitute("$${env:X}", "."), "${env:X}");
  const auto missing = substitute("${env:LK_NOT_SET} ${file:no/such/file}", ".");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().detail, HasSubstr("${env:LK_NOT_SET} has no value here"));
  FunctionDefinition function{.name = "f", .http = "http://${env:LK_CONFIG_TEST}/", .secret = "${env:LK_NO}"};
  const auto unfilled = substitute(function, ".");
  ASSERT_FALSE(unfilled);
  EXPECT_THAT(unfilled.error().detail, ::testing::Not(HasSubstr("s3cret")));
  function.secret.clear();
  EXPECT_EQ(substitute(function, ".")->http, "http://s3cret/");
}

TEST(Config, SchemaNamesEveryMember) {
  const std::string schema = write_config_schema();
  std::vector<Fault> faults;
  const Node root = parse_json(schema, faults);
  ASSERT_THAT(faults, IsEmpty());
  EXPECT_EQ(root.find("$schema")->text, "http://json-schema.org/draft-07/schema#");
  const Node* function = root.find("properties")->find("functions")->find("additionalProperties");
  ASSERT_NE(function, nullptr);
  for (const char* name : {"http", "command", "pull", "retry", "concurrency", "rate", "then", "probe", "output"})
    EXPECT_NE(function->find("properties")->find(name), nullptr) << name;
}

TEST(Config, RetryKindsMatchTheirBudgets) {
  EXPECT_EQ(find_retry_kind("api")->total, 10s);
  EXPECT_EQ(find_retry_kind("background")->retries, 5u);
  EXPECT_EQ(find_retry_kind("webhook")->schedule.size(), 9u);
  EXPECT_EQ(find_retry_kind("scheduled")->total, 1h);
  EXPECT_FALSE(find_retry_kind("often"));
}

}  // namespace
}  // namespace latchkey::config
