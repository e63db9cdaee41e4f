// HeadCache: heads of runs that were made or taken here lately. A head never changes, so what is kept is true as long
// as the run exists: whoever uses one must know that from elsewhere (its block, its state). One thread.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>

#include "store/postgres/places.hpp"

namespace latchkey::pg {

class HeadCache {
 public:
  explicit HeadCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  std::shared_ptr<const RunHead> find(Seq seq) const {
    const auto at = heads_.find(seq);
    return at == heads_.end() ? nullptr : at->second;
  }
  void add(const std::shared_ptr<const RunHead>& head) {
    const Seq seq = seq_in(head->id);
    if (!heads_.try_emplace(seq, head).second) return;
    order_.emplace_back(seq, size_of(*head));
    bytes_ += order_.back().second;
    for (; bytes_ > bytes_max_ && !order_.empty(); order_.pop_front()) {
      bytes_ -= order_.front().second;
      heads_.erase(order_.front().first);
    }
  }
  void clear() {
    heads_.clear();
    order_.clear();
    bytes_ = 0;
  }
  // Its place in the order stays until its turn comes.
  void forget(Seq seq) { heads_.erase(seq); }

 private:
  static std::size_t size_of(const RunHead& head) {
    return sizeof(RunHead) + 128 + head.key.size() + head.input.size() + head.caller.size();
  }

  const std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::unordered_map<Seq, std::shared_ptr<const RunHead>> heads_;
  std::deque<std::pair<Seq, std::size_t>> order_;
};

}  // namespace latchkey::pg
