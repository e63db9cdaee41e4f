#include "http/curl_loop.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <system_error>

#include "base/assert.hpp"

namespace latchkey::http {
namespace {

CURLM* new_multi() {
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  LK_ASSERT(initialized == CURLE_OK);
  CURLM* const multi = curl_multi_init();
  if (multi == nullptr) throw std::system_error(ENOMEM, std::generic_category(), "curl_multi_init");
  return multi;
}

// Empties an eventfd or a timerfd.
void drain(int descriptor) {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t size = ::read(descriptor, &count, sizeof count);
}

}  // namespace

Descriptor::Descriptor(int opened) : value_(opened) {
  if (value_ < 0) throw std::system_error(errno, std::generic_category(), "cannot open a descriptor");
}

Descriptor::~Descriptor() { ::close(value_); }

CurlLoop::CurlLoop(std::size_t connections_max)
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wakeup_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      multi_(new_multi()) {
  watch(wakeup_);
  watch(timer_);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &CurlLoop::on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &CurlLoop::on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(connections_max));
  curl_multi_setopt(multi_, CURLMOPT_MAX_TOTAL_CONNECTIONS, static_cast<long>(connections_max));
  // Without multiplexing a broken HTTP/2 connection makes the outcome of one call unknown, not of many.
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
}

CurlLoop::~CurlLoop() { curl_multi_cleanup(multi_); }

void CurlLoop::watch(int descriptor) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
  LK_ASSERT(::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0);
}

void CurlLoop::add(CURL* handle) { LK_ASSERT(curl_multi_add_handle(multi_, handle) == CURLM_OK); }

void CurlLoop::remove(CURL* handle) { curl_multi_remove_handle(multi_, handle); }

void CurlLoop::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t size = ::write(wakeup_, &one, sizeof one);
}

int CurlLoop::on_socket(CURL*, curl_socket_t socket, int what, void* self, void* is_known) {
  auto& loop = *static_cast<CurlLoop*>(self);
  if (what == CURL_POLL_REMOVE) {
    // Fails when libcurl has closed the socket: the kernel has removed it then.
    ::epoll_ctl(loop.epoll_, EPOLL_CTL_DEL, socket, nullptr);
    return 0;
  }
  epoll_event event{.events = 0, .data = {.fd = socket}};
  if ((what & CURL_POLL_IN) != 0) event.events |= EPOLLIN;
  if ((what & CURL_POLL_OUT) != 0) event.events |= EPOLLOUT;
  const int operation = is_known != nullptr ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  // Without a watch (the kernel's limit is reached) this call runs into its timeout. An error would stop all calls.
  if (::epoll_ctl(loop.epoll_, operation, socket, &event) != 0) return 0;
  if (is_known == nullptr) curl_multi_assign(loop.multi_, socket, self);
  return 0;
}

int CurlLoop::on_timer(CURLM*, long timeout_ms, void* self) {
  auto& loop = *static_cast<CurlLoop*>(self);
  loop.is_due_ = timeout_ms == 0;
  if (loop.is_due_) return 0;
  itimerspec at{};  // disarms
  if (timeout_ms > 0) at.it_value = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1'000'000};
  return ::timerfd_settime(loop.timer_, 0, &at, nullptr);
}

void CurlLoop::act(curl_socket_t socket, int ready) {
  int running = 0;
  LK_ASSERT(curl_multi_socket_action(multi_, socket, ready, &running) == CURLM_OK);
}

void CurlLoop::collect_done() {
  int left = 0;
  while (const CURLMsg* const message = curl_multi_info_read(multi_, &left))
    if (message->msg == CURLMSG_DONE) done_.push_back({message->easy_handle, message->data.result});
}

void CurlLoop::wait(std::optional<Duration> at_most) {
  if (is_due_) {
    is_due_ = false;
    act(CURL_SOCKET_TIMEOUT, 0);
    collect_done();
  }
  int timeout = -1;
  if (at_most) timeout = static_cast<int>(std::min<std::int64_t>(at_most->count(), std::numeric_limits<int>::max()));
  if (is_due_ || !done_.empty()) timeout = 0;
  std::array<epoll_event, 128> events;
  const int count = ::epoll_wait(epoll_, events.data(), events.size(), timeout);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const int descriptor = event.data.fd;
    if (descriptor == wakeup_) {
      drain(descriptor);
    } else if (descriptor == timer_) {
      drain(descriptor);
      is_due_ = true;
    } else {
      // An error is reported as readable and writable: libcurl's read or write then returns it.
      const bool failed = (event.events & (EPOLLERR | EPOLLHUP)) != 0;
      int ready = 0;
      if (failed || (event.events & EPOLLIN) != 0) ready |= CURL_CSELECT_IN;
      if (failed || (event.events & EPOLLOUT) != 0) ready |= CURL_CSELECT_OUT;
      act(descriptor, ready);
    }
  }
  collect_done();
}

std::optional<CurlLoop::Done> CurlLoop::take_done() {
  if (done_.empty()) return std::nullopt;
  const Done done = done_.back();
  done_.pop_back();
  return done;
}

}  // namespace latchkey::http
