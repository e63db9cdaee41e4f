#include "client/run_api.hpp"

namespace latchkey {

Result<Page> find_page(RunApi& api, ListQuery query) {
  for (;;) {
    auto page = api.list_runs(query);
    if (!page || !page->runs.empty() || page->next.empty()) return page;
    query.cursor = page->next;
  }
}

}  // namespace latchkey
