# SPDX-License-Identifier: MIT
# What proves connections over TCP. libcrypto is also used where libsodium is, by tests that connect both.
AC_DEFUN([XIO_CHECK_SODIUM], [XIO_PACKAGE([SODIUM], [sodium], [libsodium], [sodium.h], [return sodium_init();], [-lsodium],
  [nothing where OpenSSL is; else proven TCP connections between machines])
XIO_PACKAGE([OPENSSL], [openssl], [libcrypto >= 3.0], [openssl/kdf.h], [return EVP_KDF_fetch(0, "", 0) != 0;], [-lcrypto],
  [nothing where libsodium is; else proven TCP connections between machines])
XIO_PROOF=none XIO_PROOF_LIBS=
AS_IF([test $have_SODIUM = yes], [XIO_PROOF=sodium XIO_PROOF_LIBS=$SODIUM_LIBS], [test $have_OPENSSL = yes], [XIO_PROOF=openssl XIO_PROOF_LIBS=$OPENSSL_LIBS],
  [XIO_LOST([proof], [TCP and unique ids between machines, unless XIO_TCP_TRUST_NETWORK=1])])
AC_SUBST([XIO_PROOF])
AC_SUBST([XIO_PROOF_LIBS])
AM_CONDITIONAL([HAVE_PROOF], [test $XIO_PROOF != none])])
