// Entity hashes: the short name of a set of identifiers, the same as this JavaScript gives for JSON.parse'd entities.
//
//   const canonical = JSON.stringify(Object.keys(entities).sort().map(k => [k, entities[k]]));
//   return createHash('sha256').update(canonical).digest('hex').slice(0, 12);
//
// Only the outermost names are sorted; nested objects keep their order, except that JavaScript puts array indexes ("0",
// "17") first. So this is not canonical JSON: two texts that differ in the order of a nested object have different
// hashes. 12 digits tell entities of one function and tenant apart; they are no proof of anything. INVALID_JSON when
// the text is no object, and for all that canonical_json.hpp refuses (where JavaScript would silently take the last of
// two equal names, or round an integer). Pure; safe from any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace latchkey {

// 12 lower-case hexadecimal digits.
Result<std::string> compute_entity_hash(std::string_view entities);
// The text that is hashed, for people who compare.
Result<std::string> compute_entity_text(std::string_view entities);

}  // namespace latchkey
