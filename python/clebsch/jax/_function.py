"""Ops as functions of JAX's arrays."""
from __future__ import annotations

import ctypes as c
import hashlib
import inspect
import json
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import clebsch

from .. import _arrays, _checks
from .._op import PASSES
from . import _native
from ._pass import Pass

NAMES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16"}
SHORT = {long: short for short, long in NAMES.items()}


class Function:
    """An op as a function of JAX's arrays [n][columns], or [columns]: one row, for all rows of the
    others if they have some.  It can be differentiated (in reverse mode), compiled and batched.

    columns: the length of rows of x, y, w and z.  op: the op, whose own methods take NumPy's
    arrays."""

    def __init__(self, maker, arguments, options):
        given = inspect.signature(maker).bind(*arguments, **options)
        if "gradients" in given.arguments:
            raise ValueError("gradients: those of what JAX differentiates are computed")
        given.apply_defaults()
        options = dict(given.arguments)
        self._chooses = options.pop("gradients", None) is not None
        device = _checks.text("device", options["device"]) or _native.usual_device()
        if not re.fullmatch(r"cpu(:.*)?|cuda(:\d{1,9})?", device):
            raise ValueError(f"device: {device!r}; arrays of JAX are on its CPU, where there are 'cpu', "
                             "'cpu:threads=N' and 'cpu:interpreter', or on 'cuda:N'")
        options["device"] = device
        if options.get("knots"):
            raise ValueError("knots: splines have a table that JAX does not know; weights are an "
                             "operand, w")
        place = {"device": _native.context_of(device)}
        self.op = op = maker(**{**options, **place})
        self._text = json.dumps([op._name, options], default=lambda value: np.asarray(value).tolist())
        self._maker, self._options = maker, {**json.loads(self._text)[1], **place}
        self._ops, self._passes = {"": op}, {}
        self.columns, self._inputs = dict(op.columns), op._passes["forward"].inputs
        if not self.columns["x"]:
            raise ValueError(f"{op._name}: there are no irreps of x")
        self._edges = op._name == "convolution"
        self.n_indices = 2 if self._edges else int(bool(op.n_species))
        self._call = jax.jit(self._flat, static_argnums=0)

    def __repr__(self):
        return f"clebsch.jax.{self._text}"

    def __reduce__(self):
        return _again, (self._text,)

    def op_of(self, letters):
        """The op that computes these gradients."""
        if letters not in self._ops:
            chosen = {"gradients": letters} if self._chooses else {}
            self._ops[letters] = self._maker(**{**self._options, **chosen})
        return self._ops[letters]

    def pass_of(self, name, letters, n_receivers):
        key = name, letters, n_receivers
        if key not in self._passes:
            self._passes[key] = Pass(self, *key)
        return self._passes[key]

    def number(self, of, dtype):
        """Of a pass that is compiled for arrays of this type."""
        short = SHORT[dtype.name]
        return _number(of, short, hashlib.sha256(json.dumps(
            [self._text, of.name, of.letters, short]).encode()).digest()[:8])

    def _flat(self, n_receivers, *arrays):
        return self.pass_of("forward", "", n_receivers)(*arrays)[0]

    def _rows(self, given):
        """Operands that there are, each with all its rows; whether there is an axis of rows."""
        op, of = self.op, self.op._passes["forward"]
        arrays = {}
        for what, kind, array in zip(of.inputs, of.kinds, given):
            width = self.columns[kind]
            if not width:
                continue
            if array is None:
                raise ValueError(f"{op._name}: {what} is missing")
            array = jnp.asarray(array)
            if array.ndim not in (1, 2) or array.shape[-1] != width:
                raise ValueError(f"{op._name}: {what} has the shape {list(array.shape)}; it must be "
                                 f"[n, {width}], or [{width}]")
            arrays[what] = array
        types = {what: array.dtype.name for what, array in arrays.items()}
        if len(set(types.values())) > 1 or types["x"] not in SHORT:
            raise TypeError(f"{op._name}: " + ", ".join(f"{what} is {t}" for what, t in types.items())
                            + f"; they must be of one type of {', '.join(SHORT)}")
        if op.dtype and NAMES[op.dtype] != types["x"]:
            raise TypeError(f"{op._name}: x is {types['x']}, the op of dtype {op.dtype!r}")
        return arrays

    def _shaped(self, arrays, counts):
        """Each with the rows that it must have."""
        for what, kind in zip(self._inputs, self.op._passes["forward"].kinds):
            if what not in arrays:
                continue
            array, n = arrays[what], counts[kind]
            if array.ndim == 2 and array.shape[0] != n or array.ndim == 1 and (
                    kind in self.op._fixed and n != 1):
                raise ValueError(f"{self.op._name}: {what} has the shape {list(array.shape)}; it must "
                                 f"be [{n}, {self.columns[kind]}]")
            yield jnp.broadcast_to(array, (n, self.columns[kind]))

    def __call__(self, *operands: Any, **named: Any) -> Any:
        """The result of operands x, y, w, as far as the op has them, in this order or by name; then
        species, a number for each row, or of a convolution senders, receivers and n_receivers."""
        last = (("senders", "receivers", "n_receivers") if self._edges
                else ("species",) if self.op.n_species else ())
        words = [*self._inputs, *last]
        given = dict(zip(words, operands), **named)
        if len(operands) > len(words) or set(given) - set(words):
            raise TypeError(f"{self.op._name} takes {', '.join(words)}")
        arrays = self._rows([given.get(what) for what in self._inputs])
        if self._edges:
            return self._convolve(arrays, *(given.get(word) for word in last))
        of_rows = {what: array for what, array in arrays.items()
                   if what not in self.op._fixed and array.ndim == 2}
        n = next((array.shape[0] for array in of_rows.values()), 1)
        counts = {**dict.fromkeys(self.columns, n), **self.op._fixed}
        indices = []
        if self.n_indices:
            species = self._index("species", given.get("species"), n)
            indices = [jnp.clip(species, 0, self.op.n_species - 1) if self.op.context.backend != "cpu"
                       else species]  # where none look at them before they are used
        found = self._call(None, *indices, *self._shaped(arrays, counts))
        return found if of_rows else found[0]

    def _index(self, what, numbers, n):
        if numbers is None:
            raise ValueError(f"{self.op._name}: {what} is missing, a number for each row")
        numbers = jnp.asarray(numbers)
        if not jnp.issubdtype(numbers.dtype, jnp.integer) and numbers.size:
            raise TypeError(f"{self.op._name}: {what} is {numbers.dtype}; it must be whole numbers")
        if numbers.shape not in ((n,), ()) or numbers.shape == () and n != 1:
            raise ValueError(f"{self.op._name}: {what} has the shape {list(numbers.shape)}; it must "
                             f"be [{n}]")
        if numbers.dtype.itemsize > 4:  # what int32 does not hold is refused as -1 is
            numbers = jnp.where((numbers >= 0) & (numbers < 2**31), numbers, -1)
        return numbers.astype(jnp.int32).reshape(n)

    def _convolve(self, arrays, senders, receivers, n_receivers):
        x = arrays["x"]
        if x.ndim != 2:
            raise ValueError(f"convolution: x has the shape {list(x.shape)}; it must be [n_senders, "
                             f"{self.columns['x']}]")
        n_receivers = (x.shape[0] if n_receivers is None
                       else _checks.count("n_receivers", n_receivers))
        n_edges = int(np.prod(np.shape(senders)))
        edges = [self._index(what, array, n_edges)
                 for what, array in (("senders", senders), ("receivers", receivers))]
        counts = {"x": x.shape[0], "y": n_edges, "w": n_edges, **self.op._fixed}
        return self._call(n_receivers, *edges, *self._shaped(arrays, counts))


