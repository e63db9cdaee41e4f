// JobQueue: the verbs of queued runs.
#pragma once

#include <vector>

#include "model/requests.hpp"
#include "store/done.hpp"

namespace latchkey {

class JobQueue {
 public:
  virtual ~JobQueue() = default;

  // Each request is independent of the others; the replies are in the order of the requests. A request that names an
  // unknown predecessor is refused alone. A call that is repeated with the same claim id receives its own run, not
  // `duplicate`: with or without a key, and also where the call reopened a failed run.
  virtual void enqueue(std::vector<EnqueueRequest> requests, Done<std::vector<EnqueueReply>> done) = 0;
  // Leases due jobs in one transaction: highest priority first, then the longest due. Empty when no job is due.
  virtual void take(TakeRequest request, Done<std::vector<Taken>> done) = 0;
};

}  // namespace latchkey
