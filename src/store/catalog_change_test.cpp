// The decision about a catalog change, as a table: the record as it is, the write, and the result.
#include "store/catalog_change.hpp"

#include <gtest/gtest.h>

namespace latchkey {
namespace {

const RecordName kName{RecordKind::function, "", "f"};
const Instant kNow = from_ms(5'000);

std::optional<CatalogRecord> a_record(std::uint64_t version, const std::string& body) {
  return CatalogRecord{
      .id = kName, .version = version, .change = 7, .body = body, .is_deleted = body.empty(), .updated_by = "pat"};
}
const std::optional<CatalogRecord> kAbsent;

struct Case {
  const char* name;
  std::optional<CatalogRecord> current;
  std::optional<std::uint64_t> expected;
  std::string body;  // empty: a delete
  std::string actor;
  std::optional<std::uint64_t> version;  // none: a conflict
  bool is_changed = false;
};

TEST(CatalogChange, DecisionsFollowTheTable) {
  const std::vector<Case> cases{
      {"create", kAbsent, {}, "a", "pat", 1, true},
      {"create if absent", kAbsent, 0, "a", "pat", 1, true},
      {"replace an absent record", kAbsent, 1, "a", "pat", {}},
      {"delete an absent record", kAbsent, {}, "", "pat", 0},
      {"delete an absent version", kAbsent, 1, "", "pat", {}},
      {"replace", a_record(3, "a"), {}, "b", "pat", 4, true},
      {"replace the expected version", a_record(3, "a"), 3, "b", "pat", 4, true},
      {"replace an older version", a_record(3, "a"), 2, "b", "pat", {}},
      {"replace a later version", a_record(3, "a"), 4, "b", "pat", {}},
      {"create what exists", a_record(3, "a"), 0, "b", "pat", {}},
      {"repeat of a replacement", a_record(3, "a"), 2, "a", "pat", 3},
      {"the same by another caller", a_record(3, "a"), 2, "a", "ann", {}},
      {"the same from a version before", a_record(3, "a"), 1, "a", "pat", {}},
      {"repeat of a creation", a_record(3, "a"), 0, "a", "pat", 3},
      {"the same content", a_record(3, "a"), {}, "a", "ann", 3},
      {"the same content, expected", a_record(3, "a"), 3, "a", "ann", 3},
      {"delete", a_record(3, "a"), {}, "", "pat", 4, true},
      {"delete the expected version", a_record(3, "a"), 3, "", "pat", 4, true},
      {"delete an older version", a_record(3, "a"), 2, "", "pat", {}},
      {"delete if absent", a_record(3, "a"), 0, "", "pat", {}},
      {"create after a delete", a_record(3, ""), {}, "a", "pat", 4, true},
      {"create if absent after a delete", a_record(3, ""), 0, "a", "pat", 4, true},
      {"replace a deleted version", a_record(3, ""), 3, "a", "pat", {}},
      {"delete again", a_record(3, ""), {}, "", "ann", 3},
      {"repeat of a delete", a_record(3, ""), 2, "", "pat", 3},
      {"delete of another caller", a_record(3, ""), 2, "", "ann", {}},
  };
  for (const Case& one : cases) {
    RecordWrite write{.id = kName, .write = DeleteRecord{}, .expected = one.expected, .action = "x"};
    if (!one.body.empty()) write.write = PutRecord{.body = one.body};
    CatalogRecords current;
    if (one.current) current.emplace(kName, *one.current);
    const auto decision = decide_change({{write}, one.actor}, current, 7, kNow);
    const auto* accepted = std::get_if<AcceptedChange>(&decision);
    ASSERT_EQ(accepted != nullptr, one.version.has_value()) << one.name;
    if (!accepted) {
      const bool exists = one.current && !one.current->is_deleted;
      EXPECT_EQ(std::get<VersionConflict>(decision).version, exists ? one.current->version : 0) << one.name;
      continue;
    }
    EXPECT_EQ(accepted->reply.versions, std::vector{*one.version}) << one.name;
    EXPECT_EQ(accepted->reply.catalog_version, one.is_changed ? 8u : 7u) << one.name;
    EXPECT_EQ(accepted->records.size(), one.is_changed ? 1u : 0u) << one.name;
    EXPECT_EQ(accepted->audit.size(), one.is_changed ? 1u : 0u) << one.name;
  }
}

TEST(CatalogChange, EveryFieldOfAPutIsAChange) {
  const CatalogRecords current{{kName, *a_record(1, "a")}};
  for (const PutRecord& put : {PutRecord{.source = RecordSource::config, .body = "a"}, PutRecord{.body = "b"},
                               PutRecord{.body = "a", .is_retired = true}}) {
    const auto decision = decide_change({{{.id = kName, .write = put, .expected = {}}}, "pat"}, current, 1, kNow);
    EXPECT_EQ(std::get<AcceptedChange>(decision).records.size(), 1u);
    EXPECT_TRUE(std::get<AcceptedChange>(decision).audit.empty()) << "a write without an action has no entry";
  }
}

TEST(AuditCursor, RoundTripsAndRefusesOthers) {
  const AuditPosition position{1'770'000'000'123, (std::uint64_t{1} << 54) - 1};
  EXPECT_EQ(read_audit_cursor(write_audit_cursor(position)), position);
  EXPECT_TRUE(read_audit_cursor(""));
  for (const char* bad : {".", "1.", ".1", "x.1", "1.x", "1.1 ", "1", "1.-1", "1.ffffffffffffffff"})
    EXPECT_FALSE(read_audit_cursor(bad)) << bad;
}

}  // namespace
}  // namespace latchkey
