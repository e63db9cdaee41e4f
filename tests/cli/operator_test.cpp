// What a person decides from the command line, on the embedded store and through a server.
#include <signal.h>

#include <chrono>
#include <filesystem>

#include "cli/cli_fixture.hpp"
#include "keying/key_hash.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "support/standings.hpp"

namespace latchkey {
namespace {

enum class Owner { command, server };

class OperatorClient : public CliTest, public testing::WithParamInterface<Owner> {
 protected:
  void SetUp() override {
    if (GetParam() == Owner::command) return;
    server_ = start({"serve", "--listen", "127.0.0.1:0"});
    server_->read_line();
  }
  static std::string id_in(const std::string& json) { return json.substr(json.find("\"id\":\"") + 6, 36); }
  // A run whose holder was killed, under `hold`.
  std::string leave_doubt(const std::string& key) const {
    const auto holder = start(run(key, "echo $LATCHKEY_RUN; cat > /dev/null", {"--lease", "1s", "--on-doubt", "hold"}));
    const std::string id = holder->read_line();
    holder->signal(SIGKILL);
    holder->finish();
    EXPECT_EQ(call(run(key, "echo never", {"--wait"})).exit, 76);
    return id;
  }

  // One that was killed while it held the key; its lease is not over yet.
  std::string leave_dead(const std::string& key, Words flags = {}) const {
    flags.insert(flags.end(), {"--lease", "1s"});
    const auto holder = start(run(key, "echo $LATCHKEY_RUN; cat > /dev/null", flags));
    const std::string id = holder->read_line();
    holder->signal(SIGKILL);
    holder->finish();
    return id;
  }
  // Asks until it is answered so, while the lease runs out; nobody claims the key meanwhile.
  template <class Good>
  bool becomes(const Words& words, Good good) const {
    // Each asking is a program of its own: the lease of a second is over long before the last.
    for (int asked = 0; asked < 2'000; ++asked)
      if (good(call(words))) return true;
    return false;
  }

  std::unique_ptr<Process> server_;
};

TEST_P(OperatorClient, TimeIsSeenWithoutAnybodysClaim) {
  const std::string held = leave_dead("held", {"--on-doubt", "hold"});
  EXPECT_TRUE(becomes({"runs", "list", "--status", "in_doubt"},
                      [&](const Answer& answer) { return answer.out.find(held) != std::string::npos; }));
  EXPECT_EQ(call({"runs", "resolve", held, "--outcome", "completed"}).exit, 0);

  const std::string decided = leave_dead("decided", {"--on-doubt", "hold"});
  EXPECT_TRUE(becomes({"runs", "resolve", decided, "--outcome", "failed"},
                      [](const Answer& answer) { return answer.exit == 0; }));

  const std::string lost = leave_dead("lost");
  const auto watcher = start({"runs", "watch", lost});
  EXPECT_EQ(watcher->finish(), 1) << "its tries are used up: it ends with the lease";
  EXPECT_THAT(watcher->out, HasSubstr(lost + "  failed"));

  leave_dead("unseen", {"--function", "unseen"});
  EXPECT_TRUE(becomes({"dlq", "list", "--function", "unseen"},
                      [](const Answer& answer) { return answer.out.find("OUTCOME_UNKNOWN") != std::string::npos; }));
}

TEST_P(OperatorClient, DoubtIsResolvedByHand) {
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

TEST_P(OperatorClient, AFailedRunIsRetriedWithItsEffectKeyOrAFreshOne) {
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

TEST_P(OperatorClient, ARetriedRunIsNotResolvedByItsDeadLetter) {
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

TEST_P(OperatorClient, WrongResolutionsAreUsage) {
  const std::string id = "0198f0a1-7c2e-7000-8000-00005be78b16";
  EXPECT_EQ(call({"runs", "resolve", id}).exit, 2);
  EXPECT_EQ(call({"runs", "resolve", id, "--outcome", "maybe"}).exit, 2);
  EXPECT_EQ(call({"runs", "resolve", id, "--outcome", "rerun", "--note", "x"}).exit, 2);
  EXPECT_EQ(call({"runs", "resolve", id, "--outcome", "completed", "--result", "{"}).exit, 65);
  EXPECT_EQ(call({"runs", "resolve", id, "--outcome", "rerun"}).exit, 1) << "there is none";
}

TEST_P(OperatorClient, ADeadLettersRunsAreRetried) {
  for (const char* key : {"a", "b", "c"}) call(run(key, "exit 3"));
  const std::string letter = id_in(call({"dlq", "list", "--json"}).out);
  const std::string a = id_in(call({"runs", "list", "--json", "--key", "a"}).out);
  EXPECT_EQ(call({"dlq", "retry", letter, "--run", a}).out, "1 changed, 0 unchanged, 0 refused\n");
  EXPECT_THAT(call({"runs", "list", "--status", "failed"}).out, Not(HasSubstr(a)));
  EXPECT_EQ(call({"dlq", "retry", letter, "--run", letter}).exit, 1) << "not in it";
  EXPECT_EQ(call({"dlq", "retry", letter}).out, "2 changed, 1 unchanged, 0 refused\n");
  EXPECT_EQ(call({"runs", "list", "--status", "failed"}).out, "no runs\n");
  EXPECT_EQ(call(run("b", "echo again")).out, "again\n");
  EXPECT_THAT(call({"dlq", "retry", letter}).out, HasSubstr("0 changed")) << "they were opened again since";
  EXPECT_THAT(call({"dlq", "show", letter, "--json"}).out, HasSubstr("\"retried\"")) << "with who and when";
  EXPECT_THAT(call({"dlq", "show", letter}).out, testing::ContainsRegex("retried 20[-0-9: Z]+ by "));
}

TEST_P(OperatorClient, AUserWhoseNameIsNoTextIsNamedReadably) {
  ASSERT_EQ(call(run("a", "exit 3")).exit, 3);
  const std::string letter = id_in(call({"dlq", "list", "--json"}).out);
  for (const char* verb : {"retry", "acknowledge"}) {
    const auto asked = start_program({"/usr/bin/env", "USER=j\xffo", LATCHKEY_BINARY, "dlq", verb, letter});
    EXPECT_EQ(asked->finish(), 0) << asked->err;
  }
  const std::string shown = call({"dlq", "show", letter, "--json"}).out;
  const std::string by = GetParam() == Owner::command ? R"("j\\377o")" : R"("admin.key")";
  EXPECT_THAT(shown, HasSubstr(R"("by":)" + by));
  EXPECT_THAT(shown, HasSubstr(R"("acknowledged_by":)" + by));
}

TEST_P(OperatorClient, ATokensNameIsText) {
  const Answer refused = call({"token", "create", "--name", "j\xffo", "--role", "admin"});
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("INVALID_ARGUMENT: `name` must be UTF-8"));
}

TEST_P(OperatorClient, ADeadLettersRunsAreResolved) {
  for (const char* key : {"a", "b"}) call(run(key, "exit 3"));
  const std::string letter = id_in(call({"dlq", "list", "--json"}).out);
  const std::string a = id_in(call({"runs", "list", "--json", "--key", "a"}).out);
  EXPECT_EQ(call({"dlq", "resolve", letter}).exit, 2) << "as what?";
  EXPECT_EQ(call({"dlq", "resolve", letter, "--outcome", "completed", "--result", "{"}).exit, 65);
  EXPECT_EQ(call({"dlq", "resolve", letter, "--outcome", "completed", "--run", a, "--note", "seen"}).exit, 0);
  EXPECT_THAT(call({"runs", "list", "--status", "completed"}).out, HasSubstr(a));
  EXPECT_THAT(call({"dlq", "resolve", letter, "--outcome", "failed", "--json"}).out, HasSubstr("\"refused\":"));
  EXPECT_THAT(call({"dlq", "show", letter, "--json"}).out, HasSubstr("seen"));
}

TEST_P(OperatorClient, ARunIsWatchedUntilItIsSettled) {
  const auto holder = start(run("a", "echo $LATCHKEY_RUN; cat > /dev/null"));
  const std::string id = holder->read_line();
  const auto watcher = start({"runs", "watch", id});
  const auto all = start({"runs", "watch", "--json"});
  EXPECT_THAT(watcher->read_line(), HasSubstr(id + "  running    try 1/1  run a"));
  EXPECT_THAT(all->read_line(), HasSubstr("\"status\":\"running\""));
  EXPECT_EQ(holder->finish(), 0);
  EXPECT_EQ(watcher->finish(), 0);
  EXPECT_THAT(watcher->out, HasSubstr(id + "  completed"));
  EXPECT_EQ(all->finish(), 0) << "nothing is open any more";
  EXPECT_THAT(all->out, HasSubstr("\"status\":\"completed\""));
  call(run("b", "exit 3"));
  const std::string failed = id_in(call({"runs", "list", "--json", "--key", "b"}).out);
  EXPECT_EQ(call({"runs", "watch", failed}).exit, 1);
}

class DeskOfMany : public CliTest {
 protected:
  static constexpr int kMany = 1001;  // two pages, and one

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
  // Runs under keys of their own, each won.
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

TEST_F(DeskOfMany, EverythingIsShown) {
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

TEST_F(DeskOfMany, ATerminalShowsHowFarItIs) {
  auto terminal = start_on_terminal({"dlq", "retry", letter()});
  EXPECT_THAT(terminal.read_until("\r\n"),
              testing::EndsWith("\r\x1b[Klatchkey: 1001 of its runs processed, 1001 changed"
                                "\r\x1b[K1001 changed, 0 unchanged, 0 refused\r\n"));
  EXPECT_EQ(terminal.finish(), 0);
  auto watcher = start_on_terminal({"runs", "watch"});
  watcher.read_until("\r\x1b[Klatchkey: 2002 open");
}

INSTANTIATE_TEST_SUITE_P(Owners, OperatorClient, testing::Values(Owner::command, Owner::server),
                         [](const auto& one) { return one.param == Owner::command ? "Embedded" : "Server"; });

}  // namespace
}  // namespace latchkey
