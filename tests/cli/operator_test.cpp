// Operator actions from the command line, on the embedded store and through a server.
#include <signal.h>

#include <chrono>
#include <filesystem>

#include "cli/cli_fixture.hpp"
#include "keying/key_hash.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {
namespace {

enum class StoreOwner { command, server };

class OperatorCommands : public CliTest, public testing::WithParamInterface<StoreOwner> {
 protected:
  void SetUp() override {
    if (GetParam() == StoreOwner::command) return;
    server_ = start({"serve", "--listen", "127.0.0.1:0"});
    server_->read_line();
  }
  static std::string id_in(const std::string& json) { return json.substr(json.find("\"id\":\"") + 6, 36); }
  // A run in doubt: under `hold`, its owner was killed.
  std::string leave_doubt(const std::string& key) const {
    const auto owner = start(run(key, "echo $LATCHKEY_RUN; cat > /dev/null", {"--lease", "1s", "--on-doubt", "hold"}));
    const std::string id = owner->read_line();
    owner->signal(SIGKILL);
    owner->finish();
    EXPECT_EQ(call(run(key, "echo never", {"--wait"})).exit, 76);
    return id;
  }

  // A run whose owner was killed; its lease has not expired yet.
  std::string leave_dead(const std::string& key, Words flags = {}) const {
    flags.insert(flags.end(), {"--lease", "1s"});
    const auto owner = start(run(key, "echo $LATCHKEY_RUN; cat > /dev/null", flags));
    const std::string id = owner->read_line();
    owner->signal(SIGKILL);
    owner->finish();
    return id;
  }
  // Calls until the reply is good, while the lease expires; no other caller claims the key.
  template <class Good>
  bool becomes(const Words& words, Good good) const {
    // Each call starts a program, so the lease of one second expires long before the last call.
    for (int calls = 0; calls < 2'000; ++calls)
      if (good(call(words))) return true;
    return false;
  }

  std::unique_ptr<Process> server_;
};

TEST_P(OperatorCommands, ExpiredLeaseIsShownWithoutAClaim) {
  const std::string expired = leave_dead("expired", {"--on-doubt", "hold"});
  EXPECT_TRUE(becomes({"runs", "list", "--status", "in_doubt"},
                      [&](const Answer& answer) { return answer.out.find(expired) != std::string::npos; }));
  EXPECT_EQ(call({"runs", "resolve", expired, "--outcome", "completed"}).exit, 0);

  const std::string decided = leave_dead("decided", {"--on-doubt", "hold"});
  EXPECT_TRUE(becomes({"runs", "resolve", decided, "--outcome", "failed"},
                      [](const Answer& answer) { return answer.exit == 0; }));

  const std::string lost = leave_dead("lost");
  const auto watcher = start({"runs", "watch", lost});
  EXPECT_EQ(watcher->finish(), 1) << "its attempts are used up: it fails when the lease expires";
  EXPECT_THAT(watcher->out, HasSubstr(lost + "  failed"));

  leave_dead("unseen", {"--function", "unseen"});
  EXPECT_TRUE(becomes({"dlq", "list", "--function", "unseen"},
                      [](const Answer& answer) { return answer.out.find("OUTCOME_UNKNOWN") != std::string::npos; }));
}

TEST_P(OperatorCommands, RunInDoubtIsResolved) {
  const std::string done = leave_doubt("done");
  const Words completed{"runs", "resolve", done, "--outcome", "completed", "--result", R"({"sent":true})"};
  EXPECT_THAT(call(completed).out, HasSubstr("status       completed"));
  EXPECT_EQ(call(run("done", "echo never", {"--quiet"})).out, "{\"sent\":true}\n");
  EXPECT_EQ(call(completed).exit, 0) << "the same again";
  EXPECT_EQ(call({"runs", "resolve", done, "--outcome", "failed"}).exit, 1);

  const std::string failed = leave_doubt("failed");
  EXPECT_EQ(call({"runs", "resolve", failed, "--outcome", "failed", "--note", "never seen"}).exit, 0);
  EXPECT_THAT(call({"dlq", "list"}).out, HasSubstr("never seen"));

  const std::string again = leave_doubt("again");
  EXPECT_EQ(call({"runs", "resolve", again, "--outcome", "rerun"}).exit, 0);
  EXPECT_EQ(call(run("again", "echo $LATCHKEY_RUN")).out, again + "\n");
}

// covers: A11
TEST_P(OperatorCommands, RetryUsesTheOldOrANewEffectKey) {
  const auto member = [](const std::string& json, const std::string& name) {
    const auto at = json.find("\"" + name + "\":\"");
    return at == json.npos ? "" : json.substr(at + name.size() + 4, 36);
  };
  for (const bool fresh : {false, true}) {
    const std::string key = fresh ? "fresh" : "same";
    call(run(key, "exit 3"));
    const std::string id = id_in(call({"runs", "list", "--key", key, "--json"}).out);
    Words retry{"runs", "retry", id, "--json"};
    if (fresh) retry.emplace_back("--fresh-effect-key");
    const Answer opened = call(retry);
    ASSERT_EQ(opened.exit, 0) << opened.err;
    ASSERT_EQ(member(opened.out, "id"), id);
    EXPECT_EQ(call(run(key, "echo $LATCHKEY_EFFECT_KEY")).out == id + "\n", !fresh);
  }
}

TEST_P(OperatorCommands, RetriedRunIsNotResolved) {
  ASSERT_EQ(call(run("a", "exit 3")).exit, 3);
  const std::string letter = id_in(call({"dlq", "list", "--json"}).out);
  ASSERT_EQ(call({"dlq", "retry", letter}).exit, 0);
  const Words resolve{"dlq", "resolve", letter, "--outcome", "completed"};
  const Answer refused = call(resolve);
  EXPECT_EQ(refused.exit, 1);
  EXPECT_THAT(refused.out, HasSubstr("0 changed, 0 unchanged, 1 refused\n"));
  EXPECT_THAT(refused.out, HasSubstr("MOVE_REFUSED"));
  EXPECT_EQ(call(run("a", "echo done")).out, "done\n") << "it was queued, and runs";
  EXPECT_THAT(call(resolve).out, HasSubstr("0 changed, 1 unchanged, 0 refused\n"));
}

TEST_P(OperatorCommands, InvalidResolutionsAreUsageErrors) {
  const std::string id = "0198f0a1-7c2e-7000-8000-00005be78b16";
  EXPECT_EQ(call({"runs", "resolve", id}).exit, 2);
  EXPECT_EQ(call({"runs", "resolve", id, "--outcome", "maybe"}).exit, 2);
  EXPECT_EQ(call({"runs", "resolve", id, "--outcome", "rerun", "--note", "x"}).exit, 2);
  EXPECT_EQ(call({"runs", "resolve", id, "--outcome", "completed", "--result", "{"}).exit, 65);
  EXPECT_EQ(call({"runs", "resolve", id, "--outcome", "rerun"}).exit, 1) << "the run does not exist";
}

TEST_P(OperatorCommands, RunsOfADeadLetterAreRetried) {
  for (const char* key : {"a", "b", "c"}) call(run(key, "exit 3"));
  const std::string letter = id_in(call({"dlq", "list", "--json"}).out);
  const std::string a = id_in(call({"runs", "list", "--json", "--key", "a"}).out);
  EXPECT_EQ(call({"dlq", "retry", letter, "--run", a}).out, "1 changed, 0 unchanged, 0 refused\n");
  EXPECT_THAT(call({"runs", "list", "--status", "failed"}).out, Not(HasSubstr(a)));
  EXPECT_EQ(call({"dlq", "retry", letter, "--run", letter}).exit, 1) << "not a member";
  EXPECT_EQ(call({"dlq", "retry", letter}).out, "2 changed, 1 unchanged, 0 refused\n");
  EXPECT_EQ(call({"runs", "list", "--status", "failed"}).out, "no runs\n");
  EXPECT_EQ(call(run("b", "echo again")).out, "again\n");
  EXPECT_THAT(call({"dlq", "retry", letter}).out, HasSubstr("0 changed")) << "they were opened again since";
  EXPECT_THAT(call({"dlq", "show", letter, "--json"}).out, HasSubstr("\"retried\"")) << "with the actor and the time";
  EXPECT_THAT(call({"dlq", "show", letter}).out, testing::ContainsRegex("retried 20[-0-9: Z]+ by "));
}

TEST_P(OperatorCommands, UserNameWithInvalidTextIsEscaped) {
  ASSERT_EQ(call(run("a", "exit 3")).exit, 3);
  const std::string letter = id_in(call({"dlq", "list", "--json"}).out);
  for (const char* verb : {"retry", "acknowledge"}) {
    const auto asked = start_program({"/usr/bin/env", "USER=j\xffo", LATCHKEY_BINARY, "dlq", verb, letter});
    EXPECT_EQ(asked->finish(), 0) << asked->err;
  }
  const std::string shown = call({"dlq", "show", letter, "--json"}).out;
  const std::string by = GetParam() == StoreOwner::command ? R"("j\\377o")" : R"("admin.key")";
  EXPECT_THAT(shown, HasSubstr(R"("by":)" + by));
  EXPECT_THAT(shown, HasSubstr(R"("acknowledged_by":)" + by));
}

TEST_P(OperatorCommands, TokenNameMustBeUtf8) {
  const Answer refused = call({"token", "create", "--name", "j\xffo", "--role", "admin"});
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("INVALID_ARGUMENT: `name` must be UTF-8"));
}

TEST_P(OperatorCommands, RunsOfADeadLetterAreResolved) {
  for (const char* key : {"a", "b"}) call(run(key, "exit 3"));
  const std::string letter = id_in(call({"dlq", "list", "--json"}).out);
  const std::string a = id_in(call({"runs", "list", "--json", "--key", "a"}).out);
  EXPECT_EQ(call({"dlq", "resolve", letter}).exit, 2) << "the outcome is missing";
  EXPECT_EQ(call({"dlq", "resolve", letter, "--outcome", "completed", "--result", "{"}).exit, 65);
  EXPECT_EQ(call({"dlq", "resolve", letter, "--outcome", "completed", "--run", a, "--note", "seen"}).exit, 0);
  EXPECT_THAT(call({"runs", "list", "--status", "completed"}).out, HasSubstr(a));
  EXPECT_THAT(call({"dlq", "resolve", letter, "--outcome", "failed", "--json"}).out, HasSubstr("\"refused\":"));
  EXPECT_THAT(call({"dlq", "show", letter, "--json"}).out, HasSubstr("seen"));
}

TEST_P(OperatorCommands, RunIsWatchedUntilItSettles) {
  const auto owner = start(run("a", "echo $LATCHKEY_RUN; cat > /dev/null"));
  const std::string id = owner->read_line();
  const auto watcher = start({"runs", "watch", id});
  const auto all = start({"runs", "watch", "--json"});
  EXPECT_THAT(watcher->read_line(), HasSubstr(id + "  running    try 1/1  run a"));
  EXPECT_THAT(all->read_line(), HasSubstr("\"status\":\"running\""));
  EXPECT_EQ(owner->finish(), 0);
  EXPECT_EQ(watcher->finish(), 0);
  EXPECT_THAT(watcher->out, HasSubstr(id + "  completed"));
  EXPECT_EQ(all->finish(), 0) << "no run is open";
  EXPECT_THAT(all->out, HasSubstr("\"status\":\"completed\""));
  call(run("b", "exit 3"));
  const std::string failed = id_in(call({"runs", "list", "--json", "--key", "b"}).out);
  EXPECT_EQ(call({"runs", "watch", failed}).exit, 1);
}

class OperatorOnManyRuns : public CliTest {
 protected:
  static constexpr int kMany = 1001;  // two pages and one run

