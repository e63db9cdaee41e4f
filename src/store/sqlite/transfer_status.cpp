#include "store/sqlite/transfer_status.hpp"

#include <fmt/format.h>

#include <functional>

#include "base/assert.hpp"

namespace latchkey {
namespace {

// Executes `what` in a transaction that is durable when this returns.
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
  const bool is_moved = format.integer(0) == kTransferredFormat;
  format.reset();
  if (!is_moved) return std::nullopt;
  Statement row = database.prepare(find_sql("read_transfer_status"));
  LK_ASSERT(row.step());
  TransferStatus found{std::string(row.bytes(0)), from_ms(row.integer(1)), row.integer(2) != 0};
  row.reset();
  return found;
}

std::string describe(const TransferStatus& status) {
  return status.is_finished
             ? fmt::format("the store was moved to PostgreSQL at {}: use a server on that", status.address)
             : fmt::format(
                   "a move of the store to PostgreSQL at {} was begun and not finished: run "
                   "`latchkey move` again",
                   status.address);
}

void write_transfer_status(const std::string& file, const TransferStatus& status) {
  change(file, [&](Database& database) {
    database.execute(std::string(find_sql("create_transfer_status")));
    database.execute(std::string(find_sql("erase_transfer_status")));
    database.prepare(find_sql("insert_transfer_status"))
        .bind_text(1, status.address)
        .bind(2, to_ms(status.at))
        .bind(3, status.is_finished ? 1 : 0)
        .run();
    set_format(database, kTransferredFormat);
  });
}

void erase_transfer_status(const std::string& file) {
  change(file, [](Database& database) {
    database.execute(std::string(find_sql("drop_transfer_status")));
    set_format(database, kStoreFormat);
  });
}

}  // namespace latchkey
