// Streamed response bodies: framing, back-pressure, disconnects and shutdown.
#include <gmock/gmock.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include "http/chunked.hpp"
#include "http/event_stream.hpp"
#include "http/http_fixture.hpp"

namespace latchkey::http {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

// Counts calls of a callback; a test waits for the next one.
class Signal {
 public:
  void notify() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ > 0; });
    --count_;
  }
  int count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

constexpr std::size_t kMoreThanTheKernelBuffers = 32 * 1024 * 1024;
const std::string kGetStream = "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n";

// GET /stream opens a stream and passes it to the test; every other target is echoed.
class HttpStream : public HttpTest {
 protected:
  ~HttpStream() override { server_.reset(); }

  void start_streams(Settings settings = {}, AtStop at_stop = AtStop::complete) {
    start(
        [this, at_stop](Request& request, Reply reply) {
          if (request.path != "/stream") return echo(request, std::move(reply));
          opened_.set_value(reply.start({.content_type = "text/plain"}, events(), at_stop));
        },
        std::move(settings));
  }
  StreamEvents events() {
    return {.on_drain = [this] { drained_.notify(); }, .on_closed = [this] { closed_.notify(); }};
  }
  BodyStream opened() {
    BodyStream stream = opened_.get_future().get();
    opened_ = {};
    return stream;
  }
  // Writes until the buffer is full. Returns the number of bytes.
  static std::size_t fill(BodyStream& stream) {
    std::size_t bytes = 0;
    WriteState state = WriteState::ready;
    while (state == WriteState::ready) {
      state = stream.write(std::string(64 * 1024, 'x'));
      bytes += 64 * 1024;
    }
    EXPECT_EQ(state, WriteState::full);
    return bytes;
  }

  std::promise<BodyStream> opened_;
  Signal drained_, closed_;
};

// Decodes chunked bytes up to the last chunk. Empty when the last chunk is missing.
std::string decode_chunks(std::string_view bytes) {
  ChunkedDecoder decoder(1024 * 1024 * 1024);
  std::string body;
  EXPECT_TRUE(decoder.feed(bytes, body));
  return decoder.is_done() ? body : "";
}

