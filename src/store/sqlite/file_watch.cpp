#include "store/sqlite/file_watch.hpp"

#include <sys/stat.h>

#include <filesystem>

namespace latchkey {
namespace {

std::string log_of(const std::string& file) { return file + "-wal"; }

}  // namespace

FileWatch::FileWatch(const std::string& file) : file_(std::filesystem::absolute(file).string()) {}

std::optional<FileWatch::Seen> FileWatch::stat_file(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return std::nullopt;
  return Seen{{facts.st_dev, facts.st_ino}, facts.st_size};
}

void FileWatch::note() {
  if (!store_) store_ = stat_file(file_);
  const auto log = stat_file(log_of(file_));
  log_ = log ? std::optional(log->id) : std::nullopt;
}

std::optional<std::string> FileWatch::find_file_fault() {
  if (!store_) return std::nullopt;
  const auto there = stat_file(file_);
  if (!there) return file_ + " was removed";
  if (there->id != store_->id) return file_ + " was replaced by another file";
  if (there->size < store_->size) return file_ + " was cut short";
  store_->size = there->size;
  return std::nullopt;
}

std::optional<std::string> FileWatch::find_fault() {
  if (auto fault = find_file_fault()) return fault;
  if (!log_) return std::nullopt;
  const auto there = stat_file(log_of(file_));
  if (!there) return log_of(file_) + " was removed";
  if (there->id != *log_) return log_of(file_) + " was replaced by another file";
  return std::nullopt;
}

bool is_log_without_store(const std::string& file) {
  struct stat store {
  }, log{};
  const bool empty = ::stat(file.c_str(), &store) != 0 || store.st_size == 0;
  return empty && ::stat(log_of(file).c_str(), &log) == 0 && log.st_size > 0;
}

}  // namespace latchkey
