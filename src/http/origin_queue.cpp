#include "http/origin_queue.hpp"

#include <iterator>
#include <utility>

namespace latchkey::http {

OriginQueue::Ticket OriginQueue::push(std::string origin, OutgoingCall& call) {
  const auto [at, is_new] = origins_.try_emplace(std::move(origin));
  Origin& entry = at->second;
  if (is_new) entry.name = &at->first;
  entry.waiting.push_back(&call);
  const Ticket ticket{.origin = &entry, .place = std::prev(entry.waiting.end())};
  update(entry);
  return ticket;
}

OutgoingCall* OriginQueue::take() {
  if (turns_.empty() || running_ >= limits_.total_max) return nullptr;
  Origin& origin = *turns_.front();
  OutgoingCall* const call = origin.waiting.front();
  origin.waiting.pop_front();
  origin.running += 1;
  running_ += 1;
  turns_.splice(turns_.end(), turns_, origin.turn);
  update(origin);
  return call;
}

void OriginQueue::release(const Ticket& ticket) {
  ticket.origin->running -= 1;
  running_ -= 1;
  update(*ticket.origin);
}

void OriginQueue::remove(const Ticket& ticket) {
  ticket.origin->waiting.erase(ticket.place);
  update(*ticket.origin);
}

void OriginQueue::update(Origin& origin) {
  const bool may_start = !origin.waiting.empty() && origin.running < limits_.per_origin_max;
  if (may_start && !origin.has_turn) origin.turn = turns_.insert(turns_.end(), &origin);
  if (!may_start && origin.has_turn) turns_.erase(origin.turn);
  origin.has_turn = may_start;
  if (origin.waiting.empty() && origin.running == 0) origins_.erase(origins_.find(*origin.name));
}

}  // namespace latchkey::http
