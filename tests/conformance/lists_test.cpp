// Lists of runs: filters, cursors, order.
#include "conformance/store_test.hpp"
#include "store/listing.hpp"

namespace latchkey {
namespace {

class Lists : public StoreTest {
 protected:
  std::string keys(const std::vector<Run>& runs) {
    std::string text;
    for (const Run& run : runs) text += run.head->key;
    return text;
  }
  // The keys page by page, with a space after each page.
  std::string paged(ListQuery query) {
    std::string text;
    do {
      const Page page = store().list(query).value();
      text += keys(page.runs) + " ";
      query.cursor = page.next;
    } while (!query.cursor.empty() && text.size() < 100);
    return text;
  }
  // Inputs of 1000 bytes. The completed runs a, c, e and f have results of 1000 bytes; e and f were jobs. b failed, d
  // is queued.
  void make_heavy() {
    const std::string heavy(1000, 'x');
    const auto claimed = [&](const char* key) {
      ClaimRequest request = a_claim(key);
      request.input = heavy;
      return win(request);
    };
    const auto job = [&](const char* key) {
      EnqueueRequest request = a_job(key);
      request.input = heavy;
      return request;
    };
    end(claimed("a"), Complete{heavy, {}});
    end(claimed("b"), permanent());
    end(claimed("c"), Complete{heavy, {}});
    EnqueueRequest later = job("d");
    later.delay = 1h;
    add(later);
    verbs().enqueue_all({job("e"), job("f")});
    for (const Taken& taken : take_up_to(2)) end(taken, Complete{heavy, {}});
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

TEST_P(Lists, RunStaysAtItsPositionInEveryState) {
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

TEST_P(Lists, PayloadsAreReadOnlyWhereTheyAreWanted) {
  make_heavy();
  const auto whole = store().list({}).value().runs, bare = store().list({.with_payloads = false}).value().runs;
  ASSERT_EQ(keys(bare), keys(whole));
  for (std::size_t i = 0; i < bare.size(); ++i) {
    EXPECT_EQ(whole[i].head->input.size(), 1000u);
    EXPECT_EQ(bare[i].head->input, "");
    const auto* done = whole[i].as<Completed>();
    EXPECT_EQ(done ? done->result.size() : 0, done ? 1000u : 0u);
    EXPECT_TRUE(same_run(bare[i], without_payloads(whole[i]))) << whole[i].head->key;
    EXPECT_TRUE(same_run(whole[i], find(whole[i].id()))) << "the stored run has its payloads";
  }
}

TEST_P(Lists, PageEndsAtThePayloadLimit) {
  make_heavy();
  // d and b have no result.
  EXPECT_EQ(paged({.payload_bytes_max = 3000}), "fe dc ba ");
  EXPECT_EQ(paged({.payload_bytes_max = 4000}), "fe dcb a ");
  EXPECT_EQ(paged({.payload_bytes_max = 4001}), "fed cba ");
  EXPECT_EQ(paged({.payload_bytes_max = 1}), "f e d c b a ");
  EXPECT_EQ(paged({.payload_bytes_max = 0}), "f e d c b a ");
  EXPECT_EQ(paged({.limit = 1, .payload_bytes_max = 3000}), "f e d c b a ");
  EXPECT_EQ(paged({}), "fedcba ");
  EXPECT_EQ(paged({.with_payloads = false, .payload_bytes_max = 1}), "fedcba ");
}

TEST_P(Lists, EarlyEndOfAPageWorksWithEveryFilter) {
  make_heavy();
  EXPECT_EQ(paged({.tenant = "default", .payload_bytes_max = 1}), "f e d c b a ");
  EXPECT_EQ(paged({.function = "f", .payload_bytes_max = 1}), "f e d c b a ");
  EXPECT_EQ(paged({.tenant = "default", .function = "f", .payload_bytes_max = 1}), "f e d c b a ");
  EXPECT_EQ(paged({.status = Status::completed, .payload_bytes_max = 1}), "f e c a ");
  EXPECT_EQ(paged({.tenant = "default", .status = Status::completed, .payload_bytes_max = 1}), "f e c a ");
  EXPECT_EQ(paged({.status = Status::queued, .payload_bytes_max = 1}), "d ");
  EXPECT_EQ(paged({.status = Status::failed, .payload_bytes_max = 1}), "b ");
  EXPECT_EQ(paged({.since = Instant{}, .payload_bytes_max = 1}), "f e d c b a ");
  EXPECT_EQ(paged({.key = "c", .payload_bytes_max = 1}), "c ");
}

TEST_P(Lists, OddQueriesAreHarmless) {
  win(a_claim("a"));
  EXPECT_EQ(listed({.limit = 0}), "");
  EXPECT_EQ(store().list({.cursor = "not a cursor"}).error().code, Code::INVALID_ARGUMENT);
  EXPECT_EQ(listed({.cursor = "0"}), "");
  EXPECT_EQ(listed({.key = "' OR 1=1 --"}), "");
}

TEST_P(Lists, FindNeedsTheWholeId) {
  const Won won = win();
  RunId near = won.run.id();
  near.bytes[15] ^= 1;
  EXPECT_FALSE(store().find({}, near).value());
  EXPECT_FALSE(store().find({}, {}).value());
  EXPECT_EQ(code_of(verbs().settle({{}, near, won.fence, Complete{}})), Code::NOT_FOUND);
}

}  // namespace
}  // namespace latchkey
