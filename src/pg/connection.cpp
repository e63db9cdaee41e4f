#include "pg/connection.hpp"

#include <fmt/format.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>

#include "base/hex.hpp"

namespace latchkey::pg {

namespace asio = boost::asio;
using asio::posix::stream_descriptor;

namespace {

// Short statements (BEGIN, COMMIT) gain nothing from being prepared. The second limit bounds the session's memory when
// texts vary.
constexpr std::size_t kPreparedBytesMin = 40, kPreparedMax = 256;

// A name means the same statement in every session.
std::string name_by_text(const std::string& sql, const std::vector<Oid>& types) {
  std::string all = sql;
  for (const Oid type : types) all += " " + std::to_string(type);
  const Digest digest = thread_sha256().add(all).finish();
  return "latchkey_" + to_hex(std::span(digest).first(16));
}

// Error texts for waits that ended on our side: libpq has no message for them.
constexpr const char* kShutdown = "no reply before shutdown";
std::string describe_limit(Duration limit) { return fmt::format("no reply within {} ms", limit.count()); }

}  // namespace

Task<std::unique_ptr<Connection>> Connection::connect(SocketWaiters& waiters, std::string url, Duration limit) {
  const auto executor = co_await asio::this_coro::executor;
  std::unique_ptr<PGconn, decltype(&PQfinish)> handle(PQconnectStart(url.c_str()), &PQfinish);
  if (!handle) throw std::bad_alloc();
  // libpq's connect_timeout applies to its blocking calls only.
  Limit timer(executor);
  std::optional<stream_descriptor> socket;
  bool is_over = false;  // checked too, because cancel() has no effect while no wait is pending
  timer.set(limit, [&] {
    is_over = true;
    if (socket) socket->cancel();
  });
  for (PostgresPollingStatusType poll = PGRES_POLLING_WRITING; poll != PGRES_POLLING_OK;) {
    if (poll == PGRES_POLLING_FAILED || PQstatus(handle.get()) == CONNECTION_BAD)
      throw Failure("", PQerrorMessage(handle.get()), true);
    // libpq may use another socket at each step, for the next host.
    socket.emplace(executor, PQsocket(handle.get()));
    const bool is_ready =
        !is_over && co_await waiters.wait(*socket, poll == PGRES_POLLING_READING ? stream_descriptor::wait_read
                                                                                 : stream_descriptor::wait_write);
    socket->release();
    socket.reset();
    if (!is_ready) throw Failure("", is_over ? describe_limit(limit) : kShutdown, true);
    poll = PQconnectPoll(handle.get());
  }
  if (PQsetnonblocking(handle.get(), 1) != 0 || PQenterPipelineMode(handle.get()) != 1)
    throw Failure("", PQerrorMessage(handle.get()), true);
  co_return std::unique_ptr<Connection>(new Connection(waiters, handle.release(), executor));
}

Connection::Connection(SocketWaiters& waiters, PGconn* handle, asio::any_io_executor executor)
    : waiters_(waiters), handle_(handle, &PQfinish), socket_(executor, PQsocket(handle)), limit_(executor) {
  PQsetNoticeReceiver(
      handle,
      [](void* self, const PGresult* notice) {
        const char* severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
        if (severity && std::string_view(severity) == "WARNING") static_cast<Connection*>(self)->warned_ = true;
      },
      this);
}

Connection::~Connection() { socket_.release(); }  // libpq closes it

void Connection::raise() {
  const std::string message = PQerrorMessage(handle_.get());
  raise(message.empty() ? "the connection was lost" : message);
}

void Connection::raise(const std::string& message) {
  lost_ = true;
  throw Failure("", message, true);
}

const std::string* Connection::name_of(const Statement& statement, const std::vector<Oid>& types) {
  if (!uses_prepared_statements_ || statement.sql.size() < kPreparedBytesMin) return nullptr;
  if (const auto known = names_.find(statement.sql); known != names_.end()) return &known->second;
  if (names_.size() >= kPreparedMax) return nullptr;
  const std::string name = name_by_text(statement.sql, types);
  if (PQsendPrepare(handle_.get(), name.c_str(), statement.sql.c_str(), static_cast<int>(types.size()), types.data()) !=
      1)
    raise();
  added_.emplace_back(statement.sql);
  return &names_.emplace(statement.sql, name).first->second;
}

void Connection::add(const Statement& statement) {
  const auto types = statement.params.types();
  const auto values = statement.params.values();
  const auto lengths = statement.params.lengths();
  const auto count = static_cast<int>(types.size());
  const std::vector<int> formats(types.size(), 1);
  const std::string* name = name_of(statement, types);
  const int sent =
      name ? PQsendQueryPrepared(handle_.get(), name->c_str(), count, values.data(), lengths.data(), formats.data(), 1)
           : PQsendQueryParams(handle_.get(), statement.sql.c_str(), count, types.data(), values.data(), lengths.data(),
                               formats.data(), 1);
  if (sent != 1) raise();
  added_.emplace_back();
}

Task<void> Connection::wait(stream_descriptor::wait_type what) {
  if (is_over_ || !co_await waiters_.wait(socket_, what)) raise(is_over_ ? describe_limit(allowed_) : kShutdown);
}

// The server may reply before it has read everything. Reading meanwhile prevents a deadlock of two full buffers.
Task<void> Connection::send_all() {
  for (int left = PQflush(handle_.get()); left != 0; left = PQflush(handle_.get())) {
    if (left < 0) raise();
    co_await wait(stream_descriptor::wait_write);
    if (PQconsumeInput(handle_.get()) != 1) raise();
  }
}

Task<PGresult*> Connection::next_result() {
  while (PQisBusy(handle_.get())) {
    co_await wait(stream_descriptor::wait_read);
    if (PQconsumeInput(handle_.get()) != 1) raise();
  }
  co_return PQgetResult(handle_.get());
}

Task<std::vector<Rows>> Connection::run(Duration limit) {
  warned_ = false;
  is_over_ = false;
  allowed_ = limit;
  limit_.set(limit, [this] {
    is_over_ = true;
    socket_.cancel();
  });
  auto results = co_await collect();
  limit_.stop();
  co_return results;
}

// Each statement's results end with a null.
Task<void> Connection::end_statement() {
  if ((co_await next_result()) != nullptr) raise();
}

Task<std::vector<Rows>> Connection::collect() {
  if (PQpipelineSync(handle_.get()) != 1) raise();
  const auto expected = std::exchange(added_, {});
  co_await send_all();
  std::vector<Rows> results;
  std::optional<Failure> failure;
  for (const auto& text : expected) {
    PGresult* result = co_await next_result();
    if (!result) raise();
    const bool is_done = take_result(result, results, failure);
    if (lost_) throw *failure;
    if (text && is_done) results.pop_back();
    if (text && !is_done) names_.erase(*text);
    co_await end_statement();
  }
  PGresult* sync = co_await next_result();
  if (!sync) raise();
  take_result(sync, results, failure);
  if (failure) throw *failure;
  results.pop_back();
  co_return results;
}

// True if the statement was executed. After the first failure libpq reports every statement up to the sync as aborted.
bool Connection::take_result(PGresult* result, std::vector<Rows>& results, std::optional<Failure>& failure) {
  if (PQresultStatus(result) == PGRES_PIPELINE_ABORTED) {
    PQclear(result);
    return false;
  }
  try {
    results.push_back(check(handle_.get(), result));
    return true;
  } catch (const Failure& found) {
    if (!failure) failure.emplace(found);
    lost_ |= found.lost;
    return false;
  }
}

}  // namespace latchkey::pg
