// Terminal: a program that a test runs on a terminal of its own, as its foreground job. Killed at the latest with it.
#pragma once

#include "support/process.hpp"

namespace latchkey {

class Terminal {
 public:
  explicit Terminal(const ProcessSettings& settings);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // As the keyboard would: "\x03" is Ctrl-C, "\x1c" Ctrl-\.
  void type(const std::string& keys) const;
  // What appears, up to and with `text`; all there was when it ends first. What is typed appears too.
  std::string read_until(const std::string& text);
  // The window is closed.
  void hang_up();
  // Reads to the end and waits. The exit status, 128 + n for signal n.
  int finish();

 private:
  bool read_some();

  pid_t pid_ = -1;
  int file_ = -1;
  std::string seen_;
};

}  // namespace latchkey
