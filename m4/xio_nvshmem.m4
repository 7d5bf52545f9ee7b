# SPDX-License-Identifier: MIT
# NVSHMEM is only the rival in bench/: the library never uses it. It comes as a package or as a Python wheel.
AC_DEFUN([XIO_CHECK_NVSHMEM], [
  AC_ARG_VAR([NVSHMEM_HOME], [the folder of NVSHMEM, with include/ and lib/, for bench/])
  XIO_WITH([nvshmem], [build no comparison with NVSHMEM])
  have_NVSHMEM=no
  AS_IF([test "x$gpu" = xcuda && test "x$with_nvshmem" != xno], [
    AS_IF([test -z "$NVSHMEM_HOME"],
          [NVSHMEM_HOME=`python3 -c 'import nvidia.nvshmem as n; print(next(iter(n.__path__)))' 2>/dev/null`])
    : ${NVSHMEM_HOME=/usr/local/nvshmem}
    for NVSHMEM_LIB in "$NVSHMEM_HOME/lib" "$NVSHMEM_HOME/lib64"; do
      AS_IF([test -e "$NVSHMEM_LIB/libnvshmem_host.so.3" && test -e "$NVSHMEM_HOME/include/nvshmem.h"],
            [have_NVSHMEM=yes
             break])
    done])
  AC_SUBST([NVSHMEM_LIB])
  AS_IF([test "x$gpu" = xcuda],
        [XIO_RESULT([NVSHMEM], [nvshmem], [$NVSHMEM_HOME], [the comparison with NVSHMEM in bench/])],
        [AM_CONDITIONAL([HAVE_NVSHMEM], [false])])])
