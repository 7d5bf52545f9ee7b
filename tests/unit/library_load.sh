#!/bin/bash
# SPDX-License-Identifier: MIT
# Loading libxio changes nothing of a process: library_load.cpp says what it looks at.
set -euo pipefail
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh"
: "${builddir:?}" "${gpu:?}"
if [ "$gpu" != host ]; then skip 'GPU runtimes have handlers of their own'; fi
unset UCX_HANDLE_ERRORS XIO_BOOTSTRAP
load=("$builddir/tests/unit/library_load" "$builddir/.libs/libxio.so")
"${load[@]}"
if has HAVE_UCX; then "$builddir/xiorun" -n 2 timeout -k 5 90 "${load[@]}" ucx; fi
