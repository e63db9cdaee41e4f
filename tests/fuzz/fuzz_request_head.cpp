// The request gate on any bytes: it must not crash, accepted requests must satisfy its promises, and the result must
// not depend on how the bytes are split into reads.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "http/chunked.hpp"
#include "http/head.hpp"
#include "http/scan.hpp"

using namespace latchkey;
using namespace latchkey::http;

namespace {

bool is_within(std::string_view part, std::string_view whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void check_promises(const Head& head, std::string_view bytes) {
  LK_ASSERT(!head.method.empty() && is_within(head.method, bytes) && is_within(head.target, bytes));
  LK_ASSERT(head.target.starts_with('/') || head.target == "*");
  LK_ASSERT(!(head.is_chunked && (head.content_length || head.is_http_1_0)));
  LK_ASSERT(head.is_http_1_0 || find_field(head.fields, "host"));
  for (const Field& field : head.fields) {
    LK_ASSERT(!field.name.empty() && is_within(field.name, bytes) && is_within(field.value, bytes));
    for (const char c : field.value) LK_ASSERT(!is_control(c));
  }
}

void fuzz_head(std::string_view bytes) {
  Head head;
  const HeadLimits limits{.bytes_max = 2048, .request_line_bytes_max = 1024, .fields_max = 20};
  const Result<std::size_t> size = parse_head(bytes, limits, head);
  if (!size || *size == 0) return;
  LK_ASSERT(*size <= bytes.size() && *size <= limits.bytes_max);
  LK_ASSERT(bytes.substr(0, *size).ends_with("\r\n\r\n"));
  check_promises(head, bytes);
  // Bytes after the head do not change the result, and a head without its last byte is incomplete.
  Head again;
  LK_ASSERT(parse_head(bytes.substr(0, *size), limits, again) == *size);
  LK_ASSERT(parse_head(bytes.substr(0, *size - 1), limits, again) == std::size_t{0});
}

void fuzz_chunks(std::string_view bytes) {
  ChunkedDecoder whole(1000), dripped(1000);
  std::string whole_body, dripped_body;
  const Result<std::size_t> used = whole.feed(bytes, whole_body);
  std::size_t drip_used = 0;
  bool drip_failed = false;
  while (drip_used < bytes.size() && !dripped.is_done() && !drip_failed) {
    const Result<std::size_t> one = dripped.feed(bytes.substr(drip_used, 1), dripped_body);
    drip_failed = !one;
    drip_used += one.value_or(0);
  }
  LK_ASSERT(used.has_value() == !drip_failed);
  LK_ASSERT(whole_body.size() <= 1000 && whole_body == dripped_body);
  if (used) LK_ASSERT(*used == drip_used && whole.is_done() == dripped.is_done());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  fuzz_head(bytes);
  fuzz_chunks(bytes);
  return 0;
}
