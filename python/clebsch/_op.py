"""What all ops share: operands found in arrays, and passes compiled when they are first called."""
from __future__ import annotations

import ctypes as c
import os
import threading
import weakref

from . import _arrays
from . import _structs as s
from ._checks import choice
from ._context import Context
from ._library import Error

PASSES = ("forward", "backward", "double_backward")
_shared: weakref.WeakValueDictionary[str, Context] = weakref.WeakValueDictionary()
_sharing = threading.Lock()


def context_of(device):
    """A Context, or that of all ops and graphs on a device of this name."""
    if isinstance(device, Context) or not isinstance(device, str):
        return device if isinstance(device, Context) else Context(device)  # the latter refuses
    with _sharing:
        key = device or os.environ.get("CLB_DEVICE", "")
        found = _shared.get(key)
        if found is None:
            found = _shared[key] = Context(device)
        return found


class Operand:
    """An array as clb_rows.  On a device without the host's memory a copy takes its place."""

    def __init__(self, array, context, what, dtype, columns, output):
        array = array if output else _arrays.of_list(what, array, dtype)
        self.array, self.context, self.output = array, context, output
        self.view = view = _arrays.View(array, context, what)
        view.expect(context, (dtype,) if dtype else tuple(_arrays.DTYPES))
        if output and not view.writable:
            raise Error(f"{what} is read-only")
        self.columns = columns
        self.n, self.stride = view.rows(columns)
        self.on_host = view.device == "host"
        self.copied = self.on_host and context.backend != "cpu"
        if output and self.n is None:
            raise ValueError(f"{what}: results have a row each")
        if output and self.n > 1 and self.stride < columns:
            raise Error(f"{what}: rows overlap")
        if output and self.copied and self.n > 1 and self.stride != columns:
            raise Error(f"{what}: rows must be adjacent where results are copied from a device")

    def _span(self):
        n = 1 if self.n is None else self.n
        return self.view.pointer, n and self.view.extent(n, self.stride, self.columns)

    def shares_memory(self, other):
        """Or may share it.  Different columns of one wide array do not."""
        (at, size), (there, length) = self._span(), other._span()
        if not size or not length or self.view.device != other.view.device or (
                there >= at + size or at >= there + length):
            return False
        if self.stride != other.stride or not self.stride:
            return True
        element = _arrays.BYTES[self.view.dtype]
        apart = (there - at) // element % self.stride
        return apart < self.columns or apart + other.columns > self.stride

    def rows(self):
        context, view = self.context, self.view
        if self.n == 0:
            self.copied, self.buffer = False, context._make("buffer_create", "buffer", 16)
            return s.rows(self.buffer.value, 0, s.DENSE, None)
        size = view.extent(1 if self.n is None else self.n, self.stride, self.columns)
        if self.copied:
            self.buffer = context._make("buffer_create", "buffer", size)
            if not self.output:
                context._call("buffer_write", 0, view.pointer, size, handle=self.buffer)
        else:
            self.buffer = context._make("buffer_wrap", "buffer", s.POINTER, view.pointer, size)
        return s.rows(self.buffer.value, 0, self.stride or s.SAME_ROW, None)

    def finish(self):
        if self.copied and self.output:
            size = self.view.extent(self.n, self.stride, self.columns)
            self.context._call("buffer_read", 0, self.view.pointer, size, handle=self.buffer)


def _check_memory(operands, first_output):
    for k, written in enumerate(operands):
        for other in operands[:k] if written and k >= first_output else ():
            if other and written.shares_memory(other):
                raise Error(f"{written.view.what} is in the memory of {other.view.what}")


