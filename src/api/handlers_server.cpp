// What the server says of itself.
#include "api/handlers.hpp"
#include "api/openapi.hpp"

namespace latchkey::api {

void get_health(Call call) { call.answer.send_json(200, R"({"status":"up"})"); }

// While all is well this writes nothing and waits for no write; after a failure only a write tells whether it is over.
void get_readiness(Call call) {
  Store& store = call.services.store;
  static constexpr auto kReady = R"({"status":"ready"})";
  if (!store.find_failure())
    return do_reading(call, [&store](Answer& answer) {
      if (const auto read = store.find(std::nullopt, RunId{}); !read) return answer.send_error(read.error());
      answer.send_json(200, kReady);
    });
  store.probe([answer = std::move(call.answer)](const Result<std::monostate>& written) mutable {
    if (!written) return answer.send_error(written.error());
    answer.send_json(200, kReady);
  });
}

void get_metrics(Call call) {
  do_reading(call, [&services = call.services](Answer& answer) {
    const auto stats = services.store.stats();
    const Telemetry::Readings readings{.replays_from_memory = services.engine.replays_from_memory(),
                                       .waiting = services.waiters.size(),
                                       .stats = stats ? std::optional(*stats) : std::nullopt,
                                       .now = services.store.now()};
    answer.send(
        {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = services.telemetry.expose(readings)});
  });
}

void get_openapi(Call call) { call.answer.send_json(200, std::string(openapi_json())); }

void get_error(Call call) {
  const auto code = find_code(call.parameter);
  if (!code) return call.answer.send_error({Code::NOT_FOUND, ""});
  const CodeFacts& known = facts(*code);
  std::string text(known.name);
  text.append(": ").append(known.title).append(".\nHTTP ").append(std::to_string(known.http_status));
  text.append(known.retryable ? "; the same call may succeed later.\n" : "; the same call will not succeed.\n");
  call.answer.send({.content_type = "text/plain; charset=utf-8", .body = std::move(text)});
}

}  // namespace latchkey::api
