# SPDX-License-Identifier: MIT
"""libxio: found, checked, and its calls declared. The declarations are C, as in the headers, so that a C compiler can
compare both (tests/test_headers.py)."""
import ctypes as C
import os
import re
import threading
from typing import Any, Dict, List, Optional

from ._errors import XioLibraryError, error_of

ABI = 1  # XIO_ABI_VERSION of the headers that this package was written for

PROTOTYPES = """
const char *xio_last_error(void);
void xio_version(int *, int *, int *);
uint32_t xio_abi_version(void);
size_t xio_size_of(const char *);
xio_status_t xio_get_unique_id(xio_unique_id_t *);
xio_status_t xio_init(const xio_init_attr_t *, xio_world_t **);
xio_status_t xio_finalize(xio_world_t *);
int xio_my_pe(const xio_world_t *);
int xio_n_pes(const xio_world_t *);
xio_status_t xio_malloc(xio_world_t *, size_t, void **);
xio_status_t xio_calloc(xio_world_t *, size_t, size_t, void **);
xio_status_t xio_free_dropped(xio_world_t *, void **, size_t *);
void *xio_ptr(const xio_world_t *, const void *, int);
xio_status_t xio_mem_register(xio_world_t *, void *, size_t);
xio_status_t xio_mem_unregister(xio_world_t *, void *);
xio_status_t xio_mem_where(const void *, xio_mem_place_t *);
xio_status_t xio_ctx_create(xio_world_t *, const xio_ctx_attr_t *, xio_ctx_t *);
xio_status_t xio_ctx_destroy(xio_world_t *, xio_ctx_t);
xio_status_t xio_ctx_recover(xio_world_t *, xio_ctx_t);
xio_status_t xio_ctx_error(const xio_world_t *, xio_ctx_t, xio_error_info_t *);
const char *xio_route_name(const xio_world_t *, xio_ctx_t, size_t, int);
xio_status_t xio_storage_open(xio_world_t *, const char *, const xio_storage_attr_t *, xio_storage_t *);
xio_status_t xio_storage_close(xio_world_t *, xio_storage_t);
xio_status_t xio_storage_grow(xio_world_t *, xio_storage_t, uint64_t);
xio_status_t xio_storage_size(const xio_world_t *, xio_storage_t, uint64_t *, uint32_t *);
xio_status_t xio_host_barrier(xio_world_t *);
xio_status_t xio_team_create(xio_world_t *, const int *, size_t, xio_team_t *);
xio_status_t xio_team_world(xio_world_t *, xio_team_t *);
xio_status_t xio_team_shared(xio_world_t *, xio_team_t *);
xio_status_t xio_team_same_local_rank(xio_world_t *, xio_team_t *);
xio_status_t xio_team_split_strided(xio_world_t *, xio_team_t, int, int, size_t, xio_team_t *);
int xio_team_translate(const xio_world_t *, xio_team_t, xio_team_t, int);
xio_status_t xio_team_destroy(xio_world_t *, xio_team_t);
xio_status_t xio_put_on_stream(xio_world_t *, xio_ctx_t, void *, const void *, size_t, int, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_get_on_stream(xio_world_t *, xio_ctx_t, void *, const void *, size_t, int, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_put_signal_on_stream(xio_world_t *, xio_ctx_t, void *, const void *, size_t, uint64_t *, uint64_t, xio_signal_op_t, int, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_signal_op_on_stream(xio_world_t *, xio_ctx_t, uint64_t *, uint64_t, xio_signal_op_t, int, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_signal_wait_on_stream(xio_world_t *, xio_ctx_t, const uint64_t *, xio_cmp_t, uint64_t, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_signal_take_on_stream(xio_world_t *, xio_ctx_t, uint64_t *, uint64_t, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_quiet_on_stream(xio_world_t *, xio_ctx_t, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_barrier_all_on_stream(xio_world_t *, xio_ctx_t, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_sync_all_on_stream(xio_world_t *, xio_ctx_t, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_team_barrier_on_stream(xio_world_t *, xio_ctx_t, xio_team_t, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_team_sync_on_stream(xio_world_t *, xio_ctx_t, xio_team_t, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_alltoall_on_stream(xio_world_t *, xio_ctx_t, xio_team_t, void *, const void *, size_t, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_fcollect_on_stream(xio_world_t *, xio_ctx_t, xio_team_t, void *, const void *, size_t, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_broadcast_on_stream(xio_world_t *, xio_ctx_t, xio_team_t, void *, const void *, size_t, int, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_collect_on_stream(xio_world_t *, xio_ctx_t, xio_team_t, void *, const void *, size_t, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_alltoallv_on_stream(xio_world_t *, xio_ctx_t, xio_team_t, void *, const size_t *, const size_t *, const void *, const size_t *, const size_t *, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_reduce_on_stream(xio_world_t *, xio_ctx_t, xio_team_t, xio_reduction_t, xio_type_t, void *, const void *, size_t, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_reduce_scatter_on_stream(xio_world_t *, xio_ctx_t, xio_team_t, xio_reduction_t, xio_type_t, void *, const void *, size_t, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_read_on_stream(xio_world_t *, xio_ctx_t, void *, xio_storage_t, uint64_t, size_t, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_write_on_stream(xio_world_t *, xio_ctx_t, const void *, xio_storage_t, uint64_t, size_t, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_storage_sync_on_stream(xio_world_t *, xio_ctx_t, xio_storage_t, xio_stream_t, const xio_stream_attr_t *);
xio_status_t xio_ctx_failed(const xio_world_t *, xio_ctx_t, xio_status_t *);
xio_status_t xio_ctx_clear(xio_world_t *, xio_ctx_t);
xio_status_t xio_ctx_device(const xio_world_t *, xio_ctx_t, const xio_ctx_t **);
xio_status_t xio_team_device(const xio_world_t *, xio_team_t, const xio_team_t **);
xio_status_t xio_team_with_channel(const xio_world_t *, xio_team_t, uint32_t, xio_team_t *);
xio_status_t xio_stream_prepare(xio_world_t *, xio_ctx_t);
xio_status_t xio_host_put(xio_world_t *, xio_ctx_t, void *, const void *, size_t, int);
xio_status_t xio_host_get(xio_world_t *, xio_ctx_t, void *, const void *, size_t, int);
xio_status_t xio_host_put_signal(xio_world_t *, xio_ctx_t, void *, const void *, size_t, uint64_t *, uint64_t, xio_signal_op_t, int);
xio_status_t xio_host_signal_op(xio_world_t *, xio_ctx_t, uint64_t *, uint64_t, xio_signal_op_t, int);
xio_status_t xio_host_signal_wait(xio_world_t *, xio_ctx_t, const uint64_t *, xio_cmp_t, uint64_t, uint32_t);
xio_status_t xio_host_quiet(xio_world_t *, xio_ctx_t);
xio_status_t xio_host_atomic_fetch(xio_world_t *, xio_ctx_t, const uint64_t *, int, uint64_t *);
xio_status_t xio_host_atomic_set(xio_world_t *, xio_ctx_t, uint64_t *, uint64_t, int);
xio_status_t xio_host_atomic_fetch_add(xio_world_t *, xio_ctx_t, uint64_t *, uint64_t, int, uint64_t *);
xio_status_t xio_host_atomic_swap(xio_world_t *, xio_ctx_t, uint64_t *, uint64_t, int, uint64_t *);
xio_status_t xio_host_atomic_compare_swap(xio_world_t *, xio_ctx_t, uint64_t *, uint64_t, uint64_t, int, uint64_t *);
"""


