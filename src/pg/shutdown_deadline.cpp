#include "pg/shutdown_deadline.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace latchkey::pg {

ShutdownDeadline::ShutdownDeadline() : descriptor_(::eventfd(0, EFD_CLOEXEC)) {
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

ShutdownDeadline::~ShutdownDeadline() { ::close(descriptor_); }

void ShutdownDeadline::set(Duration until) {
  Duration unset = Duration::max();
  if (until_.compare_exchange_strong(unset, until)) (void)::eventfd_write(descriptor_, 1);
}

}  // namespace latchkey::pg
