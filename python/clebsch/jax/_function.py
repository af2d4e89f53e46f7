"""Ops as functions of JAX's arrays."""
from __future__ import annotations

import ctypes as c
import functools
import hashlib
import inspect
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _arrays, _checks
from .._library import Error
from .._op import PASSES
from . import _native

NAMES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16"}
SHORT = {long: short for short, long in NAMES.items()}


@jax.tree_util.register_static
class _Flags(tuple):
    """Which operands of a pass are differentiated."""


class _Pass:
    """A pass that computes gradients of operands of these letters, as a function of arrays: those of
    indices, then those of numbers.  Its derivative is the one that follows."""

    def __init__(self, function, name, letters, n_receivers=None):
        self.function, self.name, self.n_receivers = function, name, n_receivers
        self.op = function.op_of("" if name == "forward" else letters)
        self.of = of = self.op._passes[name]
        self.columns, self.fixed = self.op.columns, self.op._fixed
        self.n_indices = function.n_indices
        self.inputs = [i for i, kind in enumerate(of.kinds[:of.n_inputs]) if self.columns[kind]]
        self.results = [i for i, kind in enumerate(of.kinds[of.n_inputs:]) if self.columns[kind]
                        and (of.forward or kind in self.op._gradients)]
        self.kinds = [of.kinds[i] for i in self.inputs]
        self.result_kinds = [of.kinds[of.n_inputs + i] for i in self.results]
        self.compute = jax.custom_batching.custom_vmap(self._compute)
        self.compute.def_vmap(self._batched)
        self.differentiable = jax.custom_vjp(lambda *arrays: self.compute(*arrays))
        self.differentiable.defvjp(self._forward, self._backward, symbolic_zeros=True)

    def counts(self, arrays):
        """Of each kind its number of rows."""
        n_x = arrays[self.n_indices].shape[0]
        if self.n_receivers is None:
            return {**dict.fromkeys(self.columns, n_x), **self.fixed}
        n_edges = arrays[0].shape[0]
        return {"x": n_x, "z": self.n_receivers, "y": n_edges, "w": n_edges, **self.fixed}

    def _compute(self, *arrays):
        counts, dtype = self.counts(arrays), arrays[self.n_indices].dtype
        n_each = arrays[0].shape[0] if self.n_indices else counts["x"]
        shapes = [jax.ShapeDtypeStruct((counts[kind], self.columns[kind]), dtype)
                  for kind in self.result_kinds]
        call = jax.ffi.ffi_call(_native.TARGET, shapes)
        number = self.function.number(self, SHORT[dtype.name])
        return call(*arrays, id=np.int64(number), n_x=np.int64(counts["x"]),
                    n_z=np.int64(counts["z" if "z" in counts else "x"]), n_each=np.int64(n_each))

    def _batched(self, size, batched, *arrays):
        """Rows of all elements of the batch in one call, unless results are sums over rows."""
        fixed = [kind in self.fixed for kind in self.kinds]
        if any(kind in self.fixed for kind in self.result_kinds) or any(
                known and of_batch for known, of_batch in zip(fixed, batched[self.n_indices:])):
            results = self._one_by_one(batched, arrays)
        else:
            results = self._merged(size, batched, arrays)
        return results, [True] * len(results)

    def _one_by_one(self, batched, arrays):
        def of_one(those):
            those = iter(those)
            return self.compute(*[next(those) if of_batch else array
                                  for array, of_batch in zip(arrays, batched)])
        return jax.lax.map(of_one, [array for array, of_batch in zip(arrays, batched) if of_batch])

    def _merged(self, size, batched, arrays):
        one = [array[0] if of_batch else array for array, of_batch in zip(arrays, batched)]
        counts, merged = self.counts(one), []
        starts = [counts["x"], self.n_receivers] if self.n_receivers is not None else [0]
        for i, (array, of_batch) in enumerate(zip(arrays, batched)):
            kind = None if i < self.n_indices else self.kinds[i - self.n_indices]
            if kind in self.fixed or kind and i > self.n_indices and (
                    not of_batch and array.shape[0] == 1):
                merged.append(array)  # one for all
                continue
            array = array if of_batch else array[None]
            n = array.shape[1] if kind is None else counts[kind]
            array = jnp.broadcast_to(array, (size, n, *array.shape[2:]))
            if kind is None:
                array = array + starts[i] * jnp.arange(size, dtype=array.dtype)[:, None]
            merged.append(array.reshape(size * n, *array.shape[2:]))
        of = self if self.n_receivers is None else self.function.pass_of(
            self.name, self.op._letters, size * self.n_receivers)
        return [result.reshape(size, -1, result.shape[-1]) for result in of.compute(*merged)]

    def _forward(self, *primals):
        arrays = [primal.value for primal in primals]
        flags = _Flags(bool(primal.perturbed) for primal in primals[self.n_indices:])
        return self.differentiable(*arrays), (flags, arrays)

    def _backward(self, kept, gradients):
        flags, arrays = kept
        if not self.of.following:
            raise Error(f"{self.op._name}: there is no derivative of order "
                        f"{list(PASSES).index(self.name) + 1}")
        letters = "".join(sorted({kind for kind, flag in zip(self.kinds, flags) if flag}))
        following = self.function.pass_of(self.of.following, letters, self.n_receivers)
        dtype, counts = arrays[self.n_indices].dtype, self.counts(arrays)
        known, given = dict(zip(self.results, gradients)), []
        for i, kind in enumerate(self.of.kinds[self.of.n_inputs:]):
            gradient = known.get(i)
            if gradient is None or isinstance(gradient, jax.custom_derivatives.SymbolicZero):
                gradient = jnp.zeros((counts[kind] if kind in self.fixed else 1,
                                      self.columns[kind]), dtype)
            if self.columns[kind]:
                given.append(gradient)
        found = dict(zip(following.results, following.differentiable(*arrays, *given)))
        return (None,) * self.n_indices + tuple(
            found[i] if flag else None for i, flag in zip(self.inputs, flags))


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
        self._maker, self._options = maker, dict(given.arguments)
        device = _checks.text("device", self._options["device"]) or "cpu"
        if device.partition(":")[0] != "cpu":
            raise ValueError(f"device: {device!r}; arrays are on JAX's CPU, where there are 'cpu', "
                             "'cpu:threads=N' and 'cpu:interpreter'")
        if self._options.get("knots"):
            raise ValueError("knots: splines have a table that JAX does not know; weights are an "
                             "operand, w")
        self._options["device"] = _native.context_of(device)
        self._ops, self._passes = {}, {}
        self.op = op = self.op_of("")
        self.columns, self._inputs = dict(op.columns), op._passes["forward"].inputs
        if not self.columns["x"]:
            raise ValueError(f"{op._name}: there are no irreps of x")
        self._edges = op._name == "convolution"
        self.n_indices = 2 if self._edges else int(bool(op.n_species))
        described = {**self._options, "device": device}
        self._text = json.dumps([op._name, described], default=np.ndarray.tolist)
        self._call = jax.jit(self._flat, static_argnums=0)

    def __repr__(self):
        return f"clebsch.jax.{self._text}"

    def op_of(self, letters):
        """The op that computes these gradients."""
        if letters not in self._ops:
            chosen = {"gradients": letters} if letters and "gradients" in self._options else {}
            op = self._ops[letters] = self._maker(**{**self._options, **chosen})
            op._letters = letters
        return self._ops[letters]

    def pass_of(self, name, letters, n_receivers):
        key = name, letters, n_receivers
        if key not in self._passes:
            self._passes[key] = _Pass(self, *key)
        return self._passes[key]

    def number(self, of, dtype):
        """Of a pass that is compiled for arrays of this type."""
        return _number(of, dtype, hashlib.sha256(json.dumps(
            [self._text, of.name, of.op._letters, dtype]).encode()).digest()[:8])

    def _flat(self, n_receivers, *arrays):
        return self.pass_of("forward", "", n_receivers).differentiable(*arrays)[0]

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
            indices = [self._index("species", given.get("species"), n)]
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


_numbers: dict = {}


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