class option(C.Structure):
    _fields_ = [("name", C.c_char_p), ("value", C.c_char_p)]


class init_attr(C.Structure):
    _fields_ = [("size", C.c_size_t), ("bootstrap", C.c_char_p), ("heap_bytes", C.c_size_t), ("timeout_ms", C.c_uint32),
                ("reserved", C.c_uint32), ("tcp_root", C.c_char_p), ("tcp_rank", C.c_int), ("tcp_size", C.c_int),
                ("options", C.c_void_p), ("option_count", C.c_size_t), ("unique_id", C.c_void_p),
                ("unique_rank", C.c_int), ("unique_size", C.c_int), ("mpi_comm", C.c_void_p),
                ("mpi_comm_bytes", C.c_uint32), ("mpi_kind", C.c_uint32)]


class ctx_attr(C.Structure):
    _fields_ = [("size", C.c_size_t), ("route", C.c_int), ("ring_depth", C.c_uint32), ("pool", C.c_uint32),
                ("immediates", C.c_uint32), ("bulk_bytes", C.c_size_t)]


class storage_attr(C.Structure):
    _fields_ = [("size", C.c_size_t), ("flags", C.c_uint32), ("queues", C.c_uint32), ("depth", C.c_uint32),
                ("block_bytes", C.c_uint32), ("bytes", C.c_uint64), ("stripe_bytes", C.c_uint64)]


