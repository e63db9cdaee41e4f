// RunReader: reads of committed runs.
//
// Any thread may call these reads, and none of them waits for a write. They fail with STORE_UNAVAILABLE when the store
// cannot read within its time limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "model/run.hpp"
#include "store/duplicates.hpp"
#include "store/stats.hpp"

namespace latchkey {

struct KeyName {
  std::string tenant;
  std::string function;
  std::string key;
  Digest hash{};
};

struct ListQuery {
  std::optional<std::string> tenant;  // none: every tenant
  std::string function;               // empty: every function
  std::optional<Status> status;
  std::string key;               // empty: any; else exactly this text
  std::optional<Instant> since;  // created at or after
  std::string cursor;            // `next` of the previous page
  std::uint32_t limit = 50;
  // Without payloads, the inputs and results of the page are empty.
  bool with_payloads = true;
  // A page with payloads ends when it contains this many bytes of them, so that a caller reads a long list of large
  // payloads in parts. A page always has room for one run.
  std::uint32_t payload_bytes_max = 8 << 20;
};
// A page may be shorter than the limit, even empty, and have a next one.
struct Page {
  std::vector<Run> runs;  // newest first
  std::string next;       // cursor of the next page; empty at the end
};

class RunReader {
 public:
  virtual ~RunReader() = default;

  // A run of another tenant than the named one is reported as absent.
  virtual Result<std::optional<Run>> find(const std::optional<std::string>& tenant, RunId id) = 0;
  virtual Result<std::optional<Run>> find_latest(const KeyName& name) = 0;
  virtual Result<Page> list(const ListQuery& query) = 0;
  virtual Result<std::optional<Duplicates>> find_duplicates(RunId id) = 0;
  // The store counts while runs change, so this does not scan runs and is cheap enough for every metrics scrape.
  virtual Result<StoreStats> stats() = 0;
  // True when reads wait for a server over the network. A thread that must not block must not call them then.
  virtual bool reads_block() const { return false; }
};

}  // namespace latchkey
