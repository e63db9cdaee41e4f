#include "store/postgres/statements.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "store/postgres/block_columns.hpp"
#include "store/postgres/run_columns.hpp"

namespace latchkey::pg {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kNames{
#define STATEMENT(name) #name,
#include "store/postgres/statements.def"
#undef STATEMENT
};

std::vector<std::string> columns_of(std::string_view list) {
  std::vector<std::string> columns;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(", "), list.size());
    columns.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 2, list.size()));
  }
  return columns;
}

TEST(Statements, NamesAreUnique) {
  EXPECT_GE(kNames.size(), 50u);
  EXPECT_EQ(std::set(kNames.begin(), kNames.end()).size(), kNames.size());
  EXPECT_EQ(named_sql().all().size(), kNames.size());
  for (const std::string& name : kNames) EXPECT_FALSE(named_sql().find(name).empty()) << name;
}

TEST(Statements, AreCompleteAndOnOneLine) {
  for (const auto& [name, text] : named_sql().all())
    for (const char* left : {"{", "}", "--", ";", "\n", "\t", "  "}) EXPECT_THAT(text, Not(HasSubstr(left))) << name;
}

TEST(Statements, TextNeverChanges) {
  EXPECT_EQ(&sql().peek_keys, &sql().peek_keys);
  EXPECT_EQ(&sql().peek_keys, &named_sql().find("peek_keys"));
  EXPECT_THAT(sql().peek_keys, HasSubstr(sql().head_columns + ", " + sql().state_columns + " FROM latchkey.keys k"));
}

TEST(Statements, ColumnOrderMatchesTheReaders) {
  EXPECT_EQ(columns_of(sql().head_columns).size(), static_cast<std::size_t>(kHeadColumnCount));
  const auto state = columns_of(sql().state_columns);
  EXPECT_EQ(state.size(), static_cast<std::size_t>(kStateColumnCount));
  EXPECT_EQ(state.at(kStateAtColumn), "s.at");
  EXPECT_EQ(columns_of(sql().block_columns).at(kBlockDueColumn), "b.due");
}

}  // namespace
}  // namespace latchkey::pg
