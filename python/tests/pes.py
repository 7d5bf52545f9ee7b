# SPDX-License-Identifier: MIT
"""pes.py CASE: what every PE of a test does; test_pes.py starts it by 2 and 3 PEs."""
import gc
import os
import sys
import tempfile
import threading
import time
import warnings

import numpy as np

import xio


def pattern(pe, shape, dtype="float32"):
    return (np.arange(np.prod(shape)).reshape(shape) % 7 + 10 * pe).astype(dtype)


class Job:
    def __init__(self, **attr):
        self.world = xio.World(**attr)
        self.ctx, self.me, self.n = self.world.context(), self.world.rank, self.world.size
        self.next, self.last = (self.me + 1) % self.n, (self.me - 1) % self.n
        self.stream = xio.Stream()

    def filled(self, shape, dtype="float32"):
        out = self.world.zeros(shape, dtype)
        out.numpy()[...] = pattern(self.me, shape, dtype)
        self.world.barrier()
        return out

    def raises(self, kind, words, call, *arguments, **named):
        try:
            call(*arguments, **named)
        except kind as e:
            assert words in str(e), f"'{e}' has no '{words}'"
            return e
        raise AssertionError(f"{call} {arguments} {named} raises nothing")

    def status(self, status, words, call, *arguments, **named):
        e = self.raises(xio.XioError, words, call, *arguments, **named)
        assert e.status == status and e.sentence, (e.status, status)


def rma(j):
    shape = (17, 33)
    a, b, got, sig = j.filled(shape), j.world.zeros(shape), j.world.zeros(shape), j.world.signal(2)
    for stream in (None, j.stream, j.stream.handle):
        b.numpy()[...] = 0
        j.world.barrier()
        j.ctx.put(b, a, j.next, stream=stream)
        j.ctx.barrier(stream=stream)
        j.ctx.synchronize(stream)
        assert (b.numpy() == pattern(j.last, shape)).all()
        j.world.barrier()
        j.ctx.get(got, a, j.next, stream=stream, workgroups=2)
        j.ctx.put_signal(b[3:5], a[7:9], sig[0:1], 2, j.next, op="add", stream=stream, timeout=20)
        j.ctx.signal_op(sig[1:2], 7, j.next, stream=stream)
        j.ctx.signal_wait(sig[1:2], 7, "eq", stream=stream)
        j.ctx.signal_take(sig[0:1], 2, stream=stream)
        j.ctx.quiet(stream=stream)
        j.ctx.sync(stream=stream)
        j.ctx.synchronize(stream)
        assert (got.numpy() == pattern(j.next, shape)).all()
        expected = pattern(j.last, shape)
        expected[3:5] = expected[7:9].copy()
        assert (b.numpy() == expected).all()
        assert sig.numpy().tolist() == [0, 7]
        sig.numpy()[...] = 0
        j.world.barrier()
    assert j.ctx.route_name(8, j.next) in ("direct", "rdma", "sdma")
    assert j.ctx.failed() == 0 and j.ctx.error() == ""


