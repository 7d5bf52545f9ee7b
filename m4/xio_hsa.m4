# SPDX-License-Identifier: MIT
# The HSA runtime has no pkg-config file; ROCm keeps it in its own tree. It is never mixed with Debian's HIP.
AC_DEFUN([XIO_CHECK_HSA], [
  AC_REQUIRE([XIO_ROCM])
  xio_hsa_cflags= xio_hsa_libs=-lhsa-runtime64
  AS_CASE([$HIPCC], [/usr/bin/*|/bin/*], [xio_hsa_roots=], [xio_hsa_roots=$xio_rocm_roots])
  for xio_root in $xio_hsa_roots; do
    AS_IF([test -z "$xio_hsa_cflags" && test -e "$xio_root/include/hsa/hsa.h" && test -e "$xio_root/lib/libhsa-runtime64.so"],
          [xio_hsa_cflags="-isystem $xio_root/include"
           xio_hsa_libs="-L$xio_root/lib -Wl,-rpath,$xio_root/lib -lhsa-runtime64"])
  done
  XIO_PACKAGE([HSA], [hsa], [], [hsa/hsa.h], [return hsa_init();], [$xio_hsa_libs],
    [memory agents and signals of AMD GPUs], [$xio_hsa_cflags])])
