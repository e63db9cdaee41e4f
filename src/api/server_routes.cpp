#include "api/server_routes.hpp"

#include "api/error_pages.hpp"
#include "api/openapi.hpp"
#include "wire/json_out.hpp"

namespace latchkey::api {
namespace {

void get_health(ServerContext&, Call call) { call.answer.send_json(200, R"({"status":"up"})"); }

std::string write_ready(const std::optional<std::string>& warning) {
  std::string text;
  wire::ObjectOut out(text);
  out.word("status", "ready");
  if (warning) out.text("warning", *warning);
  out.end();
  return text;
}

// A healthy store is checked by a read. After a failed write only another write shows whether the store has recovered.
void get_readiness(ServerContext& context, Call call) {
  if (const auto failure = context.readiness.find_failure()) return call.answer.send_error(*failure);
  do_reading(call, [&context](Answer& answer) {
    const auto read = context.engine.store().find(std::nullopt, RunId{});
    if (!read) return answer.send_error(read.error());
    answer.send_json(200, write_ready(context.readiness.find_clock_warning()));
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
  text.append("\n").append(find_error_help(known.name));
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
