// Plain words: counts the words that the style guide bans, per folder. The limits may only fall.
//
// Counted are whole words in text and in identifiers (`tell_news`, `LieDown`), and comments of code that begin with a
// who/what clause instead of a noun. A "keep" of keep-alive is HTTP's own word.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace latchkey {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = LATCHKEY_SOURCE_DIR;

struct Limit {
  const char* path;
  int count;
};

constexpr std::array kLimits{
    Limit{"README.md", 0},
    Limit{"CHANGELOG.md", 0},
    Limit{"CONTRIBUTING.md", 0},
    Limit{"SECURITY.md", 0},
    Limit{"docs", 0},
    Limit{"api", 0},
    Limit{"include", 0},
    Limit{"examples", 0},
    Limit{"bench", 0},
    Limit{"scripts", 0},
    Limit{"cmake", 0},
    Limit{"migrations", 171},
    Limit{"src/api", 0},
    Limit{"src/base", 0},
    Limit{"src/cli", 0},
    Limit{"src/client", 0},
    Limit{"src/config", 0},
    Limit{"src/effects", 0},
    Limit{"src/embedded", 0},
    Limit{"src/engine", 0},
    Limit{"src/http", 0},
    Limit{"src/keying", 0},
    Limit{"src/migrate", 0},
    Limit{"src/model", 0},
    Limit{"src/pg", 0},
    Limit{"src/server", 0},
    Limit{"src/store", 1},
    Limit{"src/telemetry", 0},
    Limit{"src/transfer", 1},
    Limit{"src/wire", 0},
    Limit{"tests/api", 0},
    Limit{"tests/cli", 0},
    Limit{"tests/conformance", 0},
    Limit{"tests/faults", 0},
    Limit{"tests/fuzz", 0},
    Limit{"tests/http", 0},
    Limit{"tests/migrate", 0},
    Limit{"tests/package", 0},
    Limit{"tests/postgres", 0},
    Limit{"tests/simulation", 0},
    Limit{"tests/sql", 6},
    Limit{"tests/support", 1},
    Limit{"tests/transfer", 0},
};

const std::set<std::string> kBanned{"somebody", "nobody", "whoever", "anybody", "everybody", "whom",  "tell",
                                    "tells",    "told",   "telling", "keep",    "keeps",     "kept",  "keeping",
                                    "stand",    "stands", "stood",   "lie",     "lies",      "lay",   "mend",
                                    "mends",    "mended", "mending", "befall",  "befalls",   "befell"};
const std::map<std::string, std::set<std::string>> kBannedAfter{{"by", {"go", "goes", "gone", "went"}},
                                                                {"at", {"look", "looks", "looked", "looking"}},
                                                                {"up", {"give", "gives", "gave", "given", "giving"}}};
const std::set<std::string> kWhoVerbs{"has",   "asks", "holds", "wants", "waits", "takes", "gives", "comes", "lost",
                                      "calls", "is",   "was",   "does",  "makes", "finds", "reads", "writes"};

struct Word {
  std::string text;    // in lower case
  char separator = 0;  // before it, where that is one character
  bool is_flag = false;  // a command-line flag, such as --keep
};

// Splits at everything but letters, and before a capital letter that follows a small one.
std::vector<Word> split_words(const std::string& line) {
  std::vector<Word> words;
  std::size_t end = std::string::npos;  // of the word before
  for (std::size_t at = 0; at < line.size();) {
    if (!std::isalpha(static_cast<unsigned char>(line[at]))) {
      at += 1;
      continue;
    }
    const std::size_t begin = at;
    do at += 1;
    while (at < line.size() && std::isalpha(static_cast<unsigned char>(line[at])) &&
           !(std::isupper(static_cast<unsigned char>(line[at])) &&
             std::islower(static_cast<unsigned char>(line[at - 1]))));
    Word word{line.substr(begin, at - begin)};
    std::ranges::transform(word.text, word.text.begin(), [](unsigned char c) { return std::tolower(c); });
    word.separator = end == begin ? '_' : end != std::string::npos && begin - end == 1 ? line[end] : '\0';
    words.push_back(std::move(word));
    words.back().is_flag = begin >= 2 && line.compare(begin - 2, 2, "--") == 0;
    end = at;
  }
  return words;
}

bool is_pair(const Word& second) {
  return second.separator == ' ' || second.separator == '_' || second.separator == '-';
}

