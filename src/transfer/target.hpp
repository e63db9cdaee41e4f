// Target: the PostgreSQL database that receives a store. The whole copy is one transaction: a failure before its commit
// changes nothing, and other connections never see a partial copy.
//
// It acts as latchkey_engine, like a server. Throws MigrationError: STORE_UNAVAILABLE or STORE_FULL for errors of
// PostgreSQL.
#pragma once

#include "migrate/pg_connect.hpp"
#include "pg/codec.hpp"
#include "transfer/source.hpp"
#include "transfer/tally.hpp"

namespace latchkey::transfer {

class Target {
 public:
  // The database must have the schema of this version.
  explicit Target(const std::string& url);

  // See database_address.hpp.
  const std::string& address() const { return address_; }

  // Begins the transaction and locks the tables against other writers until its end.
  void begin();
  // The existing content: "runs, tokens". Empty if there is none.
  std::string find_contents();
  // The same without these tokens, unless they are revoked in the database.
  std::string find_contents_except(const std::vector<TokenRecord>& tokens);
  void remove_tokens();
  // True if the copy with this summary was committed in this database before. It also writes a row: when this
  // transaction is durable, the earlier commit is durable, too.
  bool find_copy(const Summary& of);

  pg::Rows run(const pg::Statement& statement);
  // Summarises the copy: counts the rows of the tables, and reads the content with the store's own readers.
  Summary read_back();
  // Records the copy for find_copy().
  void record_copy(const Summary& copy);
  // Raises the sequences of ids, fences and time above these marks, even if the transaction is rolled back.
  void raise(const Marks& marks);

  enum class CommitResult { committed, rolled_back, unknown };
  // `unknown`: the connection was lost before the reply, or the commit may not be replicated.
  CommitResult commit();

 private:
  void read_runs(StoreVisitor& into);
  void read_waits(StoreVisitor& into);
  void read_dead_letters(StoreVisitor& into);
  void read_members(const DeadLetter& dead_letter, StoreVisitor& into);
  void read_tokens(StoreVisitor& into);
  Counts count_rows();

  migrate::PgHandle handle_;
  std::string address_;
  bool warned_ = false;
};

// Writer: writes the content of a store into the target, a slice at a time.
class Writer final : public StoreVisitor {
 public:
  explicit Writer(Target& target) : target_(target) {}

  void add_run(const TransferredRun& moved) override;
  void add_wait(const Wait& wait) override;
  void add_dead_letter(const DeadLetter& dead_letter) override;
  void add_member(const DeadLetterMember& member, const DeadLetter& dead_letter) override;
  void add_token(const TokenRecord& token) override;
  // Writes the rest, after everything was added.
  void flush();

 private:
  struct Member {
    DeadLetterMember member;
    std::int64_t dead_letter = 0;
    std::string tenant;
  };
  void write_runs();
  void write_settlements();
  void write_keys();
  void write_duplicates();
  void write_waits();
  void write_members();
  void write_steps();
  void note_tenant(const std::string& tenant);

  Target& target_;
  std::vector<TransferredRun> runs_;
  std::size_t bytes_ = 0;  // of their inputs and results
  std::vector<Wait> waits_;
  std::vector<Member> members_;
  std::vector<std::string> tenants_;  // recorded in the database; sorted
};

}  // namespace latchkey::transfer
