// A server that says nothing any more, while reads are asked for: each is answered within the store's limit, whether it
// had a connection already or waits for one.
#include <functional>

#include "conformance/store_test.hpp"
#include "support/postgres/fault_proxy.hpp"
#include "support/postgres/pg_stores.hpp"

namespace latchkey {
namespace {

constexpr Duration kLimit = 500ms;
// Where nothing ends it, it waits for ever.
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

class PostgresSilence : public PostgresStores {
 protected:
  ~PostgresSilence() override {
    proxy_.cut_all();  // a store that waits for ever can be closed then
  }
  // A read that is asked for by a thread of its own, and how long it took.
  struct Asked {
    std::optional<Error> error;
    Duration took{};
  };
  std::future<Asked> ask(const Read& read) {
    return std::async(std::launch::async, [this, read] {
      const Duration start = clock_.elapsed();
      auto error = read(*store_);
      return Asked{std::move(error), clock_.elapsed() - start};
    });
  }
  // Of a server that speaks. One that is given up because its time was over met a machine that stalled for so long.
  void expect_answer(const Read& read, const char* when) {
    std::optional<Error> error;
    for (int i = 0; i < 20; ++i) {
      const Duration start = clock_.elapsed();
      if (!(error = read(*store_))) return;
      if (clock_.elapsed() - start < kLimit) break;
    }
    ADD_FAILURE() << when << ": " << to_string(*error);
  }
  void expect_given_up(std::future<Asked>& asked) {
    if (asked.wait_for(kPatience) != std::future_status::ready) {
      ADD_FAILURE() << "it waits for ever";
      proxy_.cut_all();
      return;
    }
    const Asked answer = asked.get();
    ASSERT_TRUE(answer.error) << "the test did not test";
    EXPECT_EQ(answer.error->code, Code::STORE_UNAVAILABLE);
    EXPECT_LT(answer.took, kLimit + kSlack);
  }

  FaultProxy proxy_{PgServer::instance().port()};
  std::unique_ptr<Store> store_ = open(proxy_.url(database()), {.writers = 1, .reply_max = kLimit});
  std::unique_ptr<Store> other_ = open(url());
};

class PostgresSilentReads : public PostgresSilence, public testing::WithParamInterface<NamedRead> {};
INSTANTIATE_TEST_SUITE_P(Of, PostgresSilentReads, testing::ValuesIn(reads()),
                         [](const auto& read) { return std::string(read.param.name); });

TEST_P(PostgresSilentReads, AreGivenUpInTime) {
  const Read& read = GetParam().read;
  expect_answer(read, "while all is well");
  proxy_.hush_all();
  for (const char* how : {"on a connection that was there", "while it connects"}) {
    SCOPED_TRACE(how);
    auto asked = ask(read);
    EXPECT_FALSE(read(*other_)) << "by another way the server is there";
    expect_given_up(asked);
  }
  proxy_.cut_all();
  expect_answer(read, "when it speaks again");
}

// More than there are connections: those that wait for one are answered too.
TEST_F(PostgresSilence, ThoseThatWaitForAConnectionAreAnsweredToo) {
  proxy_.hush_all();
  std::vector<std::future<Asked>> all;
  for (int i = 0; i < 12; ++i) all.push_back(ask(reads().front().read));
  for (auto& asked : all) expect_given_up(asked);
}

// What the server itself takes too long for is given up there, too: nobody waits for it any more.
TEST_F(PostgresSilence, WhatNobodyWaitsForIsNotGoneOnWith) {
  PgClient holder(url());
  holder.execute("BEGIN; LOCK TABLE latchkey.tokens");
  const Read list = [](Store& store) { return error_of(store.list_tokens()); };
  auto asked = ask(list);
  expect_given_up(asked);
  PgClient(url()).wait_until(
      "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE "
      "'SELECT * FROM latchkey.tokens%' AND state = 'active'");
  holder.execute("ROLLBACK");
  expect_answer(list, "when nobody holds it");
}

}  // namespace
}  // namespace latchkey
