# SPDX-License-Identifier: MIT
"""XIO's calls in kernels of Triton (docs/python.md):

    @triton.jit
    def kernel(ctx, dst, src, sig, n: tl.constexpr, pe):
        xio.triton.put_signal(ctx, dst, src, n, sig, 1, xio.triton.ADD, pe)
        xio.triton.signal_wait(ctx, sig, xio.triton.GE, 1)

    kernel[(1,)](context.device, dst, src, sig, n, pe, extern_libs=xio.triton.libs())

`ctx` is Context.device. Pointers are tensors' own, or words. A program makes each call once, by all its threads; what
it has stored before is seen by the call. Calls return the status, 0 for success."""
from typing import Any, Dict, Optional

from triton.language import core

from .bitcode import bitcode

SET, ADD = core.constexpr(0), core.constexpr(1)
EQ, NE, GT, GE, LT, LE = (core.constexpr(i) for i in range(6))


def libs(arch: Optional[str] = None) -> Dict[str, str]:
    """For a launch's extern_libs; of the current GPU, or of `arch` ("gfx942", "sm_90")."""
    if arch is None:
        import triton

        target = triton.runtime.driver.active.get_current_target()
        arch = f"sm_{target.arch}" if target.backend == "cuda" else str(target.arch).split(":")[0]
    return {"xio": bitcode(arch)}


def _call(name: str, result: str, kinds: str, arguments: Any, semantic: Any) -> Any:
    """One of _device.hip. kinds: a letter for each argument, w for a word or an address, i for an int."""
    given = []
    for kind, one in zip(kinds, arguments):
        one = semantic.to_tensor(core._unwrap_if_constexpr(one))
        if one.dtype.is_ptr():
            one = semantic.cast(one, core.int64)
        given.append(semantic.cast(one, core.int64 if kind == "w" else core.int32))
    types = tuple(core.int64 if kind == "w" else core.int32 for kind in kinds)
    return core.extern_elementwise("", "", given, {types: (name, core.dtype(result))}, is_pure=False,
                                   _semantic=semantic)


@core.extern
def my_pe(ctx, _semantic=None):
    return _call("xio_bc_my_pe", "int32", "w", [ctx], _semantic)


@core.extern
def n_pes(ctx, _semantic=None):
    return _call("xio_bc_n_pes", "int32", "w", [ctx], _semantic)


@core.extern
def ptr(ctx, symmetric, pe, _semantic=None):
    """The address of it at a PE, as int64: `.to(tl.pointer_type(tl.float32))`; 0 where loads do not go there."""
    return _call("xio_bc_ptr", "int64", "wwi", [ctx, symmetric, pe], _semantic)


@core.extern
def put(ctx, dst, src, nbytes, pe, _semantic=None):
    return _call("xio_bc_put_wg", "int32", "wwwwi", [ctx, dst, src, nbytes, pe], _semantic)


@core.extern
def get(ctx, dst, src, nbytes, pe, _semantic=None):
    return _call("xio_bc_get_wg", "int32", "wwwwi", [ctx, dst, src, nbytes, pe], _semantic)


@core.extern
def put_signal(ctx, dst, src, nbytes, sig, value, op, pe, _semantic=None):
    return _call("xio_bc_put_signal_wg", "int32", "wwwwwwii", [ctx, dst, src, nbytes, sig, value, op, pe], _semantic)


@core.extern
def signal_op(ctx, sig, value, op, pe, _semantic=None):
    return _call("xio_bc_signal_op_wg", "int32", "wwwii", [ctx, sig, value, op, pe], _semantic)


@core.extern
def signal_wait(ctx, sig, cmp, value, _semantic=None):
    return _call("xio_bc_signal_wait_wg", "int32", "wwiw", [ctx, sig, cmp, value], _semantic)


@core.extern
def fence(ctx, _semantic=None):
    return _call("xio_bc_fence_wg", "int32", "w", [ctx], _semantic)


@core.extern
def quiet(ctx, _semantic=None):
    return _call("xio_bc_quiet_wg", "int32", "w", [ctx], _semantic)


@core.extern
def barrier_all(ctx, _semantic=None):
    """By one program of each PE."""
    return _call("xio_bc_barrier_all_wg", "int32", "w", [ctx], _semantic)
