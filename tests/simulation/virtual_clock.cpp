#include "simulation/virtual_clock.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace latchkey::sim {
namespace {

template <class Handler>
void finish(std::shared_ptr<Handler> handler, boost::system::error_code error) {
  asio::get_associated_cancellation_slot(*handler).clear();
  const auto executor = asio::get_associated_executor(*handler);
  asio::post(executor, [handler, error] { std::move (*handler)(error); });
}

}  // namespace

Task<void> VirtualClock::wait_in(std::shared_ptr<Life> life, Duration span) {
  return asio::async_initiate<const asio::use_awaitable_t<>, void(boost::system::error_code)>(
      [this]<class Handler>(Handler handler, std::shared_ptr<Life> whose, Duration how_long) {
        const auto shared = std::make_shared<Handler>(std::move(handler));
        const TimerId id = after(how_long, std::move(whose), [shared] { finish(shared, {}); });
        auto slot = asio::get_associated_cancellation_slot(*shared);
        if (!slot.is_connected()) return;
        slot.assign([this, id, weak = std::weak_ptr(shared)](asio::cancellation_type) {
          if (auto waiting = weak.lock(); waiting && cancel(id)) finish(waiting, asio::error::operation_aborted);
        });
      },
      asio::use_awaitable, std::move(life), span);
}

VirtualClock::TimerId VirtualClock::at(Duration when, std::shared_ptr<Life> life, Fire fire) {
  const TimerId id{std::max(when, elapsed_), ++next_};
  if (!life || life->alive) timers_.emplace(id, Timer{std::move(life), std::move(fire)});
  return id;
}

bool VirtualClock::step(Duration until) {
  while (!timers_.empty() && timers_.begin()->first.first <= until) {
    auto node = timers_.extract(timers_.begin());
    elapsed_ = node.key().first;
    const auto& life = node.mapped().life;
    if (life && life->paused_until > elapsed_) {
      // The timer's number does not change, so that cancel() finds it and late timers fire in order.
      node.key().first = life->paused_until;
      timers_.insert(std::move(node));
      continue;
    }
    node.mapped().fire();
    return true;
  }
  elapsed_ = std::max(elapsed_, until);
  return false;
}

void VirtualClock::forget(const std::shared_ptr<Life>& life) {
  std::vector<Timer> dropped;
  for (auto at = timers_.begin(); at != timers_.end();) {
    if (at->second.life != life) {
      ++at;
      continue;
    }
    dropped.push_back(std::move(at->second));
    at = timers_.erase(at);
  }
}

void VirtualClock::clear() {
  auto dropped = std::move(timers_);
  timers_.clear();
}

}  // namespace latchkey::sim
