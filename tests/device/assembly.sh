# SPDX-License-Identifier: MIT
# Sourced: device code for AMD GPUs is compiled without a GPU, warnings being errors, and the assembly is read. Before:
# an array `compiler` of the command line that makes assembly, all but the target, -o and the source.
# shellcheck shell=bash disable=SC2154  # srcdir, builddir from env.sh
here=$srcdir/tests/device
mkdir -p "$builddir/tests/device"
# Assembly of one compiler and target lies in files of their own: both tests may run at the same time.
listing() { echo "$builddir/tests/device/$1-$by-$2.s"; }

# Whether the compiler has device code for a target.
knows() {
  local source=$builddir/tests/device/nothing-$by.hip
  echo '__attribute__((global)) void nothing() {}' >"$source"
  "${compiler[@]}" --offload-arch="$1" -S -o /dev/null "$source" 2>/dev/null
}

# kernel NAME FILE: the instructions of one kernel.
kernel() { awk -v start="$1:" '$1 == start {on = 1} /^\.Lfunc_end/ {on = 0} on' "$2"; }

# wide NAME LEAST FILE: at least that many 16-byte stores to memory.
wide() {
  local count
  count=$(kernel "$1" "$3" | grep -cE '^[[:space:]]*(global|flat)_store_(dwordx4|b128)' || true)
  if [ "$count" -ge "$2" ]; then return 0; fi
  echo "$1: $count wide stores (16 bytes), expected $2; $3 has:"
  kernel "$1" "$3" | grep -E '_store_' || true
  return 1
}

# lanes_kept LISTING: no compiler is known that never loses lanes (docs/decisions/0182-lost-lanes.md).
lanes_kept() {
  if [ ! -x "$builddir/xio-verify" ]; then return; fi
  "$builddir/xio-verify" --code-object "$1"
}

# read_target TARGET: compiles both sources for it, and reads what comes of them. That a kernel's callees need more
# registers than its bounds leave is no error.
read_target() {
  local source out entry
  for source in gates orders; do
    out=$(listing $source "$1")
    "${compiler[@]}" -Wall -Wextra -Werror -Wno-pass-failed --offload-arch="$1" -S -o "$out" "$here/$source.hip" || return 1
    lanes_kept "$out" || return 1
  done
  for entry in gate_entry gate_entry_mlx5 gate_entry_sdma gate_entry_nvme; do
    wide $entry 4 "$(listing gates "$1")" || return 1
  done
  awk -v target="$1" -f "$here/orders.awk" "$(listing gates "$1")" || return 1
  awk -v target="$1" -v least="release_ 44 post_ 8 fetch_ 8" -f "$here/orders.awk" "$(listing orders "$1")" || return 1
  echo "$1: $(grep -ch '^\.Lfunc_end' "$(listing gates "$1")" "$(listing orders "$1")" | awk "{n += \$1} END {print n}") functions, as they should be"
}

# read_targets TARGET...: all of them, two at a time.
read_targets() {
  local target bad=0 running=()
  for target in "$@"; do
    if [ ${#running[@]} = 2 ]; then
      wait "${running[0]}" || bad=1
      running=("${running[@]:1}")
    fi
    (read_target "$target") &
    running+=($!)
  done
  for target in "${running[@]}"; do wait "$target" || bad=1; done
  return $bad
}
