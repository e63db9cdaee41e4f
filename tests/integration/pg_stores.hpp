// A database of the test's own, and any number of stores on it: as many servers.
#pragma once

#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "migrations/open_postgres.hpp"
#include "support/pg_client.hpp"
#include "support/pg_server.hpp"

namespace latchkey {

class PostgresStores : public ::testing::Test {
 protected:
  ~PostgresStores() override { PgServer::instance().give_back(url_); }

  const std::string& url() const { return url_; }
  std::string database() const { return url_.substr(url_.rfind('/') + 1); }
  std::unique_ptr<PostgresStore> open(const std::string& url, PostgresSettings settings = {}) {
    settings.url = url;
    auto opened = migrations::open_postgres(std::move(settings), clock_, random_of_stores_);
    if (!opened) throw std::runtime_error(to_string(opened.error()));
    return std::move(*opened);
  }

  SystemClock clock_;

 private:
  SystemRandom random_of_stores_;
  const std::string url_ = PgServer::instance().borrow_database();
};

}  // namespace latchkey
