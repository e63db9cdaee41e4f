// Ledger: callers that use stores on one database at random while something goes wrong, and note every answer. What the
// database holds at the end must be what they were told: nothing acknowledged is lost, nothing refused was done,
// nothing is doubled, every run that was handed out is in somebody's hands, fences only rise.
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

class Ledger {
 public:
  Ledger(std::vector<Store*> stores, std::uint64_t seed) : stores_(std::move(stores)), seed_(seed) {}

  // Where another PostgreSQL takes over, all leases end: an owner may be told that it is one no longer.
  void allow_lost_leases() { leases_may_be_lost_ = true; }
  // `threads` callers, each until `enough()`. What contradicts an answer at once fails the test at once.
  void run(int threads, const std::function<bool()>& enough);
  // Takes what is left, and compares the whole database with the notes.
  void check(Store& truth);

  std::uint64_t acknowledged() const { return acknowledged_; }
  // False when there are not so many acknowledged answers in all by then.
  bool wait_for_answers(std::uint64_t acknowledged, std::chrono::seconds patience);
  std::uint64_t refused() const { return refused_; }

 private:
  struct Job {
    std::optional<RunId> id;        // none: refused, so nothing was changed
    std::uint32_t taken = 0;        // how often it was handed out
    Fence fence{};                  // of the last one
    std::optional<Status> settled;  // as was acknowledged
    std::string result;
  };
  class Caller;

  void note_job(const std::string& input, std::optional<RunId> id);
  void note_taken(const Taken& taken);
  bool was_lost(const SettleReply& reply) const;
  void note_settled(const Run& run, Status status, const std::string& result);
  // The lock of a key that several callers want.
  void note_won(const std::string& key, const Won& won);
  void note_fence(Fence fence);

  const std::vector<Store*> stores_;
  const std::uint64_t seed_;
  std::atomic<bool> leases_may_be_lost_{false};
  std::mutex mutex_;
  std::condition_variable answered_;
  std::map<std::string, Job> jobs_;  // by their input, which is unique
  std::map<RunId, std::string> inputs_;
  std::map<std::string, Fence> won_;  // the newest, by key
  std::set<Fence> fences_;
  std::atomic<std::uint64_t> acknowledged_{0};
  std::atomic<std::uint64_t> refused_{0};
};

}  // namespace latchkey
