#include "cli/commands/verify_interrupt.hpp"

#include <ostream>

namespace latchkey {

VerifyInterrupt::VerifyInterrupt(std::ostream& err)
    : err_(err), signals_([this](int signal) { interrupt(signal); }, [this] { insist(); }) {}

migrate::VerifyWatch VerifyInterrupt::watch() {
  return {.on_scratch = [this](migrate::Target* scratch) { show(scratch); },
          .must_stop =
              [this] {
                const std::lock_guard lock(mutex_);
                return signal_.has_value();
              }};
}

void VerifyInterrupt::die_if_interrupted() {
  const std::lock_guard lock(mutex_);
  if (signal_) InterruptWatch::die_of(*signal_);
}

void VerifyInterrupt::interrupt(int signal) {
  const std::lock_guard lock(mutex_);
  if (signal_) InterruptWatch::die_of(signal);
  signal_ = signal;
  if (scratch_ != nullptr) report_and_stop();
}

// Interrupts again, because the first signal may have come between two statements.
void VerifyInterrupt::insist() {
  const std::lock_guard lock(mutex_);
  if (scratch_ != nullptr) scratch_->interrupt();
}

void VerifyInterrupt::show(migrate::Target* scratch) {
  const std::lock_guard lock(mutex_);
  scratch_ = scratch;
  if (scratch_ != nullptr && signal_) report_and_stop();  // the signal came while the database was created
}

void VerifyInterrupt::report_and_stop() {
  err_ << "latchkey: interrupted: removing " + scratch_->scratch_name() + " (a second time: leaves it there)\n"
       << std::flush;
  scratch_->interrupt();
}

}  // namespace latchkey
