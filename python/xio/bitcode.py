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
    """The folder of xio/xio.h: XIO_INCLUDE, else what pkg-config knows, else that of the tree or of the prefix."""
    found = os.environ.get("XIO_INCLUDE", "")
    if not found and shutil.which("pkg-config"):
        asked = subprocess.run(["pkg-config", "--variable=includedir", "xio"], text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
        found = asked.stdout.strip()
    for folder in [found, str(_SOURCE.parents[2] / "include"), "/usr/local/include", "/usr/include"]:
        if folder and os.path.exists(os.path.join(folder, "xio", "xio_device.hpp")):
            return folder
    raise XioLibraryError("xio.bitcode: no xio/xio_device.hpp: install XIO's headers (libxio-dev), or set XIO_INCLUDE "
                          "to their folder")


def _command(arch: str, headers: str, out: str) -> List[str]:
    nvidia = arch.startswith("sm_")
    names = [os.environ.get("XIO_BITCODE_CXX", "")] if "XIO_BITCODE_CXX" in os.environ else \
        (["clang++-22", "clang++"] if nvidia else ["hipcc", "/opt/rocm/bin/hipcc"])
    compiler = next((path for path in map(shutil.which, names) if path), None)
    if compiler is None:
        raise XioLibraryError(f"xio.bitcode: no {' or '.join(names)}, which makes bitcode for {arch}: install it, or set "
                              "XIO_BITCODE_CXX to a compiler")
    common = [compiler, "-std=c++20", "-O2", "-w", f"-I{headers}", "--cuda-device-only", "-fgpu-rdc", "-emit-llvm", "-c",
              str(_SOURCE), "-o", out]
    if nvidia:
        cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
        return common + ["-x", "cuda", "-DXIO_PLATFORM_CUDA=1", f"--cuda-gpu-arch={arch}", f"--cuda-path={cuda}"]
    return common + ["-DXIO_PLATFORM_HIP=1", f"--offload-arch={arch}"]


def bitcode(arch: str) -> str:
    """The file for a GPU such as "gfx942" or "sm_90": compiled when it is first asked for, by hipcc or clang, and kept in
    XIO_CACHE (~/.cache/xio). It is made anew for another compiler, another set of headers and another XIO."""
    headers = _headers()
    seen = hashlib.sha256(_SOURCE.read_bytes())
    for folder in ("", "device", "wire"):
        for file in sorted(pathlib.Path(headers, "xio", folder).glob("**/*.h*" if folder else "*.h*")):
            seen.update(file.read_bytes())
    seen.update(" ".join(_command(arch, headers, "")).encode())
    cache = pathlib.Path(os.environ.get("XIO_CACHE") or pathlib.Path.home() / ".cache" / "xio")
    kept = cache / f"xio_device_{arch}_{seen.hexdigest()[:16]}.bc"
    if kept.exists():
        return str(kept)
    cache.mkdir(parents=True, exist_ok=True)
    # Ranks may come here together: each makes its own, and the last to rename is as good as the first.
    with tempfile.TemporaryDirectory(dir=cache) as work:
        out = os.path.join(work, "out.bc")
        made = subprocess.run(_command(arch, headers, out), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if made.returncode != 0:
            raise XioLibraryError(f"xio.bitcode: {' '.join(_command(arch, headers, out))}: {made.stdout[-2000:]}")
        os.replace(out, kept)
    return str(kept)
