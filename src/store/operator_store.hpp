// OperatorStore: the actions of people on runs and dead letters.
//
// All but move() block their caller for one short transaction. Any thread may call.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "model/requests.hpp"
#include "store/dead_letters.hpp"
#include "store/done.hpp"

namespace latchkey {

class OperatorStore {
 public:
  virtual ~OperatorStore() = default;

  // Cancels, retries or resolves one run.
  virtual void move(MoveRequest request, Done<MoveReply> done) = 0;

  virtual Result<DeadLetterPage> list_dead_letters(const DeadLetterQuery& query) = 0;
  virtual Result<std::optional<DeadLetter>> find_dead_letter(const std::optional<std::string>& tenant, Uuid id) = 0;
  // The members after `after`, ordered by position. Fewer than `limit` members are the last ones.
  virtual Result<std::vector<DeadLetterMember>> list_members(Uuid dead_letter, std::uint32_t limit,
                                                             MemberPosition after = {}) = 0;
  // Idempotent: the first acknowledgement stays. None when the tenant has no such entry.
  virtual Result<std::optional<DeadLetter>> acknowledge(const std::optional<std::string>& tenant, Uuid id,
                                                        const std::string& actor) = 0;
  // Retries or resolves members, each on its own. All of one slice is one transaction, which also records the actor and
  // the time. A repeat changes nothing. None when the tenant has no such entry.
  virtual Result<std::optional<DeadLetterActionReply>> act_on_dead_letter(const DeadLetterActionRequest& request) = 0;
};

}  // namespace latchkey
