#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# That tests/vm/run says the truth: about a script's status, a hang, a panic, a script that is not there, arguments that QEMU
# refuses; and that a carried program and the kernel's words arrive.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
share=$(mktemp -d /tmp/xio-vm.XXXXXX) || exit 125
trap 'rm -rf "$share"' EXIT
failures=0

# expect STATUS NAME ARGUMENT...
expect() {
  local status=0
  "$here/run" "$share" "${@:3}" >"$share/log" 2>&1 || status=$?
  if [ $status = "$1" ]; then
    echo "ok   $2: $status"
    return
  fi
  echo "FAIL $2: status $status and not $1; it said:"
  tail -n 20 "$share/log" | sed 's/^/  | /'
  failures=$((failures + 1))
  # A set-up that cannot be made is reported once.
  if [ $status = 125 ]; then exit 125; fi
}

"$here/image" >/dev/null || exit 125
# sort is not busybox's here, and its version says so.
"$here/carry" "$share/root" "$(command -v sort)" || exit 125
# shellcheck disable=SC2016  # for the guest
echo '[ "$word" = 7 ] && /usr/bin/sort --version | grep -q GNU && [ -e /dev/hwrng ] && exit 0; exit 1' >"$share/zero.sh"
echo 'exit 42' >"$share/status.sh"
echo 'exit 124' >"$share/high.sh"
echo 'sleep 1000' >"$share/hang.sh"
echo 'echo c >/proc/sysrq-trigger' >"$share/panic.sh"
VM_APPEND='word=7' expect 0 'a script that succeeds' zero.sh
expect 42 'a script that fails' status.sh
expect 123 'a status that is the host'\''s' high.sh
VM_TIMEOUT=10 expect 124 'a hang' hang.sh
expect 126 'a panic' panic.sh
if grep -q 'once more' "$share/log"; then failures=$((failures + 1)) && echo 'FAIL a guest that had started was started again'; fi
VM_APPEND='rdinit=/none' expect 126 'a kernel that dies before its first process' zero.sh
if [ "$(grep -c 'once more' "$share/log")" != 2 ]; then
  failures=$((failures + 1))
  echo 'FAIL a kernel that died before its first process was not started three times'
fi
failed_before=$failures
"$here/run" "$share" none.sh >"$share/log" 2>&1
if [ $? != 125 ]; then failures=$((failures + 1)) && echo 'FAIL a script that is not there'; fi
"$here/run" "$share" zero.sh -device no-such-device >"$share/log" 2>&1
if [ $? != 125 ]; then failures=$((failures + 1)) && echo 'FAIL an argument that QEMU refuses'; fi
if [ $failures = $failed_before ]; then echo 'ok   what cannot be set up: 125'; fi
[ $failures = 0 ]
