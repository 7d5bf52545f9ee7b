# SPDX-License-Identifier: MIT
AC_DEFUN([XIO_CHECK_SODIUM], [XIO_PACKAGE([SODIUM], [sodium], [libsodium], [sodium.h], [return sodium_init();], [-lsodium],
  [the keyed handshake of the TCP bootstrap])])
