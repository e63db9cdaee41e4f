// KeyPages: lk_keys, the merged key index. A row is a page of sorted entries, so that a merge rewrites a page once for
// all its new keys; a row per key would cost one search of the tree per key.
//
//   lk_keys (first, entries)     entries: 16 bytes of hash, 6 of seq, in order of hash; a row covers [first, next row's
//   first)
//
// `first` is the top 63 bits of the hash: as an integer it orders as the hash does. Not safe from two threads.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "store/sqlite/database.hpp"
#include "store/sqlite/key_window.hpp"

namespace latchkey {

class KeyPages {
 public:
  // The number of entries that fit into one 4 KiB page of the file.
  static constexpr std::size_t kEntriesMost = 184;

  explicit KeyPages(Database& database, std::size_t entries_most = kEntriesMost);

  std::optional<Seq> find(const ShortHash& hash);
  // Writer: adds or replaces these entries, which must be sorted.
  void merge(std::span<const KeyWindow::Entry> entries);
  // Passes on every hash of the next `rows` rows after the one that begins with `first`. Returns the `first` of the
  // last row; none if no row was left.
  std::optional<std::int64_t> read_after(std::int64_t first, std::size_t rows,
                                         const std::function<void(const ShortHash&)>& visit);
  // Writer: erases this key if it still belongs to this run.
  void erase(const ShortHash& hash, Seq seq);

 private:
  struct Page {
    std::int64_t first = 0;
    std::string entries;
  };

  Page read(const ShortHash& hash);
  std::optional<std::int64_t> next_first(std::int64_t first);
  // Splits entries that are too long for one page of the file.
  void write(std::int64_t first, std::string_view entries);

  const std::size_t entries_most_;
  Statement find_, next_, read_after_, put_, erase_;
  std::string merged_;
};

}  // namespace latchkey
