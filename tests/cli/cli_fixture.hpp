// The real binary with a data directory of the test's own.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>

#include "support/folder.hpp"
#include "support/process.hpp"
#include "support/terminal.hpp"

namespace latchkey {

using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

struct Answer {
  int exit = -1;
  std::string out, err;
};

class CliTest : public testing::Test {
 protected:
  std::unique_ptr<Process> start(Words words) const {
    words.insert(words.begin(), LATCHKEY_BINARY);
    return start_program(std::move(words));
  }
  std::unique_ptr<Process> start_program(Words words) const {
    ProcessSettings settings{std::move(words), environment_};
    settings.environment.insert(settings.environment.end(), {"LATCHKEY_DATA_DIR=" + data_dir_, "USER=tester"});
    return std::make_unique<Process>(settings);
  }
  Terminal start_on_terminal(Words words) const {
    words.insert(words.begin(), LATCHKEY_BINARY);
    return Terminal({std::move(words), {"LATCHKEY_DATA_DIR=" + data_dir_, "USER=tester", "TERM=xterm"}});
  }
  Answer call(Words words) const {
    const auto process = start(std::move(words));
    const int exit = process->finish();
    return {exit, process->out, process->err};
  }

  // latchkey run --key KEY flags… -- sh -c SCRIPT
  static Words run(const std::string& key, const std::string& script, Words flags = {}) {
    Words words{"run", "--key", key};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"--", "/bin/sh", "-c", script});
    return words;
  }
  std::string file(const std::string& name) const { return folder_.file(name); }
  std::string read(const std::string& name) const {
    std::ifstream stream(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  Folder folder_;
  std::string data_dir_ = folder_.file("data");
  std::vector<std::string> environment_;  // variables on top of the test's own
};

}  // namespace latchkey
