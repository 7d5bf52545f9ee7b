# SPDX-License-Identifier: MIT
"""A context, and all calls that go by it: those on streams, and those of the host."""
import ctypes as C
import math
from typing import TYPE_CHECKING, Any, Optional, Tuple

from . import _library as L
from ._arrays import Array, Memory, integer, memory_of, unsigned64
from ._errors import Status, XioError, error_of
from ._runtime import handle_of, runtime

if TYPE_CHECKING:
    from ._world import Storage, Team, World

_SIGNAL, _CMP, _REDUCE, _TYPE = (L.ENUMS[name] for name in ("XIO_SIGNAL_", "XIO_CMP_", "XIO_REDUCE_", "XIO_"))
_INT = 2**31 - 1


def milliseconds(timeout: Optional[float]) -> int:
    """None: the world's; math.inf: none."""
    if timeout is None:
        return 0
    if timeout == math.inf:
        return 2**32 - 1
    if not timeout > 0:
        raise ValueError(f"timeout is {timeout}: give seconds, more than 0, or math.inf")
    return integer(max(1, round(timeout * 1000)), 1, 2**32 - 2, "timeout in milliseconds")


def _pe(pe: Any) -> int:
    if type(pe) is int and 0 <= pe <= _INT:
        return pe
    return integer(pe, -_INT - 1, _INT, "pe")


def _named(names: Any, name: str, what: str) -> int:
    try:
        return names[name]
    except (KeyError, TypeError):
        raise ValueError(f"{what} is {name!r}: give one of {', '.join(names)}") from None


def _written(obj: Any, what: str = "dst") -> Memory:
    m = memory_of(obj, what)
    if m.readonly:
        raise ValueError(f"{what} is read-only: give an array that may be written")
    return m


def _pair(dst: Any, src: Any) -> Tuple[int, int, int]:
    if type(dst) is Array and type(src) is Array and dst.nbytes == src.nbytes:
        return dst.address, src.address, src.nbytes
    d, s = _written(dst), memory_of(src, "src")
    if d.nbytes != s.nbytes:
        raise ValueError(f"dst has {d.nbytes} bytes and src {s.nbytes}: give parts of one size")
    return d.address, s.address, s.nbytes


def _word(sig: Any, what: str = "sig") -> int:
    m = memory_of(sig, what)
    if m.nbytes != 8:
        raise ValueError(f"{what} has {m.nbytes} bytes: give one word of uint64, such as signals[0:1]")
    return m.address


def _table(obj: Any, n: int, what: str) -> int:
    m = memory_of(obj, what)
    if m.nbytes != 8 * n or m.type is None or m.type.name not in ("uint64", "int64"):
        raise ValueError(f"{what} is no array of {n} uint64, one for each member")
    return m.address


