// The fixture of every conformance test: a fresh store of the back end under test, its verbs as plain calls.
#pragma once

#include <gtest/gtest.h>

#include "conformance/await.hpp"
#include "conformance/backend.hpp"
#include "support/sample_runs.hpp"

namespace latchkey {

using namespace std::chrono_literals;

// Verbs: the store's verbs as blocking calls. Any thread may call.
class Verbs {
 public:
  explicit Verbs(Store& store) : store_(store) {}
  ClaimReply claim(ClaimRequest request);
  ExtendReply extend(ExtendRequest request);
  SettleReply settle(SettleRequest request);
  std::vector<SettleReply> settle_all(std::vector<SettleRequest> requests);
  EnqueueReply enqueue(EnqueueRequest request);
  std::vector<EnqueueReply> enqueue_all(std::vector<EnqueueRequest> requests);
  std::vector<Taken> take(TakeRequest request);
  MoveReply move(MoveRequest request);
  Swept sweep(std::uint32_t limit = 1000);
  Swept purge(Retention retention = {}, std::uint32_t limit = 1000);
  void note(DuplicateNote note);

 private:
  Store& store_;
};

class StoreTestBase {
 public:
  explicit StoreTestBase(const Backend& backend) : open_(backend.make()) {}

  using Run = latchkey::Run;  // not testing::Test::Run

  OpenStore& opened() { return *open_; }
  Store& store() { return open_->store(); }
  Verbs verbs() { return Verbs(store()); }
  void advance(Duration span) { open_->clock().advance(span); }
  Instant now() { return store().now(); }

  // The usual calls. Each throws, which fails the test, if its reply is another one.
  Won win(ClaimRequest request = a_claim());
  Run add(EnqueueRequest request);
  Taken take_one(std::string function = "f");
  std::vector<Taken> take_up_to(std::uint32_t limit, std::string function = "f");
  Settled end(const Won& owned, Ending ending = Complete{"result", {}});
  Run find(RunId id);
  bool is_gone(RunId id) { return !store().find({}, id).value(); }
  Moved move(RunId id, Move wish);
  // Brings a key to the row's state by the store's own verbs. The key is "k".
  std::optional<Run> reach(KeyState state);

 private:
  std::unique_ptr<OpenStore> open_;
};

class StoreTest : public StoreTestBase, public testing::TestWithParam<Backend> {
 public:
  using Run = latchkey::Run;
  StoreTest() : StoreTestBase(GetParam()) {}
};

Fail retryable(std::string message = "boom");
Fail permanent(std::string message = "boom");
Fail outcome_unknown();

template <class Reply>
Code code_of(const Reply& reply) {
  const auto* error = std::get_if<Error>(&reply);
  if (!error) throw std::runtime_error("expected an Error");
  return error->code;
}

#define LK_CONFORMANCE(suite)                                                      \
  INSTANTIATE_TEST_SUITE_P(On, suite, ::testing::ValuesIn(::latchkey::backends()), \
                           [](const auto& backend) { return backend.param.name; })

}  // namespace latchkey
