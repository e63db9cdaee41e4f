#!/usr/bin/env bash
# scripts/run (`make run`): serves on LISTEN, shows the demo with the result and the suppressed repeats, and exits with the server's code
# when the server cannot start.
set -euo pipefail
export LATCHKEY=$1
source=$2
work=$(mktemp -d)
first=
trap '[[ -z $first ]] || kill -TERM $first 2>/dev/null; wait; rm -rf "$work"' EXIT
fail() { printf '%s\n' "$@" >&2; exit 1; }

# A port that stays in use: a server on a port of the kernel's choice.
mkfifo "$work/banner"
"$LATCHKEY" serve --data-dir "$work/first" --listen 127.0.0.1:0 >"$work/banner" &
first=$!
read -r line <"$work/banner"
listen=${line##*http://}
shown=$("$source/scripts/demo" "http://$listen" "$work/first")
grep -q 'replayed: true  result: {"charge": "ch_1"}' <<<"$shown" || fail "the demo does not show the result:" "$shown"
grep -q 'suppressed: {.*"reason": "REPLAYED", "count": 1' <<<"$shown" || fail "the demo does not show the suppressed repeats:" "$shown"
code=0
shown=$(LISTEN=$listen DATA_DIR=$work/second "$source/scripts/run" 2>&1) || code=$?
[[ $code != 0 ]] || fail "exits 0 although the port is in use:" "$shown"
grep -q LISTEN_FAILED <<<"$shown" || fail "does not name the reason:" "$shown"
kill -TERM $first; stopping=$first first=
wait $stopping
