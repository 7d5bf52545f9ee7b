#!/bin/bash
# SPDX-License-Identifier: MIT
# libxio's copies of the kernel's structures against headers of Linux 7.2 or newer: those of XIO_TEST_UVERBS_HEADERS, a
# folder with rdma/*.h (kernel-headers/ of rdma-core 65 is one), or the machine's own.
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
source=${0%/*}
headers=${XIO_TEST_UVERBS_HEADERS:-/usr/include}
[ -e "$headers/rdma/ionic-abi.h" ] || skip "$headers has no headers of Linux 7.2; set XIO_TEST_UVERBS_HEADERS"
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
"${CXX:-g++}" -std=c++20 -I"$source/../../src" -isystem "$headers" -c "$source/abi_test.cpp" -o "$out" && echo 'alike'
