#include "migrate/plan.hpp"

#include <gmock/gmock.h>

namespace latchkey::migrate {
namespace {

using testing::HasSubstr;

struct Parsed {
  Plan plan;
  std::vector<Fault> faults;
  std::string messages() const { return to_string(faults); }
};

Parsed parse(const std::string& text) {
  Parsed parsed;
  parsed.plan = parse_plan("p.yml", text, parsed.faults);
  return parsed;
}

TEST(Plan, HasEveryMemberOfARollback) {
  const Parsed parsed = parse(R"(change: Add user_preferences
version: v2.1.0
rollback_version: v2.0.3
triggers: [error_rate > 5%, response_time > 2s, user_complaints > 10]
data_loss_risk: minimal
estimated_time: 15 minutes
dependencies: []
steps:
  - Export the data
  - run: down
  - Inform all users
verification_queries:
  - SELECT 1
  - query: SELECT count(*) FROM t
    after_up: 1
    after_rollback: null
  - query: SELECT a FROM t
    after_up: [x, y]
  - {query: SELECT count(*) FROM users, unchanged: true}
)");
  EXPECT_EQ(parsed.messages(), "");
  EXPECT_EQ(parsed.plan.rollback_version, "v2.0.3");
  EXPECT_EQ(parsed.plan.triggers.size(), 3u);
  EXPECT_EQ(parsed.plan.data_loss_risk, DataLossRisk::minimal);
  EXPECT_EQ(parsed.plan.estimated_time, std::chrono::minutes{15});
  ASSERT_EQ(parsed.plan.steps.size(), 3u);
  EXPECT_TRUE(parsed.plan.steps[1].runs_down);
  ASSERT_EQ(parsed.plan.checks.size(), 4u);
  EXPECT_TRUE(parsed.plan.checks[0].is_bare);
  EXPECT_EQ(parsed.plan.checks[1].after_up, "1");
  EXPECT_EQ(parsed.plan.checks[1].after_rollback, "null");
  EXPECT_EQ(parsed.plan.checks[1].line, 14);
  EXPECT_EQ(parsed.plan.checks[2].after_up, "x\ny");
  EXPECT_TRUE(parsed.plan.checks[3].unchanged);
}

TEST(Plan, AcceptsTheFormOfADeploymentPlan) {
  const Parsed parsed = parse(R"(deployment:
  version: "v2.1.0"
  rollback_version: "v2.0.3"
  rollback_triggers:
    - error_rate > 5%
rollback_plan:
  change: Settings
  steps:
    - "Stop new deployments"
  data_changes:
    - "No data loss expected"
  data_loss_risk: none
  estimated_time: "15 minutes"
  verification_steps:
    - "Health check endpoints respond"
  verification_queries: [SELECT 1]
  dependencies: ["Feature must be disabled first"]
)");
  EXPECT_EQ(parsed.messages(), "");
  EXPECT_EQ(parsed.plan.version, "v2.1.0");
  EXPECT_EQ(parsed.plan.verification_steps.size(), 1u);
}

TEST(Plan, AcceptsTheNamesOfTheInterface) {
  const Parsed parsed = parse(R"(changeDescription: Add user_preferences table
rollbackSteps: [Run the down migration]
dataLossRisk: minimal
estimatedTime: 5 minutes
verificationQueries: [SELECT COUNT(*) FROM users WHERE id = 1]
dependencies: [User settings feature must be disabled first]
)");
  EXPECT_EQ(parsed.messages(), "");
  EXPECT_EQ(parsed.plan.change, "Add user_preferences table");
}

TEST(Plan, AllFaultsAreReportedWithTheirLines) {
  const Parsed parsed = parse(R"(change: x
data_loss_risk: some
estimated_tiem: 5 minutes
triggers: [much too slow]
steps:
  1. "Stop new deployments"
  2. "Verify"
verification_queries:
  - DELETE FROM t
  - SELECT 1; SELECT 2
  - query: SELECT 1
  - {query: SELECT 1, after_upp: 1, unchanged: yes}
dependencies: none
change: again
)");
  const std::string messages = parsed.messages();
  EXPECT_THAT(messages, HasSubstr("p.yml:2: `data_loss_risk` is none, minimal or significant, not `some`"));
  EXPECT_THAT(messages, HasSubstr("p.yml:3: there is no member `estimated_tiem`; did you mean `estimated_time`?"));
  EXPECT_THAT(messages, HasSubstr("p.yml:4: the trigger `much too slow`"));
  EXPECT_THAT(messages, HasSubstr("p.yml:6: `steps` must be a list with at least one item, each begun with `- `"));
  EXPECT_THAT(messages, HasSubstr("p.yml:9: a verification query only reads"));
  EXPECT_THAT(messages, HasSubstr("p.yml:10: a verification query is one statement"));
  EXPECT_THAT(messages, HasSubstr("p.yml:11: say what the query answers"));
  EXPECT_THAT(messages, HasSubstr("p.yml:12: there is no member `after_upp`; did you mean `after_up`?"));
  EXPECT_THAT(messages, HasSubstr("p.yml:13: `dependencies` must be a list"));
  EXPECT_THAT(messages, HasSubstr("p.yml:14: `change` is said twice"));
  EXPECT_THAT(messages, HasSubstr("`estimated_time` is missing"));
  EXPECT_EQ(parsed.faults.size(), 11u) << messages;
}

TEST(Plan, EveryMissingMemberIsReported) {
  EXPECT_EQ(parse("change: x\n").messages(),
            "p.yml:1: `steps` is missing\n"
            "p.yml:1: `data_loss_risk` is missing\n"
            "p.yml:1: `estimated_time` is missing\n"
            "p.yml:1: `verification_queries` is missing\n"
            "p.yml:1: `dependencies` is missing");
  EXPECT_EQ(parse("steps: [run: down]\ndata_loss_risk: none\nestimated_time: 1 s\ndependencies: []\n"
                  "verification_queries: [SELECT 1]\n")
                .messages(),
            "p.yml:1: `change` is missing");
}

TEST(Plan, AnswersAreRowsOfText) {
  const std::string rest =
      "change: x\nsteps: [run: down]\ndata_loss_risk: none\nestimated_time: 1 s\ndependencies: []\n";
  const auto answer = [&](const std::string& rows) {
    return parse(rest + "verification_queries:\n  - query: SELECT a FROM t\n    after_up: " + rows + "\n");
  };
  EXPECT_EQ(answer("['', x]").plan.checks[0].after_up, "\nx");
  EXPECT_EQ(answer("['', '']").plan.checks[0].after_up, "\n");
  EXPECT_EQ(answer("[~, x]").plan.checks[0].after_up, "null\nx");
  EXPECT_EQ(answer("[]").plan.checks[0].after_up, "");
  EXPECT_EQ(answer("['', x]").messages(), "");
  EXPECT_THAT(answer("[[1, 2], x]").messages(), HasSubstr("p.yml:8: a row of `after_up` is one text"));
  EXPECT_THAT(answer("[{a: 1}]").messages(), HasSubstr("p.yml:8: a row of `after_up` is one text"));
}

TEST(Plan, InvalidYamlIsAFault) {
  EXPECT_THAT(parse("a: [1\nb: 2\n").messages(), HasSubstr("not YAML"));
  EXPECT_THAT(parse("").messages(), HasSubstr("one YAML document"));
  EXPECT_THAT(parse("- a\n").messages(), HasSubstr("one YAML document"));
  EXPECT_THAT(parse("a: 1\n---\nb: 2\n").messages(), HasSubstr("one YAML document"));
}

}  // namespace
}  // namespace latchkey::migrate
