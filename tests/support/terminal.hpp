// Terminal: a program that a test runs as the foreground job of its own terminal. The destructor kills it.
#pragma once

#include "support/process.hpp"

namespace latchkey {

class Terminal {
 public:
  explicit Terminal(const ProcessSettings& settings);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Sends the keys to the terminal: "\x03" is Ctrl-C, "\x1c" Ctrl-\.
  void type(const std::string& keys) const;
  // Reads the output up to and including `text`, or all of it if the output ends first. It contains the typed keys.
  std::string read_until(const std::string& text);
  // Closes the terminal's window.
  void hang_up();
  // Reads to the end and waits. Returns the exit status, 128 + n for signal n.
  int finish();

 private:
  bool read_some();

  pid_t pid_ = -1;
  int file_ = -1;
  std::string seen_;
};

}  // namespace latchkey
