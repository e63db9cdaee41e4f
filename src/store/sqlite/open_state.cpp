#include "store/sqlite/open_state.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"

namespace latchkey {
namespace {

// The first byte is the status, the second one these flags.
enum Field : unsigned {
  kTaken = 1,
  kCancelRequested = 2,
  kOwner = 4,
  kOpenedBy = 8,
  kEffectKey = 16,
  kError = 32,
  kEnqueued = 64,
  kLease = 128,  // another than the head's
  kFailures = 256
};

// Little-endian groups of seven bits; the top bit says that more follow.
void put(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}
void put(std::string& to, Instant at) { put(to, static_cast<std::uint64_t>(to_ms(at))); }
void put(std::string& to, const Uuid& id) {
  to.append(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
}
void put(std::string& to, std::string_view text) {
  put(to, text.size());
  to.append(text);
}

struct Reader {
  std::string_view left;

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !left.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(left.front());
      left.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  Instant instant() { return from_ms(static_cast<std::int64_t>(number())); }
  std::string_view bytes(std::size_t size) {
    const auto value = left.substr(0, size);
    left.remove_prefix(value.size());
    return value;
  }
  Uuid uuid() {
    Uuid id;
    const auto value = bytes(id.bytes.size());
    std::memcpy(id.bytes.data(), value.data(), value.size());
    return id;
  }
  std::string text() { return std::string(bytes(number())); }
};

unsigned marks_of(const Run& run) {
  unsigned marks = run.origin == Origin::enqueued ? kEnqueued : 0;
  if (const auto* running = run.as<Running>()) {
    if (!running->session.is_nil()) marks |= kTaken | kOwner;
    if (!running->claim.is_nil()) marks |= kOwner;
    if (running->cancel_requested) marks |= kCancelRequested;
    if (running->lease != run.head->lease) marks |= kLease;
  }
  if (run.failures > 0) marks |= kFailures;
  if (!run.opened_by.is_nil()) marks |= kOpenedBy;
  if (run.effect_key != run.id()) marks |= kEffectKey;
  if (!run.last_error.empty() || !run.last_error_code.empty()) marks |= kError;
  return marks;
}

State read_state(Reader& from, Status status, unsigned marks, const RunHead& head) {
  const Instant at = from.instant();
  if (status == Status::queued) return Queued{at, static_cast<QueuedBy>(from.number())};
  if (status == Status::in_doubt) return InDoubt{at};
  Running running{.started_at = at,
                  .lease_until = from.instant(),
                  .lease = head.lease,
                  .cancel_requested = (marks & kCancelRequested) != 0};
  if (marks & kOwner) (marks & kTaken ? running.session : running.claim) = from.uuid();
  if (marks & kLease) running.lease = Duration{static_cast<std::int64_t>(from.number())};
  return running;
}

}  // namespace

std::string_view pack_open(const Run& run, std::string& buffer) {
  LK_ASSERT(run.is_open());
  const unsigned marks = marks_of(run);
  buffer.clear();
  put(buffer, static_cast<std::uint64_t>(run.status()));
  put(buffer, std::uint64_t{marks});
  if (const auto* queued = run.as<Queued>()) {
    put(buffer, queued->due_at);
    put(buffer, static_cast<std::uint64_t>(queued->by));
  } else if (const auto* running = run.as<Running>()) {
    put(buffer, running->started_at);
    put(buffer, running->lease_until);
    if (marks & kOwner) put(buffer, marks & kTaken ? running->session : running->claim);
    if (marks & kLease) put(buffer, static_cast<std::uint64_t>(running->lease.count()));
  } else {
    put(buffer, run.as<InDoubt>()->since);
  }
  put(buffer, std::uint64_t{run.attempt});
  put(buffer, std::uint64_t{run.attempts_max});
  put(buffer, std::uint64_t{run.attempts_total});
  put(buffer, static_cast<std::uint64_t>(run.fence));
  put(buffer, run.first_attempt_at);
  put(buffer, std::uint64_t{run.waiting_for});
  if (marks & kFailures) put(buffer, std::uint64_t{run.failures});
  if (marks & kOpenedBy) put(buffer, run.opened_by);
  if (marks & kEffectKey) put(buffer, run.effect_key);
  if (marks & kError) {
    put(buffer, std::string_view(run.last_error));
    put(buffer, std::string_view(run.last_error_code));
  }
  return buffer;
}

void unpack_open(std::string_view bytes, Run& run) {
  Reader from{bytes};
  const auto status = static_cast<Status>(from.number());
  const auto marks = static_cast<unsigned>(from.number());
  run.origin = marks & kEnqueued ? Origin::enqueued : Origin::claimed;
  run.state = read_state(from, status, marks, *run.head);
  run.attempt = static_cast<std::uint32_t>(from.number());
  run.attempts_max = static_cast<std::uint32_t>(from.number());
  run.attempts_total = static_cast<std::uint32_t>(from.number());
  run.fence = static_cast<Fence>(from.number());
  run.first_attempt_at = from.instant();
  run.waiting_for = static_cast<std::uint32_t>(from.number());
  if (marks & kFailures) run.failures = static_cast<std::uint32_t>(from.number());
  if (marks & kOpenedBy) run.opened_by = from.uuid();
  run.effect_key = marks & kEffectKey ? from.uuid() : run.id();
  if (marks & kError) {
    run.last_error = from.text();
    run.last_error_code = from.text();
  }
}

}  // namespace latchkey
