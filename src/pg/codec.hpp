// Parameters and rows in PostgreSQL's binary format. A Column is sent as an array parameter, so that one statement
// carries a whole batch.
#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.hpp"
#include "base/uuid.hpp"
#include "pg/error.hpp"

namespace latchkey::pg {

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
  // True if all elements are equal: then the first one is sent alone.
  bool is_constant() const { return is_constant_; }
  std::string finish() const;
  // The first element; none for NULL.
  std::optional<std::string> finish_first() const;

 private:
  Type type_;
  // Appends one encoded element, given in two parts.
  void put(std::string_view head, std::string_view value);
  void repeat_first(std::int32_t times);

  std::string elements_;  // only the first, while all are equal
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
  // Rows that an INSERT, UPDATE or DELETE changed.
  std::int64_t touched() const;
  bool is_null(int row, int column) const { return PQgetisnull(result_.get(), row, column) != 0; }
  // NULL reads as 0, empty or nil.
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

// Columns of a statement for many rows, by name. A column with the same value in every row is sent as one value.
struct Bulk {
  std::vector<std::pair<const char*, const Column*>> columns;

  // INSERT INTO table (…) SELECT …
  Statement insert_into(const char* table) const;
  // UPDATE table SET … WHERE table.first column = …; the first column identifies the rows.
  Statement update(const char* table) const;

 private:
  // "$1, u.c2, …" and the FROM that goes with it.
  std::pair<std::string, std::string> put(Params& params) const;
};

// Throws a Failure for a result that is an error.
Rows check(PGconn* connection, PGresult* result);

}  // namespace latchkey::pg
