#include "cli/terminal/run_details.hpp"

#include <fmt/format.h>

#include <ostream>

#include "cli/terminal/table.hpp"
#include "effects/stored_output.hpp"
#include "model/window.hpp"

namespace latchkey {
namespace {

std::string describe_effect(const Run& run) {
  const auto* failed = run.as<Failed>();
  const auto* cancelled = run.as<Cancelled>();
  if (!failed && !cancelled) return "";
  const Effect effect = failed ? failed->effect : cancelled->effect;
  if (effect == Effect::unknown) return "unknown (it may have happened)";
  return failed && run.last_error_code.starts_with("EXIT_") ? "none (the command reported failure)" : "none";
}

std::string describe_window(const Run& run) {
  const auto* done = run.as<Completed>();
  if (!done || run.head->guard != Guard::once) return "";
  if (run.head->window == kForever) return "forever";
  return plain(done->at + run.head->window) + ", then the same key runs again";
}

std::string describe_doubt(const Run& run) {
  if (!run.as<InDoubt>()) return "";
  const std::string why =
      run.last_error.empty() ? "its lease expired without a result" : plain(first_line(run.last_error), 1000);
  return fmt::format("{}; its effect may have happened", why);
}

void print_stream(std::ostream& out, const char* name, const StoredStream& stream) {
  if (stream.total == 0) return;
  out << '\n' << name;
  if (stream.truncated) out << fmt::format(" (the last {} of {} bytes)", stream.bytes.size(), stream.total);
  out << ":\n" << plain_lines(stream.bytes);
}

void print_output(std::ostream& out, const Run& run) {
  const auto* done = run.as<Completed>();
  const auto stored = done ? read_stored_output(done->result) : std::nullopt;
  if (stored) {
    print_stream(out, "stdout", stored->output);
    print_stream(out, "stderr", stored->errors);
  } else if (const auto output = later_lines(run.last_error); !done && !output.empty()) {
    out << '\n' << plain_lines(output);
  }
}

void print_commands(std::ostream& out, const Run& run, const std::string& flags) {
  if (!run.as<InDoubt>()) return;
  out << "\nfind out whether it happened, then:\n";
  const std::pair<const char*, const char*> kOutcomes[] = {
      {"completed", "it happened"}, {"failed", "it did not"}, {"rerun", "run it again"}};
  for (const auto& [outcome, meaning] : kOutcomes)
    out << fmt::format("  latchkey runs resolve {} --outcome {}{}   ({})\n", to_string(run.id()), outcome, flags,
                       meaning);
}

}  // namespace

std::string code_of(const Run& run) {
  if (const auto* cancelled = run.as<Cancelled>()) return cancelled->code;
  const auto* failed = run.as<Failed>();
  if (!failed) return "";
  const bool is_single = failed->code == "MAX_RETRIES_EXCEEDED" && run.attempts_max == 1;
  return is_single && !run.last_error_code.empty() ? plain(run.last_error_code) : failed->code;
}

void print_run(std::ostream& out, const Run& run, const std::string& flags) {
  const auto* queued = run.as<Queued>();
  const auto* running = run.as<Running>();
  const auto* doubt = run.as<InDoubt>();
  const auto* done = run.as<Completed>();
  const bool is_output = done && read_stored_output(done->result);
  print_facts(out, {{"run", to_string(run.id())},
                    {"tenant", plain(run.head->tenant)},
                    {"function", plain(run.head->function, 128)},
                    {"key", plain(run.head->key, 512)},
                    {"guard", std::string(to_string(run.head->guard))},
                    {"status", std::string(to_string(run.status()))},
                    {"attempt", fmt::format("{} of {}, generation {}, fence {}", run.attempt, run.attempts_max,
                                            run.generation, static_cast<std::uint64_t>(run.fence))},
                    {"effect key", to_string(run.effect_key)},
                    {"created", plain(run.head->created_at)},
                    {"due", queued ? plain(queued->due_at) : ""},
                    {"started", running ? plain(running->started_at) : ""},
                    {"lease until", running ? plain(running->lease_until) : ""},
                    {"cancel", running && running->cancel_requested ? "requested" : ""},
                    {"in doubt", doubt ? plain(doubt->since) : ""},
                    {"reason", describe_doubt(run)},
                    {"settled", run.is_settled() ? plain(run.settled_at()) : ""},
                    {"replayed until", describe_window(run)},
                    {"code", code_of(run)},
                    {"effect", describe_effect(run)},
                    {"error", done || doubt ? "" : plain(first_line(run.last_error), 1000)},
                    {"caller", plain(run.head->caller, 200)},
                    {"result", done && !is_output ? plain(done->result, 2000) : ""}});
  print_output(out, run);
  print_commands(out, run, flags);
}

}  // namespace latchkey
