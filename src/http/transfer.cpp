#include "http/transfer.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.hpp"
#include "http/chars.hpp"

namespace latchkey::http {
namespace {

CallFailure classify(CURLcode code) {
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return CallFailure::invalid_request;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return CallFailure::name_lookup;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
      return CallFailure::tls;
    case CURLE_OPERATION_TIMEDOUT:
      return CallFailure::timeout;
    default:
      return CallFailure::connect;
  }
}

CallFailure classify_after_start(CURLcode code) {
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return CallFailure::timeout;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
    case CURLE_OUT_OF_MEMORY:  // a header line above libcurl's limit
      return CallFailure::bad_response;
    default:
      return CallFailure::connection_closed;
  }
}

long to_curl_ms(Duration span) {
  // 0 would mean no limit.
  return std::clamp<long>(span.count(), 1, std::numeric_limits<int>::max());
}

}  // namespace

Transfer::Transfer(const OutgoingSettings& settings, OpenSockets& sockets)
    : settings_(settings), sockets_(sockets), handle_(curl_easy_init(), curl_easy_cleanup) {
  LK_ASSERT(handle_ != nullptr);
  set_up(settings);
}

template <class T>
void Transfer::set(CURLoption option, T value) {
  LK_ASSERT(curl_easy_setopt(handle_.get(), option, value) == CURLE_OK);
}

