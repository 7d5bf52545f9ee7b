#!/bin/bash
# SPDX-License-Identifier: MIT
# Sourced inside a Debian of the suite, in /src. packages_of GROUP...: the packages that quickstart wants of Debian 12, such as
# host_packages. install_packages PACKAGE...: those that this suite has; a name that is gone is reported, and configure says what that
# costs.
packages_of() {
  local groups
  groups=$(IFS='|' && echo "$*")
  awk -v groups="^($groups)=\\\\(" '$0 ~ groups {on = 1} on {print} on && /\)/ {on = 0}' quickstart | sed 's/^[a-z_]*=(//; s/).*//'
}
install_packages() {
  local package packages=()
  for package in "$@"; do
    if [ -n "$(apt-cache madison "$package" 2>/dev/null)" ]; then packages+=("$package"); else echo "${suite:?} has no $package"; fi
  done
  apt-get install -y -qq --no-install-recommends "${packages[@]}" >/packages.log 2>&1 || {
    tail -n 20 /packages.log
    exit 1
  }
  export installed=${#packages[@]}
}
version_of() { dpkg-query -W -f '${Version}' "$1" 2>/dev/null || echo none; }

# ran NAME COMMAND...: a check, of which the last line is shown where it passes and all where it fails. Counts `passed`, `skipped` and
# `failures`.
passed=0 skipped=0 failures=0
ran() {
  local name=$1 out status=0 begin=$SECONDS
  shift
  out=$("$@" 2>&1) || status=$?
  case $status in
    0)
      echo "PASS $name ($((SECONDS - begin)) s): $(tail -n 1 <<<"$out")"
      passed=$((passed + 1))
      ;;
    77)
      echo "SKIP $name: $(tail -n 1 <<<"$out")"
      skipped=$((skipped + 1))
      ;;
    *)
      echo "FAIL $name (status $status)"
      printf '%s\n' "$out" | tail -n 60 | sed 's/^/  /'
      failures=$((failures + 1))
      ;;
  esac
}
# What did not change since the last run is not compiled again.
export CCACHE_DIR=/ccache CCACHE_NOHASHDIR=1 PATH=/usr/lib/ccache:$PATH
