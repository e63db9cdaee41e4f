#include "api/server_routes.hpp"

#include "api/openapi.hpp"

namespace latchkey::api {
namespace {

void get_health(ServerContext&, Call call) { call.answer.send_json(200, R"({"status":"up"})"); }

// A healthy store is checked by a read. After a failed write only another write shows whether the store has recovered.
void get_readiness(ServerContext& context, Call call) {
  Store& store = context.engine.store();
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

void get_metrics(ServerContext& context, Call call) {
  do_reading(call, [&context, &telemetry = call.services.telemetry](Answer& answer) {
    const auto stats = context.engine.store().stats();
    const Telemetry::Readings readings{.replays_from_memory = context.engine.replays_from_memory(),
                                       .waiting = context.waiters.size(),
                                       .stats = stats ? std::optional(*stats) : std::nullopt,
                                       .now = context.engine.store().now()};
    answer.send({.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = telemetry.expose(readings)});
  });
}

void get_openapi(ServerContext&, Call call) { call.answer.send_json(200, std::string(openapi_json())); }

void get_error(ServerContext&, Call call) {
  const auto code = find_code(call.parameter);
  if (!code) return call.answer.send_error({Code::NOT_FOUND, ""});
  const CodeFacts& known = facts(*code);
  std::string text(known.name);
  text.append(": ").append(known.title).append(".\nHTTP ").append(std::to_string(known.http_status));
  text.append(known.retryable ? "; the same call may succeed later.\n" : "; the same call will not succeed.\n");
  call.answer.send({.content_type = "text/plain; charset=utf-8", .body = std::move(text)});
}

}  // namespace

RouteGroup server_routes(ServerContext& context) {
  static constexpr Route<ServerContext> kRoutes[] = {
      {{"GET", "/healthz", Access::open}, get_health},
      {{"GET", "/readyz", Access::open}, get_readiness},
      {{"GET", "/metrics", Access::open_on_loopback}, get_metrics},
      {{"GET", "/openapi.json", Access::open}, get_openapi},
      {{"GET", "/errors/{code}", Access::open}, get_error},
  };
  return {context, kRoutes};
}

}  // namespace latchkey::api
