// The sample that `latchkey init` writes: a commented config with two functions, and the command of one of them.
#pragma once

#include <string_view>

namespace latchkey::config {

inline constexpr std::string_view kSampleConfig =
    R"yaml(# yaml-language-server: $schema=http://127.0.0.1:7420/schema/latchkey.json
# A config of Latchkey. `latchkey check` reports every fault; `latchkey check --print-schema` prints the JSON Schema.

store: sqlite:latchkey.db        # or postgres://user@host/database
listen: 127.0.0.1:7420

workers:
  http: 256                      # calls at once
  command: 4                     # commands at once
  drain: 30s                     # a stop waits so long for calls and commands that run

functions:
  # A command: the input is JSON on stdin, and what it prints on stdout is the result.
  hello:
    description: Greets the name in the input
    command: [./hello.sh]
    key: "{function}:{input./name}"   # one greeting per name ...
    window: 1h                        # ... and hour
    effect: plain
    on_doubt: rerun
    retry: {retries: 3, first: 1s, factor: 5, ceiling: 30s}

  # An HTTP endpoint: Latchkey POSTs the input and sends the same Idempotency-Key on each attempt.
  # charge:
  #   http: http://127.0.0.1:3000/charge
  #   headers: {Authorization: "Bearer ${env:CHARGE_TOKEN}"}
  #   key: "{function}:{input./order}"
  #   effect: keyed
  #   timeout: 30s
  #   retry: background

  # Workers take these jobs over HTTP: POST /v1/jobs/take
  resize:
    description: Resizes an image
    pull: true
    concurrency: {total: 8}
)yaml";

inline constexpr std::string_view kSampleCommand = R"sh(#!/bin/sh
# The function `hello`: reads {"name": "..."} and prints the result as JSON.
name=$(sed -n 's/.*"name" *: *"\([^"]*\)".*/\1/p')
echo "{\"greeting\": \"Hello, ${name:-world}\"}"
)sh";

}  // namespace latchkey::config
