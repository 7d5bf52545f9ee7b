#!/bin/bash
# SPDX-License-Identifier: MIT
# Device code for AMD GPUs as hipcc makes it: what assembly.sh reads, for all targets that this hipcc knows.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
if [ -z "$HIPCC" ]; then skip "no hipcc: device code for AMD is not compiled by it"; fi

by=hipcc
# hipcc hands its linker flags to the compiler, which tells that it does not use them.
compiler=("$HIPCC" -x hip -std=c++20 -O2 -Wno-unused-command-line-argument -DXIO_PLATFORM_HIP=1 -I"$srcdir/include"
  --cuda-device-only)
# shellcheck source=tests/device/assembly.sh
. "$srcdir/tests/device/assembly.sh"

targets=()
for target in $("$srcdir/tests/leave_out" device_code gfx{90a,940,942,950,1030,1100,1201}); do
  if knows "$target"; then targets+=("$target"); else echo "$target: not known to this hipcc"; fi
done
if [ ${#targets[@]} = 0 ]; then
  echo "hipcc compiles for none of XIO's targets"
  exit 1
fi
read_targets "${targets[@]}"
