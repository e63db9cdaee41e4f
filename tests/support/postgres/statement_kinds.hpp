// Kinds of the statements that a store on PostgreSQL sends, recognized by their text.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace latchkey {

// A kind of statement, by parts of its text in this order. `*` separates the parts, `^` means the beginning.
struct StatementKind {
  const char* name;
  const char* pattern;
};
// The kinds that a test must observe.
inline constexpr StatementKind kStatementKinds[] = {
    {"read the server identity", "FROM latchkey.place p,"},
    {"write the server identity", "^UPDATE latchkey.place"},
    {"advance fences and ids", "^SELECT setval('latchkey.* + $1)"},
    {"expire leases of rows", "^UPDATE latchkey.states SET lease_until = $1"},
    {"expire leases of blocks", "^UPDATE latchkey.blocks SET lease_until = $1"},
    {"list runs", "all_states * WHERE r.seq = ANY(ARRAY("},
    {"find keys", "FROM latchkey.keys k JOIN latchkey.runs"},
    {"lock keys", "FROM latchkey.keys k WHERE * FOR UPDATE"},
    {"find keys that exist", "^SELECT k.hash FROM latchkey.keys"},
    {"lock blocks", "FROM latchkey.blocks b WHERE b.lo = ANY* FOR UPDATE"},
    {"lock rows", "FROM latchkey.states s WHERE s.seq = ANY* FOR UPDATE"},
    {"find outcomes", "^SELECT *unnest* latchkey.outcomes"},
    {"find heads", "^SELECT *unnest* latchkey.runs"},
    {"find waits", "^SELECT *unnest* latchkey.waits"},
    {"lock an open dead letter", "FROM latchkey.dead_letters WHERE *acknowledged_at IS NULL FOR UPDATE"},
    {"take blocks", "FROM latchkey.blocks *session IS NULL *FOR UPDATE"},
    {"take rows before their retry deadline", "FROM latchkey.states *status = 0 *deadline > *FOR UPDATE"},
    {"take rows", "FROM latchkey.states *status = 0 *FOR UPDATE"},
    {"sweep blocks except deferred ones", "FROM latchkey.blocks *session IS NOT NULL *NOT IN *FOR UPDATE"},
    {"sweep blocks", "FROM latchkey.blocks *session IS NOT NULL *FOR UPDATE"},
    {"sweep rows except deferred ones", "FROM latchkey.states *deadline <= *NOT IN *FOR UPDATE"},
    {"sweep rows", "FROM latchkey.states *deadline <= *FOR UPDATE"},
    {"find runs to purge", "^SELECT r.seq, r.created_at FROM"},
    {"find the next deadline", "^SELECT least"},
    {"insert heads", "^INSERT INTO latchkey.runs"},
    {"insert outcomes", "^INSERT INTO latchkey.outcomes"},
    {"insert settlements", "^INSERT INTO latchkey.settlements"},
    {"insert rows", "^INSERT INTO latchkey.states"},
    {"insert blocks", "^INSERT INTO latchkey.blocks"},
    {"probe contended keys", "^SELECT latchkey.are_held"},
    {"insert one contended key", "^INSERT INTO latchkey.keys (hash, tenant, seq) VALUES (one"},
    {"insert keys", "^INSERT INTO latchkey.keys"},
    {"insert waits", "^INSERT INTO latchkey.waits"},
    {"resolve an unknown commit", "^INSERT INTO latchkey.batches AS"},
    {"insert a batch", "^INSERT INTO latchkey.batches"},
    {"insert a dead letter", "^INSERT INTO latchkey.dead_letters"},
    {"insert a member", "^INSERT INTO latchkey.dead_letter_members"},
    {"insert a step", "^INSERT INTO latchkey.dead_letter_steps"},
    {"insert duplicates", "^INSERT INTO latchkey.duplicates"},
    {"update rows", "^UPDATE latchkey.states"},
    {"update blocks", "^UPDATE latchkey.blocks"},
    {"update keys", "^UPDATE latchkey.keys"},
    {"update a dead letter", "^UPDATE latchkey.dead_letters SET id"},
    {"acknowledge a dead letter", "^UPDATE latchkey.dead_letters SET acknowledged_by"},
    {"delete heads", "^DELETE FROM latchkey.runs"},
    {"split outcomes", "^WITH o AS (DELETE FROM latchkey.outcomes"},
    {"delete settlements", "^DELETE FROM latchkey.settlements"},
    {"delete rows", "^DELETE FROM latchkey.states"},
    {"delete blocks", "^DELETE FROM latchkey.blocks"},
    {"delete keys", "^DELETE FROM latchkey.keys"},
    {"delete a run's waits", "^DELETE FROM latchkey.waits WHERE dependent"},
    {"delete waits", "^DELETE FROM latchkey.waits w"},
    {"delete duplicates", "^DELETE FROM latchkey.duplicates"},
    {"delete members", "^DELETE FROM latchkey.dead_letter_members"},
    {"delete steps", "^DELETE FROM latchkey.dead_letter_steps"},
    {"delete a dead letter", "^DELETE FROM latchkey.dead_letters"},
    {"find a run's dead letter", "^SELECT l.id FROM latchkey.dead_letter_members"},
    {"find dead letters of runs", "^SELECT m.seq, m.letter"},
    {"lock a dead letter", "FROM latchkey.dead_letters WHERE number = * FOR UPDATE"},
    {"find a dead letter", "FROM latchkey.dead_letters WHERE number = * $3)"},
    {"list dead letters", "FROM latchkey.dead_letters WHERE number <"},
    {"find members", "FROM latchkey.dead_letter_members WHERE (letter, seq, generation)"},
    {"list members", "FROM latchkey.dead_letter_members m WHERE letter"},
    {"find a member", "FROM latchkey.dead_letter_members WHERE letter = $1 AND seq"},
    {"find a step", "^SELECT 1 FROM latchkey.dead_letter_steps"},
    {"list steps", "^SELECT kind* FROM latchkey.dead_letter_steps"},
    {"lock heads", "FROM latchkey.runs r WHERE r.seq = ANY* FOR UPDATE"},
    {"find heads that exist", "^SELECT r.seq FROM latchkey.runs r WHERE r.seq = ANY"},
    {"find many duplicates", "^SELECT d.seq, d.seen FROM latchkey.duplicates"},
    {"find duplicates", "^SELECT seen FROM latchkey.duplicates"},
    {"find a run", "all_states * r.seq = $1 AND r.id"},
    {"find a key's run", "all_states * k.hash = $1"},
    {"count", "^SELECT count(*FILTER"},
    {"find old names of batches", "^SELECT b.id FROM latchkey.batches"},
    {"purge names of batches", "^DELETE FROM latchkey.batches"},
    {"find an open dead letter that exists", "^SELECT number FROM latchkey.dead_letters WHERE tenant"},
    {"draw fences", "^SELECT nextval('latchkey.fences')"},
    {"draw ids", "^SELECT nextval('latchkey.counters')"},
    {"write the purge position", "^SELECT setval('latchkey.purged'"},
    {"lock the splitting of outcomes", "FROM latchkey.latches WHERE * FOR UPDATE"},
    {"insert a tenant if new", "^SELECT latchkey.note_tenant"},
};
// The kinds that depend on time, or run inside a function: a test need not observe them.
inline constexpr StatementKind kOptionalStatementKinds[] = {
    {"find a settlement", "^SELECT 1 FROM latchkey.settlements"},
    {"write the clock's mark", "^SELECT setval('latchkey.clock'"},
    {"read the clock", "^SELECT (SELECT (extract(epoch *last_value FROM latchkey.clock"},
    {"read the backend's pid and the time", "^SELECT pg_backend_pid()"},
    {"announce the server", "^SELECT pg_advisory_xact_lock_shared(7420, hashtext('latchkey.servers'"},
    {"find a tenant", "EXISTS (SELECT FROM latchkey.tenants"},
    {"insert a tenant", "^INSERT INTO latchkey.tenants"},
    {"find a tenant's id", "SELECT coalesce((SELECT t.id FROM latchkey.tenants"},
    {"find the tenant of a reader", "SELECT c.tenant FROM latchkey.caller()"},
    {"find the role of a reader", "SELECT coalesce(c.acts_as = 'org-admin', false) FROM latchkey.caller()"},
    {"find a bound role", "^SELECT b.tenant, b.acts_as * FROM latchkey.tenant_roles"},
    {"find old audit entries", "^SELECT number FROM latchkey.audit WHERE at < "},
    {"delete old audit entries", "^DELETE FROM latchkey.audit"},
    {"notify of a dead letter", "^SELECT pg_notify('dead_letter_inserted'"},
    {"notify of dead letters", "^SELECT latchkey.tell_dead_letter("},
};

inline bool is_like(std::string_view sql, std::string_view pattern) {
  const bool is_anchored = pattern.starts_with('^');
  if (is_anchored) pattern.remove_prefix(1);
  for (bool is_first = true; !pattern.empty(); is_first = false) {
    const std::string_view part = pattern.substr(0, pattern.find('*'));
    const std::size_t at = sql.find(part);
    if (at == std::string_view::npos || (is_first && is_anchored && at != 0)) return false;
    sql.remove_prefix(at + part.size());
    pattern.remove_prefix(std::min(part.size() + 1, pattern.size()));
  }
  return true;
}

// The kind's name, or "? " and the text for an unknown kind.
inline std::string statement_kind(const std::string& sql) {
  for (const auto kinds :
       {std::span<const StatementKind>(kStatementKinds), std::span<const StatementKind>(kOptionalStatementKinds)})
    for (const StatementKind& kind : kinds)
      if (is_like(sql, kind.pattern)) return kind.name;
  return "? " + sql;
}

}  // namespace latchkey
