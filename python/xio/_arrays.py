# SPDX-License-Identifier: MIT
"""Arrays in the symmetric heap, and the memory of other libraries' arrays."""
import atexit
import ctypes as C
import math
import operator
import weakref
from typing import TYPE_CHECKING, Any, Dict, NamedTuple, Optional, Tuple, Union

if TYPE_CHECKING:
    from ._world import World

Shape = Union[int, Tuple[int, ...]]


class Type(NamedTuple):
    name: str
    bytes: int
    typestr: str                # of the array interface
    dlpack: Optional[int]       # kDLInt ...
    reduces: Optional[str]      # in ENUMS["XIO_"]


TYPES: Dict[str, Type] = {t.name: t for t in [
    Type("bool", 1, "|b1", 6, None),
    Type("int8", 1, "|i1", 0, "int8"), Type("uint8", 1, "|u1", 1, "uint8"),
    Type("int16", 2, "<i2", 0, "int16"), Type("uint16", 2, "<u2", 1, "uint16"),
    Type("int32", 4, "<i4", 0, "int32"), Type("uint32", 4, "<u4", 1, "uint32"),
    Type("int64", 8, "<i8", 0, "int64"), Type("uint64", 8, "<u8", 1, "uint64"),
    Type("float16", 2, "<f2", 2, "half"), Type("bfloat16", 2, "<V2", 4, "bfloat16"),
    Type("float32", 4, "<f4", 2, "float"), Type("float64", 8, "<f8", 2, "double"),
    Type("complex64", 8, "<c8", 5, None), Type("complex128", 16, "<c16", 5, None)]}
_OF_TYPESTR = {t.typestr: t for t in TYPES.values()}
_OTHER_NAMES = {"float": "float64", "int": "int64", "half": "float16", "double": "float64"}


def type_of(dtype: Any) -> Type:
    """Of a name, a type of Python, numpy, torch or JAX."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    name = str(name).rpartition(".")[2]
    found = TYPES.get(_OTHER_NAMES.get(name, name)) or _OF_TYPESTR.get(name)
    if found is None:
        raise TypeError(f"xio has no arrays of {dtype!r}: give one of {', '.join(TYPES)}")
    return found


def integer(value: Any, low: int, high: int, what: str) -> int:
    """C would take a number that is too large modulo its own range."""
    n = operator.index(value)
    if not low <= n <= high:
        raise OverflowError(f"{what} is {n}, not one of {low} to {high}")
    return n


def unsigned64(value: Any, what: str = "value") -> int:
    return integer(value, 0, 2**64 - 1, what)


class Block:
    """What the heap holds for arrays, their parts and other libraries' views. Dropped with the last of them."""

    def __init__(self, world: "World", address: int) -> None:
        self.world, self.address = world, address
        # No call of the library: the garbage collector is not collective.
        weakref.finalize(self, world._dropped.append, address).atexit = False


class View:
    """What numpy keeps as the owner of a view."""

    def __init__(self, block: Block, interface: Dict[str, Any]) -> None:
        self.block, self.__array_interface__ = block, interface
        block.world._views.add(self)


class Array:
    """A block of the symmetric heap, or a part of one, with a shape and a type; contiguous, in C's order. It lives as
    long as anything names it; the block is freed by a later collective allocation that all PEs reach without it."""

    __slots__ = ("block", "address", "shape", "dtype", "nbytes", "_type", "__weakref__")

    def __init__(self, block: Block, address: int, shape: Tuple[int, ...], kind: Type) -> None:
        self.block, self.address, self.shape, self._type = block, address, shape, kind
        self.dtype: str = kind.name
        self.nbytes: int = math.prod(shape) * kind.bytes

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"xio.Array(shape={self.shape}, dtype={self.dtype}, address={self.address:#x})"

    def __getitem__(self, key: Union[int, slice]) -> "Array":
        """A part by the first axis: a[3], a[3:7]."""
        n = len(self)
        row = self.nbytes // n if n else 0
        if isinstance(key, slice):
            first, last, step = key.indices(n)
            if step != 1:
                raise IndexError("a part of a symmetric array is contiguous: give a slice with step 1")
            count = max(0, last - first)
            return Array(self.block, self.address + first * row, (count,) + self.shape[1:], self._type)
        i = operator.index(key)
        if not -n <= i < n:
            raise IndexError(f"row {i} of {n}")
        return Array(self.block, self.address + i % n * row, self.shape[1:], self._type)

    def reshape(self, *shape: int) -> "Array":
        if math.prod(shape) != self.size or min(shape, default=0) < 0:
            raise ValueError(f"{self.shape} does not become {shape}")
        return Array(self.block, self.address, tuple(shape), self._type)

    def view(self, dtype: Any) -> "Array":
        """The same bytes in one dimension of another type."""
        kind = type_of(dtype)
        if self.nbytes % kind.bytes:
            raise ValueError(f"{self.nbytes} bytes are no whole number of {kind.name}")
        return Array(self.block, self.address, (self.nbytes // kind.bytes,), kind)

    # --- for other libraries ---

    def _interface(self, version: int) -> Dict[str, Any]:
        return {"shape": self.shape, "typestr": self._type.typestr, "data": (self.address, False), "version": version}

    def numpy(self) -> Any:
        """A numpy array of the same memory, where the host reaches it."""
        import numpy

        if not self.block.world.host_reaches_heap:
            raise TypeError("the heap is in the GPU's memory, which numpy does not reach: use DLPack, or XIO_HEAP_KIND=host")
        if self.dtype == "bfloat16":
            raise TypeError('numpy has no bfloat16: take view("uint16").numpy()')
        return numpy.asarray(View(self.block, self._interface(3)))

    # There is no __array_interface__: numpy would take the array for the owner, and no one could tell a view that is
    # left from the array itself when the world is closed.
    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        found = self.numpy()
        if dtype is not None and found.dtype != dtype:
            found = found.astype(dtype)
        return found.copy() if copy else found

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        if self.block.world.platform == "host":
            raise AttributeError("this libxio is for no GPU: take numpy() or DLPack")
        self.block.world._views.add(self)
        return dict(self._interface(3), stream=None)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return self.block.world._dlpack_device

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
                   copy: Optional[bool] = None) -> Any:
        if copy:
            raise BufferError("xio gives no copies: copy the tensor")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"the array is on device {self.__dlpack_device__()}, and not on {tuple(dl_device)}")
        return _export(self)