bool begins_with_clause(const std::string& line) {
  const std::size_t from = line.find_first_not_of(' ');
  if (from == line.npos || (line.compare(from, 2, "//") != 0 && line.compare(from, 2, "--") != 0)) return false;
  const std::size_t text = line.find_first_not_of(' ', from + 2);
  if (text == line.npos) return false;
  return std::ranges::any_of(std::array{"What ", "Who ", "Whose ", "Whom "},
                             [&](const std::string& word) { return line.compare(text, word.size(), word) == 0; });
}

int count_banned(const std::string& line) {
  const std::vector<Word> words = split_words(line);
  int count = begins_with_clause(line) ? 1 : 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Word* next = i + 1 < words.size() && is_pair(words[i + 1]) ? &words[i + 1] : nullptr;
    if (next && words[i].text == "keep" && next->text == "alive") continue;
    if (i > 0 && words[i - 1].text == "curlopt") continue;  // a name of libcurl
    if (kBanned.contains(words[i].text) && !words[i].is_flag) count += 1;
    if (!next) continue;
    if (const auto after = kBannedAfter.find(next->text);
        after != kBannedAfter.end() && after->second.contains(words[i].text))
      count += 1;
    if (words[i].text == "who" && kWhoVerbs.contains(next->text)) count += 1;
  }
  return count;
}

bool is_counted(const fs::path& path) {
  static const std::set<std::string> kEndings{".cpp", ".hpp", ".def", ".sql", ".md",  ".yaml", ".yml",
                                              ".sh",  ".py",  ".c",   ".txt", ".mjs", ".cmake"};
  return kEndings.contains(path.extension().string()) && path.filename() != "plain_words_test.cpp";
}

int count_file(const fs::path& path) {
  std::ifstream file(path);
  int count = 0;
  for (std::string line; std::getline(file, line);) count += count_banned(line);
  return count;
}

// Subfolders that have a limit of their own do not count for their parent.
int count_below(const fs::path& path) {
  if (fs::is_regular_file(path)) return count_file(path);
  int count = 0;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = fs::relative(entry.path(), kSource).generic_string();
    const bool has_own = std::ranges::any_of(kLimits, [&](const Limit& limit) { return name == limit.path; });
    if (has_own || name == "tests/data" || entry.path().filename() == "node_modules") continue;
    if (entry.is_directory()) count += count_below(entry.path());
    if (entry.is_regular_file() && is_counted(entry.path())) count += count_file(entry.path());
  }
  return count;
}

TEST(PlainWords, NoFolderHasMoreBannedWordsThanItsLimit) {
  for (const Limit& limit : kLimits) {
    ASSERT_TRUE(fs::exists(kSource / limit.path)) << limit.path;
    const int count = count_below(kSource / limit.path);
    EXPECT_LE(count, limit.count) << limit.path << " has more banned words than before; see CONTRIBUTING.md";
    EXPECT_GE(count, limit.count) << limit.path << " has fewer: lower its number in this file to " << count;
  }
}

TEST(PlainWords, EveryFolderHasALimit) {
  for (const char* root : {"src", "tests", "docs"}) {
    const bool has_own =
        std::ranges::any_of(kLimits, [&](const Limit& limit) { return std::string_view(limit.path) == root; });
    if (has_own) continue;
    for (const auto& entry : fs::directory_iterator(kSource / root)) {
      if (!entry.is_directory() || entry.path().filename() == "data") continue;
      const std::string name = fs::relative(entry.path(), kSource).generic_string();
      EXPECT_TRUE(std::ranges::any_of(kLimits, [&](const Limit& limit) { return name == limit.path; })) << name;
    }
  }
}

TEST(PlainWords, BannedWordsAreFound) {
  EXPECT_EQ(count_banned("// It tells nobody."), 2);
  EXPECT_EQ(count_banned("void tell_news();"), 1);
  EXPECT_EQ(count_banned("class TellNews;"), 1);
  EXPECT_EQ(count_banned("  // What waits is refused."), 1);
  EXPECT_EQ(count_banned("a caller who asks goes by its key"), 2);
  EXPECT_EQ(count_banned("it is given up, and looked_at"), 2);
  EXPECT_EQ(count_banned("Connection: keep-alive, keep_alive, keepAlive"), 0);
  EXPECT_EQ(count_banned("CURLOPT_NOBODY"), 0) << "a name of libcurl";
  EXPECT_EQ(count_banned("move --keep"), 0) << "the name of a flag";
  EXPECT_EQ(count_banned("standby, keeper, layer, belief, understand"), 0);
}

}  // namespace
}  // namespace latchkey
