# SPDX-License-Identifier: MIT
"""What every PE of a test of xio.triton does, on a GPU of its own; test_triton.py starts it."""
import os

import torch

torch.cuda.set_device(int(os.environ["XIO_TCP_RANK"]) % torch.cuda.device_count())

import triton
import triton.language as tl

import xio
import xio.triton


@triton.jit
def ring(ctx, box, mine, sig, statuses, n: tl.constexpr, turn, to):
    """Fills its own memory, puts it to the next PE, and waits for that of the one before."""
    at = tl.arange(0, n)
    tl.store(mine + at, at.to(tl.float32) + 1000 * turn)
    first = xio.triton.put_signal(ctx, box, mine, 4 * n, sig, turn, xio.triton.SET, to)
    second = xio.triton.signal_wait(ctx, sig, xio.triton.GE, turn)
    third = xio.triton.quiet(ctx)
    tl.store(statuses, first)
    tl.store(statuses + 1, second)
    tl.store(statuses + 2, third)


@triton.jit
def rest(ctx, a, b, counts, statuses, n: tl.constexpr, me, to):
    tl.store(statuses, xio.triton.put(ctx, a, b, 4 * n, to))
    tl.store(statuses + 1, xio.triton.barrier_all(ctx))
    tl.store(statuses + 2, xio.triton.get(ctx, b, a, 4 * n, to))
    tl.store(statuses + 3, xio.triton.signal_op(ctx, counts, 3, xio.triton.ADD, to))
    tl.store(statuses + 4, xio.triton.fence(ctx))
    tl.store(statuses + 5, xio.triton.barrier_all(ctx))
    tl.store(statuses + 6, xio.triton.my_pe(ctx) - me)
    there = xio.triton.ptr(ctx, a, me).to(tl.pointer_type(tl.float32))
    tl.store(b + tl.arange(0, n), tl.load(there + tl.arange(0, n)))


@triton.jit
def wrong(ctx, a, b, statuses):
    tl.store(statuses, xio.triton.put(ctx, a, b, 4, 1000))


N = 4096
world = xio.World()
ctx, me, n = world.context(), world.rank, world.size
to, last = (me + 1) % n, (me - 1) % n
box, mine = (torch.from_dlpack(world.zeros(N)) for _ in range(2))
sig = torch.from_dlpack(world.zeros(2, "int64"))
statuses = torch.full((8,), 99, dtype=torch.int32, device=box.device)
libs = xio.triton.libs()


def check(expected, *also):
    torch.cuda.synchronize()
    assert statuses.tolist()[:len(expected)] == expected, (me, statuses.tolist(), ctx.error())
    world.barrier()


for turn in range(1, 20):
    ring[(1,)](ctx.device, box, mine, sig, statuses, N, turn, to, extern_libs=libs)
    check([0, 0, 0])
    assert (box == torch.arange(N, device=box.device) + 1000 * turn).all(), (me, turn)
    world.barrier()
mine.fill_(me)
world.barrier()
rest[(1,)](ctx.device, box, mine, sig[1:], statuses, N, me, to, extern_libs=libs)
check([0] * 7)
assert (mine == last).all() and (box == last).all() and sig[1] == 3, (me, mine, box, sig)
# A word that is no ctx's of this libxio.
foreign = torch.zeros(64, dtype=torch.int64, device=box.device)
ring[(1,)](foreign.data_ptr(), box, mine, sig, statuses, N, 1, to, extern_libs=libs)
check([int(xio.Status.ERR_STATE)] * 3)
# In a graph.
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(3):
            rest[(1,)](ctx.device, box, mine, sig[1:], statuses, N, me, to, extern_libs=libs)
for _ in range(10):
    graph.replay()
check([0] * 7)
assert sig[1] == 3 + 3 * 30, sig
wrong[(1,)](ctx.device, box, mine, statuses, extern_libs=libs)
check([int(xio.Status.ERR_PE)])
print(f"done; PE {me}", flush=True)
os._exit(0)
