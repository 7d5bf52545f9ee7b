# SPDX-License-Identifier: MIT
"""xio.triton on GPUs of one machine, a PE each; and the bitcode for AMD GPUs, wherever hipcc is."""
import os
import random
import shutil
import subprocess
import sys

import pytest

import xio
from conftest import HERE, environment
from xio.bitcode import bitcode


def test_bitcode(tmp_path, monkeypatch):
    if not shutil.which("hipcc"):
        pytest.skip("no hipcc")
    monkeypatch.setenv("XIO_PYTHON_CACHE", str(tmp_path))
    made = bitcode("gfx90a")
    assert open(made, "rb").read(4) == b"BC\xc0\xde" and bitcode("gfx90a") == made
    monkeypatch.setenv("XIO_PYTHON_CXX", "no-such-compiler")
    with pytest.raises(xio.XioLibraryError, match="XIO_PYTHON_CXX"):
        bitcode("gfx942")


def test_ranks():
    pytest.importorskip("triton")
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    n, root = max(2, torch.cuda.device_count()), f"127.0.0.1:{random.randrange(20000, 30000)}"
    said, key = [], os.urandom(32).hex()
    pes = [subprocess.Popen([sys.executable, str(HERE / "triton_ranks.py")], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT,
                            env=environment(XIO_BOOTSTRAP="tcp", XIO_TCP_ROOT=root, XIO_TCP_RANK=str(pe),
                                            XIO_TCP_SIZE=str(n), XIO_TCP_KEY=key))
           for pe in range(n)]
    for pe in pes:
        said.append(pe.communicate(timeout=300)[0])
    assert [pe.returncode for pe in pes] == [0] * n and "".join(said).count("done; PE") == n, "\n".join(said)[-6000:]
