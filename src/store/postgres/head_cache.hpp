// HeadCache: the heads of open runs that this server inserted or read recently. A head never changes, so an entry stays
// valid as long as its run exists. The cache cannot know whether it does: a caller must have read the run's block or
// state. For one thread.
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
  // Evicts the oldest entries when the cache is full.
  void add(const std::shared_ptr<const RunHead>& head) {
    const Seq seq = seq_in(head->id);
    if (!heads_.try_emplace(seq, head).second) return;
    order_.push_back(seq);
    bytes_ += size_of(*head);
    for (; bytes_ > bytes_max_ && !order_.empty(); order_.pop_front()) drop(order_.front());
  }
  // Called for settled runs: they are rarely read again and would displace open ones.
  void forget(Seq seq) {
    drop(seq);
    while (!order_.empty() && !heads_.contains(order_.front())) order_.pop_front();
    // Behind an entry that stays, order_ may fill with removed ones: drop those when they are the majority.
    if (order_.size() > 2 * heads_.size() + kOrderSlack)
      std::erase_if(order_, [this](Seq one) { return !heads_.contains(one); });
  }
  void clear() {
    heads_.clear();
    order_.clear();
    bytes_ = 0;
  }
  std::size_t order_size() const { return order_.size(); }

 private:
  static constexpr std::size_t kOrderSlack = 1000;

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
  // In the order of insertion, including some removed entries. A run that was added again may be listed twice; it is
  // evicted with the first.
  std::deque<Seq> order_;
};

}  // namespace latchkey::pg
