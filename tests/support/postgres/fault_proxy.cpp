#include "support/postgres/fault_proxy.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <future>
#include <optional>

namespace latchkey {

namespace asio = boost::asio;
using asio::ip::tcp;
using Problem = boost::system::error_code;

struct FaultProxy::Link {
  explicit Link(Socket from, asio::io_context& context) : client(std::move(from)), server(context), timer(context) {}

  Socket client;
  Socket server;
  asio::steady_timer timer;
  PgTraffic traffic;
  PgFrames requests{0};
  PgFrames replies{'R'};
  std::array<char, 65536> from_client{};
  std::array<char, 65536> from_server{};
  ConnectionFault own_fault;
  std::chrono::milliseconds delay{0};
  bool is_blackholed = false;
  bool has_lost_bytes = false;  // from the client, after blackhole_all()
  bool is_late = false;         // the client's connection has ended, and its bytes are not delivered yet

  static void end(Socket& socket, FaultHow how) {
    Problem ignored;
    if (how == FaultHow::reset) socket.set_option(asio::socket_base::linger(true, 0), ignored);
    socket.close(ignored);
  }
  void end(FaultHow how = FaultHow::close) {
    end(client, how);
    end(server, how);
    timer.cancel();
  }
};

struct FaultProxy::Hit {
  std::size_t offset = 0;  // the number of current bytes that the proxy forwards before the fault
  ConnectionFault fault;
};

namespace {

// The index of the unit at which the fault occurs, if it is one of `units`. Counts the units down otherwise.
std::optional<std::uint64_t> count_down(ConnectionFault& fault, FaultAt at, std::uint64_t units) {
  if (fault.at != at) return std::nullopt;
  if (fault.after < units) return fault.after;
  fault.after -= units;
  return std::nullopt;
}

}  // namespace

FaultProxy::FaultProxy(int server_port)
    : acceptor_(context_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
      server_(asio::ip::address_v4::loopback(), static_cast<asio::ip::port_type>(server_port)) {
  accept();
  thread_ = std::thread([this] { context_.run(); });
}

FaultProxy::~FaultProxy() {
  on_thread([this] {
    acceptor_.close();
    for (const auto& link : links_) link->end();
    links_.clear();
  });
  context_.stop();
  thread_.join();
}

std::string FaultProxy::url(const std::string& database) const {
  return "postgres://latchkey@127.0.0.1:" + std::to_string(port()) + "/" + database +
         "?sslmode=disable&gssencmode=disable";
}

void FaultProxy::on_thread(std::function<void()> act) {
  std::promise<void> done;
  asio::post(context_, [&] {
    act();
    done.set_value();
  });
  done.get_future().wait();
}

void FaultProxy::arm(std::deque<ConnectionFault> faults) {
  on_thread([&] { armed_ = std::move(faults); });
}

void FaultProxy::set_fault_source(std::function<ConnectionFault()> draw) {
  on_thread([&] { draw_ = std::move(draw); });
}

void FaultProxy::blackhole_all() {
  on_thread([&] {
    is_blackholed_ = true;
    for (const auto& link : links_) link->is_blackholed = true;
  });
}

void FaultProxy::slow_all(std::chrono::milliseconds delay) {
  on_thread([&] {
    delay_ = delay;
    for (const auto& link : links_) link->delay = delay;
  });
}

void FaultProxy::garble(std::string word) {
  on_thread([&] { garbled_ = std::move(word); });
}

void FaultProxy::cut_all() {
  on_thread([&] {
    is_blackholed_ = false;
    for (const auto& link : links_) link->end();
    links_.clear();
  });
}

std::vector<PgTraffic> FaultProxy::traffic() {
  std::vector<PgTraffic> all;
  on_thread([&] {
    for (const auto& link : links_) all.push_back(link->traffic);
  });
  return all;
}

void FaultProxy::accept() {
  acceptor_.async_accept([this](Problem problem, Socket client) {
    if (problem) return;
    begin(std::move(client));
    accept();
  });
}

void FaultProxy::begin(Socket client) {
  ++connections_;
  auto link = std::make_shared<Link>(std::move(client), context_);
  if (draw_) link->own_fault = draw_();
  link->is_blackholed = is_blackholed_;
  link->delay = delay_;
  links_.insert(link);
  link->server.async_connect(server_, [this, link](Problem problem) {
    if (problem) {
      link->end();
      links_.erase(link);
      return;
    }
    link->client.set_option(tcp::no_delay(true));
    link->server.set_option(tcp::no_delay(true));
    pump(link, true);
    pump(link, false);
  });
}

void FaultProxy::pump(std::shared_ptr<Link> link, bool from_client) {
  auto& socket = from_client ? link->client : link->server;
  auto& bytes = from_client ? link->from_client : link->from_server;
  socket.async_read_some(asio::buffer(bytes), [this, link, from_client](Problem problem, std::size_t size) {
    if (problem) {
      // A half-open connection does not forward its end. A late one still has bytes to deliver.
      if (link->is_blackholed || (link->is_late && from_client)) return;
      link->end();
      links_.erase(link);
      return;
    }
    if (link->is_blackholed && from_client && is_blackholed_ && !std::exchange(link->has_lost_bytes, true))
      ++blackholed_;
    if (link->is_blackholed || link->is_late) return pump(link, from_client);
    if (link->delay.count() == 0) return pass(link, from_client, size);
    auto pause = std::make_shared<asio::steady_timer>(context_, link->delay);
    pause->async_wait([this, link, from_client, size, pause](Problem) { pass(link, from_client, size); });
  });
}

void FaultProxy::pass(std::shared_ptr<Link> link, bool from_client, std::size_t size) {
  if (from_client && !garbled_.empty()) {
    char* const end = link->from_client.data() + size;
    char* const found = std::search(link->from_client.data(), end, garbled_.begin(), garbled_.end());
    if (found != end) *found = 'x';
  }
  const std::string_view bytes((from_client ? link->from_client : link->from_server).data(), size);
  std::optional<Hit> hit;
  const auto consider = [&](const ConnectionFault& fault, std::size_t offset) {
    if (!hit || offset < hit->offset) hit = Hit{offset, fault};
  };
  const auto check = [&](FaultAt at, std::uint64_t units, std::optional<std::size_t> offset) {
    if (const auto unit = count_down(link->own_fault, at, units)) {
      consider(link->own_fault, offset.value_or(*unit));
      link->own_fault = {};
    }
    if (armed_.empty()) return;
    if (const auto unit = count_down(armed_.front(), at, units)) {
      consider(armed_.front(), offset.value_or(*unit));
      armed_.pop_front();
    }
  };
  (from_client ? link->requests : link->replies).feed(bytes, [&](const PgFrame& frame) {
    if (from_client) count(link->traffic, frame);
    if (from_client && requests_commit(frame))
      check(FaultAt::commit_request, 1, frame.begin), check(FaultAt::flight_request, 1, 0);
    if (!from_client && confirms_commit(frame)) check(FaultAt::commit_reply, 1, frame.begin);
    if (from_client && frame.type == 'S') check(FaultAt::trip_request, 1, frame.begin);
    if (!from_client && frame.type == 'Z') {
      ++trips_;
      check(FaultAt::trip_reply, 1, frame.begin);
    }
  });
  check(from_client ? FaultAt::byte_request : FaultAt::byte_reply, size, std::nullopt);

  const std::size_t passing = hit ? hit->offset : size;
  auto& to = from_client ? link->server : link->client;
  asio::async_write(to, asio::buffer(bytes.substr(0, passing)),
                    [this, link, from_client, hit, rest = std::string(bytes.substr(passing))](Problem, std::size_t) {
                      if (hit) return inject(link, from_client, *hit, rest);
                      pump(link, from_client);
                    });
}

void FaultProxy::inject(const std::shared_ptr<Link>& link, bool from_client, const Hit& hit, std::string rest) {
  ++fired_;
  ++fired_of_[static_cast<std::size_t>(hit.fault.at)][static_cast<std::size_t>(hit.fault.how)];
  for (const auto& act : std::exchange(with_next_fault_, {})) act();
  switch (hit.fault.how) {
    case FaultHow::close:
    case FaultHow::reset:
      link->end(hit.fault.how);
      links_.erase(link);
      return;
    case FaultHow::blackhole:
      link->is_blackholed = true;
      return pump(link, from_client);
    case FaultHow::slow: {
      link->delay = hit.fault.delay;
      if (draw_) link->own_fault = draw_();
      auto bytes = std::make_shared<std::string>(std::move(rest));
      auto pause = std::make_shared<asio::steady_timer>(context_, link->delay);
      pause->async_wait([this, link, from_client, bytes, pause](Problem) {
        asio::async_write(from_client ? link->server : link->client, asio::buffer(*bytes),
                          [this, link, from_client, bytes](Problem, std::size_t) { pump(link, from_client); });
      });
      return;
    }
    case FaultHow::late: {
      link->is_late = true;
      Link::end(link->client, FaultHow::close);
      auto bytes = std::make_shared<std::string>(std::move(rest));
      auto deliver = [link, bytes] {
        asio::async_write(link->server, asio::buffer(*bytes), [link, bytes](Problem, std::size_t) {
          // The server reads the bytes before the end of the stream.
          Problem ignored;
          link->server.shutdown(tcp::socket::shutdown_send, ignored);
        });
      };
      if (hit.fault.delay == ConnectionFault::kWithNextFault) {
        with_next_fault_.push_back(std::move(deliver));
      } else {
        link->timer.expires_after(hit.fault.delay);
        link->timer.async_wait([deliver](Problem problem) {
          if (!problem) deliver();
        });
      }
      if (!from_client) pump(link, false);
      return;
    }
  }
}

}  // namespace latchkey
