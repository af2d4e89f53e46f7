"""Linear maps of irreps."""
from __future__ import annotations

import ctypes as c
from typing import Any, Optional, Sequence, Tuple, Union

from . import _checks
from . import _structs as s
from ._checks import choice
from ._context import Context
from ._op import Op, context_of
from .ops import BITS, LAYOUTS, PATH_NORMALIZATIONS, _types

_OPERANDS = {"forward": (["x", "w"], ["z"]), "backward": (["x", "w", "g"], ["g_x", "g_w"]),
             "double_backward": (["x", "w", "g", "a", "c"], ["d_x", "d_w", "d_g"])}
_KINDS = {"x": "x", "w": "w", "z": "z", "g": "z", "g_x": "x", "g_w": "w", "a": "x", "c": "w",
          "d_x": "x", "d_w": "w", "d_g": "z"}


class Linear(Op):
    """columns: of x, w and z."""

    weights_per_row = False

    def _counts(self, inputs):
        if self.weights_per_row:
            return super()._counts(inputs)
        rows = [operand if operand and self._kinds[operand.view.what] != "w" else None
                for operand in inputs]
        return {**super()._counts(rows), "w": 1}

    def forward(self, x: Any, w: Any, out: Any = None) -> Any:
        """z[n][Z] of x[n][X] and w[W], or w[n][W] with weights_per_row."""
        return self._run("forward", (x, w), out)

    def backward(self, x: Any, w: Any, g: Any, out: Any = None) -> Tuple[Any, ...]:
        """g_x[n][X] and g_w[1][W] (or [n][W]), the gradients of sum g z."""
        return self._run("backward", (x, w, g), out)

    def double_backward(self, x: Any, w: Any, g: Any, a: Any, c: Any,
                        out: Any = None) -> Tuple[Any, ...]:
        """d_x, d_w and d_g, the gradients of sum a g_x + c g_w."""
        return self._run("double_backward", (x, w, g, a, c), out)


def _biases(biases):
    """The members bias, biases and n_biases."""
    if not hasattr(biases, "__iter__"):
        return _checks.flag("biases", biases), None, 0
    flags = [_checks.flag("biases", bias) for bias in biases]
    return False, (c.c_int * max(1, len(flags)))(*flags), len(flags)


def _instructions(instructions):
    if instructions is None:
        return None, 0
    pairs = []
    for number, pair in enumerate(instructions):
        terms = _checks.whole(f"instructions[{number}]", pair)
        if len(terms) != 2:
            raise ValueError(f"instructions[{number}]: {pair!r}; it must be (i_in, i_out)")
        pairs.append(s.linear_instruction(*(int(term) for term in terms)))
    return (s.linear_instruction * max(1, len(pairs)))(*pairs), len(pairs)


@_checks.exact_keywords
def linear(irreps_in: str, irreps_out: str,
           instructions: Optional[Sequence[Tuple[int, int]]] = None,
           biases: Union[bool, Sequence[bool]] = False, path_normalization: str = "element",
           layout: str = "mul_ir", weights_per_row: bool = False, gradients: str = "xwz",
           dtype: Optional[str] = None, arithmetic: Optional[str] = None,
           device: Union[str, Context] = "") -> Linear:
    """e3nn's Linear: each channel of the output mixes those of the input of its irrep.

    instructions: pairs (i_in, i_out) of terms; None: all of equal irrep.  biases: True for all
    terms 0e of the output, or of each term whether it has them.  w: e3nn's weight, then its bias.
    weights_per_row: each row of x has its own.  dtype, arithmetic: as for spherical_harmonics.
    gradients: those that derivative passes compute; the others are None."""
    context, (storage, working) = context_of(device), _types(dtype or "f32", arithmetic)
    letters = set(_checks.text("gradients", gradients))
    bits = {letter: BITS[letter] for letter in "xwz"}
    pairs, n_pairs = _instructions(instructions)
    bias, flags, n_flags = _biases(biases)
    kind = choice("layout", layout, LAYOUTS)
    per_row = _checks.flag("weights_per_row", weights_per_row)
    desc = s.linear_desc(
        irreps_in=_checks.text("irreps_in", irreps_in).encode(),
        irreps_out=_checks.text("irreps_out", irreps_out).encode(),
        instructions=pairs, n_instructions=n_pairs, bias=bias, biases=flags, n_biases=n_flags,
        path_normalization=choice("path_normalization", path_normalization, PATH_NORMALIZATIONS),
        layout_in=kind, layout_out=kind, weights_per_row=per_row,
        gradients=sum(choice("gradients", letter, bits) for letter in letters),
        storage=storage, arithmetic=working, passes=1)
    sizes = s.linear_sizes()
    context._call("linear_measure", c.byref(desc), c.byref(sizes))

    def describe(dtype, passes):
        desc.storage, desc.arithmetic = _types(dtype, arithmetic)
        desc.passes = passes
        return desc
    columns = {"x": sizes.x, "w": sizes.w, "z": sizes.z}
    op = Linear("linear", context, dtype, describe, columns, _OPERANDS, _KINDS, gradients)
    op.weights_per_row = per_row
    return op
