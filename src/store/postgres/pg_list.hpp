// SQL for a page of a list of runs.
#pragma once

#include "pg/codec.hpp"
#include "store/store.hpp"

namespace latchkey::pg {

// A query for the `seq` of the page's runs and of one more, should there be one. It begins with SELECT or WITH.
std::string select_page(const ListQuery& query);
// A query for the runs themselves, as read_run() reads them, newest first, and after their columns whether the page has
// room for the run.
std::string select_listed(const ListQuery& query);
// The parameters of both. The page has runs with counters below `below`.
Params page_params(const ListQuery& query, std::int64_t below);

}  // namespace latchkey::pg
