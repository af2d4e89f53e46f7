"""The usual call of a pass: arrays of NumPy on the CPU, or of PyTorch where the op is, all dense, of
one type, with as many rows as there must be.  What calls repeat is prepared once.  Everything else
goes through Operand, and what is wrong is told there."""
from __future__ import annotations

import ctypes as c
import sys
import weakref

import numpy as np

from . import _arrays
from . import _structs as s

MOST_BUFFERS = 512
TORCH = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16"}


def _release(lib, lock, made):
    with lock:
        for pointer in made.values():
            lib.clb_buffer_destroy(c.byref(c.c_void_p(pointer)))
        made.clear()


class Buffers:
    """Buffers at the addresses of arrays, which many calls use again: a Handle of each would take
    longer to make than the call itself."""

    def __init__(self, context):
        self.context, self.made = context, {}
        weakref.finalize(self, _release, context._lib, context._lock, self.made)

    def begin(self):
        """Before a call, which uses those that it finds or makes."""
        if len(self.made) > MOST_BUFFERS:
            _release(self.context._lib, self.context._lock, self.made)

    def at(self, span):
        found = self.made.get(span)
        if found is None:
            context, pointer = self.context, c.c_void_p()
            context._check(context._lib.clb_buffer_wrap(context, s.POINTER, *span,
                                                        c.byref(pointer)))
            found = self.made[span] = pointer.value
        return found


def apart(spans, n_inputs):
    """Whether no result's memory is another operand's, too: False also where it is only near."""
    for i in range(n_inputs, len(spans)):
        at, size = spans[i]
        for there, length in spans[:i]:
            if there < at + size and at < there + length:
                return False
    return True


class OfNumpy:
    """Arrays of the host, for whose results a call waits."""

    waits = True

    def __init__(self, context, dtype):
        self.dtype = np.dtype(_arrays.NAMES[dtype])

    def ready(self):
        return True

    def span(self, array, n, columns):
        """Address and size; None: it is unusual."""
        if type(array) is not np.ndarray or array.dtype is not self.dtype:
            return None
        shape = array.shape
        if shape != (n, columns) and (n != 1 or shape != (columns,)) or not array.flags.carray:
            return None
        return _arrays.address(array), array.nbytes

    def new(self, n, columns):
        return np.empty((n, columns), self.dtype)


class OfTorch:
    """Tensors of the CPU, or of the GPU in whose current stream the context works."""

    def __init__(self, context, dtype):
        torch = self.torch = sys.modules["torch"]
        self.empty = torch.empty
        self.kind, self.dtype = torch.Tensor, getattr(torch, TORCH[dtype])
        self.size, self.stream = _arrays.BYTES[dtype], context.stream
        self.waits = context.backend == "cpu"
        self.number = -1 if self.waits else int(context.name.partition(":")[2] or 0)
        self.device = torch.device("cpu") if self.waits else torch.device("cuda", self.number)

    def ready(self):
        return self.waits or (self.stream is not None and self.stream
                              == self.torch.cuda.current_stream(self.number).cuda_stream)

    def span(self, array, n, columns):
        if type(array) is not self.kind or array.dtype is not self.dtype or array.requires_grad:
            return None
        shape = array.shape
        if shape != (n, columns) and (n != 1 or shape != (columns,)) or not array.is_contiguous():
            return None
        here = array.is_cpu if self.waits else array.is_cuda and array.get_device() == self.number
        return (array.data_ptr(), n * columns * self.size) if here else None

    def new(self, n, columns):
        return self.empty(n, columns, dtype=self.dtype, device=self.device)


def way_of(like, context, dtype):
    """How to take arrays like this; None: not here."""
    torch = sys.modules.get("torch")
    if type(like) is np.ndarray and context.backend == "cpu" and dtype in _arrays.NAMES:
        return OfNumpy(context, dtype)
    if torch is not None and type(like) is getattr(torch, "Tensor", None) and (
            context.backend in ("cpu", "cuda", "hip")):
        return OfTorch(context, dtype)
    return None


class Usual:
    """Of a pass that was compiled: rows, length and kind of each operand that there is."""

    def __init__(self, op, of, compiled, way):
        self.context, self.buffers, self.way = op.context, Buffers(op.context), way
        self.handle, self.function = compiled.handle._as_parameter_, compiled.function
        self.owner, self.arguments = compiled.handle, compiled.arguments
        parts = list(zip(compiled.rows, of.kinds, range(len(of.kinds))))
        self.inputs = [(rows, op.columns[kind], kind, i)
                       for rows, kind, i in parts[:of.n_inputs] if op.columns[kind]]
        self.outputs = [(rows, op.columns[kind], kind, i - of.n_inputs)
                        for rows, kind, i in parts[of.n_inputs:]
                        if op.columns[kind] and (of.forward or kind in op._gradients)]
        self.n_outputs = len(of.kinds) - of.n_inputs
        self.fixed, self.kinds = op._fixed, dict.fromkeys(op.columns)
        self.leading = next((i for _, _, kind, i in self.inputs if kind not in op._fixed), 0)

    def place(self, array, rows, columns, n):
        """Its address and size; None: it is unusual."""
        span = self.way.span(array, n, columns)
        if span is None or not span[0]:
            return None
        rows.buffer = self.buffers.at(span)
        rows.stride = columns
        return span

    def run(self, counts, arrays, out, first, last):
        """Results; None: something is unusual, and nothing was done."""
        results, spans, context, way = [None] * self.n_outputs, [], self.context, self.way
        if counts is None:
            shape = getattr(arrays[self.leading], "shape", ())
            counts = {**dict.fromkeys(self.kinds, shape[0] if shape else 0), **self.fixed}
        if not counts["x"] or (out is not None and len(out) != self.n_outputs) or not way.ready():
            return None
        with context._lock:
            self.buffers.begin()
            for rows, columns, kind, i in self.inputs:
                span = self.place(arrays[i], rows, columns, counts[kind])
                if span is None:
                    return None
                spans.append(span)
            for rows, columns, kind, i in self.outputs:
                n = counts[kind]
                results[i] = array = way.new(n, columns) if out is None else out[i]
                span = self.place(array, rows, columns, n)
                if span is None or array.ndim != 2:
                    return None
                spans.append(span)
            if out is not None and not apart(spans, len(self.inputs)):
                return None
            context._check(self.function(
                self.handle, counts["x"] if first is None else first, *self.arguments,
                *(last(self.owner) if last else ())))
            if way.waits:
                context._check(context._lib.clb_wait(context))
        return results
