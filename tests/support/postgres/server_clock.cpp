#include "support/postgres/server_clock.hpp"

#include <stdlib.h>

#include <fstream>

namespace latchkey {

// The server runs as another user, which may have no access to the build folder.
ServerClock::ServerClock() {
  using std::filesystem::perms;
  std::filesystem::permissions(folder_.path(), perms::owner_all | perms::group_exec | perms::others_exec);
  std::filesystem::copy_file(LATCHKEY_CLOCK_SHIM, folder_.file("shim.so"));
  set(Duration{0});
  for (const char* name : {"shim.so", "offset"})
    std::filesystem::permissions(folder_.file(name), perms::group_read | perms::others_read,
                                 std::filesystem::perm_options::add);
  ::setenv("CLOCK_OFFSET", folder_.file("offset").c_str(), 1);
  ::setenv("LD_PRELOAD", folder_.file("shim.so").c_str(), 1);
}

ServerClock::~ServerClock() {
  ::unsetenv("LD_PRELOAD");
  ::unsetenv("CLOCK_OFFSET");
}

// Overwrites the file in place, because the servers have mapped it.
void ServerClock::set(Duration offset) {
  const std::int64_t us = offset.count() * 1000;
  std::ofstream out(folder_.file("offset"), std::ios::binary | std::ios::in | std::ios::out);
  if (!out) out.open(folder_.file("offset"), std::ios::binary);
  out.write(reinterpret_cast<const char*>(&us), sizeof us);
}

}  // namespace latchkey
