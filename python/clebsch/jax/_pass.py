"""Passes of ops as a primitive of JAX, and what moves their results: derivatives in both modes."""
from __future__ import annotations

import functools

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad, batching, mlir

from .._library import Error
from .._op import PASSES
from . import _native

pass_p = jax.extend.core.Primitive("clebsch")
pass_p.multiple_results = True
# The tangents of a pass's results: of its arrays, and of the tangents of those that have a flag, in
# which it is linear.  What it is transposed to is the pass that follows.
tangents_p = jax.extend.core.Primitive("clebsch_tangents")
tangents_p.multiple_results = True


class Pass:
    """A pass that computes gradients of operands of these letters, as a function of arrays: those of
    indices, then those of numbers."""

    def __init__(self, function, name, letters, n_receivers=None):
        self.function, self.name, self.n_receivers = function, name, n_receivers
        self.letters = "" if name == "forward" else letters
        self.op = function.op_of(self.letters)
        self.of = of = self.op._passes[name]
        self.columns, self.fixed = self.op.columns, self.op._fixed
        self.n_indices = function.n_indices
        self.inputs = [i for i, kind in enumerate(of.kinds[:of.n_inputs]) if self.columns[kind]]
        self.results = [i for i, kind in enumerate(of.kinds[of.n_inputs:]) if self.columns[kind]
                        and (of.forward or kind in self.op._gradients)]
        self.kinds = [of.kinds[i] for i in self.inputs]
        self.result_kinds = [of.kinds[of.n_inputs + i] for i in self.results]
        self.n_arrays = self.n_indices + len(self.inputs)
        self.compiled = jax.jit(self)

    def __call__(self, *arrays):
        return pass_p.bind(*arrays, of=self)

    def counts(self, arrays):
        """Of each kind its number of rows."""
        n_x = arrays[self.n_indices].shape[0]
        if self.n_receivers is None:
            return {**dict.fromkeys(self.columns, n_x), **self.fixed}
        n_edges = arrays[0].shape[0]
        return {"x": n_x, "z": self.n_receivers, "y": n_edges, "w": n_edges, **self.fixed}

    def shapes(self, *arrays):
        counts, dtype = self.counts(arrays), arrays[self.n_indices].dtype
        return [jax.core.ShapedArray((counts[kind], self.columns[kind]), dtype)
                for kind in self.result_kinds]

    def lower(self, context, *arrays):
        """XLA's call, for which the pass is compiled."""
        counts, like = self.counts(context.avals_in), context.avals_in[self.n_indices]
        n_each = context.avals_in[0].shape[0] if self.n_indices else counts["x"]
        numbers = {"id": self.function.number(self, like.dtype), "n_x": counts["x"],
                   "n_z": counts["z" if "z" in counts else "x"], "n_each": n_each}
        call = jax.ffi.ffi_lowering(_native.TARGET)
        return call(context, *arrays, **{name: np.int64(n) for name, n in numbers.items()})

    def batched(self, arrays, axes):
        """Rows of all elements of the batch in one call, unless results are sums over rows."""
        of_batch = [axis is not None for axis in axes]
        arrays = [array if axis is None else jnp.moveaxis(array, axis, 0)
                  for array, axis in zip(arrays, axes)]
        if any(kind in self.fixed for kind in self.result_kinds) or any(
                kind in self.fixed and yes for kind, yes in zip(self.kinds, of_batch[self.n_indices:])):
            return self._one_by_one(of_batch, arrays)
        return self._merged(of_batch, arrays)

    def _one_by_one(self, of_batch, arrays):
        def of_one(those):
            those = iter(those)
            return self(*[next(those) if yes else array for array, yes in zip(arrays, of_batch)])
        return jax.lax.map(of_one, [array for array, yes in zip(arrays, of_batch) if yes])

    def _merged(self, of_batch, arrays):
        counts = self.counts([array[0] if yes else array for array, yes in zip(arrays, of_batch)])
        size = next(array.shape[0] for array, yes in zip(arrays, of_batch) if yes)
        nodes = [] if self.n_receivers is None else [counts["x"], self.n_receivers]
        merged = []
        for i, (array, yes) in enumerate(zip(arrays, of_batch)):
            kind = None if i < self.n_indices else self.kinds[i - self.n_indices]
            if kind in self.fixed or kind and i > self.n_indices and (
                    not yes and array.shape[0] == 1):
                merged.append(array)  # one for all
                continue
            array = array if yes else array[None]
            n = array.shape[1] if kind is None else counts[kind]
            array = jnp.broadcast_to(array, (size, n, *array.shape[2:]))
            if i < len(nodes):  # -1 is refused, and no row of another element
                first = nodes[i] * jnp.arange(size, dtype=array.dtype)[:, None]
                array = jnp.where((array >= 0) & (array < nodes[i]), first + array, -1)
            merged.append(array.reshape(size * n, *array.shape[2:]))
        of = self if self.n_receivers is None else self.function.pass_of(
            self.name, self.letters, size * self.n_receivers)
        return [result.reshape(size, -1, result.shape[-1]) for result in of(*merged)]

    def _following(self, letters, times=1):
        """The pass that is so many times the derivative."""
        name = self.name
        for _ in range(times):
            name = name and self.op._passes[name].following
        if not name:
            raise Error(f"{self.op._name}: there is no derivative of order "
                        f"{list(PASSES).index(self.name) + times}")
        return self.function.pass_of(name, letters, self.n_receivers)

    def _zero(self, kind, arrays):
        """One row for all."""
        return jnp.zeros((self.fixed.get(kind, 1), self.columns[kind]),
                         arrays[self.n_indices].dtype)

    def gradients(self, flags, arrays, given):
        """By the operands that have a flag, of results whose gradients are given; None: it is 0."""
        letters = "".join(sorted({kind for kind, flag in zip(self.kinds, flags) if flag}))
        following, known = self._following(letters), dict(zip(self.results, given))
        of_results = [self._zero(kind, arrays) if known.get(i) is None else known[i]
                      for i, kind in enumerate(self.of.kinds[self.of.n_inputs:])
                      if self.columns[kind]]
        found = dict(zip(following.results, following(*arrays, *of_results)))
        return [found[i] for i, flag in zip(self.inputs, flags) if flag]

    def tangents(self, flags, arrays, moving):
        """Of results, where operands that have a flag move.

        In forward z moves by what double backward calls the gradient by g of sum a g_x + ...: a, b
        and c are the tangents.  In backward its other gradients are how g_x, ... move with x, y and
        w, as second derivatives are symmetric; and results are linear in g."""
        moving = iter(moving)
        given = [next(moving) if flag else self._zero(kind, arrays)
                 for kind, flag in zip(self.kinds, flags)]
        if self.of.forward:
            second = self._following(self.result_kinds[0], 2)
            return second(*arrays, self._zero(self.result_kinds[0], arrays), *given)[-1:]
        if self.name != "backward":
            raise Error(f"{self.op._name}: {self.name} has derivatives in reverse mode only")
        terms = []
        if any(flags[:-1]):
            second = self._following(self.letters)
            found = dict(zip(second.results, second(*arrays, *given[:-1])))
            terms.append([found[i] for i in self.results])
        if flags[-1]:
            terms.append(self(*arrays[:-1], given[-1]))
        return [sum(results) for results in zip(*terms)]


