#include "migrate/pg_notices.hpp"

#include <fmt/format.h>

namespace latchkey::migrate {
namespace {

std::string field_of(const PGresult* notice, int field) {
  const char* const text = PQresultErrorField(notice, field);
  return text ? text : "";
}

}  // namespace

void PgNotices::listen(PGconn* connection) {
  PQsetNoticeReceiver(
      connection, [](void* self, const PGresult* notice) { static_cast<PgNotices*>(self)->receive(notice); }, this);
}

void PgNotices::receive(const PGresult* notice) {
  const std::string severity = field_of(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
  warned_ = warned_ || severity == "WARNING";
  if (position_.empty()) return;
  std::string text = fmt::format("{}: {}: {}", position_, severity, field_of(notice, PG_DIAG_MESSAGE_PRIMARY));
  for (const int field : {PG_DIAG_MESSAGE_DETAIL, PG_DIAG_MESSAGE_HINT})
    if (const std::string more = field_of(notice, field); !more.empty()) text += "; " + more;
  if (reported_.insert(text).second) report_(text);
}

}  // namespace latchkey::migrate
