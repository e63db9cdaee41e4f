// The catalog: versions, conditions, transactions of several records, and what servers poll.
#include "conformance/store_test.hpp"
#include "model/limits.hpp"

namespace latchkey {
namespace {

const RecordName kF{RecordKind::function, "", "f"};
const RecordName kG{RecordKind::function, "", "g"};
const RecordName kPause{RecordKind::function_pause, "acme", "f"};

RecordWrite put(const RecordName& id, std::string body, std::optional<std::uint64_t> expected = {}) {
  return {.id = id, .write = PutRecord{.body = std::move(body)}, .expected = expected, .action = "put"};
}
RecordWrite erase(const RecordName& id, std::optional<std::uint64_t> expected = {}) {
  return {.id = id, .write = DeleteRecord{}, .expected = expected, .action = "delete"};
}

class CatalogOf : public StoreTest {
 protected:
  Result<ChangeReply> change(std::vector<RecordWrite> writes, const std::string& actor = "pat") {
    return store().write_records({std::move(writes), actor});
  }
  RecordsWritten write(std::vector<RecordWrite> writes, const std::string& actor = "pat") {
    return std::get<RecordsWritten>(change(std::move(writes), actor).value());
  }
  VersionConflict conflict(std::vector<RecordWrite> writes, const std::string& actor = "pat") {
    return std::get<VersionConflict>(change(std::move(writes), actor).value());
  }
  Code refusal(std::vector<RecordWrite> writes) {
    const auto reply = change(std::move(writes));
    return reply ? Code::INTERNAL : reply.error().code;
  }
  std::vector<CatalogRecord> records(const RecordQuery& query = {}) { return store().list_records(query).value(); }
  std::optional<CatalogRecord> record(const RecordName& id) { return store().find_record(id).value(); }
  std::uint64_t version() { return store().catalog_version().value(); }
  std::size_t entries() { return store().list_audit({}).value().entries.size(); }
};
LK_CONFORMANCE(CatalogOf);

TEST_P(CatalogOf, EmptyStoreHasVersionZero) {
  EXPECT_EQ(version(), 0u);
  EXPECT_TRUE(records().empty());
  EXPECT_FALSE(record(kF));
  EXPECT_EQ(write({}).catalog_version, 0u) << "a change without writes";
}

TEST_P(CatalogOf, RecordIsReadAsItWasWritten) {
  const std::string body = "{\"http\": \"http://x/\xc3\xa9\", \"secret\": \"${env:TOKEN}\"}";
  RecordWrite written = put(kF, body);
  written.write = PutRecord{.source = RecordSource::config, .body = body, .is_retired = true};
  write({written, put(kPause, "null")}, "token ci");
  const CatalogRecord expected{.id = kF,
                               .version = 1,
                               .change = 1,
                               .source = RecordSource::config,
                               .body = body,
                               .is_retired = true,
                               .updated_at = now(),
                               .updated_by = "token ci"};
  EXPECT_EQ(record(kF), expected);
  EXPECT_EQ(records({.kinds = {RecordKind::function}}), std::vector{expected});
  EXPECT_EQ(records().size(), 2u);
}

TEST_P(CatalogOf, VersionsRiseByOne) {
  for (std::uint64_t nth = 1; nth <= 3; ++nth) {
    const RecordsWritten written = write({put(kF, std::to_string(nth), nth - 1)});
    EXPECT_EQ(written.versions, std::vector{nth});
    EXPECT_EQ(written.catalog_version, nth);
    EXPECT_EQ(version(), nth);
    EXPECT_EQ(record(kF)->version, nth);
  }
  write({put(kG, "{}")});
  EXPECT_EQ(record(kG)->version, 1u) << "each record has its own";
  EXPECT_EQ(record(kG)->change, 4u);
}

TEST_P(CatalogOf, VersionRisesAcrossDeletes) {
  write({put(kF, "1")});
  EXPECT_EQ(write({erase(kF)}).versions, std::vector<std::uint64_t>{2});
  EXPECT_FALSE(record(kF));
  EXPECT_TRUE(records().empty());
  const auto deleted = records({.with_deleted = true});
  ASSERT_EQ(deleted.size(), 1u);
  EXPECT_TRUE(deleted[0].is_deleted);
  EXPECT_EQ(deleted[0].body, "");
  EXPECT_EQ(write({put(kF, "3", 0)}).versions, std::vector<std::uint64_t>{3}) << "0: no such record";
  EXPECT_EQ(record(kF)->body, "3");
}

TEST_P(CatalogOf, UnexpectedVersionIsAConflict) {
  const auto expect_conflict = [&](const RecordWrite& write, std::uint64_t current) {
    const VersionConflict found = conflict({write}, "ann");
    EXPECT_EQ(found.id, write.id);
    EXPECT_EQ(found.version, current);
  };
  expect_conflict(put(kF, "1", 1), 0);
  expect_conflict(erase(kF, 1), 0);
  write({put(kF, "1")});
  write({put(kF, "2")});
  for (const std::uint64_t wrong : {0u, 1u, 3u}) {
    expect_conflict(put(kF, "x", wrong), 2);
    expect_conflict(erase(kF, wrong), 2);
  }
  write({erase(kF, 2)});
  expect_conflict(put(kF, "x", 3), 0);
  EXPECT_EQ(version(), 3u) << "a conflict changes nothing";
  EXPECT_EQ(entries(), 3u);
}

TEST_P(CatalogOf, ChangeIsAllOrNothing) {
  write({put(kF, "1")});
  const VersionConflict found = conflict({put(kG, "1", 0), erase(kPause), put(kF, "2", 7)});
  EXPECT_EQ(found.id, kF);
  EXPECT_EQ(found.version, 1u);
  EXPECT_FALSE(record(kG));
  EXPECT_EQ(record(kF)->body, "1");
  EXPECT_EQ(version(), 1u);
  EXPECT_EQ(entries(), 1u);
  EXPECT_EQ(write({put(kG, "1", 0), put(kF, "2", 1)}).versions, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(version(), 2u) << "one change, one version";
  EXPECT_EQ(record(kG)->change, 2u);
}

// A caller whose reply was lost sends the same write again.
TEST_P(CatalogOf, RepeatOfAnAppliedWriteIsAccepted) {
  for (int i = 0; i < 2; ++i) EXPECT_EQ(write({put(kF, "1", 0)}).versions, std::vector<std::uint64_t>{1});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(write({put(kF, "2", 1)}).versions, std::vector<std::uint64_t>{2});
  conflict({put(kF, "2", 1)}, "ann");
  conflict({put(kF, "1", 0)});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(write({erase(kF, 2)}).versions, std::vector<std::uint64_t>{3});
  conflict({erase(kF, 2)}, "ann");
  EXPECT_EQ(version(), 3u);
  EXPECT_EQ(entries(), 3u) << "a repeat is not in the audit log";
}

TEST_P(CatalogOf, WriteOfTheSameContentChangesNothing) {
  write({put(kF, "1")});
  const CatalogRecord before = *record(kF);
  advance(1s);
  EXPECT_EQ(write({put(kF, "1"), erase(kG)}, "ann").versions, (std::vector<std::uint64_t>{1, 0}));
  EXPECT_EQ(write({put(kF, "1", 1)}, "ann").catalog_version, 1u);
  EXPECT_EQ(record(kF), before);
  EXPECT_EQ(entries(), 1u);
  RecordWrite retired = put(kF, "1");
  retired.write = PutRecord{.body = "1", .is_retired = true};
  EXPECT_EQ(write({retired}).versions, std::vector<std::uint64_t>{2});
  EXPECT_TRUE(record(kF)->is_retired);
}

TEST_P(CatalogOf, KindAndTenantSeparateRecords) {
  const RecordName other{RecordKind::function_pause, "globex", "f"};
  write({put(kF, "1"), put(kPause, "2"), put(other, "3")});
  EXPECT_EQ(record(kPause)->body, "2");
  EXPECT_EQ(record(other)->body, "3");
  EXPECT_FALSE(record({RecordKind::function, "acme", "f"}));
  EXPECT_FALSE(record({RecordKind::schedule, "", "f"}));
  write({erase(other)});
  EXPECT_EQ(record(kPause)->version, 1u);
}

TEST_P(CatalogOf, ListsAreOrderedByName) {
  const std::vector<RecordName> names{{RecordKind::function, "", "Z"},        {RecordKind::function, "", "a"},
                                      {RecordKind::function, "", "a-b"},      {RecordKind::function, "", "\xc3\xa9"},
                                      {RecordKind::tenant_override, "", "a"}, {RecordKind::tenant_override, "t", "a"},
                                      {RecordKind::schedule, "", "a"}};
  std::vector<RecordWrite> writes;
  for (auto name = names.rbegin(); name != names.rend(); ++name) writes.push_back(put(*name, "{}"));
  write(writes);
  std::vector<RecordName> listed;
  for (const CatalogRecord& one : records()) listed.push_back(one.id);
  EXPECT_EQ(listed, names);
  EXPECT_EQ(records({.kinds = {RecordKind::schedule, RecordKind::function}}).size(), 5u);
}

// A server that has read up to a version asks for the records that changed since.
TEST_P(CatalogOf, ChangesSinceAVersionAreListed) {
  write({put(kF, "1"), put(kG, "1")});
  const std::uint64_t seen = version();
  EXPECT_TRUE(records({.changed_after = seen, .with_deleted = true}).empty());
  write({put(kF, "2")});
  write({erase(kG)});
  const auto changed = records({.changed_after = seen, .with_deleted = true});
  ASSERT_EQ(changed.size(), 2u);
  EXPECT_EQ(changed[0].body, "2");
  EXPECT_TRUE(changed[1].is_deleted);
  EXPECT_EQ(records({.changed_after = seen}).size(), 1u);
}

TEST_P(CatalogOf, RecordsSurviveReopening) {
  write({put(kF, "1"), put(kG, "1")});
  write({erase(kG)});
  const auto before = records({.with_deleted = true});
  opened().reopen();
  if (!opened().is_durable()) {
    EXPECT_EQ(version(), 0u);
    return;
  }
  EXPECT_EQ(records({.with_deleted = true}), before);
  EXPECT_EQ(version(), 2u);
  EXPECT_EQ(write({put(kG, "2", 0)}).catalog_version, 3u);
  EXPECT_EQ(record(kG)->version, 3u);
}

TEST_P(CatalogOf, LimitsAreEnforced) {
  const std::string longest(kNameBytesMax, 'n');
  write({put({RecordKind::function, longest, longest}, std::string(kBodyBytesMax, ' '))});
  EXPECT_EQ(record({RecordKind::function, longest, longest})->body.size(), kBodyBytesMax);
  write({put(kF, "{}")}, std::string(kKeyBytesMax, '\xff'));
  const std::vector<RecordWrite> invalid{put({RecordKind::function, "", longest + "n"}, "{}"),
                                         put({RecordKind::function, longest + "n", "f"}, "{}"),
                                         put({RecordKind::function, "", ""}, "{}"),
                                         put({RecordKind::function, "", "a\n"}, "{}"),
                                         put({RecordKind::function, "\xff", "f"}, "{}"),
                                         put(kF, ""),
                                         put(kF, "\xff"),
                                         put(kF, std::string(1, '\0'))};
  for (const RecordWrite& one : invalid) EXPECT_EQ(refusal({put(kG, "{}"), one}), Code::INVALID_ARGUMENT);
  EXPECT_EQ(refusal({put(kF, "1"), put(kF, "2")}), Code::INVALID_ARGUMENT) << "twice in one change";
  EXPECT_EQ(refusal(std::vector(kChangeWritesMax + 1, put(kF, "1"))), Code::INVALID_ARGUMENT);
  EXPECT_EQ(refusal({put(kF, std::string(kBodyBytesMax + 1, ' '))}), Code::BODY_TOO_LARGE);
  std::vector<RecordWrite> many;
  for (std::size_t i = 0; i <= kChangeBytesMax / kBodyBytesMax; ++i)
    many.push_back(put({RecordKind::function, "", std::to_string(i)}, std::string(kBodyBytesMax, ' ')));
  EXPECT_EQ(refusal(many), Code::BODY_TOO_LARGE);
  EXPECT_FALSE(record(kG)) << "a refused change changes nothing";
}

TEST_P(CatalogOf, ManyRecordsAreOneChange) {
  std::vector<RecordWrite> writes;
  for (int i = 0; i < 1'000; ++i)
    writes.push_back(put({RecordKind::function, i % 2 ? "acme" : "", std::to_string(i)}, std::to_string(i)));
  EXPECT_EQ(write(writes).catalog_version, 1u);
  EXPECT_EQ(records().size(), 1'000u);
  EXPECT_EQ(record({RecordKind::function, "acme", "7"})->body, "7");
  for (RecordWrite& one : writes) one.expected = 1, one.write = DeleteRecord{};
  EXPECT_EQ(write(writes).catalog_version, 2u);
  EXPECT_TRUE(records().empty());
}

// Servers and callers change the catalog at the same time: no version is used twice and no change is lost.
TEST_P(CatalogOf, ConcurrentChangesAreSerialized) {
  constexpr int kThreads = 4, kChanges = 5;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kChanges; ++i)
        EXPECT_TRUE(change({put(kF, std::to_string(thread * 100 + i)), put(kG, std::to_string(thread * 100 + i))}));
    });
  threads.clear();
  EXPECT_EQ(version(), std::uint64_t{kThreads * kChanges});
  EXPECT_EQ(record(kF)->version, std::uint64_t{kThreads * kChanges});
  EXPECT_EQ(record(kF)->body, record(kG)->body);
  EXPECT_EQ(store().list_audit({.limit = 100}).value().entries.size(), 2u * kThreads * kChanges);
}

}  // namespace
}  // namespace latchkey
