// Progress: what owners said of their tries with their last heartbeat, in this server's memory only: others never show
// it, and a restart forgets it until the next one. Never on the way of a claim; a settle costs one atomic load while
// nobody tells of progress. Bounded: whoever was silent the longest is forgotten first. Safe from any thread.
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

  // An older owner's is passed over.
  void note(RunId run, Fence fence, Bytes text);
  void forget(RunId run);
  // None unless the run is running under the owner that said it.
  std::optional<Bytes> find(const Run& run) const;

 private:
  struct Entry {
    RunId run;
    Fence fence{};
    Bytes text;
  };

  const std::size_t runs_max_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // silent the longest first
  std::unordered_map<RunId, std::list<Entry>::iterator> by_run_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace latchkey
