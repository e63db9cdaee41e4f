#include "keying/canonical_json.hpp"

namespace latchkey {
namespace {

// The size up to which a thread reuses a buffer for its next text.
constexpr std::size_t BYTES_RETAINED_MAX = std::size_t{4} << 20;

// Calls use(canonical text) with this thread's canonicalizer.
template <class Use>
auto with_canonical(std::string_view text, Use use) -> Result<decltype(use(std::string_view{}))> {
  static thread_local Canonicalizer canonicalizer;
  const auto canonical = canonicalizer.canonicalize(text);
  Result<decltype(use(std::string_view{}))> used(std::unexpect);
  if (canonical)
    used = use(*canonical);
  else
    used.error() = canonical.error();
  canonicalizer.shrink(BYTES_RETAINED_MAX);
  return used;
}

}  // namespace

Result<std::string_view> Canonicalizer::canonicalize(std::string_view text) {
  if (auto parsed = tree_.parse(text); !parsed) return std::unexpected(std::move(parsed.error()));
  const std::size_t needed = tree_.written_max() + JsonWriter::SLACK;
  if (capacity_ < needed) {
    capacity_ = needed + needed / 2;
    out_ = std::make_unique_for_overwrite<char[]>(capacity_);
  }
  const auto end = writer_.write(tree_, 0, MemberOrder::UTF16, out_.get());
  if (!end) return std::unexpected(end.error());
  return std::string_view(out_.get(), *end);
}

void Canonicalizer::shrink(std::size_t bytes_retained) {
  tree_.shrink(bytes_retained);
  if (capacity_ > bytes_retained) out_.reset(), capacity_ = 0;
}

Result<std::string> canonical_json(std::string_view text) {
  return with_canonical(text, [](std::string_view canonical) { return std::string(canonical); });
}

Result<void> append_canonical_json(std::string_view text, std::string& out) {
  const auto size = with_canonical(text, [&](std::string_view canonical) { return out.append(canonical).size(); });
  if (!size) return std::unexpected(size.error());
  return {};
}

Result<Digest> compute_fingerprint(std::string_view text) {
  return with_canonical(text, [](std::string_view canonical) { return sha256(canonical); });
}

}  // namespace latchkey
