// What the server says of itself.
#include "api/handlers.hpp"
#include "api/openapi.hpp"

namespace latchkey::api {

void tell_health(Call call) { call.answer.send_json(200, R"({"status":"up"})"); }

void tell_readiness(Call call) {
  // Not by send_error(), which would remember it anew: then it would last as long as somebody asks.
  if (const auto failure = call.services.readiness.find_failure())
    return call.answer.send(http::make_problem(*failure, {}, std::chrono::seconds{2}));
  // A sweep of nothing still commits a batch: it fails when the store cannot be written.
  call.services.store.sweep(1, [answer = std::move(call.answer)](const Result<Swept>& swept) mutable {
    if (!swept) return answer.send_error(swept.error());
    answer.send_json(200, R"({"status":"ready"})");
  });
}

void tell_metrics(Call call) {
  call.answer.send({.content_type = "text/plain; version=0.0.4; charset=utf-8",
                    .body = call.services.telemetry.expose(
                        {call.services.engine.replays_from_memory(), call.services.waiters.size()})});
}

void tell_openapi(Call call) { call.answer.send_json(200, std::string(openapi_json())); }

void tell_error(Call call) {
  const auto code = find_code(call.parameter);
  if (!code) return call.answer.send_error({Code::NOT_FOUND, ""});
  const CodeFacts& known = facts(*code);
  std::string text(known.name);
  text.append(": ").append(known.title).append(".\nHTTP ").append(std::to_string(known.http_status));
  text.append(known.retryable ? "; the same call may succeed later.\n" : "; the same call will not succeed.\n");
  call.answer.send({.content_type = "text/plain; charset=utf-8", .body = std::move(text)});
}

}  // namespace latchkey::api
