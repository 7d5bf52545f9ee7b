# SPDX-License-Identifier: MIT
# Where AMD's own packages (ROCm) are: ROCM_PATH, HIP_PATH, else /opt/rocm, which is a link to the newest.
# Sets: xio_rocm_roots, the folders that are there. xio_system_root stands before absolute paths, for tests.
AC_DEFUN([XIO_ROCM], [
  xio_rocm_roots=
  for xio_root in "$ROCM_PATH" "$HIP_PATH" "${xio_system_root}/opt/rocm"; do
    AS_IF([test -n "$xio_root" && test -d "$xio_root"], [AS_VAR_APPEND([xio_rocm_roots], [" $xio_root"])])
  done])

# Sets xio_amd_gpu to what shows that this machine has an AMD GPU, or to nothing: the compute driver's device, or on the
# PCI bus a display controller (class 03) or a processing accelerator (class 12) of AMD's.
AC_DEFUN([XIO_AMD_GPU], [
  AC_MSG_CHECKING([for an AMD GPU])
  xio_amd_gpu=
  AS_IF([test -e "${xio_system_root}/dev/kfd"], [xio_amd_gpu=/dev/kfd], [
    for xio_device in "${xio_system_root}"/sys/bus/pci/devices/*; do
      AS_IF([test "x`cat "$xio_device/vendor" 2>/dev/null`" = x0x1002],
        [AS_CASE([`cat "$xio_device/class" 2>/dev/null`], [0x03*|0x12*],
           [xio_amd_gpu=`basename "$xio_device"`])])
    done])
  AC_MSG_RESULT([${xio_amd_gpu:-no}])])

# Sets HIPCC unless it is set. ROCM_PATH and HIP_PATH say it; else a hipcc that the user has in PATH, else ROCm's, and
# Debian's own, which is older, where there is no other.
AC_DEFUN([XIO_PROG_HIPCC], [
  AC_REQUIRE([XIO_ROCM])
  AC_ARG_VAR([HIPCC], [HIP compiler])
  xio_hipcc_path=
  for xio_root in "$ROCM_PATH" "$HIP_PATH"; do
    AS_IF([test -n "$xio_root"], [AS_VAR_APPEND([xio_hipcc_path], ["$xio_root/bin:"])])
  done
  xio_in_path=`command -v hipcc 2>/dev/null`
  AS_CASE([`readlink -f "$xio_in_path"`],
    [""|/usr/bin/*|/bin/*], [AS_VAR_APPEND([xio_hipcc_path], ["${xio_system_root}/opt/rocm/bin:$PATH"])],
    [AS_VAR_APPEND([xio_hipcc_path], ["$PATH:${xio_system_root}/opt/rocm/bin"])])
  AC_PATH_PROG([HIPCC], [hipcc], [], [$xio_hipcc_path])
  # A link of the system's into ROCm: its headers and libraries are where it points.
  AS_CASE([$HIPCC], [/usr/bin/*|/bin/*],
    [AS_CASE([`readlink -f "$HIPCC"`], [""|/usr/bin/*|/bin/*], [], [HIPCC=`readlink -f "$HIPCC"`])])])
