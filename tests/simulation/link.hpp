// SimLink: the connection of a process to the server. It delays, loses and repeats requests, and loses replies. A
// caller without a reply gets REPLY_LOST after a timeout and does not know whether its request took effect.
#pragma once

#include "simulation/world.hpp"

namespace latchkey::sim {

class SimLink final : public ClaimStore {
 public:
  explicit SimLink(Process& from) : from_(from), world_(from.world) {}

  void claim(ClaimRequest request, Done<ClaimReply> done) override;
  void extend(std::vector<ExtendRequest> requests, Done<std::vector<ExtendReply>> done) override;
  void settle(std::vector<SettleRequest> requests, Done<std::vector<SettleReply>> done) override;
  void enqueue(std::vector<EnqueueRequest> requests, Done<std::vector<EnqueueReply>> done);
  void take(TakeRequest request, Done<std::vector<Taken>> done);
  void move(MoveRequest request, Done<MoveReply> done);

 private:
  template <class T>
  struct Call {
    Done<T> done;
    bool answered = false;
  };
  template <class T>
  void answer(const std::shared_ptr<Call<T>>& call, Result<T> reply);
  template <class Request, class T, class Verb>
  void send(const char* name, Request request, Done<T> done, Verb verb);
  template <class Request, class T, class Verb>
  void arrive(const char* name, Request request, std::shared_ptr<Call<T>> call, Verb verb);

  Process& from_;
  World& world_;
};

}  // namespace latchkey::sim
