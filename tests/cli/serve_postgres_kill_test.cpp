// Two `latchkey serve` on one PostgreSQL, and callers of both over HTTP. The servers are killed in turn under load and
// started again; a caller without a reply retries on the other server.
#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "base/random.hpp"
#include "cli/serve_postgres_fixture.hpp"
#include "support/test_length.hpp"

namespace latchkey {
namespace {

using namespace std::chrono_literals;

struct Reply {
  std::string status;  // "201"
  std::string body;
};

class ServeKilled : public ServePostgres {
 protected:
  static constexpr std::size_t kPairs = 2;
  const std::size_t kills_ = repetitions(20);
  // Leases that do not expire during the test, and leases that do.
  static constexpr auto kLong = "3600000", kShort = "1000";

  // An acknowledged settlement.
  struct Acknowledged {
    std::string id, fence, result;
  };
  struct Server {
    std::unique_ptr<Process> process;
    std::atomic<std::uint16_t> port{0};
  };

  ServeKilled() {
    for (Server& server : servers_) start_server(server);
    token_ = read("data/admin.key");
    token_.pop_back();
  }
  void start_server(Server& server) {
    server.process = serve(database_);
    server.port = port_;
  }
  static void kill(Server& server) {
    server.process->signal(SIGKILL);
    EXPECT_EQ(server.process->finish(), 128 + SIGKILL) << server.process->err;
  }

