// PgFrames: one direction of a PostgreSQL connection, cut into its messages as the bytes go by.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace latchkey {

struct PgFrame {
  char type = 0;          // 0: the client's first message, which has none
  std::string_view head;  // its first bytes, up to PgFrames::kHead
  std::size_t begin = 0;  // where it starts in the bytes that were fed; 0 also when it began before them
};

class PgFrames {
 public:
  static constexpr std::size_t kHead = 64;
  explicit PgFrames(char first_type) : type_(first_type), has_type_(first_type == 0) {}

  // Calls see(PgFrame) for each message that ends within `bytes`.
  template <class See>
  void feed(std::string_view bytes, See see) {
    for (std::size_t at = 0; at < bytes.size();) {
      if (!has_type_) {
        type_ = bytes[at];
        has_type_ = true;
        begin_ = at++;
      } else if (length_bytes_ < 4) {
        if (length_bytes_ == 0 && type_ == 0) begin_ = at;
        length_ = length_ << 8 | static_cast<unsigned char>(bytes[at++]);
        if (++length_bytes_ == 4) left_ = length_ - 4;
      } else {
        const std::size_t size = std::min<std::size_t>(left_, bytes.size() - at);
        head_.append(bytes.substr(at, std::min(size, kHead - head_.size())));
        left_ -= static_cast<std::uint32_t>(size);
        at += size;
      }
      if (length_bytes_ == 4 && left_ == 0) {
        see(PgFrame{type_, head_, begin_});
        has_type_ = false;
        length_bytes_ = 0;
        length_ = 0;
        head_.clear();
        type_ = 0;
      }
    }
    begin_ = 0;
  }

 private:
  char type_;
  bool has_type_;
  unsigned length_bytes_ = 0;
  std::uint32_t length_ = 0;
  std::uint32_t left_ = 0;
  std::size_t begin_ = 0;
  std::string head_;
};

// What a client has asked for on one connection. Nothing is answered before it says sync or flush: so often, at most,
// it waited.
struct PgTraffic {
  std::uint64_t statements = 0;
  std::uint64_t flights = 0;  // ended by a sync or a flush, or simple queries
  std::uint64_t commits = 0;
};

// Whether the client's message asks for a COMMIT: a simple query, or a statement that is parsed.
inline bool asks_commit(const PgFrame& frame) {
  std::string_view text = frame.head;
  if (frame.type == 'P') {
    text.remove_prefix(std::min(text.size(), text.find('\0') + 1));  // behind the statement's name
  } else if (frame.type != 'Q') {
    return false;
  }
  return text.starts_with("COMMIT");
}

inline void count(PgTraffic& traffic, const PgFrame& frame) {
  traffic.statements += frame.type == 'E' || frame.type == 'Q';
  traffic.flights += frame.type == 'S' || frame.type == 'H' || frame.type == 'Q';
  traffic.commits += asks_commit(frame);
}

// Whether the server's message says that it has committed.
inline bool answers_commit(const PgFrame& frame) { return frame.type == 'C' && frame.head.starts_with("COMMIT"); }

}  // namespace latchkey
