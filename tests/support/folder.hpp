// Folder: a temporary folder of one test. The destructor removes it with its content.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "base/assert.hpp"

namespace latchkey {

class Folder {
 public:
  Folder() : Folder(std::filesystem::temp_directory_path()) {}
  explicit Folder(const std::filesystem::path& parent) {
    std::string name = (parent / "latchkey-test-XXXXXX").string();
    LK_ASSERT(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace latchkey
