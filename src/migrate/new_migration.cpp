#include "migrate/new_migration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <regex>

namespace latchkey::migrate {
namespace {

constexpr const char* kUp = R"(-- {0}: what it changes. One transaction with its plan's queries: no BEGIN, no COMMIT.

)";
constexpr const char* kDown = R"(-- {0}: what takes it back, last things first.

)";
constexpr const char* kPlan = R"(# {0}: how it is taken back, at what risk, and how one sees that it worked.
# What is empty is to be filled in: `latchkey migrate plan --dir DIR` says what is missing.
change:            # what it does, in a few words
data_loss_risk:    # of taking it back: none, minimal or significant
estimated_time:    # of taking it back: 5 minutes
dependencies: []   # what must be so first
steps:
#  - Export data that is still needed    (an operator does it, and confirms it)
  - run: down
verification_queries:
#  - query: SELECT count(*) FROM information_schema.tables WHERE table_name = 'user_preferences'
#    after_up: 1
#    after_rollback: 0
#  - query: SELECT count(*) FROM users
#    unchanged: true
# Where they are of use: version, rollback_version, triggers, data_changes, verification_steps.
)";

Error fault_of(const std::filesystem::path& path, const std::error_code& error) {
  return {Code::NOT_FOUND, fmt::format("{} cannot be made: {}", path.string(), error.message())};
}

// Does not overwrite a file.
std::error_code write_new(const std::filesystem::path& path, const std::string& text) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wx"), &std::fclose);
  if (!file || std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() || std::fflush(file.get()) != 0)
    return {errno, std::generic_category()};
  return {};
}

Result<std::vector<Migration>> read_others(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return std::unexpected(fault_of(folder, error));
  auto files = read_folder(folder);
  if (!files) return std::unexpected(files.error());
  return std::move(files->migrations);
}

}  // namespace

std::string compute_next_number(const std::vector<Migration>& migrations, Instant now) {
  if (migrations.empty()) return "0001";
  const Migration& last = migrations.back();
  const std::size_t width = last.label.find('_');
  std::string today = format_rfc3339(now);
  std::erase_if(today, [](unsigned char c) { return std::isdigit(c) == 0; });
  const std::int64_t by_date = width == 8 || width == 14 ? std::stoll(today.substr(0, width)) : 0;
  return fmt::format("{:0{}}", std::max(by_date, last.version + 1), width);
}

Result<NewMigration> make_migration(const std::filesystem::path& folder, const std::string& name, Instant now) {
  static const std::regex kName("[A-Za-z0-9][A-Za-z0-9_-]{0,99}");
  if (!std::regex_match(name, kName))
    return fail(Code::USAGE, "a migration's name is made of letters, digits, - and _, at most 100 of them");
  const auto others = read_others(folder);
  if (!others) return std::unexpected(others.error());
  if (const auto same = std::ranges::find(*others, name, &Migration::name); same != others->end())
    return fail(Code::USAGE, fmt::format("there is {} already", same->label));
  const std::string number = compute_next_number(*others, now);
  NewMigration made{.version = std::stoll(number), .label = number + "_" + name};
  for (const auto& [ending, text] :
       {std::pair(".up.sql", kUp), std::pair(".down.sql", kDown), std::pair(".plan.yml", kPlan)}) {
    const auto path = folder / (made.label + ending);
    if (const auto error = write_new(path, fmt::format(fmt::runtime(text), made.label))) {
      for (const std::string& before : made.paths) std::filesystem::remove(before);
      return std::unexpected(fault_of(path, error));
    }
    made.paths.push_back(path.string());
  }
  return made;
}

}  // namespace latchkey::migrate
