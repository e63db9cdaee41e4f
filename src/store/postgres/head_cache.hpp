// HeadCache: heads of runs that were made or read here lately, but those that were settled since. A head never changes,
// so what is kept is true as long as the run exists: whoever uses one must know that from elsewhere (its block, its
// state). One thread.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>

#include "store/postgres/run_layout.hpp"

namespace latchkey::pg {

class HeadCache {
 public:
  explicit HeadCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  std::shared_ptr<const RunHead> find(Seq seq) const {
    const auto at = heads_.find(seq);
    return at == heads_.end() ? nullptr : at->second;
  }
  // The oldest go when there is no room.
  void add(const std::shared_ptr<const RunHead>& head) {
    const Seq seq = seq_in(head->id);
    if (!heads_.try_emplace(seq, head).second) return;
    order_.push_back(seq);
    bytes_ += size_of(*head);
    for (; bytes_ > bytes_max_ && !order_.empty(); order_.pop_front()) drop(order_.front());
  }
  // What was settled is hardly asked for again: kept, it would be in the way of what is.
  void forget(Seq seq) {
    drop(seq);
    while (!order_.empty() && !heads_.contains(order_.front())) order_.pop_front();
    // Behind one that stays, places of those that went are given up when they are most of them.
    if (order_.size() > 2 * heads_.size() + kPlacesLeast)
      std::erase_if(order_, [this](Seq one) { return !heads_.contains(one); });
  }
  void clear() {
    heads_.clear();
    order_.clear();
    bytes_ = 0;
  }
  std::size_t places() const { return order_.size(); }

 private:
  static constexpr std::size_t kPlacesLeast = 1000;

  static std::size_t size_of(const RunHead& head) {
    return sizeof(RunHead) + 128 + head.key.size() + head.input.size() + head.caller.size();
  }
  void drop(Seq seq) {
    const auto at = heads_.find(seq);
    if (at == heads_.end()) return;
    bytes_ -= size_of(*at->second);
    heads_.erase(at);
  }

  const std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::unordered_map<Seq, std::shared_ptr<const RunHead>> heads_;
  // Of their coming; also of some that are gone. One that came again may have its first place, too, and goes with that.
  std::deque<Seq> order_;
};

}  // namespace latchkey::pg
