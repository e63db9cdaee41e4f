// The OperatorClient of a command: the server that was named, or that owns the store; else the embedded store.
#pragma once

#include <memory>

#include "cli/connection_options.hpp"
#include "cli/context.hpp"
#include "client/desk.hpp"

namespace latchkey {

Result<std::unique_ptr<OperatorClient>> open_desk(const ConnectionOptions& place, const CliContext& context);

}  // namespace latchkey
