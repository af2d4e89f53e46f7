"""Arrays of others as rows of the library, without a copy: NumPy's, and all that speak DLPack."""
from __future__ import annotations

import ctypes as c

import numpy as np

from . import _checks
from . import _structs as s
from ._library import Error

DTYPES = {"f32": s.F32, "f64": s.F64, "f16": s.F16, "bf16": s.BF16}
BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i32": 4, "i64": 8}
NUMPY = {"float64": "f64", "float32": "f32", "float16": "f16", "int32": "i32", "int64": "i64"}
CPU, CUDA, CUDA_HOST, ROCM, CUDA_MANAGED = 1, 2, 3, 10, 13  # dlpack.h: DLDeviceType
DEVICES = {CPU: "host", CUDA_HOST: "host", CUDA: "cuda", CUDA_MANAGED: "cuda", ROCM: "hip"}
CODES = {(0, 32): "i32", (0, 64): "i64", (2, 64): "f64", (2, 32): "f32", (2, 16): "f16",
         (4, 16): "bf16"}  # DLDataTypeCode, bits


class _Tensor(c.Structure):
    """DLTensor, which starts what the capsule "dltensor" holds."""
    _fields_ = [("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32),
                ("ndim", c.c_int32), ("code", c.c_uint8), ("bits", c.c_uint8),
                ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)),
                ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64)]


_pointer_of = c.pythonapi.PyCapsule_GetPointer
_pointer_of.argtypes, _pointer_of.restype = [c.py_object, c.c_char_p], c.c_void_p


class View:
    """Where an array lies: pointer, shape, strides (in elements), dtype, and device: "host", or a
    backend and the device's number.  `keep` owns the memory."""

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
        if np.ma.is_masked(array):
            raise ValueError(f"{self.what}: elements are masked; it must have all")
        self.keep, self.pointer, self.shape = array, array.ctypes.data, array.shape
        self.device, self.writable = "host", array.flags.writeable
        self.dtype, self.named = NUMPY.get(str(array.dtype)), str(array.dtype)
        self.strides = [step // max(1, array.itemsize) for step in array.strides]
        if any(step % max(1, array.itemsize) for step in array.strides):
            raise Error(f"{self.what}: strides of {array.strides} bytes are not whole elements")
        if not array.flags.aligned:
            raise Error(f"{self.what}: its address is not a multiple of an element's size")

    def _of_dlpack(self, array, context):
        kind, number = array.__dlpack_device__()
        backend = DEVICES.get(int(kind))
        if backend is None:
            raise Error(f"{self.what}: memory of DLPack's device type {int(kind)} is not known;"
                        " there are host, CUDA and ROCm")
        if backend == "host":
            capsule = array.__dlpack__()
        else:
            stream = context.stream
            if stream is None:
                raise Error(f"{self.what} is on a GPU: make the context with the stream in which "
                            f"it is computed, clebsch.Context('{backend}:{number}', stream=...)")
            # DLPack's number of CUDA's legacy default stream is 1.
            capsule = array.__dlpack__(stream=stream or (1 if backend == "cuda" else 0))
        tensor = _Tensor.from_address(_pointer_of(capsule, b"dltensor"))
        n = tensor.ndim
        self.keep, self.device = capsule, "host" if backend == "host" else f"{backend}:{number}"
        self.pointer = (tensor.data or 0) + tensor.byte_offset
        self.shape = tuple(tensor.shape[:n])
        self.dtype = CODES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
        self.named = f"DLPack's code {tensor.code} of {tensor.bits} bits"
        self.strides = tensor.strides[:n] if tensor.strides else _dense(self.shape)

    def expect(self, context, dtypes):
        """The array can be used on this device, and holds one of these types."""
        if self.dtype not in dtypes:
            raise TypeError(f"{self.what} holds {self.named}; the op takes {' or '.join(dtypes)}")
        if self.device not in ("host", context.name):
            raise Error(f"{self.what} is on {self.device}, the op on {context.name}")

    def rows(self, columns):
        """(number of rows or None, stride in elements) of [n][columns], or of one row for all."""
        if len(self.shape) not in (1, 2) or self.shape[-1] != columns:
            raise ValueError(f"{self.what} has the shape {list(self.shape)}; it must be "
                             f"[n, {columns}], or [{columns}] for all rows")
        if columns > 1 and self.strides[-1] != 1 and 0 not in self.shape:
            raise Error(f"{self.what}: the elements of a row must be adjacent; strides are "
                        f"{list(self.strides)}")
        if len(self.shape) == 1:
            return None, 0
        n, stride = self.shape[0], self.strides[0]
        if n > 1 and stride < 0:
            raise Error(f"{self.what}: rows go backward in memory")
        return n, stride if n > 1 else columns

    def extent(self, n, stride, columns):
        """Bytes from the first element to the end of the last."""
        return ((n - 1) * stride + columns) * BYTES[self.dtype]


def is_list(values):
    return isinstance(values, (list, tuple))


def of_list(what, values, dtype):
    """A list of numbers as an array of NumPy; anything else as it is.  dtype: None is f64."""
    if not is_list(values):
        return values
    if dtype in ("i32", "i64"):
        return _checks.whole(what, values)
    named = {short: long for long, short in NUMPY.items()}.get(dtype or "f64")
    if named is None:
        raise TypeError(f"{what}: NumPy has no {dtype}, which a list would become")
    return _checks.reals(what, values).astype(named)


def _dense(shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= extent
    return strides


def empty(like, shape, dtype):
    """A new array of the kind of `like`: NumPy's for all on the host that are not known."""
    kind = type(like).__module__.partition(".")[0]
    if kind == "torch":
        return like.new_empty(shape)
    if kind == "cupy":
        import cupy
        return cupy.empty(shape, like.dtype)
    if not isinstance(like, np.ndarray) and DEVICES.get(int(like.__dlpack_device__()[0])) != "host":
        raise Error(f"{type(like).__name__} cannot be made here: give the results' arrays, out=")
    named = {short: long for long, short in NUMPY.items()}
    if dtype not in named:
        raise Error(f"NumPy has no {dtype}: give the results' arrays, out=")
    return np.empty(shape, named[dtype])