  // No reply if the server was killed before its reply, or does not serve yet.
  std::optional<Reply> ask_one(const Server& server, const std::string& target, const std::string& body,
                               const std::string& call) const {
    RawClient client(server.port);
    if (!client.is_connected()) return std::nullopt;
    client.send("POST " + target + " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAuthorization: Bearer " +
                token_ + "\r\n" + (call.empty() ? "" : "Idempotency-Key: " + call + "\r\n") +
                "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    const std::string answer = client.read_response();
    const std::size_t end = answer.find("\r\n\r\n");
    if (end == answer.npos) return std::nullopt;
    return Reply{answer.substr(answer.find(' ') + 1, 3), answer.substr(end + 4)};
  }
  // Retries on the other server until one replies.
  Reply ask(std::size_t which, const std::string& target, const std::string& body, const std::string& call = "") {
    SystemClock clock;
    for (const Duration patience = clock.elapsed() + 60s; clock.elapsed() < patience; which = 1 - which) {
      if (auto reply = ask_one(servers_[which], target, body, call)) return *reply;
      ++unanswered_;
      std::this_thread::yield();
    }
    ADD_FAILURE() << "no server replies";
    return {};
  }
  Reply claim(std::size_t which, const std::string& key, const std::string& lease_ms, const std::string& call = "") {
    return ask(which, "/v1/runs", R"({"function":"f","key":")" + key + R"(","lease_ms":)" + lease_ms + "}", call);
  }
  Reply complete(std::size_t which, const Acknowledged& own, const std::string& result) {
    return ask(which, "/v1/runs/" + own.id + "/complete", R"({"result":)" + result + R"(,"fence":)" + own.fence + "}");
  }
  Reply extend(std::size_t which, const Acknowledged& own) {
    return ask(which, "/v1/runs/" + own.id + "/heartbeat", R"({"fence":)" + own.fence + "}");
  }
  static Acknowledged owned(const Reply& won) { return {member(won.body, "id"), member(won.body, "fence"), {}}; }

  // The two callers of a pair claim the same keys, one from each server.
  void work(std::size_t caller, const std::atomic<bool>& enough);
  void do_key(std::size_t caller, const std::string& key);
  Acknowledged win(std::size_t which, const std::string& key, const std::string& lease_ms) {
    const Reply won = claim(which, key, lease_ms);
    EXPECT_EQ(won.status, "201") << key << won.body;
    Acknowledged own = owned(won);
    own.result = "\"of " + key + "\"";
    return own;
  }
  void wait_for_answers(int more) const {
    const int until = answered_ + more;
    for (int seen = answered_; seen < until; seen = answered_) answered_.wait(seen);
  }
  void expect_lease_continues(std::size_t which, const std::string& key, const Acknowledged& own);
  void expect_next_owner(std::size_t which, const std::string& key, const Acknowledged& lost);
  void expect_replays(const std::string& key, const Acknowledged& settled);

  std::array<Server, 2> servers_;
  std::string token_;
  std::mutex mutex_;
  std::map<std::string, Acknowledged> acknowledged_;
  std::map<std::string, Acknowledged> own_;      // settled by the test itself
  std::map<std::string, std::string> replayed_;  // replies to later callers
  std::atomic<int> answered_{0}, unanswered_{0};
};

void ServeKilled::work(std::size_t caller, const std::atomic<bool>& enough) {
  for (int round = 0; !enough; ++round) {
    do_key(caller, std::to_string(caller / 2) + ":" + std::to_string(round));
    ++answered_;
    answered_.notify_all();
  }
}

void ServeKilled::do_key(std::size_t caller, const std::string& key) {
  const std::size_t near = caller % 2, far = 1 - near;
  const std::string who = std::to_string(caller);
  while (true) {
    // A repeat of the named call gets the run that it won before its reply was lost.
    const Reply reply = claim(near, key, kLong, "call-" + who + "-" + key);
    if (reply.status == "409") {
      std::this_thread::yield();
      continue;
    }
    if (reply.status == "200") {
      const std::lock_guard lock(mutex_);
      replayed_.emplace(key, reply.body);
      return;
    }
    ASSERT_EQ(reply.status, "201") << key << reply.body;
    Acknowledged own = owned(reply);
    own.result = R"({"of": ")" + key + R"(",  "by": )" + who + ".50}";  // stored byte for byte
    const Reply extended = extend(far, own);
    EXPECT_EQ(extended.status, "200") << key << extended.body;
    const Reply settled = complete(near, own, own.result);
    EXPECT_EQ(settled.status, "200") << key << settled.body;
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(acknowledged_.emplace(key, own).second) << key << " was settled twice";
    return;
  }
}

void ServeKilled::expect_replays(const std::string& key, const Acknowledged& settled) {
  std::vector<std::string> bodies;
  for (const std::size_t which : {0u, 1u}) {
    // Another settlement of the same run changes nothing.
    const Reply another = complete(which, settled, R"("another")");
    EXPECT_EQ(another.status, "200") << key << another.body;
    const Reply failed =
        ask(which, "/v1/runs/" + settled.id + "/fail", R"({"error":{"message":"m"},"fence":)" + settled.fence + "}");
    EXPECT_EQ(failed.status, "409") << key << failed.body;
    EXPECT_THAT(failed.body, HasSubstr("ALREADY_SETTLED"));
    const Reply again = claim(which, key, kLong);
    EXPECT_EQ(again.status, "200") << key << again.body;
    EXPECT_THAT(again.body, AllOf(HasSubstr(settled.id), HasSubstr(R"("result":)" + settled.result)));
    bodies.push_back(again.body);
  }
  EXPECT_EQ(bodies[0], bodies[1]) << key;
  if (replayed_.contains(key)) EXPECT_EQ(replayed_[key], bodies[0]) << key;
}

// A lease does not belong to a server: it is extended and settled through the other one with the same fence.
void ServeKilled::expect_lease_continues(std::size_t which, const std::string& key, const Acknowledged& own) {
  const Reply extended = extend(which, own), wanted = claim(which, key, kLong);
  EXPECT_EQ(extended.status, "200") << key << extended.body;
  EXPECT_THAT(wanted.body, HasSubstr("ALREADY_RUNNING")) << key;
  const Reply settled = complete(which, own, own.result);
  EXPECT_EQ(settled.status, "200") << key << settled.body;
  own_[key] = own;
}

// A lease that is not extended expires: the next owner has a higher fence, and the old owner is rejected.
void ServeKilled::expect_next_owner(std::size_t which, const std::string& key, const Acknowledged& lost) {
  const auto claim_again = [&] { return claim(which, key, kLong, "next-" + key); };
  Reply next = claim_again();
  while (next.status == "409") next = claim_again();
  ASSERT_EQ(next.status, "201") << key << next.body;
  Acknowledged successor = owned(next);
  EXPECT_EQ(successor.id, lost.id);
  EXPECT_GT(std::stoull(successor.fence), std::stoull(lost.fence));
  EXPECT_THAT(complete(1 - which, lost, "\"late\"").body, HasSubstr("LEASE_LOST")) << key;
  successor.result = lost.result;
  EXPECT_EQ(complete(1 - which, successor, successor.result).status, "200") << key;
  own_[key] = successor;
}

// covers: X3
TEST_F(ServeKilled, OtherServerContinuesAcknowledgedWork) {
  SeededRandom random(7);
  std::map<std::string, Acknowledged> lent;
  {
    std::atomic<bool> enough{false};
    std::vector<std::jthread> callers;
    const std::unique_ptr<std::atomic<bool>, void (*)(std::atomic<bool>*)> end(&enough, [](auto* all) { *all = true; });
    for (std::size_t i = 0; i < 2 * kPairs; ++i) callers.emplace_back([&, i] { work(i, enough); });
    for (std::size_t n = 0; n < kills_ && !HasFailure(); ++n) {
      const std::size_t victim = n % 2;
      const std::string own_key = "own:" + std::to_string(n), lent_key = "lent:" + std::to_string(n);
      const Acknowledged own = win(victim, own_key, kLong);
      lent[lent_key] = win(victim, lent_key, kShort);
      wait_for_answers(1 + static_cast<int>(random.below(20)));
      kill(servers_[victim]);  // under load
      expect_lease_continues(1 - victim, own_key, own);
      start_server(servers_[victim]);
    }
  }
  for (const auto& [key, lost] : lent) expect_next_owner(key.size() % 2, key, lost);
  EXPECT_GT(acknowledged_.size(), 5 * kills_);
  EXPECT_GT(replayed_.size(), 0u) << "no key was claimed twice";
  EXPECT_GT(unanswered_, 0) << "no request was in flight at a kill";
  // Each key has one run. Except for the short leases, each run had one attempt and one owner.
  PgClient admin(database_);
  acknowledged_.merge(own_);
  EXPECT_EQ(admin.ask_one("SELECT count(*) FROM latchkey.runs"), std::to_string(acknowledged_.size()));
  EXPECT_EQ(admin.ask_one("SELECT count(*) FROM latchkey.all_states WHERE status <> 3"), "0");
  EXPECT_EQ(admin.ask_one("SELECT count(*) FROM latchkey.all_states WHERE attempts_total > 1"), std::to_string(kills_));
  for (const auto& [key, settled] : acknowledged_) expect_replays(key, settled);
  for (Server& server : servers_) stop(*server.process);
}

}  // namespace
}  // namespace latchkey
