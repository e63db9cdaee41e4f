// ClaimStore: the verbs of one protected call: claim a key, extend the lease, settle. run_once() needs nothing else of a
// store, so a store that only guards keys can offer this role alone.
#pragma once

#include <vector>

#include "model/requests.hpp"
#include "store/done.hpp"

namespace latchkey {

class ClaimStore {
 public:
  virtual ~ClaimStore() = default;

  // Inserts first: the key's uniqueness decides, not a read before the write. model/repeat_table.hpp lists what a repeat
  // receives.
  virtual void claim(ClaimRequest request, Done<ClaimReply> done) = 0;
  // Heartbeats. Each request is independent of the others, and extends only the run that it names.
  virtual void extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) = 0;
  // Ends attempts. Each request is independent of the others. The outcome, the follow-ups, the released dependents and
  // the dead letter of one request are one transaction.
  virtual void settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) = 0;
};

}  // namespace latchkey
