// SHA-256 by OpenSSL, the digest fetched once.
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
  // The length as 8 bytes, then the bytes: parts hashed so cannot run into each other.
  Sha256& add_prefixed(std::string_view part);
  Digest finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// Uses one context per thread: no allocation.
Digest sha256(std::string_view bytes);
// The calling thread's reusable hash, freshly started.
Sha256& thread_sha256();

}  // namespace latchkey
