"""What all ops share: operands found in arrays, and passes compiled when they are first called."""
from __future__ import annotations

import ctypes as c
import inspect
import os
import threading
import weakref
from typing import Any, Callable

import numpy as np

from . import _arrays, _checks, _functions, _usual
from . import _structs as s
from ._checks import choice
from ._context import Context
from ._library import Error

PASSES = {"forward": s.FORWARD, "backward": s.BACKWARD, "double_backward": s.DOUBLE_BACKWARD,
          "triple_backward": s.TRIPLE_BACKWARD}
LAYOUTS = {"mul_ir": s.MUL_IR, "ir_mul": s.IR_MUL}
BITS = {"x": s.OPERAND_X, "y": s.OPERAND_Y, "w": s.OPERAND_W, "z": s.OPERAND_Z}
MOST_BUFFERS = 64
_NOTHING = np.empty(0)
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


def types(dtype, arithmetic):
    storage = choice("dtype", dtype, _arrays.DTYPES)
    other = "f64" if dtype == "f64" else "f32"
    return storage, choice("arithmetic", arithmetic or other, {"f64": s.F64, "f32": s.F32})


def bits_of(gradients, letters):
    """The set of OPERAND_X, ... that these letters name."""
    bits = {letter: BITS[letter] for letter in letters}
    if not _checks.text("gradients", gradients):
        raise ValueError(f"gradients: ''; it must name one of {', '.join(letters)} at least")
    return sum(choice("gradients", one, bits) for one in set(gradients))


def described(kind, dtype, arithmetic, **members):
    """A description; its types are those of each call."""
    storage, working = types(dtype or "f32", arithmetic)
    return kind(storage=storage, arithmetic=working, passes=1 << s.FORWARD, **members)


def measured(context, name, desc):
    """Its lengths of rows."""
    sizes = getattr(s, f"{name}_sizes")()
    context._call(f"{name}_measure", c.byref(desc), c.byref(sizes))
    return sizes


class Operand:
    """An array as clb_rows.  On a device without the host's memory a copy takes its place."""

    __slots__ = "array", "context", "output", "view", "columns", "n", "stride", "copied", "buffer"

    def __init__(self, array, context, what, dtype, columns, output):
        self.array, self.context, self.output = array, context, output
        self.view = view = _arrays.View(array, context, what)
        view.expect(context, dtype)
        if output and not view.writable:
            raise Error(f"{what} is read-only")
        self.columns = columns
        self.n, self.stride = view.rows(columns)
        self.copied = view.device == "host" and context.backend != "cpu"
        if output:
            self._check_rows(what)

    def _check_rows(self, what):
        if self.n is None:
            raise ValueError(f"{what}: results have a row each")
        if self.n > 1 and self.stride < self.columns:
            raise Error(f"{what}: rows overlap")
        if self.copied and self.n > 1 and self.stride != self.columns:
            raise Error(f"{what}: rows must be adjacent where results are copied from a device")

    def expect(self, what, n, fixed):
        """It has n rows, or may be one row for all."""
        if self.n is None and fixed and n == 1:
            self.n, self.stride = 1, self.columns
        elif fixed or self.n is not None:
            mine = 1 if self.n is None else self.n
            raise ValueError(f"{what} has {mine} row{'s' * (mine != 1)}; it must have {n}")

    def bytes(self):
        """From the first element to the end of the last."""
        n = 1 if self.n is None else self.n
        return ((n - 1) * self.stride + self.columns) * _arrays.BYTES[self.view.dtype] if n else 0

    def shares_memory(self, other):
        """Or may share it.  Different columns of one wide array do not."""
        at, size, there, length = self.view.pointer, self.bytes(), other.view.pointer, other.bytes()
        if not size or not length or self.view.device != other.view.device or (
                there >= at + size or at >= there + length):
            return False
        if self.stride != other.stride or not self.stride:
            return True
        element = _arrays.BYTES[self.view.dtype]
        apart = (there - at) // element % self.stride
        return apart < self.columns or apart + other.columns > self.stride

    def start(self, rows, buffers):
        """Fills in clb_rows.  buffers: those of earlier calls, by address and size."""
        size, rows.stride = self.bytes(), self.stride or s.SAME_ROW
        if self.copied and size:
            context = self.context
            self.buffer = context._make("buffer_create", "buffer", size)
            if not self.output:
                context._call("buffer_write", 0, self.view.pointer, size, handle=self.buffer)
            rows.buffer = self.buffer.value
            return
        key = (self.view.pointer, size) if size else None
        if key not in buffers:
            self._wrap(key, buffers)
        self.buffer, rows.buffer = buffers[key]

    def _wrap(self, key, buffers):
        context = self.context
        if len(buffers) >= MOST_BUFFERS:
            buffers.clear()
        made = (context._make("buffer_wrap", "buffer", s.POINTER, *key) if key
                else context._make("buffer_create", "buffer", 16))
        buffers[key] = made, made.value

    def finish(self):
        if self.copied and self.output and self.n:
            self.context._call("buffer_read", 0, self.view.pointer, self.bytes(),
                               handle=self.buffer)


