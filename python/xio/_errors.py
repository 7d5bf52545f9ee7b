# SPDX-License-Identifier: MIT
"""Statuses of libxio as an enumeration, and failures as exceptions with libxio's sentence."""
import enum


class Status(enum.IntEnum):
    OK = 0
    PENDING = 1
    ERR_ARG = -1
    ERR_PE = -2
    ERR_NOT_SYMMETRIC = -3
    ERR_NOT_REGISTERED = -4
    ERR_NO_MEMORY = -5
    ERR_CONFIG = -6
    ERR_UNSUPPORTED = -7
    ERR_NO_ROUTE = -8
    ERR_TIMEOUT = -9
    ERR_PEER = -10
    ERR_AUTH = -11
    ERR_TRANSPORT = -12
    ERR_STORAGE = -13
    ERR_IO = -14
    ERR_STATE = -15
    ERR_INTERNAL = -16


class XioError(RuntimeError):
    """A call of XIO that failed. `status` says how, `sentence` what failed, on what, why, and what to do."""

    def __init__(self, status: int, sentence: str) -> None:
        try:
            self.status: int = Status(status)
            name = "XIO_" + Status(status).name
        except ValueError:
            self.status = status
            name = f"status {status}"
        self.sentence = sentence
        super().__init__(f"{name}: {sentence}" if sentence else name)

    def __reduce__(self):
        return type(self), (self.status, self.sentence)


class XioTimeout(XioError):
    """XIO_ERR_TIMEOUT: what was waited for did not come."""


class XioLibraryError(ImportError):
    """No libxio, or none that this package was written for."""


def error_of(status: int, sentence: str) -> XioError:
    return (XioTimeout if status == Status.ERR_TIMEOUT else XioError)(status, sentence)
