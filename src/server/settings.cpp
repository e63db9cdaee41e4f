#include "server/settings.hpp"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <charconv>

#include "pg/dsn.hpp"

namespace latchkey {
namespace {

std::unexpected<Error> wrong(std::string_view text) {
  return fail(Code::INVALID_ARGUMENT,
              "cannot listen on '" + std::string(text) + "': it must be ADDRESS:PORT, such as 127.0.0.1:7420");
}

std::unexpected<Error> wrong_store(std::string_view what) {
  return fail(Code::USAGE,
              "the store " + std::string(what) +
                  " is neither sqlite:FILE nor postgres://…: use --store postgres://USER@HOST/DATABASE, "
                  "or --store sqlite:FILE or a path; without --store it is latchkey.db in the data folder");
}

constexpr std::string_view kSmall = "abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+";

// True for a libpq connection string, host=… dbname=….
bool looks_like_settings(std::string_view store) {
  store.remove_prefix(std::min(store.find_first_not_of(" \t\n'\""), store.size()));
  const std::size_t name = std::min(store.find_first_not_of(std::string(kSmall) + "_"), store.size());
  const std::size_t next = store.find_first_not_of(' ', name);
  return name > 0 && next != store.npos && store[next] == '=';
}

}  // namespace

std::string find_store_file(std::string_view store, const std::string& data_dir) {
  if (store.starts_with("sqlite:")) store.remove_prefix(7);
  return store.empty() ? data_dir + "/latchkey.db" : std::string(store);
}

Result<void> check_store(std::string_view store) {
  if (pg::names_postgres(store)) return {};
  if (store.starts_with("sqlite:")) {
    store.remove_prefix(7);
    if (store.empty() || store.contains("://")) return wrong_store("'sqlite:' without a file");
    return {};
  }
  if (store.find_first_not_of(" \t\n") == store.npos) return wrong_store("'' (is a variable unset?)");
  if (looks_like_settings(store)) return wrong_store("'keyword=value …'");
  const std::size_t scheme = std::min(store.find_first_not_of(kLetters), store.size());
  if (store.contains("://") || (scheme > 0 && scheme < store.size() && store[scheme] == ':'))
    return wrong_store("'" + std::string(store.substr(0, scheme)) + ":…'");
  return {};
}

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
