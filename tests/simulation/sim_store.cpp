#include "simulation/sim_store.hpp"

#include <unistd.h>

#include <filesystem>

#include "base/assert.hpp"
#include "simulation/queued_store.hpp"
#include "simulation/sim_postgres.hpp"
#include "store/memory/memory_store.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace latchkey::sim {
namespace {

// Memory that outlives the server, like a disk on which every command is durable at once.
class SimMemory final : public SimStore {
 public:
  SimMemory(Clock& clock, Random& random) : store_(clock, random) {}
  Store& store() override { return store_; }
  bool stepped() const override { return false; }
  std::size_t step() override { return 0; }
  void crash() override {}

 private:
  MemoryStore store_;
};

class SimQueued final : public SimStore {
 public:
  SimQueued(Clock& clock, Random& random) : memory_(clock, random), queue_(memory_) {}
  Store& store() override { return queue_; }
  bool stepped() const override { return true; }
  std::size_t step() override { return queue_.step(); }
  void crash() override { queue_.crash(); }

 private:
  MemoryStore memory_;
  QueuedStore queue_;
};

// A real SQLite file; a crash closes it without notice.
class SimSqlite final : public SimStore {
 public:
  SimSqlite(Clock& clock, Random& random) : clock_(clock), random_(random) {
    static int next = 0;
    const auto root = std::filesystem::exists("/dev/shm") ? std::filesystem::path("/dev/shm")
                                                          : std::filesystem::temp_directory_path();
    folder_ = root / ("latchkey-sim-" + std::to_string(::getpid()) + "-" + std::to_string(next++));
    std::filesystem::create_directories(folder_);
    open();
  }
  ~SimSqlite() override {
    if (store_) store_->abandon();
    store_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Store& store() override { return *store_; }
  bool stepped() const override { return true; }
  std::size_t step() override { return store_->step(); }
  void crash() override {
    store_->abandon();
    store_.reset();
    open();
  }

 private:
  void open() {
    SqliteSettings settings;
    settings.file = (folder_ / "latchkey.db").string();
    settings.stepped = true;
    // Small limits, so that the few keys of a world are merged.
    settings.merge = {.window = 4,
                      .window_max = 16,
                      .share = 4,
                      .slice_min = 2,
                      .page_keys = 3,
                      .filter_room = 4,
                      .pages_scanned = 1};
    auto opened = SqliteStore::open(settings, clock_, random_);
    LK_ASSERT(opened);
    store_ = std::move(*opened);
  }
  Clock& clock_;
  Random& random_;
  std::filesystem::path folder_;
  std::unique_ptr<SqliteStore> store_;
};

}  // namespace

std::unique_ptr<SimStore> make_store(StoreKind kind, Clock& clock, Random& random) {
  if (kind == StoreKind::postgres) return std::make_unique<SimPostgres>(clock, random);
  if (kind == StoreKind::sqlite) return std::make_unique<SimSqlite>(clock, random);
  if (kind == StoreKind::queued) return std::make_unique<SimQueued>(clock, random);
  LK_ASSERT(kind == StoreKind::memory);
  return std::make_unique<SimMemory>(clock, random);
}

}  // namespace latchkey::sim
