# SPDX-License-Identifier: MIT
"""jax_allreduce: data parallel training in JAX, whose jitted steps add gradients up by XIO.

    xiorun -n 2 python3 examples/python/jax_allreduce.py [STEPS]

The lesson: a custom call of XLA needs nothing but a stream, and XIO's collectives take one. So the sum over all PEs is
an operation of the compiled program, beside JAX's own, and the host waits for nothing. jax_allreduce.cc, which is
compiled first, is the call."""
import ctypes as C
import os
import pathlib
import subprocess
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

import xio
from xio import _library as L

HERE = pathlib.Path(__file__).resolve().parent
MOST = 1 << 20  # bytes of an array


CALLS = ("put_on_stream", "quiet_on_stream", "reduce_on_stream", "get_on_stream", "my_pe", "last_error")


def compiled(folder: str) -> C.CDLL:
    out = os.path.join(folder, "call.so")
    flags = subprocess.run(["pkg-config", "--cflags", "xio"], capture_output=True, text=True, check=False).stdout.split()
    subprocess.run([os.environ.get("CXX", "c++"), "-std=c++17", "-O1", "-shared", "-fPIC", "-o", out, str(HERE / "jax_allreduce.cc"),
                    "-isystem", jax.ffi.include_dir(), *(flags or [f"-I{HERE.parent.parent / 'include'}"])], check=True)
    return C.CDLL(out)


def open_call(call: C.CDLL, world: xio.World, ctx: xio.Context, team: xio.Team) -> list:
    file, arrays = L.library().file, [world.zeros(MOST, "uint8") for _ in range(2)]
    on_host = hasattr(file, "xio_host_hipStreamSynchronize")

    class Place(C.Structure):  # as jax_allreduce.cc has it
        _fields_ = [("world", C.c_void_p), ("ctx", type(ctx.handle)), ("team", type(team.handle)), ("blocks", C.c_void_p * 2),
                    ("bytes", C.c_size_t), ("calls", C.c_void_p * (len(CALLS) + 1))]

    names = ["xio_" + name for name in CALLS] + ["xio_host_hipStreamSynchronize"] * on_host
    calls = [C.cast(getattr(file, name), C.c_void_p).value for name in names]
    place = Place(world.handle, ctx.handle, team.handle, tuple(a.address for a in arrays), MOST, tuple(calls))
    assert call.place_bytes() == C.sizeof(place)
    call.set_place(C.byref(place))
    platform = "cpu" if on_host else "ROCM" if hasattr(file, "hipStreamSynchronize") else "CUDA"
    jax.ffi.register_ffi_target("xio_all_reduce", jax.ffi.pycapsule(call.on_host if on_host else call.on_gpu), platform=platform)
    return arrays


def all_reduce(x: jax.Array) -> jax.Array:
    return jax.ffi.ffi_call("xio_all_reduce", jax.ShapeDtypeStruct(x.shape, x.dtype), has_side_effect=True)(x)


@jax.jit
def step(w: jax.Array, x: jax.Array, y: jax.Array, pes: float) -> jax.Array:
    gradient = jax.grad(lambda w: jnp.mean((x @ w - y) ** 2) / 2)(w)
    return w - 0.1 * all_reduce(gradient) / pes


def main() -> int:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as folder, xio.World() as world:
        ctx, team = world.context(), world.team()
        kept = open_call(compiled(folder), world, ctx, team)
        true = np.array([3.0, -2.0, 0.5, 1.0], "float32")
        x = np.random.default_rng(world.rank).normal(size=(64, 4)).astype("float32")
        w = jnp.zeros(4, "float32")
        for _ in range(steps):
            w = step(w, x, x @ true, float(world.size))
        total = jax.jit(all_reduce)(w)
        error, same = float(abs(np.asarray(w) - true).max()), bool((total == w * world.size).all())
        ctx.check()
        print(f"PE {world.rank} of {world.size}: error {error:.1e} after {steps} steps, {'as' if same else 'NOT as'} all others")
        world.barrier()
        del kept
    return 0 if same and (steps < 100 or error < 1e-3) else 1


if __name__ == "__main__":
    sys.exit(main())
