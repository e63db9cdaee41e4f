// The baseline: a careful hand-written program. A key table with the key as clustered primary key, one writer
// thread, group commit, the same pragmas. baseline_bench N prints claim + settle pairs per second.
#include <fmt/format.h>
#include <sqlite3.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "bench.hpp"
#include "store/sqlite/database.hpp"

namespace latchkey::bench {
namespace {

const std::string kResult(200, 'r');

struct Operation {
  std::uint64_t number;
  bool settle;
};

int run(int argc, char** argv) {
  const std::uint64_t pairs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200'000;
  constexpr unsigned kCallers = 1024;
  const Folder folder("baseline");
  Database database(folder.file("t.db"), nullptr, Access::write);
  database.execute(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -65536;"
      "CREATE TABLE t (k BLOB PRIMARY KEY, status INTEGER NOT NULL, fence INTEGER NOT NULL, lease_until INTEGER NOT "
      "NULL,"
      " created_at INTEGER NOT NULL, settled_at INTEGER, result BLOB) WITHOUT ROWID");
  int wal_pages = 0;
  sqlite3_wal_hook(
      database.handle(),
      [](void* pages, sqlite3*, const char*, int count) {
        *static_cast<int*>(pages) = count;
        return SQLITE_OK;
      },
      &wal_pages);
  Statement begin = database.prepare("BEGIN IMMEDIATE"), commit = database.prepare("COMMIT");
  Statement claim = database.prepare(
      "INSERT OR IGNORE INTO t (k, status, fence, lease_until, created_at) VALUES (?1, 1, ?2, ?3, ?4)");
  Statement settle = database.prepare(
      "UPDATE t SET status = 2, settled_at = ?2, result = ?3 WHERE k = ?1 AND status = 1 AND fence = ?4");

  std::vector<Operation> batch, next;
  for (unsigned i = 0; i < kCallers; ++i) next.push_back({i, false});
  std::uint64_t started = kCallers, done = 0;
  const auto start = Stopwatch::now();
  // The callers' side is free here: the next operations are ready when a commit ends. That favours the baseline.
  while (done < pairs) {
    batch.swap(next);
    next.clear();
    begin.run();
    for (const Operation& operation : batch) {
      const Digest key = sha256(key_text(operation.number));
      const auto fence = static_cast<std::int64_t>(operation.number + 1);
      if (operation.settle) {
        settle.bind_blob(1, std::span<const unsigned char>(key)).bind(2, 2).bind_blob(3, kResult).bind(4, fence).run();
        done += 1;
        if (started < pairs) next.push_back({started++, false});
      } else {
        claim.bind_blob(1, std::span<const unsigned char>(key)).bind(2, fence).bind(3, 1).bind(4, 1).run();
        next.push_back({operation.number, true});
      }
    }
    commit.run();
    if (wal_pages > 4'000) {
      sqlite3_wal_checkpoint_v2(database.handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
      wal_pages = 0;
    }
  }
  fmt::print(R"({{"pairs_s":{:.0f}}})"
             "\n",
             static_cast<double>(pairs) / seconds_since(start));
  return 0;
}

}  // namespace
}  // namespace latchkey::bench

int main(int argc, char** argv) { return latchkey::bench::run(argc, argv); }
