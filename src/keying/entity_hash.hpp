// Entity hashes: a short name for a set of identifiers. This JavaScript returns the same for parsed entities:
//
//   const canonical = JSON.stringify(Object.keys(entities).sort().map(k => [k, entities[k]]));
//   return createHash('sha256').update(canonical).digest('hex').slice(0, 12);
//
// Only the outermost names are sorted. Members of nested objects stay in their order, except that JavaScript puts array
// indexes ("0", "17") first. So this is not canonical JSON: texts that differ in the order of a nested object have
// different hashes. 12 digits distinguish the entities of one function and tenant; they are not a cryptographic proof.
// INVALID_JSON when the text is not an object, and for every text that canonical_json.hpp refuses (where JavaScript
// would silently use the last of two equal names, or round an integer). Pure; safe from any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace latchkey {

// 12 lower-case hexadecimal digits.
Result<std::string> compute_entity_hash(std::string_view entities);
// The text that is hashed, for people who compare hashes.
Result<std::string> compute_entity_text(std::string_view entities);

}  // namespace latchkey
