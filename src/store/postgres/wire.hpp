// Parameters and rows in PostgreSQL's binary format. A Column becomes an array parameter, so that one statement carries
// a whole batch.
#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.hpp"
#include "base/uuid.hpp"

namespace latchkey::pg {

// What PostgreSQL said. `lost`: the connection went; whether the last COMMIT took place is then not known.
struct Failure : std::runtime_error {
  Failure(std::string state, const std::string& message, bool lost, std::string constraint = {})
      : std::runtime_error(message), state(std::move(state)), lost(lost), constraint(std::move(constraint)) {}
  std::string state;  // SQLSTATE, empty when the server did not speak
  bool lost;
  std::string constraint;  // that was violated, if one was
};

enum class Type : Oid { boolean = 16, bytes = 17, int8 = 20, int4 = 23, text = 25, uuid = 2950 };

// One array parameter, filled element by element.
class Column {
 public:
  explicit Column(Type type);
  Column& add(std::int64_t value);
  Column& add(std::string_view value);
  Column& add(const Uuid& id);
  Column& add(const Digest& digest);
  Column& add_null();
  // Empty text, nil ids and absent values are NULL in the tables.
  Column& add_or_null(std::string_view value) { return value.empty() ? add_null() : add(value); }
  Column& add_or_null(const Uuid& id) { return id.is_nil() ? add_null() : add(id); }
  std::size_t size() const { return size_; }
  Type type() const { return type_; }
  // Whether all its elements are the same: then one says it all.
  bool is_constant() const { return is_constant_; }
  std::string finish() const;
  // The first element alone; none: NULL.
  std::optional<std::string> finish_first() const;

 private:
  Type type_;
  // An element, as it is sent, in two parts.
  void put(std::string_view head, std::string_view value);
  void repeat_first(std::int32_t times);

  std::string elements_;  // the first alone, while all are the same
  std::int32_t size_ = 0;
  std::size_t first_size_ = 0;
  bool is_constant_ = true;
  bool has_null_ = false;
};

class Params {
 public:
  Params& add(std::int64_t value);
  Params& add(bool value);
  Params& add(std::string_view text);
  Params& add_bytes(std::string_view bytes);
  Params& add(const Uuid& id);
  Params& add(const Digest& digest) { return add_bytes({reinterpret_cast<const char*>(digest.data()), digest.size()}); }
  Params& add(const Column& column);
  // A column's first element.
  Params& add_first(const Column& column);
  Params& add_null(Type type);
  Params& add_or_null(std::optional<std::int64_t> value) { return value ? add(*value) : add_null(Type::int8); }
  Params& add_or_null(const std::optional<std::string>& text) {
    return text ? add(std::string_view(*text)) : add_null(Type::text);
  }
  std::size_t size() const { return types_.size(); }

  std::vector<Oid> types() const { return types_; }
  std::vector<const char*> values() const;
  std::vector<int> lengths() const;

 private:
  Params& put(Oid type, std::string value);

  std::vector<Oid> types_;
  std::vector<std::optional<std::string>> values_;
};

// The rows of one result.
class Rows {
 public:
  explicit Rows(PGresult* result) : result_(result, &PQclear) {}
  int size() const { return PQntuples(result_.get()); }
  bool empty() const { return size() == 0; }
  // Rows that an INSERT, UPDATE or DELETE touched.
  std::int64_t touched() const;
  bool is_null(int row, int column) const { return PQgetisnull(result_.get(), row, column) != 0; }
  // NULL is 0, empty, nil.
  std::int64_t integer(int row, int column) const;
  bool boolean(int row, int column) const;
  std::string_view bytes(int row, int column) const;
  Uuid uuid(int row, int column) const;

 private:
  std::unique_ptr<PGresult, decltype(&PQclear)> result_;
};

struct Statement {
  std::string sql;
  Params params;
};

// Columns of a statement for many rows, by name. One that holds the same value in every row travels once.
struct Bulk {
  std::vector<std::pair<const char*, const Column*>> columns;

  // INSERT INTO table (…) SELECT …
  Statement insert_into(const char* table) const;
  // UPDATE table SET … WHERE table.first column = …; the first column names the rows.
  Statement update(const char* table) const;

 private:
  // "$1, u.c2, …" and the FROM that goes with it.
  std::pair<std::string, std::string> put(Params& params) const;
};

// Throws a Failure for a result that is an error.
Rows check(PGconn* connection, PGresult* result);

}  // namespace latchkey::pg
