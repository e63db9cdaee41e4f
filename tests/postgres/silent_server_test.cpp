// Reads from a server that does not respond: each read fails within the store's limit, on an open connection and while
// it waits for one.
#include <functional>

#include "conformance/store_test.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

constexpr Duration kLimit = 500ms;
// Allows for a busy machine; a read without a limit would wait forever.
constexpr Duration kSlack = 10s;

using Read = std::function<std::optional<Error>(Store&)>;
struct NamedRead {
  const char* name;
  Read read;
};
void PrintTo(const NamedRead& read, std::ostream* out) { *out << read.name; }

template <class T>
std::optional<Error> error_of(const Result<T>& result) {
  return result ? std::nullopt : std::optional(result.error());
}

const std::vector<NamedRead>& reads() {
  static const std::vector<NamedRead> all{
      {"find", [](Store& store) { return error_of(store.find({}, id_of(1))); }},
      {"find_of_a_tenant", [](Store& store) { return error_of(store.find("acme", id_of(1))); }},
      {"find_latest", [](Store& store) { return error_of(store.find_latest({"acme", "f", "k", Digest{}})); }},
      {"list", [](Store& store) { return error_of(store.list({})); }},
      {"find_duplicates", [](Store& store) { return error_of(store.find_duplicates(id_of(1))); }},
      {"stats", [](Store& store) { return error_of(store.stats()); }},
      {"list_dead_letters", [](Store& store) { return error_of(store.list_dead_letters({})); }},
      {"find_dead_letter", [](Store& store) { return error_of(store.find_dead_letter({}, id_of(1))); }},
      {"list_members", [](Store& store) { return error_of(store.list_members(id_of(1), 10)); }},
      {"list_tokens", [](Store& store) { return error_of(store.list_tokens()); }},
  };
  return all;
}

class SilentServer : public PostgresStores {
 protected:
  ~SilentServer() override {
    proxy_.cut_all();  // so that a store that waits forever can be closed
  }
  // The result and the duration of a read on its own thread.
  struct TimedRead {
    std::optional<Error> error;
    Duration duration{};
  };
  std::future<TimedRead> ask(const Read& read) {
    return std::async(std::launch::async, [this, read] {
      const Duration start = clock_.elapsed();
      auto error = read(*store_);
      return TimedRead{std::move(error), clock_.elapsed() - start};
    });
  }
  // Reads from a responding server. A read that times out is repeated, because the machine stalled for that long.
  void expect_success(const Read& read, const char* when) {
    std::optional<Error> error;
    for (int i = 0; i < 20; ++i) {
      const Duration start = clock_.elapsed();
      if (!(error = read(*store_))) return;
      if (clock_.elapsed() - start < kLimit) break;
    }
    ADD_FAILURE() << when << ": " << to_string(*error);
  }
  void expect_timeout(std::future<TimedRead>& pending) {
    if (pending.wait_for(kPatience) != std::future_status::ready) {
      ADD_FAILURE() << "the read waits forever";
      proxy_.cut_all();
      return;
    }
    const TimedRead answer = pending.get();
    ASSERT_TRUE(answer.error) << "the server responded";
    EXPECT_EQ(answer.error->code, Code::STORE_UNAVAILABLE);
    EXPECT_LT(answer.duration, kLimit + kSlack);
  }

  FaultProxy proxy_{PgServer::instance().port()};
  std::unique_ptr<Store> store_ = open(proxy_.url(database()), {.writers = 1, .reply_max = kLimit});
  std::unique_ptr<Store> other_ = open(url());
};

class SilentServerReads : public SilentServer, public testing::WithParamInterface<NamedRead> {};
INSTANTIATE_TEST_SUITE_P(Of, SilentServerReads, testing::ValuesIn(reads()),
                         [](const auto& read) { return std::string(read.param.name); });

TEST_P(SilentServerReads, FailWithinTheLimit) {
  const Read& read = GetParam().read;
  expect_success(read, "before the fault");
  proxy_.blackhole_all();
  for (const char* how : {"on an open connection", "on a new connection"}) {
    SCOPED_TRACE(how);
    auto pending = ask(read);
    EXPECT_FALSE(read(*other_)) << "the server does not respond on another connection";
    expect_timeout(pending);
  }
  proxy_.cut_all();
  expect_success(read, "after the fault");
}

// There are more reads than connections: reads that wait for a connection fail, too.
TEST_F(SilentServer, QueuedReadsFailWithinTheLimit) {
  proxy_.blackhole_all();
  std::vector<std::future<TimedRead>> all;
  for (int i = 0; i < 12; ++i) all.push_back(ask(reads().front().read));
  for (auto& pending : all) expect_timeout(pending);
}

// A read that times out because of the server is cancelled on the server, too.
TEST_F(SilentServer, TimedOutReadIsCancelledOnServer) {
  PgClient blocker(url());
  blocker.execute("BEGIN; LOCK TABLE latchkey.tokens");
  const Read list = [](Store& store) { return error_of(store.list_tokens()); };
  auto pending = ask(list);
  expect_timeout(pending);
  PgClient(url()).wait_until(
      "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE "
      "'SELECT * FROM latchkey.tokens%' AND state = 'active'");
  blocker.execute("ROLLBACK");
  expect_success(list, "after the table lock");
}

}  // namespace
}  // namespace latchkey
