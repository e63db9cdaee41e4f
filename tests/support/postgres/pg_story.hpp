// Story: a little of everything that a store does, every answer written down. Runs go by their keys and inputs: ids and
// fences differ from one time to the next, all else does not, on a clock that the story moves.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conformance/store_test.hpp"

namespace latchkey {

class Story {
 public:
  // `look`: what there is to see of it from outside, asked for where much has happened. `other`: of the same runs; it
  // purges at the same time.
  Story(Store& store, ManualClock& clock, std::function<std::string()> look, Store* other = nullptr)
      : store_(store), clock_(clock), look_(std::move(look)), other_(other) {}
  // Every answer, and what was seen, line by line. Throws when an answer does not come.
  std::vector<std::string> tell();
  std::function<void()> before_purges = [] {};
  // Runs, as both say. Two that find the same one at the same time both count it.
  std::uint32_t purged = 0;

 private:
  Verbs verbs() { return Verbs(store_); }
  void note(std::string line) { lines_.push_back(std::move(line)); }
  void look();
  Won win(const std::string& key, OnDoubt on_doubt = OnDoubt::rerun);
  void claim(const std::string& key);
  Settled end(const Won& owned, Ending ending);
  void end_all(const std::vector<Taken>& owned, Ending ending);
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
  const std::function<std::string()> look_;
  Store* const other_;
  std::vector<std::string> lines_;
  std::vector<RunId> failed_;
};

}  // namespace latchkey
