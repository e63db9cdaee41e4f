// Pages agree with the code: tables that repeat data of the code, error codes, and the names of tests.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "support/repeat_markdown.hpp"

namespace latchkey {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = LATCHKEY_SOURCE_DIR;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) ADD_FAILURE() << "cannot read " << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

const std::vector<CodeFacts>& codes() {
  static const std::vector<CodeFacts> kAll{
#define LK_ERROR_CODE(name, status, retryable, title) CodeFacts{#name, status, retryable, title},
#include "base/error_codes.def"
#undef LK_ERROR_CODE
  };
  return kAll;
}

// With LATCHKEY_WRITE_DOCS set, writes the table into the page instead of comparing.
TEST(Docs, RepeatTableMatchesTheCode) {
  const fs::path page = kSource / "docs/repeats.md";
  std::string text = read(page);
  const std::string_view begin = "<!-- table -->\n", end = "<!-- /table -->\n";
  const auto from = text.find(begin), to = text.find(end);
  ASSERT_TRUE(from != text.npos && to != text.npos && from < to);
  const auto start = from + begin.size();
  if (std::getenv("LATCHKEY_WRITE_DOCS") != nullptr) {
    std::ofstream(page, std::ios::binary) << text.replace(start, to - start, write_repeat_table());
    return;
  }
  EXPECT_EQ(text.substr(start, to - start), write_repeat_table()) << "run this test with LATCHKEY_WRITE_DOCS=1";
}

TEST(Docs, ErrorCodesAndPagesMatch) {
  std::set<std::string> pages, names;
  for (const auto& file : fs::directory_iterator(kSource / "docs/errors"))
    if (file.path().filename() != "README.md") pages.insert(file.path().stem().string());
  for (const CodeFacts& code : codes()) names.insert(std::string(code.name));
  EXPECT_EQ(pages, names);
}

TEST(Docs, ErrorPagesAgreeWithTheCode) {
  const std::string index = read(kSource / "docs/errors/README.md");
  for (const CodeFacts& code : codes()) {
    const std::string name(code.name);
    const std::string page = read(kSource / "docs/errors" / (name + ".md"));
    EXPECT_TRUE(page.starts_with("# " + name + "\n")) << name;
    EXPECT_NE(page.find(std::string(code.title)), page.npos) << name << " does not contain its title";
    const std::string facts_line =
        "HTTP " + std::to_string(code.http_status) + " · " +
        (code.retryable ? "the same call may succeed later" : "the same call will not succeed");
    EXPECT_NE(page.find(facts_line), page.npos) << name << " should contain: " << facts_line;
    for (const char* section : {"## When you see it", "## What to do"})
      EXPECT_NE(page.find(section), page.npos) << name;
    EXPECT_NE(index.find("[" + name + "](" + name + ".md)"), index.npos) << name << " is not in the index";
  }
}

// Suite.Name of every test in the tree, and Suite.* of every suite.
std::set<std::string> find_tests() {
  static const std::regex kTest(R"(\b(?:TEST(?:_F|_P)?|RC_GTEST_PROP)\(\s*(\w+),\s*(\w+)\s*[,)])");
  std::set<std::string> tests;
  for (const char* folder : {"src", "tests"})
    for (const auto& file : fs::recursive_directory_iterator(kSource / folder)) {
      if (!file.path().filename().string().ends_with("_test.cpp")) continue;
      const std::string text = read(file.path());
      for (auto test = std::sregex_iterator(text.begin(), text.end(), kTest); test != std::sregex_iterator(); ++test) {
        tests.insert((*test)[1].str() + "." + (*test)[2].str());
        tests.insert((*test)[1].str() + ".*");
      }
    }
  return tests;
}

// Pages name tests as `Suite.Name` or `Suite.*`.
TEST(Docs, EveryTestThatAPageNamesExists) {
  static const std::regex kNamed(R"(`([A-Z]\w+)\.([A-Z]\w+|\*)`)");
  const std::set<std::string> tests = find_tests();
  int named = 0;
  for (const auto& file : fs::recursive_directory_iterator(kSource / "docs")) {
    if (file.path().extension() != ".md") continue;
    const std::string page = read(file.path());
    for (auto name = std::sregex_iterator(page.begin(), page.end(), kNamed); name != std::sregex_iterator(); ++name) {
      const std::string test = (*name)[1].str() + "." + (*name)[2].str();
      if (test == "Suite.Name") continue;  // the form itself
      EXPECT_TRUE(tests.contains(test)) << test << " is in " << file.path().filename() << " and not in a test file";
      named += 1;
    }
  }
  EXPECT_GT(named, 50);
}

}  // namespace
}  // namespace latchkey
