#include "wire/json_out.hpp"

#include <charconv>
#include <chrono>

#include "base/base64.hpp"
#include "http/problem.hpp"
#include "wire/json_in.hpp"

namespace latchkey::wire {
namespace {

void put_digits(char* at, unsigned number, int digits) {
  for (int i = digits - 1; i >= 0; --i, number /= 10) at[i] = static_cast<char>('0' + number % 10);
}

}  // namespace

void append_instant(std::string& out, Instant at) {
  using namespace std::chrono;
  const auto day = floor<days>(at);
  const year_month_day date(day);
  const int year = static_cast<int>(date.year());
  if (year < 0 || year > 9999) {
    out.append(format_rfc3339(at));
    return;
  }
  const auto ms = static_cast<unsigned>((at - day).count());
  char text[] = "0000-00-00T00:00:00.000Z";
  put_digits(text, static_cast<unsigned>(year), 4);
  put_digits(text + 5, static_cast<unsigned>(date.month()), 2);
  put_digits(text + 8, static_cast<unsigned>(date.day()), 2);
  put_digits(text + 11, ms / 3'600'000, 2);
  put_digits(text + 14, ms / 60'000 % 60, 2);
  put_digits(text + 17, ms / 1000 % 60, 2);
  put_digits(text + 20, ms % 1000, 3);
  out.append(text, sizeof text - 1);
}

void append_uuid(std::string& out, const Uuid& id) {
  constexpr char kDigits[] = "0123456789abcdef";
  char text[36];
  std::size_t at = 0;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text[at++] = '-';
    text[at++] = kDigits[id.bytes[i] >> 4];
    text[at++] = kDigits[id.bytes[i] & 15];
  }
  out.append(text, sizeof text);
}

void append_number(std::string& out, std::uint64_t number) {
  char text[20];
  out.append(text, std::to_chars(text, text + sizeof text, number).ptr);
}

std::string& ObjectOut::member(std::string_view name) {
  if (!is_first_) out_.push_back(',');
  is_first_ = false;
  out_.push_back('"');
  out_.append(name);
  out_.append("\":");
  return out_;
}

ObjectOut& ObjectOut::text(std::string_view name, std::string_view value) {
  http::append_json_string(member(name), value);
  return *this;
}

ObjectOut& ObjectOut::word(std::string_view name, std::string_view value) {
  member(name).append("\"").append(value).append("\"");
  return *this;
}

ObjectOut& ObjectOut::number(std::string_view name, std::int64_t value) {
  std::string& out = member(name);
  if (value < 0) out.push_back('-');
  append_number(out, value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value));
  return *this;
}

ObjectOut& ObjectOut::flag(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }

ObjectOut& ObjectOut::instant(std::string_view name, Instant at) {
  std::string& out = member(name);
  out.push_back('"');
  append_instant(out, at);
  out.push_back('"');
  return *this;
}

ObjectOut& ObjectOut::id(std::string_view name, const Uuid& id) {
  std::string& out = member(name);
  out.push_back('"');
  append_uuid(out, id);
  out.push_back('"');
  return *this;
}

ObjectOut& ObjectOut::raw(std::string_view name, std::string_view json) {
  member(name).append(json);
  return *this;
}

ObjectOut& ObjectOut::payload(std::string_view name, std::string_view bytes) {
  if (bytes.empty()) return *this;
  if (is_json(bytes)) return raw(name, bytes);
  return word(std::string(name) + "_base64", encode_base64(bytes));
}

}  // namespace latchkey::wire
