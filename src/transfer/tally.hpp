// Tally: how much a store holds, and the SHA-256 of all of it in one encoding that depends on no store. Two stores hold
// the same if and only if their summaries are equal.
#pragma once

#include <array>

#include "base/sha256.hpp"
#include "transfer/sink.hpp"

namespace latchkey::transfer {

struct Counts {
  std::array<std::uint64_t, 6> runs{};  // by Status
  std::uint64_t keys = 0;
  std::uint64_t waits = 0;
  std::uint64_t duplicates = 0;  // runs with suppressed repeats
  std::uint64_t letters = 0;
  std::uint64_t members = 0;
  std::uint64_t steps = 0;
  std::uint64_t tokens = 0;
  std::uint64_t records = 0;  // of the catalog, deleted ones included
  std::uint64_t audit = 0;

  std::uint64_t all_runs() const;
  bool operator==(const Counts&) const = default;
};

struct Summary {
  Counts counts;
  Digest runs{}, waits{}, letters{}, tokens{}, catalog{};  // of each kind; `catalog` includes the audit log
  Digest hash{};                                           // of all of these

  bool operator==(const Summary&) const = default;
};

// What is not the same, for people: "counts of runs, hash of dead letters". Empty: they are equal.
std::string describe_difference(const Summary& a, const Summary& b);

class Tally final : public Sink {
 public:
  void add_run(const MovedRun& moved) override;
  void add_wait(const Wait& wait) override;
  void add_letter(const DeadLetter& letter) override;
  void add_member(const DeadLetterMember& member, const DeadLetter& letter) override;
  void add_token(const TokenRecord& token) override;
  void add_record(const CatalogRecord& record) override;
  void add_audit(const AuditEntry& entry) override;

  const Counts& counts() const { return counts_; }
  // Once, at the end.
  Summary finish();

 private:
  Counts counts_;
  Sha256 runs_, waits_, letters_, tokens_, catalog_;
};

}  // namespace latchkey::transfer
