#include "base/uuid.hpp"

#include "base/hex.hpp"

namespace latchkey {

Uuid make_uuid_v7(Instant at, std::uint64_t counter, std::uint64_t dice) {
  Uuid id;
  const auto ms = static_cast<std::uint64_t>(to_ms(at));
  for (int i = 0; i < 6; ++i) id.bytes[i] = static_cast<unsigned char>(ms >> (40 - 8 * i));
  const std::uint64_t high = counter >> 42 & 0xfff, low = counter & 0x3ff'ffff'ffff;
  id.bytes[6] = static_cast<unsigned char>(0x70 | high >> 8);
  id.bytes[7] = static_cast<unsigned char>(high);
  const std::uint64_t tail = std::uint64_t{2} << 62 | low << 20 | (dice & 0xfffff);
  for (int i = 0; i < 8; ++i) id.bytes[8 + i] = static_cast<unsigned char>(tail >> (56 - 8 * i));
  return id;
}

Instant uuid_time(const Uuid& id) {
  std::int64_t ms = 0;
  for (int i = 0; i < 6; ++i) ms = ms << 8 | id.bytes[i];
  return from_ms(ms);
}

std::string to_string(const Uuid& id) {
  std::string text = to_hex(id.bytes);
  for (const std::size_t at : {20, 16, 12, 8}) text.insert(at, 1, '-');
  return text;
}

std::optional<Uuid> parse_uuid(std::string_view text) {
  if (text.size() != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-') return std::nullopt;
  std::string digits;
  for (const char c : text)
    if (c != '-') digits += c;
  Uuid id;
  if (!from_hex(digits, id.bytes)) return std::nullopt;
  return id;
}

}  // namespace latchkey
