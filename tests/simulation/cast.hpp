// The actors of a simulated world: callers, workers and operators.
#pragma once

#include "simulation/world.hpp"

namespace latchkey::sim {

inline constexpr const char* kTenants[] = {"acme", "globex"};

Digest hash_key(const std::string& tenant, const std::string& function, const std::string& key);
// Claims with the production run_once(), call after call.
Task<void> live_as_caller(Process& me, std::uint32_t calls);
// Enqueues, takes, heartbeats and settles jobs until the world closes.
Task<void> live_as_worker(Process& me);
// Cancels, retries, resolves, acknowledges, and tries to reach another tenant's runs.
Task<void> live_as_operator(Process& me);

}  // namespace latchkey::sim
