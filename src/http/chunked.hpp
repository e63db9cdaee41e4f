// Reads a body sent with `Transfer-Encoding: chunked`, from pieces of any size.
//
// Strict: sizes are hexadecimal digits only, every line ends with CR LF, nothing but CR LF follows a chunk. Extensions
// and trailers are bounded and dropped. A fault is BAD_REQUEST; more bytes than `body_bytes_max` is BODY_TOO_LARGE,
// said as soon as a chunk announces them. After a fault nothing more may be fed. Not safe from two threads.
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

  // Appends what it decodes to `body`; says how many bytes it used: all of them unless the body ended within them.
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

  // The fault in this byte of a line, or nullptr.
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
