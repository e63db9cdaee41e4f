// Latchkey as a library: make a C++ callable happen once under a key, in an SQLite file of your own.
//
//   latchkey::Latchkey keys("app.db");
//   auto outcome = keys.run({.function = "welcome-mail", .key = "user:42"}, [] { return send_mail(); });
//   auto charged = keys.run_in_transaction({.function = "charge", .key = "order:7"}, [](latchkey::Transaction& tx) {
//     tx.execute("INSERT INTO charges (order_id, cents) VALUES (?, ?)", {std::int64_t{7}, std::int64_t{1999}});
//     return std::string("charged");
//   });
//
// What is promised: `run` calls the effect again after a crash between effect and record, so it is at least once in
// that one case and once in all others. `run_in_transaction` commits the effect's writes to this file together with the
// record of it: exactly once. Other effects inside it (mail, HTTP) are not undone.
//
// Any member may be called from any thread. Failures of the store are thrown as latchkey::Failure; everything that may
// well happen (busy, replayed, failed) is an Outcome. C++20.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace latchkey {

// The store failed, or a request was wrong. `code` is stable: see docs/errors.
class Failure : public std::runtime_error {
 public:
  Failure(std::string code, const std::string& detail)
      : std::runtime_error(code + ": " + detail), code_(std::move(code)) {}
  const std::string& code() const { return code_; }

 private:
  std::string code_;
};

// What to make happen once.
struct OnceRequest {
  std::string function;  // the key's scope
  std::string key;
  std::string tenant = "default";
  bool while_running = false;                                  // a lock: it may run again once it has ended
  std::chrono::milliseconds window = std::chrono::hours{24};   // how long a success answers repeats
  std::chrono::milliseconds lease = std::chrono::seconds{60};  // after a crash the key is free when this is over
  unsigned retries = 0;        // tries after the first; waits 1 s, 5 s, 25 s between them
  bool hold_doubt = false;     // after a crash a person decides, instead of running it again
  bool wait = false;           // if somebody else runs it now, wait for the outcome
  std::string fingerprint_of;  // not empty: a repeat with another text is refused
};

enum class How {
  ran,       // the effect was called, and this is its result
  replayed,  // it was done before, and this is its result
  busy,      // somebody else runs it, or it waits for its next try: see retry_after
  failed,    // the effect threw and its tries are used up; `detail` says what it said
  in_doubt,  // it may have happened; a person decides
  reused,    // the key was used for something else
  lost,      // the lease was lost while the effect ran: somebody else may run it again
};

struct Outcome {
  How how = How::ran;
  std::string result;
  std::string run_id;
  std::string detail;
  std::chrono::milliseconds retry_after{0};

  // Whether the effect has happened, now or before.
  bool is_done() const { return how == How::ran || how == How::replayed; }
};

using Value = std::variant<std::nullptr_t, std::int64_t, double, std::string>;
using Row = std::vector<Value>;

// Your own tables, inside the transaction that also records the outcome. Only during the callable. Be short: while it
// lasts nothing else is recorded. BEGIN, COMMIT, ROLLBACK and Latchkey's own tables (lk_*) are refused.
class Transaction {
 public:
  virtual ~Transaction() = default;
  // One statement with its parameters. Throws Failure with SQLite's words.
  virtual void execute(std::string_view sql, const Row& parameters = {}) = 0;
  virtual std::vector<Row> query(std::string_view sql, const Row& parameters = {}) = 0;
};

class Latchkey {
 public:
  // Opens or creates the file. It belongs to this process until the object is gone; STORE_LOCKED if another has it.
  // Other connections may read the file meanwhile; write it only inside run_in_transaction().
  explicit Latchkey(const std::string& sqlite_file);
  ~Latchkey();
  Latchkey(const Latchkey&) = delete;
  Latchkey& operator=(const Latchkey&) = delete;

  // Calls `effect` unless it was done before. It runs on a thread of Latchkey's while this one waits; the lease is
  // extended meanwhile. An exception is a failed try. A result of more than 1 MiB cannot be kept: the outcome is
  // `failed` (`in_doubt` under hold_doubt, `busy` if there are retries left for a later call), the record says that the
  // effect may have happened, and this call does not try again.
  Outcome run(const OnceRequest& request, const std::function<std::string()>& effect);
  // The same, with the effect's writes to this file in the transaction that records its outcome. Too large a result
  // undoes them. The callable must not call this object, nor wait for a thread that does: nothing else is recorded
  // before it returns. On its own thread that is refused (INVALID_ARGUMENT).
  Outcome run_in_transaction(const OnceRequest& request, const std::function<std::string(Transaction&)>& effect);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace latchkey