def host_calls(j):
    a, b, words = j.filled(1000), j.world.zeros(1000), j.world.signal(3)
    j.ctx.host_put(b, a, j.next)
    j.ctx.host_quiet()
    j.world.barrier()
    assert (b.numpy() == pattern(j.last, 1000)).all()
    j.world.barrier()
    j.ctx.host_get(b, a, j.next)
    assert (b.numpy() == pattern(j.next, 1000)).all()
    j.world.barrier()
    j.ctx.host_put_signal(b, a, words[0:1], 1, j.next, op="add")
    j.ctx.host_signal_op(words[0:1], 2, j.next, op="add")
    j.ctx.host_signal_wait(words[0:1], 3, "eq")
    assert (b.numpy() == pattern(j.last, 1000)).all()
    w = words[1:2]
    j.ctx.host_atomic_set(w, 2**63 + 5, j.next)
    assert j.ctx.host_atomic_fetch_add(w, 3, j.next) == 2**63 + 5
    assert j.ctx.host_atomic_swap(w, 20, j.next) == 2**63 + 8
    assert j.ctx.host_atomic_compare_swap(w, 20, 7, j.next) == 20
    assert j.ctx.host_atomic_compare_swap(w, 20, 8, j.next) == 7
    assert j.ctx.host_atomic_fetch(w, j.next) == 7
    j.world.barrier()
    adds = [threading.Thread(target=lambda: [j.ctx.host_atomic_fetch_add(words[2:3], 1, 0) for _ in range(10)]) for _ in range(3)]
    [t.start() for t in adds]
    [t.join() for t in adds]
    j.world.barrier()
    assert j.ctx.host_atomic_fetch(words[2:3], 0) == 30 * j.n
    begin = time.monotonic()
    j.status(xio.Status.ERR_TIMEOUT, "xio_host_signal_wait: ", j.ctx.host_signal_wait, words[0:1], 99, timeout=0.3)
    assert 0.2 < time.monotonic() - begin < 5
    j.ctx.host_quiet()


def collectives(j):
    t, n = j.world.team(), j.n
    assert (t.rank, t.size) == (j.me, n)
    k = 12
    a, all_, wide = j.filled(k), j.world.zeros(k * n), j.filled(k * n)
    j.ctx.fcollect(t, all_, a)
    j.ctx.synchronize()
    assert (all_.numpy() == np.concatenate([pattern(p, k) for p in range(n)])).all()
    j.ctx.collect(t, all_, a)
    j.ctx.alltoall(t, all_, wide)
    j.ctx.synchronize()
    assert (all_.numpy() == np.concatenate([pattern(p, k * n)[j.me * k:(j.me + 1) * k] for p in range(n)])).all()
    for dtype in ("float32", "int8", "uint64", "float16", "float64"):
        for op, f in (("sum", np.add), ("max", np.maximum), ("min", np.minimum)):
            x, y = j.filled(k, dtype), j.world.zeros(k, dtype)
            j.ctx.reduce(t, y, x, op, stream=j.stream)
            j.ctx.synchronize(j.stream)
            assert (y.numpy() == f.reduce([pattern(p, k, dtype) for p in range(n)])).all(), (dtype, op)
    b = j.filled(k)
    j.ctx.broadcast(t, b, a, root=n - 1)
    part = j.world.zeros(k)
    j.ctx.reduce_scatter(t, part, wide)
    j.ctx.barrier(t)
    j.ctx.sync(t.channel(1))
    j.ctx.synchronize()
    if j.me != n - 1:
        assert (b.numpy() == pattern(n - 1, k)).all()
    assert (part.numpy() == sum(pattern(p, k * n)[j.me * k:(j.me + 1) * k] for p in range(n))).all()
    sizes, places = j.world.zeros(n, "uint64"), j.world.zeros(n, "uint64")
    sizes.numpy()[...], places.numpy()[...] = 4 * k, 4 * k * np.arange(n)
    j.world.barrier()
    j.ctx.alltoallv(t, all_, places, sizes, wide, places, sizes)
    j.ctx.synchronize()
    assert (all_.numpy() == np.concatenate([pattern(p, k * n)[j.me * k:(j.me + 1) * k] for p in range(n)])).all()
    back = j.world.team(list(reversed(range(n))))
    assert back.rank == n - 1 - j.me and back.translate(0, t) == n - 1
    alone = t.split(0, 1, 1)
    assert (alone.size, alone.rank) == ((1, 0) if j.me == 0 else (0, -1))
    assert j.world.team_shared().size == n and j.world.team_same_local_rank().size == 1
    j.raises(xio.XioError, "the team is empty" if j.me else "channel 4 is not", alone.channel, 4)
    assert t.device and j.ctx.device
    t2 = j.world.team()
    t2.destroy()
    j.status(xio.Status.ERR_STATE, "destroyed", j.ctx.sync, t2)


