#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/system/system_error.hpp>

#include "engine/await.hpp"
#include "engine/engine.hpp"

namespace latchkey {
namespace {

constexpr Duration kPauseMin = std::chrono::milliseconds{50};
constexpr Duration kPauseMax = std::chrono::seconds{1};
constexpr std::ptrdiff_t kNotesAtOnce = 500;

template <class T>
std::optional<Error> error_of(const Result<T>& result) {
  return result ? std::nullopt : std::optional(result.error());
}

}  // namespace

Task<void> Engine::run_maintenance() {
  Duration purge_at = clock_.elapsed() + settings_.purge_first;
  Duration write_at = clock_.elapsed() + kPauseMax;
  try {
    for (;;) {
      co_await clock_.wait(pause());
      co_await sweep_due();
      const Duration now = clock_.elapsed();
      if (now >= write_at) {
        write_suppressed();
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
  store_.note_duplicates(callbacks_->suppressions.drain(), [](const Result<std::monostate>&) {});
}

// The time until the next deadline, at most a second, so that an earlier deadline that is set meanwhile is noticed.
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
    // Purging works in slices, so that waiting commands run in between.
    co_await clock_.wait(kPauseMin);
  }
}

// The maintenance loop does not wait for this write, so leases expire in time. The write is split into slices, because
// a command in the same transaction waits for the whole transaction.
void Engine::write_suppressed() {
  if (callbacks_->slices_writing.load() > 0) return;
  std::vector<DuplicateNote> notes = callbacks_->suppressions.drain();
  for (auto from = notes.begin(); from != notes.end();) {
    const auto to = from + std::min<std::ptrdiff_t>(kNotesAtOnce, notes.end() - from);
    write_slice({std::make_move_iterator(from), std::make_move_iterator(to)});
    from = to;
  }
}

void Engine::write_slice(std::vector<DuplicateNote> notes) {
  ++callbacks_->slices_writing;
  auto copy = notes;
  store_.note_duplicates(
      std::move(copy), [state = callbacks_, notes = std::move(notes)](const Result<std::monostate>& written) mutable {
        if (!written) state->suppressions.restore(std::move(notes));
        const bool was_failing = state->fails_writing.exchange(!written);
        if (!written && !was_failing)
          spdlog::warn("writing suppressed repeats failed, will retry: {}", to_string(written.error()));
        if (written && was_failing) spdlog::info("writing suppressed repeats works again");
        --state->slices_writing;
      });
}

bool Engine::check(const char* what, const std::optional<Error>& error) {
  if (error && error->code == Code::WAIT_CANCELLED) return false;  // the loop was stopped: nothing failed
  if (error && !failing_) spdlog::warn("{} failed, will retry: {}", what, to_string(*error));
  if (!error && failing_) spdlog::info("{} works again", what);
  failing_ = error.has_value();
  return !error;
}

}  // namespace latchkey
