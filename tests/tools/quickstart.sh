#!/bin/bash
# SPDX-License-Identifier: MIT
# quickstart for one platform and then for another in one build folder: objects of the first are not linked into the
# second. configure, the Makefile and mpirun are fakes; nothing is installed.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES TESTS

at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
cp "$srcdir/quickstart" "$at"
mkdir -p "$at/bin" "$at/build/examples/relay"

fake() {
  cat >"$at/$1"
  chmod +x "$at/$1"
}
fake bin/apt-get <<<'#!/bin/sh'
fake bin/dpkg-query <<<'echo installed'
# shellcheck disable=SC2016  # for the fake's shell
fake bin/mpirun <<<'shift $(($# - 5)); exec "$@"' # after its options: relay --in FILE --out FILE
fake build/xiorun <<<'shift 2; exec "$@"'
# shellcheck disable=SC2016  # for the fake's shell
fake build/examples/relay/relay <<<'cp "$2" "$4"'
# As the real one: the platform stands in config.status and in the Makefile, on which no object depends.
fake configure <<'END'
#!/bin/sh
platform=${1#--with-gpu=}
printf 'echo "%s"\nexit\nS["gpu"]="%s"\n' "$*" "$platform" >config.status
chmod +x config.status
printf 'all: object\nobject:\n\techo %s >$@\nclean:\n\techo cleaned >>cleanings\n\trm -f object\n' "$platform" >Makefile
END
touch "$at/Makefile.in" "$at/build/cleanings"

# build_for PLATFORM CLEANINGS: so often was the folder cleaned by then.
build_for() {
  PATH=$at/bin:$PATH "$at/quickstart" --with-gpu="$1" >"$at/said" 2>&1 || {
    cat "$at/said"
    exit 1
  }
  local object cleanings
  object=$(cat "$at/build/object")
  cleanings=$(wc -l <"$at/build/cleanings")
  if [ "$object" != "$1" ] || [ "$cleanings" != "$2" ]; then
    echo "after quickstart --with-gpu=$1: the object is for $object, cleaned $cleanings times instead of $2"
    exit 1
  fi
}

build_for host 0
build_for host 0
touch "$at/configure" # newer: it runs again
build_for host 0
build_for cuda 1
build_for cuda 1
build_for host 2
