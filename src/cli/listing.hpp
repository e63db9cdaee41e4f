// What the commands that list and show have in common.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/cli_fwd.hpp"
#include "cli/connection_options.hpp"
#include "cli/context.hpp"
#include "client/desk.hpp"

namespace latchkey {

struct ListOptions {
  ConnectionOptions place;
  std::uint32_t limit = 50;
  std::string cursor;
  bool json = false;
};
void add_list_options(CLI::App& command, ListOptions& options);

struct IdOptions {
  ConnectionOptions place;
  std::string id;
  bool json = false;
};

// Opens the desk and does the work; what fails is reported, else the exit code is 0.
void at_desk(const ConnectionOptions& place, const CliContext& context,
             const std::function<Result<void>(OperatorClient&)>& work);

// The next page that has a run on it, or the last one: a store looks at only so many runs per page, and may find none
// of those asked for among them.
Result<Page> find_page(OperatorClient& desk, ListQuery query);

// Adds a command about one thing: ID, --json and the place. `work` is given the id.
CLI::App* add_id_command(CLI::App& parent, const std::string& name, const std::string& description,
                         const CliContext& context,
                         const std::function<Result<void>(OperatorClient&, Uuid, const IdOptions&)>& work);

// "  name   value" lines; empty values are left out.
void print_facts(std::ostream& out, const std::vector<std::pair<std::string, std::string>>& facts);

}  // namespace latchkey
