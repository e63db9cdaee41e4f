// Shared by the in-process benchmarks: callers that always have one request in flight, and a stop watch.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <semaphore>
#include <string>
#include <vector>

#include "base/sha256.hpp"

namespace latchkey::bench {

using Stopwatch = std::chrono::steady_clock;

inline double seconds_since(Stopwatch::time_point start) {
  return std::chrono::duration<double>(Stopwatch::now() - start).count();
}

inline std::string key_text(std::uint64_t number) { return "order:2026-02-06:" + std::to_string(number); }

inline double percentile(std::vector<double> values, double at) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[static_cast<std::size_t>(at * static_cast<double>(values.size() - 1))];
}

// Resident memory of this process, in MB.
inline double resident_mb() {
  std::ifstream statm("/proc/self/statm");
  double size = 0, resident = 0;
  statm >> size >> resident;
  return resident * 4096 / 1e6;
}

// A folder below the working directory, so that it is on the measured disk. It is removed at the end.
class Folder {
 public:
  explicit Folder(const std::string& name) : path_(std::filesystem::absolute("bench-data-" + name)) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace latchkey::bench
