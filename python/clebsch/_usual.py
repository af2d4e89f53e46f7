"""The usual call of a pass: NumPy's arrays, dense, of one type, with as many rows as there must be,
on the CPU.  What calls repeat is prepared once.  Everything else goes through Operand."""
from __future__ import annotations

import numpy as np

from . import _arrays
from . import _structs as s

MOST_BUFFERS = 64


def wrapped(context, key, buffers):
    """A buffer at this address of this size, and its handle's value; None: one of nothing."""
    made = (context._make("buffer_wrap", "buffer", s.POINTER, *key) if key
            else context._make("buffer_create", "buffer", 16))
    buffers[key] = found = made, made.value
    return found


def apart(spans, n_inputs):
    """Whether no result's memory is another operand's, too: False also where it is only near."""
    for i in range(n_inputs, len(spans)):
        at, size = spans[i]
        for there, length in spans[:i]:
            if there < at + size and at < there + length:
                return False
    return True


class Usual:
    """Of a pass that was compiled: rows, length and kind of each operand that there is."""

    def __init__(self, op, of, compiled, dtype):
        self.context, self.buffers = op.context, compiled.buffers
        self.handle, self.function = compiled.handle._as_parameter_, compiled.function
        self.owner, self.arguments = compiled.handle, compiled.arguments
        self.dtype = np.dtype(_arrays.NAMES[dtype]) if dtype in _arrays.NAMES else None
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
        if type(array) is not np.ndarray or array.dtype is not self.dtype:
            return None
        shape = array.shape
        if shape != (n, columns) and (n != 1 or shape != (columns,)) or not array.flags.carray:
            return None
        key = _arrays.address(array), array.nbytes
        rows.buffer = (self.buffers.get(key) or wrapped(self.context, key, self.buffers))[1]
        rows.stride = columns
        return key

    def run(self, counts, arrays, out, first, last):
        """Results; None: something is unusual, and nothing was done."""
        results, spans, context = [None] * self.n_outputs, [], self.context
        if counts is None:
            shape = getattr(arrays[self.leading], "shape", ())
            counts = {**dict.fromkeys(self.kinds, shape[0] if shape else 0), **self.fixed}
        if not counts["x"] or (out is not None and len(out) != self.n_outputs):
            return None
        with context._lock:
            if len(self.buffers) > MOST_BUFFERS:
                self.buffers.clear()
            for rows, columns, kind, i in self.inputs:
                span = self.place(arrays[i], rows, columns, counts[kind])
                if span is None:
                    return None
                spans.append(span)
            for rows, columns, kind, i in self.outputs:
                n = counts[kind]
                results[i] = array = np.empty((n, columns), self.dtype) if out is None else out[i]
                span = self.place(array, rows, columns, n)
                if span is None or array.ndim != 2:
                    return None
                spans.append(span)
            if out is not None and not apart(spans, len(self.inputs)):
                return None
            context._check(self.function(
                self.handle, counts["x"] if first is None else first, *self.arguments,
                *(last(self.owner) if last else ())))
            context._check(context._lib.clb_wait(context))
        return results
