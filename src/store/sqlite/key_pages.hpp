// KeyPages: lk_keys, the merged key index. A row is a page of sorted entries, so that a merge rewrites a page once for
// all the keys that fall into it; a row per key would cost a search of the tree for each.
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
  // As many entries as fit into one 4 KiB page of the file beside SQLite's own bytes.
  static constexpr std::size_t kEntriesMost = 184;

  explicit KeyPages(Database& database, std::size_t entries_most = kEntriesMost);

  std::optional<Seq> find(const ShortHash& hash);
  // Writer: adds or replaces these, which are in order.
  void merge(std::span<const KeyWindow::Entry> entries);
  // Every hash of the next so many rows after the one that begins with `first`; answers the last row's `first`, none
  // when there was none left.
  std::optional<std::int64_t> read_after(std::int64_t first, std::size_t rows,
                                         const std::function<void(const ShortHash&)>& visit);
  // Writer: forgets this key if it still belongs to this run.
  void erase(const ShortHash& hash, Seq seq);

 private:
  struct Page {
    std::int64_t first = 0;
    std::string entries;
  };

  Page read(const ShortHash& hash);
  std::optional<std::int64_t> next_first(std::int64_t first);
  // Splits what has grown too long for a page of the file.
  void write(std::int64_t first, std::string_view entries);

  const std::size_t entries_most_;
  Statement find_, next_, read_after_, put_, erase_;
  std::string merged_;
};

}  // namespace latchkey
