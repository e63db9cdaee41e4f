#include "cli/listing.hpp"

#include <gtest/gtest.h>

namespace latchkey {
namespace {

// Lists pages as they were written down, by cursor.
class PagedDesk final : public OperatorClient {
 public:
  Result<Page> list_runs(const ListQuery& query) override {
    asked.push_back(query.cursor);
    if (asked.size() > pages.size()) return fail(Code::STORE_UNAVAILABLE, "no more pages");
    return pages[asked.size() - 1];
  }
  Result<Run> find_run(RunId) override { return nothing(); }
  Result<Run> move_run(RunId, Move) override { return nothing(); }
  Result<DeadLetterPage> list_dead_letters(const DeadLetterQuery&) override { return nothing(); }
  Result<DeadLetterWhole> find_dead_letter(Uuid) override { return nothing(); }
  Result<DeadLetter> acknowledge(Uuid, const std::string&) override { return nothing(); }
  Result<MembersMoved> move_members(Uuid, const DeadLetterAction&, const std::string&,
                                    const std::function<void(const MembersMoved&)>&) override {
    return nothing();
  }
  Result<NewToken> create_token(const TokenWish&) override { return nothing(); }
  Result<std::vector<TokenRecord>> list_tokens() override { return nothing(); }
  Result<void> revoke_token(const std::string&) override { return nothing(); }

  std::vector<Page> pages;
  std::vector<std::string> asked;

 private:
  static std::unexpected<Error> nothing() { return fail(Code::INTERNAL, "not asked for"); }
};

using Cursors = std::vector<std::string>;

TEST(FindPage, GoesOnPastPagesOnWhichNothingWasFound) {
  PagedDesk desk;
  desk.pages = {{{}, "a"}, {{}, "b"}, {{latchkey::Run{}}, "c"}};
  const auto page = find_page(desk, {.key = "k", .cursor = "start"});
  ASSERT_TRUE(page);
  EXPECT_EQ(page->runs.size(), 1u);
  EXPECT_EQ(page->next, "c");
  EXPECT_EQ(desk.asked, (Cursors{"start", "a", "b"}));
}

TEST(FindPage, EndsAtTheEndAndAtAnError) {
  PagedDesk desk;
  desk.pages = {{{}, "a"}, {{}, ""}};
  const auto none = find_page(desk, {});
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->runs.empty() && none->next.empty());
  desk.pages = {{{}, "a"}};
  desk.asked.clear();
  EXPECT_FALSE(find_page(desk, {}));
}

}  // namespace
}  // namespace latchkey
