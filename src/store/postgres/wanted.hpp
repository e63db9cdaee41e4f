// Wanted: a sorted list without duplicates, of rows to read. Inserting in order is cheap, and runs of a batch mostly
// are in order.
#pragma once

#include <algorithm>
#include <vector>

namespace latchkey::pg {

template <class T>
class Wanted {
 public:
  void insert(const T& value) {
    if (!values_.empty() && !(values_.back() < value)) is_sorted_ = false;
    values_.push_back(value);
  }
  void insert(const Wanted& others) {
    for (const T& value : others.values_) insert(value);
  }
  bool empty() const { return values_.empty(); }
  const std::vector<T>& sorted() {
    if (!is_sorted_) {
      std::ranges::sort(values_);
      const auto [from, to] = std::ranges::unique(values_);
      values_.erase(from, to);
      is_sorted_ = true;
    }
    return values_;
  }

 private:
  std::vector<T> values_;
  bool is_sorted_ = true;
};

}  // namespace latchkey::pg
