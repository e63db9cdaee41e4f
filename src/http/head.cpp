#include "http/head.hpp"

#include <cstring>
#include <limits>

#include "http/chars.hpp"
#include "http/scan.hpp"

namespace latchkey::http {
namespace {

enum class Step { done, more, bad };

// Headers that must not be repeated, because two copies would be ambiguous.
enum Seen : unsigned {
  kHost = 1,
  kContentLength = 2,
  kTransferEncoding = 4,
  kAuthorization = 8,
  kContentType = 16,
  kIdempotencyKey = 32,
  kTenant = 64,
};

class HeadReader {
 public:
  HeadReader(std::string_view bytes, const HeadLimits& limits, Head& head)
      : begin_(bytes.data()), at_(bytes.data()), end_(bytes.data() + bytes.size()), limits_(limits), head_(head) {}

  Result<std::size_t> read() {
    reset();
    Step step = read_request_line();
    while (step == Step::done && !ended_) step = read_field();
    if (step == Step::done) step = check_framing();
    if (step == Step::more) step = check_room();
    if (step == Step::bad) return fail(code_, fault_);
    if (step == Step::more) return 0;
    return static_cast<std::size_t>(at_ - begin_);
  }

 private:
  void reset() {
    head_.fields.clear();
    head_.content_length.reset();
    head_.is_chunked = head_.is_http_1_0 = head_.expects_continue = false;
    head_.is_keep_alive = true;
  }

  Step bad(const char* fault, Code code = Code::BAD_REQUEST) {
    fault_ = fault, code_ = code;
    return Step::bad;
  }

  Step too_large(const char* fault) { return bad(fault, Code::HEADERS_TOO_LARGE); }

  // Checks the limits of a head that is valid so far but not complete.
  Step check_room() {
    const auto size = static_cast<std::size_t>(end_ - begin_);
    if (in_request_line_ && size > limits_.request_line_bytes_max) return too_large("the request line is too long");
    if (size >= limits_.bytes_max) return too_large("the head is too large");
    return Step::more;
  }

  Step read_request_line() {
    const char* const method = at_;
    while (at_ != end_ && is_in(kTokenChars, *at_)) ++at_;
    if (at_ == end_) return Step::more;
    if (at_ == method || *at_ != ' ') return bad("the request line does not begin with a method and one space");
    head_.method = {method, at_};

    const char* const target = ++at_;
    at_ = find_not_visible(at_, end_);
    if (at_ == end_) return Step::more;
    if (*at_ != ' ') return bad("the request target holds a character that it must not");
    head_.target = {target, at_};
    if (head_.target.find('#') != std::string_view::npos)
      return bad("the request target has a fragment (#…), which is never sent to a server");
    if (!is_target_allowed()) return bad("the request target must begin with a slash");

    constexpr std::string_view kVersion = " HTTP/1.";
    const auto left = static_cast<std::size_t>(end_ - at_);
    if (std::memcmp(at_, kVersion.data(), std::min(left, kVersion.size())) != 0)
      return bad("the version is not HTTP/1.1 or HTTP/1.0");
    if (left < kVersion.size() + 3) return Step::more;
    const char minor = at_[kVersion.size()];
    if (minor != '0' && minor != '1') return bad("the version is not HTTP/1.1 or HTTP/1.0");
    at_ += kVersion.size() + 1;
    if (at_[0] != '\r' || at_[1] != '\n') return bad("the request line does not end with CR LF");
    at_ += 2;
    head_.is_http_1_0 = minor == '0';
    head_.is_keep_alive = !head_.is_http_1_0;
    in_request_line_ = false;
    if (static_cast<std::size_t>(at_ - begin_) > limits_.request_line_bytes_max)
      return too_large("the request line is too long");
    return Step::done;
  }

  bool is_target_allowed() const {
    if (head_.target == "*") return head_.method == "OPTIONS";
    return head_.target.starts_with('/');
  }

  Step read_field() {
    if (at_ == end_) return Step::more;
    if (*at_ == '\r') return read_end();
    if (is_blank(*at_)) return bad("a header is continued on the next line");

    const char* const name = at_;
    while (at_ != end_ && is_in(kTokenChars, *at_)) ++at_;
    if (at_ == end_) return Step::more;
    if (at_ == name || *at_ != ':') return bad("a header's name is not a token followed by a colon");
    const std::string_view name_text{name, at_};

    const char* const value = ++at_;
    at_ = find_control(at_, end_);
    if (end_ - at_ < 2) return at_ == end_ || *at_ == '\r' ? Step::more : bad("a header holds a control character");
    if (at_[0] != '\r' || at_[1] != '\n') return bad("a header holds a control character");
    const std::string_view value_text = trim_blanks({value, at_});
    at_ += 2;

    if (head_.fields.size() == limits_.fields_max) return too_large("there are too many headers");
    head_.fields.push_back({name_text, value_text});
    return note(name_text, value_text);
  }

