"""Norms of rows of irreps."""
from __future__ import annotations

import ctypes as c
from typing import Any, Optional, Tuple, Union

from . import _checks
from . import _structs as s
from ._checks import choice
from ._context import Context
from ._op import Op, context_of
from .ops import BITS, LAYOUTS, _types

VARIANTS = {"plain": s.RMS_PLAIN, "nequix": s.RMS_NEQUIX, "degree": s.RMS_DEGREE,
            "degree_norm": s.RMS_DEGREE_NORM, "balanced": s.RMS_BALANCED}
_OPERANDS = {"forward": (["x", "w"], ["y"]), "backward": (["x", "w", "g"], ["g_x", "g_w"]),
             "double_backward": (["x", "w", "g", "a", "c"], ["d_x", "d_w", "d_g"])}
_KINDS = {"x": "x", "w": "w", "y": "z", "g": "z", "g_x": "x", "g_w": "w", "a": "x", "c": "w",
          "d_x": "x", "d_w": "w", "d_g": "z"}


class RmsNorm(Op):
    """columns: of x, w and z (y and its like)."""

    def _counts(self, inputs):
        rows = [operand if operand and self._kinds[operand.view.what] != "w" else None
                for operand in inputs]
        return {**super()._counts(rows), "w": 1}

    def forward(self, x: Any, w: Any, out: Any = None) -> Any:
        """y[n][D] of x[n][D] and w[W]."""
        return self._run("forward", (x, w), out)

    def backward(self, x: Any, w: Any, g: Any, out: Any = None) -> Tuple[Any, ...]:
        """g_x[n][D] and g_w[1][W], the gradients of sum g y."""
        return self._run("backward", (x, w, g), out)

    def double_backward(self, x: Any, w: Any, g: Any, a: Any, c: Any,
                        out: Any = None) -> Tuple[Any, ...]:
        """d_x, d_w and d_g, the gradients of sum a g_x + c g_w."""
        return self._run("double_backward", (x, w, g, a, c), out)


@_checks.exact_keywords
def rms_norm(irreps: str, variant: str = "plain", epsilon: float = 1e-6, layout: str = "mul_ir",
             weight_offset: float = 0.0, centre: bool = False, bias: bool = False,
             gradients: str = "xwz", dtype: Optional[str] = None,
             arithmetic: Optional[str] = None, device: Union[str, Context] = "") -> RmsNorm:
    """Rows divided by the root of a mean of their squares; "512x0e" are plain rows of 512 numbers.

    variant: "plain", "nequix", "degree", "degree_norm" or "balanced", as in clebsch.h.  w: a weight
    for each channel, then, with bias, one for each channel of 0e.  dtype, arithmetic: as for
    spherical_harmonics.  gradients: those that derivative passes compute; the others are None."""
    context, (storage, working) = context_of(device), _types(dtype or "f32", arithmetic)
    letters = set(_checks.text("gradients", gradients))
    bits = {letter: BITS[letter] for letter in "xwz"}
    desc = s.rms_norm_desc(
        irreps=_checks.text("irreps", irreps).encode(), layout=choice("layout", layout, LAYOUTS),
        variant=choice("variant", variant, VARIANTS), epsilon=_checks.number("epsilon", epsilon, 0),
        weight_offset=_checks.number("weight_offset", weight_offset),
        centre=_checks.flag("centre", centre), bias=_checks.flag("bias", bias),
        gradients=sum(choice("gradients", letter, bits) for letter in letters),
        storage=storage, arithmetic=working, passes=1)
    sizes = s.rms_norm_sizes()
    context._call("rms_norm_measure", c.byref(desc), c.byref(sizes))

    def describe(dtype, passes):
        desc.storage, desc.arithmetic = _types(dtype, arithmetic)
        desc.passes = passes
        return desc
    columns = {"x": sizes.x, "w": sizes.w, "z": sizes.x}
    return RmsNorm("rms_norm", context, dtype, describe, columns, _OPERANDS, _KINDS, gradients)
