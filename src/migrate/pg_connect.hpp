// Connects a runner to PostgreSQL.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <optional>
#include <string>

namespace latchkey::migrate {

using PgHandle = std::unique_ptr<PGconn, decltype(&PQfinish)>;

// `database`, if it is not empty, replaces the one in the URL. Throws MigrationError: STORE_UNAVAILABLE,
// USAGE for a URL that libpq cannot read.
PgHandle connect_for_migrations(const std::string& url, const std::string& database = {});

// The reason why a server of this version (in libpq's form, 150004) cannot have Latchkey's own schema.
std::optional<std::string> find_too_old(int version);

// "name", with doubled quotes inside.
std::string quote_name(const std::string& name);

}  // namespace latchkey::migrate
