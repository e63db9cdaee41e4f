#include "simulation/sim_postgres.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/assert.hpp"
#include "support/pg_client.hpp"
#include "support/pg_server.hpp"

namespace latchkey::sim {
namespace {

// One for all worlds, emptied by each: setting it up takes longer than many a world.
const std::string& shared_database() {
  static const std::string url = [] {
    std::string made = PgServer::instance().borrow_database();
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(LATCHKEY_SOURCE_DIR "/migrations"))
      if (entry.path().string().ends_with(".up.sql")) files.push_back(entry.path());
    std::ranges::sort(files);
    PgClient client(made);
    for (const auto& file : files) {
      std::stringstream text;
      text << std::ifstream(file).rdbuf();
      client.execute("BEGIN; " + text.str() + "; COMMIT");
    }
    return made;
  }();
  return url;
}

}  // namespace

SimPostgres::SimPostgres(Clock& clock, Random& random)
    : clock_(clock), host_clock_(clock), dice_(random.next()), url_(shared_database()) {
  PgServer::empty(url_);
  if (dice_.one_in(2)) {
    proxy_ = std::make_unique<FaultProxy>(PgServer::instance().port());
    url_ = proxy_->url(url_.substr(url_.rfind('/') + 1));
  }
  open();
}

void SimPostgres::open() {
  hosts_.resize(1 + dice_.below(2));
  std::vector<Store*> stores;
  for (Host& host : hosts_) {
    host.random = std::make_unique<SeededRandom>(dice_.next());
    const auto lanes = static_cast<unsigned>(1 + dice_.below(3));
    auto opened =
        PostgresStore::open({.url = url_, .lanes = lanes, .readers = 1, .clock = &clock_}, host_clock_, *host.random);
    LK_ASSERT(opened);
    host.store = std::move(*opened);
    stores.push_back(host.store.get());
  }
  queue_ = std::make_unique<QueuedStore>(std::move(stores), dice_);
}

// Nothing is left on its way that could still be committed later, but for what is `late`.
void SimPostgres::arm(std::vector<FaultHow> ways) {
  static constexpr FaultAt kPlaces[] = {FaultAt::flight_asked, FaultAt::commit_asked, FaultAt::commit_answered};
  proxy_->arm({.at = kPlaces[dice_.below(std::size(kPlaces))],
               .how = ways[dice_.below(ways.size())],
               .after = dice_.below(2),
               .delay = std::chrono::milliseconds{dice_.below(3)}});
}

std::size_t SimPostgres::step() {
  const bool cuts = proxy_ && dice_.one_in(10);
  if (cuts) arm({FaultHow::close, FaultHow::reset, FaultHow::late});
  const std::size_t commands = queue_->step();
  if (cuts) proxy_->arm(std::deque<Fault>{});
  return commands;
}

// What waits is lost, or it is carried out and nobody hears of it, or that is cut off in the midst.
void SimPostgres::crash() {
  const auto level = spdlog::get_level();
  spdlog::set_level(spdlog::level::off);  // whoever dies says nothing
  if (!dice_.one_in(3)) {
    if (proxy_ && !dice_.one_in(3)) arm({FaultHow::close, FaultHow::reset});
    queue_->pass_on();
  }
  hosts_.clear();
  queue_.reset();
  if (proxy_) proxy_->arm(std::deque<Fault>{});
  spdlog::set_level(level);
  open();
}

}  // namespace latchkey::sim
