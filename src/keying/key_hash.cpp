#include "keying/key_hash.hpp"

namespace latchkey {

Digest compute_key_hash(std::string_view tenant, std::string_view scope, std::string_view text) {
  return thread_sha256().add_prefixed(tenant).add_prefixed(scope).add_prefixed(text).finish();
}

}  // namespace latchkey
