#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes configure from configure.ac. Needed after a clone and after a change of the build; a release tarball has it made.
set -e
cd "$(dirname "$0")"
mkdir -p build-aux
exec autoreconf --force --install "$@"
