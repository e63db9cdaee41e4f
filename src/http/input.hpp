// Input: the receive buffer of a connection. Bytes are appended at the end and consumed at the front.
//
// Views of bytes() are valid until make_room() or clear(). One thread only.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace latchkey::http {

class Input {
 public:
  std::string_view bytes() const { return {buffer_.get() + begin_, end_ - begin_}; }
  bool is_empty() const { return begin_ == end_; }
  // The bytes received since the last note_scanned(). A search for a line end needs only these.
  std::string_view unscanned() const { return bytes().substr(scanned_); }
  void note_scanned() { scanned_ = end_ - begin_; }

  void consume(std::size_t count) {
    begin_ += count;
    scanned_ = 0;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  // Drops all bytes after the first `count`.
  void cut(std::size_t count) {
    end_ = begin_ + count;
    scanned_ = std::min(scanned_, count);
  }

  // The free space at the end. May be empty.
  std::span<char> room() { return {buffer_.get() + end_, capacity_ - end_}; }
  void note_received(std::size_t count) { end_ += count; }
  // Moves the bytes to the front or to a larger buffer, so that room() has at least `wanted` bytes.
  void make_room(std::size_t wanted) {
    if (capacity_ - end_ >= wanted) return;
    const std::size_t used = end_ - begin_;
    if (capacity_ - used >= wanted) {
      std::memmove(buffer_.get(), buffer_.get() + begin_, used);
    } else {
      std::size_t capacity = capacity_ == 0 ? kInitialBytes : capacity_;
      while (capacity - used < wanted) capacity *= 2;
      auto larger = std::make_unique_for_overwrite<char[]>(capacity);
      if (used != 0) std::memcpy(larger.get(), buffer_.get() + begin_, used);
      buffer_ = std::move(larger);
      capacity_ = capacity;
    }
    begin_ = 0;
    end_ = used;
  }
  // Drops all bytes, and frees the buffer when it has grown.
  void clear() {
    begin_ = end_ = scanned_ = 0;
    if (capacity_ > kInitialBytes) buffer_.reset(), capacity_ = 0;
  }

 private:
  static constexpr std::size_t kInitialBytes = 4 * 1024;

  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t scanned_ = 0;
};

}  // namespace latchkey::http
