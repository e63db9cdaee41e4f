#include "server/serve.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "cli/commands/commands.hpp"
#include "cli/shared_options.hpp"

namespace latchkey {

void add_serve_command(CLI::App& app, const CliContext& context) {
  auto settings = std::make_shared<ServeSettings>();
  CLI::App* const serve_app = app.add_subcommand("serve", "Serve the HTTP API until SIGINT or SIGTERM");
  add_data_dir(*serve_app, settings->data_dir, "Folder of the store and of admin.key");
  serve_app->add_option("--listen", settings->listen, "Address and port")
      ->envname("LATCHKEY_LISTEN")
      ->capture_default_str();
  const CLI::Option* const store =
      serve_app
          ->add_option("--store", settings->store,
                       "The store, sqlite:FILE or postgres://… (default: latchkey.db in the data folder)")
          ->envname("LATCHKEY_STORE");
  add_retention(*serve_app, settings->engine.retention);
  serve_app->add_option("--cors-origin", settings->cors_origins, "Allowed CORS origin; may be given several times")
      ->take_all();
  serve_app->add_flag("--insecure-listen", settings->insecure_listen,
                      "Listen beyond loopback although there is no TLS");
  serve_app->footer(
      "Examples:\n  latchkey serve\n  latchkey serve --data-dir /var/lib/latchkey --listen 127.0.0.1:7420\n"
      "  latchkey serve --store sqlite:/srv/latchkey.db --retention 30d\n"
      "  latchkey serve --store 'postgres://latchkey@db/latchkey?sslmode=verify-full'");
  serve_app->callback([settings, store, &context] {
    // CLI11 ignores a variable that is set to an empty value.
    const bool is_set = store->count() > 0 || std::getenv("LATCHKEY_STORE") != nullptr;
    if (is_set)
      if (auto good = check_store(settings->store); !good) return context.report(good.error());
    if (auto known = ConnectionOptions{.data_dir = settings->data_dir}.check(); !known)
      return context.report(known.error());
    const auto served = serve(*settings, context.out);
    if (served) return context.set_exit(0);
    // A second server is not a failure, so it has an exit code of its own for service managers.
    const Code code = served.error().code;
    context.report(served.error(), code == Code::STORE_LOCKED ? EXIT_BUSY : exit_code_of(code));
  });
}

}  // namespace latchkey
