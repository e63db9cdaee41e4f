// OriginQueue: the calls that wait for a connection, with a limit for all and one for each origin.
//
// Calls of one origin are taken in the order in which they were pushed. Origins that are below their limit take turns,
// so a slow origin with many calls does not delay the calls to others. libcurl has a queue of its own, but a call to a
// busy host can stop it, so the client admits no more calls than libcurl has connections for. Not thread-safe.
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <unordered_map>

namespace latchkey::http {

struct OutgoingCall;

class OriginQueue {
 private:
  struct Origin;

 public:
  struct Limits {
    std::size_t total_max = 1;
    std::size_t per_origin_max = 1;
  };

  // The place of a call: in the queue, then in use.
  struct Ticket {
    Origin* origin = nullptr;
    std::list<OutgoingCall*>::iterator place;  // while it waits
  };

  explicit OriginQueue(Limits limits) : limits_(limits) {}

  Ticket push(std::string origin, OutgoingCall& call);
  // Takes the next call that the limits admit; nullptr when there is none. The call counts until release().
  OutgoingCall* take();
  // Ends a call that was taken.
  void release(const Ticket& ticket);
  // Removes a call that waits.
  void remove(const Ticket& ticket);

 private:
  struct Origin {
    const std::string* name = nullptr;  // its key in origins_
    std::list<OutgoingCall*> waiting;
    std::size_t running = 0;
    std::list<Origin*>::iterator turn;
    bool has_turn = false;
  };

  // Adds the origin to the turns, or removes it from them, as its state demands. Forgets it when it has no calls.
  void update(Origin& origin);

  const Limits limits_;
  std::unordered_map<std::string, Origin> origins_;
  std::list<Origin*> turns_;  // origins with a call that may start
  std::size_t running_ = 0;
};

}  // namespace latchkey::http
