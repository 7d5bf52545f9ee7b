#!/bin/bash
# SPDX-License-Identifier: MIT
# PEs in containers of their own on one machine: each is process 1 of its PID namespace, and XIO_MACHINE says that they are
# together. Their heaps cannot be opened through /proc, so RDMA serves, and no PE takes the other for itself.
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}"
inside=(unshare --pid --fork --mount-proc)
if [ "$(id -u)" != 0 ]; then inside=(unshare --user --map-root-user --pid --fork --mount-proc); fi
if ! "${inside[@]}" true 2>/dev/null; then skip 'this user may not make PID namespaces'; fi
if ! has HAVE_SODIUM; then skip 'xiorun wants libsodium'; fi
if ! on_host_platform; then skip 'the GPU driver knows processes by the namespace that it was loaded in'; fi
out=$(XIO_MACHINE=box XIO_TIMEOUT_MS=60000 timeout -k 5 120 "$builddir/xiorun" -n 2 "${inside[@]}" \
  sh -c 'echo "I am process $$"; exec "$0"' "$builddir/examples/hello_put" 2>&1)
status=$?
echo "$out"
if [ $status != 0 ]; then echo "status $status" && exit 1; fi
if [ "$(grep -c 'I am process 1$' <<<"$out")" != 2 ]; then echo "no namespaces of their own" && exit 1; fi
case $out in *'go by RDMA'*) ;; *) echo "nothing says that the direct route is not there" && exit 1 ;; esac
