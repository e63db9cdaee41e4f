// TransferStatus: the record in a store file that its runs were copied to a database. A file with a transfer status is
// opened only for a transfer, because a run could otherwise happen in the file and again in the copy. Such a file also
// has another format number, so that versions without this check refuse it.
//
// Write it under the store's lock while the store is closed. Throws TablesError.
#pragma once

#include <optional>
#include <string>

#include "base/time.hpp"
#include "store/sqlite/database.hpp"

namespace latchkey {

inline constexpr int kStoreFormat = 5;
inline constexpr int kTransferredFormat = -kStoreFormat;

struct TransferStatus {
  std::string address;  // host:port,…/database
  Instant at;
  // False: the transfer has begun, and it is not known here whether the copy was committed.
  bool is_finished = false;

  bool operator==(const TransferStatus&) const = default;
};

std::optional<TransferStatus> find_transfer_status(Database& database);
// The error message of a file that is not opened because of its transfer status.
std::string describe(const TransferStatus& status);

void write_transfer_status(const std::string& file, const TransferStatus& status);
void erase_transfer_status(const std::string& file);

}  // namespace latchkey
