// TransferStatus: what a store file says of itself once it was copied elsewhere. A file with a mark is opened by nobody but
// whoever moves it: what is done in it would be done a second time. Its format is another one then, so that versions
// that know nothing of marks refuse it too.
//
// To be written under the store's lock while the store is closed. Throws TablesError.
#pragma once

#include <optional>
#include <string>

#include "base/time.hpp"
#include "store/sqlite/database.hpp"

namespace latchkey {

inline constexpr int kStoreFormat = 5;
inline constexpr int kMovedFormat = -kStoreFormat;

struct TransferStatus {
  std::string place;  // host:port,…/database
  Instant at;
  // False: the copy was about to be committed, and whether it was is not known here.
  bool is_finished = false;

  bool operator==(const TransferStatus&) const = default;
};

std::optional<TransferStatus> find_transfer_status(Database& database);
// For people: why the file is not opened.
std::string describe(const TransferStatus& mark);

void write_transfer_status(const std::string& file, const TransferStatus& mark);
void erase_transfer_status(const std::string& file);

}  // namespace latchkey
