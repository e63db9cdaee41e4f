// ChunkedDecoder: decodes a body sent with `Transfer-Encoding: chunked`, from pieces of any size.
//
// The decoder is strict: a size consists of hexadecimal digits, every line ends with CR LF, and a chunk is followed by
// CR LF alone. Extensions and trailers are bounded in size and ignored. A malformed body fails with BAD_REQUEST. A body
// larger than `body_bytes_max` fails with BODY_TOO_LARGE as soon as a chunk's size exceeds the limit. After a failure
// the decoder must not be fed again. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace latchkey::http {

class ChunkedDecoder {
 public:
  explicit ChunkedDecoder(std::size_t body_bytes_max = 0) : body_bytes_max_(body_bytes_max) {}

  // Appends the decoded bytes to `body` and returns how many bytes of `bytes` it used. It uses all of them, unless the
  // body ends before.
  Result<std::size_t> feed(std::string_view bytes, std::string& body);
  bool is_done() const { return state_ == State::done; }

 private:
  //   size ─► extension ─► size_lf ─► data ─► data_cr ─► data_lf ─► size
  //                           └─(0)─► trailer_start ─► trailer ─► trailer_lf ─► trailer_start
  //                                         └─(CR)─► last_lf ─► done
  enum class State {
    size,
    extension,
    size_lf,
    data,
    data_cr,
    data_lf,
    trailer_start,
    trailer,
    trailer_lf,
    last_lf,
    done
  };

  // Reads one byte of the framing. Returns a description of the fault, or nullptr.
  const char* take(char c);
  const char* take_size(char c);
  const char* take_trailer(char c);
  const char* expect(char c, char wanted, State next);

  State state_ = State::size;
  std::size_t body_bytes_max_;
  std::uint64_t chunk_left_ = 0;
  std::size_t body_bytes_ = 0;
  std::size_t digits_ = 0;
  std::size_t dropped_bytes_ = 0;
};

}  // namespace latchkey::http
