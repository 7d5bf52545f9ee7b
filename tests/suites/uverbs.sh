#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs inside a Debian of the suite, on the tree in /src: the simulated NICs of tests/uverbs below the suite's libibverbs
# and libmlx5, with all that make check runs of them; the firmware's fields against the header of the suite's kernel.
#   uverbs.sh SUITE [NAME...]    some of these: suites live ..
set -euo pipefail
suite=${1:?}
cd /src
# shellcheck source=tests/suites/packages.sh
. tests/suites/packages.sh
apt-get update -qq
# shellcheck disable=SC2046  # a list
install_packages $(packages_of host_packages) ca-certificates ccache linux-headers-amd64
echo "$suite: libibverbs $(version_of libibverbs1), g++ $(version_of g++), $(dpkg-query -W -f '${Depends}' linux-headers-amd64)"

build=/build-uverbs
mkdir -p $build
./autogen.sh >/autogen.log 2>&1
cd $build
if [ ! -e Makefile ]; then
  /src/configure --with-gpu=host CFLAGS='-O1 -Wall -Wextra' CXXFLAGS='-O1 -Wall -Wextra' >configure.log 2>&1 || {
    tail -n 20 configure.log
    exit 1
  }
fi
read -ra tests <<<"${*:2}"
if [ ${#tests[@]} = 0 ]; then tests=(suites bad_input bnxt ionic events live fields abi); fi
programs=(rma shapes atomics signals immediate sync)
begin=$SECONDS
make -j"$(nproc)" libxio_uverbs.la xiorun xio-info "${programs[@]/#/tests/mpi/}" \
  tests/uverbs/{struck,fields_test,firmware_test,live_test} >make.log 2>&1 || {
  grep -E -m 20 '(: error|: fatal error|\*\*\*)' make.log
  exit 1
}
echo "$suite: built in $((SECONDS - begin)) s; warnings: $(grep -c 'warning:' make.log || true)"

export XIO_TEST_BUILDDIR=$build
# rdma-core 45 and newer give each NIC a doorbell of its own.
export XIO_TEST_UVERBS_OWN_DOORBELLS=yes
ran firmware_test tests/uverbs/firmware_test
for test in "${tests[@]}"; do ran "$test.sh" bash "/src/tests/uverbs/$test.sh"; done
echo "$suite: $failures failed"
exit $((failures != 0))
