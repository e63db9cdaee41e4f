// Lists of runs: filters, cursors, order.
#include "conformance/store_test.hpp"

namespace latchkey {
namespace {

class Lists : public StoreTest {
 protected:
  std::string keys(const std::vector<Run>& runs) {
    std::string text;
    for (const Run& run : runs) text += run.head->key;
    return text;
  }
  std::string listed(const ListQuery& query) { return keys(store().list(query).value().runs); }
};
LK_CONFORMANCE(Lists);

TEST_P(Lists, NewestFirstAndByEveryFilter) {
  end(win(a_claim("a", "acme")));
  advance(1s);
  const Instant later = now();
  end(win(a_claim("b", "acme")), permanent());
  win(a_claim("c", "globex"));
  EnqueueRequest job = a_job("d", "globex");
  job.function = "g";
  job.key_hash = hash_key("globex", "g", "d");
  add(job);
  EXPECT_EQ(listed({}), "dcba");
  EXPECT_EQ(listed({.tenant = "acme"}), "ba");
  EXPECT_EQ(listed({.function = "g"}), "d");
  EXPECT_EQ(listed({.status = Status::completed}), "a");
  EXPECT_EQ(listed({.status = Status::failed}), "b");
  EXPECT_EQ(listed({.status = Status::running}), "c");
  EXPECT_EQ(listed({.status = Status::queued}), "d");
  EXPECT_EQ(listed({.status = Status::in_doubt}), "");
  EXPECT_EQ(listed({.key = "b"}), "b");
  EXPECT_EQ(listed({.tenant = "globex", .key = "b"}), "");
  EXPECT_EQ(listed({.since = later}), "dcb");
  EXPECT_EQ(listed({.tenant = "acme", .function = "f", .status = Status::failed, .key = "b", .since = later}), "b");
}

TEST_P(Lists, ARunKeepsItsPlaceWhateverBecomesOfIt) {
  const Won a = win(a_claim("a"));
  win(a_claim("b"));
  end(a);
  EXPECT_EQ(listed({}), "ba");
}

TEST_P(Lists, PagesMeetWithoutGapOrOverlapUnderInserts) {
  for (const char* key : {"a", "b", "c", "d", "e"}) win(a_claim(key));
  Page page = store().list({.limit = 2}).value();
  EXPECT_EQ(keys(page.runs), "ed");
  win(a_claim("f"));
  win(a_claim("g"));
  page = store().list({.cursor = page.next, .limit = 2}).value();
  EXPECT_EQ(keys(page.runs), "cb");
  page = store().list({.cursor = page.next, .limit = 2}).value();
  EXPECT_EQ(keys(page.runs), "a");
  EXPECT_TRUE(page.next.empty());
}

TEST_P(Lists, AFullLastPageIsTheEnd) {
  for (const char* key : {"a", "b"}) win(a_claim(key));
  EXPECT_TRUE(store().list({.limit = 2}).value().next.empty());
  EXPECT_FALSE(store().list({.limit = 1}).value().next.empty());
}

TEST_P(Lists, PagesSkipWhatIsFilteredOut) {
  for (const char* key : {"a", "b", "c", "d"}) {
    const Won won = win(a_claim(key));
    if (*key == 'a' || *key == 'c') end(won);
  }
  const Page first = store().list({.status = Status::completed, .limit = 1}).value();
  EXPECT_EQ(keys(first.runs), "c");
  EXPECT_EQ(listed({.status = Status::completed, .cursor = first.next, .limit = 1}), "a");
}

TEST_P(Lists, OddQueriesAreHarmless) {
  win(a_claim("a"));
  EXPECT_EQ(listed({.limit = 0}), "");
  EXPECT_EQ(store().list({.cursor = "not a cursor"}).error().code, Code::INVALID_ARGUMENT);
  EXPECT_EQ(listed({.cursor = "0"}), "");
  EXPECT_EQ(listed({.key = "' OR 1=1 --"}), "");
}

TEST_P(Lists, FindKnowsOnlyWholeIds) {
  const Won won = win();
  RunId near = won.run.id();
  near.bytes[15] ^= 1;
  EXPECT_FALSE(store().find({}, near).value());
  EXPECT_FALSE(store().find({}, {}).value());
  EXPECT_EQ(code_of(verbs().settle({{}, near, won.fence, Complete{}})), Code::NOT_FOUND);
}

}  // namespace
}  // namespace latchkey