def _check_memory(operands):
    """No result lies in the memory of an operand, or of another result."""
    spans = [(one, one.view.pointer, one.view.pointer + one.bytes()) for one in operands if one]
    for written, at, end in [span for span in spans if span[0].output]:
        for other, there, last in spans:
            if other is written:
                break
            if there < end and at < last and written.shares_memory(other):
                raise Error(f"{written.view.what} is in the memory of {other.view.what}")


class _Pass:
    """A pass of ops of one name: its operands, and the kind of each, whose shape it has.

    following: the pass that is its derivative, if there is one: its operands are those of this one
    and then the gradients of its results, and its results the gradients of its operands."""

    def __init__(self, op, name, following):
        inputs, outputs = ([pair.split(":") for pair in side.split()]
                           for side in _functions.OPERANDS[f"{op}_{name}"])
        self.inputs, self.outputs = ([what for what, _ in side] for side in (inputs, outputs))
        self.operands = self.inputs + self.outputs
        self.kinds = [kind for _, kind in inputs + outputs]
        self.n_inputs, self.forward, self.following = len(inputs), name == "forward", following


def _index(species, n_species, n, context):
    """An operand of int32.  Numbers of the host are checked; a device's are not."""
    if species is None and n_species == 1:
        species = np.zeros(n, np.int32)
    if species is None:
        raise ValueError(f"species is missing: of each row a number below {n_species}")
    if _arrays.is_list(species) or isinstance(species, np.ndarray):
        species = _checks.whole("species", species).astype(np.int32)
    view = _arrays.View(species, context, "species")
    view.expect(context, "i32")
    if view.shape != (n,):
        raise ValueError(f"species has the shape {list(view.shape)}; it must be [{n}]")
    operand = Operand(species, context, "species", "i32", n, False)
    if n and view.device == "host":
        numbers = np.frombuffer((c.c_int32 * n).from_address(view.pointer), np.int32)
        wrong = np.flatnonzero((numbers < 0) | (numbers >= n_species))
        if wrong.size:
            raise ValueError(f"species[{wrong[0]}] is {numbers[wrong[0]]}; it must be a number "
                             f"below {n_species}")
    rows = s.rows()
    operand.start(rows, {})
    return operand


def _method(op, name, of, first, last):
    """A pass as a method, with the names and hints of its arguments."""
    def method(self, *arrays, out=None, **named):
        return self._call(name, arrays, named, out)
    places = ["self", *first, *of.inputs]
    words = [*last, "out"]
    kind = inspect.Parameter
    method.__name__, method.__qualname__ = name, f"{op}.{name}"
    method.__annotations__ = dict.fromkeys(places[1:] + words + ["return"], Any)
    method.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [kind(what, kind.POSITIONAL_OR_KEYWORD, annotation=Any) for what in places]
        + [kind(what, kind.KEYWORD_ONLY, default=None, annotation=Any) for what in words])
    method.__doc__ = f"{', '.join(of.outputs)} of {', '.join(places[1:] + words[:-1])}."
    return method


def rows_of(name, of):
    """What a pass fills in for its operands, and what its function takes for them."""
    if name == "triple_backward":  # takes all of them in a struct
        all_rows = s.triple_operands()
        return [getattr(all_rows, what) for what in of.operands], [c.byref(all_rows)]
    rows = [s.rows() for _ in of.operands]
    return rows, rows


