// Latchkey as a library: runs a C++ callable once per key and stores its outcome in an SQLite file of your own.
//
//   latchkey::Latchkey keys("app.db");
//   auto outcome = keys.run({.function = "welcome-mail", .key = "user:42"}, [] { return send_mail(); });
//   auto charged = keys.run_in_transaction({.function = "charge", .key = "order:7"}, [](latchkey::Transaction& tx) {
//     tx.execute("INSERT INTO charges (order_id, cents) VALUES (?, ?)", {std::int64_t{7}, std::int64_t{1999}});
//     return std::string("charged");
//   });
//
// Promise: `run` calls the effect again after a crash between the effect and the commit of its outcome. The effect then
// happens at least once; in all other cases it happens once. `run_in_transaction` commits the effect's writes to this
// file together with its outcome: exactly once. Other effects of the callable (mail, HTTP) are not rolled back.
//
// All members are thread-safe. A failure of the store throws latchkey::Failure; expected results (busy, replayed,
// failed) are an Outcome. Needs C++20.
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

// The store failed, or a request was invalid. `code` is stable: see docs/errors.
class Failure : public std::runtime_error {
 public:
  Failure(std::string code, const std::string& detail)
      : std::runtime_error(code + ": " + detail), code_(std::move(code)) {}
  const std::string& code() const { return code_; }

 private:
  std::string code_;
};

// A window without an end: a success is replayed as long as the store exists.
inline constexpr std::chrono::milliseconds forever = std::chrono::hours{24 * 365'250};

// A request to run an effect once. "Once" means once per window.
struct OnceRequest {
  std::string function;  // the scope of the key
  std::string key;
  std::string tenant = "default";
  bool while_running = false;                                  // a lock: the key is free when the run ends
  std::chrono::milliseconds window = std::chrono::hours{24};   // how long a success is replayed, or `forever`
  std::chrono::milliseconds lease = std::chrono::seconds{60};  // after a crash the key is free when this expires
  unsigned retries = 0;        // attempts after the first; delays of 1 s, 5 s, 25 s between them
  bool hold_doubt = false;     // after a crash an operator decides, instead of running the effect again
  bool wait = false;           // if another caller is running the effect, wait for its outcome
  std::string fingerprint_of;  // if not empty, a repeat with another text is rejected
};

enum class How {
  ran,       // this call ran the effect; `result` is its result
  replayed,  // an earlier call ran the effect; `result` is its stored result
  busy,      // another caller is running the effect, or the next attempt is not due yet: see retry_after
  failed,    // the effect threw and its attempts are used up; `detail` has the exception's text
  in_doubt,  // the effect may have happened; an operator decides
  reused,    // the key was used with another fingerprint
  lost,      // the lease was lost while the effect ran: another caller may run the effect again
};

struct Outcome {
  How how = How::ran;
  std::string result;
  std::string run_id;
  std::string detail;
  std::chrono::milliseconds retry_after{0};

  // True if the effect has happened, in this call or an earlier one.
  bool is_done() const { return how == How::ran || how == How::replayed; }
};

using Value = std::variant<std::nullptr_t, std::int64_t, double, std::string>;
using Row = std::vector<Value>;

// Access to your own tables in the transaction that also stores the outcome. Valid only during the callable. Write
// quickly: the store commits nothing else until the callable returns. BEGIN, COMMIT, ROLLBACK and Latchkey's own tables
// (lk_*) are rejected.
class Transaction {
 public:
  virtual ~Transaction() = default;
  // Executes one statement with its parameters. Throws Failure with SQLite's message.
  virtual void execute(std::string_view sql, const Row& parameters = {}) = 0;
  virtual std::vector<Row> query(std::string_view sql, const Row& parameters = {}) = 0;
};

class Latchkey {
 public:
  // Opens or creates the file. This process owns the file until the object is destroyed. Throws STORE_LOCKED if another
  // process owns it. Other connections may read the file; write to it only inside run_in_transaction().
  explicit Latchkey(const std::string& sqlite_file);
  ~Latchkey();
  Latchkey(const Latchkey&) = delete;
  Latchkey& operator=(const Latchkey&) = delete;

  // Calls `effect` unless an earlier call completed. `effect` runs on a thread of Latchkey's while the calling thread
  // waits; the lease is extended meanwhile. An exception is a failed attempt. A result of more than 1 MiB cannot be
  // stored. The outcome is then `failed`, or `in_doubt` under hold_doubt, or `busy` if retries are left for a later
  // call. The run records that the effect may have happened, and this call does not retry.
  Outcome run(const OnceRequest& request, const std::function<std::string()>& effect);
  // Like run(), but the effect's writes to this file are in the transaction that stores its outcome. A result that is
  // too large rolls them back. The callable must not call this object, nor wait for a thread that does: the store
  // commits nothing else before the callable returns. A call on the callable's own thread throws INVALID_ARGUMENT.
  Outcome run_in_transaction(const OnceRequest& request, const std::function<std::string(Transaction&)>& effect);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace latchkey
