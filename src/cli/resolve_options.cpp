#include "cli/resolve_options.hpp"

#include <CLI/CLI.hpp>

#include "wire/json_in.hpp"

namespace latchkey {

void add_resolve_options(CLI::App& command, ResolveOptions& options, const ResolveHelp& help) {
  command.add_option("--outcome", options.outcome, help.outcome)->required()->check(CLI::IsMember(help.outcomes));
  command.add_option("--result", options.result, "JSON result for repeats, with `--outcome completed`");
  command.add_option("--note", options.note, help.note);
}

Result<Move> make_move(const ResolveOptions& options) {
  if (!options.result.empty() && options.outcome != "completed")
    return fail(Code::USAGE, "`--result` is allowed only with `--outcome completed`");
  if (!options.result.empty() && !wire::is_json(options.result))
    return fail(Code::INVALID_JSON, "`--result` is not JSON");
  if (options.outcome == "completed") return ResolveCompleted{options.result};
  if (options.outcome == "failed") return ResolveFailed{options.note};
  return ResolveRerun{};
}

}  // namespace latchkey
