// Maintenance: the periodic work of a store. The engine's maintenance thread calls it; no other part needs to.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "model/decide.hpp"
#include "store/done.hpp"
#include "store/duplicates.hpp"

namespace latchkey {

struct Swept {
  std::uint32_t changed = 0;
  bool more = false;  // the limit was reached: call again at once
};

class Maintenance {
 public:
  virtual ~Maintenance() = default;

  // Ends expired leases, and fails runs whose time for further attempts is over.
  virtual void sweep(std::uint32_t limit, Done<Swept> done) = 0;
  // Deletes runs whose window and retention are over, oldest first. A run stays while it is in doubt, while its dead
  // letter is not acknowledged, and while another run waits for it. An acknowledged dead letter is deleted with the
  // last of its runs. Audit entries older than their retention are deleted, too, up to `limit` of them.
  virtual void purge(Retention retention, std::uint32_t limit, Done<Swept> done) = 0;
  // Adds to the counts of suppressed duplicates, and skips runs that no longer exist. A failure has added nothing.
  virtual void note_duplicates(std::vector<DuplicateNote> notes, Done<std::monostate> done) = 0;
  // The earliest time at which sweep() has work; none when no run is open.
  virtual std::optional<Instant> next_deadline() = 0;
};

}  // namespace latchkey
