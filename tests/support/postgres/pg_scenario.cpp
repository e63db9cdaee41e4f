#include "support/postgres/pg_scenario.hpp"

#include <atomic>
#include <future>
#include <sstream>

namespace latchkey {
namespace {

// The key of a follow-up contains the id of its run, which differs between executions.
std::string label(const Run& run) {
  const std::string& key = run.head->key;
  return key.empty() || key.starts_with("follow-up:") ? run.head->input : key;
}

std::string describe_run(const Run& run) {
  return label(run) + " " + std::string(to_string(run.status())) + " generation " + std::to_string(run.generation) +
         " attempt " + std::to_string(run.attempt) + "/" + std::to_string(run.attempts_max) + " failures " +
         std::to_string(run.failures) + " waits " + std::to_string(run.waiting_for);
}

struct ReplyText {
  std::string operator()(const Won& won) const {
    return "won " + describe_run(won.run) + " until " + std::to_string(to_ms(won.lease_until)) +
           (won.repeated ? " repeated" : "");
  }
  std::string operator()(const Busy& busy) const { return "busy " + describe_run(busy.run); }
  std::string operator()(const NotDue& wait) const { return "not due " + describe_run(wait.run); }
  std::string operator()(const InDoubtReply& doubt) const { return "in doubt " + describe_run(doubt.run); }
  std::string operator()(const Replay& replay) const {
    return "replay " + describe_run(replay.run) + " " + replay.run.as<Completed>()->result;
  }
  std::string operator()(const Mismatch&) const { return "mismatch"; }
  std::string operator()(const Enqueued& made) const {
    return "enqueued " + describe_run(made.run) + (made.duplicate ? " duplicate" : "");
  }
  std::string operator()(const Settled& settled) const {
    return "settled " + describe_run(settled.run) + (settled.changed ? " changed" : "") +
           (settled.dead_letter ? " dead letter" : "") + " follow-ups " + std::to_string(settled.follow_ups.size());
  }
  std::string operator()(const Extended& extended) const {
    return "extended until " + std::to_string(to_ms(extended.lease_until));
  }
  std::string operator()(const Moved& moved) const {
    return "moved " + describe_run(moved.run) + (moved.changed ? " changed" : "");
  }
  std::string operator()(const Error& error) const { return to_string(error); }
};

std::string describe(const auto& reply) { return std::visit(ReplyText{}, reply); }

}  // namespace

std::vector<std::string> Scenario::run() {
  claims();
  chains();
  blocks();
  note_snapshot();
  moves();
  doubts();
  letters();
  note_snapshot();
  purges();
  note_snapshot();
  return std::move(lines_);
}

void Scenario::note_snapshot() {
  std::istringstream snapshot(snapshot_());
  for (std::string line; std::getline(snapshot, line);) note(line);
}
void Scenario::claim(const std::string& key) { note(describe(verbs().claim(a_claim(key)))); }
Won Scenario::win(const std::string& key, OnDoubt on_doubt) {
  ClaimRequest request = a_claim(key);
  request.on_doubt = on_doubt;
  const ClaimReply reply = verbs().claim(request);
  note(describe(reply));
  return std::get<Won>(reply);
}
Settled Scenario::settle(const Won& owned, Ending ending) {
  const SettleReply reply = verbs().settle({{}, owned.run.id(), owned.fence, std::move(ending)});
  note(describe(reply));
  return std::holds_alternative<Settled>(reply) ? std::get<Settled>(reply) : Settled{};
}
void Scenario::settle_all(const std::vector<Taken>& owned, Ending ending) {
  std::vector<SettleRequest> requests;
  for (const Taken& taken : owned) requests.push_back({{}, taken.run.id(), taken.fence, ending});
  for (const SettleReply& reply : verbs().settle_all(requests)) note(describe(reply));
}
RunId Scenario::add(const std::string& key, std::vector<RunId> after, OnFailed on_failed) {
  EnqueueRequest job = a_job(key);
  job.after = std::move(after);
  job.on_failed = on_failed;
  const EnqueueReply reply = verbs().enqueue(job);
  note(describe(reply));
  return std::get<Enqueued>(reply).run.id();
}
void Scenario::add_plain(const std::string& prefix, int count) {
  std::vector<EnqueueRequest> jobs;
  for (int i = 0; i < count; ++i) jobs.push_back({.function = "f", .input = prefix + std::to_string(i)});
  for (const EnqueueReply& reply : verbs().enqueue_all(jobs)) note(describe(reply));
}
std::vector<Taken> Scenario::take(std::uint32_t limit, const std::string& function) {
  auto taken = verbs().take({.functions = {function}, .limit = limit, .session = id_of(5)});
  note("took " + std::to_string(taken.size()));
  for (const Taken& one : taken) note(ReplyText{}(one));
  return taken;
}
void Scenario::move(RunId id, Move wish) { note(describe(verbs().move({{}, id, std::move(wish)}))); }
void Scenario::sweep() {
  const Swept swept = verbs().sweep();
  note("swept " + std::to_string(swept.changed) + (swept.more ? " and more" : ""));
}

void Scenario::claims() {
  const Won first = win("a");
  note(describe(verbs().extend({{}, first.run.id(), first.fence, 3h})));
  claim("a");
  settle(first, retryable());
  claim("a");
  clock_.advance(1h);
  const Won second = win("a");
  settle(second, Complete{"result of a", {{.function = "g", .input = "one"}, {.function = "g", .input = "two"}}});
  settle(second, Complete{"result of a", {}});
  settle(first, Complete{"stale", {}});
  claim("a");
  const Instant now = store_.now();
  verbs().note({first.run.id(), {.counts = {{"REPLAYED", 5, now, now}}, .latest = {{now, "REPLAYED", "host"}}}});
  verbs().note({first.run.id(), {.counts = {{"REPLAYED", 2, now, now}}, .latest = {}}});
  settle_all(take(5, "g"), Complete{"followed", {}});

  const Won released = win("b");
  settle(released, Release{});
  settle(win("b"), Snooze{1min});
  claim("b");
  clock_.advance(1min);
  failed_.push_back(settle(win("b"), permanent("no such card")).run.id());
}

// A chain of dependents that completes, and one whose first run fails.
void Scenario::chains() {
  const RunId first = add("first");
  const RunId second = add("second", {first});
  add("third", {first, second}, OnFailed::fail);
  for (int i = 0; i < 2; ++i) settle_all(take(5), Complete{"done", {}});
  settle_all(take(5), Complete{"the last", {}});
  const RunId head = add("head");
  add("tail", {head}, OnFailed::fail);
  add("patient", {head});
  failed_.push_back(head);
  settle_all(take(5), permanent("the head failed"));
}

// Jobs that are enqueued and taken together, and settled in parts.
void Scenario::blocks() {
  add_plain("plain", 20);
  const auto some = take(12);
  if (some.size() < 12) return;  // take() has recorded the count
  const auto part = [&](std::size_t from, std::size_t to) {
    return std::vector<Taken>(some.begin() + static_cast<std::ptrdiff_t>(from),
                              some.begin() + static_cast<std::ptrdiff_t>(to));
  };
  settle_all(part(0, 6), Complete{"same", {}});
  settle_all(part(6, 8), retryable());
  settle_all(part(8, 9), permanent("one of twelve"));
  note(describe(verbs().extend({{}, some[10].run.id(), some[10].fence, 2h})));
  clock_.advance(90s);  // all leases but one expire
  sweep();
  settle_all(part(11, 12), Complete{"by its last owner, late", {}});
  settle_all(take(50), Complete{"at last", {}});
  settle_all(part(10, 11), Complete{"extended", {}});
}

void Scenario::moves() {
  const RunId queued = add("cancelled");
  move(queued, CancelByHand{});
  move(queued, CancelByHand{});
  const Won running = win("stopped");
  move(running.run.id(), CancelByHand{});
  note(describe(verbs().extend({{}, running.run.id(), running.fence, {}})));
  settle(running, retryable());
  move(failed_.at(0), RetryByHand{true});
  settle(win("b"), Complete{"the second generation", {}});
}

void Scenario::doubts() {
  const auto doubt = [&](const std::string& key) { return win(key, OnDoubt::hold).run.id(); };
  const RunId done = doubt("done"), lost = doubt("lost"), again = doubt("again");
  settle(win("unknown", OnDoubt::hold), outcome_unknown());
  clock_.advance(2min);
  sweep();
  claim("done");
  move(done, ResolveCompleted{"seen"});
  move(lost, ResolveFailed{"not seen"});
  move(again, ResolveRerun{});
  settle(win("again", OnDoubt::hold), Complete{"once more", {}});
}

void Scenario::letters() {
  for (const char* key : {"l1", "l2", "l3"}) settle(win(key), permanent(std::string("letter of ") + key));
  const auto page = store_.list_dead_letters({}).value();
  for (const DeadLetter& entry : page.entries) {
    note("letter " + entry.function + " " + entry.code + " " + entry.reason + " count " + std::to_string(entry.count));
    for (const auto& [wish, limit] : {std::pair{Move{ResolveCompleted{"by hand"}}, 2u},
                                      {Move{RetryByHand{}}, 3u},
                                      {Move{ResolveFailed{"so be it"}}, 200u}}) {
      const DeadLetterActionRequest move{.dead_letter = entry.id, .move = wish, .by = "pat", .note = "seen", .limit = limit};
      for (int i = 0; i < 2; ++i) {  // the second action changes nothing
        const auto moved = store_.act_on_dead_letter(move).value().value();
        for (const MemberActionReply& member : moved.members)
          note(std::string("member ") + (member.changed ? "changed" : "unchanged") +
               (member.refused ? " " + to_string(*member.refused) : ""));
      }
    }
    note(store_.acknowledge({}, entry.id, "pat").value().value().acknowledged_by);
  }
}

// The position of a purge round is a sequence, so a rollback does not reset it. The next round purges the runs of a
// slice that was cut.
void Scenario::purges() {
  clock_.advance(48h);
  sweep();
  before_purges();
  const auto round = [this](Store* other) {
    const Retention retention{.done = 1h, .failed = 2h};
    std::uint32_t gone = 0;
    for (bool more = true; more;) {
      std::atomic<bool> is_done{false};
      auto theirs = std::async(std::launch::async, [&] {
        std::uint32_t all = 0;
        while (other && !is_done) all += Verbs(*other).purge(retention, 3).changed;
        return all;
      });
      const Swept own = verbs().purge(retention, other ? 4 : 10);
      is_done = true;
      gone += own.changed + theirs.get();
      more = own.more;
    }
    purged += gone;
    return gone;
  };
  if (other_) {
    while (round(other_) > 0) {
    }
    round(nullptr);  // it starts at the position of the other store
  }
  while (round(nullptr) > 0) {
  }
  claim("a");
}

}  // namespace latchkey
