/* SPDX-License-Identifier: MIT */
/* A module of libxio for the MPI whose mpi.h this is compiled with. XIO_MPI_SONAME and XIO_MPI_PATH name the library
 * that configure found with it. */
#include "bootstrap/mpi_module.h"

#include <dlfcn.h>
#include <mpi.h>
#include <string.h>

/* clang-format off */
#define XIO_MPI_FUNCTIONS(X) \
  X(Initialized) X(Finalized) X(Init_thread) X(Finalize) X(Query_thread) X(Is_thread_main) X(Comm_rank) \
  X(Comm_size) X(Comm_test_inter) X(Comm_idup) X(Comm_set_errhandler) X(Comm_free) X(Abort) X(Irecv) X(Isend) \
  X(Test) X(Get_count) X(Error_class) X(Error_string)
/* clang-format on */

static struct {
#define XIO_DECLARE(name) __typeof__(&MPI_##name) name;
  XIO_MPI_FUNCTIONS(XIO_DECLARE)
#undef XIO_DECLARE
  MPI_Comm world, null_comm;
  MPI_Request null_request;
  MPI_Datatype byte;
  MPI_Errhandler errors_return;
} mpi;

_Static_assert(sizeof(MPI_Comm) <= sizeof(xio_mpi_handle_t) && sizeof(MPI_Request) <= sizeof(xio_mpi_handle_t),
               "a handle has room for MPI's");

static MPI_Comm* comm_in(const xio_mpi_handle_t* h) { return (MPI_Comm*)(uintptr_t)h; }
static MPI_Request* request_in(const xio_mpi_handle_t* h) { return (MPI_Request*)(uintptr_t)h; }

static int initialized(void) {
  int flag = 0;
  mpi.Initialized(&flag);
  return flag != 0;
}

static int finalized(void) {
  int flag = 0;
  mpi.Finalized(&flag);
  return flag != 0;
}

static int start(void) {
  int provided = 0;
  return mpi.Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
}

static int finalize(void) { return mpi.Finalize(); }

static int may_be_called(void) {
  int provided = 0, main_thread = 0;
  mpi.Query_thread(&provided);
  mpi.Is_thread_main(&main_thread);
  return provided >= MPI_THREAD_SERIALIZED || main_thread != 0;
}

static void world(xio_mpi_handle_t* comm) { *comm_in(comm) = mpi.world; }

static int is_null(const xio_mpi_handle_t* comm) { return *comm_in(comm) == mpi.null_comm; }

static int joins_groups(const xio_mpi_handle_t* comm) {
  int flag = 0;
  mpi.Comm_test_inter(*comm_in(comm), &flag);
  return flag != 0;
}

static int rank(const xio_mpi_handle_t* comm) {
  int r = -1;
  mpi.Comm_rank(*comm_in(comm), &r);
  return r;
}

static int size(const xio_mpi_handle_t* comm) {
  int n = 0;
  mpi.Comm_size(*comm_in(comm), &n);
  return n;
}

static void clear(xio_mpi_handle_t* request) { *request_in(request) = mpi.null_request; }

static int is_complete(const xio_mpi_handle_t* request) { return *request_in(request) == mpi.null_request; }

static int begin_duplicate(const xio_mpi_handle_t* of, xio_mpi_handle_t* comm, xio_mpi_handle_t* request) {
  clear(request);
  return mpi.Comm_idup(*comm_in(of), comm_in(comm), request_in(request));
}

static int return_errors(xio_mpi_handle_t* comm) { return mpi.Comm_set_errhandler(*comm_in(comm), mpi.errors_return); }

static int free_comm(xio_mpi_handle_t* comm) { return mpi.Comm_free(comm_in(comm)); }

static int abort_comm(const xio_mpi_handle_t* comm, int code) { return mpi.Abort(*comm_in(comm), code); }

static int receive(void* to, int bytes, int from, int tag, const xio_mpi_handle_t* comm, xio_mpi_handle_t* request) {
  return mpi.Irecv(to, bytes, mpi.byte, from, tag, *comm_in(comm), request_in(request));
}

static int send(const void* from, int bytes, int to, int tag, const xio_mpi_handle_t* comm, xio_mpi_handle_t* request) {
  return mpi.Isend(from, bytes, mpi.byte, to, tag, *comm_in(comm), request_in(request));
}

static int test(xio_mpi_handle_t* request, int* done, int* bytes) {
  MPI_Status status;
  *done = 0;
  const int rc = mpi.Test(request_in(request), done, &status);
  if (rc == MPI_SUCCESS && *done != 0 && bytes != NULL) mpi.Get_count(&status, mpi.byte, bytes);
  return rc;
}

static int is_truncation(int code) {
  int kind = MPI_SUCCESS;
  return code != MPI_SUCCESS && mpi.Error_class(code, &kind) == MPI_SUCCESS && kind == MPI_ERR_TRUNCATE;
}

static void text(int code, char* out, size_t bytes) {
  char whole[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  if (mpi.Error_string(code, whole, &length) != MPI_SUCCESS) whole[0] = '\0';
  if (bytes == 0) return;
  strncpy(out, whole, bytes - 1);
  out[bytes - 1] = '\0';
}

static const xio_mpi_calls_t calls = {initialized, finalized,     start, finalize,    may_be_called,   world,
                                      is_null,     joins_groups,  rank,  size,        begin_duplicate, return_errors,
                                      free_comm,   abort_comm,    clear, is_complete, receive,         send,
                                      test,        is_truncation, text};

static void* find(void* library, const char* name, const char** missing) {
  void* found = dlsym(library, name);
  if (found == NULL && *missing == NULL) *missing = name;
  return found;
}

static const xio_mpi_calls_t* resolve(void* library, const char** missing) {
  void* found;
  *missing = NULL;
#define XIO_RESOLVE(name)                       \
  found = find(library, "MPI_" #name, missing); \
  memcpy(&mpi.name, &found, sizeof mpi.name);
  XIO_MPI_FUNCTIONS(XIO_RESOLVE)
#undef XIO_RESOLVE
#ifdef OPEN_MPI
  /* Its constants are addresses of objects of the library. */
  mpi.world = (MPI_Comm)find(library, "ompi_mpi_comm_world", missing);
  mpi.null_comm = (MPI_Comm)find(library, "ompi_mpi_comm_null", missing);
  mpi.null_request = (MPI_Request)find(library, "ompi_request_null", missing);
  mpi.byte = (MPI_Datatype)find(library, "ompi_mpi_byte", missing);
  mpi.errors_return = (MPI_Errhandler)find(library, "ompi_mpi_errors_return", missing);
#else
  mpi.world = MPI_COMM_WORLD;
  mpi.null_comm = MPI_COMM_NULL;
  mpi.null_request = MPI_REQUEST_NULL;
  mpi.byte = MPI_BYTE;
  mpi.errors_return = MPI_ERRORS_RETURN;
#endif
  return *missing == NULL ? &calls : NULL;
}

extern const xio_mpi_module_t xio_mpi_module __attribute__((visibility("default")));
const xio_mpi_module_t xio_mpi_module = {
    XIO_MPI_MODULE_VERSION, sizeof(xio_mpi_calls_t), {XIO_MPI_SONAME, XIO_MPI_PATH, NULL}, resolve};
