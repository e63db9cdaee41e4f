#include "config/placeholder.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace latchkey::config {
namespace {

struct Piece {
  std::string text;  // literal, or the placeholder's name
  enum class Kind : std::uint8_t { literal, env, file } kind = Kind::literal;
};

Result<std::vector<Piece>> split(std::string_view text) {
  std::vector<Piece> pieces;
  std::string literal;
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at, 3) == "$${") {
      literal += "${";
      at += 3;
      continue;
    }
    if (text.substr(at, 2) != "${") {
      literal += text[at++];
      continue;
    }
    const std::size_t end = text.find('}', at);
    if (end == text.npos) return fail(Code::INVALID_ARGUMENT, "a placeholder `${` has no closing brace");
    const std::string_view inner = text.substr(at + 2, end - at - 2);
    const bool is_env = inner.starts_with("env:"), is_file = inner.starts_with("file:");
    if (!is_env && !is_file)
      return fail(Code::INVALID_ARGUMENT,
                  fmt::format("`${{{}}}` is not a placeholder: write ${{env:NAME}} or ${{file:PATH}}", inner));
    const std::string_view name = inner.substr(is_env ? 4 : 5);
    if (name.empty()) return fail(Code::INVALID_ARGUMENT, fmt::format("`${{{}}}` names nothing", inner));
    if (!literal.empty()) pieces.push_back({std::move(literal)});
    literal.clear();
    pieces.push_back({std::string(name), is_env ? Piece::Kind::env : Piece::Kind::file});
    at = end + 1;
  }
  if (!literal.empty()) pieces.push_back({std::move(literal)});
  return pieces;
}

std::optional<std::string> read_secret(const Piece& piece, const std::string& folder) {
  if (piece.kind == Piece::Kind::env) {
    const char* const value = std::getenv(piece.text.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }
  std::ifstream file(std::filesystem::path(folder) / piece.text, std::ios::binary);
  if (!file) return std::nullopt;
  std::string value{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return std::nullopt;
  if (value.ends_with('\n')) value.pop_back();
  if (value.ends_with('\r')) value.pop_back();
  return value;
}

}  // namespace

std::optional<std::string> find_placeholder_fault(std::string_view text) {
  const auto pieces = split(text);
  return pieces ? std::nullopt : std::optional(pieces.error().detail);
}

bool has_placeholder(std::string_view text) { return text.contains("${"); }

Result<std::string> substitute(std::string_view text, const std::string& folder) {
  const auto pieces = split(text);
  if (!pieces) return std::unexpected(pieces.error());
  std::string out;
  for (const Piece& piece : *pieces) {
    if (piece.kind == Piece::Kind::literal) {
      out += piece.text;
      continue;
    }
    const auto value = read_secret(piece, folder);
    if (!value)
      return fail(Code::INVALID_ARGUMENT, fmt::format("${{{}:{}}} has no value here",
                                                      piece.kind == Piece::Kind::env ? "env" : "file", piece.text));
    out += *value;
  }
  return out;
}

void for_each_text(const FunctionDefinition& function, const std::function<void(const std::string&)>& visit) {
  visit(function.http);
  visit(function.secret);
  for (const auto& [name, value] : function.headers) visit(value);
  for (const std::string& argument : function.command) visit(argument);
  if (!function.probe) return;
  visit(function.probe->http);
  for (const std::string& argument : function.probe->command) visit(argument);
}

Result<FunctionDefinition> substitute(const FunctionDefinition& function, const std::string& folder) {
  FunctionDefinition filled = function;
  std::string missing;
  const auto fill = [&](std::string& text) {
    if (!has_placeholder(text)) return;
    auto value = substitute(text, folder);
    if (value) {
      text = *std::move(value);
    } else {
      missing += (missing.empty() ? "" : ", ") + value.error().detail;
    }
  };
  fill(filled.http);
  fill(filled.secret);
  for (auto& [name, value] : filled.headers) fill(value);
  for (std::string& argument : filled.command) fill(argument);
  if (filled.probe) {
    fill(filled.probe->http);
    for (std::string& argument : filled.probe->command) fill(argument);
  }
  if (!missing.empty()) return fail(Code::INVALID_ARGUMENT, std::move(missing));
  return filled;
}

}  // namespace latchkey::config