def _compute(*arrays, of):
    with jax.disable_jit(False):  # for callers that have disabled it
        return of.compiled(*arrays)


def _moved(*arrays, of, flags):
    return of.tangents(flags, arrays[:of.n_arrays], arrays[of.n_arrays:])


def _differentiate(arrays, tangents, of):
    tangents = tangents[of.n_indices:]
    flags = tuple(not isinstance(tangent, ad.Zero) for tangent in tangents)
    moving = [tangent for tangent, flag in zip(tangents, flags) if flag]
    return of(*arrays), tangents_p.bind(*arrays, *moving, of=of, flags=flags)


def _transpose(gradients, *arrays, of, flags):
    given = [None if isinstance(gradient, ad.Zero) else gradient for gradient in gradients]
    return [None] * of.n_arrays + of.gradients(flags, arrays[:of.n_arrays], given)


def _differentiate_tangents(arrays, tangents, **of):
    tangents = [np.zeros(array.shape, jax.dtypes.float0)
                if jnp.issubdtype(array.dtype, jnp.integer) else ad.instantiate_zeros(tangent)
                for array, tangent in zip(arrays, tangents)]
    return jax.jvp(functools.partial(_moved, **of), arrays, tangents)


def _batched_tangents(arrays, axes, **of):
    results = jax.vmap(functools.partial(_moved, **of), axes)(*arrays)
    return results, [0] * len(results)


def _batched(arrays, axes, of):
    results = of.batched(arrays, axes)
    return results, [0] * len(results)


pass_p.def_impl(_compute)
pass_p.def_abstract_eval(lambda *arrays, of: of.shapes(*arrays))
mlir.register_lowering(pass_p, lambda context, *arrays, of: of.lower(context, *arrays))
batching.primitive_batchers[pass_p] = _batched
ad.primitive_jvps[pass_p] = _differentiate
tangents_p.def_impl(_moved)
tangents_p.def_abstract_eval(lambda *arrays, of, flags: of.shapes(*arrays[:of.n_arrays]))
mlir.register_lowering(tangents_p, mlir.lower_fun(_moved, multiple_results=True))
batching.primitive_batchers[tangents_p] = _batched_tangents
ad.primitive_jvps[tangents_p] = _differentiate_tangents
ad.primitive_transposes[tangents_p] = _transpose
