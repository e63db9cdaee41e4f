// The handlers of dead_letter_routes.cpp. api/openapi.yaml documents their requests and replies.
#pragma once

#include "api/dead_letter_routes.hpp"

namespace latchkey::api {

// handlers_dead_letters.cpp
void list_dead_letters(DeadLetterContext& context, Call call);
void find_dead_letter(DeadLetterContext& context, Call call);
void acknowledge_dead_letter(DeadLetterContext& context, Call call);

// handlers_dead_letter_actions.cpp
void retry_dead_letter(DeadLetterContext& context, Call call);
void resolve_dead_letter(DeadLetterContext& context, Call call);

}  // namespace latchkey::api
