# SPDX-License-Identifier: MIT
# MPI through its C interface: pkg-config where Open MPI or MPICH left a file, else what the compiler wrapper shows, else
# a plain link. For
# each binary interface that is there a module is made (src/bootstrap/mpi_module.c), which is linked with none of them.
AC_DEFUN([XIO_CHECK_MPI], [
  XIO_WITH([mpi], [build without MPI; lost: the MPI bootstrap and mpirun])
  AC_ARG_VAR([MPICC], [MPI compiler wrapper, asked for flags only])
  AC_ARG_VAR([MPIRUN], [MPI launcher of the tests])
  have_MPI=no have_OPENMPI=no have_MPICH=no
  xio_mpi_names=
  MPI_CFLAGS= MPI_LIBS=
  AS_IF([test "x$with_mpi" != xno], [
    AC_PATH_PROGS([MPICC], [mpicc mpicxx])
    XIO_MPI_ABI([OPENMPI], [Open MPI], [OPEN_MPI], [ompi-c ompi])
    XIO_MPI_ABI([MPICH], [MPICH], [MPICH_VERSION], [mpich])
    AC_PATH_PROGS([MPIRUN], [mpirun mpiexec])])
  AS_IF([test "x$have_MPI" != xyes], [MPIRUN=])
  # Of the first one, for tests that use MPI themselves.
  AC_SUBST([MPI_CFLAGS])
  AC_SUBST([MPI_LIBS])
  AC_DEFINE_UNQUOTED([XIO_MPI_NAMES], ["$xio_mpi_names"], [The MPIs that have a module, for sentences.])
  AM_CONDITIONAL([HAVE_OPENMPI], [test "x$have_OPENMPI" = xyes])
  AM_CONDITIONAL([HAVE_MPICH], [test "x$have_MPICH" = xyes])
  AM_CONDITIONAL([HAVE_MPIRUN], [test -n "$MPIRUN"])
  XIO_RESULT([MPI], [mpi], [modules for $xio_mpi_names, launcher ${MPIRUN:-not found}],
    [the MPI bootstrap and mpirun; xiorun and TCP remain])])

# XIO_MPI_ABI(VAR, NAME, MACRO OF ITS mpi.h, PKG-CONFIG MODULES): sets VAR_CFLAGS, VAR_LIBS, have_VAR and VAR_LIBRARY, which
# tells the module what to load.
AC_DEFUN([XIO_MPI_ABI], [
  for xio_pc in $4; do
    AS_IF([test "x$have_$1" = xno && $PKG_CONFIG --exists $xio_pc 2>/dev/null],
          [$1_CFLAGS=`$PKG_CONFIG --cflags $xio_pc`
           $1_LIBS=`$PKG_CONFIG --libs $xio_pc`
           XIO_MPI_LINKS([$1], [$2 by pkg-config $xio_pc], [$3])])
  done
  AS_IF([test "x$have_$1" = xno && test -n "$MPICC"], [
    # Open MPI's wrapper says what it adds; MPICH's prints whole commands, by two options, of which others have one.
    for xio_way in showme info show; do
      AS_IF([test "x$have_$1" = xno && XIO_MPI_WRAPPER_SAYS([$1])], [XIO_MPI_LINKS([$1], [$2 by $MPICC ($xio_way)], [$3])])
    done])
  # A compiler that is itself a wrapper (Cray's cc and CC) adds all that it needs.
  AS_IF([test "x$have_$1" = xno],
        [$1_CFLAGS= $1_LIBS=
         XIO_MPI_LINKS([$1], [$2 in $CC itself], [$3])])
  AS_IF([test "x$have_$1" = xyes],
        [AS_IF([test "x$have_MPI" = xno], [MPI_CFLAGS="$$1_CFLAGS -DOMPI_SKIP_MPICXX=1 -DMPICH_SKIP_MPICXX=1" MPI_LIBS=$$1_LIBS])
         have_MPI=yes
         AS_VAR_APPEND([xio_mpi_names], ["${xio_mpi_names:+ or }$2"])
         AC_DEFINE([HAVE_$1], [1], [Define to 1 if there is a module for $2.])])
  AC_SUBST([$1_CFLAGS])
  AC_SUBST([$1_LIBS])
  AC_SUBST([$1_LIBRARY])])

# XIO_MPI_WRAPPER_SAYS(VAR): a shell command that sets VAR_CFLAGS and VAR_LIBS to what MPICC shows by xio_way.
AC_DEFUN([XIO_MPI_WRAPPER_SAYS], [{
      $1_CFLAGS= $1_LIBS=
      case $xio_way in
        showme)
          $1_CFLAGS=`$MPICC --showme:compile 2>/dev/null` &&
            $1_LIBS=`$MPICC --showme:link 2>/dev/null` ;;
        info)
          $1_CFLAGS=`$MPICC -compile_info 2>/dev/null | cut -s -d' ' -f2- | sed 's/ -c\( \|$\)/ /'`
          $1_LIBS=`$MPICC -link_info 2>/dev/null | cut -s -d' ' -f2-` ;;
        show)
          for xio_word in `$MPICC -show 2>/dev/null`; do
            case $xio_word in
              -I* | -D*) $1_CFLAGS="$$1_CFLAGS $xio_word" ;;
              -L* | -l* | -Wl,* | -pthread) $1_LIBS="$$1_LIBS $xio_word" ;;
            esac
          done ;;
      esac
      test -n "$$1_LIBS"
    }])

# XIO_MPI_LINKS(VAR, NAME, MACRO): a program links, its mpi.h has the macro, and the library that it needs is known.
AC_DEFUN([XIO_MPI_LINKS], [
  AC_LANG_PUSH([C])
  AC_MSG_CHECKING([for $2])
  xio_save_CPPFLAGS=$CPPFLAGS xio_save_LIBS=$LIBS
  CPPFLAGS="$CPPFLAGS $$1_CFLAGS" LIBS="$$1_LIBS $LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>
#ifndef $3
#error "another MPI"
#endif]], [[int on = 0; MPI_Initialized(&on);]])],
    [have_$1=yes
     xio_soname=`readelf -d conftest$ac_exeext 2>/dev/null | tr -d '@<:@@:>@' | awk '/NEEDED/ && $NF ~ /^libmpi/ {print $NF; exit}'`
     xio_path=NULL
     for xio_flag in $$1_LIBS; do
       AS_CASE([$xio_flag], [-L*], [xio_folder=`echo "$xio_flag" | sed 's/^-L//'`
         AS_IF([test "x$xio_path" = xNULL && test -e "$xio_folder/$xio_soname"], [xio_path="'\"$xio_folder/$xio_soname\"'"])])
     done
     $1_LIBRARY="-DXIO_MPI_SONAME='\"$xio_soname\"' -DXIO_MPI_PATH=$xio_path"
     AS_IF([test -z "$xio_soname"], [have_$1=no])],
    [have_$1=no])
  CPPFLAGS=$xio_save_CPPFLAGS LIBS=$xio_save_LIBS
  AC_MSG_RESULT([$have_$1])
  AC_LANG_POP([C])])
