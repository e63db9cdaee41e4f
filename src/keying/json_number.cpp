#include "keying/json_number.hpp"

#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/assert.hpp"

namespace latchkey {
namespace {

using Kind = JsonNumber::Kind;

// Decimals with at most this many significant digits map one to one to doubles of ordinary size (DBL_DIG).
constexpr std::size_t SAFE_DIGITS = 15;

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

const char* skip_digits(const char* at) {
  while (is_digit(*at)) ++at;
  return at;
}

JsonNumber verbatim(const char* text, const char* stop, const char* end) {
  return {.kind = Kind::VERBATIM, .text = text, .size = static_cast<std::size_t>(stop - text), .end = end};
}

// The fewest digits that are read back as the same double: the value is 0.d1…dk × 10^exponent, without its sign.
struct Shortest {
  char digits[20];
  std::size_t count = 0;
  int exponent = 0;

  std::string_view text() const { return {digits, count}; }
};

Shortest find_shortest(double value) {
  char text[32];  // "d.ddde±xx"
  const auto done = std::to_chars(text, text + sizeof text, std::abs(value), std::chars_format::scientific);
  LK_ASSERT(done.ec == std::errc{});
  Shortest shortest;
  const char* from = text;
  shortest.digits[shortest.count++] = *from++;
  if (*from == '.')
    for (++from; is_digit(*from); ++from) shortest.digits[shortest.count++] = *from;
  ++from;
  std::from_chars(from + (*from == '+'), done.ptr, shortest.exponent);
  ++shortest.exponent;
  return shortest;
}

// True if the literal (from after its sign) is exactly the number that ECMAScript prints for its double.
bool is_printed_exactly(double value, const char* at, const char* end) {
  const Shortest shortest = find_shortest(value);
  std::size_t seen = 0;  // number of digits, from the first one that is not 0
  std::int64_t exponent = 0;
  bool after_point = false;
  for (; at != end && *at != 'e' && *at != 'E'; ++at) {
    if (*at == '.') {
      after_point = true;
      continue;
    }
    const bool leads = seen == 0 && *at == '0';
    if (after_point ? leads : !leads) exponent += after_point ? -1 : 1;
    if (leads) continue;
    if (*at != (seen < shortest.count ? shortest.digits[seen] : '0')) return false;
    ++seen;
  }
  std::int64_t written = 0;
  if (at != end) std::from_chars(at + 1 + (at[1] == '+'), end, written);
  return seen >= shortest.count && shortest.exponent == exponent + written;
}

// From this number on all doubles are integers, and not every integer is a double.
constexpr double FIRST_GAP = 9007199254740992;  // 2^53

JsonNumber compute(const char* text, const char* digits, const char* end) {
  double value = 0;
  const auto done = std::from_chars(text, end, value);
  if (done.ec != std::errc{}) return {.kind = Kind::UNBOUNDED, .end = end};
  if (std::abs(value) >= FIRST_GAP && !is_printed_exactly(value, digits, end))
    return {.kind = Kind::INEXACT, .end = end};
  return {.kind = Kind::COMPUTED, .value = value, .end = end};
}

// Reads a fraction without exponent: `digits` is after the sign, `point` at the point.
//
// Without its trailing zeros, a literal of at most 15 digits is already the text that ECMAScript prints. The printed
// digits are the fewest that are read back as the same double. They and the literal have at most 15 digits, and two
// different decimals of at most 15 digits are never the same double, so the digits are equal. ECMAScript uses plain
// notation from 1e-6 to below 1e21, so at most five zeros may follow "0.".
JsonNumber read_fraction(const char* text, const char* digits, const char* point, const char* end) {
  const std::size_t count = static_cast<std::size_t>(end - digits) - 1;
  if (count > SAFE_DIGITS) return compute(text, digits, end);
  const char* stop = end;
  while (stop[-1] == '0') --stop;
  const bool below_one = *digits == '0';
  if (stop[-1] != '.') {
    if (below_one && std::memcmp(point + 1, "000000", 6) == 0) return compute(text, digits, end);
    return verbatim(text, stop, end);
  }
  return verbatim(below_one ? digits : text, point, end);  // -0.0 is 0
}

// ECMA-262 Number::toString.
char* format_shortest(const Shortest& shortest, char* out) {
  const std::string_view digits = shortest.text();
  const int k = static_cast<int>(digits.size()), n = shortest.exponent;
  const auto put = [&](std::string_view part) {
    out = static_cast<char*>(std::memcpy(out, part.data(), part.size())) + part.size();
  };
  const auto put_zeros = [&](int count) { std::memset(out, '0', static_cast<std::size_t>(count)), out += count; };
  if (k <= n && n <= 21) {
    put(digits);
    put_zeros(n - k);
  } else if (0 < n && n <= 21) {
    put(digits.substr(0, static_cast<std::size_t>(n)));
    put(".");
    put(digits.substr(static_cast<std::size_t>(n)));
  } else if (-6 < n && n <= 0) {
    put("0.");
    put_zeros(-n);
    put(digits);
  } else {
    put(digits.substr(0, 1));
    if (k > 1) put("."), put(digits.substr(1));
    put(n > 0 ? "e+" : "e");
    out = std::to_chars(out, out + 5, n - 1).ptr;
  }
  return out;
}

}  // namespace

JsonNumber read_number(const char* text) {
  const char* digits = text + (*text == '-');
  if (!is_digit(*digits)) return {.kind = Kind::MALFORMED, .end = digits};
  const char* end = *digits == '0' ? digits + 1 : skip_digits(digits + 1);
  if (is_digit(*end)) return {.kind = Kind::MALFORMED, .end = end};
  const char* point = nullptr;
  if (*end == '.') {
    point = end;
    end = skip_digits(point + 1);
    if (end == point + 1) return {.kind = Kind::MALFORMED, .end = end};
  }
  if (*end == 'e' || *end == 'E') {
    const char* exponent = end + 1 + (end[1] == '+' || end[1] == '-');
    end = skip_digits(exponent);
    if (end == exponent) return {.kind = Kind::MALFORMED, .end = end};
    return compute(text, digits, end);
  }
  if (point != nullptr) return read_fraction(text, digits, point, end);
  if (*digits == '0') return verbatim(digits, end, end);  // -0 is 0
  if (static_cast<std::size_t>(end - digits) > SAFE_DIGITS) return compute(text, digits, end);
  return verbatim(text, end, end);
}

char* write_number(double value, char* out) {
  if (value == 0) return *out = '0', out + 1;
  if (value < 0) *out++ = '-';
  return format_shortest(find_shortest(value), out);
}

}  // namespace latchkey
