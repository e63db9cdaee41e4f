// Packed values in SQL stores: values that no query needs separately.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/run.hpp"
#include "store/duplicates.hpp"

namespace latchkey {

// guard, on_doubt, on_failed, made_by, by_call
std::int64_t pack_traits(const RunHead& head);
void unpack_traits(std::int64_t traits, RunHead& head);

// Into the buffer, which is overwritten. Empty: the default policy.
std::string_view pack_retry(const RetryPolicy& retry, std::vector<std::int64_t>& buffer);
RetryPolicy unpack_retry(std::string_view bytes);

std::string encode_duplicates(const Duplicates& seen);
Duplicates decode_duplicates(std::string_view bytes);

}  // namespace latchkey
