// Suppressed duplicates: the requests that did not run because of the key's existing run. Each run has a count by
// reason and the latest callers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/run.hpp"

namespace latchkey {

struct DuplicateCaller {
  Instant at;
  std::string reason;  // REPLAYED, ALREADY_RUNNING, KEY_REUSED, …
  std::string caller;
};

struct DuplicateCount {
  std::string reason;
  std::uint64_t count = 0;
  Instant first;
  Instant last;
};

inline constexpr std::size_t kLatestDuplicates = 16;

struct Duplicates {
  std::vector<DuplicateCount> counts;
  std::vector<DuplicateCaller> latest;  // at most kLatestDuplicates, newest last
};

// The suppressed duplicates of one run since the last note.
struct DuplicateNote {
  RunId run;
  Duplicates seen;
};

void merge_duplicates(Duplicates& into, const Duplicates& more);

}  // namespace latchkey
