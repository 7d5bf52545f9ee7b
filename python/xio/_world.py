# SPDX-License-Identifier: MIT
"""Worlds, teams and storages."""
import ctypes as C
import gc
import math
import threading
import warnings
import weakref
from typing import Any, Iterable, List, Mapping, Optional, Tuple

from . import _library as L
from ._arrays import Array, Block, Shape, integer, memory_of, type_of
from ._context import Context, milliseconds
from ._errors import Status, XioError
from ._library import library
from ._runtime import runtime


def unique_id() -> bytes:
    """128 bytes that name one world before it is made: one PE makes them, and all give them to World. They hold the
    key by which PEs prove themselves."""
    lib = library()
    out = L.unique_id()
    lib.check(lib.get_unique_id(C.byref(out)))
    return bytes(out.bytes)


def version() -> Tuple[int, int, int]:
    """Of the libxio that is loaded."""
    numbers = [C.c_int() for _ in range(3)]
    library().version(*map(C.byref, numbers))
    return tuple(n.value for n in numbers)  # type: ignore[return-value]


class World:
    """The PEs of a job, and their symmetric heap. Collective: every PE makes it, makes the same arrays, contexts and
    teams in the same order, and closes it.

    The PEs come from the launcher (mpirun, srun, xiorun), or from unique_id, rank and size, from `comm` of mpi4py, or from
    bootstrap="tcp" with tcp_root, rank and size. `options` sets variables of docs/environment.md for this world."""

    def __init__(self, *, unique_id: Optional[bytes] = None, rank: Optional[int] = None, size: Optional[int] = None,
                 comm: Any = None, bootstrap: Optional[str] = None, tcp_root: Optional[str] = None, heap_bytes: int = 0,
                 timeout: Optional[float] = None, options: Optional[Mapping[str, Any]] = None) -> None:
        self._handle: Optional[int] = None
        lib = self._lib = library()
        attr = L.init_attr(C.sizeof(L.init_attr))
        attr.bootstrap = bootstrap.encode() if bootstrap else None
        attr.heap_bytes = integer(heap_bytes, 0, 2**63 - 1, "heap_bytes")
        attr.timeout_ms = milliseconds(timeout)
        place = [integer(-1 if n is None else n, -1, 2**31 - 1, "rank and size") for n in (rank, size)]
        if unique_id is not None:
            if len(unique_id) != C.sizeof(L.unique_id):
                raise ValueError(f"unique_id has {len(unique_id)} bytes: give the 128 of xio.unique_id()")
            kept = L.unique_id.from_buffer_copy(unique_id)
            attr.unique_id, attr.unique_rank, attr.unique_size = C.addressof(kept), place[0], place[1]
        elif comm is not None:
            from mpi4py import MPI  # type: ignore[import]

            attr.mpi_comm, attr.mpi_comm_bytes = MPI._addressof(comm), MPI._sizeof(MPI.Comm)
            attr.mpi_kind = L.ENUMS["XIO_MPI_"]["open_mpi" if MPI.get_vendor()[0] == "Open MPI" else "mpich"]
        elif size is not None:
            attr.tcp_rank, attr.tcp_size = place
        attr.tcp_root = tcp_root.encode() if tcp_root else None
        pairs = [(str(k).encode(), str(v).encode()) for k, v in (options or {}).items()]
        rows = (L.option * max(1, len(pairs)))(*[L.option(*pair) for pair in pairs])
        attr.options, attr.option_count = (C.addressof(rows), len(pairs)) if pairs else (None, 0)
        out = C.c_void_p()
        lib.check(lib.init(C.byref(attr), C.byref(out)))
        self._handle = out.value
        self._lock = threading.RLock()  # libxio takes one call at a time, but for those on streams and of the host
        self._dropped: List[int] = []
        self._views: "weakref.WeakSet[Any]" = weakref.WeakSet()
        self.rank: int = lib.my_pe(out)
        self.size: int = lib.n_pes(out)
        self.platform: str = runtime().platform  # "host", "hip" or "cuda"
        self._life = self._allocate(8, False)  # freed by the vote of all PEs to end the world
        where = L.mem_place(C.sizeof(L.mem_place))
        lib.check(lib.mem_where(self._life, C.byref(where)))
        side = L.ENUMS["XIO_MEM_ON_"]
        self.host_reaches_heap: bool = where.side in (side["host"], side["both"])
        kinds = {"host": 1, "cuda": 2, "hip": 10}  # kDLCPU, kDLCUDA, kDLROCM
        self._dlpack_device = (1, 0) if self.host_reaches_heap else (kinds[self.platform], max(0, where.device))

    @property
    def handle(self) -> int:
        """The xio_world_t *."""
        if self._handle is None:
            raise XioError(Status.ERR_STATE, "the world was closed; make another one")
        return self._handle

    @property
    def closed(self) -> bool:
        return self._handle is None

    def close(self) -> None:
        """Ends the world. Collective. Where a PE has views of arrays that are left (numpy, DLPack), no PE unmaps the
        heap: it stays until the process ends, and a ResourceWarning says so."""
        if self._handle is None:
            return
        with self._lock:
            if self._views:
                gc.collect()  # some may be left in cycles alone
            views = len(self._views)
            try:
                all_agree = self._free([] if views else [self._life]) == 1
            except XioError:
                handle, self._handle = self._handle, None
                if not views:
                    self._lib.finalize(handle)  # what is local ends in any case
                raise
            handle, self._handle = self._handle, None
            if all_agree:
                self._lib.check(self._lib.finalize(handle))
            else:
                warnings.warn(f"the world's heap stays until the process ends: PE {self.rank} has {views} views of "
                              "arrays that are left, or another PE has", ResourceWarning, stacklevel=2)

    def __enter__(self) -> "World":
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        # Behind an exception the others may be elsewhere: they are not waited for, and the process ends without.
        if kind is None:
            self.close()

    def barrier(self) -> None:
        """All PEs have called it. Collective; it completes no put: see Context.host_quiet."""
        with self._lock:
            self._lib.check(self._lib.host_barrier(self.handle))

    # --- Symmetric arrays ---

    def _allocate(self, nbytes: int, zero: bool) -> int:
        out = C.c_void_p()
        call = self._lib.calloc(self.handle, 1, nbytes, C.byref(out)) if zero else \
            self._lib.malloc(self.handle, nbytes, C.byref(out))
        self._lib.check(call)
        return out.value or 0

    def _free(self, blocks: List[int]) -> int:
        n = len(blocks)
        rows, count = (C.c_void_p * max(1, n))(*blocks), C.c_size_t(n)
        try:
            self._lib.check(self._lib.free_dropped(self.handle, rows, C.byref(count)))
        finally:
            blocks[:] = [rows[i] or 0 for i in range(count.value)]
        return n - len(blocks)

    def collect(self) -> int:
        """Frees the arrays that all PEs have dropped, and returns how many. Collective; no call that names one of them
        may be under way. empty and zeros call it first."""
        with self._lock:
            # Others are appended meanwhile, by the garbage collector.
            n = len(self._dropped)
            blocks = self._dropped[:n]
            del self._dropped[:n]
            try:
                return self._free(blocks)
            finally:
                self._dropped.extend(blocks)

    def _array(self, shape: Shape, dtype: Any, zero: bool) -> Array:
        kind = type_of(dtype)
        sizes = tuple(shape) if isinstance(shape, Iterable) else (shape,)  # type: ignore[arg-type]
        sizes = tuple(integer(n, 0, 2**63 - 1, "a dimension") for n in sizes)
        nbytes = integer(math.prod(sizes) * kind.bytes, 0, 2**63 - 1, "the size in bytes")
        with self._lock:
            self.collect()
            try:
                address = self._allocate(max(1, nbytes), zero)
            except XioError as e:
                # On all PEs alike: what cycles hold may be what is missing.
                if e.status != Status.ERR_NO_MEMORY:
                    raise
                gc.collect()
                if self.collect() == 0:
                    raise
                address = self._allocate(max(1, nbytes), zero)
        return Array(Block(self, address), address, sizes, kind)

    def zeros(self, shape: Shape, dtype: Any = "float32") -> Array:
        """A symmetric array of zeroes. Collective, with the same shape and type on every PE."""
        return self._array(shape, dtype, True)

    def empty(self, shape: Shape, dtype: Any = "float32") -> Array:
        """The same; what it holds is not defined."""
        return self._array(shape, dtype, False)

    def signal(self, count: int = 1) -> Array:
        """Words for signals, zero. Collective."""
        return self.zeros(count, "uint64")

    def peer(self, array: Array, pe: int) -> Optional[Array]:
        """The same array of PE `pe`, as loads and stores of this PE reach it; None where they do not. Local."""
        pe = integer(pe, -2**31, 2**31 - 1, "pe")
        at = self._lib.ptr(self.handle, array.address, pe)
        return Array(array.block, at, array.shape, array._type) if at else None

    def register(self, memory: Any) -> None:
        """Lets engines read and write an array of another library, which calls then may name as their local side. It
        must stay until `unregister`. Local."""
        m = memory_of(memory, "memory")
        with self._lock:
            self._lib.check(self._lib.mem_register(self.handle, m.address, m.nbytes))

    def unregister(self, memory: Any) -> None:
        with self._lock:
            self._lib.check(self._lib.mem_unregister(self.handle, memory_of(memory, "memory").address))

    # --- Contexts, teams, storages ---

    def context(self, *, route: str = "auto", ring_depth: int = 0, bulk_bytes: int = 0) -> Context:
        """What calls go by: queues to all PEs. Collective."""
        return Context(self, route, ring_depth, bulk_bytes)

    def team(self, pes: Optional[Iterable[int]] = None) -> "Team":
        """A team of these PEs, in that order; None: of all. Collective over the world; PEs in no team give ()."""
        return Team(self, pes)

    def team_shared(self) -> "Team":
        """Of the PEs of this PE's machine. Collective over the world."""
        return Team(self, None, self._lib.team_shared)

    def team_same_local_rank(self) -> "Team":
        """Of one PE of each machine. Collective over the world."""
        return Team(self, None, self._lib.team_same_local_rank)

    def storage(self, name: str, *, bytes: int = 0, read_only: bool = False, create: bool = False,
                truncate: bool = False, direct: bool = False, queues: int = 0, depth: int = 0,
                block_bytes: int = 0) -> "Storage":
        """Opens a drive or file ("file:PATH", "nvme:BDF/NSID", ...: xio/xio.h). Local."""
        return Storage(self, name, bytes, read_only, create, truncate, direct, (queues, depth, block_bytes))


