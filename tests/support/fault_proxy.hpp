// FaultProxy: stands between a client and PostgreSQL on loopback, and breaks their connections where the test says. It
// follows PostgreSQL's framing just far enough to see a COMMIT go by and its answer come back. One thread; what happens
// is decided by the faults that it is given, never by time or chance.
//
//   client ──asked──▶ proxy ──────▶ server
//          ◀─────── proxy ◀─answered──
#pragma once

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

#include "support/pg_frames.hpp"

namespace latchkey {

// Where it happens. `commit_asked`: the client's COMMIT is at the proxy, the server has all before it.
// `commit_answered`: the server has committed, its answer is at the proxy. `flight_asked`: what the client sent
// together with its COMMIT is at the proxy, and none of it at the server.
enum class FaultAt : std::uint8_t { never, commit_asked, commit_answered, flight_asked, byte_asked, byte_answered };

// What happens there.
// close:   both connections end.
// reset:   both end with RST.
// swallow: nothing goes either way any more and nothing ends (half-open), until cut_all().
// late:    the client's connection ends; what it had sent reaches the server after `delay`, or with the next fault.
// slow:    from here on everything takes `delay` longer.
enum class FaultHow : std::uint8_t { close, reset, swallow, late, slow };

struct Fault {
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
  void arm(Fault fault) { arm(std::deque<Fault>{fault}); }
  void arm(std::deque<Fault> faults);
  // Every new connection gets a fault of its own, drawn when it begins. Empty: none do.
  void set_fates(std::function<Fault()> draw);
  // From now on nothing goes either way on any connection, new ones too, and nothing ends, until cut_all().
  void hush_all();
  // Whatever goes by from now on, either way, and on connections to come, takes so much longer.
  void slow_all(std::chrono::milliseconds delay);
  // On how many connections the client has spoken since then.
  std::uint64_t unheard() const { return unheard_; }
  // Ends every connection now, the swallowed ones too.
  void cut_all();

  // How many faults took place, and how many connections there were.
  std::uint64_t fired() const { return fired_; }
  std::uint64_t connections() const { return connections_; }
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
  std::deque<Fault> armed_;
  std::vector<std::function<void()>> with_next_;
  std::function<Fault()> draw_;
  std::atomic<std::uint64_t> fired_{0};
  std::atomic<std::uint64_t> connections_{0};
  bool is_hushed_ = false;
  std::chrono::milliseconds delay_{0};
  std::atomic<std::uint64_t> unheard_{0};
  std::thread thread_;
};

}  // namespace latchkey
