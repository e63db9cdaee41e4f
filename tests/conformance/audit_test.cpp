// The audit log: which changes are in it, in which order, and how it is read and purged.
#include "conformance/store_test.hpp"
#include "model/limits.hpp"

namespace latchkey {
namespace {

class AuditLog : public StoreTest {
 protected:
  using Entries = std::vector<AuditEntry>;

  void add(std::vector<AuditEntry> entries) {
    await<std::monostate>([&](Done<std::monostate> done) { store().add_audit(std::move(entries), std::move(done)); });
  }
  void add_one(const std::string& subject, const std::string& actor = "pat", const std::string& tenant = "") {
    add({{.id = {},
          .at = {},
          .actor = actor,
          .action = "token.revoke",
          .subject_kind = "token",
          .subject = subject,
          .tenant = tenant}});
  }
  Code refusal(AuditEntry entry) {
    const auto added = await_result<std::monostate>(
        [&](Done<std::monostate> done) { store().add_audit({std::move(entry)}, std::move(done)); });
    return added ? Code::INTERNAL : added.error().code;
  }
  Entries entries(const AuditQuery& query = {}) { return store().list_audit(query).value().entries; }
  std::string subjects(const AuditQuery& query = {}) {
    std::string all;
    for (const AuditEntry& entry : entries(query)) all += entry.subject + " ";
    return all;
  }
  void purge_all(Retention retention = {}, std::uint32_t limit = 1000) {
    for (int i = 0; verbs().purge(retention, limit).more; ++i) ASSERT_LT(i, 100) << "purging does not end";
  }
};
LK_CONFORMANCE(AuditLog);

TEST_P(AuditLog, RecordChangesHaveValuesBeforeAndAfter) {
  const RecordName id{RecordKind::tenant_override, "acme", "f"};
  const auto write = [&](std::variant<PutRecord, DeleteRecord> what, const std::string& action) {
    advance(1s);
    ASSERT_TRUE(
        store().write_records({{{.id = id, .write = std::move(what), .expected = {}, .action = action}}, "pat"}));
  };
  write(PutRecord{.body = "1"}, "override.put");
  write(PutRecord{.body = "2"}, "override.put");
  write(PutRecord{.body = "3"}, "");  // by a server
  write(DeleteRecord{}, "override.delete");
  const Entries found = entries();
  ASSERT_EQ(found.size(), 3u);
  const auto expect = [&](const AuditEntry& entry, const char* action, const char* before, const char* after) {
    EXPECT_EQ(entry.actor, "pat");
    EXPECT_EQ(entry.action, action);
    EXPECT_EQ(entry.subject_kind, "tenant_override");
    EXPECT_EQ(entry.subject, "f");
    EXPECT_EQ(entry.tenant, "acme");
    EXPECT_EQ(entry.before, before);
    EXPECT_EQ(entry.after, after);
  };
  expect(found[0], "override.delete", "3", "");
  expect(found[1], "override.put", "1", "2");
  expect(found[2], "override.put", "", "1");
  EXPECT_EQ(found[0].at, now());
  EXPECT_EQ(found[1].at, now() - 2s);
}

TEST_P(AuditLog, EntryIsReadAsItWasWritten) {
  AuditEntry entry{.id = id_of(5),
                   .at = now() - 1h,
                   .actor = "token \xc3\xa9",
                   .action = "run.cancel",
                   .subject_kind = "run",
                   .subject = "0198",
                   .tenant = "acme",
                   .before = "{\"status\": \"queued\"}",
                   .after = std::string(kBodyBytesMax, ' ')};
  add({entry});
  const Entries found = entries();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].at, now()) << "the store's clock, not the caller's";
  EXPECT_NE(found[0].id, entry.id);
  entry.at = found[0].at;
  entry.id = found[0].id;
  EXPECT_EQ(found[0], entry);
  add({});
  EXPECT_EQ(entries().size(), 1u);
}

TEST_P(AuditLog, NewestEntriesComeFirst) {
  add({{.subject = "1"}, {.subject = "2"}});
  add_one("3");
  advance(1s);
  add_one("4");
  EXPECT_EQ(subjects(), "4 3 2 1 ");
}

TEST_P(AuditLog, FiltersNarrowThePage) {
  add_one("a", "pat", "acme");
  advance(1s);
  add_one("b", "ann", "globex");
  add({{.actor = "pat", .action = "x", .subject_kind = "run", .subject = "a"}});
  EXPECT_EQ(subjects({.tenant = "acme"}), "a ");
  EXPECT_EQ(subjects({.tenant = ""}), "a ") << "entries of no tenant";
  EXPECT_EQ(subjects({.tenant = "none"}), "");
  EXPECT_EQ(subjects({.tenant = {}, .since = now()}), "a b ");
  EXPECT_EQ(subjects({.tenant = {}, .since = now() + 1ms}), "");
  EXPECT_EQ(subjects({.tenant = {}, .actor = "ann"}), "b ");
  EXPECT_EQ(subjects({.tenant = {}, .subject = "a"}), "a a ");
  EXPECT_EQ(subjects({.tenant = {}, .subject_kind = "run", .subject = "a"}), "a ");
  EXPECT_EQ(subjects({.tenant = "acme", .actor = "ann"}), "");
}

