// Fixtures that open any number of stores. Each store represents a server. StoresTest uses any database, PostgresStores
// a borrowed one.
#pragma once

#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "migrate/open_postgres.hpp"
#include "support/postgres/pg_client.hpp"
#include "support/postgres/pg_server.hpp"

namespace latchkey {

class StoresTest : public ::testing::Test {
 protected:
  std::unique_ptr<PostgresStore> open(const std::string& url, PostgresSettings settings = {}) {
    return open(url, std::move(settings), clock_);
  }
  // `host` is the clock for the store's delays and caches.
  std::unique_ptr<PostgresStore> open(const std::string& url, PostgresSettings settings, Clock& host) {
    settings.url = url;
    auto opened = migrate::open_postgres(std::move(settings), host, store_random_);
    if (!opened) throw std::runtime_error(to_string(opened.error()));
    return std::move(*opened);
  }

  SystemClock clock_;

 private:
  SystemRandom store_random_;
};

class PostgresStores : public StoresTest {
 protected:
  ~PostgresStores() override { PgServer::instance().give_back(url_); }

  const std::string& url() const { return url_; }
  std::string database() const { return url_.substr(url_.rfind('/') + 1); }

 private:
  const std::string url_ = PgServer::instance().borrow_database();
};

}  // namespace latchkey
