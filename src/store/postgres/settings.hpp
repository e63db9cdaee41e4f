// PostgresSettings: how a store uses its database.
#pragma once

#include <cstddef>
#include <string>

#include "base/clock.hpp"
#include "base/time.hpp"

namespace latchkey {

struct PostgresSettings {
  std::string url;
  unsigned writers = 4;                           // writer connections
  unsigned readers = 10;                          // read connections, at most
  std::size_t batch = 256;                        // commands in one transaction, at most
  std::size_t coalesce_below = 64;                // a smaller backlog may wait for a batch in flight; 0: it never waits
  Clock* clock = nullptr;                         // tests only: replaces the database's clock
  Duration patience = std::chrono::seconds{10};   // a command is rejected when the database is unreachable this long
  Duration reply_max = std::chrono::seconds{15};  // a round trip or read that takes longer loses its connection
  Duration close_max = std::chrono::seconds{5};   // shutdown waits this long for a silent database
};

}  // namespace latchkey
