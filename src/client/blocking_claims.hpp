// BlockingClaims: the verbs of Claims as calls that wait, and ClaimsOnThread: those as Claims, on a thread of their
// own, so that a slow store or server stops neither the command's output nor a signal.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/task.hpp"
#include "store/store.hpp"

namespace latchkey {

class BlockingClaims {
 public:
  virtual ~BlockingClaims() = default;
  virtual Result<ClaimReply> claim(const ClaimRequest& request) = 0;
  virtual Result<std::vector<ExtendReply>> extend(const std::vector<ExtendRequest>& requests) = 0;
  virtual Result<std::vector<SettleReply>> settle(const std::vector<SettleRequest>& requests) = 0;
};

// One call after the other. The destructor waits for the call in hand.
class ClaimsOnThread final : public ClaimStore {
 public:
  explicit ClaimsOnThread(BlockingClaims& claims) : claims_(claims) {}
  ~ClaimsOnThread() override { thread_.join(); }

  void claim(ClaimRequest request, Done<ClaimReply> done) override {
    asio::post(thread_, [this, request = std::move(request), done = std::move(done)]() mutable {
      done(claims_.claim(request));
    });
  }
  void extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) override {
    asio::post(thread_, [this, requests = std::move(requests), done = std::move(done)]() mutable {
      done(claims_.extend(requests));
    });
  }
  void settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) override {
    asio::post(thread_, [this, requests = std::move(requests), done = std::move(done)]() mutable {
      done(claims_.settle(requests));
    });
  }

 private:
  BlockingClaims& claims_;
  boost::asio::thread_pool thread_{1};
};

}  // namespace latchkey
