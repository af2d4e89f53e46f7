"""Arrays of others as rows of the library, without a copy: NumPy's, and all that speak DLPack."""
from __future__ import annotations

import ctypes as c
import functools
import sys

import numpy as np

from . import _checks
from . import _structs as s
from ._library import Error

DTYPES = {"f32": s.F32, "f64": s.F64, "f16": s.F16, "bf16": s.BF16}
BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i32": 4, "i64": 8}
NUMPY = {np.dtype(long): short for long, short in (
    ("float64", "f64"), ("float32", "f32"), ("float16", "f16"), ("int32", "i32"), ("int64", "i64"))}
NAMES = {short: long for long, short in NUMPY.items()}
CPU, CUDA, CUDA_HOST, ROCM, CUDA_MANAGED = 1, 2, 3, 10, 13  # dlpack.h: DLDeviceType
DEVICES = {CPU: "host", CUDA_HOST: "host", CUDA: "cuda", CUDA_MANAGED: "cuda", ROCM: "hip"}
CODES = {(0, 32, 1): "i32", (0, 64, 1): "i64", (2, 64, 1): "f64", (2, 32, 1): "f32",
         (2, 16, 1): "f16", (4, 16, 1): "bf16"}  # DLDataTypeCode, bits, lanes


class _Tensor(c.Structure):
    """DLTensor, which starts what the capsule "dltensor" holds."""
    _fields_ = [("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32),
                ("ndim", c.c_int32), ("code", c.c_uint8), ("bits", c.c_uint8),
                ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)),
                ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64)]


class _NumpyArray(c.Structure):
    """PyArrayInterface, which ndarray.__array_struct__ holds."""
    _fields_ = [("two", c.c_int), ("nd", c.c_int), ("kind", c.c_char), ("itemsize", c.c_int),
                ("flags", c.c_int), ("shape", c.c_void_p), ("strides", c.c_void_p),
                ("data", c.c_void_p)]


class _Exchange(c.Structure):
    """DLPackExchangeAPI: a type's functions, for C, that tell where an array lies."""
    _fields_ = [("major", c.c_uint32), ("minor", c.c_uint32), ("previous", c.c_void_p),
                ("allocate", c.c_void_p), ("managed_from", c.c_void_p), ("to", c.c_void_p),
                ("tensor_from", c.c_void_p), ("stream_of", c.c_void_p)]


_pointer_of = c.pythonapi.PyCapsule_GetPointer
_pointer_of.argtypes, _pointer_of.restype = [c.py_object, c.c_char_p], c.c_void_p
_TensorFrom = c.PYFUNCTYPE(c.c_int, c.py_object, c.POINTER(_Tensor))
_StreamOf = c.PYFUNCTYPE(c.c_int, c.c_int32, c.c_int32, c.POINTER(c.c_void_p))
_DATA = _NumpyArray.data.offset


def _address_of_any(array):
    capsule = array.__array_struct__  # array.ctypes.data takes twice as long
    return c.c_void_p.from_address(_pointer_of(capsule, None) + _DATA).value or 0


def _address_of_object(array):
    return c.c_void_p.from_address(id(array) + object.__basicsize__).value or 0


# Where an array's elements lie.  In CPython it is the first member of the array's object, which what
# is compiled with NumPy's headers reads, too.
_ONE = np.ones(1)
address = (_address_of_object if sys.implementation.name == "cpython"
           and _address_of_object(_ONE) == _address_of_any(_ONE) else _address_of_any)


@functools.lru_cache(maxsize=64)
def _exchange_of(kind):
    """The two functions of a type that has them, else None.  Of version 1; the others may differ."""
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    if type(capsule).__name__ != "PyCapsule":
        return None
    api = _Exchange.from_address(_pointer_of(capsule, b"dlpack_exchange_api"))
    if api.major != 1 or not api.tensor_from or not api.stream_of:
        return None
    return _TensorFrom(api.tensor_from), _StreamOf(api.stream_of)


