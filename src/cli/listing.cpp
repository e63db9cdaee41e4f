#include "cli/listing.hpp"

#include <signal.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "cli/open_desk.hpp"

namespace latchkey {

void add_list_options(CLI::App& command, ListOptions& options) {
  command.add_option("--limit", options.limit, "How many at most")->check(CLI::Range(1, 500))->capture_default_str();
  command.add_option("--cursor", options.cursor, "Go on where a page ended (its `next`)");
  command.add_flag("--json", options.json, "Print {items, next} as JSON");
  add_place_options(command, options.place);
}

void at_desk(const ConnectionOptions& place, const CliContext& context,
             const std::function<Result<void>(OperatorClient&)>& work) {
  ::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files: the store is full then, as on a full disk
  const auto desk = open_desk(place, context);
  if (!desk) return context.report(desk.error());
  const auto done = work(**desk);
  if (!done) return context.report(done.error());
  context.out << std::flush;
  context.set_exit(0);
}

Result<Page> find_page(OperatorClient& desk, ListQuery query) {
  for (;;) {
    auto page = desk.list_runs(query);
    if (!page || !page->runs.empty() || page->next.empty()) return page;
    query.cursor = page->next;
  }
}

CLI::App* add_id_command(CLI::App& parent, const std::string& name, const std::string& description,
                         const CliContext& context,
                         const std::function<Result<void>(OperatorClient&, Uuid, const IdOptions&)>& work) {
  auto options = std::make_shared<IdOptions>();
  CLI::App* const command = parent.add_subcommand(name, description);
  command->add_option("ID", options->id, "As lists show it")->required();
  command->add_flag("--json", options->json, "Print JSON");
  add_place_options(*command, options->place);
  command->footer("Example:\n  latchkey " + parent.get_name() + " " + name + " 0198f0a1-7c2e-7000-8000-00005be78b16");
  command->callback([options, work, &context] {
    const auto id = parse_uuid(options->id);
    if (!id) return context.report({Code::USAGE, "`" + options->id + "` is not an id; lists show them"});
    at_desk(options->place, context, [&](OperatorClient& desk) { return work(desk, *id, *options); });
  });
  return command;
}

void print_facts(std::ostream& out, const std::vector<std::pair<std::string, std::string>>& facts) {
  for (const auto& [name, value] : facts) {
    if (value.empty()) continue;
    out << name << std::string(name.size() < 13 ? 13 - name.size() : 1, ' ') << value << '\n';
  }
}

}  // namespace latchkey
