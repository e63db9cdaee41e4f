// Server-sent events (the HTML standard's text/event-stream): the head of such a response and the format of its events.
//
//   BodyStream stream = reply.start(event_stream_head(), {.on_closed = …}, AtStop::end);
//   stream.write(format_event({.id = "7", .event = "run", .data = json}));
//
// Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "http/message.hpp"

namespace latchkey::http {

struct ServerEvent {
  std::string_view id;     // the browser sends the last one as Last-Event-ID when it reconnects; omitted when empty
  std::string_view event;  // the type; browsers use "message" when it is omitted, which it is when empty
  std::string_view data;   // any text; each of its lines becomes a line of the event
};

// Replaces control characters in `id` and `event` with spaces, so that neither can begin another line.
std::string format_event(const ServerEvent& event);

// A comment, which browsers ignore. Sent from time to time, it prevents proxies from closing an idle connection.
std::string format_comment(std::string_view text = "");

// The response that an event stream begins with. It forbids caches to store it and nginx to buffer it.
Response event_stream_head();

}  // namespace latchkey::http
