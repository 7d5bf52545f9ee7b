# SPDX-License-Identifier: MIT
"""libxio that is missing or another one, pip's way to install the package, and how processes end."""
import os
import shlex
import shutil
import sys

import pytest

from conftest import PACKAGE, run, start

TRY = "import xio\ntry:\n    xio.version()\nexcept ImportError as e:\n    print(type(e).__name__, e)\n"


def test_missing():
    found = run([sys.executable, "-c", TRY], XIO_LIBRARY="/nowhere/libxio-host.so.0")
    assert found.returncode == 0 and found.stdout.startswith("XioLibraryError xio: libxio cannot be loaded (/nowhere/")
    assert "set XIO_LIBRARY" in found.stdout


@pytest.mark.parametrize("text, said", [
    ("int nothing;", "has no xio_abi_version: it is no libxio, or older than this package"),
    ("unsigned xio_abi_version(void) { return 77; }", "has the binary interface 77, and this package is for 1"),
    ("unsigned xio_abi_version(void) { return 1; } unsigned long xio_size_of(const char *n) { (void)n; return 8; }",
     "of 8 bytes, and this package knows"),
])
def test_another(tmp_path, text, said):
    library = tmp_path / "libxio-host.so.0"
    (tmp_path / "other.c").write_text(text)
    made = run([*shlex.split(os.environ.get("CC", "cc")), "-shared", "-fPIC", str(tmp_path / "other.c"), "-o", str(library)])
    assert made.returncode == 0, made.stdout
    found = run([sys.executable, "-c", TRY], XIO_LIBRARY=str(library))
    assert found.returncode == 0 and "XioLibraryError" in found.stdout and said in found.stdout, found.stdout


def test_without_numpy(tmp_path):
    (tmp_path / "numpy.py").write_text("raise ImportError('no numpy here')\n")
    found = start(2, "-c", "import sys; sys.path.insert(0, sys.argv[1])\n"
                  "import xio\nw = xio.World()\nc = w.context()\na, b, s = w.zeros(4), w.zeros(4), w.signal()\n"
                  "c.host_put_signal(b, a, s, 1, pe=(w.rank + 1) % w.size)\nc.host_signal_wait(s, 1)\n"
                  "try: a.numpy()\nexcept ImportError as e: print(f'said {e};')\nw.close()\n", tmp_path)
    assert found.returncode == 0 and found.stdout.count("said no numpy here") == 2, found.stdout


def test_pip(tmp_path):
    if run([sys.executable, "-c", "import setuptools, pip"]).returncode != 0:
        pytest.skip("no pip or setuptools")
    source = tmp_path / "source"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    for path in [source, *source.rglob("*")]:
        path.chmod(0o755)  # a tree may be read-only
    found = run([sys.executable, "-m", "pip", "-q", "install", "--no-build-isolation", "--no-deps", "--no-index",
                 "--target", str(tmp_path / "site"), str(source)])
    assert found.returncode == 0, found.stdout
    made = sorted(p.name for p in (tmp_path / "site/xio").iterdir() if p.suffix != ".pyc" and p.is_file())
    assert made == sorted(p.name for p in (PACKAGE / "xio").iterdir() if p.is_file())
    found = run([sys.executable, "-c", "import xio; print(xio.__file__, xio.version())"], PYTHONPATH=str(tmp_path / "site"))
    assert found.returncode == 0 and str(tmp_path) in found.stdout, found.stdout


@pytest.mark.parametrize("n, end, status", [
    (2, "pass", 0),                                       # with arrays, views, tensors and a world that is open
    (1, "sys.exit(3)", 3),
    (1, "raise RuntimeError('on purpose')", 1),
    (2, "ctx.signal_wait(s, 9)", 0),                      # a call in a stream that nobody waits for
    (1, "threading.Thread(target=lambda: time.sleep(0.3) or ctx.host_quiet()).start()", 0),
    (1, "world.close()", 0),                              # with views that are left
])
def test_ends(n, end, status):
    """Nothing hangs, aborts or changes the exit status when the interpreter ends."""
    found = start(n, "-W", "always", "-c", f"""
import sys, threading, time, numpy as np, xio
world = xio.World(timeout=2)
ctx, a, s = world.context(), world.zeros((8, 8)), world.signal()
v, t = a.numpy(), np.from_dlpack(a)
unused = a.__dlpack__()
keep = [v, t]
stream = xio.Stream()
ctx.put(a, a, 0, stream=stream)
ctx.synchronize(stream)
print("ready", flush=True)
{end}
""", seconds=60)
    assert found.stdout.count("ready") == n, found.stdout
    assert (found.returncode != 0) == (status != 0), found.stdout
    for word in ("Segmentation", "terminate called", "Fatal Python", "core dumped"):
        assert word not in found.stdout
