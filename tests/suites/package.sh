#!/bin/bash
# SPDX-License-Identifier: MIT
# make check-debian: builds the Debian packages from the files of the tree, and lintian finds no error in them; reads the recipes for RPM and Spack. Needs
# dpkg-dev, debhelper, dh-dkms, lintian and what debian/control names. Packages and logs: tests/suites/package/ of the build.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
# shellcheck source=tests/suites/tree.sh
. "$srcdir/tests/suites/tree.sh"
out=$builddir/tests/suites/package
for tool in dpkg-buildpackage dh_dkms lintian; do
  if ! command -v $tool >/dev/null; then skip "no $tool: apt-get install dpkg-dev debhelper dh-dkms lintian"; fi
done
missing=$(cd "$srcdir" && dpkg-checkbuilddeps 2>&1) || skip "$missing"

rm -rf "$out"
copy_tree "$out/xio"
cd "$out/xio"
# Where there is a compiler cache it is asked first. Flags of another build are not these packages'.
if [ -d /usr/lib/ccache ]; then export PATH=/usr/lib/ccache:$PATH; fi
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES CFLAGS CXXFLAGS CPPFLAGS LDFLAGS
export DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS-parallel=$(nproc)}
begin=$SECONDS
dpkg-buildpackage -b -us -uc >"$out/build.log" 2>&1 || {
  grep -m 5 -E '(: error|\*\*\*|dh_[a-z]*: error)' "$out/build.log" || true
  tail -n 25 "$out/build.log"
  exit 1
}
echo "built in $((SECONDS - begin)) s"
cd "$out"
for package in libxio-host0 libxio-mpi libxio-dev xio-tools xio-dkms; do
  deb=$(compgen -G "${package}_*.deb")
  echo "$deb: $(dpkg-deb -c "$deb" | grep -c '^-') files, needs $(dpkg-deb -f "$deb" Depends)"
done

# holds PACKAGE FILE: a file that its users count on.
holds() {
  local files
  files=$(dpkg-deb -c "$1"_*.deb)
  if ! grep -qE " \./$2\$" <<<"$files"; then echo "$1 lacks $2" && exit 1; fi
}
holds libxio-host0 'usr/lib/[^/]*/libxio-host\.so\.0 -> .*'
holds libxio-mpi 'usr/lib/[^/]*/xio/xio-mpi-openmpi\.so'
holds libxio-mpi 'usr/lib/[^/]*/xio/xio-mpi-mpich\.so'
holds libxio-dev 'usr/include/xio/xio_device\.hpp'
holds libxio-dev 'usr/lib/[^/]*/pkgconfig/xio\.pc'
holds libxio-dev 'usr/lib/[^/]*/cmake/xio/xio-config\.cmake'
holds xio-tools 'usr/bin/xiorun'
holds xio-dkms 'usr/src/xio-[0-9.]*/dkms\.conf'
holds xio-dkms 'usr/src/xio-[0-9.]*/main\.c'
lintian --fail-on error --profile debian ./*.changes | tee lintian.log
echo "lintian: no error"
# The recipes for others, as far as this machine can read them.
python3 -m py_compile "$out"/xio/packaging/spack/spack_repo/xio/packages/xio/package.py
if command -v rpmspec >/dev/null; then rpmspec -P "$out/xio/packaging/xio.spec" >/dev/null; fi
