#include "transfer/tally.hpp"

#include <fmt/format.h>

#include <numeric>
#include <span>
#include <type_traits>

#include "store/packing.hpp"

namespace latchkey::transfer {
namespace {

// Encodes numbers in eight bytes and texts after their lengths, so that different records have different bytes.
class Encoder {
 public:
  Encoder& add(std::int64_t value) {
    for (int shift = 0; shift < 64; shift += 8) bytes_.push_back(static_cast<char>(value >> shift));
    return *this;
  }
  Encoder& add(std::string_view text) {
    add(static_cast<std::int64_t>(text.size()));
    bytes_.append(text);
    return *this;
  }
  Encoder& add(const Uuid& id) { return add(std::span<const unsigned char>(id.bytes)); }
  Encoder& add(Instant at) { return add(to_ms(at)); }
  Encoder& add(const std::optional<Instant>& at) { return at ? add(1).add(*at) : add(0); }
  Encoder& add(std::span<const unsigned char> part) {
    return add(std::string_view(reinterpret_cast<const char*>(part.data()), part.size()));
  }
  template <class T>
  requires std::is_enum_v<T> || std::is_integral_v<T> Encoder& add(T value) {
    return add(static_cast<std::int64_t>(value));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

void add_retry(Encoder& to, const RetryPolicy& retry) {
  to.add(retry.retries).add(retry.first.count()).add(retry.factor).add(retry.ceiling.count()).add(retry.total.count());
  to.add(retry.jitter).add(retry.jitter_percent).add(retry.schedule.size());
  for (const Duration delay : retry.schedule) to.add(delay.count());
}

void add_head(Encoder& to, const RunHead& head) {
  to.add(head.id).add(std::string_view(head.tenant)).add(std::string_view(head.function));
  to.add(std::string_view(head.key)).add(head.guarded());
  // Every store finds a run by the first half of the hash.
  if (head.guarded()) to.add(std::span(head.key_hash).first(16));
  to.add(pack_traits(head)).add(head.priority).add(head.fingerprint.has_value());
  if (head.fingerprint) to.add(std::span<const unsigned char>(*head.fingerprint));
  add_retry(to, head.retry);
  to.add(head.window.count()).add(head.lease.count()).add(head.created_at).add(std::string_view(head.input));
  to.add(std::string_view(head.caller)).add(head.claim);
}

struct StateEncoder {
  Encoder& to;

  void operator()(const Queued& queued) { to.add(queued.due_at).add(queued.by); }
  void operator()(const Running& running) {
    to.add(running.started_at).add(running.lease_until).add(running.claim).add(running.session);
    to.add(running.lease.count()).add(running.cancel_requested);
  }
  void operator()(const InDoubt& doubt) { to.add(doubt.since); }
  void operator()(const Completed& done) { to.add(done.at).add(std::string_view(done.result)); }
  void operator()(const Failed& failed) { to.add(failed.at).add(std::string_view(failed.code)).add(failed.effect); }
  void operator()(const Cancelled& end) { to.add(end.at).add(std::string_view(end.code)).add(end.effect); }
};

void add_run_of(Encoder& to, const Run& run) {
  add_head(to, *run.head);
  to.add(run.origin).add(run.generation).add(run.attempt).add(run.attempts_max).add(run.failures);
  to.add(run.attempts_total).add(run.fence).add(run.first_attempt_at).add(run.waiting_for);
  to.add(std::string_view(run.last_error)).add(std::string_view(run.last_error_code));
  to.add(run.opened_by).add(run.effect_key).add(run.status());
  std::visit(StateEncoder{to}, run.state);
}

}  // namespace

std::uint64_t Counts::all_runs() const { return std::accumulate(runs.begin(), runs.end(), std::uint64_t{0}); }

void Tally::add_run(const TransferredRun& moved) {
  Encoder record;
  add_run_of(record, moved.run);
  record.add(moved.has_key).add(moved.duplicates.has_value());
  if (moved.duplicates) record.add(std::string_view(encode_duplicates(*moved.duplicates)));
  runs_.add_prefixed(record.bytes());
  counts_.runs.at(static_cast<std::size_t>(moved.run.status())) += 1;
  counts_.keys += moved.has_key ? 1 : 0;
  counts_.duplicates += moved.duplicates ? 1 : 0;
}

void Tally::add_wait(const Wait& wait) {
  waits_.add_prefixed(Encoder().add(wait.predecessor).add(wait.dependent).add(wait.run).bytes());
  counts_.waits += 1;
}

void Tally::add_dead_letter(const DeadLetter& dead_letter) {
  Encoder record;
  record.add(dead_letter.id).add(std::string_view(dead_letter.tenant)).add(std::string_view(dead_letter.function));
  record.add(std::string_view(dead_letter.code)).add(std::string_view(dead_letter.reason)).add(dead_letter.latest_run);
  record.add(dead_letter.count).add(dead_letter.opened_at).add(dead_letter.updated_at).add(dead_letter.acknowledged_at);
  record.add(std::string_view(dead_letter.acknowledged_by));
  dead_letters_.add_prefixed(record.bytes());
  counts_.dead_letters += 1;
}

void Tally::add_member(const DeadLetterMember& member, const DeadLetter& dead_letter) {
  Encoder record;
  record.add(dead_letter.id).add(member.run).add(member.generation).add(std::string_view(member.key));
  record.add(std::string_view(member.code)).add(std::string_view(member.reason)).add(member.attempts);
  record.add(member.effect).add(member.at).add(member.steps.size());
  for (const MemberStep& step : member.steps)
    record.add(step.kind).add(std::string_view(step.by)).add(step.at).add(std::string_view(step.note));
  dead_letters_.add_prefixed(record.bytes());
  counts_.members += 1;
  counts_.steps += member.steps.size();
}

void Tally::add_token(const TokenRecord& token) {
  Encoder record;
  record.add(std::string_view(token.id)).add(std::span<const unsigned char>(token.secret_hash));
  record.add(std::string_view(token.name)).add(token.role).add(token.tenants.size());
  for (const std::string& tenant : token.tenants) record.add(std::string_view(tenant));
  record.add(token.created_at).add(token.expires_at).add(token.revoked_at);
  tokens_.add_prefixed(record.bytes());
  counts_.tokens += 1;
}

Summary Tally::finish() {
  Summary summary{.counts = counts_,
                  .runs = runs_.finish(),
                  .waits = waits_.finish(),
                  .dead_letters = dead_letters_.finish(),
                  .tokens = tokens_.finish()};
  Encoder whole;
  for (const Digest& part : {summary.runs, summary.waits, summary.dead_letters, summary.tokens})
    whole.add(std::span<const unsigned char>(part));
  summary.hash = sha256(whole.bytes());
  return summary;
}

std::string describe_difference(const Summary& a, const Summary& b) {
  std::string text;
  const auto add = [&](bool differs, const std::string& what) {
    if (differs) text += (text.empty() ? "" : ", ") + what;
  };
  const auto count = [&](const char* what, std::uint64_t here, std::uint64_t there) {
    add(here != there, fmt::format("{}: {} and {}", what, here, there));
  };
  for (std::size_t status = 0; status < a.counts.runs.size(); ++status)
    count(fmt::format("runs {}", to_string(static_cast<Status>(status))).c_str(), a.counts.runs.at(status),
          b.counts.runs.at(status));
  count("keys", a.counts.keys, b.counts.keys);
  count("waits", a.counts.waits, b.counts.waits);
  count("suppressed repeats", a.counts.duplicates, b.counts.duplicates);
  count("dead letters", a.counts.dead_letters, b.counts.dead_letters);
  count("their members", a.counts.members, b.counts.members);
  count("their steps", a.counts.steps, b.counts.steps);
  count("tokens", a.counts.tokens, b.counts.tokens);
  add(a.runs != b.runs, "the hash of the runs");
  add(a.waits != b.waits, "the hash of the waits");
  add(a.dead_letters != b.dead_letters, "the hash of the dead letters");
  add(a.tokens != b.tokens, "the hash of the tokens");
  return text;
}

}  // namespace latchkey::transfer
