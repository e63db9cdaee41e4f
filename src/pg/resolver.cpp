#include "pg/resolver.hpp"

#include <netdb.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/this_coro.hpp>
#include <system_error>
#include <thread>
#include <vector>

#include "pg/dsn.hpp"

namespace latchkey::pg {
namespace {

// Shared by the caller, which may time out, and a detached thread: getaddrinfo cannot be cancelled.
class Lookup {
 public:
  Lookup() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (event_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  ~Lookup() { ::close(event_); }
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  // Runs on its own thread.
  void run(const std::string& name) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    problem_ = ::getaddrinfo(name.c_str(), nullptr, &hints, &found);
    for (const addrinfo* one = found; one; one = one->ai_next) {
      std::array<char, NI_MAXHOST> text{};
      if (::getnameinfo(one->ai_addr, one->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0)
        addresses_.emplace_back(text.data());
    }
    if (found) ::freeaddrinfo(found);
    is_done_ = true;
    const std::uint64_t one = 1;
    (void)!::write(event_, &one, sizeof one);
  }

  // Readable once the lookup is done.
  int event() const { return event_; }
  bool is_done() const { return is_done_; }
  // Valid once the lookup is done.
  int problem() const { return problem_; }
  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  const int event_;
  std::atomic<bool> is_done_{false};
  int problem_ = 0;
  std::vector<std::string> addresses_;
};

bool is_name(const std::string& host) {
  if (host.empty() || host.starts_with('/') || host.starts_with('@')) return false;
  boost::system::error_code is_none;
  boost::asio::ip::make_address(host, is_none);
  return is_none.failed();
}

}  // namespace

Task<std::string> resolve_host(SocketWaiters& waiters, std::string conninfo, Duration limit) {
  auto settings = read_settings(conninfo);
  if (!settings || !settings->contains("host") || settings->contains("hostaddr")) co_return conninfo;
  const std::string name = (*settings)["host"];
  if (!is_name(name)) co_return conninfo;
  const auto lookup = std::make_shared<Lookup>();
  std::thread([lookup, name] { lookup->run(name); }).detach();
  const auto executor = co_await boost::asio::this_coro::executor;
  SocketWaiters::Socket event(executor, lookup->event());
  Limit timer(executor);
  timer.set(limit, [&] { event.cancel(); });
  co_await waiters.wait(event, SocketWaiters::Socket::wait_read);
  event.release();
  const std::string failed = "could not translate host name \"" + name + "\" to address: ";
  if (!lookup->is_done()) throw Failure("", failed + "no reply", true);
  if (lookup->problem() != 0) throw Failure("", failed + ::gai_strerror(lookup->problem()), true);
  // libpq tries hosts in turn, as it would try the addresses of one host.
  std::string names, addresses;
  for (const std::string& address : lookup->addresses()) {
    names += (names.empty() ? "" : ",") + name;
    addresses += (addresses.empty() ? "" : ",") + address;
  }
  (*settings)["host"] = names;
  (*settings)["hostaddr"] = addresses;
  co_return make_conninfo(*settings);
}

}  // namespace latchkey::pg
