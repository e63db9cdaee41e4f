#!/usr/bin/env bash
# Installs Latchkey into an empty prefix, builds examples/embedded against it with find_package, and runs it twice.
set -euo pipefail
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Everything that is installed is built by the targets of `make build`: an install after it alone must not miss a file.
read -ra targets <<<"$(sed -nE 's/^\t@scripts\/build release (latchkey_cli.*)/\1/p' "$source/Makefile")"
built=$(cd "$build" && ninja -t inputs "${targets[@]}" && ninja -t query "${targets[@]}" | tr -d ' ')
installed=$(sed -nE 's/.*file\(INSTALL DESTINATION .* FILES "([^"]*\/(liblatchkey_[a-z0-9_]*\.a|latchkey))".*/\1/p' \
  "$build/cmake_install.cmake" | sed -n "s|^$build/||p")
[[ $(wc -l <<<"$installed") -ge 9 ]] || { echo "installed: $installed"; exit 1; }
for file in $installed; do
  grep -qx "$file" <<<"$built" || { echo "make build does not build $file, which is installed"; exit 1; }
done

cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S "$source/examples/embedded" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_C_COMPILER=clang-19 >/dev/null
cmake --build "$work/build" >/dev/null

first=$("$work/build/embedded" "$work/shop.db")
second=$("$work/build/embedded" "$work/shop.db")
[[ $first == $'sending the mail\nmail: message-id:1 (ran)\ncharge: charges:1 (ran)' ]] || { echo "first: $first"; exit 1; }
[[ $second == $'mail: message-id:1 (replayed)\ncharge: charges:1 (replayed)' ]] || { echo "second: $second"; exit 1; }
[[ $(sqlite3 "$work/shop.db" 'SELECT count(*) FROM charges') == 1 ]]