  void SetUp() override {
    std::filesystem::create_directory(data_dir_);
    SystemClock clock;
    SystemRandom random;
    auto store = SqliteStore::open({.file = data_dir_ + "/latchkey.db", .stepped = true}, clock, random);
    ASSERT_TRUE(store);
    std::vector<SettleRequest> endings;
    for (const Won& won : fill(**store, "failing"))
      endings.push_back({{}, won.run.id(), won.fence, Fail{.message = "no", .retryable = false}});
    (*store)->settle(std::move(endings), [](auto replies) { ASSERT_TRUE(replies); });
    (*store)->step();
    fill(**store, "open");
  }
  std::string letter() const {
    const std::string list = call({"dlq", "list", "--json"}).out;
    return list.substr(list.find("\"id\":\"") + 6, 36);
  }
  // Claims many keys; every claim wins.
  std::vector<Won> fill(SqliteStore& store, const std::string& function) {
    std::vector<Won> won;
    for (int i = 0; i < kMany; ++i) {
      ClaimRequest request = a_claim(function + std::to_string(i));
      request.function = function;
      request.key_hash = compute_key_hash(request.tenant, function, request.key);
      store.claim(request, [&](Result<ClaimReply> reply) { won.push_back(std::get<Won>(*reply)); });
    }
    while (store.step()) {
    }
    return won;
  }
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
  }
};

