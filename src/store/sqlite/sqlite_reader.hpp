// SqliteReader: reads of committed data on its own connection, so that reads never wait for the writer. Any thread may
// call; calls execute one after the other.
#pragma once

#include <mutex>

#include "store/sqlite/key_pages.hpp"
#include "store/sqlite/sqlite_tables.hpp"

namespace latchkey {

class SqliteReader {
 public:
  SqliteReader(const std::string& file, const char* vfs, const KeyWindow& window);

  std::optional<Run> find(const std::optional<std::string>& tenant, RunId id);
  std::optional<Run> find_latest(const KeyName& name);
  Page list(const ListQuery& query);
  std::optional<Duplicates> find_duplicates(RunId id);

  DeadLetterPage list_dead_letters(const DeadLetterQuery& query);
  std::optional<DeadLetter> find_dead_letter(const std::optional<std::string>& tenant, Uuid id);
  std::uint64_t count_unacknowledged_dead_letters();
  std::vector<DeadLetterMember> list_members(Uuid dead_letter, std::uint32_t limit, MemberPosition after);
  std::vector<TokenRecord> list_tokens();

 private:
  // Seqs below `before`, newest first, that may match the query. Each run is checked when it is read.
  std::vector<Seq> candidates(const ListQuery& query, Seq before, std::uint32_t limit);
  std::vector<Seq> candidates_of(std::int64_t scope, Seq before, std::uint32_t limit, Seq listed);
  std::vector<Seq> all(Statement& statement);
  // Reads a run by read_run_, or without its payloads by read_bare_.
  std::optional<Run> read(Seq seq, Statement& statement);
  Seq listed_mark();

  std::mutex mutex_;
  Database database_;
  const KeyWindow& window_;
  Scopes scopes_;
  Statement read_run_, read_bare_;
  KeyPages keys_;
};

}  // namespace latchkey
