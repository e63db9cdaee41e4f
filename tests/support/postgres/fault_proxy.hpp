// FaultProxy: a proxy between a client and PostgreSQL on loopback that breaks connections at points that the test
// chooses. It parses PostgreSQL's message frames, so that it recognizes a COMMIT and its reply. The proxy has one
// thread. Only the configured faults decide its behaviour, never time or chance.
//
//   client ──request──▶ proxy ───────▶ server
//          ◀─────────── proxy ◀──reply──
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/postgres/pg_frames.hpp"

namespace latchkey {

// The point of a fault.
// commit_request: the client's COMMIT has reached the proxy, and all bytes before it have reached the server.
// commit_reply:   the server has committed, and its reply has reached the proxy.
// flight_request: the packet with the COMMIT has reached the proxy, and none of its bytes have reached the server.
// trip_request:   the end of a round trip's request has reached the proxy, and all bytes before it the server.
// trip_reply:     the same for the end of its reply. A connection's startup is a round trip, too.
// byte_request, byte_reply: the nth byte of that direction has reached the proxy.
enum class FaultAt : std::uint8_t {
  never,
  commit_request,
  commit_reply,
  flight_request,
  trip_request,
  trip_reply,
  byte_request,
  byte_reply
};

// The kind of a fault.
// close:     both connections end.
// reset:     both connections end with RST.
// blackhole: the proxy forwards nothing in either direction, and the connections stay open until cut_all().
// late:      the client's connection ends. Its bytes reach the server after `delay`, or with the next fault.
// slow:      all bytes, including those at the proxy, are delayed by `delay`. The connection remains, and gets the next
//            fault of set_fault_source().
enum class FaultHow : std::uint8_t { close, reset, blackhole, late, slow };

inline constexpr auto kFaultAts = static_cast<std::size_t>(FaultAt::byte_reply) + 1;
inline constexpr auto kFaultHows = static_cast<std::size_t>(FaultHow::slow) + 1;

struct ConnectionFault {
  FaultAt at = FaultAt::never;
  FaultHow how = FaultHow::close;
  std::uint64_t after = 0;  // commits, flights, round trips or bytes that pass before the fault
  std::chrono::milliseconds delay{0};

  static constexpr std::chrono::milliseconds kWithNextFault{-1};
};

class FaultProxy {
 public:
  explicit FaultProxy(int server_port);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  // The URL of the proxy. It turns encryption off, because the proxy parses the bytes.
  std::string url(const std::string& database) const;
  int port() const { return acceptor_.local_endpoint().port(); }

  // Injects the fault once, on the first connection that reaches its point, counted from now over all connections.
  // Several faults occur one after another. Replaces the faults of earlier calls.
  void arm(ConnectionFault fault) { arm(std::deque<ConnectionFault>{fault}); }
  void arm(std::deque<ConnectionFault> faults);
  // Every new connection gets its own fault from `draw`. With an empty function, connections get none.
  void set_fault_source(std::function<ConnectionFault()> draw);
  // From now on the proxy forwards nothing on any connection, including new ones, until cut_all(). Connections stay
  // open.
  void blackhole_all();
  // Delays all bytes from now on, in both directions, also on new connections.
  void slow_all(std::chrono::milliseconds delay);
  // Replaces the first character of this word in requests, so that the server does not know the word.
  void garble(std::string word);
  // The number of connections on which the client has sent bytes since blackhole_all().
  std::uint64_t blackholed() const { return blackholed_; }
  // Ends every connection now, including those without forwarding.
  void cut_all();

  // The number of injected faults, and of connections so far.
  std::uint64_t fired() const { return fired_; }
  std::uint64_t fired(FaultAt at, FaultHow how) const {
    return fired_of_[static_cast<std::size_t>(at)][static_cast<std::size_t>(how)];
  }
  std::uint64_t connections() const { return connections_; }
  // The number of completed round trips on all connections so far.
  std::uint64_t trips() const { return trips_; }
  // The requests of each open connection.
  std::vector<PgTraffic> traffic();

 private:
  struct Link;
  struct Hit;
  using Socket = boost::asio::ip::tcp::socket;

  void accept();
  void begin(Socket client);
  void pump(std::shared_ptr<Link> link, bool from_client);
  void pass(std::shared_ptr<Link> link, bool from_client, std::size_t size);
  void inject(const std::shared_ptr<Link>& link, bool from_client, const Hit& hit, std::string rest);
  void on_thread(std::function<void()> act);

  // Only the proxy's thread accesses these members, except for the counters.
  boost::asio::io_context context_{1};
  boost::asio::ip::tcp::acceptor acceptor_;
  const boost::asio::ip::tcp::endpoint server_;
  std::set<std::shared_ptr<Link>> links_;
  std::deque<ConnectionFault> armed_;
  std::vector<std::function<void()>> with_next_fault_;
  std::function<ConnectionFault()> draw_;
  std::atomic<std::uint64_t> fired_{0};
  std::array<std::array<std::atomic<std::uint64_t>, kFaultHows>, kFaultAts> fired_of_{};
  std::atomic<std::uint64_t> connections_{0};
  std::atomic<std::uint64_t> trips_{0};
  bool is_blackholed_ = false;
  std::string garbled_;
  std::chrono::milliseconds delay_{0};
  std::atomic<std::uint64_t> blackholed_{0};
  std::thread thread_;
};

}  // namespace latchkey
