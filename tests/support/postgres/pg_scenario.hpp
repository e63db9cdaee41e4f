// Scenario: a script that uses every operation of a store and records every reply as text. The text identifies runs by
// key or input, because ids and fences differ between executions. Everything else is equal, on the scenario's clock.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conformance/store_test.hpp"

namespace latchkey {

class Scenario {
 public:
  // `snapshot` describes the database as text; the scenario calls it after each part with many changes. `other` is
  // another store on the same database, which purges at the same time.
  Scenario(Store& store, ManualClock& clock, std::function<std::string()> snapshot, Store* other = nullptr)
      : store_(store), clock_(clock), snapshot_(std::move(snapshot)), other_(other) {}
  // Returns every reply and every snapshot, line by line. Throws if a reply does not arrive.
  std::vector<std::string> run();
  std::function<void()> before_purges = [] {};
  // The sum of both stores' purge counts. A run that both stores find at the same time counts twice.
  std::uint32_t purged = 0;

 private:
  Verbs verbs() { return Verbs(store_); }
  void note(std::string line) { lines_.push_back(std::move(line)); }
  void note_snapshot();
  Won win(const std::string& key, OnDoubt on_doubt = OnDoubt::rerun);
  void claim(const std::string& key);
  Settled settle(const Won& owned, Ending ending);
  void settle_all(const std::vector<Taken>& owned, Ending ending);
  RunId add(const std::string& key, std::vector<RunId> after = {}, OnFailed on_failed = OnFailed::wait);
  void add_plain(const std::string& prefix, int count);
  std::vector<Taken> take(std::uint32_t limit, const std::string& function = "f");
  void move(RunId id, Move wish);
  void sweep();

  void claims();
  void chains();
  void blocks();
  void moves();
  void doubts();
  void letters();
  void purges();

  Store& store_;
  ManualClock& clock_;
  const std::function<std::string()> snapshot_;
  Store* const other_;
  std::vector<std::string> lines_;
  std::vector<RunId> failed_;
};

}  // namespace latchkey