_made: dict = {}
_numbers: dict = {}


def function_of(maker, arguments, options):
    """There is one of all that are made alike, as JAX keeps it with what it has compiled."""
    made = Function(maker, arguments, options)
    return _made.setdefault(made._text, made)


def _again(text):
    name, options = json.loads(text)
    return function_of(getattr(clebsch, name), (), options)


def _number(of, dtype, digest):
    """handler.c keeps the pass, and so does this: programs that XLA has compiled name it."""
    number = int.from_bytes(digest, "little", signed=True)
    op, context = of.op, of.op.context
    with context._lock:
        if number not in _numbers:
            compiled = op._compile(of.name, dtype)
            compiled.handle._end.atexit = False
            call = _native.Call(
                id=number, where=context.place, op=compiled.handle.value,
                function=c.cast(compiled.function, c.c_void_p).value, pass_=PASSES[of.name],
                n_inputs=of.of.n_inputs, n_operands=len(of.of.kinds),
                element_bytes=_arrays.BYTES[dtype], of_graph=op._name == "convolution",
                n_species=op.n_species if of.n_indices == 1 else 0,
                i_weights=of.of.operands.index("w") if "w" in of.of.operands else 0)
            for i, kind in enumerate(of.of.kinds):
                there = i < of.of.n_inputs or i - of.of.n_inputs in of.results
                call.operands[i].columns = op.columns[kind] if there else 0
                call.operands[i].fixed = op._fixed.get(kind, 0)
            _native.add(call)
            _numbers[number] = compiled
    return number
