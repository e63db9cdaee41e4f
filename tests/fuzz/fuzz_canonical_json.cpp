// Canonical JSON on any bytes: it never crashes, canonical text does not change, and simdjson agrees on what is JSON.
#include <simdjson.h>

#include <cstddef>
#include <cstdint>

#include "base/assert.hpp"
#include "keying/canonical_json.hpp"
#include "keying/entity_hash.hpp"

namespace {

using namespace latchkey;

// Canonical JSON rejects more than simdjson does, but only for these reasons.
bool is_stricter(std::string_view detail) {
  for (const char* reason : {"duplicate", "surrogate", "exactly", "range", "deeper", "byte order mark"})
    if (detail.contains(reason)) return true;
  return false;
}

void compare_with_simdjson(std::string_view text, const Result<std::string>& ours) {
  static simdjson::dom::parser parser;
  const auto theirs = parser.parse(simdjson::padded_string(text)).error();
  // simdjson has no integers beyond 64 bits.
  if (ours) LK_ASSERT(theirs == simdjson::SUCCESS || theirs == simdjson::NUMBER_ERROR);
  if (!ours && theirs == simdjson::SUCCESS) LK_ASSERT(is_stricter(ours.error().detail));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto canonical = canonical_json(text);
  const auto fingerprint = compute_fingerprint(text);
  LK_ASSERT(canonical.has_value() == fingerprint.has_value());
  compare_with_simdjson(text, canonical);
  const auto entity = compute_entity_hash(text);
  if (!canonical) {
    LK_ASSERT(canonical.error() == fingerprint.error() && !entity);
    return 0;
  }
  LK_ASSERT(sha256(*canonical) == *fingerprint);
  LK_ASSERT(canonical_json(*canonical) == canonical);
  LK_ASSERT(entity.has_value() == canonical->starts_with('{'));
  return 0;
}
