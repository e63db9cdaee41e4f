#include "http/client.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>

#include "http/chars.hpp"
#include "http/chunked.hpp"
#include "http/response_head.hpp"
#include "http/scan.hpp"

namespace latchkey::http {

// One call: its deadline, and the steps connect, send and receive.
class Client::Exchange {
 public:
  Exchange(Client& client, Duration timeout) : client_(client), deadline_(client.clock_->elapsed() + timeout) {}

  Result<void> connect();
  // Whether the open connection can be reused. It cannot when the server closed it or sent bytes without a request.
  bool is_usable() const;
  Result<void> send(std::string_view bytes);
  Result<ClientResponse> receive(bool has_body);
  bool has_sent() const { return has_sent_; }

 private:
  // Waits for `events`. Returns false when the deadline passes first.
  bool wait_for(short events) const;
  Result<void> connect_to(const addrinfo& address);
  // Appends received bytes to input_. Returns false when the server has closed the connection.
  Result<bool> receive_some();
  Result<void> receive_body(const ResponseHead& head, std::size_t head_bytes, ClientResponse& response);
  Result<void> receive_chunks(std::size_t head_bytes, std::string& body);

  Client& client_;
  const Duration deadline_;
  bool has_sent_ = false;
  std::string input_;
};

bool Client::Exchange::wait_for(short events) const {
  for (;;) {
    const auto left = std::max<std::int64_t>((deadline_ - client_.clock_->elapsed()).count(), 0);
    pollfd waited{.fd = client_.socket_, .events = events, .revents = 0};
    const int ready =
        ::poll(&waited, 1, static_cast<int>(std::min<std::int64_t>(left, std::numeric_limits<int>::max())));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

Result<void> Client::Exchange::connect() {
  client_.disconnect();
  const addrinfo hints{.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  const std::string& host = client_.url_.host;
  if (const int error = ::getaddrinfo(host.c_str(), std::to_string(client_.url_.port).c_str(), &hints, &found);
      error != 0)
    return fail(Code::SERVER_UNREACHABLE, "cannot find " + host + ": " + ::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, ::freeaddrinfo);
  Result<void> connected = fail(Code::SERVER_UNREACHABLE, host + " has no address");
  for (const addrinfo* address = found; address != nullptr && !connected; address = address->ai_next)
    connected = connect_to(*address);
  return connected;
}

Result<void> Client::Exchange::connect_to(const addrinfo& address) {
  const auto refuse = [&](int error) {
    client_.disconnect();
    return fail(Code::SERVER_UNREACHABLE, "cannot connect to " + client_.url_.authority + ": " + std::strerror(error));
  };
  client_.socket_ =
      ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol);
  if (client_.socket_ < 0) return refuse(errno);
  const int on = 1;
  ::setsockopt(client_.socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(client_.socket_, address.ai_addr, address.ai_addrlen) == 0) return {};
  if (errno != EINPROGRESS) return refuse(errno);
  if (!wait_for(POLLOUT)) return refuse(ETIMEDOUT);
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(client_.socket_, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return refuse(error);
  return {};
}

bool Client::Exchange::is_usable() const {
  if (client_.socket_ < 0) return false;
  char byte = 0;
  return ::recv(client_.socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

Result<void> Client::Exchange::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(client_.socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      has_sent_ = true;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    const bool must_wait = errno == EAGAIN || errno == EWOULDBLOCK;
    if (must_wait && wait_for(POLLOUT)) continue;
    // A server that rejects a request early (413) responds and closes the connection before it has read the body. The
    // send fails then, but the response may have arrived.
    if (has_sent_ && !must_wait) return {};
    return fail(has_sent_ ? Code::REPLY_LOST : Code::SERVER_UNREACHABLE,
                must_wait ? "the request could not be sent in time" : "the connection was lost");
  }
  return {};
}

Result<bool> Client::Exchange::receive_some() {
  for (;;) {
    char bytes[16 * 1024];
    const ssize_t count = ::recv(client_.socket_, bytes, sizeof bytes, 0);
    if (count == 0) return false;
    if (count > 0) {
      input_.append(bytes, static_cast<std::size_t>(count));
      return true;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
      return fail(Code::REPLY_LOST, std::string("the connection was lost: ") + std::strerror(errno));
    if (!wait_for(POLLIN)) return fail(Code::REPLY_LOST, "no complete response arrived in time");
  }
}

Result<ClientResponse> Client::Exchange::receive(bool has_body) {
  ResponseHead head;
  std::size_t head_bytes = 0;
  while (head_bytes == 0) {
    const Result<std::size_t> parsed = parse_response_head(input_, head);
    if (!parsed) return std::unexpected(parsed.error());
    if (*parsed != 0 && head.status < 200 && head.status != 101) {
      input_.erase(0, *parsed);  // an interim response, such as 100 Continue
      continue;
    }
    head_bytes = *parsed;
    if (head_bytes != 0) break;
    const Result<bool> more = receive_some();
    if (!more) return std::unexpected(more.error());
    if (!*more) return fail(Code::REPLY_LOST, "the server closed the connection without a response");
  }
  ClientResponse response{.status = head.status};
  for (const Field& field : head.fields)
    response.headers.push_back({std::string(field.name), std::string(field.value)});
  const bool is_empty = !has_body || head.status == 204 || head.status == 304;
  const bool has_end = is_empty || head.is_chunked || head.content_length;
  if (!is_empty)
    if (const Result<void> body = receive_body(head, head_bytes, response); !body) return std::unexpected(body.error());
  if (!head.is_keep_alive || !has_end) client_.disconnect();
  return response;
}

Result<void> Client::Exchange::receive_body(const ResponseHead& head, std::size_t head_bytes,
                                            ClientResponse& response) {
  if (head.is_chunked) return receive_chunks(head_bytes, response.body);
  const std::size_t max = client_.reply_bytes_max_;
  const auto too_large = [] { return fail(Code::REPLY_LOST, "the response is larger than the client accepts"); };
  if (head.content_length.value_or(0) > max) return too_large();
  const std::optional<std::uint64_t> length = head.content_length;
  input_.erase(0, head_bytes);
  while (!length || input_.size() < *length) {
    const Result<bool> more = receive_some();
    if (!more) return std::unexpected(more.error());
    if (!*more && length)
      return fail(Code::REPLY_LOST, "the server closed the connection before the end of its response");
    if (input_.size() > max) return too_large();
    if (!*more) break;
  }
  if (length && input_.size() > *length) return fail(Code::REPLY_LOST, "the server sent bytes after its response");
  response.body = std::move(input_);
  return {};
}

Result<void> Client::Exchange::receive_chunks(std::size_t head_bytes, std::string& body) {
  ChunkedDecoder decoder(client_.reply_bytes_max_);
  input_.erase(0, head_bytes);
  for (;;) {
    const Result<std::size_t> used = decoder.feed(input_, body);
    if (!used) return fail(Code::REPLY_LOST, "the response is malformed: " + used.error().detail);
    if (decoder.is_done()) return {};
    input_.clear();
    const Result<bool> more = receive_some();
    if (!more) return std::unexpected(more.error());
    if (!*more) return fail(Code::REPLY_LOST, "the server closed the connection before the end of its response");
  }
}

std::optional<std::string_view> ClientResponse::find(std::string_view name) const {
  for (const ClientHeader& header : headers)
    if (equals_ignoring_case(header.name, name)) return header.value;
  return std::nullopt;
}

Client::Client(Url url, Clock& clock, std::size_t reply_bytes_max)
    : url_(std::move(url)), clock_(&clock), reply_bytes_max_(reply_bytes_max) {}

Client::~Client() { disconnect(); }

Client::Client(Client&& other) noexcept
    : url_(std::move(other.url_)),
      clock_(other.clock_),
      reply_bytes_max_(other.reply_bytes_max_),
      socket_(std::exchange(other.socket_, -1)) {}

Client& Client::operator=(Client&& other) noexcept {
  if (this == &other) return *this;
  disconnect();
  url_ = std::move(other.url_);
  clock_ = other.clock_;
  reply_bytes_max_ = other.reply_bytes_max_;
  socket_ = std::exchange(other.socket_, -1);
  return *this;
}

void Client::disconnect() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

namespace {

bool is_clean(std::string_view text) {
  return find_control(text.data(), text.data() + text.size()) == text.data() + text.size();
}

Result<std::string> format_request(const Url& url, std::string_view method, std::string_view target,
                                   std::span<const ClientHeader> headers, std::string_view body) {
  const char* const target_end = target.data() + target.size();
  if (!target.starts_with('/') || find_not_visible(target.data(), target_end) != target_end)
    return fail(Code::INVALID_ARGUMENT, "not a request target: " + std::string(target));
  std::string out;
  out.reserve(256 + body.size());
  out.append(method).append(" ").append(url.path).append(target).append(" HTTP/1.1\r\nHost: ").append(url.authority);
  for (const ClientHeader& header : headers) {
    if (!is_clean(header.name) || !is_clean(header.value))
      return fail(Code::INVALID_ARGUMENT, "a header holds a control character: " + header.name);
    out.append("\r\n").append(header.name).append(": ").append(header.value);
  }
  if (!body.empty() || (method != "GET" && method != "HEAD"))
    out.append("\r\nContent-Length: ").append(std::to_string(body.size()));
  out.append("\r\n\r\n").append(body);
  return out;
}

}  // namespace

Result<ClientResponse> Client::call(std::string_view method, std::string_view target,
                                    std::span<const ClientHeader> headers, std::string_view body, Duration timeout) {
  const Result<std::string> request = format_request(url_, method, target, headers, body);
  if (!request) return std::unexpected(request.error());
  Exchange exchange(*this, timeout);
  const bool is_reused = exchange.is_usable();
  if (!is_reused)
    if (const Result<void> connected = exchange.connect(); !connected) return std::unexpected(connected.error());
  Result<void> sent = exchange.send(*request);
  if (!sent && is_reused && !exchange.has_sent()) {
    if (const Result<void> connected = exchange.connect(); !connected) return std::unexpected(connected.error());
    sent = exchange.send(*request);
  }
  Result<ClientResponse> reply = sent ? exchange.receive(method != "HEAD") : std::unexpected(sent.error());
  if (!reply) disconnect();
  return reply;
}

}  // namespace latchkey::http
