// Tally: counts the content of a store and computes its SHA-256, in an encoding that is the same for every store. Two
// stores have the same content if and only if their summaries are equal.
#pragma once

#include <array>

#include "base/sha256.hpp"
#include "transfer/store_visitor.hpp"

namespace latchkey::transfer {

struct Counts {
  std::array<std::uint64_t, 6> runs{};  // by Status
  std::uint64_t keys = 0;
  std::uint64_t waits = 0;
  std::uint64_t duplicates = 0;  // runs with suppressed repeats
  std::uint64_t dead_letters = 0;
  std::uint64_t members = 0;
  std::uint64_t steps = 0;
  std::uint64_t tokens = 0;

  std::uint64_t all_runs() const;
  bool operator==(const Counts&) const = default;
};

struct Summary {
  Counts counts;
  Digest runs{}, waits{}, dead_letters{}, tokens{};  // of each kind
  Digest hash{};                                     // of the four

  bool operator==(const Summary&) const = default;
};

// The differences, for error messages: "counts of runs, hash of dead letters". Empty if the summaries are equal.
std::string describe_difference(const Summary& a, const Summary& b);

class Tally final : public StoreVisitor {
 public:
  void add_run(const TransferredRun& moved) override;
  void add_wait(const Wait& wait) override;
  void add_dead_letter(const DeadLetter& dead_letter) override;
  void add_member(const DeadLetterMember& member, const DeadLetter& dead_letter) override;
  void add_token(const TokenRecord& token) override;

  const Counts& counts() const { return counts_; }
  // Once, at the end.
  Summary finish();

 private:
  Counts counts_;
  Sha256 runs_, waits_, dead_letters_, tokens_;
};

}  // namespace latchkey::transfer
