// LastBytes: the last bytes of a stream, and the length of the stream. Not safe from two threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace latchkey {

class LastBytes {
 public:
  explicit LastBytes(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  void add(std::string_view bytes) {
    total_ += bytes.size();
    if (bytes.size() > bytes_max_) bytes.remove_prefix(bytes.size() - bytes_max_);
    bytes_.append(bytes);
    // Erased rarely, so that each byte is moved about once.
    if (bytes_.size() > 2 * bytes_max_) bytes_.erase(0, bytes_.size() - bytes_max_);
  }

  std::string_view bytes() const {
    const std::string_view all = bytes_;
    return all.size() > bytes_max_ ? all.substr(all.size() - bytes_max_) : all;
  }
  std::uint64_t total() const { return total_; }
  bool truncated() const { return total_ > bytes_max_; }

 private:
  std::size_t bytes_max_;
  std::string bytes_;
  std::uint64_t total_ = 0;
};

}  // namespace latchkey
