// Engine: the front of a store for the API. Checks requests against the limits, answers replays from memory, counts
// what was suppressed, and tends the store: ends leases, purges, writes the counts behind.
//
// It guarantees nothing that the store does not; it only says no earlier (limits) or yes faster (replays).
// Verbs may be called from any thread; callbacks as the store's, or before the verb returns. tend() runs on one
// executor and ends when it is cancelled. Close the store, or let its callbacks come, before the engine's store
// reference dies; the engine itself may go earlier.
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
  // What the replay cache may hold.
  std::size_t cache_bytes = 64 << 20;
  // How many runs' suppressed duplicates are remembered between two writes.
  std::size_t suppressed_runs_max = 65'536;
  // How many runs' progress is remembered.
  std::size_t progress_runs_max = 10'000;
  // How long settled runs are kept.
  Retention retention;
  // When purging begins after the start, and how often it is done.
  Duration purge_first = std::chrono::minutes{1};
  Duration purge_every = std::chrono::hours{1};
  // How many runs one transaction of tending may touch.
  std::uint32_t slice = 500;
};

// Why did it not run? The key's latest run and what was suppressed because of it.
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
  // What an owner says of its try, once its heartbeat was accepted; in memory only.
  void note_progress(RunId run, Fence fence, Bytes text) { callbacks_->progress.note(run, fence, std::move(text)); }
  std::optional<Bytes> find_progress(const Run& run) const { return callbacks_->progress.find(run); }
  Store& store() { return store_; }
  // For metrics.
  std::uint64_t replays_from_memory() const { return callbacks_->cached.load(std::memory_order_relaxed); }

  // Sweeps when something is due, purges now and then, writes suppressed duplicates each second. Errors are logged, the
  // first of a row; the next turn tries again. On cancellation it writes what is left and ends.
  Task<void> run_maintenance();

 private:
  // What callbacks need; they may come when the engine is gone.
  struct CallbackState {
    explicit CallbackState(const EngineSettings& settings)
        : outcomes(settings.cache_bytes),
          suppressions(settings.suppressed_runs_max),
          progress(settings.progress_runs_max) {}
    OutcomeCache outcomes;
    Suppressions suppressions;
    Progress progress;
    std::atomic<std::uint64_t> cached{0};
    std::atomic<unsigned> slices_writing{0};  // of suppressed duplicates
    std::atomic<bool> fails_writing{false};
  };

  static void note(CallbackState& state, const ClaimReply& reply, std::string_view caller, Instant now);
  static void note_follow_ups(CallbackState& state, const Settled& settled, Instant now);
  Duration pause();
  Task<void> sweep_due();
  Task<void> purge_all();
  void write_suppressed();
  void write_slice(std::vector<DuplicateNote> notes);
  // Whether it went well; logs the first error of a row.
  bool check(const char* what, const std::optional<Error>& error);

  Store& store_;
  Clock& clock_;
  EngineSettings settings_;
  std::shared_ptr<CallbackState> callbacks_;
  bool failing_ = false;
};

}  // namespace latchkey
