// Shared by the engine's tests: a clock that jumps to the next timer, a link that loses replies, and an effect with a
// scripted result. Not part of the library.
#pragma once

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <map>
#include <set>

#include "engine/run_once.hpp"
#include "store/memory/memory_store.hpp"

namespace latchkey {

// A clock whose leap() jumps to the next timer.
class LeapingClock final : public Clock {
 public:
  Instant now() override { return from_ms(1'770'372'000'000) + elapsed_; }
  Duration elapsed() override { return elapsed_; }
  Task<void> wait(Duration span) override {
    return asio::async_initiate<const asio::use_awaitable_t<>, void(boost::system::error_code)>(
        [this]<class Handler>(Handler handler, Duration how_long) {
          const auto shared = std::make_shared<Handler>(std::move(handler));
          const auto id = std::pair(elapsed_ + how_long, ++next_);
          const auto finish = [shared](boost::system::error_code error) {
            asio::get_associated_cancellation_slot(*shared).clear();
            asio::post(asio::get_associated_executor(*shared), [shared, error] { std::move (*shared)(error); });
          };
          timers_[id] = finish;
          auto slot = asio::get_associated_cancellation_slot(*shared);
          if (slot.is_connected())
            slot.assign([this, id](asio::cancellation_type) {
              if (auto timer = timers_.extract(id)) timer.mapped()(asio::error::operation_aborted);
            });
        },
        asio::use_awaitable, span);
  }
  bool leap() {
    if (timers_.empty()) return false;
    auto timer = timers_.extract(timers_.begin());
    elapsed_ = timer.key().first;
    timer.mapped()({});
    return true;
  }
  void clear() { timers_.clear(); }

 private:
  Duration elapsed_{0};
  std::uint64_t next_ = 0;
  std::map<std::pair<Duration, std::uint64_t>, std::function<void(boost::system::error_code)>> timers_;
};

// Forwards all requests, and loses the next `lose_replies` replies.
class FlakyClaims final : public ClaimStore {
 public:
  explicit FlakyClaims(ClaimStore& claims) : claims_(claims) {}
  void claim(ClaimRequest request, Done<ClaimReply> done) override {
    claim_ids.push_back(request.claim);
    claims_.claim(std::move(request), lossy(std::move(done)));
  }
  void extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) override {
    extends += 1;
    if (lose_extends > 0) {
      lose_extends -= 1;
      return done(fail(Code::REPLY_LOST, "no reply"));
    }
    claims_.extend(std::move(requests), lossy(std::move(done)));
  }
  void settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) override {
    claims_.settle(std::move(requests), lossy(std::move(done)));
  }
  int lose_replies = 0;
  int lose_extends = 0;
  int extends = 0;
  std::vector<ClaimId> claim_ids;

 private:
  template <class T>
  Done<T> lossy(Done<T> done) {
    return [this, done = std::move(done)](Result<T> reply) mutable {
      if (lose_replies == 0) return done(std::move(reply));
      lose_replies -= 1;
      done(fail(lose_replies % 2 == 0 ? Code::REPLY_LOST : Code::STORE_UNAVAILABLE, "no reply"));
    };
  }
  ClaimStore& claims_;
};

struct Bench {
  ~Bench() { clock.clear(); }
  LeapingClock clock;
  SeededRandom random{7};
  MemoryStore store{clock, random};
  FlakyClaims flaky{store};
  asio::io_context io;

  template <class T>
  void spawn(Task<T> task, std::optional<T>& into) {
    asio::co_spawn(io, std::move(task), [&into](std::exception_ptr broken, T value) {
      if (broken) std::rethrow_exception(broken);
      into = std::move(value);
    });
  }
  void run() {
    do {
      io.restart();
      io.poll();
    } while (clock.leap());
  }
};

template <class T>
T play(Bench& bench, Task<T> task) {
  std::optional<T> reply;
  bench.spawn(std::move(task), reply);
  bench.run();
  return std::move(reply).value();
}

class ScriptedEffect final : public SideEffect {
 public:
  explicit ScriptedEffect(EffectResult ends_as) : ends_as_(std::move(ends_as)) {}
  Task<EffectResult> run(const Won& won) override {
    runs += 1;
    last_attempt = won.run.attempt;
    if (on_run) on_run();
    if (throws) throw std::runtime_error("broken");
    for (Duration spent{0}; spent < takes && !stopped; spent += std::chrono::milliseconds{100})
      co_await bench->clock.wait(std::chrono::milliseconds{100});
    co_return ends_as_;
  }
  void stop(StopReason reason) override {
    stopped = reason;
    stopped_at = bench->clock.elapsed();
  }
  std::uint32_t runs = 0, last_attempt = 0;
  std::optional<StopReason> stopped;
  Duration stopped_at{}, takes{};
  bool throws = false;
  Bench* bench = nullptr;
  std::function<void()> on_run;

 private:
  EffectResult ends_as_;
};

inline ClaimRequest claim_of(const std::string& key) {
  ClaimRequest request;
  request.function = "f";
  request.key = key;
  request.key_hash = thread_sha256().add_prefixed("default").add_prefixed("f").add_prefixed(key).finish();
  return request;
}

}  // namespace latchkey
