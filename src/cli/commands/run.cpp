#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <ostream>

#include "cli/commands/commands.hpp"
#include "cli/flag_words.hpp"
#include "cli/shared_options.hpp"
#include "cli/terminal/interrupts.hpp"
#include "cli/terminal/progress_reporting_claims.hpp"
#include "cli/terminal/run_report.hpp"
#include "client/api_client.hpp"
#include "client/claims_on_thread.hpp"
#include "client/embedded_api.hpp"
#include "effects/command.hpp"
#include "engine/run_once.hpp"
#include "engine/validate.hpp"
#include "keying/key_hash.hpp"

namespace latchkey {
namespace {

struct RunOptions {
  ConnectionOptions connection;
  std::string key;
  std::string function = "run";
  std::string guard = "once";
  std::string on_doubt = "rerun";
  Duration window = kDefaultWindow;
  Duration lease = kDefaultLease;
  Retention retention;
  std::uint32_t retries = 0;
  bool wait = false;
  std::optional<Duration> wait_for;
  Duration wait_for_read{};
  bool strict = false;
  bool quiet = false;
};

std::string describe_caller() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const char* const user = std::getenv("USER");
  return fmt::format("{}@{}", user != nullptr ? user : std::to_string(::getuid()), host);
}

Fingerprint compute_arguments_fingerprint(const std::vector<std::string>& arguments) {
  Sha256& hash = thread_sha256();
  for (const std::string& argument : arguments) hash.add_prefixed(argument);
  return hash.finish();
}

Result<ClaimRequest> make_request(const RunOptions& options, const CliContext& context) {
  ClaimRequest request;
  request.tenant = options.connection.tenant.value_or("default");
  request.function = options.function;
  request.key = options.key;
  request.key_hash = compute_key_hash(request.tenant, request.function, request.key);
  request.guard = *parse_guard(options.guard);
  request.on_doubt = options.on_doubt == "hold" ? OnDoubt::hold : OnDoubt::rerun;
  request.retry.retries = options.retries;
  request.window = options.window;
  request.lease = options.lease;
  request.caller = describe_caller();
  if (options.strict) request.fingerprint = compute_arguments_fingerprint(context.behind_dashes);
  if (auto fault = find_key_fault(request.key)) return std::unexpected(*std::move(fault));
  if (auto fault = find_fault(request)) return std::unexpected(*std::move(fault));
  return request;
}

// Creates the embedded store if it is missing. An embedded store that a server takes over later is no error: the claims
// then go to that server.
Result<std::unique_ptr<RunApi>> open_claims(const RunOptions& options, const CliContext& context) {
  const ConnectionOptions& connection = options.connection;
  const auto address = connection.find_server();
  if (!address) return std::unexpected(address.error());
  if (!address->empty()) {
    auto server = ApiClient::at(*address, connection.login(), context.clock);
    if (!server) return std::unexpected(server.error());
    return std::make_unique<ApiClient>(*std::move(server));
  }
  if (auto created = connection.create_data_dir(); !created) return std::unexpected(created.error());
  return std::make_unique<EmbeddedApi>(
      EmbeddedApiSettings{.file = connection.store_file(), .login = connection.login(), .retention = options.retention},
      context.clock, context.random);
}

RunOnceSettings make_settings(const RunOptions& options) {
  RunOnceSettings settings;
  settings.retry_unknown = true;  // --retries counts attempts that a signal ended, too
  settings.wait = options.wait || options.wait_for.has_value();
  if (options.wait_for) settings.wait_max = *options.wait_for;
  settings.poll_max = std::chrono::milliseconds{500};
  settings.patience = std::chrono::seconds{10};
  settings.wait_for_room = false;  // a full disk may last days, and the command has not run yet
  // The outcome of an effect is worth retries, but a cron job must end.
  settings.settle_patience = std::chrono::minutes{10};
  return settings;
}

// One call of `latchkey run`, from the first claim to the exit code.
class RunCall {
 public:
  RunCall(const RunOptions& options, const CliContext& context, RunApi& api)
      : options_(options),
        context_(context),
        status_(context.err, context.status),
        report_{context.err, context.clock, options.quiet ? Verbosity::quiet : Verbosity::full,
                options.key, status_,       options.connection.flags()},
        interrupts_(io_),
        command_({.arguments = context.behind_dashes, .signals = interrupts_.before()}, context.clock),
        clock_(context.clock, io_, [this] { return must_leave(); }),
        on_thread_(api),
        api_(api),
        claims_(on_thread_, report_,
                {.waits = make_settings(options).wait, .settle_patience = make_settings(options).settle_patience}) {}

  int run(ClaimRequest request) {
    int exit = EXIT_INTERNAL;
    asio::co_spawn(io_, interrupts_.listen([this](int signal, Command::Sender sender) { interrupt(signal, sender); }),
                   asio::detached);
    asio::co_spawn(io_, call(std::move(request)), [&](std::exception_ptr broken, int code) {
      exit = broken ? explain(broken) : code;
      interrupts_.cancel();
    });
    io_.run();
    if (left_early_) release_retry_delay();
    return exit;
  }

 private:
  Task<int> call(ClaimRequest request) {
    const auto reply =
        co_await run_once(claims_, clock_, context_.random, std::move(request), command_, make_settings(options_));
    if (reply) co_return report_.report(*reply, command_);
    report_.warn(to_string(with_flag_words(reply.error())));
    claims_.report_abandoned();
    // The exit code of a failed command is returned even if its outcome could not be stored.
    if (command_.end() && command_.end()->exit_code != 0) co_return command_.end()->exit_code;
    co_return exit_code_of(reply.error().code);
  }

