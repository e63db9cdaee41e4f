#!/usr/bin/env bash
# Installs Latchkey into an empty prefix, builds examples/embedded against it with find_package, and runs it twice.
set -euo pipefail
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S "$source/examples/embedded" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_C_COMPILER=clang-19 >/dev/null
cmake --build "$work/build" >/dev/null

first=$("$work/build/embedded" "$work/shop.db")
second=$("$work/build/embedded" "$work/shop.db")
[[ $first == $'sending the mail\nmail: message-id:1 (ran)\ncharge: charges:1 (ran)' ]] || { echo "first: $first"; exit 1; }
[[ $second == $'mail: message-id:1 (replayed)\ncharge: charges:1 (replayed)' ]] || { echo "second: $second"; exit 1; }
[[ $(sqlite3 "$work/shop.db" 'SELECT count(*) FROM charges') == 1 ]]