def arrays(j):
    a = j.filled((4, 6), "int32")
    v = np.asarray(a)
    assert v.flags.writeable and v.ctypes.data == a.address and v.shape == (4, 6)
    assert len(a) == 4 and a.ndim == 2 and a.size == 24 and a.nbytes == 96 and a.dtype == "int32"
    assert (a[1:3].numpy() == v[1:3]).all() and (a[-1].numpy() == v[3]).all()
    assert (a.reshape(24).numpy() == v.ravel()).all() and a.view("uint8").shape == (96,)
    assert np.array(a, dtype="float64").dtype == np.float64
    t = np.from_dlpack(a)
    assert t.ctypes.data == a.address and (t == v).all() and t.dtype == v.dtype
    for dtype in ("bool", "int8", "uint16", "float16", "float64", "complex64", np.float32, np.dtype("int64"), float, int):
        x = j.world.zeros((2, 0, 3), dtype)
        assert x.numpy().shape == (2, 0, 3)
        if dtype != "bool":  # which older numpys do not take
            assert np.from_dlpack(x).dtype == x.numpy().dtype
    p = j.world.peer(a, j.next)
    if p is not None:
        assert (p.numpy() == pattern(j.next, (4, 6), "int32")).all()
    j.raises(IndexError, "row 4 of 4", a.__getitem__, 4)
    j.raises(IndexError, "step 1", a.__getitem__, slice(0, 4, 2))
    j.raises(TypeError, "bfloat16", j.world.zeros(4, "bfloat16").numpy)
    j.raises(TypeError, "no arrays of", j.world.zeros, 4, "string")
    j.raises(AttributeError, "no GPU", lambda: a.__cuda_array_interface__)
    j.raises(BufferError, "no copies", a.__dlpack__, copy=True)


def dropped(j):
    """A heap of 4 MiB: arrays of 1 MiB are dropped on each PE in its own time, and are freed once all have."""
    w = j.world
    for i in range(12):
        x = w.zeros(1 << 18)
        x.numpy()[...] = i
        if j.me == i % j.n:
            del x
    keep = w.zeros(1 << 18)
    if j.me == 0:
        del keep  # the others keep it: it stays
        gc.collect()
    first = w.empty(1 << 18)
    if j.me:
        assert (keep.numpy() == 0).all()
        del keep
    v = first.numpy()[5:9]
    v[...] = 3
    at = first.address
    del first
    gc.collect()
    w.collect()
    # The view holds it.
    other = w.empty(1 << 18)
    assert other.address != at and (v == 3).all()
    del v, other
    gc.collect()
    assert w.collect() == 2 and w.collect() == 0
    gc.disable()
    for _ in range(8):
        cycle = [w.zeros(1 << 18)]
        cycle.append(cycle)
    gc.enable()
    cycle = [w.zeros(1 << 18)]
    cycle.append(cycle)
    del cycle
    if j.me == 0:
        gc.collect()
    w.collect()
    j.status(xio.Status.ERR_NO_MEMORY, "raise XIO_HEAP_SIZE", w.zeros, 1 << 22)
    w.zeros(3 << 16)


def storage(j):
    a, b = j.filled(4096, "uint8"), j.world.zeros(4096, "uint8")
    with tempfile.TemporaryDirectory() as folder:
        with j.world.storage(f"file:{folder}/drive", bytes=1 << 20, create=True) as s:
            assert s.nbytes == 1 << 20 and s.block_bytes == 512
            j.ctx.write(a, s, 8192)
            j.ctx.storage_sync(s)
            j.ctx.read(b, s, 8192)
            j.ctx.synchronize()
            assert (b.numpy() == a.numpy()).all()
            j.status(xio.Status.ERR_ARG, "end behind", j.ctx.write, a, s, 1 << 20)
            s.grow((1 << 20) + 4001)
            assert s.nbytes == (1 << 20) + 4001
            j.ctx.write(a[95:], s, 1 << 20)
            j.ctx.read(b[95:], s, 1 << 20)
            j.ctx.synchronize()
            assert (b.numpy() == a.numpy()).all()
        j.status(xio.Status.ERR_STATE, "closed", j.ctx.storage_sync, s)
        j.status(xio.Status.ERR_IO, "check the path", j.world.storage, f"file:{folder}/none")


