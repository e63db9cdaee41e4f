// The handlers of run_routes.cpp. api/openapi.yaml documents their requests and replies.
#pragma once

#include "api/run_routes.hpp"

namespace latchkey::api {

// handlers_claim.cpp
void claim_run(RunContext& context, Call call);

// handlers_settle.cpp
void extend_run(RunContext& context, Call call);
void complete_run(RunContext& context, Call call);
void fail_run(RunContext& context, Call call);
void release_run(RunContext& context, Call call);

// handlers_operator_actions.cpp
void cancel_run(RunContext& context, Call call);
void retry_run(RunContext& context, Call call);
void resolve_run(RunContext& context, Call call);

// handlers_runs.cpp
void find_run(RunContext& context, Call call);
void list_runs(RunContext& context, Call call);
void explain_key(RunContext& context, Call call);

}  // namespace latchkey::api
