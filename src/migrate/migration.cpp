#include "migrate/migration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <regex>

#include "base/hex.hpp"
#include "base/sha256.hpp"
#include "base/utf8.hpp"
#include "migrate/embedded.hpp"

namespace latchkey::migrate {
namespace {

// Numbers from here on are dates (20260206…), between which there are no gaps.
constexpr std::int64_t kDates = 10'000'000;

// The files that were found for a number.
struct Parts {
  std::string label, name;
  std::optional<File> up, down, plan;
};

// More than any script needs, and less than the memory of a machine.
constexpr std::size_t kFileMax = 64 * 1024 * 1024;

// Some editors write an invisible byte order mark, which a database would report as a syntax error.
std::string strip_mark(std::string text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  return text;
}

std::optional<Fault> find_no_text(const File& file) {
  if (file.text.starts_with("\xFF\xFE") || file.text.starts_with("\xFE\xFF"))
    return Fault{file.name, 1, "is UTF-16, by its byte order mark: save it as UTF-8"};
  const auto fault_at = [&](std::size_t at, const char* what) {
    const auto end = file.text.begin() + static_cast<std::ptrdiff_t>(at);
    return Fault{file.name, 1 + static_cast<int>(std::count(file.text.begin(), end, '\n')), what};
  };
  if (const auto at = file.text.find('\0'); at != file.text.npos)
    return fault_at(at, "has a NUL byte: it must be text in UTF-8");
  if (const auto at = find_invalid_utf8(file.text); at != file.text.npos)
    return fault_at(at, "has bytes that are no UTF-8: save it as UTF-8");
  return std::nullopt;
}

// Refuses pipes, which would block, and devices, which may be endless.
Result<std::string> read_text(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return fail(Code::MIGRATION_INVALID, fmt::format("{} is no regular file", path.string()));
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return fail(Code::NOT_FOUND, fmt::format("{} cannot be read", path.string()));
  std::string text;
  for (std::string piece(64 * 1024, '\0'); stream && text.size() <= kFileMax;) {
    stream.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece, 0, static_cast<std::size_t>(stream.gcount()));
  }
  if (text.size() > kFileMax)
    return fail(Code::MIGRATION_INVALID, fmt::format("{} has more than 64 MiB", path.string()));
  return text;
}

// Line ends are normalised, because a checkout may change them.
std::string compute_checksum(std::string text) {
  std::erase(text, '\r');
  return to_hex(sha256(text));
}

void sort_in(const File& file, const std::smatch& match, std::map<std::int64_t, Parts>& found,
             std::vector<Fault>& faults) {
  Parts& parts = found[std::stoll(match[1])];
  const std::string label = match[1].str() + "_" + match[2].str();
  if (parts.label.empty()) parts.label = label, parts.name = match[2];
  auto& place = match[3] == "up.sql" ? parts.up : match[3] == "down.sql" ? parts.down : parts.plan;
  if (parts.label != label || place)
    return faults.push_back({file.name, 0, fmt::format("its number is that of {}, too", parts.label)});
  place = file;
}

void find_gaps(const std::map<std::int64_t, Parts>& found, std::vector<Fault>& faults) {
  const Parts* before = nullptr;
  std::int64_t last = 0;
  for (const auto& [version, parts] : found) {
    if (before != nullptr && version > last + 1 && version < kDates)
      faults.push_back({parts.label, 0, fmt::format("there is a gap between it and {}", before->label)});
    before = &parts, last = version;
  }
}

Migration assemble(std::int64_t version, Parts parts, std::vector<Fault>& faults) {
  for (const auto& [file, ending, why] :
       {std::tuple(&parts.up, "up.sql", "what it changes"), std::tuple(&parts.down, "down.sql", "what takes it back"),
        std::tuple(&parts.plan, "plan.yml", "how it is taken back, and at what risk")})
    if (!*file) faults.push_back({parts.label + "." + ending, 0, fmt::format("is missing: {}", why)});
  Migration one{.version = version, .label = parts.label, .name = parts.name};
  if (parts.up) one.up = parts.up->text, one.checksum = compute_checksum(one.up);
  if (parts.down) one.down = parts.down->text;
  one.plan_file = parts.plan ? parts.plan->name : parts.label + ".plan.yml";
  if (parts.plan) one.plan = parse_plan(parts.plan->name, parts.plan->text, faults);
  return one;
}

bool is_ours(const std::string& name) {
  return name.ends_with(".sql") || name.ends_with(".plan.yml") || name.ends_with(".plan.yaml");
}

}  // namespace

std::string to_string(const Fault& fault) {
  return fault.line > 0 ? fmt::format("{}:{}: {}", fault.file, fault.line, fault.text)
                        : fmt::format("{}: {}", fault.file, fault.text);
}

std::string to_string(const std::vector<Fault>& faults) {
  std::string lines;
  for (const Fault& fault : faults) lines += (lines.empty() ? "" : "\n") + to_string(fault);
  return lines;
}

Collection arrange(const std::vector<File>& files) {
  static const std::regex kForm(R"((\d{1,18})_([A-Za-z0-9][A-Za-z0-9_-]*)\.(up\.sql|down\.sql|plan\.ya?ml))");
  Collection all;
  std::map<std::int64_t, Parts> found;
  for (const File& given : files) {
    std::smatch match;
    if (!is_ours(given.name)) continue;
    const File file{given.name, strip_mark(given.text)};
    if (auto fault = find_no_text(file)) all.faults.push_back(*std::move(fault));
    if (!std::regex_match(file.name, match, kForm))
      all.faults.push_back({file.name, 0, "is not named NUMBER_name.up.sql, .down.sql or .plan.yml"});
    else if (std::stoll(match[1]) == 0)
      all.faults.push_back({file.name, 0, "numbers begin at 1"});
    else
      sort_in(file, match, found, all.faults);
  }
  find_gaps(found, all.faults);
  for (auto& [version, parts] : found) all.migrations.push_back(assemble(version, std::move(parts), all.faults));
  std::ranges::sort(all.faults, {}, [](const Fault& fault) { return std::tie(fault.file, fault.line, fault.text); });
  return all;
}

Result<Collection> read_folder(const std::filesystem::path& folder) {
  std::vector<File> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!is_ours(name) || entry.is_directory()) continue;
    auto text = read_text(entry.path());
    if (!text) return std::unexpected(text.error());
    files.push_back({name, *std::move(text)});
  }
  if (error) return fail(Code::NOT_FOUND, fmt::format("{}: {}", folder.string(), error.message()));
  std::ranges::sort(files, {}, &File::name);
  return arrange(files);
}

const Collection& own_migrations() {
  static const Collection all = [] {
    std::vector<File> files;
    for (const Embedded& file : embedded()) files.push_back({file.name, file.text});
    return arrange(files);
  }();
  return all;
}

}  // namespace latchkey::migrate
