#include "transfer/move.hpp"

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "migrate/live_servers.hpp"
#include "migrate/migration_error.hpp"
#include "migrate/own_schema.hpp"
#include "transfer/database_address.hpp"
#include "transfer/target.hpp"

namespace latchkey::transfer {

using migrate::MigrationError;

namespace {

constexpr std::uint64_t kTellEvery = 1'000;

// Counts while it passes on; without a writer it only counts. Names that people gave are made readable before both:
// PostgreSQL keeps as text only what is text, and what is counted is what the copy is to hold.
class Passing final : public Sink {
 public:
  Passing(Writer* writer, const MoveSettings& settings) : writer_(writer), settings_(settings) {}

  void add_run(const MovedRun& moved) override {
    tally_.add_run(moved);
    if (writer_) writer_->add_run(moved);
    if (++runs_ % kTellEvery == 0) settings_.on_progress(writer_ ? Doing::copying : Doing::verifying, runs_);
  }
  void add_wait(const Wait& wait) override {
    tally_.add_wait(wait);
    if (writer_) writer_->add_wait(wait);
  }
  void add_letter(const DeadLetter& given) override {
    DeadLetter letter = given;
    letter.acknowledged_by = make_readable(letter.acknowledged_by);
    tally_.add_letter(letter);
    if (writer_) writer_->add_letter(letter);
  }
  void add_member(const DeadLetterMember& given, const DeadLetter& letter) override {
    DeadLetterMember member = given;
    for (MemberStep& step : member.steps) step.by = make_readable(step.by);
    tally_.add_member(member, letter);
    if (writer_) writer_->add_member(member, letter);
  }
  void add_token(const TokenRecord& given) override {
    TokenRecord token = given;
    token.name = make_readable(token.name);
    tally_.add_token(token);
    if (writer_) writer_->add_token(token);
  }
  void add_record(const CatalogRecord& record) override {
    tally_.add_record(record);
    if (writer_) writer_->add_record(record);
  }
  void add_audit(const AuditEntry& entry) override {
    tally_.add_audit(entry);
    if (writer_) writer_->add_audit(entry);
  }
  Summary finish() {
    if (writer_) writer_->flush();
    return tally_.finish();
  }

 private:
  Writer* writer_;
  const MoveSettings& settings_;
  Tally tally_;
  std::uint64_t runs_ = 0;
};

Summary read_source(Source& source, Writer* writer, const MoveSettings& settings) {
  Passing passing(writer, settings);
  source.walk(passing);
  return passing.finish();
}

void require_schema(const std::string& url, Random& random) {
  if (const auto ready = migrate::prepare_own_schema(url, random); !ready)
    throw MigrationError(ready.error().code, ready.error().detail);
}

// Elsewhere there may be a copy that was committed: two of them must not be.
void require_place(const std::optional<MovedMark>& mark, const Target& target) {
  if (mark && !is_same_place(mark->place, target.place()))
    throw MigrationError(Code::STORE_MOVED, describe(*mark) + fmt::format("; not to {}", target.place()));
}

// The copy is there when this returns, or it is not and the error says so. A mark that says "moved" is never weakened,
// and a commit that is refused leaves the one that was: it may be of a copy that was committed before.
void commit(Source& source, Target& target, bool keeps, Instant now) {
  const auto& before = source.mark();
  const bool begins = !keeps && !(before && before->is_finished);
  if (begins) source.write_mark({target.place(), now, false});
  const Target::CommitResult kept = target.commit();
  if (kept == Target::CommitResult::unknown)
    throw MigrationError(
        Code::STORE_UNAVAILABLE,
        "PostgreSQL did not confirm the commit: whether the copy was kept, or on its standby, is not known; run "
        "the move again");
  if (kept == Target::CommitResult::rolled_back) {
    if (begins && before) source.write_mark(*before);
    if (begins && !before) source.erase_mark();
    throw MigrationError(Code::STORE_UNAVAILABLE,
                         "PostgreSQL refused the commit; it holds what it held before, and no more");
  }
  if (!keeps) source.write_mark({target.place(), now, true});
}

// The copy that is there, from a move that was cut off behind its commit. None: there is nothing, or nothing but tokens
// that are the file's own; they are the copy's then. STORE_NOT_EMPTY for anything else.
std::optional<Summary> find_earlier_copy(Source& source, Target& target, const MoveSettings& settings) {
  if (target.find_contents().empty()) return std::nullopt;
  const Summary summary = read_source(source, nullptr, settings);
  if (target.find_copy(summary)) return summary;
  if (const std::string contents = target.find_contents_but(source.list_tokens()); !contents.empty())
    throw MigrationError(Code::STORE_NOT_EMPTY,
                         fmt::format("{} holds {} that are not from this store as it is now; nothing was moved",
                                     target.place(), contents));
  return std::nullopt;
}

// A server has been here, and left tokens. One that still runs has drawn ids and fences that may be the file's; one
// that begins now draws higher ones.
void take_over_tokens(Source& source, Target& target, const MoveSettings& settings) {
  target.raise(source.marks());
  if (const auto servers = migrate::find_live_servers(settings.url); !servers.empty())
    throw MigrationError(Code::STORE_LOCKED,
                         fmt::format("a server is running on the database that is to be copied into ({}): "
                                     "stop it first; nothing was moved",
                                     fmt::join(servers, ", ")));
  target.remove_tokens();
}

void copy(Source& source, Target& target, MoveReport& report, const MoveSettings& settings) {
  if (!target.find_contents().empty()) take_over_tokens(source, target, settings);
  Writer writer(target);
  report.source = read_source(source, &writer, settings);
  settings.on_progress(Doing::verifying, report.source.counts.all_runs());
  report.target = target.read_back();
  if (*report.target != report.source)
    throw MigrationError(Code::COPY_DIFFERS, "the copy is not what was read, and was undone: " +
                                                 describe_difference(report.source, *report.target));
  target.name(report.source);
}

MoveReport move(const MoveSettings& settings, Clock& clock, Random& random) {
  Source source(settings.file, clock, random);
  require_schema(settings.url, random);
  Target target(settings.url);
  require_place(source.mark(), target);
  target.begin();
  MoveReport report{.place = target.place(), .is_marked = !settings.keeps, .not_moved = source.own_tables()};
  if (const auto earlier = find_earlier_copy(source, target, settings))
    report.source = *earlier;
  else if (source.mark() && source.mark()->is_finished)
    throw MigrationError(Code::STORE_MOVED, describe(*source.mark()) + ", but there is nothing: has it been removed?");
  else
    copy(source, target, report, settings);
  target.raise(source.marks());
  settings.on_progress(Doing::committing, report.source.counts.all_runs());
  commit(source, target, settings.keeps, clock.now());
  return report;
}

template <class Work>
auto caught(Work work) -> Result<decltype(work())> {
  try {
    return work();
  } catch (const MigrationError& stop) {
    return fail(stop.code, stop.what());
  }
}

}  // namespace

Result<MoveReport> move_store(const MoveSettings& settings, Clock& clock, Random& random) {
  return caught([&] { return move(settings, clock, random); });
}

Result<bool> unmark_store(const std::string& file, Clock& clock, Random& random) {
  return caught([&] {
    Source source(file, clock, random);
    if (!source.mark()) return false;
    source.erase_mark();
    return true;
  });
}

Result<Summary> summarise(Store& store) {
  return caught([&] {
    Tally tally;
    walk(store, tally);
    return tally.finish();
  });
}

}  // namespace latchkey::transfer
