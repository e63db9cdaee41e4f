// A folder of migrations and a database for them, PostgreSQL or SQLite. The real binary works on both.
#pragma once

#include <sqlite3.h>

#include <atomic>

#include "base/assert.hpp"
#include "cli/cli_fixture.hpp"
#include "support/postgres/pg_client.hpp"
#include "support/postgres/pg_server.hpp"

namespace latchkey {

enum class Kind { postgres, sqlite };

class MigrateTest : public CliTest, public testing::WithParamInterface<Kind> {
 protected:
  MigrateTest() {
    std::filesystem::create_directory(dir());
    environment_.push_back("LATCHKEY_DATABASE=");
  }

  bool is_postgres() const { return GetParam() == Kind::postgres; }
  std::string dir() const { return file("migrations"); }
  const std::string& database() {
    if (database_.empty()) database_ = is_postgres() ? make_pg_database() : "sqlite:" + file("app.db");
    return database_;
  }
  static std::string make_pg_database() {
    static std::atomic<int> made{0};
    const std::string name = "migrate" + std::to_string(++made);
    PgClient(PgServer::instance().url("postgres")).execute("CREATE DATABASE " + name);
    return PgServer::instance().url(name);
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(dir() + "/" + name, std::ios::binary) << text;
  }
  static std::string plan(const std::string& checks = "  - SELECT 1\n", const std::string& steps = "  - run: down\n") {
    return "change: something\ndata_loss_risk: minimal\nestimated_time: 5 minutes\ndependencies: []\nsteps:\n" + steps +
           "verification_queries:\n" + checks;
  }
  void add(const std::string& label, const std::string& up, const std::string& down,
           const std::string& plan_text = plan()) const {
    write(label + ".up.sql", up);
    write(label + ".down.sql", down);
    write(label + ".plan.yml", plan_text);
  }
  // Adds 0001_one, 0002_two, …, each of which creates a table.
  void add_tables(int count) const {
    static const char* const kNames[] = {"one", "two", "three", "four", "five"};
    for (int i = 0; i < count; ++i) {
      const std::string name = kNames[i];
      add("000" + std::to_string(i + 1) + "_" + name,
          "CREATE TABLE " + name + " (id integer PRIMARY KEY, name text);\nCREATE INDEX " + name + "_name ON " + name +
              " (name);\n",
          "DROP TABLE " + name + ";\n");
    }
  }

  Words words(const std::string& command, Words flags = {}) {
    Words all{"migrate", command, "--dir", dir(), "--database", database()};
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  }
  Answer migrate(const std::string& command, Words flags = {}) { return call(words(command, std::move(flags))); }

  // The first value of a query, on a connection of the test.
  std::string ask(const std::string& sql) {
    if (is_postgres()) return PgClient(database()).ask_one(sql);
    sqlite3* handle = nullptr;
    LK_ASSERT(sqlite3_open(database().substr(7).c_str(), &handle) == SQLITE_OK);
    std::string value;
    const auto take = [](void* into, int, char** values, char**) {
      *static_cast<std::string*>(into) = values[0] ? values[0] : "";
      return 1;
    };
    char* why = nullptr;
    const int code = sqlite3_exec(handle, sql.c_str(), take, &value, &why);
    EXPECT_TRUE(code == SQLITE_OK || code == SQLITE_ABORT) << sql << ": " << (why ? why : "");
    sqlite3_free(why);
    sqlite3_close(handle);
    return value;
  }
  bool has_table(const std::string& name) {
    return is_postgres() ? ask("SELECT to_regclass('public." + name + "') IS NOT NULL") == "t"
                         : ask("SELECT count(*) FROM sqlite_schema WHERE name = '" + name + "'") == "1";
  }
  std::string applied() {
    return has_table("latchkey_migrations")
               ? ask(is_postgres() ? "SELECT string_agg(version::text, ' ' ORDER BY version) FROM latchkey_migrations"
                                   : "SELECT group_concat(version, ' ') FROM latchkey_migrations")
               : "no ledger";
  }

 private:
  std::string database_;
};

}  // namespace latchkey
