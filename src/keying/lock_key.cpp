#include "keying/lock_key.hpp"

#include <fmt/format.h>

#include "keying/entity_hash.hpp"
#include "keying/json_number.hpp"
#include "keying/json_pointer.hpp"
#include "keying/names.hpp"

namespace latchkey {
namespace {

constexpr std::string_view INPUT_PREFIX = "input.";

std::string escape_separators(std::string_view text) {
  std::string escaped;
  for (const char c : text)
    if (c == ':')
      escaped += "%3A";
    else if (c == '%')
      escaped += "%25";
    else
      escaped += c;
  return escaped;
}

// The text of a scalar in a key; none for null, arrays and objects.
std::optional<std::string> format_scalar(const JsonNode& node) {
  if (node.is_string()) return escape_separators(node.content());
  if (node.kind == JsonKind::DOUBLE) {
    char text[NUMBER_SIZE_MAX];
    return std::string(text, write_number(node.number, text));
  }
  if (node.kind != JsonKind::TOKEN || std::string_view(node.text, node.size) == "null") return std::nullopt;
  return std::string(node.text, node.size);
}

}  // namespace

// One rendering: parses the input and finds the zone at most once.
class LockKeyRendering {
 public:
  using Part = LockKeyTemplate::Part;

  LockKeyRendering(const LockKeyRequest& request, absl::TimeZone zone) : request_(request), zone_(zone) {}

  Result<std::string> render(const Part& part) {
    switch (part.kind) {
      case Part::Kind::LITERAL:
        return part.text;
      case Part::Kind::FUNCTION:
        return std::string(request_.function);
      case Part::Kind::TENANT:
        return std::string(request_.tenant);
      case Part::Kind::REQUEST_GRAIN:
        return compute_grain_label(request_.grain, request_.at, zone_);
      case Part::Kind::GRAIN:
        return compute_grain_label(part.grain, request_.at, zone_);
      case Part::Kind::ENTITY:
        if (!request_.entities)
          return fail(Code::INVALID_ARGUMENT, "the template has {entity}, but no entities are given");
        return compute_entity_hash(*request_.entities);
      case Part::Kind::INPUT:
        return render_input(part.text);
    }
    return {};
  }

 private:
  Result<std::string> render_input(std::string_view pointer) {
    if (!request_.input)
      return fail(Code::INVALID_ARGUMENT, fmt::format("the template has {{input.{}}}, but no input is given", pointer));
    if (!parsed_) {
      if (auto parsed = input_.parse(*request_.input); !parsed) return std::unexpected(std::move(parsed.error()));
      parsed_ = true;
    }
    const JsonNode* const node = find_pointed(input_, pointer);
    if (node == nullptr) return fail(Code::INVALID_ARGUMENT, fmt::format("the input has nothing at {}", pointer));
    auto text = format_scalar(*node);
    if (!text)
      return fail(Code::INVALID_ARGUMENT,
                  fmt::format("the input's {} is neither string, number, true nor false", pointer));
    return *std::move(text);
  }

  const LockKeyRequest& request_;
  absl::TimeZone zone_;
  JsonTree input_;
  bool parsed_ = false;
};

Result<LockKeyTemplate::Part> LockKeyTemplate::parse_placeholder(std::string_view name) {
  if (name == "function") return Part{.kind = Part::Kind::FUNCTION};
  if (name == "tenant") return Part{.kind = Part::Kind::TENANT};
  if (name == "grain") return Part{.kind = Part::Kind::REQUEST_GRAIN};
  if (name == "entity") return Part{.kind = Part::Kind::ENTITY};
  if (name.starts_with(INPUT_PREFIX)) {
    const std::string_view pointer = name.substr(INPUT_PREFIX.size());
    if (auto good = check_json_pointer(pointer); !good) return std::unexpected(std::move(good.error()));
    return Part{.kind = Part::Kind::INPUT, .text = std::string(pointer)};
  }
  const auto grain = parse_grain(name);
  if (!grain)
    return fail(Code::INVALID_ARGUMENT,
                fmt::format("{{{}}} is unknown: use function, tenant, grain, 5min, hour, day, week, month, entity or "
                            "input./json/pointer",
                            name));
  return Part{.kind = Part::Kind::GRAIN, .grain = *grain};
}

void LockKeyTemplate::add_literal(char c) {
  if (parts_.empty() || parts_.back().kind != Part::Kind::LITERAL) parts_.emplace_back();
  parts_.back().text += c;
}

Result<std::size_t> LockKeyTemplate::add_placeholder(std::string_view text, std::size_t at) {
  const std::size_t close = text.find('}', at);
  if (close == text.npos)
    return fail(Code::INVALID_ARGUMENT, fmt::format("the template's '{{' at byte {} is not closed", at));
  if (!parts_.empty() && parts_.back().kind != Part::Kind::LITERAL)
    return fail(Code::INVALID_ARGUMENT,
                fmt::format("the template needs text such as ':' between placeholders at byte {}", at));
  auto part = parse_placeholder(text.substr(at + 1, close - at - 1));
  if (!part) return std::unexpected(std::move(part.error()));
  parts_.push_back(*std::move(part));
  return close + 1;
}

Result<LockKeyTemplate> LockKeyTemplate::parse(std::string_view text) {
  if (auto good = check_key_text(text); !good) return std::unexpected(std::move(good.error()));
  LockKeyTemplate result;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view pair = text.substr(at, 2);
    if (pair == "{{" || pair == "}}") {
      result.add_literal(text[at]);
      at += 2;
    } else if (text[at] == '}') {
      return fail(Code::INVALID_ARGUMENT, fmt::format("the template's '}}' at byte {} closes nothing", at));
    } else if (text[at] == '{') {
      const auto next = result.add_placeholder(text, at);
      if (!next) return std::unexpected(next.error());
      at = *next;
    } else {
      result.add_literal(text[at++]);
    }
  }
  return result;
}

Result<std::string> LockKeyTemplate::render(const LockKeyRequest& request) const {
  if (auto good = check_function(request.function); !good) return std::unexpected(std::move(good.error()));
  if (auto good = check_tenant(request.tenant); !good) return std::unexpected(std::move(good.error()));
  const auto zone = find_time_zone(request.time_zone);
  if (!zone) return std::unexpected(zone.error());
  LockKeyRendering rendering(request, *zone);
  std::string key;
  for (const Part& part : parts_) {
    const auto text = rendering.render(part);
    if (!text) return text;
    key += *text;
  }
  if (auto good = check_key_text(key); !good) return std::unexpected(std::move(good.error()));
  return key;
}

Result<std::string> compute_lock_key(const LockKeyRequest& request) {
  static const LockKeyTemplate plain = *LockKeyTemplate::parse("{function}:{tenant}:{grain}");
  static const LockKeyTemplate with_entity = *LockKeyTemplate::parse("{function}:{tenant}:{grain}:{entity}");
  return (request.entities ? with_entity : plain).render(request);
}

}  // namespace latchkey