class _Compiled:
    """A pass for arrays of one type: its function and what its calls use again."""

    def __init__(self, op, name, dtype):
        desc = op._describe(dtype, 1 << PASSES[name])
        self.handle = op.context._make(f"{op._name}_create", "op", c.byref(desc))
        self.function = getattr(op.context._lib, f"clb_{op._name}_{name}")
        of = op._passes[name]
        self.rows, self.arguments = rows_of(name, of)
        self.weights = self.rows[of.operands.index("w")] if "w" in of.operands else None
        self.buffers: dict = {}


class Op:
    """An op of the library.  Arrays: NumPy's, or others' through DLPack, used where they lie (those
    of the host are copied to and from devices other than cpu); [n][columns], rows may have a
    distance; an input [columns] is the same row for all.  Results are new arrays of the kind of the
    first operand, or `out`, a tuple.  On the caller's stream a call does not wait.  A pass is
    compiled when it is first called, for each type of arrays.

    context: what it runs in.  dtype: of all arrays; None: of each call, that of its first array,
    which lists take, too; of lists alone f64.  columns: the length of rows of x, y, w, z, and of
    what has their shapes."""

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    double_backward: Callable[..., Any]
    _passes: dict
    n_species = 0

    def __init_subclass__(cls, name, first=(), last=()):
        """name: the library's.  first, last: what passes take besides operands."""
        cls._name, cls._first, cls._last = name, first, last
        words = [word for word in PASSES if f"{name}_{word}" in _functions.OPERANDS]
        cls._passes = {word: _Pass(name, word, following)
                       for word, following in zip(words, [*words[1:], None])}
        for word, of in cls._passes.items():
            setattr(cls, word, _method(cls.__name__, word, of, first, last))

    def __init__(self, context, dtype, arithmetic, desc, columns, gradients, fixed=None):
        """fixed: the number of rows of what does not have one for each row of the others."""
        self.context, self.dtype, self.columns = context, dtype, columns
        self._arithmetic, self._desc, self._gradients = arithmetic, desc, gradients
        self._fixed, self._compiled, self._usual = fixed or {}, {}, {}

    def _describe(self, dtype, passes):
        desc = getattr(self._desc, "product", self._desc)
        desc.storage, desc.arithmetic = types(dtype, self._arithmetic)
        desc.passes = passes
        return self._desc

    def compile(self, *passes: str) -> Op:
        """Of "forward", "backward", "double_backward": before they are first called, for arrays of
        this op's type, f32 where it takes any."""
        for name in passes:
            choice("pass", name, dict.fromkeys(self._passes, 0))
            self._compile(name, self.dtype or "f32")
        return self

    def _compile(self, name, dtype):
        found = self._compiled.get((name, dtype))
        if found is None:
            with self.context._lock:  # one thread at a time writes the description
                found = self._compiled.get((name, dtype)) or _Compiled(self, name, dtype)
                self._compiled[name, dtype] = found
        return found

    def _call(self, name, arrays, named, out):
        of = self._passes[name]
        last = ()
        if named or len(arrays) != len(of.inputs):
            arrays, out, last = self._bind(name, of.inputs, arrays, named, out)
        return self._run(name, of, arrays, out, *last)

    def _bind(self, name, inputs, arrays, named, out):
        """Operands by their places or names, `out` after them, and others by name."""
        places = (*inputs, "out")
        given = dict(zip(places, arrays))
        for word in named:
            if word not in places + self._last or word in given:
                raise TypeError(f"{type(self).__name__}.{name}: " + (
                    f"{word} is given twice" if word in given else
                    f"there is no keyword {word!r}; {_checks.right_word(word, places)}"))
        if len(arrays) > len(places):
            raise TypeError(f"{type(self).__name__}.{name} takes {', '.join(places)}")
        given.update(named)
        return ([given.get(what) for what in inputs], given.get("out", out),
                [given.get(what) for what in self._last])

    def _run(self, name, of, arrays, out, species=None, counts=None, first=None, last=None):
        """counts: of each kind its number of rows; None: that of the inputs.  first: the argument
        before operands, if not that of x.  last: makes those after them."""
        if species is not None and not self.n_species:
            raise ValueError("species: this op has one set of weights; make it with n_species")
        found = self._usually(name, arrays, out, counts, first, last)
        if found:
            return found[0] if len(found) == 1 else tuple(found)
        for array in arrays:
            if isinstance(array, (list, tuple)):
                arrays = self._of_lists(of, arrays)
                break
        dtype, operands, n = self.dtype, [], None
        for what, kind, array in zip(of.inputs, of.kinds, arrays):
            width = self.columns[kind]
            if not width:
                operands.append(None)
                shape = getattr(array, "shape", ())
                if n is None and kind not in self._fixed and len(shape) == 2:
                    n = shape[0]
                continue
            if array is None:
                raise ValueError(f"{what} is missing")
            operand = Operand(array, self.context, what, dtype, width, False)
            operands.append(operand)
            dtype = dtype or operand.view.dtype
            if n is None and kind not in self._fixed:
                n = operand.n
        dtype = dtype or "f32"
        counts = counts or {**dict.fromkeys(self.columns, 1 if n is None else n), **self._fixed}
        like = next((array for array in arrays if array is not None), _NOTHING)
        results = self._results(of, counts, like, dtype, out)
        for what, kind, array in zip(of.outputs, of.kinds[of.n_inputs:], results):
            operands.append(None if array is None else Operand(array, self.context, what, dtype,
                                                               self.columns[kind], True))
        for what, kind, operand in zip(of.operands, of.kinds, operands):
            if operand and operand.n != counts[kind]:
                operand.expect(what, counts[kind], kind in self._fixed)
        if out is not None:
            _check_memory(operands)
        compiled = self._compile(name, dtype)
        self._submit(compiled, operands, species, counts["x"],
                     counts["x"] if first is None else first, last)
        if like is arrays[0] and not self.n_species:
            self._remember(name, of, like, compiled, dtype)
        return results[0] if len(results) == 1 else tuple(results)

    def _remember(self, name, of, like, compiled, dtype):
        key = name, type(like), getattr(like, "dtype", None)
        if key not in self._usual:
            way = _usual.way_of(like, self.context, dtype)
            self._usual[key] = way and _usual.Usual(self, of, compiled, way, rows_of(name, of))

    def _usually(self, name, arrays, out, counts, first, last):
        """Results of a call like most, where one of such arrays has been before; else None."""
        like = arrays[0] if arrays else None
        usual = self._usual.get((name, type(like), getattr(like, "dtype", None)))
        if out is not None and type(out) is not tuple:
            out = out,
        return usual and usual.run(counts, arrays, out, first, last)

    def _submit(self, compiled, operands, species, n, first, last):
        context, host = self.context, False
        index = self.n_species and _index(species, self.n_species, n, context)  # owns the numbers
        with context._lock:
            for rows, operand in zip(compiled.rows, operands):
                if operand:
                    operand.start(rows, compiled.buffers)
                    host |= operand.view.device == "host"
            if index:
                compiled.weights.index = index.buffer.value
            context._check(compiled.function(compiled.handle, first, *compiled.arguments,
                                             *(last(compiled.handle) if last else ())))
            if not host:
                return
            if context.backend != "cpu":
                for operand in operands:
                    if operand:
                        operand.finish()
            context._check(context._lib.clb_wait(context))

    def _of_lists(self, of, arrays):
        """With arrays for lists, of the op's type, else of that of the first array."""
        dtype = self.dtype
        for what, array in zip(of.inputs, arrays):
            if dtype is None and array is not None and not _arrays.is_list(array):
                dtype = _arrays.View(array, self.context, what).dtype
        return [_arrays.of_list(what, array, dtype) for what, array in zip(of.inputs, arrays)]

    def _results(self, of, counts, like, dtype, out):
        """New arrays, or those given; None where the op computes nothing."""
        kinds = of.kinds[of.n_inputs:]
        wanted = [self.columns[kind] and (of.forward or kind in self._gradients) for kind in kinds]
        if out is None:
            return [_arrays.empty(like, (counts[kind], self.columns[kind]), dtype) if w else None
                    for kind, w in zip(kinds, wanted)]
        out = out if isinstance(out, (tuple, list)) else (out,)
        if len(out) != len(kinds) or any(w and array is None for array, w in zip(out, wanted)):
            raise ValueError(f"out: it must be a tuple of {', '.join(of.outputs)}")
        return [array if w else None for array, w in zip(out, wanted)]
