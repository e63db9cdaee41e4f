#!/usr/bin/env bash
# Checks the packages that scripts/install-deps requests from apt-get, and that no service starts during the install.
# The test's dpkg-query knows no package, and its apt-get only records its arguments.
set -euo pipefail
script=$1/scripts/install-deps
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
export PATH="$work/bin:$PATH" POLICY_RC_D="$work/policy-rc.d" WORK="$work"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/dpkg-query"
printf '#!/bin/sh\nexec "$@"\n' >"$work/bin/sudo"
cat >"$work/bin/apt-get" <<'FAKE'
#!/bin/sh
[ "$1" = install ] || exit 0
echo "$@" >"$WORK/asked"
"$POLICY_RC_D" || echo $? >"$WORK/policy"
exit "${FAILS:-0}"
FAKE
chmod +x "$work"/bin/*

fail() { echo "$1" >&2; exit 1; }
asks() { grep -qw -- "$1" "$work/asked"; }
servers=(postgresql-15 pgbouncer nginx-light wrk)

for set in build tools; do
  "$script" $set >/dev/null
  asks clang-19 && asks libgtest-dev || fail "$set lacks a build dependency"
  for server in "${servers[@]}"; do ! asks $server || fail "$set installs $server"; done
done
"$script" test >/dev/null
asks clang-19 && asks postgresql-15 && asks pgbouncer || fail "test lacks a server"
! asks nginx-light || fail "test installs a package that only bench needs"
for set in bench all ""; do
  "$script" $set >/dev/null
  for server in "${servers[@]}"; do asks $server || fail "'$set' lacks $server"; done
done
asks clang-format-19 || fail "without an argument, not every package is installed"
! "$script" nonsense 2>/dev/null || fail "an unknown argument is accepted"

[[ $(<"$work/policy") == 101 ]] || fail "services may start during the install"
[[ ! -e $POLICY_RC_D ]] || fail "the policy is left behind"
! FAILS=1 "$script" build >/dev/null || fail "a failure of apt-get is not reported"
[[ ! -e $POLICY_RC_D ]] || fail "the policy is left behind by a failure"
printf '#!/bin/sh\nexit 104\n' >"$POLICY_RC_D"
chmod +x "$POLICY_RC_D"
"$script" build >/dev/null
[[ $(<"$work/policy") == 104 ]] || fail "an existing policy-rc.d is not called"
grep -q 104 "$POLICY_RC_D" || fail "an existing policy-rc.d was removed"
