#include "migrate/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <sstream>

namespace latchkey::migrate {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::ranges::sort(lines);
  return lines;
}

void require_same(const std::string& expected, Target& scratch, const Migration& migration, const std::string& step) {
  auto difference = compare(expected, scratch.describe());
  if (!difference) return;
  difference->label = migration.label;
  difference->step = step;
  throw MigrationError(Code::VERIFY_FAILED, to_string(*difference));
}

// ScratchScope: passes the scratch database to the watch while it exists.
class ScratchScope {
 public:
  ScratchScope(Target& scratch, const VerifyWatch& watch) : watch_(watch) { watch.on_scratch(&scratch); }
  ~ScratchScope() { watch_.on_scratch(nullptr); }
  ScratchScope(const ScratchScope&) = delete;
  ScratchScope& operator=(const ScratchScope&) = delete;

 private:
  const VerifyWatch& watch_;
};

void step(Target& scratch, const Migration& migration, const VerifyWatch& watch,
          void (*work)(Target&, const Migration&)) {
  if (watch.must_stop()) throw MigrationError(Code::VERIFY_FAILED, "interrupted");
  scratch.begin(Duration{1000}, [] {});
  work(scratch, migration);
  scratch.commit();
}

}  // namespace

std::string to_string(const Difference& difference) {
  std::string text = difference.step == "down"
                         ? fmt::format("{}.down.sql does not lead back to the schema before it", difference.label)
                         : fmt::format("{}.up.sql makes another schema the second time", difference.label);
  for (const std::string& line : difference.missing) text += "\n- " + line;
  for (const std::string& line : difference.extra) text += "\n+ " + line;
  return text;
}

std::optional<Difference> compare(const std::string& expected, const std::string& found) {
  const auto before = lines_of(expected), after = lines_of(found);
  Difference difference;
  std::ranges::set_difference(before, after, std::back_inserter(difference.missing));
  std::ranges::set_difference(after, before, std::back_inserter(difference.extra));
  if (difference.missing.empty() && difference.extra.empty()) return std::nullopt;
  return difference;
}

void verify(Target& target, const Collection& files, const VerifyWatch& watch) {
  require_faultless(target, files);
  const auto scratch = target.make_scratch();
  const ScratchScope shown(*scratch, watch);
  std::vector<std::string> schemas{scratch->describe()};  // [n]: once n are applied
  try {
    for (const Migration& one : files.migrations) {
      step(*scratch, one, watch, &apply_one);
      schemas.push_back(scratch->describe());
    }
    for (std::size_t n = files.migrations.size(); n > 0; --n) {
      step(*scratch, files.migrations[n - 1], watch, &take_back_one);
      require_same(schemas[n - 1], *scratch, files.migrations[n - 1], "down");
    }
    for (std::size_t n = 0; n < files.migrations.size(); ++n) {
      step(*scratch, files.migrations[n], watch, &apply_one);
      require_same(schemas[n + 1], *scratch, files.migrations[n], "up again");
    }
  } catch (...) {
    scratch->roll_back();
    throw;
  }
}

}  // namespace latchkey::migrate
