# SPDX-License-Identifier: MIT
"""LLVM bitcode of XIO's calls for one GPU, for kernels of Triton and other compilers (docs/python.md)."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import List

from ._errors import XioLibraryError

_SOURCE = pathlib.Path(__file__).with_name("_device.hip")


def _headers() -> str:
    """The folder of xio/xio.h: XIO_PYTHON_INCLUDE, else what pkg-config knows, else that of the tree or of the prefix."""
    found = os.environ.get("XIO_PYTHON_INCLUDE", "")
    if not found and shutil.which("pkg-config"):
        asked = subprocess.run(["pkg-config", "--variable=includedir", "xio"], text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
        found = asked.stdout.strip()
    for folder in [found, str(_SOURCE.parents[2] / "include"), "/usr/local/include", "/usr/include"]:
        if folder and os.path.exists(os.path.join(folder, "xio", "xio_device.hpp")):
            return folder
    raise XioLibraryError("xio.bitcode: no xio/xio_device.hpp: install XIO's headers (libxio-dev), or set XIO_PYTHON_INCLUDE "
                          "to their folder")


def _command(arch: str, headers: str, out: str) -> List[str]:
    nvidia = arch.startswith("sm_")
    names = [os.environ.get("XIO_PYTHON_CXX", "")] if "XIO_PYTHON_CXX" in os.environ else \
        (["clang++-19", "clang++"] if nvidia else ["hipcc", "/opt/rocm/bin/hipcc"])
    compiler = next((path for path in map(shutil.which, names) if path), None)
    if compiler is None:
        raise XioLibraryError(f"xio.bitcode: no {' or '.join(names)}, which makes bitcode for {arch}: install it, or set "
                              "XIO_PYTHON_CXX to a compiler")
    common = [compiler, "-std=c++20", "-O2", "-w", f"-I{headers}", "--cuda-device-only", "-fgpu-rdc", "-emit-llvm", "-c",
              "-x", "cuda" if nvidia else "hip", str(_SOURCE), "-o", out]
    if nvidia:
        cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
        # Triton's modules flush, and the linker wants one word of all.
        return common + ["-fgpu-flush-denormals-to-zero", "-DXIO_PLATFORM_CUDA=1", f"--cuda-gpu-arch={arch}", f"--cuda-path={cuda}",
                         f"-I{os.path.dirname(out)}"]
    return common + ["-DXIO_PLATFORM_HIP=1", f"--offload-arch={arch}"]


def bitcode(arch: str) -> str:
    """The file for a GPU such as "gfx942" or "sm_90": compiled when it is first asked for, by hipcc or clang, and kept in
    XIO_PYTHON_CACHE (~/.cache/xio). It is made anew for another compiler, another set of headers and another XIO. For machines
    without a compiler XIO_PYTHON_BITCODE names a file that was made elsewhere."""
    if os.environ.get("XIO_PYTHON_BITCODE"):
        return os.environ["XIO_PYTHON_BITCODE"]
    headers = _headers()
    seen = hashlib.sha256(_SOURCE.read_bytes())
    for folder in ("", "device", "wire"):
        for file in sorted(pathlib.Path(headers, "xio", folder).glob("**/*.h*" if folder else "*.h*")):
            seen.update(file.read_bytes())
    seen.update(" ".join(_command(arch, headers, "")).encode())
    cache = pathlib.Path(os.environ.get("XIO_PYTHON_CACHE") or pathlib.Path.home() / ".cache" / "xio")
    kept = cache / f"xio_device_{arch}_{seen.hexdigest()[:16]}.bc"
    if kept.exists():
        return str(kept)
    cache.mkdir(parents=True, exist_ok=True)
    # Ranks may come here together: each makes its own, and the last to rename is as good as the first.
    with tempfile.TemporaryDirectory(dir=cache) as work:
        out = os.path.join(work, "out.bc")
        # Older clangs include it, and CUDA 13 has it no more.
        pathlib.Path(work, "texture_fetch_functions.h").touch()
        made = subprocess.run(_command(arch, headers, out), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if made.returncode != 0:
            raise XioLibraryError(f"xio.bitcode: {' '.join(_command(arch, headers, out))}: {made.stdout[-2000:]}")
        os.replace(out, kept)
    return str(kept)
