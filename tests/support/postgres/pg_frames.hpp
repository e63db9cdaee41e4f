// PgFrames: splits one direction of a PostgreSQL connection into messages, incrementally.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace latchkey {

struct PgFrame {
  char type = 0;          // 0 for the client's first message, which has no type
  std::string_view head;  // the first bytes, up to PgFrames::kHead
  std::size_t begin = 0;  // the offset in the current bytes; 0 also for a message that began earlier
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

// The requests of a client on one connection. The server replies only after a sync or a flush, so `flights` is the
// highest possible number of waits.
struct PgTraffic {
  std::uint64_t statements = 0;
  std::uint64_t flights = 0;  // requests up to a sync or a flush, and simple queries
  std::uint64_t commits = 0;
};

// True if the client's message contains a COMMIT: as a simple query, or as a statement to parse.
inline bool requests_commit(const PgFrame& frame) {
  std::string_view text = frame.head;
  if (frame.type == 'P') {
    text.remove_prefix(std::min(text.size(), text.find('\0') + 1));  // skip the statement's name
  } else if (frame.type != 'Q') {
    return false;
  }
  return text.starts_with("COMMIT");
}

inline void count(PgTraffic& traffic, const PgFrame& frame) {
  traffic.statements += frame.type == 'E' || frame.type == 'Q';
  traffic.flights += frame.type == 'S' || frame.type == 'H' || frame.type == 'Q';
  traffic.commits += requests_commit(frame);
}

// True if the server's message confirms a COMMIT.
inline bool confirms_commit(const PgFrame& frame) { return frame.type == 'C' && frame.head.starts_with("COMMIT"); }

}  // namespace latchkey
