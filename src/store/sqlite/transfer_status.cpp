#include "store/sqlite/transfer_status.hpp"

#include <fmt/format.h>

#include <functional>

#include "base/assert.hpp"

namespace latchkey {
namespace {

// As the store itself writes: durable when it returns.
void change(const std::string& file, const std::function<void(Database&)>& what) {
  Database database(file, nullptr, Access::write);
  database.execute("PRAGMA busy_timeout = 5000; PRAGMA synchronous = FULL; BEGIN IMMEDIATE");
  what(database);
  database.execute("COMMIT");
}

void set_format(Database& database, int format) { database.prepare(find_sql("write_format")).bind(1, format).run(); }

}  // namespace

std::optional<TransferStatus> find_transfer_status(Database& database) {
  Statement format = database.prepare(find_sql("read_format"));
  LK_ASSERT(format.step());
  const bool is_moved = format.integer(0) == kMovedFormat;
  format.reset();
  if (!is_moved) return std::nullopt;
  Statement mark = database.prepare(find_sql("read_moved"));
  LK_ASSERT(mark.step());
  TransferStatus found{std::string(mark.bytes(0)), from_ms(mark.integer(1)), mark.integer(2) != 0};
  mark.reset();
  return found;
}

std::string describe(const TransferStatus& mark) {
  return mark.is_finished ? fmt::format("the store was moved to PostgreSQL at {}: use a server on that", mark.place)
                          : fmt::format(
                                "a move of the store to PostgreSQL at {} was begun and not finished: run "
                                "`latchkey move` again",
                                mark.place);
}

void write_transfer_status(const std::string& file, const TransferStatus& mark) {
  change(file, [&](Database& database) {
    database.execute(std::string(find_sql("make_moved")));
    database.execute(std::string(find_sql("erase_moved")));
    database.prepare(find_sql("add_moved"))
        .bind_text(1, mark.place)
        .bind(2, to_ms(mark.at))
        .bind(3, mark.is_finished ? 1 : 0)
        .run();
    set_format(database, kMovedFormat);
  });
}

void erase_transfer_status(const std::string& file) {
  change(file, [](Database& database) {
    database.execute(std::string(find_sql("drop_moved")));
    set_format(database, kStoreFormat);
  });
}

}  // namespace latchkey
