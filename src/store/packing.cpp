#include "store/packing.hpp"

#include <algorithm>
#include <cstring>

namespace latchkey {

namespace {

// Little-endian numbers of eight bytes: retries, first, factor, ceiling, total, jitter. If the policy has more than
// these, the percentage of the jitter and the delays of the schedule follow.
constexpr std::size_t kRetryFields = 6;
// The policy of runs whose column is NULL, and the values of fields that are not stored. It is written out here because
// the default for new runs may change, but the policy of stored runs must not.
const RetryPolicy kNullPolicy{.retries = 3,
                              .first = std::chrono::seconds{1},
                              .factor = 5,
                              .ceiling = std::chrono::seconds{30},
                              .total = Duration::max(),
                              .jitter = Jitter::none,
                              .jitter_percent = 10,
                              .schedule = {}};

}  // namespace

std::int64_t pack_traits(const RunHead& head) {
  return static_cast<int>(head.guard) | static_cast<int>(head.on_doubt) << 2 | static_cast<int>(head.on_failed) << 3 |
         static_cast<int>(head.made_by) << 5 | static_cast<int>(head.by_call) << 6;
}

void unpack_traits(std::int64_t traits, RunHead& head) {
  head.guard = static_cast<Guard>(traits & 3);
  head.on_doubt = static_cast<OnDoubt>(traits >> 2 & 1);
  head.on_failed = static_cast<OnFailed>(traits >> 3 & 3);
  head.made_by = static_cast<MadeBy>(traits >> 5 & 1);
  head.by_call = (traits >> 6 & 1) != 0;
}

std::string_view pack_retry(const RetryPolicy& retry, std::vector<std::int64_t>& buffer) {
  if (retry == kNullPolicy) return {};
  buffer = {retry.retries,         retry.first.count(), retry.factor,
            retry.ceiling.count(), retry.total.count(), static_cast<std::int64_t>(retry.jitter)};
  if (retry.jitter_percent != kNullPolicy.jitter_percent || !retry.schedule.empty()) {
    buffer.push_back(retry.jitter_percent);
    for (const Duration delay : retry.schedule) buffer.push_back(delay.count());
  }
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size() * sizeof(std::int64_t)};
}

RetryPolicy unpack_retry(std::string_view bytes) {
  std::vector<std::int64_t> fields(bytes.size() / sizeof(std::int64_t));
  if (fields.size() < kRetryFields) return kNullPolicy;
  std::memcpy(fields.data(), bytes.data(), fields.size() * sizeof(std::int64_t));
  RetryPolicy retry{.retries = static_cast<std::uint32_t>(fields[0]),
                    .first = Duration{fields[1]},
                    .factor = static_cast<std::uint32_t>(fields[2]),
                    .ceiling = Duration{fields[3]},
                    .total = Duration{fields[4]},
                    .jitter = static_cast<Jitter>(fields[5]),
                    .jitter_percent = kNullPolicy.jitter_percent};
  if (fields.size() > kRetryFields) retry.jitter_percent = static_cast<std::uint32_t>(fields[kRetryFields]);
  for (std::size_t i = kRetryFields + 1; i < fields.size(); ++i) retry.schedule.emplace_back(fields[i]);
  return retry;
}

namespace {

void put_number(std::string& to, std::int64_t value) { to.append(reinterpret_cast<const char*>(&value), sizeof value); }
void put_text(std::string& to, std::string_view text) {
  put_number(to, static_cast<std::int64_t>(text.size()));
  to.append(text);
}

struct Unpacker {
  std::string_view left;
  std::int64_t number() {
    std::int64_t value = 0;
    if (left.size() < sizeof value) return 0;
    std::memcpy(&value, left.data(), sizeof value);
    left.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const auto size = std::min<std::size_t>(static_cast<std::size_t>(number()), left.size());
    std::string value(left.substr(0, size));
    left.remove_prefix(size);
    return value;
  }
};

}  // namespace

std::string encode_duplicates(const Duplicates& seen) {
  std::string bytes;
  put_number(bytes, static_cast<std::int64_t>(seen.counts.size()));
  for (const DuplicateCount& count : seen.counts) {
    put_text(bytes, count.reason);
    put_number(bytes, static_cast<std::int64_t>(count.count));
    put_number(bytes, to_ms(count.first));
    put_number(bytes, to_ms(count.last));
  }
  put_number(bytes, static_cast<std::int64_t>(seen.latest.size()));
  for (const DuplicateCaller& caller : seen.latest) {
    put_number(bytes, to_ms(caller.at));
    put_text(bytes, caller.reason);
    put_text(bytes, caller.caller);
  }
  return bytes;
}

Duplicates decode_duplicates(std::string_view bytes) {
  Unpacker from{bytes};
  Duplicates seen;
  for (std::int64_t left = from.number(); left > 0 && !from.left.empty(); --left) {
    DuplicateCount count;
    count.reason = from.text();
    count.count = static_cast<std::uint64_t>(from.number());
    count.first = from_ms(from.number());
    count.last = from_ms(from.number());
    seen.counts.push_back(std::move(count));
  }
  for (std::int64_t left = from.number(); left > 0 && !from.left.empty(); --left) {
    DuplicateCaller caller;
    caller.at = from_ms(from.number());
    caller.reason = from.text();
    caller.caller = from.text();
    seen.latest.push_back(std::move(caller));
  }
  return seen;
}

}  // namespace latchkey