class stream_attr(C.Structure):
    _fields_ = [("size", C.c_size_t), ("status", C.c_void_p), ("timeout_ms", C.c_uint32), ("workgroups", C.c_uint32),
                ("flags", C.c_uint32)]


class error_info(C.Structure):
    _fields_ = [("size", C.c_size_t), ("status", C.c_int), ("engine", C.c_char_p), ("queue", C.c_uint32),
                ("vendor", C.c_uint32), ("ticket", C.c_uint64), ("sentence", C.c_char * 256)]


class mem_place(C.Structure):
    _fields_ = [("size", C.c_size_t), ("side", C.c_int), ("kind", C.c_int), ("base", C.c_void_p), ("bytes", C.c_size_t),
                ("page_bytes", C.c_size_t), ("device", C.c_int), ("numa_node", C.c_int), ("resident", C.c_int),
                ("locked", C.c_int), ("placed_as_requested", C.c_int), ("bus_id", C.c_char * 16),
                ("reason", C.c_char * 160)]


class team(C.Structure):
    _fields_ = [("list", C.c_void_p), ("work", C.c_void_p), ("id", C.c_uint64), ("my_pe", C.c_uint32),
                ("n_pes", C.c_uint32), ("first", C.c_uint32), ("stride", C.c_uint32), ("channel", C.c_uint16),
                ("channels", C.c_uint16), ("packet_bytes", C.c_uint32), ("area_bytes", C.c_uint32), ("token", C.c_uint32)]


class storage(C.Structure):
    _fields_ = [("view", C.c_uint64), ("id", C.c_uint64)]


class unique_id(C.Structure):
    _fields_ = [("bytes", C.c_ubyte * 128)]


# Each is xio_NAME_t.
STRUCTS: List[type] = [option, init_attr, ctx_attr, storage_attr, stream_attr, error_info, mem_place, team, storage,
                       unique_id]

ENUMS: Dict[str, Dict[str, int]] = {
    "XIO_ROUTE_": {"auto": 0, "direct": 1, "rdma": 2, "sdma": 3},
    "XIO_SIGNAL_": {"set": 0, "add": 1},
    "XIO_CMP_": {"eq": 0, "ne": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5},
    "XIO_REDUCE_": {"sum": 0, "prod": 1, "min": 2, "max": 3, "and": 4, "or": 5, "xor": 6},
    "XIO_": {"int8": 0, "uint8": 1, "int16": 2, "uint16": 3, "int32": 4, "uint32": 5, "int64": 6, "uint64": 7,
             "half": 8, "bfloat16": 9, "float": 10, "double": 11},
    "XIO_STORAGE_": {"read_only": 1, "create": 2, "truncate": 4, "direct": 8},
    "XIO_MEM_ON_": {"unknown": 0, "host": 1, "device": 2, "both": 3},
    "XIO_MPI_": {"none": 0, "open_mpi": 1, "mpich": 2},
}


