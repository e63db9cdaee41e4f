// How a runner connects to PostgreSQL.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <optional>
#include <string>

namespace latchkey::migrate {

using PgHandle = std::unique_ptr<PGconn, decltype(&PQfinish)>;

// `database`, when it is not empty, takes the place of the one in the URL. Throws MigrationError: STORE_UNAVAILABLE,
// USAGE for a URL that libpq cannot read.
PgHandle connect_for_migrations(const std::string& url, const std::string& database = {});

// Why a server of this version (as libpq says it: 150004) cannot hold Latchkey's own schema.
std::optional<std::string> find_too_old(int version);

// "name", with quotes inside doubled.
std::string quote_name(const std::string& name);

}  // namespace latchkey::migrate