TEST_F(OperatorOnManyRuns, AllPagesAreShown) {
  const auto expect_all = [&] {
    EXPECT_EQ(count(call({"dlq", "show", letter(), "--json"}).out, "\"generation\":1"), kMany);
    const auto watcher = start({"runs", "watch", "--json"});
    for (int i = 0; i < kMany; ++i) ASSERT_THAT(watcher->read_line(), HasSubstr("\"function\":\"open\"")) << i;
    watcher->signal(SIGTERM);
    watcher->finish();
  };
  expect_all();
  const auto server = start({"serve", "--listen", "127.0.0.1:0"});
  server->read_line();
  expect_all();
}

TEST_F(OperatorOnManyRuns, TerminalShowsProgress) {
  auto terminal = start_on_terminal({"dlq", "retry", letter()});
  EXPECT_THAT(terminal.read_until("\r\n"),
              testing::EndsWith("\r\x1b[Klatchkey: 1001 of its runs processed, 1001 changed"
                                "\r\x1b[K1001 changed, 0 unchanged, 0 refused\r\n"));
  EXPECT_EQ(terminal.finish(), 0);
  auto watcher = start_on_terminal({"runs", "watch"});
  watcher.read_until("\r\x1b[Klatchkey: 2002 open");
}

INSTANTIATE_TEST_SUITE_P(Owners, OperatorCommands, testing::Values(StoreOwner::command, StoreOwner::server),
                         [](const auto& one) { return one.param == StoreOwner::command ? "Embedded" : "Server"; });

}  // namespace
}  // namespace latchkey
