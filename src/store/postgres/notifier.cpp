#include "store/postgres/notifier.hpp"

#include "store/postgres/statements.hpp"

namespace latchkey::pg {
namespace {

// The role settings bound the wait for other commits that notify: one of them may wait for a lost standby.
void add_notify_statements(Connection& connection, const PendingNotifications& notifications) {
  connection.add(sql().set_role_engine_with_lock_timeout);
  Column tenants{Type::text}, functions{Type::text};
  for (const auto& [tenant, function] : notifications.dead_letters) {
    tenants.add(std::string_view(tenant));
    functions.add(std::string_view(function));
  }
  if (tenants.size() > 0) connection.add({sql().notify_dead_letters, Params().add(tenants).add(functions)});
  if (notifications.work) connection.add(sql().notify_work);
}

bool is_empty(const PendingNotifications& notifications) {
  return !notifications.work && notifications.dead_letters.empty();
}

}  // namespace

void Notifier::enqueue(PendingNotifications notifications) {
  if (is_empty(notifications)) return;
  pending_.work |= notifications.work;
  pending_.dead_letters.merge(notifications.dead_letters);
  wake_.ring();
}

void Notifier::finish() {
  is_finishing_ = true;
  wake_.ring();
}

Task<PendingNotifications> Notifier::next() {
  Limit timer(executor_);
  while (true) {
    const Duration wait = work_from_ - host_.elapsed();
    const bool sends_work = pending_.work && (wait <= Duration{0} || is_finishing_);
    if (sends_work || !pending_.dead_letters.empty()) {
      if (sends_work) {
        pending_.work = false;
        work_from_ = host_.elapsed() + kWorkEvery;
      }
      co_return PendingNotifications{sends_work, std::exchange(pending_.dead_letters, {})};
    }
    if (is_finishing_) co_return PendingNotifications{};
    if (pending_.work) timer.set(wait, [this] { wake_.ring(); });
    co_await wake_.wait();
  }
}

Task<bool> Notifier::send(const PendingNotifications& notifications) {
  try {
    if (!connection_ || connection_->is_lost()) connection_ = co_await connector_.open();
    add_notify_statements(*connection_, notifications);
    co_await connection_->run(reply_max_);
    co_return true;
  } catch (const Failure&) {
    connection_.reset();
  }
  co_return false;
}

Task<void> Notifier::run() {
  while (true) {
    PendingNotifications notifications = co_await next();
    if (is_empty(notifications)) co_return;
    const bool is_last = is_finishing_;
    if (co_await send(notifications) || is_last) continue;
    // A notification that arrives twice does no harm.
    enqueue(std::move(notifications));
    co_await host_.wait(kRetryDelay);
  }
}

}  // namespace latchkey::pg
