// Latchkey inside a program: a callable that runs once, and one whose writes commit together with its outcome.
//
//   embedded shop.db        run it twice: the second run only replays the stored outcomes
#include <cstdio>
#include <latchkey/latchkey.hpp>

int main(int argc, char** argv) {
  try {
    latchkey::Latchkey keys(argc > 1 ? argv[1] : "shop.db");

    // 1. Any callable. Latchkey stores its return value and replays it to every repeat for a day.
    const auto mail = keys.run({.function = "welcome-mail", .key = "user:42"}, [] {
      std::puts("sending the mail");
      return std::string("message-id:1");
    });
    std::printf("mail: %s (%s)\n", mail.result.c_str(), mail.how == latchkey::How::ran ? "ran" : "replayed");

    // 2. A callable that writes to the same file. Its rows and its outcome are one transaction: exactly once.
    const auto charge =
        keys.run_in_transaction({.function = "charge", .key = "order:7"}, [](latchkey::Transaction& tx) {
          tx.execute("CREATE TABLE IF NOT EXISTS charges (order_id INTEGER, cents INTEGER)");
          tx.execute("INSERT INTO charges VALUES (?, ?)", {std::int64_t{7}, std::int64_t{1999}});
          const auto rows = tx.query("SELECT count(*) FROM charges");
          return "charges:" + std::to_string(std::get<std::int64_t>(rows.at(0).at(0)));
        });
    std::printf("charge: %s (%s)\n", charge.result.c_str(), charge.how == latchkey::How::ran ? "ran" : "replayed");
    return mail.is_done() && charge.is_done() ? 0 : 1;
  } catch (const latchkey::Failure& failure) {
    std::fprintf(stderr, "embedded: %s\n", failure.what());
    return 1;
  }
}
