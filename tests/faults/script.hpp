// The script of a fault walk: some of all operations of the store. It checks every reply, and at the end all
// acknowledged changes. An error is a gtest failure or an exception.
#pragma once

#include <map>

#include "faults/walk.hpp"

namespace latchkey {

inline ClaimId call_id(std::uint64_t number) { return make_uuid_v7(from_ms(1), number, number); }
Digest hash_of(const std::string& function, const std::string& key);

class Script {
 public:
  explicit Script(Walk& walk) : walk_(walk) {}
  void run();

 private:
  ClaimReply claim(const std::string& key, std::uint64_t call, Guard guard = Guard::once);
  Won win(const std::string& key, std::uint64_t call, Guard guard = Guard::once);
  SettleReply settle(const Won& won, Ending ending);
  Run settled(const Won& won, Ending ending);
  // After a lost reply, the job is leased without a worker, so its lease must expire first.
  Won take(const std::string& function);
  RunId enqueue(const EnqueueRequest& job);
  Run move(RunId id, Move wish);

  void retry_then_complete();
  void dead_letter();
  void resolve(Uuid dead_letter, RunId run);
  void jobs_in_a_chain();
  void transactional_effect();
  void many_keys();
  void retried_by_an_operator();
  void waits_of_a_new_generation();
  void decided_after_the_lease();
  void purge();
  void check_replays();
  void check_all();
  void check_file();
  void check_keys(Database& database);

  Walk& walk_;
  Fence last_fence_{0};
  std::map<std::string, std::string> done_;
  std::int64_t failures_ = 0;  // generations that failed: a dead letter's member each
  int follow_ups_ = 0;
};

}  // namespace latchkey