# --- DLPack ------------------------------------------------------------------------------------------
# The struct belongs to the consumer, who calls its deleter.


class _Tensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("device_type", C.c_int32), ("device_id", C.c_int32), ("ndim", C.c_int32),
                ("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.c_void_p),
                ("strides", C.c_void_p), ("byte_offset", C.c_uint64), ("manager", C.c_void_p), ("deleter", C.c_void_p)]


_NAME = C.create_string_buffer(b"dltensor")  # capsules keep its address
_exported: Dict[int, Tuple[_Tensor, Any, View]] = {}
_delete = C.CFUNCTYPE(None, C.c_void_p)(lambda p: _exported.pop(p, None) and None)
_new_capsule = C.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = C.py_object, [C.c_void_p, C.c_void_p, C.c_void_p]


def _export(array: Array) -> Any:
    n = array.ndim
    strides = [math.prod(array.shape[i + 1:]) for i in range(n)]
    numbers = (C.c_int64 * (2 * n + 1))(*array.shape, *strides)
    kind, device = array._type, array.__dlpack_device__()
    at = C.addressof(numbers)
    t = _Tensor(array.address, device[0], device[1], n, kind.dlpack, 8 * kind.bytes, 1, at, at + 8 * n, 0, None,
                C.cast(_delete, C.c_void_p))
    _exported[C.addressof(t)] = (t, numbers, View(array.block, {}))
    return _new_capsule(C.addressof(t), C.addressof(_NAME), None)


@atexit.register
def _let_go() -> None:
    """A tensor may outlive the interpreter: then nothing of it is called, and its struct stays."""
    keep = C.pythonapi.Py_IncRef
    keep.argtypes = [C.py_object]
    keep(_NAME)
    for t, numbers, _ in list(_exported.values()):
        t.deleter = None
        keep(t)
        keep(numbers)


# --- Any memory --------------------------------------------------------------------------------------


class Memory(NamedTuple):
    address: int
    nbytes: int
    type: Optional[Type]
    readonly: bool


def memory_of(obj: Any, what: str) -> Memory:
    """Of an array of xio, numpy, torch, CuPy or any other library with one of the array interfaces."""
    if isinstance(obj, Array):
        return Memory(obj.address, obj.nbytes, obj._type, False)
    found = getattr(obj, "__cuda_array_interface__", None) if not hasattr(obj, "data_ptr") else None
    if found is None:
        found = getattr(obj, "__array_interface__", None)
    if found is not None:
        if found.get("strides") is not None and not _is_contiguous(found):
            raise ValueError(f"{what} is not contiguous: give a contiguous array")
        kind = _OF_TYPESTR.get(found["typestr"])
        bytes_each = int(found["typestr"][2:])
        return Memory(found["data"][0] or 0, math.prod(found["shape"]) * bytes_each, kind, found["data"][1])
    if hasattr(obj, "data_ptr"):  # torch, whose interface does not do for tensors that need gradients
        if not obj.is_contiguous():
            raise ValueError(f"{what} is not contiguous: give a contiguous tensor")
        return Memory(obj.data_ptr(), obj.numel() * obj.element_size(), type_of(obj.dtype), False)
    raise TypeError(f"{what} is {type(obj).__name__}: give an array of xio, numpy, torch or CuPy")


def _is_contiguous(interface: Dict[str, Any]) -> bool:
    expected = int(interface["typestr"][2:])
    for n, stride in zip(reversed(interface["shape"]), reversed(interface["strides"])):
        if n != 1 and stride != expected:
            return False
        expected *= n
    return True
