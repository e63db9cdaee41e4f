// FaultProxy: stands between a client and PostgreSQL on loopback, and breaks their connections where the test says. It
// follows PostgreSQL's framing just far enough to see a COMMIT go by and its answer come back. One thread; what happens
// is decided by the faults that it is given, never by time or chance.
//
//   client ──asked──▶ proxy ──────▶ server
//          ◀─────── proxy ◀─answered──
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

// Where it happens. `commit_asked`: the client's COMMIT is at the proxy, the server has all before it.
// `commit_answered`: the server has committed, its answer is at the proxy. `flight_asked`: what the client sent
// together with its COMMIT is at the proxy, and none of it at the server. `trip_asked`: the end of a round trip is at
// the proxy, the server has all before it; `trip_answered`: the same of its answer. A connection's greeting is one,
// too.
enum class FaultAt : std::uint8_t {
  never,
  commit_asked,
  commit_answered,
  flight_asked,
  trip_asked,
  trip_answered,
  byte_asked,
  byte_answered
};

// What happens there.
// close:   both connections end.
// reset:   both end with RST.
// swallow: nothing goes either way any more and nothing ends (half-open), until cut_all().
// late:    the client's connection ends; what it had sent reaches the server after `delay`, or with the next fault.
// slow:    from here on, what is at the proxy now too, everything takes `delay` longer. Unlike the others the
// connection
//          lives on: where fates are drawn it gets another.
enum class FaultHow : std::uint8_t { close, reset, swallow, late, slow };

inline constexpr auto kFaultAts = static_cast<std::size_t>(FaultAt::byte_answered) + 1;
inline constexpr auto kFaultHows = static_cast<std::size_t>(FaultHow::slow) + 1;

struct ConnectionFault {
  FaultAt at = FaultAt::never;
  FaultHow how = FaultHow::close;
  std::uint64_t after = 0;  // commits, or bytes, that pass before it
  std::chrono::milliseconds delay{0};

  static constexpr std::chrono::milliseconds kWithTheNext{-1};
};

class FaultProxy {
 public:
  explicit FaultProxy(int server_port);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  // Unencrypted, so that the proxy can read it.
  std::string url(const std::string& database) const;
  int port() const { return acceptor_.local_endpoint().port(); }

  // Once, on whichever connection it comes true first, counted from now over all of them. Several: one after the other.
  // Replaces what was armed before.
  void arm(ConnectionFault fault) { arm(std::deque<ConnectionFault>{fault}); }
  void arm(std::deque<ConnectionFault> faults);
  // Every new connection gets a fault of its own, drawn when it begins. Empty: none do.
  void set_fates(std::function<ConnectionFault()> draw);
  // From now on nothing goes either way on any connection, new ones too, and nothing ends, until cut_all().
  void hush_all();
  // Whatever goes by from now on, either way, and on connections to come, takes so much longer.
  void slow_all(std::chrono::milliseconds delay);
  // Whoever asks with this word, asks with another one of its length instead: the server does not know it.
  void garble(std::string word);
  // On how many connections the client has spoken since then.
  std::uint64_t unheard() const { return unheard_; }
  // Ends every connection now, the swallowed ones too.
  void cut_all();

  // How many faults took place, and how many connections there were.
  std::uint64_t fired() const { return fired_; }
  std::uint64_t fired(FaultAt at, FaultHow how) const {
    return fired_of_[static_cast<std::size_t>(at)][static_cast<std::size_t>(how)];
  }
  std::uint64_t connections() const { return connections_; }
  // Round trips that were answered, on all connections there were.
  std::uint64_t trips() const { return trips_; }
  // What was asked on each connection that is open.
  std::vector<PgTraffic> traffic();

 private:
  struct Link;
  struct Hit;
  using Socket = boost::asio::ip::tcp::socket;

  void accept();
  void begin(Socket client);
  void pump(std::shared_ptr<Link> link, bool from_client);
  void pass(std::shared_ptr<Link> link, bool from_client, std::size_t size);
  void strike(const std::shared_ptr<Link>& link, bool from_client, const Hit& hit, std::string held);
  void on_thread(std::function<void()> act);

  // Of the thread alone, but for the counts.
  boost::asio::io_context context_{1};
  boost::asio::ip::tcp::acceptor acceptor_;
  const boost::asio::ip::tcp::endpoint server_;
  std::set<std::shared_ptr<Link>> links_;
  std::deque<ConnectionFault> armed_;
  std::vector<std::function<void()>> with_next_;
  std::function<ConnectionFault()> draw_;
  std::atomic<std::uint64_t> fired_{0};
  std::array<std::array<std::atomic<std::uint64_t>, kFaultHows>, kFaultAts> fired_of_{};
  std::atomic<std::uint64_t> connections_{0};
  std::atomic<std::uint64_t> trips_{0};
  bool is_hushed_ = false;
  std::string garbled_;
  std::chrono::milliseconds delay_{0};
  std::atomic<std::uint64_t> unheard_{0};
  std::thread thread_;
};

}  // namespace latchkey
