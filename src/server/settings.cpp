#include "server/settings.hpp"

#include <boost/asio/ip/address.hpp>
#include <charconv>

namespace latchkey {
namespace {

std::unexpected<Error> wrong(std::string_view text) {
  return fail(Code::INVALID_ARGUMENT,
              "cannot listen on '" + std::string(text) + "': it must be ADDRESS:PORT, such as 127.0.0.1:7420");
}

}  // namespace

Result<ListenAddress> parse_listen(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) return wrong(text);
  const std::string_view digits = text.substr(colon + 1);
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != host.npos)
    return wrong(text);
  if (host == "localhost") host = "127.0.0.1";
  ListenAddress at;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), at.port);
  if (digits.empty() || fault != std::errc{} || end != digits.data() + digits.size()) return wrong(text);
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(std::string(host), error);
  if (error) return wrong(text);
  at.address = host;
  at.is_loopback = address.is_loopback();
  return at;
}

std::string format_address(const std::string& address, std::uint16_t port) {
  const bool is_v6 = address.find(':') != std::string::npos;
  return (is_v6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

}  // namespace latchkey
