// SHA-256 by OpenSSL. The algorithm is fetched once per process.
#pragma once

#include <array>
#include <memory>
#include <string_view>

namespace latchkey {

using Digest = std::array<unsigned char, 32>;

// An incremental hash. Reusable after finish(). Not safe from two threads.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  Sha256& add(std::string_view bytes);
  // Adds the length as 8 bytes, then the bytes, so that ("ab", "c") and ("a", "bc") have different hashes.
  Sha256& add_prefixed(std::string_view part);
  Digest finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// Uses one context per thread and does not allocate.
Digest sha256(std::string_view bytes);
// The reusable hash of the calling thread, without input.
Sha256& thread_sha256();

}  // namespace latchkey
