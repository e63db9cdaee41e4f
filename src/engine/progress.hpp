// Progress: the progress that owners reported with their latest heartbeat, in this server's memory only. Other servers
// do not show it, and a restart loses it until the next heartbeat. A claim does not use it; a settle costs one atomic
// load while no run has progress. Bounded: the entry without a report for the longest time is evicted. Safe from any
// thread.
#pragma once

#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "model/run.hpp"

namespace latchkey {

class Progress {
 public:
  explicit Progress(std::size_t runs_max) : runs_max_(runs_max) {}

  // Ignores a report from an older owner.
  void note(RunId run, Fence fence, Bytes text);
  void forget(RunId run);
  // None unless the run is running and its owner has reported progress.
  std::optional<Bytes> find(const Run& run) const;

 private:
  struct Entry {
    RunId run;
    Fence fence{};
    Bytes text;
  };

  const std::size_t runs_max_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // oldest report first
  std::unordered_map<RunId, std::list<Entry>::iterator> by_run_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace latchkey
