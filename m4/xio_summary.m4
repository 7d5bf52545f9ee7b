# SPDX-License-Identifier: MIT
# What xio-info --version prints of this. After the last check.
AC_DEFUN([XIO_BUILD_PARTS], [
  AS_CASE([$gpu], [hip], [xio_gpu_targets=$XIO_HIP_ARCH], [cuda], [xio_gpu_targets=$XIO_CUDA_ARCH],
          [xio_gpu_targets="none, kernels run on CPU threads"])
  AC_SUBST([xio_gpu_targets])
  AC_SUBST([xio_parts])
  AC_CONFIG_FILES([build_parts.h])])

AC_DEFUN([XIO_SUMMARY], [AS_ECHO(["
XIO $PACKAGE_VERSION, into $prefix$xio_summary
"])
  XIO_PLATFORM_LINE])
