// Engine: the front of a store. Checks requests against the limits, replies to repeats from memory, counts suppressed
// repeats, and maintains the store: expires leases, purges runs, writes the counts.
//
// The engine promises nothing that the store does not. It only rejects earlier (limits) or replies faster (replays).
// Verbs may be called from any thread. A callback comes on a thread of the store, or before the verb returns.
// run_maintenance() runs on one executor and ends when it is cancelled. The store must be closed, or all callbacks must
// have come, before the store is destroyed. The engine may be destroyed earlier.
#pragma once

#include <memory>

#include "base/clock.hpp"
#include "base/task.hpp"
#include "engine/outcome_cache.hpp"
#include "engine/progress.hpp"
#include "engine/suppressions.hpp"
#include "store/store.hpp"

namespace latchkey {

struct EngineSettings {
  // Memory limit of the outcome cache.
  std::size_t cache_bytes = 64 << 20;
  // Number of runs whose suppressed repeats are counted in memory between two writes.
  std::size_t suppressed_runs_max = 65'536;
  // Number of runs whose progress is in memory.
  std::size_t progress_runs_max = 10'000;
  // The time for which settled runs are stored.
  Retention retention;
  // The time of the first purge after the start, and between two purges.
  Duration purge_first = std::chrono::minutes{1};
  Duration purge_every = std::chrono::hours{1};
  // Number of runs that one transaction of maintenance may change.
  std::uint32_t slice = 500;
};

// The explanation of a repeat: the key's latest run, and the repeats that were suppressed because of it.
struct KeyAnswer {
  Run run;
  Duplicates suppressed;
};

class Engine final : public ClaimStore {
 public:
  Engine(Store& store, Clock& clock, EngineSettings settings);

  void claim(ClaimRequest request, Done<ClaimReply> done) override;
  void extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) override;
  void settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) override;
  void enqueue(std::vector<EnqueueRequest> requests, Done<std::vector<EnqueueReply>> done);
  void take(TakeRequest request, Done<std::vector<Taken>> done);
  void move(MoveRequest request, Done<MoveReply> done);

  Result<std::optional<KeyAnswer>> explain_key(const KeyName& name);
  // Stores the progress from an accepted heartbeat, in memory only.
  void note_progress(RunId run, Fence fence, Bytes text) { callbacks_->progress.note(run, fence, std::move(text)); }
  std::optional<Bytes> find_progress(const Run& run) const { return callbacks_->progress.find(run); }
  Store& store() { return store_; }
  // For metrics.
  std::uint64_t replays_from_memory() const { return callbacks_->cached.load(std::memory_order_relaxed); }

  // Sweeps at deadlines, purges at intervals, and writes suppressed repeats each second. The first of several errors in
  // a row is logged; the next round retries. On cancellation it writes the remaining counts and ends.
  Task<void> run_maintenance();

 private:
  // The state that callbacks use. A callback may come after the engine is destroyed.
  struct CallbackState {
    explicit CallbackState(const EngineSettings& settings)
        : outcomes(settings.cache_bytes),
          suppressions(settings.suppressed_runs_max),
          progress(settings.progress_runs_max) {}
    OutcomeCache outcomes;
    Suppressions suppressions;
    Progress progress;
    std::atomic<std::uint64_t> cached{0};
    std::atomic<unsigned> slices_writing{0};  // of suppressed repeats
    std::atomic<bool> fails_writing{false};
  };

  static void note(CallbackState& state, const ClaimReply& reply, std::string_view caller, Instant now);
  static void note_follow_ups(CallbackState& state, const Settled& settled, Instant now);
  Duration pause();
  Task<void> sweep_due();
  Task<void> purge_all();
  void write_suppressed();
  void write_slice(std::vector<DuplicateNote> notes);
  // Returns true without an error. Logs the first of several errors in a row.
  bool check(const char* what, const std::optional<Error>& error);

  Store& store_;
  Clock& clock_;
  EngineSettings settings_;
  std::shared_ptr<CallbackState> callbacks_;
  bool failing_ = false;
};

}  // namespace latchkey