class Team:
    """A group of PEs. `channel` is which of its channels it uses: one stream at a time is on each."""

    def __init__(self, world: World, pes: Optional[Iterable[int]], call: Any = None, made: Optional[L.team] = None) -> None:
        self.world, lib = world, world._lib
        self.handle = L.team() if made is None else made
        if made is not None:
            return
        with world._lock:
            if pes is not None:
                numbers = [integer(pe, -2**31, 2**31 - 1, "pe") for pe in pes]
                rows = (C.c_int * max(1, len(numbers)))(*numbers)
                status = lib.team_create(world.handle, rows, len(numbers), C.byref(self.handle))
            else:
                status = (call or lib.team_world)(world.handle, C.byref(self.handle))
            lib.check(status)

    @property
    def rank(self) -> int:
        """This PE's number in it; -1 for the empty team."""
        return self.handle.my_pe if self.handle.n_pes else -1

    @property
    def size(self) -> int:
        return self.handle.n_pes

    def split(self, first: int, stride: int, count: int) -> "Team":
        """The members first, first + stride, ...: `count` of them. Collective over this team's members."""
        made, lib = L.team(), self.world._lib
        numbers = [integer(n, -2**31, 2**31 - 1, "first and stride") for n in (first, stride)]
        with self.world._lock:
            lib.check(lib.team_split_strided(self.world.handle, self.handle, *numbers,
                                             integer(count, 0, 2**31 - 1, "count"), C.byref(made)))
        return Team(self.world, None, None, made)

    def translate(self, pe: int, to: "Team") -> int:
        """The number in `to` of member `pe`; -1 where it is none."""
        return self.world._lib.team_translate(self.world.handle, self.handle, to.handle,
                                              integer(pe, -2**31, 2**31 - 1, "pe"))

    def channel(self, number: int) -> "Team":
        """The same team by another channel, for another stream. Local."""
        made, lib = L.team(), self.world._lib
        lib.check(lib.team_with_channel(self.world.handle, self.handle, integer(number, 0, 2**32 - 1, "channel"),
                                        C.byref(made)))
        return Team(self.world, None, None, made)

    @property
    def device(self) -> int:
        """Its address in the GPU's memory, for kernels that get words."""
        out = C.c_void_p()
        self.world._lib.check(self.world._lib.team_device(self.world.handle, self.handle, C.byref(out)))
        return out.value or 0

    def destroy(self) -> None:
        """Collective over the world, or over the members of a split."""
        with self.world._lock:
            self.world._lib.check(self.world._lib.team_destroy(self.world.handle, self.handle))