def mistakes(j):
    w, c, S = j.world, j.ctx, xio.Status
    a, b, sig, t = j.filled(8), w.zeros(8), w.signal(), w.team()
    foreign = np.zeros(8, "float32")
    c.put(b, a, j.me, stream=0)
    j.status(S.ERR_PE, "PE", c.put, b, a, j.n)
    j.status(S.ERR_PE, "PE -1", c.get, b, a, -1)
    j.raises(OverflowError, "pe is", c.put, b, a, 2**32)
    j.raises(TypeError, "", c.put, b, a, 0.5)
    j.status(S.ERR_NOT_SYMMETRIC, "dst", c.put, foreign, a, 0)
    j.status(S.ERR_NOT_SYMMETRIC, "dst", c.host_put, foreign, a, 0)
    j.raises(ValueError, "dst has 32 bytes and src 16", c.put, b, a[0:4], 0)
    j.raises(ValueError, "not contiguous", c.put, b[0:4], a.numpy()[::2], 0)
    fixed = b.numpy()
    fixed.flags.writeable = False
    j.raises(ValueError, "read-only", c.put, fixed, a, 0)
    j.raises(TypeError, "give an array of", c.put, 4096, a, 0)
    j.raises(TypeError, "give an array of", c.put, None, a, 0)
    j.raises(OverflowError, "value is", c.signal_wait, sig, 2**64)
    j.raises(OverflowError, "value is", c.host_atomic_fetch_add, sig, -1, 0)
    j.raises(ValueError, "one word", c.signal_wait, a, 1)
    j.raises(ValueError, "give one of eq", c.signal_wait, sig, 1, "==")
    j.raises(ValueError, "give one of sum", c.reduce, t, b, a, "mean")
    j.raises(TypeError, "one type", c.reduce, t, b, a.view("int32"))
    j.status(S.ERR_ARG, "for integers", c.reduce, t, b, a, "xor")
    j.raises(ValueError, "for each of", c.fcollect, t, b, a)
    j.status(S.ERR_ARG, "root is", c.broadcast, t, b, a, j.n)
    j.raises(TypeError, "is no stream", c.put, b, a, 0, stream="first")
    j.raises(TypeError, "is no stream", c.put, b, a, 0, stream=True)
    j.status(S.ERR_IO, "does not take it", c.put, b, a, 0, stream=12345)
    j.status(S.ERR_IO, "synchronize", c.synchronize, 12345)
    j.raises(TypeError, "colour", c.put, b, a, 0, colour=1)
    j.raises(OverflowError, "workgroups", c.put, b, a, 0, workgroups=-1)
    j.status(S.ERR_CONFIG, "at most 1024", c.put, b, a, 0, workgroups=5000)
    j.raises(ValueError, "timeout", c.quiet, timeout=0)
    j.raises(OverflowError, "a dimension", w.zeros, -1)
    j.raises(OverflowError, "the size in bytes", w.zeros, (2**40, 2**40))
    j.raises(OverflowError, "a dimension", w.zeros, 2**70)
    j.raises(ValueError, "route is", w.context, route="air")
    j.raises(ValueError, "128", xio.World, unique_id=b"short", rank=0, size=1)
    closed = xio.Stream()
    closed.close()
    closed.close()
    j.status(S.ERR_STATE, "closed", c.put, b, a, 0, stream=closed)
    gone = w.context()
    gone.destroy()
    j.status(S.ERR_STATE, "destroyed", gone.quiet)
    j.status(S.ERR_STATE, "destroyed", gone.destroy)
    j.status(S.ERR_STATE, "destroyed", gone.host_quiet)
    # A call that waits in vain, and those behind it.
    begin = time.monotonic()
    c.signal_wait(sig, 1, timeout=0.3, stream=j.stream)
    for _ in range(20):
        c.put(b, a, j.me, stream=j.stream)
    j.status(S.ERR_TIMEOUT, "", c.synchronize, j.stream)
    assert time.monotonic() - begin < 5 and isinstance(j.raises(RuntimeError, "", c.check), xio.XioTimeout)
    c.clear()
    c.put(b, a, j.me, stream=j.stream)
    c.synchronize(j.stream)
    w.register(foreign)
    w.unregister(foreign)
    j.status(S.ERR_NOT_REGISTERED, "", w.unregister, foreign)


