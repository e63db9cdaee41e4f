// BodyStream: the body of one response, written in pieces by a producer on any thread.
//
// Reply::start() opens a stream. HTTP/1.1 clients receive chunked transfer encoding. For HTTP/1.0 clients the end of
// the connection is the end of the body. finish() ends the body. A stream that is destroyed before finish() resets the
// connection, so that the client cannot mistake the part for the whole.
//
// Back-pressure: write() accepts all bytes, and reports `full` when the buffer has reached its high-water mark
// (Settings::stream_high_water_bytes). The producer then waits for on_drain. A producer that ignores this reaches
// Settings::stream_bytes_max, where the server resets the connection. A client that does not read is disconnected after
// Settings::write_deadline.
//
// One thread at a time may use a BodyStream.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace latchkey::http {

class StreamBuffer;

enum class WriteState {
  ready,   // the producer may write more
  full,    // the bytes are accepted; on_drain follows when most of the buffer has been sent
  closed,  // the bytes are dropped: the client does not receive any more
};

// Callbacks to the producer, on a thread of the server. They must not block or throw. One may still be running while
// another thread destroys the stream, so a callback owns the data that it uses. No callback begins after finish().
struct StreamEvents {
  std::function<void()> on_drain;   // the buffer has fallen to half of its high-water mark after `full`
  std::function<void()> on_closed;  // no more bytes are sent: the client disconnected, the request was HEAD, or the
                                    // server stops; at most once
};

// The treatment of an open stream when the server stops.
enum class AtStop {
  complete,  // the producer may finish until Settings::stop_deadline; for bodies that have an end
  end,       // the server ends the body at once and calls on_closed; for endless bodies, such as events
};

// Move-only.
class BodyStream {
 public:
  explicit BodyStream(std::shared_ptr<StreamBuffer> buffer) : buffer_(std::move(buffer)) {}
  BodyStream(BodyStream&& other) noexcept = default;
  BodyStream& operator=(BodyStream&& other) noexcept;
  ~BodyStream();

  // Must not be called after finish().
  WriteState write(std::string bytes);
  // Ends the body after the bytes written so far. May be called once.
  void finish();
  // True once write() would return `closed`. After the server is destroyed, this is the only sign: no callback follows.
  bool is_closed() const;

 private:
  void abandon();

  std::shared_ptr<StreamBuffer> buffer_;  // null once finished or moved from
};

}  // namespace latchkey::http
