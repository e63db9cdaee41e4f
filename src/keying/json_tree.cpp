#include "keying/json_tree.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <cstring>

#include "keying/json_number.hpp"
#include "keying/json_string.hpp"

namespace latchkey {

// One pass over the padded copy. Every read_ function gets the first byte of its value and returns the byte after its
// last one, or nullptr after a fault. The position is not a member, so that it stays in a register. Zero bytes after
// the text end every loop.
class JsonReader {
 public:
  JsonReader(JsonTree& tree, std::size_t size) : tree_(tree), begin_(tree.source_.get()), end_(begin_ + size) {}

  Result<void> read() {
    char* at = skip_space(begin_);
    if (at == end_) return fail(Code::INVALID_JSON, "the text is empty");
    at = read_value(at);
    if (at != nullptr) at = skip_space(at);
    if (at == end_) return {};
    if (at != nullptr) refuse("unexpected content after the value", at);
    return fail(Code::INVALID_JSON, fmt::format("{} at byte {}", fault_, fault_at_ - begin_));
  }

  // The number of bytes by which the written text may be longer than the source.
  std::size_t extra() const { return extra_; }

 private:
  char* refuse(const char* fault, const char* at) {
    fault_ = at == end_ ? "unexpected end" : fault;
    fault_at_ = at;
    return nullptr;
  }

  static char* skip_space(char* at) {
    if (static_cast<unsigned char>(*at) > ' ') [[likely]]
      return at;
    while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t') ++at;
    return at;
  }

  void add(const char* text, const char* stop, JsonKind kind) {
    tree_.nodes_.push_back({.text = text, .size = static_cast<std::uint32_t>(stop - text), .kind = kind});
  }

  char* read_value(char* at) {
    switch (*at) {
      case '"':
        return read_string(at);
      case '{':
        return read_container<JsonKind::OBJECT, '}'>(at);
      case '[':
        return read_container<JsonKind::ARRAY, ']'>(at);
      case 't':
        return read_word(at, "true");
      case 'f':
        return read_word(at, "false");
      case 'n':
        return read_word(at, "null");
      default:
        return read_literal_number(at);
    }
  }

  char* read_string(char* at) {
    char* const special = find_special(at + 1);
    if (*special != '"') [[unlikely]]
      return read_escaped_string(at, special);
    add(at, special + 1, JsonKind::STRING);
    return special + 1;
  }

  char* read_escaped_string(char* at, char* special) {
    const UnescapedString string = unescape(special);
    if (string.fault != nullptr) return refuse(string.fault, string.end);
    add(at, string.stop, string.plain ? JsonKind::STRING : JsonKind::ESCAPED);
    if (!string.plain) extra_ += 5 * static_cast<std::size_t>(string.stop - at);
    return string.end;
  }

  char* read_word(char* at, std::string_view word) {
    if (std::memcmp(at, word.data(), word.size()) != 0) return refuse("unexpected character", at);
    add(at, at + word.size(), JsonKind::TOKEN);
    return at + word.size();
  }

  char* read_literal_number(char* at) {
    const JsonNumber number = read_number(at);
    switch (number.kind) {
      case JsonNumber::Kind::VERBATIM:
        add(number.text, number.text + number.size, JsonKind::TOKEN);
        break;
      case JsonNumber::Kind::COMPUTED:
        tree_.nodes_.push_back({.number = number.value, .size = 0, .kind = JsonKind::DOUBLE});
        extra_ += NUMBER_SIZE_MAX;
        break;
      case JsonNumber::Kind::INEXACT:
        return refuse("number cannot be represented exactly; send it as a string,", at);
      case JsonNumber::Kind::UNBOUNDED:
        return refuse("number is beyond the range of a double; send it as a string,", at);
      case JsonNumber::Kind::MALFORMED:
        return refuse(number.end == at ? "unexpected character" : "malformed number", number.end);
    }
    return at + (number.end - at);
  }

  char* read_name(char* at) {
    if (*at != '"') return refuse("expected a member name", at);
    at = read_string(at);
    if (at == nullptr) return nullptr;
    at = skip_space(at);
    if (*at != ':') return refuse("expected ':'", at);
    return skip_space(at + 1);
  }

  template <JsonKind KIND, char CLOSE>
  char* read_container(char* at) {
    if (++depth_ > JsonTree::DEPTH_MAX) return refuse("nesting deeper than 128 levels", at);
    const std::size_t self = tree_.nodes_.size();
    tree_.nodes_.push_back({.count = 0, .size = 0, .kind = KIND});
    std::uint64_t count = 0;
    at = skip_space(at + 1);
    while (*at != CLOSE || count != 0) {
      if (KIND == JsonKind::OBJECT && (at = read_name(at)) == nullptr) return nullptr;
      if ((at = read_value(at)) == nullptr) return nullptr;
      ++count;
      at = skip_space(at);
      if (*at == CLOSE) break;
      if (*at != ',') return refuse(KIND == JsonKind::OBJECT ? "expected ',' or '}'" : "expected ',' or ']'", at);
      at = skip_space(at + 1);
    }
    --depth_;
    tree_.nodes_[self].count = count;
    tree_.nodes_[self].size = static_cast<std::uint32_t>(tree_.nodes_.size());
    return at + 1;
  }

  JsonTree& tree_;
  char* const begin_;
  char* const end_;
  int depth_ = 0;
  const char* fault_ = nullptr;
  const char* fault_at_ = nullptr;
  std::size_t extra_ = 0;
};

Result<void> JsonTree::parse(std::string_view text) {
  if (text.empty()) return fail(Code::INVALID_JSON, "the text is empty");
  if (text.size() >= std::size_t{1} << 30) return fail(Code::INVALID_JSON, "the text is 1 GiB or larger");
  if (text.starts_with("\xEF\xBB\xBF")) return fail(Code::INVALID_JSON, "byte order mark at byte 0");
  if (!simdjson::validate_utf8(text)) return fail(Code::INVALID_JSON, "the text is not valid UTF-8");
  if (capacity_ < text.size() + PADDING) {
    capacity_ = text.size() + text.size() / 2 + PADDING;
    source_ = std::make_unique_for_overwrite<char[]>(capacity_);
  }
  std::memcpy(source_.get(), text.data(), text.size());
  std::memset(source_.get() + text.size(), 0, PADDING);
  nodes_.clear();
  JsonReader reader(*this, text.size());
  auto done = reader.read();
  written_max_ = text.size() + reader.extra();
  return done;
}

void JsonTree::shrink(std::size_t bytes_retained) {
  if (capacity_ > bytes_retained) source_.reset(), capacity_ = 0;
  if (nodes_.capacity() * sizeof(JsonNode) > bytes_retained) std::vector<JsonNode>().swap(nodes_);
}

}  // namespace latchkey
