// VerifyInterrupt: lets Ctrl-C end `latchkey migrate verify`. The first signal drops the scratch database and prints
// its name. A second signal ends the process at once and leaves the database.
#pragma once

#include <iosfwd>
#include <mutex>
#include <optional>

#include "cli/terminal/interrupts.hpp"
#include "migrate/verify.hpp"

namespace latchkey {

class VerifyInterrupt {
 public:
  explicit VerifyInterrupt(std::ostream& err);

  migrate::VerifyWatch watch();
  // Ends the process if a signal came. To be called after the scratch database was dropped.
  void die_if_interrupted();

 private:
  void interrupt(int signal);
  void insist();
  void show(migrate::Target* scratch);
  void report_and_stop();

  std::ostream& err_;
  std::mutex mutex_;
  std::optional<int> signal_;
  migrate::Target* scratch_ = nullptr;
  InterruptWatch signals_;  // last: its thread uses the members above
};

}  // namespace latchkey
