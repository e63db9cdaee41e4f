#include "conformance/backend.hpp"
#include "store/memory/memory_store.hpp"
#include "support/standings.hpp"

namespace latchkey {
namespace {

class OpenMemory final : public OpenStore {
 public:
  Store& store() override { return *store_; }
  ManualClock& clock() override { return clock_; }
  void reopen() override { store_ = std::make_unique<MemoryStore>(clock_, random_); }
  bool is_durable() const override { return false; }

 private:
  ManualClock clock_{kNoon};
  SeededRandom random_{1};
  std::unique_ptr<MemoryStore> store_ = std::make_unique<MemoryStore>(clock_, random_);
};

}  // namespace

const std::vector<Backend>& backends() {
  static const std::vector<Backend> kBackends{
      {"memory", [] { return std::make_unique<OpenMemory>(); }},
      // A new back end goes here; add its library in CMakeLists.txt.
  };
  return kBackends;
}

}  // namespace latchkey
