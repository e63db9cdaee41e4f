#include "pg/codec.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <concepts>
#include <cstring>

#include "base/assert.hpp"

namespace latchkey::pg {
namespace {

// Most significant byte first.
template <std::integral T>
char* write(char* to, T value) {
  const T bytes = std::endian::native == std::endian::little ? std::byteswap(value) : value;
  std::memcpy(to, &bytes, sizeof bytes);
  return to + sizeof bytes;
}
void put32(std::string& to, std::int64_t value) {
  char bytes[4];
  write(bytes, static_cast<std::int32_t>(value));
  to.append(bytes, sizeof bytes);
}

constexpr std::string_view kNull = "\xff\xff\xff\xff";  // as an element's size

Oid array_of(Type type) {
  switch (type) {
    case Type::boolean:
      return 1000;
    case Type::bytes:
      return 1001;
    case Type::int8:
      return 1016;
    case Type::int4:
      return 1007;
    case Type::text:
      return 1009;
    case Type::uuid:
      return 2951;
  }
  LK_ASSERT(false);
}

}  // namespace

Column::Column(Type type) : type_(type) {}

// As long as all are the same, they are counted; with the first that differs they are written.
void Column::put(std::string_view head, std::string_view value) {
  const std::size_t size = head.size() + value.size();
  if (size_++ == 0) {
    first_size_ = size;
  } else if (is_constant_) {
    const std::string_view first(elements_.data(), first_size_);
    if (size == first_size_ && first.starts_with(head) && first.ends_with(value)) return;
    is_constant_ = false;
    repeat_first(size_ - 1);
  }
  elements_.append(head).append(value);
}

void Column::repeat_first(std::int32_t times) {
  const std::string first = elements_;
  elements_.reserve((static_cast<std::size_t>(times) + 1) * first.size());
  for (; times > 1; --times) elements_.append(first);
}

Column& Column::add(std::int64_t value) {
  char bytes[12];
  if (type_ == Type::int4) {
    write(write(bytes, std::int32_t{4}), static_cast<std::int32_t>(value));
    put({bytes, 8}, {});
  } else {
    write(write(bytes, std::int32_t{8}), value);
    put({bytes, 12}, {});
  }
  return *this;
}

Column& Column::add(std::string_view value) {
  char size[4];
  write(size, static_cast<std::int32_t>(value.size()));
  put({size, 4}, value);
  return *this;
}

Column& Column::add(const Uuid& id) {
  return add(std::string_view(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()));
}

Column& Column::add(const Digest& digest) {
  return add(std::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

Column& Column::add_null() {
  has_null_ = true;
  put(kNull, {});
  return *this;
}

std::optional<std::string> Column::finish_first() const {
  LK_ASSERT(size_ > 0);
  const std::string first = elements_.substr(0, first_size_);
  if (first == kNull) return std::nullopt;
  return first.substr(4);
}

std::string Column::finish() const {
  std::string array;
  const std::int32_t copies = is_constant_ ? size_ : 1;
  array.reserve(20 + elements_.size() * static_cast<std::size_t>(copies));
  put32(array, size_ > 0 ? 1 : 0);  // dimensions
  put32(array, has_null_ ? 1 : 0);
  put32(array, static_cast<std::int64_t>(type_));
  if (size_ == 0) return array;
  put32(array, size_);
  put32(array, 1);  // lower bound
  for (std::int32_t i = 0; i < copies; ++i) array.append(elements_);
  return array;
}

Params& Params::add_first(const Column& column) {
  types_.push_back(static_cast<Oid>(column.type()));
  values_.push_back(column.finish_first());
  return *this;
}

Params& Params::put(Oid type, std::string value) {
  types_.push_back(type);
  values_.emplace_back(std::move(value));
  return *this;
}
Params& Params::add(std::int64_t value) {
  char bytes[8];
  write(bytes, value);
  return put(static_cast<Oid>(Type::int8), std::string(bytes, sizeof bytes));
}
Params& Params::add(bool value) { return put(static_cast<Oid>(Type::boolean), std::string(1, value ? '\1' : '\0')); }
Params& Params::add(std::string_view text) { return put(static_cast<Oid>(Type::text), std::string(text)); }
Params& Params::add_bytes(std::string_view bytes) { return put(static_cast<Oid>(Type::bytes), std::string(bytes)); }
Params& Params::add(const Uuid& id) {
  return put(static_cast<Oid>(Type::uuid), std::string(reinterpret_cast<const char*>(id.bytes.data()), 16));
}
Params& Params::add(const Column& column) { return put(array_of(column.type()), column.finish()); }
Params& Params::add_null(Type type) {
  types_.push_back(static_cast<Oid>(type));
  values_.emplace_back();
  return *this;
}

std::vector<const char*> Params::values() const {
  std::vector<const char*> values;
  for (const auto& value : values_) values.push_back(value ? value->data() : nullptr);
  return values;
}
std::vector<int> Params::lengths() const {
  std::vector<int> lengths;
  for (const auto& value : values_) lengths.push_back(value ? static_cast<int>(value->size()) : 0);
  return lengths;
}

std::int64_t Rows::touched() const {
  const std::string_view text = PQcmdTuples(result_.get());
  std::int64_t count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

std::int64_t Rows::integer(int row, int column) const {
  const auto value = bytes(row, column);
  std::uint64_t bits = !value.empty() && (value.front() & 0x80) ? ~std::uint64_t{0} : 0;
  for (const char byte : value) bits = bits << 8 | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(bits);
}

bool Rows::boolean(int row, int column) const {
  const auto value = bytes(row, column);
  return !value.empty() && value.front() != '\0';
}

std::string_view Rows::bytes(int row, int column) const {
  if (is_null(row, column)) return {};
  return {PQgetvalue(result_.get(), row, column), static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}

Uuid Rows::uuid(int row, int column) const {
  Uuid id;
  const auto value = bytes(row, column);
  std::copy_n(value.begin(), std::min(value.size(), id.bytes.size()), id.bytes.begin());
  return id;
}

Rows check(PGconn* connection, PGresult* result) {
  Rows rows(result);
  const auto status = PQresultStatus(result);
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_PIPELINE_SYNC) return rows;
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  // A server that ends the session says so before the socket does. What became of a COMMIT in that flight is not known.
  const char* severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  const bool is_end = severity && std::string_view(severity) != "ERROR";
  const bool lost = is_end || PQstatus(connection) == CONNECTION_BAD;
  const char* constraint = PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME);
  throw Failure(state ? state : "", message ? message : PQerrorMessage(connection), lost, constraint ? constraint : "");
}

std::pair<std::string, std::string> Bulk::put(Params& params) const {
  std::string values, arrays, names;
  for (const auto& [name, column] : columns) {
    const bool is_array = column == columns.front().second || !column->is_constant();
    is_array ? params.add(*column) : params.add_first(*column);
    const std::string number = "$" + std::to_string(params.size());
    values += (values.empty() ? "" : ", ") + (is_array ? std::string("u.") + name : number);
    if (!is_array) continue;
    arrays += (arrays.empty() ? "" : ", ") + number;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return {values, arrays.empty() ? "" : " FROM unnest(" + arrays + ") AS u(" + names + ")"};
}

// Arrays are unnested in the select list: there rows are made one by one, where a FROM would first put each array, and
// then all of them together, into a store of its own.
Statement Bulk::insert_into(const char* table) const {
  Statement statement;
  const bool is_one = columns.front().second->size() == 1;
  std::string names, values;
  for (const auto& [name, column] : columns) {
    const bool is_array = !is_one && (column == columns.front().second || !column->is_constant());
    is_array ? statement.params.add(*column) : statement.params.add_first(*column);
    const std::string number = "$" + std::to_string(statement.params.size());
    names += (names.empty() ? "" : ", ") + std::string(name);
    values += (values.empty() ? "" : ", ") + (is_array ? "unnest(" + number + ")" : number);
  }
  statement.sql = std::string("INSERT INTO ") + table + " (" + names + ") SELECT " + values;
  return statement;
}

// A sub-select finds each row's ctid by the index, and the UPDATE uses that. With a plain join the planner may scan the
// whole index instead: among many dead rows it estimates both plans as equally cheap.
Statement Bulk::update(const char* table) const {
  Statement statement;
  std::string names;
  for (const auto& [name, column] : columns) names += (names.empty() ? "" : ", ") + std::string(name);
  const auto [values, from] = put(statement.params);
  const std::string first = columns.front().first;
  statement.sql = std::string("UPDATE ") + table + " t SET (" + names + ") = ROW(" + values +
                  ") FROM (SELECT u.*, (SELECT i.ctid FROM " + table + " i WHERE i." + first + " = u." + first +
                  ") AS place" + from + " OFFSET 0) u WHERE t.ctid = u.place";
  return statement;
}

}  // namespace latchkey::pg
