// Transfer: one libcurl handle, which carries one request at a time. Reusable.
//
// The request is sent at most once per prepare(). libcurl starts a request again by itself, when a reused connection
// closes before the response or the server refuses an HTTP/2 stream. Before it connects or sends, it calls back; the
// transfer rejects every start after the first, and the outcome is unknown. Before the first start it checks a reused
// connection: when the server has closed that, nothing was sent, and prepare_again() makes libcurl connect.
//
// All functions and callbacks run on the thread of the CurlLoop.
#pragma once

#include <curl/curl.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/open_sockets.hpp"
#include "http/outgoing.hpp"
#include "http/request_headers.hpp"
#include "http/response_collector.hpp"

namespace latchkey::http {

struct OutgoingCall;

class Transfer {
 public:
  // Both must outlive the transfer.
  Transfer(const OutgoingSettings& settings, OpenSockets& sockets);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Sets the handle up for a request. Returns the reason when the request is not valid. `request` must not change until
  // finish().
  std::optional<std::string> prepare(const OutgoingRequest& request, Duration timeout, OutgoingCall& call);
  CURL* handle() { return handle_.get(); }
  // The call of the latest prepare().
  static OutgoingCall& call_of(CURL* handle);

  // Whether the transfer ended without sending, because the server had closed the reused connection.
  bool found_closed_connection() const { return found_closed_connection_; }
  // Sets the handle up for the same request on a new connection.
  void prepare_again();
  // Whether bytes of the request may have been sent.
  bool is_sent() const { return is_sent_; }
  OutgoingResult finish(CURLcode code);

 private:
  static int on_request(void* self, char* remote_address, char* local_address, int remote_port, int local_port);
  static curl_socket_t on_open_socket(void* self, curlsocktype purpose, curl_sockaddr* address);
  static std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* self);

  template <class T>
  void set(CURLoption option, T value);
  void set_up(const OutgoingSettings& settings);
  void set_method(const OutgoingRequest& request);
  bool admits_request(const SocketEnds& ends);
  std::string describe(CURLcode code) const;

  const OutgoingSettings& settings_;
  OpenSockets& sockets_;
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> handle_;
  RequestHeaders headers_;
  ResponseCollector collector_{ResponseCollector::Limits{}};
  std::vector<curl_socket_t> opened_;  // by this request
  IdleProtocol protocol_ = IdleProtocol::plain_http;
  bool is_sent_ = false;
  bool was_restarted_ = false;  // libcurl wanted to send again
  bool found_closed_connection_ = false;
  std::array<char, CURL_ERROR_SIZE> error_{};
};

}  // namespace latchkey::http
