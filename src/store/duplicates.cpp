#include "store/duplicates.hpp"

#include <algorithm>

namespace latchkey {

void merge_duplicates(Duplicates& into, const Duplicates& more) {
  for (const DuplicateCount& seen : more.counts) {
    const auto known = std::ranges::find(into.counts, seen.reason, &DuplicateCount::reason);
    if (known == into.counts.end()) {
      into.counts.push_back(seen);
      continue;
    }
    known->count += seen.count;
    known->first = std::min(known->first, seen.first);
    known->last = std::max(known->last, seen.last);
  }
  into.latest.insert(into.latest.end(), more.latest.begin(), more.latest.end());
  if (into.latest.size() > kLatestDuplicates)
    into.latest.erase(into.latest.begin(), into.latest.end() - kLatestDuplicates);
}

}  // namespace latchkey
