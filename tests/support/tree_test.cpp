// The structure of src: folders include only folders above them, and only src/base uses clocks and random devices.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>

namespace latchkey {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = LATCHKEY_SOURCE_DIR;

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// The folders of src/ in the order of its CMakeLists.txt, a folder's own subfolders right after it.
std::vector<std::string> folders(const fs::path& from = kSource / "src", const std::string& prefix = "") {
  static const std::regex kAdd(R"(^\s*add_subdirectory\((\w+)\))");
  std::vector<std::string> names;
  std::smatch match;
  for (const std::string& line : lines_of(from / "CMakeLists.txt")) {
    if (!std::regex_search(line, match, kAdd)) continue;
    const std::string name = prefix + match[1].str();
    names.push_back(name);
    for (std::string& below : folders(kSource / "src" / name, name + "/")) names.push_back(std::move(below));
  }
  return names;
}

bool is_code(const fs::path& path) {
  return path.extension() == ".cpp" || path.extension() == ".hpp" || path.extension() == ".def";
}
bool is_test(const fs::path& path) { return path.stem().string().ends_with("_test"); }

std::vector<fs::path> code_in_src() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "src"))
    if (entry.is_regular_file() && is_code(entry.path())) files.push_back(fs::relative(entry.path(), kSource / "src"));
  return files;
}

// The position in the order of a path's folder, or of its nearest parent folder in the order.
std::optional<std::size_t> position_of(const fs::path& path, const std::vector<std::string>& order) {
  for (fs::path folder = path.parent_path(); !folder.empty(); folder = folder.parent_path())
    if (const auto at = std::ranges::find(order, folder.generic_string()); at != order.end())
      return static_cast<std::size_t>(at - order.begin());
  return std::nullopt;
}

TEST(Tree, EveryFolderIsBuilt) {
  const auto order = folders();
  ASSERT_GE(order.size(), 4u);
  for (const fs::path& file : code_in_src()) EXPECT_TRUE(position_of(file, order)) << file << " is in no module";
}

TEST(Tree, FoldersIncludeOnlyFoldersAbove) {
  const auto order = folders();
  const std::regex include(R"re(^\s*#\s*include\s+"([^"]+)")re");
  std::smatch match;
  for (const fs::path& file : code_in_src()) {
    const auto own = position_of(file, order);
    if (!own) continue;
    for (const std::string& line : lines_of(kSource / "src" / file)) {
      if (!std::regex_search(line, match, include)) continue;
      const fs::path wanted = match[1].str();
      if (is_test(file) && !fs::exists(kSource / "src" / wanted)) continue;  // tests/support
      const auto other = position_of(wanted, order);
      ASSERT_TRUE(other) << file << " includes " << wanted << ", which is not a path below src/";
      EXPECT_LE(*other, *own) << file << " includes " << wanted;
    }
  }
}

TEST(Tree, OnlyBaseUsesClocksAndRandomDevices) {
  const std::regex forbidden(
      R"(system_clock::now|steady_clock::now|high_resolution_clock|random_device|sleep_for|sleep_until|\busleep\(|\bnanosleep\(|gettimeofday|clock_gettime|getrandom\(|\bstd::rand\b|steady_timer|\bmt19937)");
  for (const fs::path& file : code_in_src()) {
    if (*file.begin() == "base") continue;
    int number = 0;
    for (const std::string& line : lines_of(kSource / "src" / file)) {
      number += 1;
      EXPECT_FALSE(std::regex_search(line, forbidden)) << file << ":" << number << ": " << line;
    }
  }
}

TEST(Tree, HeadersBeginWithADescription) {
  for (const fs::path& file : code_in_src()) {
    if (file.extension() != ".hpp") continue;
    const auto lines = lines_of(kSource / "src" / file);
    ASSERT_FALSE(lines.empty()) << file;
    EXPECT_TRUE(lines[0].starts_with("//")) << file << " does not begin with a description";
    EXPECT_TRUE(std::ranges::find(lines, "#pragma once") != lines.end()) << file;
  }
}

}  // namespace
}  // namespace latchkey
