#!/bin/bash
# SPDX-License-Identifier: MIT
# PEs in containers of their own on one machine: each is process 1 of its PID namespace, so that their heaps cannot be opened
# through /proc. RDMA serves, with and without XIO_MACHINE, and no PE takes the other for itself.
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}"
inside=(unshare --pid --fork --mount-proc)
if [ "$(id -u)" != 0 ]; then inside=(unshare --user --map-root-user --pid --fork --mount-proc); fi
if ! "${inside[@]}" true 2>/dev/null; then skip 'this user may not make PID namespaces'; fi
if ! on_host_platform; then skip 'a GPU driver knows processes by the namespace that it was loaded in'; fi

# relays WORDS [VARIABLE=VALUE]: data comes through, and the log says WORDS
relays() {
  local words=$1 out status
  shift
  # shellcheck disable=SC2016  # for the inner shell
  out=$(env XIO_TIMEOUT_MS=60000 "$@" timeout -k 5 120 "$builddir/xiorun" -n 2 "${inside[@]}" \
    sh -c 'echo "I am process $$"; exec "$0"' "$builddir/examples/hello_put" 2>&1)
  status=$?
  if [ $status = 0 ] && [ "$(grep -c 'I am process 1$' <<<"$out")" = 2 ] && grep -qF -- "$words" <<<"$out"; then
    echo "$words"
    return 0
  fi
  echo "status $status; expected 0, two processes 1 and: $words"
  echo "$out"
  exit 1
}
relays 'go by RDMA' XIO_MACHINE=box
relays '1 of the 2 PEs of this machine are in other containers'
