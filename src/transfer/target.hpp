// Target: the PostgreSQL that a store is moved into: one transaction, from the first row to the last. What breaks
// before its end leaves nothing, and nobody sees half of it.
//
// It acts as latchkey_engine, as servers do. Throws MigrationError; what PostgreSQL refuses is STORE_UNAVAILABLE, or
// STORE_FULL.
#pragma once

#include "migrate/pg_connect.hpp"
#include "pg/codec.hpp"
#include "transfer/source.hpp"
#include "transfer/tally.hpp"

namespace latchkey::transfer {

class Target {
 public:
  // The schema must be there, and this version's.
  explicit Target(const std::string& url);

  // See place.hpp.
  const std::string& place() const { return place_; }

  // Keeps every other writer out until the end.
  void begin();
  // What there is already: "runs, tokens". Empty: nothing.
  std::string find_contents();
  // The same but for these tokens, as long as they are good.
  std::string find_contents_but(const std::vector<TokenRecord>& tokens);
  void remove_tokens();
  // Whether the copy with this summary was committed here before. Then something is written nevertheless: when that is
  // durable, so is the copy.
  bool find_copy(const Summary& of);

  pg::Rows run(const pg::Statement& statement);
  // The counts of the tables; of the rest what the store's own readers make of the rows.
  Summary read_back();
  // What find_copy() finds it by.
  void name(const Summary& copy);
  // Ids, fences and time go on above these. Kept whatever becomes of the transaction; nothing is ever lowered.
  void raise(const Marks& marks);

  enum class CommitResult { committed, rolled_back, unknown };
  // `unknown`: the connection went before the answer came, or the commit may not be replicated.
  CommitResult commit();

 private:
  void read_runs(Sink& into);
  void read_waits(Sink& into);
  void read_letters(Sink& into);
  void read_members(const DeadLetter& letter, Sink& into);
  void read_tokens(Sink& into);
  void read_catalog(Sink& into);
  void read_audit(Sink& into);
  Counts count_rows();

  migrate::PgHandle handle_;
  std::string place_;
  bool warned_ = false;
};

// Takes what a store holds and writes it, a slice at a time.
class Writer final : public Sink {
 public:
  explicit Writer(Target& target) : target_(target) {}

  void add_run(const MovedRun& moved) override;
  void add_wait(const Wait& wait) override;
  void add_letter(const DeadLetter& letter) override;
  void add_member(const DeadLetterMember& member, const DeadLetter& letter) override;
  void add_token(const TokenRecord& token) override;
  void add_record(const CatalogRecord& record) override;
  void add_audit(const AuditEntry& entry) override;
  // What is left, once all was added.
  void flush();

 private:
  struct Member {
    DeadLetterMember member;
    std::int64_t letter = 0;
    std::string tenant;
  };
  void write_runs();
  void write_settlements();
  void write_keys();
  void write_duplicates();
  void write_waits();
  void write_members();
  void write_steps();
  // target_catalog.cpp
  void write_records();
  void write_audit();
  void note_tenant(const std::string& tenant);

  Target& target_;
  std::vector<MovedRun> runs_;
  std::size_t bytes_ = 0;  // of their inputs and results
  std::vector<Wait> waits_;
  std::vector<Member> members_;
  std::vector<CatalogRecord> records_;
  std::vector<AuditEntry> audit_;
  std::size_t catalog_bytes_ = 0;     // of records_ and audit_
  std::vector<std::string> tenants_;  // noted, sorted
};

}  // namespace latchkey::transfer
