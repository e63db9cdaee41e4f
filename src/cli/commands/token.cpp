#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "cli/api_command.hpp"
#include "cli/commands/commands.hpp"
#include "cli/shared_options.hpp"
#include "cli/terminal/table.hpp"
#include "engine/validate.hpp"
#include "wire/json_out.hpp"
#include "wire/run_json.hpp"

namespace latchkey {
namespace {

struct CreateOptions : ApiOptions {
  TokenRequest request;
  std::string role;
  Duration expires{};
};

// Revokes a token whose secret could not be printed, because it cannot be read again.
Result<void> withdraw(const NewToken& token, RunApi& api) {
  const auto revoked = api.revoke_token(token.record.id);
  return fail(Code::OUTPUT_FAILED, revoked ? fmt::format("the secret of token {} could not be written; the token was "
                                                         "revoked",
                                                         token.record.id)
                                           : fmt::format("the secret of token {} could not be written, and the token "
                                                         "could not be revoked ({}): revoke it yourself",
                                                         token.record.id, to_string(revoked.error())));
}

Result<void> create(const CreateOptions& options, const CliContext& context, RunApi& api) {
  if (auto fault = find_name_fault(options.request.name)) return std::unexpected(*std::move(fault));
  ::signal(SIGPIPE, SIG_IGN);  // a failed write is reported instead
  const auto token = api.create_token(options.request);
  if (!token) return std::unexpected(token.error());
  if (options.json) {
    std::string text;
    wire::append_token(text, token->record, token->secret);
    context.out << text << '\n' << std::flush;
    return context.out ? Result<void>() : withdraw(*token, api);
  }
  context.out << token->secret << '\n' << std::flush;
  if (!context.out) return withdraw(*token, api);
  context.err << fmt::format("latchkey: token {} is shown only once; store it safely\n", token->record.id);
  return {};
}

bool is_good_admin(const TokenRecord& token, Instant now) {
  return token.role == Role::admin && !token.revoked_at && (!token.expires_at || now < *token.expires_at);
}

// Whether the token is the last valid one of an administrator. False when the list cannot be read.
bool is_last_admin(const std::string& id, RunApi& api, Instant now) {
  const auto tokens = api.list_tokens();
  if (!tokens) return false;
  const auto is_good = [&](const TokenRecord& token) { return is_good_admin(token, now); };
  return std::ranges::count_if(*tokens, is_good) == 1 && std::ranges::find_if(*tokens, is_good)->id == id;
}

Result<void> revoke_one(const std::string& id, const CliContext& context, RunApi& api) {
  const bool last =
      is_last_admin(id, api, context.clock.now());  // before the token is revoked: this command may use it
  if (auto revoked = api.revoke_token(id); !revoked) return revoked;
  if (last)
    context.err << "latchkey: that was the last admin token: to get another one, rename admin.key and restart the "
                   "server\n";
  return {};
}

Result<void> list(const ApiOptions& options, std::ostream& out, RunApi& api) {
  const auto tokens = api.list_tokens();
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
  CLI::App* const command = token.add_subcommand("create", "Create a token; its secret is printed once, on stdout");
  command->add_option("--name", options->request.name, "Name for operators: the user or program of the token")
      ->required();
  command->add_option("--role", options->role, "viewer, service, org-admin or admin")
      ->required()
      ->check(CLI::IsMember({"viewer", "service", "org-admin", "admin"}));
  command->add_option("--tenant", options->request.tenants, "Allowed tenant; may be given several times (default: all)")
      ->take_all();
  add_duration(*command, "--expires", options->expires, "Lifetime, such as 30d (default: unlimited)");
  add_json(*command, options->json);
  add_server_options(*command, options->connection);
  command->footer("Example:\n  latchkey token create --name ci --role service --tenant acme --expires 30d");
  command->callback([options, command, &context] {
    options->request.role = *parse_role(options->role);
    if (command->count("--expires") > 0) options->request.expires_in = options->expires;
    call_api(options->connection, context, [&](RunApi& api) { return create(*options, context, api); });
  });
}

}  // namespace

void add_token_command(CLI::App& app, const CliContext& context) {
  CLI::App* const token = app.add_subcommand("token", "Manage the tokens of a running server");
  token->require_subcommand(1);
  token->footer(
      "Examples:\n  latchkey token create --name ci --role service --tenant acme\n  latchkey token list\n"
      "  latchkey token revoke ID");
  add_create(*token, context);
  auto list_options = std::make_shared<ApiOptions>();
  CLI::App* const list_app = token->add_subcommand("list", "List tokens, without their secrets");
  add_json(*list_app, list_options->json, "Print {items, next} as JSON");
  add_connection_options(*list_app, list_options->connection);
  list_app->footer("Example:\n  latchkey token list");
  set_api_work(*list_app, list_options, context,
               [list_options, &context](RunApi& api) { return list(*list_options, context.out, api); });
  auto revoke_options = std::make_shared<IdOptions>();
  CLI::App* const revoke = token->add_subcommand("revoke", "Revoke a token: the server refuses it from now on");
  revoke->add_option("ID", revoke_options->id, "Id, as lists show it")->required();
  add_connection_options(*revoke, revoke_options->connection);
  revoke->footer("Example:\n  latchkey token revoke 4f53cda18c2b0d1e");
  set_api_work(*revoke, revoke_options, context,
               [revoke_options, &context](RunApi& api) { return revoke_one(revoke_options->id, context, api); });
}

}  // namespace latchkey
