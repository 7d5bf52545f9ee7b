# SPDX-License-Identifier: MIT
"""XIO for Python: symmetric arrays on several GPUs, and the calls of xio/stream.h and xio/host.h (docs/python.md).

    import xio

    with xio.World() as world:
        ctx, a, arrived = world.context(), world.zeros(1000, "float32"), world.signal()
        if world.rank == 0:
            ctx.put_signal(a, a, arrived, 1, pe=1)
        elif world.rank == 1:
            ctx.signal_wait(arrived, 1)
        ctx.synchronize()
"""
from ._arrays import Array
from ._context import Context
from ._errors import Status, XioError, XioLibraryError, XioTimeout
from ._runtime import Stream
from ._world import Storage, Team, World, unique_id, version

__version__ = "0.1.0"
__all__ = ["Array", "Context", "Status", "Storage", "Stream", "Team", "World", "XioError", "XioLibraryError",
           "XioTimeout", "unique_id", "version"]