class Library:
    """The calls as attributes, without their prefix `xio_`."""

    def __init__(self, file: C.CDLL, name: str) -> None:
        self.file, self.name = file, name
        self.on_stream: Dict[str, Any] = {}  # by their names without the ending, too
        self._check()
        n = self._size("xio_ctx_t")
        self.ctx: Any = type("ctx", (C.Structure,), {"_fields_": [("words", C.c_uint64 * (n // 8))]})
        values = {"int": C.c_int, "size_t": C.c_size_t, "uint32_t": C.c_uint32, "uint64_t": C.c_uint64,
                  "xio_stream_t": C.c_void_p, "xio_ctx_t": self.ctx, "xio_team_t": team, "xio_storage_t": storage,
                  "void": None}

        def kind(text: str) -> Any:
            if "*" in text:
                return C.c_char_p if text.replace(" ", "") == "constchar*" else C.c_void_p
            return values.get(text, C.c_int)  # the others are enumerations

        for line in PROTOTYPES.strip().splitlines():
            result, call, arguments = re.fullmatch(r"(.*?)\s*\b(xio_\w+)\((.*)\);", line).groups()  # type: ignore
            f = self._call(call)
            f.restype = kind(result)
            f.argtypes = [] if arguments == "void" else [kind(a.strip()) for a in arguments.split(",")]
            name = call[len("xio_"):]
            setattr(self, name, f)
            if name.endswith("_on_stream"):
                self.on_stream[name[:-len("_on_stream")]] = f

    def _call(self, name: str) -> Any:
        try:
            return getattr(self.file, name)
        except AttributeError:
            raise XioLibraryError(f"xio: {self.name} has no {name}: it is no libxio, or older than this package; "
                                  "install the libxio that the package came with, or set XIO_LIBRARY to it") from None

    def _size(self, struct: str) -> int:
        f = self._call("xio_size_of")
        f.restype, f.argtypes = C.c_size_t, [C.c_char_p]
        return f(struct.encode())

    def _check(self) -> None:
        f = self._call("xio_abi_version")
        f.restype = C.c_uint32
        found = f()
        if found != ABI:
            raise XioLibraryError(f"xio: {self.name} has the binary interface {found}, and this package is for {ABI}; "
                                  "install the package and the libxio of one version")
        for struct in STRUCTS:
            known = self._size(f"xio_{struct.__name__}_t")
            # Those with a member `size` may have grown.
            if known < C.sizeof(struct) or (known != C.sizeof(struct) and struct._fields_[0][0] != "size"):  # type: ignore
                raise XioLibraryError(f"xio: {self.name} has xio_{struct.__name__}_t of {known} bytes, and this package "
                                      f"knows {C.sizeof(struct)}; install the package and the libxio of one version")
        if self._size("xio_ctx_t") % 8 != 0 or self._size("xio_ctx_t") == 0:
            raise XioLibraryError(f"xio: {self.name} does not say what a context is")

    def check(self, status: int) -> None:
        if status != 0:
            raise error_of(status, self.last_error().decode(errors="replace"))  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> Any:  # for type checkers: the calls are set by __init__
        raise AttributeError(name)


def candidates() -> List[str]:
    """Files to try: XIO_LIBRARY alone, else the library of the GPU that is here, then that without one."""
    chosen = os.environ.get("XIO_LIBRARY")
    if chosen:
        return [chosen]
    names = []
    if os.path.exists("/dev/kfd"):
        names.append("libxio-hip.so.0")
    if os.path.exists("/dev/nvidiactl"):
        names.append("libxio-cuda.so.0")
    return names + ["libxio-host.so.0"]


_lock = threading.Lock()
_loaded: Optional[Library] = None


def library() -> Library:
    """The libxio of this process, loaded when it is first needed."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load()
    return _loaded


def _load() -> Library:
    why = []
    for name in candidates():
        try:
            file = C.CDLL(name)
        except OSError as e:
            why.append(str(e))
            continue
        return Library(file, name)
    raise XioLibraryError("xio: libxio cannot be loaded (" + "; ".join(why) + "); install XIO and run ldconfig, or set "
                          "XIO_LIBRARY to its file, such as /usr/local/lib/libxio-host.so.0")
