// A client reads the runs that the server writes.
#include "wire/run_json.hpp"

#include <gtest/gtest.h>

#include "wire/run_reader.hpp"

namespace latchkey::wire {
namespace {

Run make_run(State state) {
  auto head = std::make_shared<RunHead>();
  head->id = make_uuid_v7(from_ms(1'770'379'200'123), 77, 99);
  head->tenant = "acme";
  head->function = "send \"mail\"";
  head->key = "order-1";
  head->guard = Guard::once;
  head->on_doubt = OnDoubt::hold;
  head->priority = -5;
  head->created_at = from_ms(1'770'379'200'123);
  head->caller = "worker 7";
  head->input = R"({"to":"a@b"})";
  Run run;
  run.head = std::move(head);
  run.origin = Origin::enqueued;
  run.generation = 3;
  run.attempt = 2;
  run.attempts_max = 9;
  run.fence = Fence{41};
  run.effect_key = make_uuid_v7(from_ms(5), 6, 7);
  run.state = std::move(state);
  return run;
}

Run write_and_read(const Run& run) {
  simdjson::dom::parser parser;
  return read_run(parser.parse(to_json(run, Payloads::all)).value()).value();
}

TEST(RunJson, ClientReadsEveryState) {
  const Instant at = from_ms(1'770'379'300'000);
  const State states[] = {Queued{at, QueuedBy::enqueue},
                          Running{.started_at = at, .lease_until = at + Duration{5}, .cancel_requested = true},
                          InDoubt{at},
                          Completed{at, "not json"},
                          Failed{at, "E_NET", Effect::unknown},
                          Cancelled{at, "CANCELLED_BY_HAND", Effect::none}};
  for (const State& state : states) {
    const auto written = make_run(state), read = write_and_read(written);
    EXPECT_EQ(to_json(read, Payloads::all), to_json(written, Payloads::all));
  }
}

TEST(RunJson, ClientReadsTheHead) {
  const auto written = make_run(InDoubt{from_ms(1)}), read = write_and_read(written);
  EXPECT_EQ(read.head->id, written.head->id);
  EXPECT_EQ(read.head->function, written.head->function);
  EXPECT_EQ(read.head->priority, written.head->priority);
  EXPECT_EQ(read.head->input, written.head->input);
  EXPECT_EQ(read.effect_key, written.effect_key);
  EXPECT_EQ(read.fence, written.fence);
}

TEST(RunJson, ObjectWithoutIdIsNoRun) {
  simdjson::dom::parser parser;
  const auto read = read_run(parser.parse(std::string(R"({"status":"running"})")).value());
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::REPLY_LOST);
}

TEST(RunJson, ListsHaveTheFirstLineOfALongError) {
  latchkey::Run run;
  run.head = std::make_shared<RunHead>();
  run.state = Failed{};
  run.last_error = "exit status 3\n--- stdout\n" + std::string(5000, 'x');
  EXPECT_NE(to_json(run, Payloads::none).find(R"("message":"exit status 3"})"), std::string::npos);
  EXPECT_NE(to_json(run, Payloads::all).find("xxx"), std::string::npos);
}

}  // namespace
}  // namespace latchkey::wire
