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
  // The next line of its stdout, without the newline. At the end of the stream: the rest.
  std::string read_line();
  void signal(int number) const;
  // Closes its stdin, reads both streams to their ends and waits. Returns the exit status, 128 + n for signal n.
  int finish();

  std::string out;  // all of stdout, once finished
  std::string err;

 private:
  // Reads from the streams; returns false when both have ended.
  bool pump();

  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  int err_ = -1;
  std::size_t lines_read_ = 0;
};

// Waits for the exit of a process, which need not be a child.
class ExitWatch {
 public:
  explicit ExitWatch(pid_t pid);  // of a running process
  ~ExitWatch();
  ExitWatch(const ExitWatch&) = delete;
  ExitWatch& operator=(const ExitWatch&) = delete;
  // Returns false if the process still runs after 20 seconds.
  bool wait() const;
  bool has_ended() const;

 private:
  int file_ = -1;
};

}  // namespace latchkey
