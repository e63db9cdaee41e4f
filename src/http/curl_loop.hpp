// CurlLoop: drives the transfers of a libcurl multi handle with epoll.
//
// epoll rather than curl_multi_poll, because that one examines every transfer each time a socket is ready. libcurl's
// timers are a timerfd. One thread; only wake() may be called by others.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/time.hpp"

namespace latchkey::http {

// Closes a descriptor. Throws std::system_error when the system call that opened it failed.
class Descriptor {
 public:
  explicit Descriptor(int opened);
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const { return value_; }

 private:
  const int value_;
};

class CurlLoop {
 public:
  struct Done {
    CURL* handle = nullptr;
    CURLcode code = CURLE_OK;
  };

  // `connections_max` is the size of libcurl's connection cache.
  explicit CurlLoop(std::size_t connections_max);
  ~CurlLoop();

  void add(CURL* handle);
  // Stops a transfer that is not done. Does nothing when the handle was not added.
  void remove(CURL* handle);
  // Waits until a transfer is done, wake() is called, other progress is made, or the time is over.
  void wait(std::optional<Duration> at_most);
  std::optional<Done> take_done();
  // Any thread.
  void wake();

 private:
  static int on_socket(CURL* handle, curl_socket_t socket, int what, void* self, void* is_known);
  static int on_timer(CURLM* multi, long timeout_ms, void* self);

  void watch(int descriptor);
  void act(curl_socket_t socket, int ready);
  void collect_done();

  Descriptor epoll_;
  Descriptor wakeup_;
  Descriptor timer_;
  bool is_due_ = false;  // libcurl asked to be called at once
  std::vector<Done> done_;
  CURLM* const multi_;
};

}  // namespace latchkey::http
