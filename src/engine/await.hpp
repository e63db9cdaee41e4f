// The store's verbs as awaitables. A verb calls back on any thread of the store; the coroutine resumes on its own
// executor. A coroutine that is cancelled while it waits resumes at once with WAIT_CANCELLED and the reply is dropped;
// the command may still be executed. A store must be closed before the io_context whose coroutines wait for it.
#pragma once

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <utility>

#include "base/task.hpp"
#include "store/store.hpp"

namespace latchkey {

// A coroutine that waits for a reply. Used on its own executor only.
template <class T, class Handler>
struct Waiting {
  Handler handler;
  asio::executor_work_guard<asio::associated_executor_t<Handler>> work;  // the io_context runs until the reply
  bool answered = false;

  void answer(Result<T> reply) {
    if (std::exchange(answered, true)) return;
    asio::get_associated_cancellation_slot(handler).clear();
    const auto released = std::move(work);
    std::move(handler)(std::move(reply));
  }
};

// Passes a Done<T> to `start`, and waits until it is called.
template <class T, class Start>
Task<Result<T>> await_reply(Start start) {
  return asio::async_initiate<const asio::use_awaitable_t<>, void(Result<T>)>(
      []<class Handler>(Handler handler, Start begin) {
        auto work = asio::make_work_guard(handler);
        const auto executor = work.get_executor();
        auto slot = asio::get_associated_cancellation_slot(handler);
        const auto waiting = std::make_shared<Waiting<T, Handler>>(std::move(handler), std::move(work));
        // The handler is always posted, because the memory store calls back before its verb returns.
        if (slot.is_connected())
          slot.assign([weak = std::weak_ptr(waiting), executor](asio::cancellation_type) {
            // A weak pointer, because the slot belongs to the coroutine that `waiting` owns.
            if (auto waiting = weak.lock())
              asio::post(executor, [waiting] { waiting->answer(fail(Code::WAIT_CANCELLED, "")); });
          });
        begin(Done<T>([waiting, executor](Result<T> reply) {
          asio::post(executor, [waiting, reply = std::move(reply)]() mutable { waiting->answer(std::move(reply)); });
        }));
      },
      asio::use_awaitable, std::move(start));
}

inline Task<Result<ClaimReply>> claim(ClaimStore& claims, ClaimRequest request) {
  return await_reply<ClaimReply>([&claims, request = std::move(request)](Done<ClaimReply> done) mutable {
    claims.claim(std::move(request), std::move(done));
  });
}

inline Task<Result<std::vector<ExtendReply>>> extend(ClaimStore& claims, std::vector<ExtendRequest> requests) {
  return await_reply<std::vector<ExtendReply>>(
      [&claims, requests = std::move(requests)](Done<std::vector<ExtendReply>> done) mutable {
        claims.extend(std::move(requests), std::move(done));
      });
}

inline Task<Result<std::vector<SettleReply>>> settle(ClaimStore& claims, std::vector<SettleRequest> requests) {
  return await_reply<std::vector<SettleReply>>(
      [&claims, requests = std::move(requests)](Done<std::vector<SettleReply>> done) mutable {
        claims.settle(std::move(requests), std::move(done));
      });
}

// Further verbs, for every class that has them: a Store, the Engine, a link of the simulation.
template <class Jobs>
Task<Result<std::vector<EnqueueReply>>> enqueue(Jobs& jobs, std::vector<EnqueueRequest> requests) {
  return await_reply<std::vector<EnqueueReply>>(
      [&jobs, requests = std::move(requests)](Done<std::vector<EnqueueReply>> done) mutable {
        jobs.enqueue(std::move(requests), std::move(done));
      });
}

template <class Jobs>
Task<Result<std::vector<Taken>>> take(Jobs& jobs, TakeRequest request) {
  return await_reply<std::vector<Taken>>([&jobs, request = std::move(request)](Done<std::vector<Taken>> done) mutable {
    jobs.take(std::move(request), std::move(done));
  });
}

template <class Jobs>
Task<Result<MoveReply>> move(Jobs& jobs, MoveRequest request) {
  return await_reply<MoveReply>([&jobs, request = std::move(request)](Done<MoveReply> done) mutable {
    jobs.move(std::move(request), std::move(done));
  });
}

inline Task<Result<Swept>> sweep(Store& store, std::uint32_t limit) {
  return await_reply<Swept>([&store, limit](Done<Swept> done) { store.sweep(limit, std::move(done)); });
}

inline Task<Result<Swept>> purge(Store& store, Retention retention, std::uint32_t limit) {
  return await_reply<Swept>(
      [&store, retention, limit](Done<Swept> done) { store.purge(retention, limit, std::move(done)); });
}

}  // namespace latchkey
