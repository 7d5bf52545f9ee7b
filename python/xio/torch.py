# SPDX-License-Identifier: MIT
"""XIO as a backend of PyTorch's symmetric memory (docs/python.md):

    dist.init_process_group(...)
    xio.torch.enable()
    symm_mem.set_backend("XIO")
    t = symm_mem.empty(1024, device=device)              # on all ranks, in one order
    h = symm_mem.rendezvous(t, group=dist.group.WORLD)

PyTorch 2.11 or newer, and a C++ compiler: the first call compiles for half a minute."""
import ctypes as C
import datetime
import pathlib
from typing import Any, Dict, List, Mapping, Optional, Tuple

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

from . import _library as L
from ._context import Context
from ._errors import Status, XioError
from ._library import library
from ._runtime import runtime
from ._world import World, unique_id

_CALLS = ("ptr", "last_error", "barrier_all_on_stream", "quiet_on_stream", "signal_op_on_stream",
          "signal_take_on_stream", "ctx_failed", "ctx_error")
_enabled: Optional["Backend"] = None


class Backend:
    """The world and the context that the tensors of all ranks lie in. `context.clear()` forgets failures."""

    def __init__(self, world: World, groups: int, channels: int) -> None:
        self.world, self.context = world, Context(world, "auto", 0, 0)
        self._arrays: Dict[int, Tuple[Any, int]] = {}  # and their serial numbers
        self._serial = 0
        self._rows: Dict[int, Dict[str, int]] = {}  # of allocations: the row of each group that uses it
        self._groups, self._channels = groups, channels

    # --- What _torch.cpp asks for ---

    def _allocate(self, nbytes: int) -> Tuple[int, int]:
        array = self.world.zeros(nbytes, "uint8")
        self._serial += 1
        self._arrays[array.address] = array, self._serial
        self._rows[self._serial] = {}
        return array.address, self._serial

    def _drop(self, address: int) -> None:
        _, serial = self._arrays.pop(address)
        del self._rows[serial]

    def _join(self, serial: int, name: str) -> Tuple[List[int], int, int]:
        """The members of the group as PEs, this one's place, and a row of the allocation that is free on all."""
        group = c10d._resolve_process_group(name)
        pes = list(c10d._world.pg_group_ranks[group])
        mine = self._rows[serial]
        if name not in mine:
            used = sum(1 << row for row in mine.values())
            store, key = c10d._get_process_group_store(group), f"xio/{serial}/{name}"
            for theirs in self._gathered(store, key, len(pes), dist.get_rank(group), used):
                used |= theirs
            row = next(i for i in range(self._groups + 1) if not used >> i & 1)
            if row == self._groups:
                raise XioError(Status.ERR_NO_MEMORY, f"{self._groups} groups use this allocation already: give "
                                                     "xio.torch.enable more by groups=")
            mine[name] = row
        return pes, dist.get_rank(group), mine[name]

    @staticmethod
    def _gathered(store: Any, key: str, n: int, me: int, mine: int) -> List[int]:
        store.set(f"{key}/{me}", str(mine))
        store.wait([f"{key}/{i}" for i in range(n)], datetime.timedelta(seconds=60))
        return [int(store.get(f"{key}/{i}")) for i in range(n)]

    def _table(self, device: torch.device) -> Dict[str, Any]:
        lib, run = self.world._lib, runtime()

        def address(f: Any) -> int:
            return C.cast(f, C.c_void_p).value or 0

        table: Dict[str, Any] = {name: address(getattr(lib, name)) for name in _CALLS}
        table["synchronize"] = address(run._synchronize) if run.platform == "host" else 0
        table.update(world=self.world.handle, context=list(self.context.handle.words), groups=self._groups,
                     channels=self._channels, size=self.world.size, device=device.index if device.type != "cpu" else -1,
                     device_type=torch._C._autograd.DeviceType.CPU.value if device.type == "cpu" else
                     torch._C._autograd.DeviceType.CUDA.value)
        return table


def _compiled(gpu: bool) -> Any:
    from torch.utils import cpp_extension

    words = C.sizeof(library().ctx) // 8
    kind = "gpu" if gpu else "cpu"
    flags = ["-O2", f"-DXIO_CTX_WORDS={words}"] + (["-DXIO_TORCH_GPU=1"] if gpu else [])
    header = "torch/csrc/distributed/c10d/symm_mem/SymmetricMemory.hpp"
    texts = [path.read_text() for path in (pathlib.Path(p, header) for p in cpp_extension.include_paths()) if path.exists()]
    if gpu and any("register_mempool_allocator" in text for text in texts):
        flags.append("-DXIO_TORCH_POOL=1")
    made = cpp_extension.load(name=f"xio_torch_{kind}_{words}_{torch.__version__.replace('.', '_').replace('+', '_')}",
                              sources=[str(pathlib.Path(__file__).with_name("_torch.cpp"))], extra_cflags=flags,
                              with_cuda=gpu)
    for struct in ("attributes", "error_info"):
        known = C.sizeof(L.stream_attr if struct == "attributes" else L.error_info)
        if getattr(made, f"{struct}_bytes") != known:
            raise ImportError(f"xio.torch: {struct} has {getattr(made, struct + '_bytes')} bytes, and {known} in xio")
    return made


def _world(heap_bytes: int, timeout: Optional[float], options: Optional[Mapping[str, Any]]) -> World:
    """Of PyTorch's ranks, by PyTorch's store: no launcher of XIO's is asked."""
    store, me = c10d._get_process_group_store(c10d._get_default_group()), dist.get_rank()
    if me == 0:
        store.set("xio/unique_id", unique_id().hex())
    name = bytes.fromhex(store.get("xio/unique_id").decode())
    return World(unique_id=name, rank=me, size=dist.get_world_size(), heap_bytes=heap_bytes, timeout=timeout,
                 options=options)


def enable(*, world: Optional[World] = None, heap_bytes: int = 0, timeout: Optional[float] = None,
           options: Optional[Mapping[str, Any]] = None, groups: int = 4, channels: int = 16) -> Backend:
    """Makes "XIO" known to symm_mem.set_backend, for the CPU by a libxio without a GPU, else for the current device.
    Collective over the default group. `world` is one of the same ranks, else one is made of heap_bytes, timeout and
    options as World has them. At most `groups` groups use one allocation. A second call returns the same."""
    global _enabled
    if _enabled is not None:
        return _enabled
    if not dist.is_initialized():
        raise XioError(Status.ERR_STATE, "xio.torch.enable: there are no ranks yet: call init_process_group first")
    if not 1 <= groups <= 64 or not 1 <= channels <= 1024:
        raise ValueError("groups is 1 to 64, and channels 1 to 1024")
    on_gpu = runtime().platform != "host"
    if on_gpu and not torch.cuda.is_available():
        raise XioError(Status.ERR_UNSUPPORTED, f"{library().name} is for GPUs, and this PyTorch has none: set "
                                               "XIO_LIBRARY to libxio-host.so.0")
    made = _compiled(on_gpu)  # a rank on which it fails has kept no other waiting
    if world is None:
        world = _world(heap_bytes, timeout, options)
    elif (world.rank, world.size) != (dist.get_rank(), dist.get_world_size()):
        raise ValueError(f"PE {world.rank} of {world.size} is rank {dist.get_rank()} of {dist.get_world_size()}: give a "
                         "world of the same ranks")
    backend = Backend(world, groups, channels)
    device = torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")
    made.enable(backend, backend._table(device))
    _enabled = backend
    return backend
