// Process: a program that a test runs, with pipes to it. Killed and reaped at the latest with the object.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace latchkey {

struct ProcessSettings {
  std::vector<std::string> arguments;    // the program's path first
  std::vector<std::string> environment;  // NAME=value, beside the test's own
};

class Process {
 public:
  explicit Process(const ProcessSettings& settings);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void write(const std::string& bytes);
  void close_input();
  // The next line of its stdout, without the newline; what there is at the end of the stream.
  std::string read_line();
  void signal(int number) const;
  // Closes its stdin, reads both streams to their ends and waits. The exit status, 128 + n for signal n.
  int finish();

  std::string out;  // all of stdout, once finished
  std::string err;

 private:
  // Reads what comes from either stream; false when both have ended.
  bool pump();

  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  int err_ = -1;
  std::size_t lines_read_ = 0;
};

// Waits until the process, which need not be a child, has ended.
class Gone {
 public:
  explicit Gone(pid_t pid);  // while it is known to live
  ~Gone();
  Gone(const Gone&) = delete;
  Gone& operator=(const Gone&) = delete;
  // False when it still lives after 20 seconds.
  bool wait() const;
  bool has_ended() const;

 private:
  int file_ = -1;
};

}  // namespace latchkey
