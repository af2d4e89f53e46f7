"""Norms of rows of irreps."""
from __future__ import annotations

from typing import Optional, Sequence, Union

from . import _checks
from . import _structs as s
from ._checks import choice
from ._context import Context
from ._op import LAYOUTS, Op, bits_of, context_of, described, measured

VARIANTS = {"plain": s.RMS_PLAIN, "nequix": s.RMS_NEQUIX, "degree": s.RMS_DEGREE,
            "degree_norm": s.RMS_DEGREE_NORM, "balanced": s.RMS_BALANCED, "terms": s.RMS_TERMS}


class RmsNorm(Op, name="rms_norm"):
    """y[n][D] of x[n][D] and w[W]; g_w and its like are [1][W].  columns: of x, w and z, which y and
    g are shaped like."""


@_checks.exact_keywords
def rms_norm(irreps: str, variant: str = "plain", epsilon: float = 1e-6, layout: str = "mul_ir",
             weight_offset: float = 0.0, centre: bool = False, bias: bool = False,
             factors: Sequence[float] = (), gradients: str = "xwz", dtype: Optional[str] = None,
             arithmetic: Optional[str] = None, device: Union[str, Context] = "") -> RmsNorm:
    """Rows divided by the root of a mean of their squares; "512x0e" are plain rows of 512 numbers.

    variant: "plain", "nequix", "degree", "degree_norm", "balanced", or "terms" with factors, one of
    each term, as in clebsch.h.  w: a weight for each channel, then, with bias, one for each channel
    of 0e.  dtype, arithmetic: as for spherical_harmonics.  gradients: those that derivative passes
    compute; the others are None."""
    context = context_of(device)
    of_terms = _checks.reals("factors", factors).ravel().copy()
    desc = described(
        s.rms_norm_desc, dtype, arithmetic, irreps=_checks.text("irreps", irreps).encode(),
        layout=choice("layout", layout, LAYOUTS), variant=choice("variant", variant, VARIANTS),
        epsilon=_checks.number("epsilon", epsilon, 0),
        weight_offset=_checks.number("weight_offset", weight_offset),
        centre=_checks.flag("centre", centre), bias=_checks.flag("bias", bias),
        gradients=bits_of(gradients, "xwz"),
        factors=of_terms.ctypes.data, n_factors=len(of_terms))
    sizes = measured(context, "rms_norm", desc)
    columns = {"x": sizes.x, "w": sizes.w, "z": sizes.x}
    op = RmsNorm(context, dtype, arithmetic, desc, columns, gradients, {"w": 1})
    op._factors = of_terms  # the description has its address
    return op
