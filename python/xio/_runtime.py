# SPDX-License-Identifier: MIT
"""The GPU's runtime, as far as this package needs it, out of the libraries that libxio was linked with."""
import ctypes as C
import threading
import weakref
from typing import Any, Optional, Tuple

from ._errors import Status, XioError, XioLibraryError
from ._library import library

_NON_BLOCKING = 1  # hipStreamNonBlocking, cudaStreamNonBlocking


class Runtime:
    def __init__(self) -> None:
        file = library().file
        # On the host platform libxio has HIP's calls by names that no HIP has.
        for self.platform, self._prefix in (("host", "xio_host_hip"), ("hip", "hip"), ("cuda", "cuda")):
            if hasattr(file, self._prefix + "StreamSynchronize"):
                break
        else:
            raise XioLibraryError(f"xio: {library().name} brings no runtime of a GPU along")
        self._text = getattr(file, self._prefix + "GetErrorString")
        self._text.restype, self._text.argtypes = C.c_char_p, [C.c_int]
        self._create = getattr(file, self._prefix + "StreamCreateWithFlags")
        self._create.argtypes = [C.c_void_p, C.c_uint]
        self._synchronize = getattr(file, self._prefix + "StreamSynchronize")
        self._synchronize.argtypes = [C.c_void_p]
        self._destroy = getattr(file, self._prefix + "StreamDestroy")
        self._destroy.argtypes = [C.c_void_p]

    def _must(self, code: int, what: str) -> None:
        if code != 0:
            raise XioError(Status.ERR_IO, f"{what}: the GPU's runtime says: {self._text(code).decode(errors='replace')}")

    def create_stream(self) -> int:
        out = C.c_void_p()
        self._must(self._create(C.byref(out), _NON_BLOCKING), "Stream()")
        return out.value or 0

    def synchronize(self, stream: Optional[int]) -> None:
        self._must(self._synchronize(stream), "synchronize")

    def destroy_stream(self, stream: int) -> None:
        self._destroy(stream)


_lock = threading.Lock()
_runtime: Optional[Runtime] = None


def runtime() -> Runtime:
    global _runtime
    if _runtime is None:
        with _lock:
            if _runtime is None:
                _runtime = Runtime()
    return _runtime


class Stream:
    """A stream of the world's GPU that does not wait for the default one. Make it after the world."""

    def __init__(self) -> None:
        self._open: Optional[int] = runtime().create_stream()
        self._end = weakref.finalize(self, runtime().destroy_stream, self._open)
        self._end.atexit = False  # by then the runtime may be gone

    @property
    def handle(self) -> int:
        if self._open is None:
            raise XioError(Status.ERR_STATE, "the stream was closed; give one that is open")
        return self._open

    def synchronize(self) -> None:
        """Waits for the work in it. Failures of calls are the context's: see Context.synchronize."""
        runtime().synchronize(self.handle)

    def close(self) -> None:
        self._open = None
        self._end()

    def __cuda_stream__(self) -> Tuple[int, int]:
        return 0, self.handle


def handle_of(stream: Any) -> Optional[int]:
    """None, an address, or an object with __cuda_stream__, or with torch's or CuPy's attribute."""
    if stream is None:
        return None
    if type(stream) is Stream:
        return stream._open or stream.handle
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    found = getattr(stream, "__cuda_stream__", None)
    if found is not None:
        return int((found() if callable(found) else found)[1])
    for name in ("cuda_stream", "ptr", "handle"):
        found = getattr(stream, name, None)
        if isinstance(found, int):
            return found
    raise TypeError(f"{type(stream).__name__} is no stream: give None, an address, or a stream of xio, torch or CuPy")
