#include "config/config_file.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "config/function_settings.hpp"
#include "config/placeholder.hpp"
#include "config/read_members.hpp"
#include "config/schema.hpp"
#include "config/values.hpp"
#include "model/limits.hpp"

namespace latchkey::config {
namespace {

using namespace std::chrono_literals;

constexpr std::array<std::string_view, 2> kLogs{"text", "json"};
constexpr std::array<std::string_view, 4> kLevels{"debug", "info", "warn", "error"};

Value word(std::string_view name, std::string& field, std::span<const std::string_view> words, std::string_view help) {
  return choice_of(
      name, words, help, [&field] { return field.empty() ? std::nullopt : std::optional<std::size_t>(0); },
      [&field, words](std::size_t at) { field = words[at]; });
}

void describe_server(Members& members, ServerMembers& server) {
  members.value(text("store", server.store, "The store: sqlite:FILE or postgres://…"));
  members.value(text("listen", server.listen, "The address and port of the API (127.0.0.1:7420)."));
  members.value(text("data_dir", server.data_dir, "The folder of the store and of admin.key."));
  members.value(duration("retention", server.retention, {1ms, kWindowMax}, "How long settled runs are stored (7d)."));
  members.value(duration("failed_retention", server.failed_retention, {1ms, kWindowMax},
                         "How long failed runs are stored (30d)."));
  members.value(texts("cors_origins", server.cors_origins, "The origins whose scripts may call the API."));
  members.value(flag("insecure_listen", server.insecure_listen, "Listen beyond loopback although there is no TLS."));
  members.value(word("log", server.log, kLogs, "The form of log lines (text)."));
  members.value(word("log_level", server.log_level, kLevels, "The least level that is logged (info)."));
}

Object workers_member(WorkerSettings& workers) {
  return {.info = {"workers", "How many calls and commands this server runs at once; off: none."},
          .describe =
              [&workers](Members& members) {
                members.value(number("http", workers.http, {0, 10'000}, "Calls at once (256)."));
                members.value(number("command", workers.command, {0, 1'000}, "Commands at once (4)."));
                members.value(duration("drain", workers.drain, {0ms, 1h},
                                       "How long a stop waits for calls and commands that run (30s)."));
              },
          .begin = [] {},
          .is_set = [] { return false; },
          .read_text = [&workers](const std::string& text) -> std::optional<std::string> {
            if (text != "off" && text != "false") return "must be a mapping, or off";
            workers.off = true;
            return std::nullopt;
          },
          .text_schema = R"({"enum":["off",false]})"};
}

Collection functions_member(ConfigFile& config) {
  return {.info = {"functions", "The functions that jobs name, by name."},
          .shape = Collection::Shape::mapping,
          .add = [&config](const std::string& name) -> Describe {
            if (!config.functions) config.functions.emplace();
            config.functions->push_back({.name = name});
            return [&config, at = config.functions->size() - 1](Members& members) {
              describe(members, (*config.functions)[at]);
            };
          },
          .each = {}};
}

// Texts of server members may have placeholders; they are substituted at once, because only this server has them.
void substitute_server(ConfigFile& config, const Node& root, std::vector<Fault>& faults) {
  const auto fill = [&](const char* name, std::string& text) {
    if (text.empty()) return;
    auto value = substitute(text, config.folder);
    const Node* const node = root.find(name);
    if (!value) return faults.push_back({node ? node->at : Position{}, name, value.error().detail});
    text = *std::move(value);
  };
  fill("store", config.server.store);
  fill("listen", config.server.listen);
  fill("data_dir", config.server.data_dir);
}

void resolve_paths(ConfigFile& config) {
  const std::filesystem::path folder(config.folder);
  const auto absolute = [&](const std::string& path) { return (folder / path).lexically_normal().string(); };
  ServerMembers& server = config.server;
  if (server.store.starts_with("sqlite:")) server.store = "sqlite:" + absolute(server.store.substr(7));
  if (!server.data_dir.empty()) server.data_dir = absolute(server.data_dir);
  const auto resolve_command = [&](std::vector<std::string>& command) {
    if (!command.empty() && command[0].contains('/') && !command[0].starts_with("${"))
      command[0] = absolute(command[0]);
  };
  if (!config.functions) return;
  for (FunctionDefinition& function : *config.functions) {
    resolve_command(function.command);
    if (function.probe) resolve_command(function.probe->command);
  }
}

}  // namespace

void describe(Members& members, ConfigFile& config) {
  describe_server(members, config.server);
  members.object(workers_member(config.workers));
  members.collection(functions_member(config));
}

ConfigFile parse_config(std::string_view text, const std::string& file, std::vector<Fault>& faults) {
  ConfigFile config{.file = file};
  config.folder = std::filesystem::absolute(file).parent_path().string();
  const std::size_t before = faults.size();
  const Node root = parse_yaml(text, faults);
  if (faults.size() > before) return config;
  if (root.kind == Node::Kind::null) return config;
  if (!root.is_mapping()) {
    faults.push_back({root.at, "", "a config is a mapping of members"});
    return config;
  }
  // An empty `functions:` retires all functions, so its presence counts.
  if (root.find("functions") != nullptr) config.functions.emplace();
  read_members(root, "", [&config](Members& members) { describe(members, config); }, faults);
  substitute_server(config, root, faults);
  if (faults.size() == before) resolve_paths(config);
  return config;
}

Result<std::string> read_text_file(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  if (stream) text.assign(std::istreambuf_iterator<char>(stream), {});
  if (!stream || stream.bad() || std::filesystem::is_directory(file))
    return fail(Code::USAGE, "cannot read the config " + file + ": " + std::strerror(errno));
  return text;
}

Result<ConfigFile> read_config_file(const std::string& file) {
  const auto text = read_text_file(file);
  if (!text) return std::unexpected(text.error());
  std::vector<Fault> faults;
  ConfigFile config = parse_config(*text, file, faults);
  if (!faults.empty()) return std::unexpected(to_error(faults, file));
  return config;
}

std::string write_config_schema() {
  ConfigFile config;
  std::string schema =
      write_schema([&config](Members& members) { describe(members, config); }, "The config file of Latchkey");
  return R"({"$schema":"http://json-schema.org/draft-07/schema#",)" + schema.substr(1);
}

}  // namespace latchkey::config
