#include "support/postgres/pg_client.hpp"

#include <libpq-fe.h>

#include <stdexcept>

#include "support/wait_until.hpp"

namespace latchkey {

PgClient::PgClient(const std::string& url) : handle_(PQconnectdb(url.c_str()), &PQfinish) {
  if (PQstatus(handle_.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(handle_.get()));
  PQsetNoticeReceiver(
      handle_.get(),
      [](void* to, const PGresult* notice) {
        const char* state = PQresultErrorField(notice, PG_DIAG_SQLSTATE);
        static_cast<std::vector<std::string>*>(to)->emplace_back(state ? state : "");
      },
      notices_.get());
}
PgClient::~PgClient() = default;
PgClient::PgClient(PgClient&&) noexcept = default;

void PgClient::send(const std::string& sql) {
  if (PQsendQuery(handle_.get(), sql.c_str()) != 1) throw std::runtime_error(PQerrorMessage(handle_.get()));
}

std::vector<std::string> PgClient::finish() {
  std::vector<std::string> values;
  std::string problem;
  while (const std::unique_ptr<PGresult, decltype(&PQclear)> result{PQgetResult(handle_.get()), &PQclear}) {
    values.clear();
    const auto status = PQresultStatus(result.get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
      const char* state = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
      problem = (state ? state : "") + std::string(" ") + PQresultErrorMessage(result.get());
    }
    for (int row = 0; row < PQntuples(result.get()); ++row) values.emplace_back(PQgetvalue(result.get(), row, 0));
  }
  if (!problem.empty()) throw std::runtime_error(problem);
  return values;
}

std::vector<std::string> PgClient::ask(const std::string& sql) {
  send(sql);
  return finish();
}

std::string PgClient::ask_one(const std::string& sql) {
  auto values = ask(sql);
  return values.empty() ? std::string() : std::move(values.front());
}

void PgClient::wait_until(const std::string& sql) {
  if (!latchkey::wait_until([&] { return ask_one(sql) == "t"; }))
    throw std::runtime_error("the condition did not become true: " + sql);
}

int PgClient::backend() const { return PQbackendPID(handle_.get()); }

}  // namespace latchkey
