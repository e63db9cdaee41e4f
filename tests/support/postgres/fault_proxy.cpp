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
  PgFrames asked{0};
  PgFrames answered{'R'};
  std::array<char, 65536> from_client{};
  std::array<char, 65536> from_server{};
  ConnectionFault fate;
  std::chrono::milliseconds delay{0};
  bool swallows = false;
  bool is_unheard = false;  // what the client said was swallowed
  bool is_late = false;     // the client has gone, what it sent is on its way

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
  std::size_t offset = 0;  // of the bytes at hand, these still pass
  ConnectionFault fault;
};

namespace {

// Whether one of `units` is the one that the fault waits for, and which; counts those that are not.
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

void FaultProxy::set_fates(std::function<ConnectionFault()> draw) {
  on_thread([&] { draw_ = std::move(draw); });
}

void FaultProxy::hush_all() {
  on_thread([&] {
    is_hushed_ = true;
    for (const auto& link : links_) link->swallows = true;
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
    is_hushed_ = false;
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
  if (draw_) link->fate = draw_();
  link->swallows = is_hushed_;
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
      // A connection that is half-open does not tell the other side; one that is late has something to say yet.
      if (link->swallows || (link->is_late && from_client)) return;
      link->end();
      links_.erase(link);
      return;
    }
    if (link->swallows && from_client && is_hushed_ && !std::exchange(link->is_unheard, true)) ++unheard_;
    if (link->swallows || link->is_late) return pump(link, from_client);
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
  const auto look = [&](FaultAt at, std::uint64_t units, std::optional<std::size_t> offset) {
    if (const auto unit = count_down(link->fate, at, units)) {
      consider(link->fate, offset.value_or(*unit));
      link->fate = {};
    }
    if (armed_.empty()) return;
    if (const auto unit = count_down(armed_.front(), at, units)) {
      consider(armed_.front(), offset.value_or(*unit));
      armed_.pop_front();
    }
  };
  (from_client ? link->asked : link->answered).feed(bytes, [&](const PgFrame& frame) {
    if (from_client) count(link->traffic, frame);
    if (from_client && asks_commit(frame))
      look(FaultAt::commit_asked, 1, frame.begin), look(FaultAt::flight_asked, 1, 0);
    if (!from_client && answers_commit(frame)) look(FaultAt::commit_answered, 1, frame.begin);
    if (from_client && frame.type == 'S') look(FaultAt::trip_asked, 1, frame.begin);
    if (!from_client && frame.type == 'Z') {
      ++trips_;
      look(FaultAt::trip_answered, 1, frame.begin);
    }
  });
  look(from_client ? FaultAt::byte_asked : FaultAt::byte_answered, size, std::nullopt);

  const std::size_t passing = hit ? hit->offset : size;
  auto& to = from_client ? link->server : link->client;
  asio::async_write(to, asio::buffer(bytes.substr(0, passing)),
                    [this, link, from_client, hit, held = std::string(bytes.substr(passing))](Problem, std::size_t) {
                      if (hit) return strike(link, from_client, *hit, held);
                      pump(link, from_client);
                    });
}

void FaultProxy::strike(const std::shared_ptr<Link>& link, bool from_client, const Hit& hit, std::string held) {
  ++fired_;
  ++fired_of_[static_cast<std::size_t>(hit.fault.at)][static_cast<std::size_t>(hit.fault.how)];
  for (const auto& act : std::exchange(with_next_, {})) act();
  switch (hit.fault.how) {
    case FaultHow::close:
    case FaultHow::reset:
      link->end(hit.fault.how);
      links_.erase(link);
      return;
    case FaultHow::swallow:
      link->swallows = true;
      return pump(link, from_client);
    case FaultHow::slow: {
      link->delay = hit.fault.delay;
      if (draw_) link->fate = draw_();
      auto rest = std::make_shared<std::string>(std::move(held));
      auto pause = std::make_shared<asio::steady_timer>(context_, link->delay);
      pause->async_wait([this, link, from_client, rest, pause](Problem) {
        asio::async_write(from_client ? link->server : link->client, asio::buffer(*rest),
                          [this, link, from_client, rest](Problem, std::size_t) { pump(link, from_client); });
      });
      return;
    }
    case FaultHow::late: {
      link->is_late = true;
      Link::end(link->client, FaultHow::close);
      auto rest = std::make_shared<std::string>(std::move(held));
      auto deliver = [link, rest] {
        asio::async_write(link->server, asio::buffer(*rest), [link, rest](Problem, std::size_t) {
          // What was sent is read first, then the end.
          Problem ignored;
          link->server.shutdown(tcp::socket::shutdown_send, ignored);
        });
      };
      if (hit.fault.delay == ConnectionFault::kWithTheNext) {
        with_next_.push_back(std::move(deliver));
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
