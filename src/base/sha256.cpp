#include "base/sha256.hpp"

#include <openssl/evp.h>

#include <cstdint>

#include "base/assert.hpp"

namespace latchkey {
namespace {

const EVP_MD* algorithm() {
  static const EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  LK_ASSERT(fetched != nullptr);
  return fetched;
}

}  // namespace

struct Sha256::Context {
  EVP_MD_CTX* handle = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(handle); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  LK_ASSERT(EVP_DigestInit_ex2(context_->handle, algorithm(), nullptr) == 1);
}
Sha256::~Sha256() = default;

Sha256& Sha256::add(std::string_view bytes) {
  LK_ASSERT(EVP_DigestUpdate(context_->handle, bytes.data(), bytes.size()) == 1);
  return *this;
}

Sha256& Sha256::add_prefixed(std::string_view part) {
  unsigned char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(std::uint64_t{part.size()} >> (56 - 8 * i));
  add({reinterpret_cast<const char*>(length), sizeof length});
  return add(part);
}

Digest Sha256::finish() {
  Digest digest;
  LK_ASSERT(EVP_DigestFinal_ex(context_->handle, digest.data(), nullptr) == 1);
  LK_ASSERT(EVP_DigestInit_ex2(context_->handle, nullptr, nullptr) == 1);
  return digest;
}

Sha256& thread_sha256() {
  static thread_local Sha256 hash;
  return hash;
}

Digest sha256(std::string_view bytes) { return thread_sha256().add(bytes).finish(); }

}  // namespace latchkey
