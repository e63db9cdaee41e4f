// ClaimsOnThread: the claim verbs of a RunApi as a ClaimStore, for run_once(). The calls run on a thread of their own,
// one after the other, so that a slow store or server delays neither the command's output nor a signal.
//
// Any thread may call a verb; the callback runs on the thread of this class. The destructor waits for the current call
// and for the queued ones.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/task.hpp"
#include "client/run_api.hpp"

namespace latchkey {

class ClaimsOnThread final : public ClaimStore {
 public:
  explicit ClaimsOnThread(RunApi& api) : api_(api) {}
  ~ClaimsOnThread() override { thread_.join(); }

  void claim(ClaimRequest request, Done<ClaimReply> done) override {
    asio::post(thread_,
               [this, request = std::move(request), done = std::move(done)]() mutable { done(api_.claim(request)); });
  }
  void extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) override {
    asio::post(thread_, [this, requests = std::move(requests), done = std::move(done)]() mutable {
      done(api_.extend(requests));
    });
  }
  void settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) override {
    asio::post(thread_, [this, requests = std::move(requests), done = std::move(done)]() mutable {
      done(api_.settle(requests));
    });
  }

 private:
  RunApi& api_;
  boost::asio::thread_pool thread_{1};
};

}  // namespace latchkey