  void interrupt(int signal, Command::Sender sender) {
    signal_ = signal;
    abandons_outcome_ |= claims_.is_unsettled();
    command_.interrupt(signal, sender);
    clock_.wake();
  }

  // A signal ends a retry delay and a wait for another owner at once. It ends the retries of a settle only after the
  // caller has seen the report that the outcome is not stored yet.
  bool must_leave() const {
    return !command_.is_running() && (claims_.is_settling() ? abandons_outcome_ : signal_.has_value());
  }

  int explain(const std::exception_ptr& broken) {
    try {
      std::rethrow_exception(broken);
    } catch (const std::exception& error) {
      if (signal_) {
        left_early_ = true;
        status_.clear();
        claims_.report_abandoned();
        return 128 + *signal_;
      }
      report_.warn(std::string("INTERNAL: ") + error.what());
      return EXIT_INTERNAL;
    }
  }

  // Ends the retry delay, so that the next call starts the next attempt at once. The release has the fence of this
  // call: it does not change a run that another caller has claimed since.
  void release_retry_delay() {
    const auto& run = claims_.run_in_retry_delay();
    if (!run) return;
    interrupts_.restore();  // a second signal ends this process
    const auto replies = api_.settle({{run->head->tenant, run->id(), run->fence, Release{}}});
    if (!replies)
      return report_.warn(fmt::format("{}; the key waits for its next attempt until {}", to_string(replies.error()),
                                      format_rfc3339(std::get<Queued>(run->state).due_at)));
    if (std::holds_alternative<Settled>(replies->front())) report_.note_released(run->id());
  }

  const RunOptions& options_;
  const CliContext& context_;
  StatusLine status_;
  RunReport report_;
  asio::io_context io_{1};
  Interrupts interrupts_;
  Command command_;
  InterruptibleClock clock_;
  std::optional<int> signal_;      // the latest
  bool abandons_outcome_ = false;  // the signal came when an outcome could not be stored
  bool left_early_ = false;
  ClaimsOnThread on_thread_;  // joined before the io_context is destroyed
  RunApi& api_;
  ProgressReportingClaims claims_;
};

int run(const RunOptions& options, const CliContext& context) {
  const auto refuse = [&](const Error& error) {
    context.report(error);  // run() sets the exit code again
    return exit_code_of(error.code);
  };
  if (context.behind_dashes.empty())
    return refuse({Code::USAGE, "no command: put it behind `--`, as in latchkey run --key KEY -- COMMAND ARGUMENT…"});
  auto request = make_request(options, context);
  if (!request) return refuse(request.error());
  const auto api = open_claims(options, context);
  if (!api) return refuse(api.error());
  return RunCall(options, context, **api).run(*std::move(request));
}

constexpr const char* kFooter = R"(The command follows `--`: latchkey run --key KEY [OPTIONS] -- COMMAND ARGUMENT…

Examples:
  latchkey run --key backup:$(date +%F) -- ./backup.sh
  latchkey run --key report --guard while-running -- make report   (a lock: one run at a time, no replay)
  latchkey run --key sync --retries 3 -- ./sync.sh                 (retries after 1s, 5s and 25s)
  latchkey run --key build --wait -- make                          (waits for another run of the key and prints
                                                                    its output; if it failed, runs the command)

The command finds LATCHKEY_RUN, LATCHKEY_KEY, LATCHKEY_ATTEMPT, LATCHKEY_FENCE and LATCHKEY_EFFECT_KEY in its
environment. Ctrl-C is passed on to the command, and the attempt is released. If this process dies, the command and its
child processes are killed; the key is free when the lease expires.

Exit codes: the command's own; 0 also for a replay; 65 key reused for another command line (--strict); 69 store or
server cannot be reached; 74 success, but the output could not be written; 75 busy, or the lease was lost; 76 outcome
unknown, an operator decides; 126 and 127 as in shells; 128 + n after signal n.)";

}  // namespace

void add_run_command(CLI::App& app, const CliContext& context) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* const run_app = app.add_subcommand("run", "Run a command once per key; a repeat prints the stored output");
  run_app->add_option("--key", options->key, "The key: the command runs once per key")->required();
  run_app->add_option("--guard", options->guard, "once: one success per window; while-running: one at a time")
      ->check(CLI::IsMember({"once", "while-running"}))
      ->capture_default_str();
  add_window(*run_app, options->window);
  add_duration(*run_app, "--lease", options->lease, "How soon the key is free after this process dies (default: 60s)");
  run_app->add_option("--retries", options->retries, "Attempts after a failed one, after 1s, 5s, 25s, 30s…")
      ->capture_default_str();
  run_app->add_flag("--wait", options->wait, "If another process runs the key, wait for its outcome");
  add_duration(*run_app, "--wait-for", options->wait_for_read, "As --wait, but at most this long");
  run_app->add_option("--function", options->function, "Scope of the key, and its name in lists")
      ->capture_default_str();
  run_app->add_option("--on-doubt", options->on_doubt, "After an owner died: rerun, or hold until an operator decides")
      ->check(CLI::IsMember({"rerun", "hold"}))
      ->capture_default_str();
  run_app->add_flag("--strict", options->strict, "Reject the key for any other command line (KEY_REUSED)");
  run_app->add_flag("--quiet,-q", options->quiet, "Print errors only");
  add_retention(*run_app, options->retention);
  add_connection_options(*run_app, options->connection);
  run_app->footer(kFooter);
  run_app->callback([options, run_app, &context] {
    if (run_app->count("--wait-for") > 0) options->wait_for = options->wait_for_read;
    context.set_exit(run(*options, context));
  });
}

}  // namespace latchkey
