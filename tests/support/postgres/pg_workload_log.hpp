// WorkloadLog: callers that use the stores of one database at random during faults, and record every reply. At the end
// the database must match the replies: no acknowledged change is lost, no rejected change was applied, no change was
// applied twice, every taken run was returned to a caller, and fences only rise. Callers run on threads of their own.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "store/store.hpp"

namespace latchkey {

class WorkloadLog {
 public:
  WorkloadLog(std::vector<Store*> stores, std::uint64_t seed) : stores_(std::move(stores)), seed_(seed) {}

  // After a failover all leases expire, so an owner may get LEASE_LOST.
  void allow_lost_leases() { leases_may_be_lost_ = true; }
  // Runs `threads` callers until `enough()`. A reply that contradicts an earlier one fails the test immediately.
  void run(int threads, const std::function<bool()>& enough);
  // Takes the remaining jobs, and compares the whole database with the recorded replies.
  void check(Store& truth);

  std::uint64_t acknowledged() const { return acknowledged_; }
  // Waits until there are this many acknowledged replies in total. Returns false after `limit`.
  bool wait_for_replies(std::uint64_t acknowledged, std::chrono::seconds limit);
  std::uint64_t rejected() const { return rejected_; }

 private:
  struct Job {
    std::optional<RunId> id;        // none if the call was rejected, so there is no run
    std::uint32_t taken = 0;        // the number of claims and takes
    Fence fence{};                  // of the last take
    std::optional<Status> settled;  // the acknowledged status
    std::string result;
  };
  class Caller;

  void note_job(const std::string& input, std::optional<RunId> id);
  void note_taken(const Taken& taken);
  bool was_lost(const SettleReply& reply) const;
  void note_settled(const Run& run, Status status, const std::string& result);
  // Records a claim of a key that several callers use as a lock.
  void note_won(const std::string& key, const Won& won);
  void note_fence(Fence fence);

  const std::vector<Store*> stores_;
  const std::uint64_t seed_;
  std::atomic<bool> leases_may_be_lost_{false};
  std::mutex mutex_;
  std::condition_variable replied_;
  std::map<std::string, Job> jobs_;  // by their input, which is unique
  std::map<RunId, std::string> inputs_;
  std::map<std::string, Fence> won_;  // the newest fence of each key
  std::set<Fence> fences_;
  std::atomic<std::uint64_t> acknowledged_{0};
  std::atomic<std::uint64_t> rejected_{0};
};

}  // namespace latchkey
