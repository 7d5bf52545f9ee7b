#!/bin/bash
# SPDX-License-Identifier: MIT
# The Python package: its declarations beside the headers, its calls with 1, 2 and 3 PEs, its example, and pip's way to install it.
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${srcdir:?}" "${builddir:?}" "${gpu:?}" "${sanitizer=}"
if [ "$gpu" != host ]; then skip 'the tests of the Python package are for the host platform'; fi
if [ -n "$sanitizer" ] && [ "$sanitizer" != no ]; then skip 'Python loads no library with a sanitizer'; fi
python=
for one in python3 /usr/bin/python3; do
  if "$one" -c 'import numpy, pytest' 2>/dev/null; then python=$one && break; fi
done
if [ -z "$python" ]; then skip 'no python3 with numpy and pytest (python3-numpy, python3-pytest)'; fi
export PYTHONDONTWRITEBYTECODE=1 XIO_LIBRARY=$builddir/.libs/libxio.so XIO_TEST_START=$start CC=${CC-cc}
"$python" -m pytest -q -rs -p no:cacheprovider "$srcdir/python/tests" "$@"
