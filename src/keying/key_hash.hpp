// The identity of a key inside the stores. Pure; safe from any thread.
#pragma once

#include <string_view>

#include "base/sha256.hpp"

namespace latchkey {

// SHA-256 over the three parts, each after its length, so that different triples have different hashes: ("a", "bc",
// "d") and ("ab", "c", "d") differ. `scope` is the namespace of the key: a function, a route, a process.
Digest compute_key_hash(std::string_view tenant, std::string_view scope, std::string_view text);

}  // namespace latchkey
