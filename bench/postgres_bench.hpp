// Shared by the rows of the PostgreSQL table: the measured store, and a session beside its own.
#pragma once

#include <libpq-fe.h>
#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "migrate/open_postgres.hpp"

namespace latchkey::bench {

inline void require(bool so, const std::string& what) {
  if (so) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

// A session beside the store's own.
class Psql {
 public:
  explicit Psql(const std::string& url) : handle_(PQconnectdb(url.c_str()), &PQfinish) {
    require(PQstatus(handle_.get()) == CONNECTION_OK, PQerrorMessage(handle_.get()));
  }
  std::string run(const std::string& sql) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(handle_.get(), sql.c_str()), &PQclear);
    const auto status = PQresultStatus(result.get());
    require(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK, sql + ": " + PQerrorMessage(handle_.get()));
    return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
  }
  // The next notification's payload.
  std::string listen() {
    while (true) {
      PQconsumeInput(handle_.get());
      if (PGnotify* found = PQnotifies(handle_.get())) {
        std::string payload = found->extra;
        PQfreemem(found);
        return payload;
      }
      pollfd wait{PQsocket(handle_.get()), POLLIN, 0};
      require(::poll(&wait, 1, 30'000) == 1, "no notification came");
    }
  }

 private:
  std::unique_ptr<PGconn, decltype(&PQfinish)> handle_;
};

class Bench {
 public:
  // `clock`: instead of the database's.
  explicit Bench(const std::string& url, Clock* clock = nullptr) : url_(url) {
    auto opened = migrate::open_postgres({.url = url, .clock = clock}, clock_, random_);
    require(opened.has_value(), opened ? "" : to_string(opened.error()));
    store_ = std::move(*opened);
  }
  Store& store() { return *store_; }
  // Switches row-level security off while the store runs, to measure its cost.
  void switch_security_off() {
    Psql(url_).run(
        "DO $$ DECLARE t regclass; BEGIN FOR t IN SELECT oid FROM pg_class WHERE relnamespace = "
        "'latchkey'::regnamespace "
        "AND relkind = 'r' LOOP EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', t); END LOOP; END $$");
  }

 private:
  const std::string url_;
  SystemClock clock_;
  SystemRandom random_;
  std::unique_ptr<PostgresStore> store_;
};

// postgres_latency.cpp: times of single calls, in ms.
std::vector<double> time_guards(const std::string& url, int seconds);
std::vector<double> time_letters(Bench& bench, const std::string& url, std::uint64_t count);
void run_guard(const std::string& url, int seconds);
void run_letters(const std::string& url, std::uint64_t count);

// postgres_security.cpp
void run_security(const std::string& url, int pairs);

// postgres_purge.cpp
void run_purge(const std::string& url, int rounds);

}  // namespace latchkey::bench
