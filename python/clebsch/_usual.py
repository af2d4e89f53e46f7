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
        """Before a call: those that there are."""
        if len(self.made) > MOST_BUFFERS:
            _release(self.context._lib, self.context._lock, self.made)
        return self.made

    def make(self, span):
        context, pointer = self.context, c.c_void_p()
        context._check(context._lib.clb_buffer_wrap(context, s.POINTER, *span, c.byref(pointer)))
        found = self.made[span] = pointer.value
        return found


def apart(spans, n_inputs):
    """Whether no result's memory is another operand's, too: False also where it is only near, or
    where operands overlap that are not the same."""
    end = 0
    for at, size in sorted([*set(spans[:n_inputs]), *spans[n_inputs:]]):
        if at < end:
            return False
        end = at + size
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

    def new(self, n, columns, like):
        array = np.empty((n, columns), self.dtype)
        return array, (_arrays.address(array), array.nbytes)


class OfTorch:
    """Tensors of the CPU, or of the GPU in whose current stream the context works."""

    def __init__(self, context, dtype):
        torch = self.torch = sys.modules["torch"]
        self.empty, self.empty_like = torch.empty, torch.empty_like
        self.kind, self.dtype = torch.Tensor, getattr(torch, TORCH[dtype])
        self.size, self.stream = _arrays.BYTES[dtype], context.stream
        self.waits = context.backend == "cpu"
        self.number = -1 if self.waits else int(context.name.partition(":")[2] or 0)
        self.device = torch.device("cpu") if self.waits else torch.device("cuda", self.number)

    def ready(self):
        return self.waits or (self.stream is not None and self.stream
                              == self.torch.cuda.current_stream(self.number).cuda_stream)

    def span(self, array, n, columns):
        if type(array) is not self.kind or array.dtype is not self.dtype or (
                array.requires_grad or array.is_neg()):
            return None
        shape = array.shape
        if shape != (n, columns) and (n != 1 or shape != (columns,)) or not array.is_contiguous():
            return None
        here = array.is_cpu if self.waits else array.is_cuda and array.get_device() == self.number
        return (array.data_ptr(), n * columns * self.size) if here else None

    def new(self, n, columns, like):
        """like: an operand of these rows, where there is one, since that takes less time."""
        array = (self.empty(n, columns, dtype=self.dtype, device=self.device)
                 if like is None or like.ndim != 2 else self.empty_like(like))
        return array, (array.data_ptr(), n * columns * self.size)


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

    def __init__(self, op, of, compiled, way, rows):
        self.context, self.buffers, self.way = op.context, Buffers(op.context), way
        self.handle, self.function = compiled.handle._as_parameter_, compiled.function
        self.owner, (all_rows, self.arguments) = compiled.handle, rows
        parts = list(zip(all_rows, of.kinds, range(len(of.kinds))))
        for one, kind, _ in parts:
            one.stride = op.columns[kind]
        self.inputs = [(one, op.columns[kind], kind, i)
                       for one, kind, i in parts[:of.n_inputs] if op.columns[kind]]
        place = {kind: i for _, _, kind, i in self.inputs}
        self.outputs = [(one, op.columns[kind], kind, i - of.n_inputs, place.get(kind))
                        for one, kind, i in parts[of.n_inputs:]
                        if op.columns[kind] and (of.forward or kind in op._gradients)]
        self.n_outputs = len(of.kinds) - of.n_inputs
        self.fixed, self.kinds = op._fixed, tuple(op.columns)
        self.leading = next((i for _, _, kind, i in self.inputs if kind not in op._fixed), 0)
        self.counted = -1, {}

    def counts(self, leading):
        """Of each kind the number of rows: fixed, or that of this array."""
        shape = getattr(leading, "shape", ())
        n = shape[0] if shape else 0
        counted = self.counted
        if counted[0] != n:
            counted = self.counted = n, {**dict.fromkeys(self.kinds, n), **self.fixed}
        return counted[1]

    def run(self, counts, arrays, out, first, last):
        """Results; None: something is unusual, and nothing was done."""
        results, spans, context, way = [None] * self.n_outputs, [], self.context, self.way
        span_of, buffers = way.span, self.buffers
        counts = counts or self.counts(arrays[self.leading])
        if not counts["x"] or (out is not None and len(out) != self.n_outputs) or not way.ready():
            return None
        with context._lock:
            made = buffers.begin()
            for rows, columns, kind, i in self.inputs:
                span = span_of(arrays[i], counts[kind], columns)
                if span is None or not span[0]:
                    return None
                rows.buffer = made.get(span) or buffers.make(span)
                spans.append(span)
            for rows, columns, kind, i, like in self.outputs:
                if out is None:
                    given = None if like is None else arrays[like]
                    array, span = way.new(counts[kind], columns, given)
                else:
                    array = out[i]
                    span = span_of(array, counts[kind], columns)
                if span is None or not span[0] or array.ndim != 2:
                    return None
                results[i] = array
                rows.buffer = made.get(span) or buffers.make(span)
                spans.append(span)
            if out is not None and not apart(spans, len(self.inputs)):
                return None
            context._check(self.function(
                self.handle, counts["x"] if first is None else first, *self.arguments,
                *(last(self.owner) if last else ())))
            if way.waits:
                context._check(context._lib.clb_wait(context))
        return results