TEST_P(AuditLog, PagesHaveEachEntryOnce) {
  for (int i = 0; i < 7; ++i) {
    add_one(std::to_string(i));
    if (i % 3 == 0) advance(1s);
  }
  std::string all;
  AuditQuery query{.tenant = {}, .limit = 2};
  int pages = 0;
  do {
    const AuditPage page = store().list_audit(query).value();
    for (const AuditEntry& entry : page.entries) all += entry.subject;
    query.cursor = page.next;
    add_one("newer");  // on no later page
    ASSERT_LT(++pages, 10);
  } while (!query.cursor.empty());
  EXPECT_EQ(all, "6543210");
  EXPECT_EQ(pages, 4);
  query.cursor = "nonsense";
  EXPECT_EQ(store().list_audit(query).error().code, Code::INVALID_ARGUMENT);
  EXPECT_TRUE(entries({.limit = 0}).empty());
}

TEST_P(AuditLog, PageEndsAtItsSize) {
  for (int i = 0; i < 3; ++i) add({{.before = std::string(600, 'b'), .after = std::string(600, 'a')}});
  AuditQuery query{.tenant = {}, .bytes_max = 2'400};
  const AuditPage first = store().list_audit(query).value();
  EXPECT_EQ(first.entries.size(), 2u);
  EXPECT_EQ(first.entries.at(1).after.size(), 600u);
  query.cursor = first.next;
  const AuditPage rest = store().list_audit(query).value();
  EXPECT_EQ(rest.entries.size(), 1u);
  EXPECT_EQ(rest.next, "");
  EXPECT_EQ(entries({.bytes_max = 1}).size(), 1u) << "a page has at least one entry";
}

TEST_P(AuditLog, NamesOfAnyBytesAreMadeReadable) {
  add({{.actor = "a\xff", .subject = std::string("b\0", 2)}});
  EXPECT_EQ(entries().at(0).actor, R"(a\377)");
  EXPECT_EQ(entries().at(0).subject, R"(b\000)");
}

TEST_P(AuditLog, LimitsAreEnforced) {
  const std::string name(kNameBytesMax + 1, 'n'), key(kKeyBytesMax + 1, 'k'), body(kBodyBytesMax + 1, ' ');
  EXPECT_EQ(refusal({.actor = key}), Code::INVALID_ARGUMENT);
  EXPECT_EQ(refusal({.action = name}), Code::INVALID_ARGUMENT);
  EXPECT_EQ(refusal({.subject_kind = name}), Code::INVALID_ARGUMENT);
  EXPECT_EQ(refusal({.subject = key}), Code::INVALID_ARGUMENT);
  EXPECT_EQ(refusal({.tenant = name}), Code::INVALID_ARGUMENT);
  EXPECT_EQ(refusal({.before = "\xff"}), Code::INVALID_ARGUMENT);
  EXPECT_EQ(refusal({.before = body}), Code::BODY_TOO_LARGE);
  EXPECT_EQ(refusal({.after = body}), Code::BODY_TOO_LARGE);
  EXPECT_TRUE(entries().empty());
}

TEST_P(AuditLog, EntriesSurviveReopening) {
  add_one("a");
  const Entries before = entries();
  opened().reopen();
  EXPECT_EQ(entries(), opened().is_durable() ? before : Entries{});
  add_one("b");
  EXPECT_EQ(subjects(), opened().is_durable() ? "b a " : "b ");
}

TEST_P(AuditLog, OldEntriesArePurged) {
  for (const char* subject : {"1", "2", "3"}) add_one(subject);
  advance(24h);
  add_one("4");
  advance(24h * 399);
  purge_all();
  EXPECT_EQ(subjects(), "4 3 2 1 ") << "they are 400 days old, not older";
  advance(1ms);
  purge_all({}, 2);
  EXPECT_EQ(subjects(), "4 ") << "in slices";
}

TEST_P(AuditLog, RetentionIsAtLeastThirtyDays) {
  add_one("1");
  advance(24h * 30);
  purge_all({.audit = 0ms});
  EXPECT_EQ(subjects(), "1 ");
  advance(1ms);
  purge_all({.audit = 0ms});
  EXPECT_EQ(subjects(), "");
}

}  // namespace
}  // namespace latchkey
