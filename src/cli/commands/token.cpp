#include "cli/commands/token.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "cli/listing.hpp"
#include "cli/terminal/table.hpp"
#include "engine/validate.hpp"
#include "wire/json_out.hpp"
#include "wire/run_json.hpp"

namespace latchkey {
namespace {

struct CreateOptions {
  ConnectionOptions place;
  TokenWish wish;
  std::string role;
  Duration expires{};
  bool json = false;
};
struct RevokeOptions {
  ConnectionOptions place;
  std::string id;
};

// A secret that nobody has seen is of no use to anybody.
Result<void> withdraw(const NewToken& token, OperatorClient& desk) {
  const auto revoked = desk.revoke_token(token.record.id);
  return fail(Code::OUTPUT_FAILED, revoked ? fmt::format("the secret of token {} could not be written; the token was "
                                                         "revoked",
                                                         token.record.id)
                                           : fmt::format("the secret of token {} could not be written, and the token "
                                                         "could not be revoked ({}): revoke it by hand",
                                                         token.record.id, to_string(revoked.error())));
}

Result<void> create(const CreateOptions& options, const CliContext& context, OperatorClient& desk) {
  if (auto fault = find_name_fault(options.wish.name)) return std::unexpected(*std::move(fault));
  ::signal(SIGPIPE, SIG_IGN);  // as long as somebody must be told
  const auto token = desk.create_token(options.wish);
  if (!token) return std::unexpected(token.error());
  if (options.json) {
    std::string text;
    wire::append_token(text, token->record, token->secret);
    context.out << text << '\n' << std::flush;
    return context.out ? Result<void>() : withdraw(*token, desk);
  }
  context.out << token->secret << '\n' << std::flush;
  if (!context.out) return withdraw(*token, desk);
  context.err << fmt::format("latchkey: token {} is shown this once; keep it safe\n", token->record.id);
  return {};
}

bool is_good_admin(const TokenRecord& token, Instant now) {
  return token.role == Role::admin && !token.revoked_at && (!token.expires_at || now < *token.expires_at);
}

// Whether nobody could make tokens afterwards; also false where that cannot be seen.
bool is_last_admin(const std::string& id, OperatorClient& desk, Instant now) {
  const auto tokens = desk.list_tokens();
  if (!tokens) return false;
  const auto is_good = [&](const TokenRecord& token) { return is_good_admin(token, now); };
  return std::ranges::count_if(*tokens, is_good) == 1 && std::ranges::find_if(*tokens, is_good)->id == id;
}

Result<void> revoke_one(const std::string& id, const CliContext& context, OperatorClient& desk) {
  const bool last = is_last_admin(id, desk, context.clock.now());  // asked before: it may be our own
  if (auto revoked = desk.revoke_token(id); !revoked) return revoked;
  if (last)
    context.err << "latchkey: that was the last admin token: to get another one, move admin.key away and start the "
                   "server again\n";
  return {};
}

Result<void> list(const ListOptions& options, std::ostream& out, OperatorClient& desk) {
  const auto tokens = desk.list_tokens();
  if (!tokens) return std::unexpected(tokens.error());
  if (options.json) {
    out << wire::write_page(*tokens, "", [](std::string& text, const TokenRecord& token) {
      wire::append_token(text, token);
    }) << '\n';
    return {};
  }
  Table table({"TOKEN", "NAME", "ROLE", "TENANTS", "CREATED", "EXPIRES", "REVOKED"});
  for (const TokenRecord& token : *tokens) {
    table.add({token.id, plain(token.name, 40), std::string(to_string(token.role)),
               token.tenants.empty() ? "all" : plain(fmt::format("{}", fmt::join(token.tenants, " ")), 40),
               plain(token.created_at), token.expires_at ? plain(*token.expires_at) : "never",
               token.revoked_at ? plain(*token.revoked_at) : ""});
  }
  table.print(out);
  return {};
}

void add_create(CLI::App& token, const CliContext& context) {
  auto options = std::make_shared<CreateOptions>();
  CLI::App* const command = token.add_subcommand("create", "Make a token; it is printed once, on stdout");
  command->add_option("--name", options->wish.name, "For people: who or what uses it")->required();
  command->add_option("--role", options->role, "viewer, service, org-admin or admin")
      ->required()
      ->check(CLI::IsMember({"viewer", "service", "org-admin", "admin"}));
  command->add_option("--tenant", options->wish.tenants, "Acts for this tenant; may be repeated")->take_all();
  add_duration(*command, "--expires", options->expires, "Good for this long, such as 30d (default: for ever)");
  command->add_flag("--json", options->json, "Print JSON");
  add_server_options(*command, options->place);
  command->footer("Example:\n  latchkey token create --name ci --role service --tenant acme --expires 30d");
  command->callback([options, command, &context] {
    options->wish.role = *parse_role(options->role);
    if (command->count("--expires") > 0) options->wish.expires_in = options->expires;
    at_desk(options->place, context, [&](OperatorClient& desk) { return create(*options, context, desk); });
  });
}

}  // namespace

void add_token_command(CLI::App& app, const CliContext& context) {
  CLI::App* const token = app.add_subcommand("token", "Tokens of a server (which must be running)");
  token->require_subcommand(1);
  token->footer(
      "Examples:\n  latchkey token create --name ci --role service --tenant acme\n  latchkey token list\n"
      "  latchkey token revoke ID");
  add_create(*token, context);
  auto list_options = std::make_shared<ListOptions>();
  CLI::App* const list_app = token->add_subcommand("list", "Tokens, never their secrets");
  list_app->add_flag("--json", list_options->json, "Print {items, next} as JSON");
  add_place_options(*list_app, list_options->place);
  list_app->footer("Example:\n  latchkey token list");
  list_app->callback([list_options, &context] {
    at_desk(list_options->place, context, [&](OperatorClient& desk) { return list(*list_options, context.out, desk); });
  });
  auto revoke_options = std::make_shared<RevokeOptions>();
  CLI::App* const revoke = token->add_subcommand("revoke", "From now on the token is refused");
  revoke->add_option("ID", revoke_options->id, "As lists show it")->required();
  add_place_options(*revoke, revoke_options->place);
  revoke->footer("Example:\n  latchkey token revoke 4f53cda18c2b0d1e");
  revoke->callback([revoke_options, &context] {
    at_desk(revoke_options->place, context,
            [&](OperatorClient& desk) { return revoke_one(revoke_options->id, context, desk); });
  });
}

}  // namespace latchkey