class Op:
    """An op of the library.  Arrays: NumPy's, or others' through DLPack, used where they lie (those
    of the host are copied to and from devices other than cpu); [n][columns], rows may have a
    distance; an input [columns] is the same row for all.  Results are new arrays of the kind of the
    first operand, or `out`, a tuple.  On the caller's stream a call does not wait.  A pass is
    compiled when it is first called, for each type of arrays.

    dtype: of all arrays; None: of each call, that of its first array, which lists take, too; of
    lists alone f64.  name: the library's.  describe(dtype, passes): the description.  columns: of
    each kind of operand.  operands: of each pass, names of inputs and of outputs.  kinds: of each
    name."""

    def __init__(self, name, context, dtype, describe, columns, operands, kinds, gradients):
        self.context, self.dtype, self.columns = context, dtype, columns
        self._name, self._describe, self._ops = name, describe, {}
        self._operands, self._kinds, self._gradients = operands, kinds, gradients

    def compile(self, *passes: str) -> Op:
        """Of "forward", "backward", "double_backward": before they are first called, for arrays of
        this op's type, f32 where it takes any."""
        for name in passes:
            self._compiled(name, self.dtype or "f32")
        return self

    def _compiled(self, name, dtype):
        number = choice("pass", name, {word: i for i, word in enumerate(PASSES)})
        if (name, dtype) not in self._ops:
            self._ops[name, dtype] = self.context._make(f"{self._name}_create", "op",
                                                       c.byref(self._describe(dtype, 1 << number)))
        return self._ops[name, dtype]

    def _run(self, name, arrays, out, counts=None, first=None, last=lambda op: ()):
        """counts: of each kind its number of rows; None: that of the inputs.  last: the arguments
        after the rows."""
        names_in, names_out = self._operands[name]
        inputs, dtype = self._inputs(names_in, arrays)
        op = self._compiled(name, dtype)
        counts = counts or self._counts(inputs)
        like = inputs[0].array if inputs[0] else arrays[0]
        results = self._results(names_out, counts, like, dtype, out)
        outputs = [None if array is None else self._operand(what, array, dtype, True)
                   for what, array in zip(names_out, results)]
        operands = inputs + outputs
        for what, operand in zip(names_in + names_out, operands):
            wanted = counts[self._kinds[what]]
            if operand and operand.n not in (None, wanted):
                raise ValueError(f"{what} has {operand.n} rows; it must have {wanted}")
        if out is not None:
            _check_memory(operands, len(inputs))
        rows = [operand.rows() if operand else s.rows() for operand in operands]
        first = counts[self._kinds[names_in[0]]] if first is None else first
        self.context._call(f"{self._name}_{name}", first, *rows, *last(op), handle=op)
        for operand in filter(None, outputs):
            operand.finish()
        if any(operand and operand.on_host for operand in operands):
            self.context.wait()
        return results[0] if len(results) == 1 else results

    def _operand(self, what, array, dtype, output):
        columns = self.columns[self._kinds[what]]
        return Operand(array, self.context, what, dtype, columns, output)

    def _inputs(self, names, arrays):
        """The operands and their type: that of the op, else of the first array, else of lists."""
        dtype, found = self.dtype, {}
        for what, array in sorted(zip(names, arrays), key=lambda pair: _arrays.is_list(pair[1])):
            found[what] = self._input(what, array, dtype)
            dtype = dtype or (found[what] and found[what].view.dtype)
        return [found[what] for what in names], dtype or "f32"

    def _input(self, what, array, dtype):
        if not self.columns[self._kinds[what]]:
            return None
        if array is None:
            raise ValueError(f"{what} is missing")
        return self._operand(what, array, dtype, False)

    def _counts(self, inputs):
        numbers = [operand.n for operand in inputs if operand and operand.n is not None]
        return dict.fromkeys(self.columns, numbers[0] if numbers else 1)

    def _results(self, names, counts, like, dtype, out):
        """New arrays, or those given; None where the op computes nothing."""
        kinds = [self._kinds[what] for what in names]
        wanted = [self.columns[kind] > 0 and (what == kind or kind in self._gradients)
                  for what, kind in zip(names, kinds)]
        if out is None:
            shapes = [(counts[kind], self.columns[kind]) for kind in kinds]
            return tuple(_arrays.empty(like, shape, dtype) if w else None
                         for shape, w in zip(shapes, wanted))
        out = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        if len(out) != len(names) or any(w and array is None for array, w in zip(out, wanted)):
            raise ValueError(f"out: it must be a tuple of {', '.join(names)}")
        return tuple(array if w else None for array, w in zip(out, wanted))
