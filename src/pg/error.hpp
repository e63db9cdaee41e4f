// Failure: an error that PostgreSQL or libpq reported, with predicates that name the SQLSTATEs the callers act on.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace latchkey::pg {

struct Failure : std::runtime_error {
  Failure(std::string sqlstate, const std::string& message, bool is_lost, std::string violated = {})
      : std::runtime_error(message), state(std::move(sqlstate)), lost(is_lost), constraint(std::move(violated)) {}

  std::string state;       // SQLSTATE; empty when the server sent none
  bool lost;               // the connection broke: the result of the last COMMIT is unknown
  std::string constraint;  // the violated constraint, if there is one

  bool is_lock_timeout() const { return state == "55P03"; }
  bool is_unique_violation() const { return state == "23505"; }
  bool is_serialization_failure() const { return state == "40001"; }
  bool is_deadlock() const { return state == "40P01"; }
  bool is_disk_full() const { return state == "53100"; }
  bool is_insufficient_privilege() const { return state == "42501"; }
  bool is_read_only_transaction() const { return state == "25006"; }
  bool is_feature_not_supported() const { return state == "0A000"; }
  bool is_object_not_in_prerequisite_state() const { return state == "55000"; }
  // The session does not have the prepared statement, has it twice, or its cached plan no longer fits the table.
  bool is_stale_prepared_statement() const {
    return state == "26000" || state == "42P05" || is_feature_not_supported();
  }
};

}  // namespace latchkey::pg
