# SPDX-License-Identifier: MIT
"""xio.torch below an unmodified PyTorch, which starts its ranks without a launcher: `make check-torch` has one."""
import random
import subprocess
import sys

import pytest

from conftest import HERE, environment

torch = pytest.importorskip("torch")
symm_mem = pytest.importorskip("torch.distributed._symmetric_memory")
if not hasattr(symm_mem, "set_backend"):
    pytest.skip(f"PyTorch {torch.__version__} has no choice of backends", allow_module_level=True)


def run(n, cases, **changed):
    port = str(random.randrange(20000, 30000))
    ranks = [subprocess.Popen([sys.executable, str(HERE / "torch_ranks.py"), cases], text=True,
                              env=environment(PORT=port, RANK=str(i), WORLD_SIZE=str(n), **changed),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for i in range(n)]
    try:
        said = [rank.communicate(timeout=300)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    text = "\n".join(said)
    for case in cases.split(","):
        assert text.count(f"done with {case};") == n, text[-6000:]
    assert [rank.returncode for rank in ranks] == [0] * n, text[-6000:]


@pytest.mark.parametrize("n", [2, 4, 8])
def test_ranks(n):
    run(n, "handles,groups,mistakes,late,dropped" if n != 8 else "handles,groups,dropped")


@pytest.mark.parametrize("route", ["rdma", "sdma"])
def test_routes(route):
    run(2, "handles,groups,late", XIO_ROUTE=route)
    run(4, "handles", XIO_ROUTE=route)


def test_a_rank_dies():
    run(3, "dead", TIMEOUT="2")
