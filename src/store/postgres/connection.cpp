#include "store/postgres/connection.hpp"

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

// BEGIN and COMMIT are planned by nobody; texts that vary more than this are not worth their place.
constexpr std::size_t kNamedFrom = 40, kNamesMost = 256;

// The same name is the same statement, in whichever session.
std::string name_by_text(const std::string& sql, const std::vector<Oid>& types) {
  std::string all = sql;
  for (const Oid type : types) all += " " + std::to_string(type);
  const Digest digest = thread_sha256().add(all).finish();
  return "latchkey_" + to_hex(std::span(digest).first(16));
}

// Why nobody waits any more: libpq knows nothing of it.
constexpr const char* kGivenUp = "no answer, and not waited for any longer";
std::string describe_limit(Duration limit) { return fmt::format("no answer within {} ms", limit.count()); }

}  // namespace

Task<bool> SocketWaiters::wait(Socket& socket, Socket::wait_type what) {
  if (has_ended_) co_return false;
  waiting_.emplace(&socket, 0);
  boost::system::error_code problem;
  co_await socket.async_wait(what, asio::redirect_error(asio::use_awaitable, problem));
  waiting_.erase(&socket);
  // That something can be sent says nothing of who is to read it.
  if (!problem && what == Socket::wait_read) unheard_ = 0;
  co_return !problem;
}

void SocketWaiters::on_tick(Patience patience) {
  for (auto& [socket, moments] : waiting_) moments += 1;
  if (!waiting_.empty()) unheard_ += 1;
  if (patience == Patience::endless) return;
  are_last_ = patience == Patience::last;
  has_ended_ |= are_last_ && unheard_ >= 2 * kSilence;
  for (auto& [socket, moments] : waiting_)
    if (has_ended_ || moments >= kSilence) socket->cancel();
}

Task<std::unique_ptr<Connection>> Connection::connect(SocketWaiters& waits, std::string url, Duration limit) {
  const auto executor = co_await asio::this_coro::executor;
  std::unique_ptr<PGconn, decltype(&PQfinish)> handle(PQconnectStart(url.c_str()), &PQfinish);
  if (!handle) throw std::bad_alloc();
  // libpq's own limit holds for its blocking calls only.
  Limit timer(executor);
  std::optional<stream_descriptor> socket;
  bool is_over = false;  // a cancel alone would miss whoever does not wait just then
  timer.set(limit, [&] {
    is_over = true;
    if (socket) socket->cancel();
  });
  for (PostgresPollingStatusType poll = PGRES_POLLING_WRITING; poll != PGRES_POLLING_OK;) {
    if (poll == PGRES_POLLING_FAILED || PQstatus(handle.get()) == CONNECTION_BAD)
      throw Failure("", PQerrorMessage(handle.get()), true);
    // The socket may be another one at each step: the next host of several.
    socket.emplace(executor, PQsocket(handle.get()));
    const bool is_ready =
        !is_over && co_await waits.wait(*socket, poll == PGRES_POLLING_READING ? stream_descriptor::wait_read
                                                                               : stream_descriptor::wait_write);
    socket->release();
    socket.reset();
    if (!is_ready) throw Failure("", is_over ? describe_limit(limit) : kGivenUp, true);
    poll = PQconnectPoll(handle.get());
  }
  if (PQsetnonblocking(handle.get(), 1) != 0 || PQenterPipelineMode(handle.get()) != 1)
    throw Failure("", PQerrorMessage(handle.get()), true);
  co_return std::unique_ptr<Connection>(new Connection(waits, handle.release(), executor));
}

Connection::Connection(SocketWaiters& waits, PGconn* handle, asio::any_io_executor executor)
    : waits_(waits), handle_(handle, &PQfinish), socket_(executor, PQsocket(handle)), limit_(executor) {
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
  const std::string said = PQerrorMessage(handle_.get());
  raise(said.empty() ? "the connection was lost" : said);
}

void Connection::raise(const std::string& why) {
  lost_ = true;
  throw Failure("", why, true);
}

const std::string* Connection::name_of(const Statement& statement, const std::vector<Oid>& types) {
  if (!uses_prepared_statements_ || statement.sql.size() < kNamedFrom) return nullptr;
  if (const auto known = names_.find(statement.sql); known != names_.end()) return &known->second;
  if (names_.size() >= kNamesMost) return nullptr;
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
  if (is_over_ || !co_await waits_.wait(socket_, what)) raise(is_over_ ? describe_limit(allowed_) : kGivenUp);
}

// The server may answer before it has read everything: both sides would wait if only one were served.
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

// Whether it was carried out. Behind the first failure everything is "aborted" up to the sync.
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
