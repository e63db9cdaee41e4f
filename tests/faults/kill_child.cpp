// The process that kill_test kills: it claims and settles on a real file as fast as it can. It writes each
// acknowledgement to stdout before it sends the next command: W key fence | D key | F key | X key
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <future>

#include "store/sqlite/sqlite_store.hpp"

namespace latchkey {
namespace {

template <class T, class Send>
T ask(Send send) {
  std::promise<Result<T>> promise;
  send([&](Result<T> reply) { promise.set_value(std::move(reply)); });
  return promise.get_future().get().value();
}

void say(const std::string& line) {
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::exit(1);
}

Digest hash_of(const std::string& key) {
  return thread_sha256().add_prefixed("default").add_prefixed("f").add_prefixed(key).finish();
}

// Several callers at once, so that the kill lands inside batches of every shape.
void call(SqliteStore& store, const std::string& prefix) {
  for (int i = 0;; ++i) {
    const std::string key = prefix + ":" + std::to_string(i);
    const auto reply = ask<ClaimReply>([&](Done<ClaimReply> done) {
      store.claim({.function = "f", .key = key, .key_hash = hash_of(key), .retry = kNoRetries}, std::move(done));
    });
    const Won& won = std::get<Won>(reply);
    say("W " + key + " " + std::to_string(static_cast<std::uint64_t>(won.fence)) + "\n");
    if (i % 7 == 6) {
      ask<SettleReply>([&](Done<SettleReply> done) {
        store.settle_with(
            {.id = won.run.id(), .fence = won.fence},
            [&](sqlite3*) -> Ending {
              return Complete{"result of " + key, {}};
            },
            std::move(done));
      });
      say("D " + key + "\n");
      continue;
    }
    const bool fails = i % 5 == 4;
    const Ending ending =
        fails ? Ending(Fail{.message = "no", .retryable = false}) : Ending(Complete{"result of " + key, {}});
    ask<std::vector<SettleReply>>([&](Done<std::vector<SettleReply>> done) {
      store.settle({{.id = won.run.id(), .fence = won.fence, .ending = ending}}, std::move(done));
    });
    say((fails ? "F " : "D ") + key + "\n");
  }
}

}  // namespace
}  // namespace latchkey

int main(int, char** argv) {
  using namespace latchkey;
  SystemClock clock;
  SystemRandom random;
  auto store = SqliteStore::open(
      {.file = argv[1], .merge = {.window = 64, .window_max = 64, .slice_min = 8}, .checkpoint_pages = 100}, clock,
      random);
  if (!store) return 1;
  say("R\n");
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&, i] { call(**store, std::string(argv[2]) + "-" + std::to_string(i)); });
  for (std::thread& caller : callers) caller.join();
}