TEST_F(HttpStream, SendsChunks) {
  start_streams();
  RawClient client(port());
  client.send(kGetStream);
  BodyStream stream = opened();
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(head, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(head, HasSubstr("Content-Type: text/plain\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("Content-Length")));
  EXPECT_EQ(stream.write("hello"), WriteState::ready);
  EXPECT_EQ(client.read_until("\r\nhello\r\n"), "5\r\nhello\r\n");
  EXPECT_EQ(stream.write(""), WriteState::ready) << "no chunk, which would end the body";
  EXPECT_EQ(stream.write(", you"), WriteState::ready);
  EXPECT_EQ(client.read_until("you\r\n"), "5\r\n, you\r\n");
  stream.finish();
  EXPECT_EQ(client.read_until("\r\n\r\n"), "0\r\n\r\n");
  client.send(kGet);
  EXPECT_EQ(body_of(client.read_response()), "GET / ") << "the connection is persistent";
  EXPECT_EQ(closed_.count(), 0) << "a finished stream is not reported";
}

TEST_F(HttpStream, FinishesWithinTheHandler) {
  start([](Request& request, Reply reply) {
    if (request.path != "/stream") return echo(request, std::move(reply));
    BodyStream stream = reply.start({.status = 201, .body = "first"});
    stream.write(" second");
    stream.finish();
  });
  RawClient client(port());
  client.send(kGet + kGetStream + kGetStream + kGet);
  EXPECT_EQ(body_of(client.read_response()), "GET / ");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(status_of(client.read_until("\r\n\r\n")), 201);
    EXPECT_EQ(decode_chunks(client.read_until("0\r\n\r\n")), "first second");
  }
  EXPECT_EQ(body_of(client.read_response()), "GET / ");
}

TEST_F(HttpStream, HoldsPipelinedRequestsUntilItsEnd) {
  start_streams();
  RawClient client(port());
  client.send(kGetStream + "POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\no");
  BodyStream stream = opened();
  stream.write("x");
  client.read_until("x\r\n");
  client.send("k" + kGet);
  stream.write("y");
  EXPECT_EQ(client.read_until("y\r\n"), "1\r\ny\r\n");
  stream.finish();
  EXPECT_EQ(client.read_until("\r\n\r\n"), "0\r\n\r\n");
  EXPECT_EQ(body_of(client.read_response()), "POST /early ok");
  EXPECT_EQ(body_of(client.read_response()), "GET / ");
}

TEST_F(HttpStream, PipelinedBytesBeyondTheLimitWaitInTheKernel) {
  start_streams();
  RawClient client(port());
  const std::string body(1024 * 1024, 'b');
  client.send(kGetStream);
  BodyStream stream = opened();
  client.read_until("\r\n\r\n");
  std::thread sender([&] {
    client.send("POST /large HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                body);
  });
  stream.write("x");
  EXPECT_EQ(client.read_until("x\r\n"), "1\r\nx\r\n");
  stream.finish();
  client.read_until("0\r\n\r\n");
  EXPECT_EQ(body_of(client.read_response()), "POST /large " + body);
  sender.join();
}

TEST_F(HttpStream, SendsEvents) {
  start([&](Request&, Reply reply) { opened_.set_value(reply.start(event_stream_head(), events(), AtStop::end)); });
  RawClient client(port());
  client.send(kGet);
  BodyStream stream = opened();
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("Content-Type: text/event-stream\r\n"));
  stream.write(format_event({.id = "1", .event = "run", .data = "{}"}));
  EXPECT_THAT(client.read_until("\n\n\r\n"), HasSubstr("id: 1\nevent: run\ndata: {}\n\n"));
  stream.write(format_comment("keep-alive"));
  EXPECT_THAT(client.read_until("\n\n\r\n"), HasSubstr(": keep-alive\n\n"));
}

TEST_F(HttpStream, RespondsToHeadWithTheHeadAlone) {
  start_streams();
  RawClient client(port());
  client.send("HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  BodyStream stream = opened();
  closed_.wait();
  EXPECT_EQ(stream.write("body"), WriteState::closed);
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked\r\n"));
  client.send(kGet);
  EXPECT_EQ(status_of(client.read_response()), 200) << "no body came between";
}

TEST_F(HttpStream, MayAbandonAHeadRequest) {
  start([](Request& request, Reply reply) {
    if (request.method == "GET") return echo(request, std::move(reply));
    const BodyStream abandoned = reply.start({.status = 204});
  });
  RawClient client(port());
  client.send("HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n" + kGet);
  EXPECT_EQ(status_of(client.read_until("\r\n\r\n")), 204);
  EXPECT_EQ(body_of(client.read_response()), "GET / ");
}

TEST_F(HttpStream, EndsWithTheConnectionInHttp10) {
  start_streams();
  RawClient client(port());
  client.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  BodyStream stream = opened();
  stream.write("hello");
  stream.write(", you");
  stream.finish();
  const std::string all = client.read_all();
  EXPECT_THAT(all, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(all, Not(HasSubstr("Transfer-Encoding")));
  EXPECT_EQ(body_of(all), "hello, you");
  EXPECT_FALSE(client.was_reset());
}

TEST_F(HttpStream, UnfinishedStreamResetsTheConnection) {
  start_streams();
  for (const char* version : {"1.0", "1.1"}) {
    RawClient client(port());
    client.send(std::string("GET /stream HTTP/") + version + "\r\nHost: a\r\n\r\n");
    {
      BodyStream stream = opened();
      stream.write("half");
      client.read_until("half");
    }
    EXPECT_THAT(client.read_all(), Not(HasSubstr("0\r\n\r\n"))) << version;
    EXPECT_TRUE(client.was_reset()) << version;
  }
  EXPECT_EQ(closed_.count(), 0) << "the producer did it";
}

TEST_F(HttpStream, AppliesBackPressure) {
  start_streams();
  RawClient client(port());
  client.send(kGetStream);
  BodyStream stream = opened();
  std::size_t bytes = fill(stream);
  auto reading = std::async(std::launch::async, [&] { return client.read_until("0\r\n\r\n"); });
  for (int i = 0; i < 20; ++i) {
    drained_.wait();
    bytes += fill(stream);
  }
  drained_.wait();
  stream.finish();
  const std::string all = reading.get();
  EXPECT_EQ(decode_chunks(all.substr(all.find("\r\n\r\n") + 4)).size(), bytes);
}

TEST_F(HttpStream, DisconnectsAClientThatDoesNotRead) {
  Settings settings = impatient();
  settings.write_deadline = 50ms;
  settings.stream_bytes_max = 2 * kMoreThanTheKernelBuffers;
  start_streams(settings);
  RawClient client(port());
  client.send(kGetStream);
  BodyStream stream = opened();
  EXPECT_EQ(stream.write(std::string(kMoreThanTheKernelBuffers, 'x')), WriteState::full);
  closed_.wait();
  EXPECT_EQ(stream.write("more"), WriteState::closed);
  EXPECT_TRUE(stream.is_closed());
  EXPECT_THAT(client.read_all(), Not(HasSubstr("0\r\n\r\n")));
}

TEST_F(HttpStream, DisconnectsAboveTheBufferLimit) {
  start_streams({.stream_high_water_bytes = 64 * 1024, .stream_bytes_max = 256 * 1024});
  RawClient client(port());
  client.send(kGetStream);
  BodyStream stream = opened();
  while (stream.write(std::string(64 * 1024, 'x')) != WriteState::closed) {
  }
  closed_.wait();
  EXPECT_THAT(client.read_all(), Not(HasSubstr("0\r\n\r\n")));
  EXPECT_TRUE(client.was_reset());
}

TEST_F(HttpStream, ReportsAClientThatDisconnects) {
  start_streams();
  for (const bool is_reset : {false, true}) {
    RawClient client(port());
    client.send(kGetStream);
    BodyStream stream = opened();
    client.read_until("\r\n\r\n");
    if (is_reset)
      client.abort();
    else
      client.close();
    closed_.wait();
    EXPECT_EQ(stream.write("more"), WriteState::closed);
  }
}

TEST_F(HttpStream, CompletesForAClientThatEndsSending) {
  start_streams({.stream_bytes_max = 2 * kMoreThanTheKernelBuffers});
  RawClient client(port());
  client.send(kGetStream);
  BodyStream stream = opened();
  client.read_until("\r\n\r\n");
  stream.write(std::string(kMoreThanTheKernelBuffers, 'x'));
  stream.finish();
  client.end_sending();
  EXPECT_EQ(decode_chunks(client.read_until("0\r\n\r\n")).size(), kMoreThanTheKernelBuffers);
}

TEST_F(HttpStream, HasNoDeadlineWhileItIsIdle) {
  Settings settings = impatient();
  settings.threads = 1;
  settings.write_deadline = 50ms;
  start_streams(settings);
  RawClient client(port());
  client.send(kGetStream);
  BodyStream stream = opened();
  client.read_until("\r\n\r\n");
  // This connection opens later and is closed by its deadline, so every deadline of the stream would have passed.
  RawClient witness(port());
  witness.send(kGet);
  EXPECT_EQ(body_of(witness.read_all()), "GET / ");
  stream.write("late");
  stream.finish();
  EXPECT_EQ(client.read_until("\r\n\r\n"), "4\r\nlate\r\n0\r\n\r\n");
}

TEST_F(HttpStream, DoesNotCountAsRequestInFlight) {
  start_streams({.threads = 1, .in_flight_max = 1});
  RawClient client(port()), other(port());
  client.send(kGetStream);
  BodyStream stream = opened();
  client.read_until("\r\n\r\n");
  other.send(kGet);
  EXPECT_EQ(status_of(other.read_response()), 200);
  stream.finish();
}

TEST_F(HttpStream, ServerThatStopsEndsEventStreams) {
  start_streams({.threads = 1}, AtStop::end);
  RawClient client(port());
  client.send(kGetStream);
  BodyStream stream = opened();
  stream.write("x");
  client.read_until("x\r\n");
  std::thread stopping([&] { server_->stop(); });
  closed_.wait();
  EXPECT_EQ(stream.write("more"), WriteState::closed);
  EXPECT_EQ(client.read_all(), "0\r\n\r\n");
  EXPECT_FALSE(client.was_reset());
  client.close();
  stopping.join();
}

TEST_F(HttpStream, ServerThatStopsWaitsForBodies) {
  start_streams({.threads = 1});
  RawClient client(port()), idle(port());
  client.send(kGetStream);
  BodyStream stream = opened();
  idle.send(kGet);
  idle.read_response();
  std::thread stopping([&] { server_->stop(); });
  EXPECT_EQ(idle.read_all(), "") << "the server is stopping";
  EXPECT_EQ(stream.write("whole"), WriteState::ready);
  stream.finish();
  EXPECT_EQ(decode_chunks(body_of(client.read_all())), "whole");
  client.close();
  stopping.join();
  EXPECT_EQ(closed_.count(), 0);
}

TEST_F(HttpStream, ServerThatStopsResetsBodiesAtItsDeadline) {
  start_streams({.stop_deadline = 50ms, .tick = 10ms});
  RawClient client(port());
  client.send("GET /stream HTTP/1.0\r\n\r\n");
  BodyStream stream = opened();
  stream.write("half");
  client.read_until("half");
  server_->stop();
  closed_.wait();
  EXPECT_EQ(client.read_all(), "");
  EXPECT_TRUE(client.was_reset()) << "half of the body must not look complete";
}

TEST_F(HttpStream, MayOutliveTheServer) {
  std::promise<Reply> stored;
  start(
      [&](Request& request, Reply reply) {
        if (request.path == "/wait") return stored.set_value(std::move(reply));
        opened_.set_value(reply.start({}, events()));
      },
      {.stop_deadline = 0ms, .tick = 10ms});
  RawClient first(port()), second(port());
  first.send(kGetStream);
  second.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
  BodyStream stream = opened();
  Reply reply = stored.get_future().get();
  server_.reset();
  closed_.wait();
  EXPECT_EQ(stream.write("late"), WriteState::closed);
  BodyStream late = reply.start({}, events());
  EXPECT_TRUE(late.is_closed());
  late.finish();
  EXPECT_EQ(closed_.count(), 0);
}

// Owns its stream, as producers do; writes on the loop's thread in on_drain, and on another thread at first.
class Producer : public std::enable_shared_from_this<Producer> {
 public:
  explicit Producer(std::size_t pieces) : left_(pieces) {}
  void begin(Reply reply) {
    const std::lock_guard lock(mutex_);
    stream_.emplace(reply.start({}, {.on_drain = [self = shared_from_this()] { self->produce(); }}));
  }
  void produce() {
    const std::lock_guard lock(mutex_);
    if (!stream_) return;
    while (left_ > 0) {
      --left_;
      if (stream_->write(std::string(48 * 1024, 'p')) != WriteState::ready) break;
    }
    if (left_ > 0) return;
    stream_->finish();
    stream_.reset();
  }

 private:
  std::mutex mutex_;
  std::optional<BodyStream> stream_;
  std::size_t left_;
};

TEST_F(HttpStream, ServesManyProducers) {
  constexpr std::size_t kPieces = 200;
  std::mutex mutex;
  std::vector<std::jthread> threads;
  start([&](Request&, Reply reply) {
    const auto producer = std::make_shared<Producer>(kPieces);
    producer->begin(std::move(reply));
    const std::lock_guard lock(mutex);
    threads.emplace_back([producer] { producer->produce(); });
  });
  std::vector<std::thread> clients;
  std::atomic<int> complete{0};
  for (int c = 0; c < 8; ++c)
    clients.emplace_back([&] {
      RawClient client(port());
      for (int i = 0; i < 2; ++i) {
        client.send(kGet);
        client.read_until("\r\n\r\n");
        if (decode_chunks(client.read_until("0\r\n\r\n")).size() == kPieces * 48 * 1024) ++complete;
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(complete, 16);
  server_.reset();
}

}  // namespace
}  // namespace latchkey::http
