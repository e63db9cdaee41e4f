#include "cli/open_desk.hpp"

#include "client/embedded_desk.hpp"
#include "client/remote_desk.hpp"
#include "store/sqlite/store_lock.hpp"

namespace latchkey {

Result<std::unique_ptr<OperatorClient>> open_desk(const ConnectionOptions& place, const CliContext& context) {
  const auto found = place.find_server();
  if (!found) return std::unexpected(found.error());
  std::string address = *found;
  if (address.empty()) address = StoreLock::find_server(place.store_file()).value_or("");
  if (address.empty())
    return std::make_unique<EmbeddedOperatorClient>(place.store_file(), place.tenant, context.clock, context.random);
  auto server = RemoteServer::at(address, place.login(), context.clock);
  if (!server) return std::unexpected(server.error());
  return std::make_unique<RemoteOperatorClient>(*std::move(server));
}

}  // namespace latchkey
