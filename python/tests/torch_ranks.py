# SPDX-License-Identifier: MIT
"""torch_ranks.py CASE,CASE...: what every rank of a test of xio.torch does; test_torch.py starts it."""
import gc
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem

import xio
import xio.torch


def raises(kind, words, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as e:
        assert words in str(e), f"'{e}' has no '{words}'"
        return
    raise AssertionError(f"{call} {arguments} {named} raises nothing")


class Job:
    def __init__(self):
        address = "tcp://127.0.0.1:" + os.environ["PORT"]
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        raises(xio.XioError, "init_process_group", xio.torch.enable)
        dist.init_process_group("gloo", init_method=address, rank=rank, world_size=size)
        self.backend = xio.torch.enable(heap_bytes=32 << 20, timeout=float(os.environ.get("TIMEOUT", 20)), groups=3)
        assert xio.torch.enable() is self.backend
        symm_mem.set_backend("XIO")
        self.me, self.n = rank, size
        self.world = dist.group.WORLD.group_name

    def filled(self, count=1024):
        t = symm_mem.empty(count, dtype=torch.float32, device="cpu")
        t.copy_(self.me + torch.arange(count))
        return t

    def joined(self, t, group=None):
        return symm_mem.rendezvous(t, group=group or self.world)

    def expect_ring(self, t, h, rounds, channel):
        """Each rank writes into the next one's memory, and signals."""
        to, last = (h.rank + 1) % h.world_size, (h.rank - 1) % h.world_size
        for i in range(rounds):
            h.get_buffer(to, (64,), torch.float32).fill_(100 * i + h.rank)
            h.put_signal(to, channel=channel)
            h.wait_signal(last, channel=channel)
            assert (t[:64] == 100 * i + last).all(), (i, t[:4])
            h.barrier(channel=channel)


def handles(j):
    t = j.filled()
    h = j.joined(t)
    assert (h.rank, h.world_size, h.buffer_size) == (j.me, j.n, 4096) and symm_mem.is_symm_mem_tensor(t)
    assert j.joined(t) is h or j.joined(t).buffer_ptrs == h.buffer_ptrs
    assert h.signal_pad_size >= 4096 and all(h.signal_pad_ptrs)
    h.barrier(channel=0)
    for pe in range(j.n):
        assert (h.get_buffer(pe, (1024,), torch.float32) == pe + torch.arange(1024.)).all()
        pad = h.get_signal_pad(pe)
        assert (pad == 0).all()
    h.barrier(channel=0)
    h.get_signal_pad((j.me + 1) % j.n, dtype=torch.int32)[5] = 7  # in front of the data, and nobody else's
    h.barrier(channel=1)
    assert h.get_signal_pad(j.me, dtype=torch.int32)[5] == 7 and t[0] == j.me
    h.get_signal_pad(j.me, dtype=torch.int32)[5] = 0
    h.barrier(channel=15)
    j.expect_ring(t, h, 20, 0)
    j.expect_ring(t, h, 5, 3)
    # Signals count: one rank is two ahead.
    h.put_signal((j.me + 1) % j.n, channel=2)
    h.put_signal((j.me + 1) % j.n, channel=2)
    h.barrier(channel=0)
    h.wait_signal((j.me - 1) % j.n, channel=2)
    h.wait_signal((j.me - 1) % j.n, channel=2)


def groups(j):
    """Groups that share ranks use one allocation, each with words and a pad of its own."""
    pairs = [dist.new_group([i, (i + 1) % j.n]) for i in range(j.n)] if j.n > 2 else [dist.new_group([0, 1])]
    t = j.filled()
    everybody = j.joined(t)
    mine = [g for g in pairs if dist.get_rank(g) >= 0]
    joined = []
    for g in mine if j.me % 2 == 0 or j.n == 2 else mine[::-1]:
        joined.append((j.joined(t, g.group_name), g))
    seen = {h.signal_pad_ptrs[h.rank] for h, _ in joined} | {everybody.signal_pad_ptrs[j.me]}
    assert len(seen) == len(joined) + 1, "two groups have one pad"
    for h, g in joined:
        assert h.world_size == 2 and h.rank == dist.get_rank(g)
        pes = dist.get_process_group_ranks(g)
        assert (h.get_buffer(1 - h.rank, (8,), torch.float32, 64) == pes[1 - h.rank] + torch.arange(64., 72.)).all()
    everybody.barrier(channel=0)
    for turn in range(3):
        for h, _ in joined:
            h.put_signal(1 - h.rank, channel=4)
        for h, _ in joined:
            h.wait_signal(1 - h.rank, channel=4)
    everybody.barrier(channel=0)
    if j.n == 2:
        h, _ = joined[0]
        j.expect_ring(t, h, 5, 1)
        h.barrier(channel=1)


def mistakes(j):
    t = j.filled()
    h = j.joined(t)
    raises(RuntimeError, "not in XIO's heap", j.joined, torch.zeros(8))
    raises(RuntimeError, "channel 16", h.barrier, channel=16)
    raises(RuntimeError, "rank", h.put_signal, j.n, channel=0)
    raises(RuntimeError, "rank", h.wait_signal, -1, channel=0)
    raises(RuntimeError, "XIO_ERR_NO_MEMORY", symm_mem.empty, 1 << 30, device="cpu")
    more = [dist.new_group(list(range(j.n))) for _ in range(3)]
    for g in more[:2]:
        j.joined(t, g.group_name)
    raises(RuntimeError, "groups=", j.joined, t, more[2].group_name)
    raises(ValueError, "groups", lambda: setattr(xio.torch, "_enabled", None) or xio.torch.enable(groups=0))
    xio.torch._enabled = j.backend
    h.barrier(channel=0)


def late(j):
    """A signal that never comes: the call's own deadline, then at once, until the failure is forgotten."""
    t = j.filled()
    h = j.joined(t)
    h.barrier(channel=0)
    if j.me == 0:
        began = time.monotonic()
        raises(RuntimeError, "XIO:", h.wait_signal, 1, channel=0, timeout_ms=500)
        assert 0.4 < time.monotonic() - began < 5, time.monotonic() - began  # the world's is 20 s
        for _ in range(3):
            raises(RuntimeError, "XIO:", h.wait_signal, 1, channel=0)
        assert time.monotonic() - began < 10
        j.backend.context.clear()
    dist.barrier()
    h.barrier(channel=0)


def dropped(j):
    """Ranks drop tensors in their own time; blocks that all have dropped are used again."""
    kept = []
    for i in range(64):  # 64 MiB in a heap of 32
        t = symm_mem.empty(1 << 18, dtype=torch.float32, device="cpu")
        t.fill_(i)
        if i % 8 == j.me % 8:
            kept = kept[-1:] + [t]
        del t
    kept.clear()
    gc.collect()
    h = j.joined(j.filled())
    h.barrier(channel=0)


def dead(j):
    t = j.filled()
    h = j.joined(t)
    h.barrier(channel=0)
    if j.me == j.n - 1:
        sys.stdout.write(f"done with dead; rank {j.me}\n")
        sys.stdout.flush()
        os._exit(0)
    began = time.monotonic()
    raises(RuntimeError, "XIO:", h.barrier, channel=0)
    assert time.monotonic() - began < 10, time.monotonic() - began
    print(f"done with dead; rank {j.me}", flush=True)
    os._exit(0)  # gloo's own end would wait for it


job = Job()
for case in sys.argv[1].split(","):
    globals()[case](job)
    dist.barrier()
    print(f"done with {case}; rank {job.me}", flush=True)
# It ends with tensors and handles that are left.
left = job.filled()
handle = job.joined(left)
