// Every combination of filters lists the matching runs, in every state and before and after merges.
#include <set>

#include "conformance/store_test.hpp"
#include "store/listing.hpp"

namespace latchkey {
namespace {

class ListFilters : public StoreTest {
 protected:
  std::vector<EnqueueRequest> some_jobs(const std::string& tenant, const std::string& function, int count) {
    std::vector<EnqueueRequest> jobs;
    for (int i = 0; i < count; ++i) {
      EnqueueRequest job = a_job("k" + std::to_string(i), tenant);
      job.function = function;
      job.key_hash = hash_key(tenant, function, job.key);
      job.guard = Guard::while_running;
      job.on_doubt = OnDoubt::hold;
      jobs.push_back(std::move(job));
    }
    return jobs;
  }
  // Runs of every status: long series of similar runs, some changed in the middle, and keys with several runs.
  void fill(const std::string& tenant, const std::string& function) {
    verbs().enqueue_all(some_jobs(tenant, function, 12));
    const auto taken = take_up_to(12, function);
    const auto settle = [&](int i, Ending ending) {
      verbs().settle({{}, taken.at(i).run.id(), taken[i].fence, std::move(ending)});
    };
    for (const int i : {0, 1, 3, 8}) settle(i, Complete{"result", {}});
    for (const int i : {2, 4}) settle(i, permanent());
    settle(5, retryable());
    settle(6, outcome_unknown());
    move(taken[2].run.id(), RetryByHand{});
    advance(1s);
    const auto again = verbs().enqueue_all(some_jobs(tenant, function, 18));
    move(std::get<Enqueued>(again.at(14)).run.id(), CancelByHand{});
    take_up_to(3, function);
    ClaimRequest claim = a_claim("claimed", tenant);
    claim.function = function;
    claim.key_hash = hash_key(tenant, function, "claimed");
    end(win(claim));
    advance(1s);
  }

  std::vector<std::string> ids(const std::vector<Run>& runs) {
    std::vector<std::string> texts;
    for (const Run& run : runs) texts.push_back(to_string(run.id()) + " " + std::string(to_string(run.status())));
    return texts;
  }
  std::vector<std::string> all_pages(ListQuery query) {
    std::vector<std::string> texts;
    do {
      const Page page = store().list(query).value();
      EXPECT_LE(page.runs.size(), query.limit);
      for (std::string& text : ids(page.runs)) texts.push_back(std::move(text));
      query.cursor = page.next;
    } while (!query.cursor.empty());
    return texts;
  }
};
LK_CONFORMANCE(ListFilters);

TEST_P(ListFilters, CombinationsListTheMatchingRuns) {
  const Instant start = now();
  for (const char* tenant : {"acme", "globex", "zorg"})
    for (const char* function : {"f", "g", "h"})
      if (tenant != std::string("zorg") || function == std::string("g")) fill(tenant, function);
  const std::vector<Run> all = store().list({.limit = 1000}).value().runs;
  ASSERT_GT(all.size(), 70u);
  std::set<std::size_t> sizes;
  const std::optional<std::string> every_tenant;
  for (const auto& tenant : {every_tenant, std::optional<std::string>("acme"), std::optional<std::string>("zorg")})
    for (const char* function : {"", "g", "nothing"})
      for (int status = -1; status <= 5; ++status)
        for (const char* key : {"", "k3"})
          for (const auto& since : {std::optional<Instant>(), std::optional(start + 7s)})
            for (const std::uint32_t limit : {3u, 1000u}) {
              ListQuery query{.tenant = tenant, .function = function, .key = key, .since = since, .limit = limit};
              if (status >= 0) query.status = static_cast<Status>(status);
              std::vector<Run> left;
              for (const Run& run : all)
                if (is_listed(run, query)) left.push_back(run);
              sizes.insert(left.size());
              EXPECT_EQ(all_pages(query), ids(left)) << tenant.value_or("-") << " " << function << " " << status << " "
                                                     << key << " " << since.has_value() << " " << limit;
            }
  EXPECT_GT(sizes.size(), 10u);
}

TEST_P(ListFilters, EveryStatusIsCovered) {
  fill("acme", "f");
  for (int status = 0; status <= 5; ++status)
    EXPECT_FALSE(store().list({.tenant = "acme", .status = static_cast<Status>(status)}).value().runs.empty())
        << status;
}

}  // namespace
}  // namespace latchkey
