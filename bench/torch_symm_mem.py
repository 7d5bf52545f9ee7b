#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's symmetric memory by XIO, by PyTorch's own CUDA backend and by NVSHMEM's, beside NCCL, on the GPUs of one
machine, a process each: the handle's barrier, put_signal and wait_signal, one_shot_all_reduce and two_shot_all_reduce_
of bfloat16. Each result is checked. Prints CSV: backend, test, bytes, microseconds of a call in a row, and in a graph.

    python3 bench/torch_symm_mem.py [XIO|CUDA|NVSHMEM]...      one process a backend and GPU; XIO_LIBRARY as docs/python.md has it
"""
import os
import subprocess
import sys

CALLS = 200


def rank(backend, me, n, port):
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symm_mem

    torch.cuda.set_device(me)
    device = torch.device("cuda", me)
    dist.init_process_group("cpu:gloo,cuda:nccl", init_method=f"tcp://127.0.0.1:{port}", rank=me, world_size=n)
    group = dist.group.WORLD.group_name
    if backend == "XIO":
        import xio.torch

        xio.torch.enable(heap_bytes=256 << 20)
    if backend == "CUDA":
        symm_mem.enable_symm_mem_for_group(group)
    else:
        symm_mem.set_backend(backend)

    def both():
        torch.cuda.synchronize()
        dist.barrier()

    def timed(call, count):
        both()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(count):
            call()
        end.record()
        both()
        return begin.elapsed_time(end) / count * 1e3

    def measure(test, nbytes, call, in_graph=True):
        for _ in range(20):
            call()
        row, graphed = min(timed(call, CALLS) for _ in range(3)), float("nan")
        if in_graph:
            both()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(50):
                    call()
            graph.replay()
            graphed = min(timed(graph.replay, 10) for _ in range(3)) / 50
        if me == 0:
            print(f"{backend},{test},{nbytes},{row:.2f},{graphed:.2f}", flush=True)

    t = symm_mem.empty(1 << 20, dtype=torch.bfloat16, device=device)
    h = symm_mem.rendezvous(t, group=group)
    t.fill_(me + 1)
    h.barrier(channel=0)
    to, last = (me + 1) % n, (me - 1) % n
    assert (h.get_buffer(to, (1024,), torch.bfloat16) == to + 1).all()
    h.barrier(channel=0)
    if backend == "XIO":  # a tensor of a pool, which begins inside of an allocation
        pool = symm_mem.get_mem_pool(device)
        with torch.cuda.use_mem_pool(pool):
            first, pooled = (torch.full((1000,), me + 1, dtype=torch.float32, device=device) for _ in range(2))
        there = symm_mem.rendezvous(pooled, group=group)
        there.barrier(channel=0)
        found = there.get_buffer(to, (1000,), torch.float32, there.offset // 4)
        assert (found == to + 1).all() and (first == me + 1).all(), (found, there.offset)
        there.barrier(channel=0)

    def pass_on():
        h.put_signal(to, channel=1)
        h.wait_signal(last, channel=1)

    measure("barrier", 0, lambda: h.barrier(channel=0))
    measure("barrier of a channel", 0, lambda: h.barrier(channel=2))
    measure("put_signal and wait_signal", 0, pass_on)
    for count in (2048, 32768, 524288):
        part = t[:count]
        torch.manual_seed(me)
        given = torch.randint(0, 8, (count,), device=device).to(torch.bfloat16)
        wanted = given.float()
        dist.all_reduce(wanted)

        def check(found):
            both()
            assert (found.float() == wanted).all(), (backend, count)

        part.copy_(given)
        both()
        check(torch.ops.symm_mem.one_shot_all_reduce(part, "sum", group))
        measure("one_shot_all_reduce", 2 * count, lambda: torch.ops.symm_mem.one_shot_all_reduce(part, "sum", group))
        both()
        torch.ops.symm_mem.two_shot_all_reduce_(part, "sum", group)
        check(part)
        measure("two_shot_all_reduce_", 2 * count, lambda: torch.ops.symm_mem.two_shot_all_reduce_(part, "sum", group))
        mine = given.clone()
        measure("nccl all_reduce", 2 * count, lambda: dist.all_reduce(mine))
    both()
    sys.stdout.flush()
    os._exit(0)  # NCCL's end may wait for streams of graphs


def main():
    if sys.argv[1:2] == ["--rank"]:
        return rank(sys.argv[2], *map(int, sys.argv[3:6]))
    import torch

    n = torch.cuda.device_count()
    print("backend,test,bytes,us_in_a_row,us_in_a_graph", flush=True)
    failed = 0
    for i, backend in enumerate(sys.argv[1:] or ["XIO", "CUDA"]):
        port = str(29500 + 7 * i + os.getpid() % 400)
        ranks = [subprocess.Popen([sys.executable, __file__, "--rank", backend, str(me), str(n), port]) for me in range(n)]
        failed |= any(one.wait(timeout=240) != 0 for one in ranks)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
