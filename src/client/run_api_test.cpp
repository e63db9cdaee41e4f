#include "client/run_api.hpp"

#include <gtest/gtest.h>

namespace latchkey {
namespace {

// Returns the given pages, one per call.
class PagedApi final : public RunApi {
 public:
  Result<ClaimReply> claim(const ClaimRequest&) override { return nothing(); }
  Result<std::vector<ExtendReply>> extend(const std::vector<ExtendRequest>&) override { return nothing(); }
  Result<std::vector<SettleReply>> settle(const std::vector<SettleRequest>&) override { return nothing(); }
  Result<Page> list_runs(const ListQuery& query) override {
    asked.push_back(query.cursor);
    if (asked.size() > pages.size()) return fail(Code::STORE_UNAVAILABLE, "no more pages");
    return pages[asked.size() - 1];
  }
  Result<Run> find_run(RunId) override { return nothing(); }
  Result<Run> move_run(RunId, Move) override { return nothing(); }
  Result<DeadLetterPage> list_dead_letters(const DeadLetterQuery&) override { return nothing(); }
  Result<DeadLetterDetails> find_dead_letter(Uuid) override { return nothing(); }
  Result<DeadLetter> acknowledge(Uuid, const std::string&) override { return nothing(); }
  Result<MembersMoved> move_members(Uuid, const DeadLetterAction&, const std::string&,
                                    const std::function<void(const MembersMoved&)>&) override {
    return nothing();
  }
  Result<NewToken> create_token(const TokenRequest&) override { return nothing(); }
  Result<std::vector<TokenRecord>> list_tokens() override { return nothing(); }
  Result<void> revoke_token(const std::string&) override { return nothing(); }

  std::vector<Page> pages;
  std::vector<std::string> asked;

 private:
  static std::unexpected<Error> nothing() { return fail(Code::INTERNAL, "not asked for"); }
};

using Cursors = std::vector<std::string>;

TEST(FindPage, GoesOnPastPagesOnWhichNothingWasFound) {
  PagedApi api;
  api.pages = {{{}, "a"}, {{}, "b"}, {{latchkey::Run{}}, "c"}};
  const auto page = find_page(api, {.key = "k", .cursor = "start"});
  ASSERT_TRUE(page);
  EXPECT_EQ(page->runs.size(), 1u);
  EXPECT_EQ(page->next, "c");
  EXPECT_EQ(api.asked, (Cursors{"start", "a", "b"}));
}

TEST(FindPage, EndsAtTheEndAndAtAnError) {
  PagedApi api;
  api.pages = {{{}, "a"}, {{}, ""}};
  const auto none = find_page(api, {});
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->runs.empty() && none->next.empty());
  api.pages = {{{}, "a"}};
  api.asked.clear();
  EXPECT_FALSE(find_page(api, {}));
}

}  // namespace
}  // namespace latchkey
