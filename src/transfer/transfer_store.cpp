#include "transfer/transfer_store.hpp"

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

constexpr std::uint64_t kReportEvery = 1'000;

// Adds the content to the tally and passes it to the writer, if there is one. Names from users are escaped before both:
// PostgreSQL stores only valid text, and the tally must be that of the copy.
class CountingVisitor final : public StoreVisitor {
 public:
  CountingVisitor(Writer* writer, const TransferSettings& settings) : writer_(writer), settings_(settings) {}

  void add_run(const TransferredRun& moved) override {
    tally_.add_run(moved);
    if (writer_) writer_->add_run(moved);
    if (++runs_ % kReportEvery == 0)
      settings_.on_progress(writer_ ? TransferPhase::copying : TransferPhase::verifying, runs_);
  }
  void add_wait(const Wait& wait) override {
    tally_.add_wait(wait);
    if (writer_) writer_->add_wait(wait);
  }
  void add_dead_letter(const DeadLetter& given) override {
    DeadLetter dead_letter = given;
    dead_letter.acknowledged_by = make_readable(dead_letter.acknowledged_by);
    tally_.add_dead_letter(dead_letter);
    if (writer_) writer_->add_dead_letter(dead_letter);
  }
  void add_member(const DeadLetterMember& given, const DeadLetter& dead_letter) override {
    DeadLetterMember member = given;
    for (MemberStep& step : member.steps) step.by = make_readable(step.by);
    tally_.add_member(member, dead_letter);
    if (writer_) writer_->add_member(member, dead_letter);
  }
  void add_token(const TokenRecord& given) override {
    TokenRecord token = given;
    token.name = make_readable(token.name);
    tally_.add_token(token);
    if (writer_) writer_->add_token(token);
  }
  Summary finish() {
    if (writer_) writer_->flush();
    return tally_.finish();
  }

 private:
  Writer* writer_;
  const TransferSettings& settings_;
  Tally tally_;
  std::uint64_t runs_ = 0;
};

Summary read_source(Source& source, Writer* writer, const TransferSettings& settings) {
  CountingVisitor counting(writer, settings);
  source.walk(counting);
  return counting.finish();
}

void require_schema(const std::string& url, Random& random) {
  if (const auto ready = migrate::prepare_own_schema(url, random); !ready)
    throw MigrationError(ready.error().code, ready.error().detail);
}

// Another database may have a committed copy, and a second copy must not be made.
void require_same_database(const std::optional<TransferStatus>& status, const Target& target) {
  if (status && !is_same_database(status->address, target.address()))
    throw MigrationError(Code::STORE_MOVED, describe(*status) + fmt::format("; not to {}", target.address()));
}

// Commits the copy; throws if it was not committed, or if that is unknown. A status "moved" is never changed back to
// "begun". A refused commit restores the earlier status, which may belong to a copy that was committed before.
void commit(Source& source, Target& target, bool leaves_file_in_use, Instant now) {
  const auto& before = source.status();
  const bool begins = !leaves_file_in_use && !(before && before->is_finished);
  if (begins) source.write_status({target.address(), now, false});
  const Target::CommitResult result = target.commit();
  if (result == Target::CommitResult::unknown)
    throw MigrationError(
        Code::STORE_UNAVAILABLE,
        "PostgreSQL did not confirm the commit: whether the copy was committed, or on its standby, is not known; run "
        "the move again");
  if (result == Target::CommitResult::rolled_back) {
    if (begins && before) source.write_status(*before);
    if (begins && !before) source.erase_status();
    throw MigrationError(Code::STORE_UNAVAILABLE, "PostgreSQL refused the commit; the database was not changed");
  }
  if (!leaves_file_in_use) source.write_status({target.address(), now, true});
}

// Finds the copy of an earlier transfer that was interrupted after its commit. None if the database is empty or has
// only tokens that the file has, too. STORE_NOT_EMPTY for any other content.
std::optional<Summary> find_earlier_copy(Source& source, Target& target, const TransferSettings& settings) {
  if (target.find_contents().empty()) return std::nullopt;
  const Summary summary = read_source(source, nullptr, settings);
  if (target.find_copy(summary)) return summary;
  if (const std::string contents = target.find_contents_except(source.list_tokens()); !contents.empty())
    throw MigrationError(Code::STORE_NOT_EMPTY,
                         fmt::format("{} holds {} that are not from this store as it is now; nothing was moved",
                                     target.address(), contents));
  return std::nullopt;
}

// Removes the tokens of a server that has used the database. A server that still runs may have drawn ids and fences
// that the file has, too, so it must be stopped. A server that starts later draws higher ones.
void take_over_tokens(Source& source, Target& target, const TransferSettings& settings) {
  target.raise(source.marks());
  if (const auto servers = migrate::find_live_servers(settings.url); !servers.empty())
    throw MigrationError(Code::STORE_LOCKED, fmt::format("a server is running on the target database ({}): "
                                                         "stop it first; nothing was moved",
                                                         fmt::join(servers, ", ")));
  target.remove_tokens();
}

void copy(Source& source, Target& target, TransferReport& report, const TransferSettings& settings) {
  if (!target.find_contents().empty()) take_over_tokens(source, target, settings);
  Writer writer(target);
  report.source = read_source(source, &writer, settings);
  settings.on_progress(TransferPhase::verifying, report.source.counts.all_runs());
  report.target = target.read_back();
  if (*report.target != report.source)
    throw MigrationError(Code::COPY_DIFFERS, "the copy is not what was read, and was undone: " +
                                                 describe_difference(report.source, *report.target));
  target.record_copy(report.source);
}

TransferReport transfer_file(const TransferSettings& settings, Clock& clock, Random& random) {
  Source source(settings.file, clock, random);
  require_schema(settings.url, random);
  Target target(settings.url);
  require_same_database(source.status(), target);
  target.begin();
  TransferReport report{
      .address = target.address(), .is_file_closed = !settings.leaves_file_in_use, .not_moved = source.own_tables()};
  if (const auto earlier = find_earlier_copy(source, target, settings))
    report.source = *earlier;
  else if (source.status() && source.status()->is_finished)
    throw MigrationError(Code::STORE_MOVED,
                         describe(*source.status()) + ", but there is nothing: has it been removed?");
  else
    copy(source, target, report, settings);
  target.raise(source.marks());
  settings.on_progress(TransferPhase::committing, report.source.counts.all_runs());
  commit(source, target, settings.leaves_file_in_use, clock.now());
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

Result<TransferReport> transfer_store(const TransferSettings& settings, Clock& clock, Random& random) {
  return caught([&] { return transfer_file(settings, clock, random); });
}

Result<bool> reopen_file(const std::string& file, Clock& clock, Random& random) {
  return caught([&] {
    Source source(file, clock, random);
    if (!source.status()) return false;
    source.erase_status();
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