  Step read_end() {
    if (end_ - at_ < 2) return Step::more;
    if (at_[1] != '\n') return bad("a line holds a bare CR");
    at_ += 2;
    ended_ = true;
    if (static_cast<std::size_t>(at_ - begin_) > limits_.bytes_max) return too_large("the head is too large");
    return Step::done;
  }

  // Processes the headers that affect parsing. The length selects the candidates, which is cheaper than comparing
  // names.
  Step note(std::string_view name, std::string_view value) {
    switch (name.size()) {
      case 4:
        if (equals_ignoring_case(name, "host")) return note_host(value);
        break;
      case 6:
        if (equals_ignoring_case(name, "expect")) return note_expect(value);
        break;
      case 10:
        if (equals_ignoring_case(name, "connection")) return note_connection(value);
        break;
      case 12:
        if (equals_ignoring_case(name, "content-type")) return once(kContentType, "Content-Type is repeated");
        break;
      case 13:
        if (equals_ignoring_case(name, "authorization")) return once(kAuthorization, "Authorization is repeated");
        break;
      case 14:
        if (equals_ignoring_case(name, "content-length")) return note_content_length(value);
        break;
      case 15:
        if (equals_ignoring_case(name, "idempotency-key")) return once(kIdempotencyKey, "Idempotency-Key is repeated");
        if (equals_ignoring_case(name, "latchkey-tenant")) return once(kTenant, "Latchkey-Tenant is repeated");
        break;
      case 17:
        if (equals_ignoring_case(name, "transfer-encoding")) return note_transfer_encoding(value);
        break;
      default:
        break;
    }
    return Step::done;
  }

  Step once(Seen header, const char* fault) {
    if (seen_ & header) return bad(fault);
    seen_ |= header;
    return Step::done;
  }

  Step note_host(std::string_view value) {
    for (const char c : value)
      if (!is_in(kHostChars, c)) return bad("Host is not a host and a port");
    return once(kHost, "Host is repeated");
  }

  Step note_expect(std::string_view value) {
    if (!equals_ignoring_case(value, "100-continue")) return bad("Expect is not 100-continue");
    head_.expects_continue = true;
    return Step::done;
  }

  Step note_connection(std::string_view value) {
    while (!value.empty()) {
      const std::size_t comma = value.find(',');
      const std::string_view option = trim_blanks(value.substr(0, comma));
      if (equals_ignoring_case(option, "close")) closes_ = true;
      if (equals_ignoring_case(option, "keep-alive")) head_.is_keep_alive = true;
      value = comma == std::string_view::npos ? std::string_view{} : value.substr(comma + 1);
    }
    return Step::done;
  }

  Step note_content_length(std::string_view value) {
    if (value.empty()) return bad("Content-Length is empty");
    std::uint64_t length = 0;
    for (const char c : value) {
      if (!is_digit(c)) return bad("Content-Length is not a number");
      const auto digit = static_cast<std::uint64_t>(c - '0');
      if (length > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) return bad("Content-Length is too large");
      length = length * 10 + digit;
    }
    head_.content_length = length;
    return once(kContentLength, "Content-Length is repeated");
  }

  Step note_transfer_encoding(std::string_view value) {
    if (value != "chunked") return bad("Transfer-Encoding is not chunked");
    head_.is_chunked = true;
    return once(kTransferEncoding, "Transfer-Encoding is repeated");
  }

  Step check_framing() {
    if (closes_) head_.is_keep_alive = false;
    if (!(seen_ & kHost) && !head_.is_http_1_0) return bad("Host is missing");
    if ((seen_ & kTransferEncoding) && (seen_ & kContentLength))
      return bad("both Transfer-Encoding and Content-Length");
    if ((seen_ & kTransferEncoding) && head_.is_http_1_0) return bad("Transfer-Encoding in HTTP/1.0");
    if (head_.is_http_1_0) head_.expects_continue = false;
    return Step::done;
  }

  const char* const begin_;
  const char* at_;
  const char* const end_;
  const HeadLimits& limits_;
  Head& head_;
  unsigned seen_ = 0;
  bool in_request_line_ = true;
  bool ended_ = false;
  bool closes_ = false;
  const char* fault_ = "";
  Code code_ = Code::BAD_REQUEST;
};

}  // namespace

Result<std::size_t> parse_head(std::string_view bytes, const HeadLimits& limits, Head& head) {
  return HeadReader(bytes, limits, head).read();
}

std::optional<std::string_view> find_field(std::span<const Field> fields, std::string_view name) {
  for (const Field& field : fields)
    if (equals_ignoring_case(field.name, name)) return field.value;
  return std::nullopt;
}

}  // namespace latchkey::http
