// VerifyInterrupt: Ctrl-C in `latchkey migrate verify` takes the scratch database with it. A second one leaves it
// there, and its name has been said.
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
  // Once the scratch database is gone: ends the process if a signal came.
  void leave_if_told();

 private:
  void interrupt(int signal);
  void insist();
  void show(migrate::Target* scratch);
  void tell_and_stop();

  std::ostream& err_;
  std::mutex mutex_;
  std::optional<int> signal_;
  migrate::Target* scratch_ = nullptr;
  InterruptWatch signals_;  // last: its thread uses the others
};

}  // namespace latchkey
