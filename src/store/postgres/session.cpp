#include "store/postgres/session.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "store/postgres/hosts.hpp"
#include "store/postgres/transaction_settings.hpp"

namespace latchkey::pg {
namespace {

// One conversation on a connection, until its time is over. libpq's own limit holds for its blocking calls only.
class PgExchange {
 public:
  PgExchange(PGconn* handle, Clock& clock, const ShutdownDeadline& last_call, Duration until)
      : handle_(handle), clock_(clock), last_call_(last_call), until_(until) {}

  [[noreturn]] void raise() { throw Failure("", PQerrorMessage(handle_), true); }

  // A socket that failed is ready, too: libpq says what it is.
  void wait(short what) {
    const Duration since = clock_.elapsed();
    while (true) {
      const nfds_t count = last_call_.is_set() ? 1 : 2;  // it is ready from then on
      const Duration left = last_call_.cap(until_, since) - clock_.elapsed();
      if (left <= Duration{0}) throw Failure("", "no answer in time", true);
      std::array<pollfd, 2> both{{{PQsocket(handle_), what, 0}, {last_call_.descriptor(), POLLIN, 0}}};
      const int ready = ::poll(both.data(), count, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
      if (ready > 0 && both[0].revents != 0) return;
      if (ready < 0 && errno != EINTR) throw Failure("", "the connection cannot be waited for", true);
    }
  }

  void connect() {
    for (PostgresPollingStatusType poll = PGRES_POLLING_WRITING; poll != PGRES_POLLING_OK;) {
      if (poll == PGRES_POLLING_FAILED || PQstatus(handle_) == CONNECTION_BAD) raise();
      wait(poll == PGRES_POLLING_READING ? POLLIN : POLLOUT);
      poll = PQconnectPoll(handle_);
    }
    if (PQsetnonblocking(handle_, 1) != 0 || PQenterPipelineMode(handle_) != 1) raise();
  }

  void add(const Statement& statement) {
    const auto types = statement.params.types();
    const auto values = statement.params.values();
    const auto lengths = statement.params.lengths();
    const std::vector<int> formats(types.size(), 1);
    if (PQsendQueryParams(handle_, statement.sql.c_str(), static_cast<int>(types.size()), types.data(), values.data(),
                          lengths.data(), formats.data(), 1) != 1)
      raise();
  }

  // The server may answer before it has read everything: both sides would wait if only one were served.
  void send_all() {
    if (PQpipelineSync(handle_) != 1) raise();
    for (int left = PQflush(handle_); left != 0; left = PQflush(handle_)) {
      if (left < 0) raise();
      wait(POLLIN | POLLOUT);
      if (PQconsumeInput(handle_) != 1) raise();
    }
  }

  PGresult* next_result() {
    while (PQisBusy(handle_)) {
      wait(POLLIN);
      if (PQconsumeInput(handle_) != 1) raise();
    }
    return PQgetResult(handle_);
  }

 private:
  PGconn* const handle_;
  Clock& clock_;
  const ShutdownDeadline& last_call_;
  const Duration until_;
};

}  // namespace

ShutdownDeadline::ShutdownDeadline() : descriptor_(::eventfd(0, EFD_CLOEXEC)) {
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}
ShutdownDeadline::~ShutdownDeadline() { ::close(descriptor_); }

void ShutdownDeadline::set(Duration until) {
  Duration none = Duration::max();
  if (until_.compare_exchange_strong(none, until)) (void)::eventfd_write(descriptor_, 1);
}

void Sessions::end_within(Duration span) {
  {
    const std::lock_guard lock(mutex_);  // or who is about to wait would not hear of it
    last_call_.set(clock_.elapsed() + span);
  }
  returned_.notify_all();
}

Sessions::Handle Sessions::borrow(Duration until) {
  std::unique_lock lock(mutex_);
  const Duration since = clock_.elapsed();
  for (bool must_wait = lent_ >= most_; must_wait;) {
    const Duration left = last_call_.cap(until, since) - clock_.elapsed();
    // Also when one was given up just now, or all who wait would have another moment, one after the other.
    if (left <= Duration{0}) {
      returned_.notify_one();  // it may be for somebody else
      throw Failure("", "every connection for reads waits for its answer", false);
    }
    must_wait = lent_ >= most_;
    if (must_wait) returned_.wait_for(lock, left);
  }
  lent_ += 1;
  Handle handle{nullptr, &PQfinish};
  if (idle_.empty()) return handle;
  handle = std::move(idle_.back());
  idle_.pop_back();
  return handle;
}

void Sessions::give_back(Handle handle) {
  {
    const std::lock_guard lock(mutex_);
    lent_ -= 1;
    if (handle && PQstatus(handle.get()) == CONNECTION_OK) idle_.push_back(std::move(handle));
  }
  returned_.notify_one();
}

void Sessions::forget_idle() {
  std::vector<Handle> forgotten;
  const std::lock_guard lock(mutex_);
  forgotten.swap(idle_);
}

// The first host that answers.
Sessions::Handle Sessions::connect(Duration until) {
  const auto hosts = split_hosts(url_);
  for (std::size_t i = 0;; ++i) {
    Handle handle(PQconnectStart(hosts[i].conninfo.c_str()), &PQfinish);
    if (!handle) throw std::bad_alloc();
    try {
      PgExchange(handle.get(), clock_, last_call_, std::min(until, clock_.elapsed() + hosts[i].patience)).connect();
      return handle;
    } catch (const Failure&) {
      if (i + 1 == hosts.size()) throw;
    }
  }
}

// All of them are one transaction, which ends with the sync or with their own COMMIT: nothing stays set for whoever has
// the connection next.
Rows Sessions::run_once(const std::vector<Statement>& statements, Duration until) {
  struct Borrowed {
    Sessions& sessions;
    Handle handle;
    ~Borrowed() { sessions.give_back(std::move(handle)); }
  } borrowed{*this, borrow(until)};
  // Amid a conversation that broke off it must not be used again.
  Handle handle = std::exchange(borrowed.handle, Handle{nullptr, &PQfinish});
  if (!handle) handle = connect(until);
  PgExchange talk(handle.get(), clock_, last_call_, until);
  for (const Statement& statement : statements) talk.add(statement);
  talk.send_all();
  std::optional<Rows> rows;
  std::optional<Failure> failure;
  for (std::size_t i = 0; i <= statements.size(); ++i) {
    PGresult* result = talk.next_result();
    if (!result) talk.raise();
    if (PQresultStatus(result) == PGRES_PIPELINE_ABORTED) {
      PQclear(result);
    } else {
      try {
        Rows found = check(handle.get(), result);
        if (i + 1 == statements.size()) rows.emplace(std::move(found));
      } catch (const Failure& found) {
        if (found.lost) throw;
        if (!failure) failure.emplace(found);
      }
    }
    if (i < statements.size() && talk.next_result() != nullptr) talk.raise();  // the null behind each
  }
  // One that a failure left in its transaction is given up.
  if (PQtransactionStatus(handle.get()) == PQTRANS_IDLE) borrowed.handle = std::move(handle);
  if (failure) throw *failure;
  return std::move(*rows);
}

// No person is spoken for, whatever a pooled connection was left with. The server, too, gives up what nobody waits for
// any more.
Statement Sessions::settings_for(const std::optional<std::string>& tenant) const {
  static const std::string settings = make_settings(
      Lasting::transaction,
      {{"role", "$1"}, {"app.current_tenant", "$2"}, {"app.current_actor", "''"}, {"statement_timeout", "$3"}});
  return {settings, Params()
                        .add(std::string_view(tenant ? "latchkey_tenant" : "latchkey_engine"))
                        .add(std::string_view(tenant ? *tenant : ""))
                        .add(std::string_view(std::to_string(std::max<std::int64_t>(limit_.count(), 1))))};
}

Rows Sessions::run(const std::optional<std::string>& tenant, const Statement& statement, Duration until) {
  return run_twice({settings_for(tenant), statement}, until);
}

void Sessions::write(const Statement& statement) {
  run_twice({{"BEGIN READ WRITE", {}}, settings_for(std::nullopt), statement, {"COMMIT", {}}}, next_limit());
}

Rows Sessions::run_twice(const std::vector<Statement>& statements, Duration until) {
  const Duration begun = clock_.elapsed();
  try {
    return run_once(statements, until);
  } catch (const Failure& failure) {
    if (!failure.lost) throw;
    // The others may be as dead: a restarted server has closed them all.
    forget_idle();
    if (clock_.elapsed() >= last_call_.cap(until, begun)) throw;
  }
  return run_once(statements, until);
}

}  // namespace latchkey::pg