def forked(j):
    """A child has no world, and its end does nothing to the parent's."""
    a = j.filled(8)
    child = os.fork()
    if child == 0:
        ok = False
        try:
            j.status(xio.Status.ERR_STATE, "fork", j.ctx.host_quiet)
            j.status(xio.Status.ERR_STATE, "fork", j.world.zeros, 4)
            ok = (a.numpy() == pattern(j.me, 8)).all()
            del a
            gc.collect()
        finally:
            os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    j.ctx.host_put(a, a, j.me)


def closing(j):
    """Views that one PE has left keep the heap on all of them; a second world is made all the same."""
    a = j.filled(100)
    left = a.numpy() if j.me == 0 else None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        j.world.close()
    assert [w.category for w in caught] == [ResourceWarning]
    if j.me == 0:
        assert (left == pattern(0, 100)).all()
    j.status(xio.Status.ERR_STATE, "was closed", j.world.zeros, 4)
    j.status(xio.Status.ERR_STATE, "was closed", j.ctx.quiet)
    j.world.close()


def ids(_):
    """A world by unique id, passed by a file."""
    path, rank = sys.argv[2], int(os.environ["XIO_TCP_RANK"])
    if rank == 0:
        with open(path + ".new", "wb") as f:
            f.write(xio.unique_id())
        os.rename(path + ".new", path)
    while not os.path.exists(path):
        time.sleep(0.02)
    with open(path, "rb") as f:
        kept = f.read()
    for name in list(os.environ):
        if name.startswith("XIO_TCP"):
            del os.environ[name]
    with xio.World(unique_id=kept, rank=rank, size=2, heap_bytes=8 << 20, options={"XIO_RING_DEPTH": 64}) as w:
        assert (w.rank, w.size) == (rank, 2)
        a = w.zeros(4)
        with w._lock:
            pass
    assert w.closed and a.dtype == "float32"


def one_raises(j):
    """The others end by their deadline, and nobody hangs in __exit__."""
    with j.world:
        if j.me == 0:
            raise ValueError("on purpose")
        try:
            j.world.zeros(4)
        except xio.XioError as e:
            assert e.status in (xio.Status.ERR_TIMEOUT, xio.Status.ERR_PEER)
            sys.exit(0)


def times(j):
    a, b = j.filled(8), j.world.zeros(8)
    count = 2000
    for name, call in (("put", lambda: j.ctx.put(b, a, j.me, stream=j.stream)), ("host_put", lambda: j.ctx.host_put(b, a, j.me))):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        took = time.perf_counter() - begin
        j.ctx.synchronize(j.stream)
        print(f"PE {j.me}: {name} {took / count * 1e6:.1f} us a call")
    j.world.barrier()


def main():
    cases = sys.argv[1].split(",")
    if cases != ["ids"]:
        j = Job(**{"dropped": {"heap_bytes": 4 << 20}, "one_raises": {"timeout": 2}}.get(cases[0], {}))
    for case in cases:
        globals()[case](None if case == "ids" else j)
        print(f"done with {case};", flush=True)
    if cases[-1] not in ("one_raises", "closing", "ids"):
        gc.collect()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            j.world.close()


main()
