// Store: where runs live. A few verbs, each atomic; what the answers mean is written in model/requests.hpp and decided
// by model/decide.hpp, the same for every back end. tests/conformance runs one suite on all of them.
//
// Guarantees, by every back end:
// - A verb's callback is called exactly once: with the reply after its changes are durable, or with an Error.
//   STORE_FULL and STORE_UNAVAILABLE mean that nothing was changed; but for a store elsewhere that was given up before
//   it was known, and says so: ask again.
// - One accepted settlement per key and generation; fences only rise; attempts are counted when a try starts.
// - The store's clock decides, and it never runs backwards, not over a restart either.
// - Nobody sees or touches a run of another tenant: a wrong tenant is answered as if the run did not exist.
// It does not: run effects, wait for a lease, or retry a refused settle.
//
// Verbs may be called from any thread. Callbacks run on a thread of the store's choosing, must be short and must not
// throw.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "model/decide.hpp"
#include "model/requests.hpp"
#include "store/duplicates.hpp"
#include "store/records.hpp"
#include "store/stats.hpp"

namespace latchkey {

template <class T>
using Done = std::move_only_function<void(Result<T>)>;

// The part that a cheap claim store (Redis) has too.
class Claims {
 public:
  virtual ~Claims() = default;
  // Insert first: the key's uniqueness decides, not a look beforehand. See the repeat table in model/repeat_table.hpp.
  virtual void claim(ClaimRequest request, Done<ClaimReply> done) = 0;
  // Heartbeats, each on its own. Extends only what it names.
  virtual void extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) = 0;
  // Ends tries, each on its own: outcome, follow-ups, released dependents and dead letter in one transaction.
  virtual void settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) = 0;
};

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
  std::string cursor;            // from a page before
  std::uint32_t limit = 50;
  // Inputs and results are read only where they are wanted; else they are empty.
  bool with_payloads = true;
  // A page with payloads ends when it has as many bytes of them, so that a long list of large ones is read piece by
  // piece. A single run is never too large for it.
  std::uint32_t payload_bytes_max = 8 << 20;
};
// May be shorter than the limit, even empty, and have a next one.
struct Page {
  std::vector<Run> runs;  // newest first
  std::string next;       // cursor of the next page; empty at the end
};

struct Swept {
  std::uint32_t changed = 0;
  bool more = false;  // the limit was reached: sweep again at once
};

class Store : public Claims {
 public:
  // Each request on its own; replies in order. Unknown predecessors are refused per request. The same call again (by
  // its claim id) gets its own run, not `duplicate`: with or without a key, and also where it opened a failed run
  // again.
  virtual void enqueue(std::vector<EnqueueRequest> requests, Done<std::vector<EnqueueReply>> done) = 0;
  // Due jobs, highest priority first, then longest due. Leased in the same transaction. Empty when there are none.
  virtual void take(TakeRequest request, Done<std::vector<Taken>> done) = 0;
  // What a person does: cancel, retry, resolve.
  virtual void move(MoveRequest request, Done<MoveReply> done) = 0;
  // Time's work: ends leases that are over and gives up runs that nobody came back for.
  virtual void sweep(std::uint32_t limit, Done<Swept> done) = 0;
  // Deletes runs whose window and retention are over, oldest first. Never one that is in doubt, has an unread dead
  // letter, or that something waits for. Acknowledged dead letters go with the last of their runs.
  virtual void purge(Retention retention, std::uint32_t limit, Done<Swept> done) = 0;
  // Adds to the counts of suppressed duplicates; runs that are gone are passed over. A failure has added nothing.
  virtual void note_duplicates(std::vector<DuplicateNote> notes, Done<std::monostate> done) = 0;

  // Reads of what is durable. From any thread; they never wait for a write. STORE_UNAVAILABLE when they cannot be had
  // within the store's limit.
  virtual Result<std::optional<Run>> find(const std::optional<std::string>& tenant, RunId id) = 0;
  virtual Result<std::optional<Run>> find_latest(const KeyName& name) = 0;
  virtual Result<Page> list(const ListQuery& query) = 0;
  virtual Result<std::optional<Duplicates>> find_duplicates(RunId id) = 0;
  // Counted as things change, not by a look at every run: cheap enough for every scrape.
  virtual Result<StoreStats> stats() = 0;
  // Whether those may wait, for a server elsewhere: then they are not for a thread that must not block.
  virtual bool reads_block() const { return false; }
  // Why the latest change could not be written, until one is written again; never waits. The error's age is not told.
  virtual std::optional<Error> find_failure() { return std::nullopt; }
  // Writes nothing but the store's own marks, to find out whether it can be written again.
  virtual void probe(Done<std::monostate> done) { done(std::monostate{}); }
  // By the store's clock.
  virtual Instant now() = 0;
  // Rises when the store may have lost what it had answered before: nothing that was kept from its answers holds then.
  virtual std::uint64_t data_epoch() const { return 0; }
  // When sweep() has something to do next; none when nothing is open.
  virtual std::optional<Instant> next_deadline() = 0;

  // It will be closed: what waits for a server elsewhere that is silent is answered within a few seconds from now, be
  // it that it is not known. Everything may still be asked, and is answered. Any thread; a second call does nothing.
  virtual void begin_shutdown() {}

  // Cold things: dead letters, tokens.
  virtual Records& records() = 0;
};

}  // namespace latchkey
