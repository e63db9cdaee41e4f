#include <spdlog/spdlog.h>

#include <boost/system/system_error.hpp>

#include "engine/await.hpp"
#include "engine/engine.hpp"

namespace latchkey {
namespace {

constexpr Duration kPauseMin = std::chrono::milliseconds{50};
constexpr Duration kPauseMax = std::chrono::seconds{1};

template <class T>
std::optional<Error> error_of(const Result<T>& result) {
  return result ? std::nullopt : std::optional(result.error());
}

}  // namespace

Task<void> Engine::tend() {
  Duration purge_at = clock_.elapsed() + settings_.purge_first;
  Duration write_at = clock_.elapsed() + kPauseMax;
  try {
    for (;;) {
      co_await clock_.wait(pause());
      co_await sweep_due();
      const Duration now = clock_.elapsed();
      if (now >= write_at) {
        co_await write_suppressed();
        write_at = now + kPauseMax;
      }
      if (now >= purge_at) {
        co_await purge_all();
        purge_at = now + settings_.purge_every;
      }
    }
  } catch (const boost::system::system_error& stopped) {
    if (stopped.code() != asio::error::operation_aborted) throw;
  }
  store_.note_duplicates(seen_->suppressions.drain(), [](const Result<std::monostate>&) {});
}

// Until the next lease ends, within bounds: a deadline that comes nearer meanwhile is seen a second later at most.
Duration Engine::pause() {
  const auto deadline = store_.next_deadline();
  if (!deadline) return kPauseMax;
  return std::clamp(*deadline - store_.now(), kPauseMin, kPauseMax);
}

Task<void> Engine::sweep_due() {
  for (;;) {
    const auto deadline = store_.next_deadline();
    if (!deadline || store_.now() < *deadline) co_return;
    const Result<Swept> swept = co_await sweep(store_, settings_.slice);
    if (!check("sweep", error_of(swept)) || !swept->more) co_return;
  }
}

Task<void> Engine::purge_all() {
  for (;;) {
    const Result<Swept> purged = co_await purge(store_, settings_.retention, settings_.slice);
    if (!check("purge", error_of(purged)) || !purged->more) co_return;
    // In slices: what waits for the store goes first.
    co_await clock_.wait(kPauseMin);
  }
}

Task<void> Engine::write_suppressed() {
  std::vector<DuplicateNote> notes = seen_->suppressions.drain();
  if (notes.empty()) co_return;
  const Result<std::monostate> written = co_await note_duplicates(store_, notes);
  // Cancelled while it waited: the store has them and will write them, and giving them back would count them twice.
  if (!written && written.error().code == Code::REQUEST_TIMEOUT) co_return;
  if (!check("writing suppressed duplicates", error_of(written))) seen_->suppressions.give_back(std::move(notes));
}

bool Engine::check(const char* what, const std::optional<Error>& error) {
  if (error && error->code == Code::REQUEST_TIMEOUT) return false;  // stopped while it waited: nothing failed
  if (error && !failing_) spdlog::warn("{} failed and will be tried again: {}", what, to_string(*error));
  if (!error && failing_) spdlog::info("{} works again", what);
  failing_ = error.has_value();
  return !error;
}

}  // namespace latchkey
