# SPDX-License-Identifier: MIT
# MPI through its C interface: pkg-config where Open MPI or MPICH left a file, else what the compiler wrapper shows.
AC_DEFUN([XIO_CHECK_MPI], [
  XIO_WITH([mpi], [build without MPI; lost: the MPI bootstrap and mpirun])
  AC_ARG_VAR([MPICC], [MPI compiler wrapper, asked for flags only])
  AC_ARG_VAR([MPIRUN], [MPI launcher of the tests])
  have_MPI=no xio_mpi_version=
  # The C++ bindings that some versions still have are not used.
  xio_no_mpicxx="-DOMPI_SKIP_MPICXX=1 -DMPICH_SKIP_MPICXX=1"
  MPI_CFLAGS= MPI_LIBS=
  AS_IF([test "x$with_mpi" != xno], [
    AC_PATH_PROGS([MPICC], [mpicc mpicxx])
    for xio_pc in ompi-c ompi mpich; do
      AS_IF([test "x$have_MPI" = xno && $PKG_CONFIG --exists $xio_pc 2>/dev/null],
            [MPI_CFLAGS="`$PKG_CONFIG --cflags $xio_pc` $xio_no_mpicxx"
             MPI_LIBS=`$PKG_CONFIG --libs $xio_pc`
             xio_mpi_version=`$PKG_CONFIG --modversion $xio_pc`
             XIO_LINKS([MPI], [MPI by pkg-config $xio_pc], [mpi.h], [int on = 0; MPI_Initialized(&on);])])
    done
    AS_IF([test "x$have_MPI" = xno && test -n "$MPICC"],
          [MPI_CFLAGS="`$MPICC --showme:compile 2>/dev/null` $xio_no_mpicxx"
           MPI_LIBS=`$MPICC --showme:link 2>/dev/null`
           XIO_LINKS([MPI], [MPI by $MPICC], [mpi.h], [int on = 0; MPI_Initialized(&on);])])
    AC_PATH_PROGS([MPIRUN], [mpirun mpiexec])])
  AS_IF([test "x$have_MPI" != xyes], [MPI_CFLAGS= MPI_LIBS= MPIRUN=])
  AC_SUBST([MPI_CFLAGS])
  AC_SUBST([MPI_LIBS])
  AM_CONDITIONAL([HAVE_MPIRUN], [test -n "$MPIRUN"])
  XIO_RESULT([MPI], [mpi], [${xio_mpi_version:-yes}, launcher ${MPIRUN:-not found}], [the MPI bootstrap and mpirun; xiorun and TCP remain])])
