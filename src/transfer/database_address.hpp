// The address of the database that has a copy, as stored in the file's transfer status: HOST:PORT,HOST:PORT/DATABASE.
// It contains no secret.
//
// It has all hosts of the URL, because after a failover the primary is another one of them.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace latchkey::transfer {

// From libpq's settings host, hostaddr, port and dbname. A host with a hostaddr is written as that address.
std::string make_address(const std::map<std::string, std::string>& settings);

// True if both have a host in common and the same name of the database.
bool is_same_database(std::string_view a, std::string_view b);

}  // namespace latchkey::transfer
