#include "http/chunked.hpp"

#include <algorithm>

#include "http/chars.hpp"
#include "http/scan.hpp"

namespace latchkey::http {
namespace {

constexpr std::size_t kDigitsMax = 15;              // fits into 64 bits, with four bits to spare
constexpr std::size_t kDroppedBytesMax = 4 * 1024;  // extensions and trailers of one body

}  // namespace

Result<std::size_t> ChunkedDecoder::feed(std::string_view bytes, std::string& body) {
  std::size_t at = 0;
  while (at < bytes.size() && state_ != State::done) {
    if (state_ == State::data) {
      const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(chunk_left_, bytes.size() - at));
      body.append(bytes, at, piece);
      at += piece;
      chunk_left_ -= piece;
      if (chunk_left_ == 0) state_ = State::data_cr;
      continue;
    }
    const State before = state_;
    if (const char* fault = take(bytes[at++])) return fail(Code::BAD_REQUEST, fault);
    if (before == State::size_lf) {
      if (chunk_left_ > body_bytes_max_ - body_bytes_) return fail(Code::BODY_TOO_LARGE, "the chunks exceed the limit");
      body_bytes_ += chunk_left_;
    }
  }
  return at;
}

const char* ChunkedDecoder::take(char c) {
  switch (state_) {
    case State::size:
      return take_size(c);
    case State::extension:
      if (c == '\r') return expect(c, '\r', State::size_lf);
      if (is_control(c)) return "a chunk extension holds a control character";
      return ++dropped_bytes_ > kDroppedBytesMax ? "the chunk extensions are too long" : nullptr;
    case State::size_lf:
      return expect(c, '\n', chunk_left_ == 0 ? State::trailer_start : State::data);
    case State::data_cr:
      return expect(c, '\r', State::data_lf);
    case State::data_lf:
      digits_ = 0;
      return expect(c, '\n', State::size);
    case State::trailer_start:
      if (c == '\r') return expect(c, '\r', State::last_lf);
      state_ = State::trailer;
      return is_in(kTokenChars, c) ? take_trailer(c) : "a trailer's name is not a token";
    case State::trailer:
      return take_trailer(c);
    case State::trailer_lf:
      return expect(c, '\n', State::trailer_start);
    case State::last_lf:
      return expect(c, '\n', State::done);
    case State::data:
    case State::done:
      break;
  }
  return "the body has ended";
}

const char* ChunkedDecoder::take_size(char c) {
  if (const int digit = hex_value(c); digit >= 0) {
    if (digits_ == 0) chunk_left_ = 0;
    if (++digits_ > kDigitsMax) return "a chunk size is too long";
    chunk_left_ = chunk_left_ * 16 + static_cast<unsigned>(digit);
    return nullptr;
  }
  if (digits_ == 0) return "a chunk size is missing";
  if (c == ';') {
    state_ = State::extension;
    return nullptr;
  }
  return expect(c, '\r', State::size_lf);
}

const char* ChunkedDecoder::take_trailer(char c) {
  if (c == '\r') return expect(c, '\r', State::trailer_lf);
  if (is_control(c)) return "a trailer holds a control character";
  return ++dropped_bytes_ > kDroppedBytesMax ? "the trailers are too long" : nullptr;
}

const char* ChunkedDecoder::expect(char c, char wanted, State next) {
  if (c != wanted) return "the chunks are not framed correctly";
  state_ = next;
  return nullptr;
}

}  // namespace latchkey::http
