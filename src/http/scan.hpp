// Searches for the end of a header's value, sixteen bytes at a time on processors with SSE2.
#pragma once

#include <bit>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace latchkey::http {

constexpr bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

// Returns the first control character other than tab in [at, end), or end.
inline const char* find_control(const char* at, const char* end) {
#if defined(__SSE2__)
  const __m128i last_control = _mm_set1_epi8(0x1f);
  const __m128i tab = _mm_set1_epi8('\t');
  const __m128i del = _mm_set1_epi8(0x7f);
  for (; end - at >= 16; at += 16) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(block, last_control), block);
    const __m128i control = _mm_or_si128(_mm_andnot_si128(_mm_cmpeq_epi8(block, tab), low), _mm_cmpeq_epi8(block, del));
    if (const int mask = _mm_movemask_epi8(control)) return at + std::countr_zero(static_cast<unsigned>(mask));
  }
#endif
  while (at != end && !is_control(*at)) ++at;
  return at;
}

// Returns the first byte in [at, end) that is not a visible ASCII character, or end.
inline const char* find_not_visible(const char* at, const char* end) {
#if defined(__SSE2__)
  // As a signed byte, a value above 0x7e is 0x7f or negative. Two comparisons are enough therefore.
  const __m128i space = _mm_set1_epi8(0x20);
  const __m128i del = _mm_set1_epi8(0x7f);
  for (; end - at >= 16; at += 16) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i visible = _mm_and_si128(_mm_cmpgt_epi8(block, space), _mm_cmplt_epi8(block, del));
    const auto mask = static_cast<unsigned>(_mm_movemask_epi8(visible)) ^ 0xffffU;
    if (mask != 0) return at + std::countr_zero(mask);
  }
#endif
  while (at != end && *at > 0x20 && *at < 0x7f) ++at;
  return at;
}

}  // namespace latchkey::http
