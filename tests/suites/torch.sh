#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs inside a Debian of the suite, on the tree in /src: xio.torch below the suite's PyTorch for CPUs (python/tests/test_torch.py).
#   torch.sh SUITE [PYTEST'S ARGUMENT...]
set -euo pipefail
suite=${1:?}
cd /src
# shellcheck source=tests/suites/packages.sh
. tests/suites/packages.sh
apt-get update -qq
# shellcheck disable=SC2046  # a list
install_packages $(packages_of host_packages) ca-certificates ccache python3-torch libtorch-dev python3-dev python3-pytest pybind11-dev ninja-build
echo "$suite: PyTorch $(version_of python3-torch), g++ $(version_of g++)"

build=/build-torch
mkdir -p $build
./autogen.sh >/autogen.log 2>&1
cd $build
[ -e Makefile ] || /src/configure --with-gpu=host >configure.log 2>&1 || {
  tail -n 20 configure.log
  exit 1
}
make -j"$(nproc)" libxio.la >make.log 2>&1 || {
  grep -E -m 20 '(: error|: fatal error|\*\*\*)' make.log
  exit 1
}
# Debian's PyTorch has no libuv, by which its store would listen.
export XIO_LIBRARY=$build/.libs/libxio.so USE_LIBUV=0 PYTHONDONTWRITEBYTECODE=1
ran 'test_torch.py' python3 -m pytest -q -p no:cacheprovider /src/python/tests/test_torch.py "${@:2}"
echo "$suite: $failures failed"
exit $((failures != 0))
