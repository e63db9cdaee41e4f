// Store: the whole storage port, composed of one role per kind of consumer. Each role's header is the contract of its
// verbs; a consumer takes the role that it needs. model/requests.hpp says what the replies mean, and model/decide.hpp
// decides them, so that they are the same on every back end. tests/conformance runs one suite on all back ends.
//
// Every back end guarantees:
// - A write's callback is called exactly once: with the reply, after the changes are durable, or with an Error.
//   STORE_FULL and STORE_UNAVAILABLE mean that nothing was changed. The exception is a remote store that stopped
//   replying before the commit's result was known; that error says so, and the caller retries with the same key.
// - One accepted settlement per key and generation. Fences only rise. An attempt is counted when it starts.
// - The store's clock decides.
// - A caller never sees or changes a run of another tenant: a wrong tenant is reported as an absent run.
// A store does not run effects, wait for a lease, or retry a refused settlement.
//
// Any thread may call a verb. Callbacks run on a thread of the store's choosing, must be short and must not throw.
#pragma once

#include "store/catalog.hpp"
#include "store/claim_store.hpp"
#include "store/job_queue.hpp"
#include "store/maintenance.hpp"
#include "store/operator_store.hpp"
#include "store/run_reader.hpp"
#include "store/store_lifecycle.hpp"
#include "store/token_store.hpp"

namespace latchkey {

class Store : public ClaimStore,
              public JobQueue,
              public RunReader,
              public OperatorStore,
              public Maintenance,
              public TokenStore,
              public Catalog,
              public StoreLifecycle {};

}  // namespace latchkey
