// The handlers, one per route; what they take and answer is in api/openapi.yaml.
#pragma once

#include "api/services.hpp"

namespace latchkey::api {

// handlers_claim.cpp
void claim_run(Call call);

// handlers_settle.cpp
void extend_run(Call call);
void complete_run(Call call);
void fail_run(Call call);
void release_run(Call call);

// handlers_moves.cpp
void cancel_run(Call call);
void retry_run(Call call);
void resolve_run(Call call);

// handlers_runs.cpp
void find_run(Call call);
void list_runs(Call call);
void explain_key(Call call);

// handlers_dead_letters.cpp
void list_dead_letters(Call call);
void find_dead_letter(Call call);
void acknowledge_dead_letter(Call call);

// handlers_letter_moves.cpp
void retry_dead_letter(Call call);
void resolve_dead_letter(Call call);

// handlers_tokens.cpp
void list_tokens(Call call);
void create_token(Call call);
void revoke_token(Call call);

// handlers_server.cpp
void get_health(Call call);
void get_readiness(Call call);
void get_metrics(Call call);
void get_openapi(Call call);
void get_error(Call call);

}  // namespace latchkey::api
