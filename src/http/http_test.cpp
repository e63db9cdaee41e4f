#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "http/cors.hpp"
#include "http/deadlines.hpp"
#include "http/event_stream.hpp"
#include "http/problem.hpp"
#include "http/reply.hpp"
#include "http/target.hpp"
#include "http/wire.hpp"

namespace latchkey::http {
namespace {

using namespace std::chrono_literals;

TEST(Target, SplitsAndDecodes) {
  EXPECT_EQ(split_target("/a?b=c?d").path, "/a");
  EXPECT_EQ(split_target("/a?b=c?d").query, "b=c?d");
  EXPECT_EQ(split_target("/a").query, "");
  EXPECT_EQ(decode_percent("a%2Fb%c3%a9+"), "a/b\xc3\xa9+");
  EXPECT_EQ(decode_query("a+b%2B"), "a b+");
  EXPECT_EQ(encode_percent("a/b c\xc3\xa9~"), "a%2Fb%20c%C3%A9~");
  for (const char* bad : {"%", "%4", "%zz", "%4g", "a%", "%00", "%0a", "%7f"}) EXPECT_FALSE(decode_percent(bad)) << bad;
}

TEST(Target, FindsParameters) {
  EXPECT_EQ(find_parameter("a=1&b=x%20y&a=2&flag", "a").value(), "1");
  EXPECT_EQ(find_parameter("a=1&b=x%20y", "b").value(), "x y");
  EXPECT_EQ(find_parameter("a=1&%62=2", "b").value(), "2");
  EXPECT_EQ(find_parameter("a=1&flag", "flag").value(), "");
  EXPECT_EQ(find_parameter("a==1", "a").value(), "=1");
  EXPECT_EQ(find_parameter("a=1", "c").value(), std::nullopt);
  EXPECT_EQ(find_parameter("", "c").value(), std::nullopt);
  EXPECT_FALSE(find_parameter("c=%", "c"));
}

TEST(Target, TakesSegments) {
  std::string_view path = "/v1//7/";
  for (const char* expected : {"v1", "", "7", ""}) EXPECT_EQ(take_segment(path), expected);
  EXPECT_EQ(take_segment(path), std::nullopt);
}

TEST(Problem, IsJson) {
  const Response response = make_problem({Code::ALREADY_RUNNING, "say \"hi\"\n\x01\\ \xc3\xa9 \xff\xed\xa0\x80"},
                                         std::array{ProblemMember{"existing_run_id", "\"7\""}}, 1500ms);
  EXPECT_EQ(response.status, 409);
  EXPECT_EQ(response.content_type, "application/problem+json");
  EXPECT_EQ(response.header_lines, "Retry-After: 2\r\n");
  EXPECT_EQ(
      response.body,
      R"({"type":"/errors/ALREADY_RUNNING","title":"The key's run is running and its lease has not expired","status":409,)"
      R"("code":"ALREADY_RUNNING","detail":"say \"hi\"\n\u0001\\ é ����","retryable":true,"existing_run_id":"7"})");
}

TEST(Problem, LeavesOutAnEmptyDetail) {
  EXPECT_EQ(make_problem({Code::NOT_FOUND, ""}).body.find("detail"), std::string::npos);
}

TEST(Wire, FormatsResponses) {
  std::string out;
  append_response(out, {.status = 201, .content_type = "text/plain", .body = "hi"}, {.date = "now"});
  EXPECT_EQ(out, "HTTP/1.1 201 Created\r\nDate: now\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nhi");
  out.clear();
  append_response(out, {.body = "hi"}, {.omits_body = true, .persistence = Persistence::close});
  EXPECT_EQ(out, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n");
  out.clear();
  append_response(out, {.status = 204}, {});
  EXPECT_EQ(out, "HTTP/1.1 204 No Content\r\n\r\n");
}

TEST(Wire, FormatsStreams) {
  std::string out;
  append_stream_head(out, {.content_type = "text/plain"}, BodyEnd::last_chunk, {.date = "now"});
  EXPECT_EQ(out, "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n");
  out.clear();
  append_stream_head(out, {}, BodyEnd::close, {.persistence = Persistence::close});
  EXPECT_EQ(out, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
  out.clear();
  append_stream_head(out, {.status = 204}, BodyEnd::last_chunk, {});
  EXPECT_EQ(out, "HTTP/1.1 204 No Content\r\n\r\n");
  out.clear();
  append_chunk(out, std::string(26, 'x'));
  append_chunk(out, "");
  append_last_chunk(out);
  EXPECT_EQ(out, "1a\r\n" + std::string(26, 'x') + "\r\n0\r\n\r\n");
}

TEST(EventStream, FormatsEvents) {
  EXPECT_EQ(format_event({.data = "x"}), "data: x\n\n");
  EXPECT_EQ(format_event({.id = "7", .event = "run", .data = "{}"}), "id: 7\nevent: run\ndata: {}\n\n");
  EXPECT_EQ(format_event({.data = "a\nb\r\nc\rd\n"}), "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n");
  EXPECT_EQ(format_event({.id = "1\ndata: y", .data = ""}), "id: 1 data: y\ndata: \n\n");
  EXPECT_EQ(format_comment(), ": \n\n");
  EXPECT_EQ(format_comment("a\nb"), ": a\n: b\n\n");
  EXPECT_EQ(event_stream_head().content_type, "text/event-stream");
}

TEST(Wire, CannotBeSplitByAHeader) {
  Response response;
  response.add_header("X", "a\r\nSet-Cookie: b");
  EXPECT_EQ(response.header_lines, "X: a  Set-Cookie: b\r\n");
}

TEST(Wire, FormatsDates) { EXPECT_EQ(format_http_date(from_ms(1'770'372'000'123)), "Fri, 06 Feb 2026 10:00:00 GMT"); }

Request preflight_from(std::span<const Field> fields) { return {.method = "OPTIONS", .target = "/", .fields = fields}; }

TEST(Cors, AnswersListedOriginsOnly) {
  const Cors cors({.origins = {"https://a.example"}});
  const Field listed[] = {{"Origin", "https://a.example"}, {"Access-Control-Request-Method", "POST"}};
  const Field other[] = {{"Origin", "https://b.example"}, {"Access-Control-Request-Method", "POST"}};
  const auto answer = cors.answer_preflight(preflight_from(listed));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 204);
  EXPECT_NE(answer->header_lines.find("idempotency-key"), std::string::npos);
  EXPECT_NE(answer->header_lines.find("Access-Control-Max-Age: 7200\r\n"), std::string::npos);
  EXPECT_FALSE(cors.answer_preflight(preflight_from(other)));
  EXPECT_FALSE(cors.answer_preflight(preflight_from(std::span(listed).first(1)))) << "a plain OPTIONS";
  EXPECT_NE(cors.header_lines("https://a.example").find("Vary: Origin"), std::string::npos);
  EXPECT_EQ(cors.header_lines("https://b.example"), "");
  EXPECT_EQ(cors.header_lines("https://a.example.evil"), "");
  EXPECT_EQ(cors.header_lines(""), "");
}

TEST(Cors, MayAllowAllAndIsOffByDefault) {
  const std::string lines = Cors({.origins = {"*"}}).header_lines("null");
  EXPECT_TRUE(lines.starts_with("Access-Control-Allow-Origin: *\r\n"));
  EXPECT_EQ(lines.find("Vary"), std::string::npos);
  const Field fields[] = {{"Origin", "https://a.example"}, {"Access-Control-Request-Method", "POST"}};
  EXPECT_FALSE(Cors({}).answer_preflight(preflight_from(fields)));
  EXPECT_EQ(Cors({}).header_lines("https://a.example"), "");
}

class Expired {
 public:
  void advance(Deadlines& wheel, Duration now) {
    entries.clear();
    wheel.advance(now, [&](Deadlines::Entry& entry) { entries.push_back(&entry); });
  }
  std::vector<Deadlines::Entry*> entries;
};

TEST(Deadlines, ExpireOnceAndNeverEarly) {
  for (const Duration after : std::vector<Duration>{0ms, 1ms, 249ms, 250ms, 1s, 10s, 200s, 1000s}) {
    Deadlines wheel(250ms, 99ms);
    Deadlines::Entry entry;
    Expired expired;
    wheel.set(entry, 99ms, after);
    Duration at = 99ms;
    for (; at < 2000s && expired.entries.empty(); at += 100ms) expired.advance(wheel, at);
    EXPECT_GE(at, after) << after.count();
    EXPECT_LE(at, after + 1s) << after.count();
    expired.advance(wheel, 5000s);
    EXPECT_TRUE(expired.entries.empty());
  }
}

TEST(Deadlines, CanBeMovedEarlierAndLater) {
  Deadlines wheel(100ms, 0ms);
  Deadlines::Entry later, sooner, suspended, cancelled;
  Expired expired;
  for (auto* entry : {&later, &sooner, &suspended, &cancelled}) wheel.set(*entry, 0ms, 5s);
  wheel.set(later, 0ms, 100s);
  wheel.set(sooner, 0ms, 1s);
  wheel.suspend(suspended);
  wheel.cancel(cancelled);
  expired.advance(wheel, 2s);
  EXPECT_EQ(expired.entries, std::vector{&sooner});
  expired.advance(wheel, 99s);
  EXPECT_TRUE(expired.entries.empty());
  wheel.set(suspended, 99s, 3s);
  expired.advance(wheel, 105s);
  EXPECT_EQ(expired.entries.size(), 2u);
}

TEST(Deadlines, CountFromTheTimeOfSetAfterADelay) {
  Deadlines wheel(100ms, 0ms);
  Deadlines::Entry before, after;
  Expired expired;
  wheel.set(before, 0ms, 5s);
  wheel.set(after, 61s, 5s);
  expired.advance(wheel, 61s);
  EXPECT_EQ(expired.entries, std::vector{&before});
  expired.advance(wheel, 65s);
  EXPECT_TRUE(expired.entries.empty());
  expired.advance(wheel, 67s);
  EXPECT_EQ(expired.entries, std::vector{&after});
}

class Recorder final : public ReplySink {
 public:
  void deliver(Ticket, Response response) override { statuses.push_back(response.status); }
  void notify(std::shared_ptr<StreamBuffer>) override {}
  StreamLimits stream_limits() const override { return {}; }
  std::vector<int> statuses;
};

TEST(Reply, SendsExactlyOneResponse) {
  const auto sink = std::make_shared<Recorder>();
  {
    Reply reply(sink, {});
    Reply moved(std::move(reply));
    moved.send({.status = 200});
  }
  {
    Reply abandoned(sink, {});
  }
  {
    Reply first(sink, {});
    first = Reply(sink, {});
    EXPECT_EQ(sink->statuses, (std::vector{200, 500, 500})) << "a Reply that is assigned over sends 500";
    first.send({.status = 201});
    EXPECT_DEATH(first.send({.status = 202}), "sink_");
  }
  EXPECT_EQ(sink->statuses, (std::vector{200, 500, 500, 201}));
}

}  // namespace
}  // namespace latchkey::http
