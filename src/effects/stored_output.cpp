#include "effects/stored_output.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

#include "base/base64.hpp"
#include "base/utf8.hpp"
#include "keying/json_string.hpp"
#include "keying/json_tree.hpp"

namespace latchkey {
namespace {

bool is_text(std::string_view bytes) {
  return simdjson::validate_utf8(bytes.data(), bytes.size()) && bytes.find('\0') == std::string_view::npos;
}

std::string escape(std::string_view text) {
  std::string padded(text);
  padded.append(JsonTree::PADDING, '\0');
  std::string out(6 * text.size() + JsonTree::PADDING, '\0');
  const char* const end = write_escaped({padded.data(), text.size()}, out.data());
  out.resize(static_cast<std::size_t>(end - out.data()));
  return out;
}

std::string write_stream(const StoredStream& stream) {
  const bool text = is_text(stream.bytes);
  return fmt::format(R"({{"{}":"{}","bytes":{},"truncated":{}}})", text ? "text" : "base64",
                     text ? escape(stream.bytes) : encode_base64(stream.bytes), stream.total, stream.truncated);
}

std::optional<StoredStream> read_stream(simdjson::dom::element from) {
  StoredStream stream;
  std::string_view text;
  if (from["text"].get(text) == simdjson::SUCCESS) {
    stream.bytes = text;
  } else if (from["base64"].get(text) == simdjson::SUCCESS) {
    auto bytes = decode_base64(text);
    if (!bytes) return std::nullopt;
    stream.bytes = *std::move(bytes);
  } else {
    return std::nullopt;
  }
  if (from["bytes"].get(stream.total) != simdjson::SUCCESS) stream.total = stream.bytes.size();
  if (from["truncated"].get(stream.truncated) != simdjson::SUCCESS) stream.truncated = false;
  return stream;
}

}  // namespace

StoredStream to_stored(const LastBytes& stream) {
  return {std::string(stream.bytes()), stream.total(), stream.truncated()};
}

std::string write_stored_output(const StoredOutput& stored) {
  return fmt::format(R"({{"exit_code":{},"stdout":{},"stderr":{}}})", stored.exit_code, write_stream(stored.output),
                     write_stream(stored.errors));
}

std::optional<StoredOutput> read_stored_output(const std::string& result) {
  simdjson::dom::parser parser;
  simdjson::dom::element root, output, errors;
  std::int64_t exit_code = 0;
  if (parser.parse(result).get(root) != simdjson::SUCCESS || root["exit_code"].get(exit_code) != simdjson::SUCCESS ||
      root["stdout"].get(output) != simdjson::SUCCESS || root["stderr"].get(errors) != simdjson::SUCCESS)
    return std::nullopt;
  auto output_stream = read_stream(output);
  auto error_stream = read_stream(errors);
  if (!output_stream || !error_stream) return std::nullopt;
  return StoredOutput{static_cast<int>(exit_code), *std::move(output_stream), *std::move(error_stream)};
}

namespace {

// Both sections, with their titles, are below the 64 KiB of a stored error.
constexpr std::size_t kTextMax = 62 * 1024;

// The end of the text in at most `bytes_max` bytes, from the beginning of a character.
std::string_view cut_front(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  text.remove_prefix(text.size() - bytes_max);
  while (!text.empty() && (static_cast<unsigned char>(text.front()) & 0xc0) == 0x80) text.remove_prefix(1);
  return text;
}

// The stored bytes begin where they were cut, possibly inside a character.
std::string to_text(const StoredStream& stream) {
  std::string_view bytes = stream.bytes;
  for (int i = 0; stream.truncated && i < 3 && !bytes.empty() && utf8_length(bytes) == 0; ++i) bytes.remove_prefix(1);
  return make_readable(bytes);
}

std::string write_section(std::string_view title, std::string_view text, std::size_t room, std::uint64_t total) {
  if (text.empty()) return "";
  const std::string_view shown = cut_front(text, room);
  const bool is_whole = shown.size() == text.size() && total <= text.size();
  const std::string note = is_whole ? std::string() : fmt::format(" (the end of {} bytes)", total);
  const std::string_view body = shown.ends_with('\n') ? shown.substr(0, shown.size() - 1) : shown;
  return fmt::format("\n--- {}{}\n{}", title, note, body);
}

}  // namespace

std::string write_output_text(const StoredStream& output, const StoredStream& errors, std::string_view known) {
  const std::string out = to_text(output), err = to_text(errors);
  const std::string_view line = err.ends_with('\n') ? std::string_view(err).substr(0, err.size() - 1) : err;
  if (out.empty() && line == known) return "";
  // A stream that needs less than its half leaves the rest to the other one.
  const std::size_t for_err = std::min(err.size(), std::max(kTextMax / 2, kTextMax - std::min(out.size(), kTextMax)));
  return write_section("stdout", out, kTextMax - for_err, output.total) +
         write_section("stderr", err, for_err, errors.total);
}

}  // namespace latchkey