void Transfer::set_up(const OutgoingSettings& settings) {
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);  // a call that ends does not wait for its name lookup
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_TCP_NODELAY, 1L);
  set(CURLOPT_MAXAGE_CONN, 1L);  // libcurl 7.88 rounds down: a connection is reused for up to 2 s
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!settings.ca_file.empty()) set(CURLOPT_CAINFO, settings.ca_file.c_str());
  if (!settings.proxy_from_environment) {
    set(CURLOPT_PROXY, settings.proxy.c_str());  // empty: no proxy, not even from the environment
    set(CURLOPT_NOPROXY, settings.no_proxy.c_str());
  }
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  // Fails in a libcurl without HTTP/2; HTTP/1.1 is used then.
  curl_easy_setopt(handle_.get(), CURLOPT_HTTP_VERSION,
                   static_cast<long>(settings.allows_http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
  set(CURLOPT_USERAGENT, settings.user_agent.empty() ? "latchkey/" LATCHKEY_VERSION : settings.user_agent.c_str());
  set(CURLOPT_ERRORBUFFER, error_.data());
  set(CURLOPT_PREREQFUNCTION, &Transfer::on_request);
  set(CURLOPT_PREREQDATA, this);
  set(CURLOPT_OPENSOCKETFUNCTION, &Transfer::on_open_socket);
  set(CURLOPT_OPENSOCKETDATA, this);
  set(CURLOPT_CLOSESOCKETFUNCTION, &OpenSockets::on_close);
  set(CURLOPT_CLOSESOCKETDATA, &sockets_);
  set(CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  set(CURLOPT_WRITEDATA, this);
}

std::optional<std::string> Transfer::prepare(const OutgoingRequest& request, Duration timeout, OutgoingCall& call) {
  set(CURLOPT_PRIVATE, &call);
  is_sent_ = was_restarted_ = found_closed_connection_ = false;
  opened_.clear();
  error_[0] = '\0';
  if (!is_token(request.method)) return "the method is not valid";
  if (request.method == "HEAD" && !request.body.empty()) return "a HEAD request has no body";
  if (request.url.find('\0') != request.url.npos) return "the URL is not valid";
  if (auto reason = headers_.assign(request.headers)) return reason;
  if (curl_easy_setopt(handle_.get(), CURLOPT_URL, request.url.c_str()) != CURLE_OK) return "the URL is not valid";
  collector_ = ResponseCollector({.header_bytes_max = settings_.header_bytes_max,
                                  .headers_max = settings_.headers_max,
                                  .body_bytes_max = request.body_bytes_max});
  protocol_ = equals_ignoring_case(std::string_view(request.url).substr(0, 6), "https:") ? IdleProtocol::tls
                                                                                         : IdleProtocol::plain_http;
  set_method(request);
  set(CURLOPT_HTTPHEADER, headers_.list());
  set(CURLOPT_FRESH_CONNECT, 0L);
  set(CURLOPT_TIMEOUT_MS, to_curl_ms(timeout));
  set(CURLOPT_CONNECTTIMEOUT_MS, to_curl_ms(std::min(request.connect_timeout, timeout)));
  return std::nullopt;
}

void Transfer::set_method(const OutgoingRequest& request) {
  const bool is_head = request.method == "HEAD";
  if (is_head) {
    set(CURLOPT_NOBODY, 1L);
  } else if (request.method == "GET" && request.body.empty()) {
    set(CURLOPT_HTTPGET, 1L);
  } else {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_POSTFIELDS, request.body.data());
  }
  set(CURLOPT_CUSTOMREQUEST, is_head ? nullptr : request.method.c_str());
}

OutgoingCall& Transfer::call_of(CURL* handle) {
  char* call = nullptr;
  curl_easy_getinfo(handle, CURLINFO_PRIVATE, &call);
  return *reinterpret_cast<OutgoingCall*>(call);
}

void Transfer::prepare_again() {
  found_closed_connection_ = false;
  set(CURLOPT_FRESH_CONNECT, 1L);
}

int Transfer::on_request(void* self, char* remote_address, char* local_address, int remote_port, int local_port) {
  const SocketEnds ends{.local_address = local_address,
                        .remote_address = remote_address,
                        .local_port = local_port,
                        .remote_port = remote_port};
  return static_cast<Transfer*>(self)->admits_request(ends) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

bool Transfer::admits_request(const SocketEnds& ends) {
  if (is_sent_) {
    was_restarted_ = true;
    return false;
  }
  if (opened_.empty() && !is_usable(sockets_.find(ends), protocol_)) {
    found_closed_connection_ = true;
    return false;
  }
  for (const curl_socket_t socket : opened_)
    if (local_port_of(socket) == ends.local_port) sockets_.add(ends, socket);
  is_sent_ = true;
  return true;
}

curl_socket_t Transfer::on_open_socket(void* self, curlsocktype, curl_sockaddr* address) {
  auto& transfer = *static_cast<Transfer*>(self);
  if (transfer.is_sent_) {
    transfer.was_restarted_ = true;
    return CURL_SOCKET_BAD;
  }
  const curl_socket_t socket = OpenSockets::open(*address);
  if (socket != CURL_SOCKET_BAD) transfer.opened_.push_back(socket);
  return socket;
}

std::size_t Transfer::on_header(char* bytes, std::size_t size, std::size_t count, void* self) {
  static_cast<Transfer*>(self)->collector_.add_line({bytes, size * count});
  return size * count;
}

std::size_t Transfer::on_body(char* bytes, std::size_t size, std::size_t count, void* self) {
  return static_cast<Transfer*>(self)->collector_.add_body({bytes, size * count}) ? size * count : 0;
}

std::string Transfer::describe(CURLcode code) const {
  if (was_restarted_) return "the server closed the reused connection before a response";
  if (code == CURLE_OK) return "the server closed the connection before a complete response";
  return error_[0] != '\0' ? error_.data() : curl_easy_strerror(code);
}

OutgoingResult Transfer::finish(CURLcode code) {
  if (!is_sent_) return NotSent{classify(code), describe(code)};
  const bool is_complete = code == CURLE_OK || collector_.is_body_truncated();
  if (is_complete && collector_.has_head()) return collector_.take();
  return Unknown{was_restarted_ ? CallFailure::connection_closed : classify_after_start(code), describe(code)};
}

}  // namespace latchkey::http