class Storage:
    """An open drive or file, of which Context.read and Context.write move bytes: of drives whole blocks."""

    def __init__(self, world: World, name: str, nbytes: int, read_only: bool, create: bool, truncate: bool, direct: bool,
                 numbers: Tuple[int, int, int]) -> None:
        self.world, lib = world, world._lib
        attr, bits = L.storage_attr(C.sizeof(L.storage_attr)), L.ENUMS["XIO_STORAGE_"]
        attr.flags = read_only * bits["read_only"] | create * bits["create"] | truncate * bits["truncate"] | direct * bits["direct"]
        attr.queues, attr.depth, attr.block_bytes = [integer(n, 0, 2**32 - 1, "queues, depth, block_bytes") for n in numbers]
        attr.bytes = integer(nbytes, 0, 2**64 - 1, "bytes")
        self.handle = L.storage()
        with world._lock:
            lib.check(lib.storage_open(world.handle, name.encode(), C.byref(attr), C.byref(self.handle)))
            self._measure()

    def _measure(self) -> None:
        nbytes, block = C.c_uint64(), C.c_uint32()
        self.world._lib.check(self.world._lib.storage_size(self.world.handle, self.handle, C.byref(nbytes), C.byref(block)))
        self.nbytes, self.block_bytes = nbytes.value, block.value

    def grow(self, nbytes: int) -> None:
        """Local. A file is that long at least afterwards, and nbytes is as long as it is; 0 takes in what others made of it."""
        with self.world._lock:
            self.world._lib.check(self.world._lib.storage_grow(self.world.handle, self.handle, integer(nbytes, 0, 2**64 - 1, "bytes")))
            self._measure()

    def close(self) -> None:
        """Local. No call may be using it."""
        with self.world._lock:
            self.world._lib.check(self.world._lib.storage_close(self.world.handle, self.handle))

    def __enter__(self) -> "Storage":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
