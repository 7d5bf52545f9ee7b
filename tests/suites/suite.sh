#!/bin/bash
# SPDX-License-Identifier: MIT
# suite.sh SUITE [SCRIPT [ARGUMENT...]]: runs tests/suites/SCRIPT.sh on a copy of the tree in a Debian of that suite. Without one it is
# inside.sh: builds everything with the suite's compilers and its HIP, HSA, libhsakmt and rdma-core.
# Root only, and the suite is bootstrapped once: XIO_SUITES (default ~/.cache/xio-suites), XIO_DEBIAN_MIRROR.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
# shellcheck source=tests/suites/tree.sh
. "$srcdir/tests/suites/tree.sh"
suite=${1:?suite.sh wants the name of a Debian suite}
script=${2:-inside}
case $suite in *[!a-z]*) echo "'$suite' is no name of a suite" && exit 2 ;; esac
mirror=${XIO_DEBIAN_MIRROR-http://deb.debian.org/debian}
root=${XIO_SUITES-$HOME/.cache/xio-suites}/$suite
if [ "$(id -u)" != 0 ]; then skip 'only root can bootstrap a Debian and enter it'; fi
if ! command -v debootstrap >/dev/null; then skip 'no debootstrap: apt-get install debootstrap'; fi

unmount() {
  local at
  for at in proc dev/shm dev/pts dev; do
    # A process that ends just now may hold it still: then it goes when that has ended.
    if mountpoint -q "$root/$at"; then umount "$root/$at" 2>/dev/null || umount --lazy "$root/$at"; fi
  done
}
trap unmount EXIT
inside() {
  chroot "$root" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive ${ONLY:+"ONLY=$ONLY"} "$@"
}

begin=$SECONDS
if [ ! -e "$root/bootstrapped" ]; then
  rm -rf --one-file-system "$root"
  mkdir -p "$root"
  # A mirror's copy may be older than its signature wants: the date is not looked at, the signature is.
  debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$root.log" 2>&1 || {
    tail -n 20 "$root.log"
    exit 1
  }
  echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/70xio"
  # A machine that falls over makes it anew: nothing need reach the disk before the next package.
  echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/70xio"
  touch "$root/bootstrapped"
fi
if [ -e /etc/resolv.conf ]; then cp -L /etc/resolv.conf "$root/etc/resolv.conf"; fi
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mkdir -p "$root/dev/shm"
mount -t tmpfs -o size=1g tmpfs "$root/dev/shm"
echo "$suite: bootstrapped ($((SECONDS - begin)) s)"
renew_tree "$root/src"
inside bash "/src/tests/suites/$script.sh" "$suite" "${@:3}"