class View:
    """Where an array lies: pointer, shape, strides (in elements; None: dense), dtype, and device:
    "host", or a backend and the device's number.  `keep` owns the memory."""

    __slots__ = "what", "writable", "keep", "pointer", "shape", "device", "dtype", "strides", "strange"

    def __init__(self, array, context, what):
        self.what, self.writable = what, True
        if isinstance(array, np.ndarray):
            self._of_numpy(array)
        elif hasattr(array, "__dlpack__"):
            self._of_dlpack(array, context)
        else:
            raise TypeError(f"{what}: {type(array).__name__} is not an array of NumPy, nor one that "
                            "has __dlpack__, nor a list")

    def _of_numpy(self, array):
        if type(array) is not np.ndarray and np.ma.is_masked(array):
            raise ValueError(f"{self.what}: elements are masked; it must have all")
        flags = array.flags
        self.keep, self.device, self.writable = array, "host", flags.writeable
        self.pointer = address(array)
        self.dtype, self.shape, self.strides = NUMPY.get(array.dtype), array.shape, None
        if not flags.aligned:
            raise Error(f"{self.what}: its address is not a multiple of an element's size")
        if not flags.c_contiguous:
            size = max(1, array.itemsize)
            self.strides = [step // size for step in array.strides]
            if any(step % size for step in array.strides):
                raise Error(
                    f"{self.what}: strides of {array.strides} bytes are not whole elements")

    def _of_dlpack(self, array, context):
        is_neg = getattr(array, "is_neg", None)  # PyTorch's: DLPack does not tell
        if is_neg and is_neg():
            raise Error(f"{self.what}: its numbers are still to be negated; give x.resolve_neg()")
        exchange = _exchange_of(type(array))
        tensor = exchange and self._exchanged(array, context, *exchange)
        if not tensor:
            tensor = self._of_capsule(array, context)
        n = tensor.ndim
        backend = DEVICES[tensor.device_type]
        self.device = backend if backend == "host" else f"{backend}:{tensor.device_id}"
        self.pointer = (tensor.data or 0) + tensor.byte_offset
        self.shape = tuple(tensor.shape[:n])
        code = tensor.code, tensor.bits, tensor.lanes
        self.dtype, self.strange = CODES.get(code), code
        self.strides = tensor.strides[:n] if tensor.strides else None

    def _exchanged(self, array, context, tensor_from, stream_of):
        """None where __dlpack__ must wait for another stream, or may have something to refuse."""
        if getattr(array, "requires_grad", False):
            return None
        tensor, stream = _Tensor(), c.c_void_p()
        if tensor_from(array, c.byref(tensor)):
            return None
        kind = DEVICES.get(tensor.device_type)
        if kind != "host" and (kind is None or context.stream is None or stream_of(
                tensor.device_type, tensor.device_id, c.byref(stream)) or
                (stream.value or 0) != context.stream):
            return None
        self.keep = array
        return tensor

    def _of_capsule(self, array, context):
        kind, number = array.__dlpack_device__()
        backend = DEVICES.get(int(kind))
        if backend is None:
            raise Error(f"{self.what}: memory of DLPack's device type {int(kind)} is not known;"
                        " there are host, CUDA and ROCm")
        if backend == "host":
            self.keep = array.__dlpack__()
        else:
            stream = context.stream
            if stream is None:
                raise Error(f"{self.what} is on a GPU: make the context with the stream in which "
                            f"it is computed, clebsch.Context('{backend}:{number}', stream=...)")
            # DLPack's number of CUDA's legacy default stream is 1.
            self.keep = array.__dlpack__(stream=stream or (1 if backend == "cuda" else 0))
        return _Tensor.from_address(_pointer_of(self.keep, b"dltensor"))

    def _named(self):
        """What it holds, for people."""
        return str(self.keep.dtype) if isinstance(self.keep, np.ndarray) else (
            self.dtype or "DLPack's code {} of {} bits, {} lanes".format(*self.strange))

    def is_dense(self):
        """Elements follow each other."""
        step = 1
        for extent, stride in zip(self.shape[::-1], (self.strides or [])[::-1]):
            if extent > 1 and stride != step:
                return False
            step *= extent
        return True

    def expect(self, context, dtypes):
        """The array can be used on this device, and holds this type, or one of these; None: any of
        DTYPES."""
        if self.dtype is None or self.dtype != dtypes:
            wanted = (dtypes,) if isinstance(dtypes, str) else dtypes or tuple(DTYPES)
            if self.dtype not in wanted:
                raise TypeError(
                    f"{self.what} holds {self._named()}; the op takes {' or '.join(wanted)}")
        if self.device not in ("host", context.name):
            raise Error(f"{self.what} is on {self.device}, the op on {context.name}")

    def rows(self, columns):
        """(number of rows or None, stride in elements) of [n][columns], or of one row for all."""
        shape, strides = self.shape, self.strides
        if len(shape) not in (1, 2) or shape[-1] != columns:
            raise ValueError(f"{self.what} has the shape {list(shape)}; it must be "
                             f"[n, {columns}], or [{columns}] for all rows")
        if strides and columns > 1 and strides[-1] != 1 and 0 not in shape:
            raise Error(f"{self.what}: the elements of a row must be adjacent; strides are "
                        f"{list(strides)}")
        if len(shape) == 1:
            return None, 0
        if not strides or shape[0] < 2:
            return shape[0], columns
        if strides[0] < 0:
            raise Error(f"{self.what}: rows go backward in memory")
        return shape[0], strides[0]


def is_list(values):
    return isinstance(values, (list, tuple))


def of_list(what, values, dtype):
    """A list of numbers as an array of NumPy; anything else as it is.  dtype: None is f64."""
    if not is_list(values):
        return values
    if dtype in ("i32", "i64"):
        return _checks.whole(what, values)
    named = NAMES.get(dtype or "f64")
    if named is None:
        raise TypeError(f"{what}: NumPy has no {dtype}, which a list would become")
    return _checks.reals(what, values).astype(named)


def empty(like, shape, dtype):
    """A new array of the kind of `like`: NumPy's for all on the host that are not known."""
    if not isinstance(like, np.ndarray):
        kind = type(like).__module__.partition(".")[0]
        if kind == "torch":
            return like.new_empty(shape)
        if kind == "cupy":
            import cupy
            return cupy.empty(shape, like.dtype)
        if DEVICES.get(int(like.__dlpack_device__()[0])) != "host":
            raise Error(
                f"{type(like).__name__} cannot be made here: give the results' arrays, out=")
    if dtype not in NAMES:
        raise Error(f"NumPy has no {dtype}: give the results' arrays, out=")
    return np.empty(shape, NAMES[dtype])