class Context:
    """Queues to all PEs; World.context makes it.

    Calls without `host_` go into `stream` (None: the default stream; else an address, or a stream of xio, torch or CuPy) and
    return at once; their arrays stay until the stream has passed them. `timeout` in seconds is the call's own deadline;
    None: the world's. `failed`, `check` and `synchronize` report later failures, of which the first ends all later calls on
    streams until `clear`. Calls `host_` are done when they return, and raise their own failures."""

    def __init__(self, world: "World", route: str, ring_depth: int, bulk_bytes: int) -> None:
        self.world, lib = world, world._lib
        attr = L.ctx_attr(C.sizeof(L.ctx_attr), _named(L.ENUMS["XIO_ROUTE_"], route, "route"))
        attr.ring_depth = integer(ring_depth, 0, 2**32 - 1, "ring_depth")
        attr.bulk_bytes = integer(bulk_bytes, 0, 2**63 - 1, "bulk_bytes")
        self.handle = lib.ctx()
        with world._lock:
            lib.check(lib.ctx_create(world.handle, C.byref(attr), C.byref(self.handle)))
            lib.check(lib.stream_prepare(world.handle, self.handle))

    def _give(self, call: str, *arguments: Any, stream: Any, timeout: Optional[float] = None, workgroups: int = 0) -> None:
        attr = None
        if timeout is not None or workgroups:
            own = L.stream_attr(C.sizeof(L.stream_attr), None, milliseconds(timeout),
                                integer(workgroups, 0, 2**32 - 1, "workgroups"), 0)
            attr = C.byref(own)
        world = self.world
        status = world._lib.on_stream[call](world._handle or world.handle, self.handle, *arguments, handle_of(stream), attr)
        if status:
            world._lib.check(status)

    # --- Calls on a stream ---

    def put(self, dst: Any, src: Any, pe: int, stream: Any = None, **attr: Any) -> None:
        """Copies `src` here to `dst` at PE `pe`."""
        self._give("put", *_pair(dst, src), _pe(pe), stream=stream, **attr)

    def get(self, dst: Any, src: Any, pe: int, stream: Any = None, **attr: Any) -> None:
        """Copies `src` at PE `pe` to `dst` here."""
        self._give("get", *_pair(dst, src), _pe(pe), stream=stream, **attr)

    def put_signal(self, dst: Any, src: Any, sig: Any, value: int, pe: int, op: str = "set", stream: Any = None,
                   **attr: Any) -> None:
        """put, and then changes the word `sig` there: "set" or "add"."""
        self._give("put_signal", *_pair(dst, src), _word(sig), unsigned64(value), _named(_SIGNAL, op, "op"), _pe(pe),
                   stream=stream, **attr)

    def signal_op(self, sig: Any, value: int, pe: int, op: str = "set", stream: Any = None, **attr: Any) -> None:
        """Changes the word `sig` at PE `pe`."""
        self._give("signal_op", _word(sig), unsigned64(value), _named(_SIGNAL, op, "op"), _pe(pe), stream=stream, **attr)

    def signal_wait(self, sig: Any, value: int, cmp: str = "ge", stream: Any = None, **attr: Any) -> None:
        """Waits until the own word compares so with `value`: eq, ne, gt, ge, lt, le."""
        self._give("signal_wait", _word(sig), _named(_CMP, cmp, "cmp"), unsigned64(value), stream=stream, **attr)

    def signal_take(self, sig: Any, value: int, stream: Any = None, **attr: Any) -> None:
        """Waits until the own word is at least `value`, and subtracts that: right in every replay of a graph."""
        self._give("signal_take", _word(sig), unsigned64(value), stream=stream, **attr)

    def quiet(self, stream: Any = None, **attr: Any) -> None:
        """Completes all ops before it."""
        self._give("quiet", stream=stream, **attr)

    def barrier(self, team: Optional["Team"] = None, stream: Any = None, **attr: Any) -> None:
        """quiet, and all PEs, or all members, have come."""
        call, rest = ("barrier_all", ()) if team is None else ("team_barrier", (team.handle,))
        self._give(call, *rest, stream=stream, **attr)

    def sync(self, team: Optional["Team"] = None, stream: Any = None, **attr: Any) -> None:
        """All PEs, or all members, have come. It completes no puts."""
        call, rest = ("sync_all", ()) if team is None else ("team_sync", (team.handle,))
        self._give(call, *rest, stream=stream, **attr)

    def _all_blocks(self, team: "Team", whole: Memory, part: int, what: str) -> int:
        if whole.nbytes != part * team.size:
            raise ValueError(f"{what} has {whole.nbytes} bytes: give {part} for each of the {team.size} members")
        return part

    def alltoall(self, team: "Team", dst: Any, src: Any, stream: Any = None, **attr: Any) -> None:
        """Block p of `src` goes to member p."""
        d, s = _written(dst), memory_of(src, "src")
        part = self._all_blocks(team, s, s.nbytes // max(1, team.size), "src")
        self._all_blocks(team, d, part, "dst")
        self._give("alltoall", team.handle, d.address, s.address, part, stream=stream, **attr)

    def alltoallv(self, team: "Team", dst: Any, dst_offsets: Any, dst_bytes: Any, src: Any, src_offsets: Any,
                  src_bytes: Any, stream: Any = None, **attr: Any) -> None:
        """Blocks of any sizes: tables of a uint64 for each member, which the GPU reads when the stream is there."""
        d, s, n = _written(dst), memory_of(src, "src"), team.size
        self._give("alltoallv", team.handle, d.address, _table(dst_offsets, n, "dst_offsets"),
                   _table(dst_bytes, n, "dst_bytes"), s.address, _table(src_offsets, n, "src_offsets"),
                   _table(src_bytes, n, "src_bytes"), stream=stream, **attr)

    def fcollect(self, team: "Team", dst: Any, src: Any, stream: Any = None, **attr: Any) -> None:
        """The block of each member, to all."""
        d, s = _written(dst), memory_of(src, "src")
        self._all_blocks(team, d, s.nbytes, "dst")
        self._give("fcollect", team.handle, d.address, s.address, s.nbytes, stream=stream, **attr)

    def collect(self, team: "Team", dst: Any, src: Any, stream: Any = None, **attr: Any) -> None:
        """The same; every member may give another size, and dst is large enough for all."""
        d, s = _written(dst), memory_of(src, "src")
        if d.nbytes < s.nbytes:
            raise ValueError(f"dst has {d.nbytes} bytes, and this member alone gives {s.nbytes}")
        self._give("collect", team.handle, d.address, s.address, s.nbytes, stream=stream, **attr)

    def broadcast(self, team: "Team", dst: Any, src: Any, root: int, stream: Any = None, **attr: Any) -> None:
        """`src` of member `root`, to `dst` of all others."""
        self._give("broadcast", team.handle, *_pair(dst, src), _pe(root), stream=stream, **attr)

    def _reduced(self, op: str, d: Memory, s: Memory) -> Tuple[int, int]:
        if d.type is None or d.type != s.type or d.type.reduces is None:
            names = [m.type.name if m.type else "unknown" for m in (d, s)]
            raise TypeError(f"dst is {names[0]} and src {names[1]}: give one type of integers or floats")
        return _named(_REDUCE, op, "op"), _TYPE[d.type.reduces]

    def reduce(self, team: "Team", dst: Any, src: Any, op: str = "sum", stream: Any = None, **attr: Any) -> None:
        """Combines `src` of all members: sum, prod, min, max, and, or, xor. dst may be src."""
        d, s = _written(dst), memory_of(src, "src")
        address, source, nbytes = _pair(dst, src)
        how = self._reduced(op, d, s)
        self._give("reduce", team.handle, *how, address, source, nbytes // d.type.bytes, stream=stream, **attr)  # type: ignore

    def reduce_scatter(self, team: "Team", dst: Any, src: Any, op: str = "sum", stream: Any = None, **attr: Any) -> None:
        """The same, of which each member gets its part."""
        d, s = _written(dst), memory_of(src, "src")
        how = self._reduced(op, d, s)
        self._all_blocks(team, s, d.nbytes, "src")
        self._give("reduce_scatter", team.handle, *how, d.address, s.address, d.nbytes // d.type.bytes, stream=stream, **attr)  # type: ignore

    def read(self, dst: Any, storage: "Storage", offset: int, stream: Any = None, **attr: Any) -> None:
        """Reads from byte `offset` on, as many as `dst` holds."""
        m = _written(dst)
        self._give("read", m.address, storage.handle, unsigned64(offset, "offset"), m.nbytes, stream=stream, **attr)

    def write(self, src: Any, storage: "Storage", offset: int, stream: Any = None, **attr: Any) -> None:
        m = memory_of(src, "src")
        self._give("write", m.address, storage.handle, unsigned64(offset, "offset"), m.nbytes, stream=stream, **attr)

    def storage_sync(self, storage: "Storage", stream: Any = None, **attr: Any) -> None:
        """What was written before is durable."""
        self._give("storage_sync", storage.handle, stream=stream, **attr)

    # --- What became of them ---

    def failed(self) -> int:
        """The status of the first call on a stream that has failed, or 0. Any thread, any time."""
        out = C.c_int()
        self.world._lib.check(self.world._lib.ctx_failed(self.world.handle, self.handle, C.byref(out)))
        return Status(out.value)

    def error(self) -> str:
        """The sentence of the last failure of calls on streams, of the host and of kernels; "" if there is none."""
        info = L.error_info(C.sizeof(L.error_info))
        self.world._lib.check(self.world._lib.ctx_error(self.world.handle, self.handle, C.byref(info)))
        return info.sentence.decode(errors="replace")

    def check(self) -> None:
        """Raises the first failure."""
        status = self.failed()
        if status:
            raise error_of(status, self.error())

    def synchronize(self, stream: Any = None) -> None:
        """Waits for the stream, and raises the first failure of the context's calls on streams."""
        runtime().synchronize(handle_of(stream))
        self.check()

    def clear(self) -> None:
        """Forgets failures: calls on streams are made again."""
        self.world._lib.check(self.world._lib.ctx_clear(self.world.handle, self.handle))

    # --- Calls of the host ---

    def _host(self, call: str, *arguments: Any) -> None:
        lib = self.world._lib
        status = getattr(lib, "host_" + call)(self.world.handle, self.handle, *arguments)
        if status:
            lib.check(status)

    def host_put(self, dst: Any, src: Any, pe: int) -> None:
        """`src` may be reused on return; it is at the PE after host_quiet."""
        self._host("put", *_pair(dst, src), _pe(pe))

    def host_get(self, dst: Any, src: Any, pe: int) -> None:
        self._host("get", *_pair(dst, src), _pe(pe))

    def host_put_signal(self, dst: Any, src: Any, sig: Any, value: int, pe: int, op: str = "set") -> None:
        self._host("put_signal", *_pair(dst, src), _word(sig), unsigned64(value), _named(_SIGNAL, op, "op"), _pe(pe))

    def host_signal_op(self, sig: Any, value: int, pe: int, op: str = "set") -> None:
        self._host("signal_op", _word(sig), unsigned64(value), _named(_SIGNAL, op, "op"), _pe(pe))

    def host_signal_wait(self, sig: Any, value: int, cmp: str = "ge", timeout: Optional[float] = None) -> None:
        self._host("signal_wait", _word(sig), _named(_CMP, cmp, "cmp"), unsigned64(value), milliseconds(timeout))

    def host_quiet(self) -> None:
        """Completes all ops of the context."""
        self._host("quiet")

    def _atomic(self, call: str, word: Any, *arguments: Any) -> int:
        old = C.c_uint64()
        self._host("atomic_" + call, _word(word, "word"), *arguments, C.byref(old))
        return old.value

    def host_atomic_fetch(self, word: Any, pe: int) -> int:
        return self._atomic("fetch", word, _pe(pe))

    def host_atomic_set(self, word: Any, value: int, pe: int) -> None:
        self._host("atomic_set", _word(word, "word"), unsigned64(value), _pe(pe))

    def host_atomic_fetch_add(self, word: Any, value: int, pe: int) -> int:
        """Adds, and returns the word as it was, as the next ones do."""
        return self._atomic("fetch_add", word, unsigned64(value), _pe(pe))

    def host_atomic_swap(self, word: Any, value: int, pe: int) -> int:
        return self._atomic("swap", word, unsigned64(value), _pe(pe))

    def host_atomic_compare_swap(self, word: Any, expected: int, value: int, pe: int) -> int:
        return self._atomic("compare_swap", word, unsigned64(expected, "expected"), unsigned64(value), _pe(pe))

    # --- The context itself ---

    def route_name(self, nbytes: int, pe: int) -> str:
        """How a copy of that size goes to that PE: "direct", "rdma" or "sdma"."""
        name = self.world._lib.route_name(self.world.handle, self.handle, integer(nbytes, 0, 2**63 - 1, "nbytes"), _pe(pe))
        if name is None:
            raise XioError(Status.ERR_ARG, self.world._lib.last_error().decode(errors="replace"))
        return name.decode()

    @property
    def device(self) -> int:
        """Its address in the GPU's memory, for kernels that get words."""
        out = C.c_void_p()
        self.world._lib.check(self.world._lib.ctx_device(self.world.handle, self.handle, C.byref(out)))
        return out.value or 0

    def recover(self) -> None:
        """Makes it usable again after a failure. Collective."""
        with self.world._lock:
            self.world._lib.check(self.world._lib.ctx_recover(self.world.handle, self.handle))

    def destroy(self) -> None:
        """Collective. No call may be using it."""
        with self.world._lock:
            self.world._lib.check(self.world._lib.ctx_destroy(self.world.handle, self.handle))
