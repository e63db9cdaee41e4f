#include "effects/stored_output.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include "base/base64.hpp"
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

}  // namespace latchkey
