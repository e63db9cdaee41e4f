#include "store/sqlite/store_lock.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/folder.hpp"

namespace latchkey {
namespace {

TEST(StoreLock, HasOneOwnerAndItsAddress) {
  const Folder folder;
  SystemClock clock;
  const std::string file = folder.file("latchkey.db");
  EXPECT_FALSE(StoreLock::find_server(file));
  {
    auto lock = StoreLock::acquire(file, Duration{0}, clock);
    ASSERT_TRUE(lock);
    EXPECT_FALSE(StoreLock::find_server(file)) << "a command is not a server";
    EXPECT_EQ(StoreLock::acquire(file, Duration{20}, clock).error().code, Code::STORE_LOCKED);
    ASSERT_TRUE(lock->announce("http://127.0.0.1:7420"));
    EXPECT_EQ(StoreLock::find_server(file), "http://127.0.0.1:7420");
    EXPECT_EQ(StoreLock::acquire(file, Duration{60'000}, clock).error().code, Code::STORE_LOCKED) << "at once";
    EXPECT_EQ(StoreLock::find_server(file), "http://127.0.0.1:7420") << "a refused process does not change the address";
  }
  EXPECT_FALSE(StoreLock::find_server(file));
  EXPECT_TRUE(StoreLock::acquire(file, Duration{0}, clock));
}

TEST(StoreLock, RemovedOrReplacedLockFileIsRestored) {
  const Folder folder;
  SystemClock clock;
  const std::string file = folder.file("latchkey.db"), beside = file + ".lock";
  auto lock = StoreLock::acquire(file, Duration{0}, clock);
  ASSERT_TRUE(lock && lock->announce("http://127.0.0.1:7420"));
  std::filesystem::remove(beside);
  EXPECT_EQ(StoreLock::acquire(file, Duration{20}, clock).error().code, Code::STORE_LOCKED) << "gone";
  ASSERT_TRUE(lock->restore_lock_file());
  EXPECT_EQ(StoreLock::find_server(file), "http://127.0.0.1:7420") << "restored after a removal";
  EXPECT_EQ(StoreLock::acquire(file, Duration{60'000}, clock).error().code, Code::STORE_LOCKED);
  std::filesystem::rename(beside, folder.file("moved"));
  std::ofstream(beside) << "something else";
  ASSERT_TRUE(lock->restore_lock_file());
  EXPECT_EQ(StoreLock::find_server(file), "http://127.0.0.1:7420") << "restored after a replacement";
  lock = fail(Code::INTERNAL, "released");
  EXPECT_FALSE(StoreLock::find_server(file));
  EXPECT_TRUE(StoreLock::acquire(file, Duration{0}, clock));
}

TEST(StoreLock, AddressOfADeadServerIsIgnored) {
  const Folder folder;
  SystemClock clock;
  const std::string file = folder.file("latchkey.db"), beside = file + ".lock";
  std::ofstream(beside) << "http://127.0.0.1:7420";  // left by a server that was killed
  // A command that has acquired the lock, but has not erased the address yet.
  const int command = ::open(beside.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(command, LOCK_EX | LOCK_NB), 0);
  EXPECT_FALSE(StoreLock::find_server(file));
  const Error refused = StoreLock::acquire(file, Duration{20}, clock).error();
  EXPECT_EQ(refused.code, Code::STORE_LOCKED);
  EXPECT_EQ(refused.detail.find("7420"), std::string::npos) << refused.detail;
  ::close(command);
  EXPECT_TRUE(StoreLock::acquire(file, Duration{0}, clock));
}

TEST(StoreLock, CutStoreIsNotANewStore) {
  const Folder folder;
  SystemClock clock;
  const std::string file = folder.file("latchkey.db");
  const auto own = [&] { return StoreLock::acquire(file, Duration{0}, clock); };
  EXPECT_TRUE(own());
  EXPECT_TRUE(own()) << "a process may have died before it wrote the store";
  std::ofstream(file) << "a store";
  {
    auto lock = own();
    ASSERT_TRUE(lock);
    lock->record_store();
    ASSERT_TRUE(lock->announce("http://127.0.0.1:7420"));
    EXPECT_EQ(StoreLock::find_server(file), "http://127.0.0.1:7420");
  }
  EXPECT_FALSE(StoreLock::find_server(file));
  EXPECT_TRUE(own());
  std::filesystem::resize_file(file, 0);
  EXPECT_EQ(own().error().code, Code::STORE_FORMAT);
  EXPECT_EQ(own().error().code, Code::STORE_FORMAT) << "and again";
  std::filesystem::remove(file);
  EXPECT_TRUE(own()) << "the operator has removed the store";
  EXPECT_TRUE(own());
}

TEST(StoreLock, SaysWhenTheFolderIsNotThere) {
  SystemClock clock;
  EXPECT_EQ(StoreLock::acquire("/nowhere/at/all.db", Duration{0}, clock).error().code, Code::STORE_UNAVAILABLE);
}

}  // namespace
}  // namespace latchkey
