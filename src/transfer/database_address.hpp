// Where a copy lies, as the file's mark says it: HOST:PORT,HOST:PORT/DATABASE. Nothing secret is in it.
//
// All hosts that the URL names are, not only the one that answered: after a failover it is another one.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace latchkey::transfer {

// Of libpq's settings host, hostaddr, port and dbname. A host that has an address is known by that.
std::string make_place(const std::map<std::string, std::string>& settings);

// Both have a host in common, and the database is called the same.
bool is_same_place(std::string_view a, std::string_view b);

}  // namespace latchkey::transfer
