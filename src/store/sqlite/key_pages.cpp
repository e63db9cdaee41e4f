#include "store/sqlite/key_pages.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/seeded_bug.hpp"

namespace latchkey {
namespace {

constexpr std::size_t kHash = 16, kSeq = 6, kEntry = kHash + kSeq;

std::int64_t first_of(const unsigned char* hash) {
  std::uint64_t top = 0;
  for (int i = 0; i < 8; ++i) top = top << 8 | hash[i];
  return static_cast<std::int64_t>(top >> 1);
}

const unsigned char* as_hash(const char* entry) { return reinterpret_cast<const unsigned char*>(entry); }

Seq seq_at(const char* entry) {
  Seq seq = 0;
  for (std::size_t i = 0; i < kSeq; ++i) seq = seq << 8 | static_cast<unsigned char>(entry[kHash + i]);
  return seq;
}

void append(std::string& to, const KeyWindow::Entry& entry) {
  char bytes[kEntry];
  std::memcpy(bytes, entry.first.bytes.data(), kHash);
  for (std::size_t i = 0; i < kSeq; ++i) bytes[kHash + i] = static_cast<char>(entry.second >> (8 * (kSeq - 1 - i)));
  to.append(bytes, kEntry);
}

// The offset of the first entry that is not below the hash, or the size if there is none.
std::size_t lower_bound(std::string_view entries, const ShortHash& hash) {
  std::size_t low = 0, high = entries.size() / kEntry;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (std::memcmp(entries.data() + middle * kEntry, hash.bytes.data(), kHash) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low * kEntry;
}

bool is_at(std::string_view entries, std::size_t at, const ShortHash& hash) {
  return at < entries.size() && std::memcmp(entries.data() + at, hash.bytes.data(), kHash) == 0;
}

}  // namespace

KeyPages::KeyPages(Database& database, std::size_t entries_most)
    : entries_most_(entries_most),
      find_(database.prepare(find_sql("find_key_page"))),
      next_(database.prepare(find_sql("next_key_page"))),
      read_after_(database.prepare(find_sql("read_key_pages"))),
      put_(database.prepare(find_sql("put_key_page"))),
      erase_(database.prepare(find_sql("erase_key_page"))) {}

std::optional<Seq> KeyPages::find(const ShortHash& hash) {
  const Rows rows(find_.bind(1, first_of(hash.bytes.data())));
  if (!find_.step()) return std::nullopt;
  const std::string_view entries = find_.bytes(1);
  const std::size_t at = lower_bound(entries, hash);
  if (!is_at(entries, at, hash)) return std::nullopt;
  return seq_at(entries.data() + at);
}

KeyPages::Page KeyPages::read(const ShortHash& hash) {
  const Rows rows(find_.bind(1, first_of(hash.bytes.data())));
  // There is no row before the first merge. Hashes below the first row belong to the first row.
  if (!find_.step()) return {};
  LK_ASSERT(find_.bytes(1).size() % kEntry == 0);
  return {find_.integer(0), std::string(find_.bytes(1))};
}

std::optional<std::int64_t> KeyPages::next_first(std::int64_t first) {
  const Rows rows(next_.bind(1, first));
  if (!next_.step()) return std::nullopt;
  return next_.integer(0);
}

std::optional<std::int64_t> KeyPages::read_after(std::int64_t first, std::size_t rows,
                                                 const std::function<void(const ShortHash&)>& visit) {
  std::optional<std::int64_t> last;
  read_after_.bind(1, first).bind(2, static_cast<std::int64_t>(rows));
  while (read_after_.step()) {
    last = read_after_.integer(0);
    const std::string_view entries = read_after_.bytes(1);
    for (std::size_t at = 0; at + kEntry <= entries.size(); at += kEntry) {
      ShortHash hash;
      std::memcpy(hash.bytes.data(), entries.data() + at, kHash);
      visit(hash);
    }
  }
  return last;
}

void KeyPages::merge(std::span<const KeyWindow::Entry> entries) {
  while (!entries.empty()) {
    const Page page = read(entries.front().first);
    const auto end = next_first(page.first);
    merged_.clear();
    std::size_t old = 0;
    for (; !entries.empty() && (!end || first_of(entries.front().first.bytes.data()) < *end);
         entries = entries.subspan(1)) {
      const ShortHash& hash = entries.front().first;
      const std::size_t from = old;
      while (old < page.entries.size() && std::memcmp(page.entries.data() + old, hash.bytes.data(), kHash) < 0)
        old += kEntry;
      merged_.append(page.entries, from, old - from);
      if (is_at(page.entries, old, hash)) old += kEntry;
      append(merged_, entries.front());
    }
    merged_.append(page.entries, old);
    write(page.first, merged_);
  }
}

void KeyPages::write(std::int64_t first, std::string_view entries) {
  const std::size_t count = entries.size() / kEntry;
  const std::size_t pages = (count + entries_most_ - 1) / entries_most_;
  for (std::size_t left = pages; !entries.empty(); --left) {
    std::size_t cut = left > 1 ? entries.size() / kEntry / left * kEntry : entries.size();
    // Entries with the same `first` must be in one row.
    while (cut < entries.size() &&
           first_of(as_hash(entries.data() + cut)) == first_of(as_hash(entries.data() + cut - kEntry)))
      cut += kEntry;
    put_.bind(1, first).bind_blob(2, entries.substr(0, cut)).run();
    entries.remove_prefix(cut);
    if (LK_SEEDED(split_drops_a_page)) break;
    if (!entries.empty()) first = first_of(as_hash(entries.data()));
  }
}

void KeyPages::erase(const ShortHash& hash, Seq seq) {
  Page page = read(hash);
  const std::size_t at = lower_bound(page.entries, hash);
  if (!is_at(page.entries, at, hash) || seq_at(page.entries.data() + at) != seq) return;
  page.entries.erase(at, kEntry);
  if (page.entries.empty()) {
    erase_.bind(1, page.first).run();
  } else {
    put_.bind(1, page.first).bind_blob(2, page.entries).run();
  }
}

}  // namespace latchkey
