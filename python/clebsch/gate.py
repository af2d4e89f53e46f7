"""Activations of scalars, gates, and activations of norms."""
from __future__ import annotations

from typing import Optional, Union

from . import _checks
from . import _structs as s
from ._checks import choice
from ._context import Context
from ._op import LAYOUTS, Op, context_of, described, measured


class Gate(Op, name="gate"):
    """y[n][Y] of x[n][X].  columns: of x, and of y, which is z, too.  irreps_x, irreps_y: theirs."""

    irreps_x: str
    irreps_y: str


@_checks.exact_keywords
def gate(irreps_scalars: str, act_scalars: str, irreps_gates: str = "", act_gates: str = "",
         irreps_gated: str = "", irreps_x: Optional[str] = None, normalize: bool = True,
         layout: str = "mul_ir", dtype: Optional[str] = None, arithmetic: Optional[str] = None,
         device: Union[str, Context] = "") -> Gate:
    """e3nn's Gate: act_scalars(scalars), then gated times act_gates(gates).

    Activations: "silu", "tanh", "sigmoid", "relu", "abs", "ssp" or "identity", or one for each
    term, "silu,tanh"; with a factor, "1.68*silu".  irreps_x: the order of x; None: e3nn's.
    normalize: the mean of an activation's square is 1.  dtype, arithmetic: as for
    spherical_harmonics."""
    texts = {"irreps_scalars": irreps_scalars, "act_scalars": act_scalars,
             "irreps_gates": irreps_gates, "act_gates": act_gates, "irreps_gated": irreps_gated}
    if irreps_x is not None:
        texts["irreps_x"] = irreps_x
    context = context_of(device)
    desc = described(
        s.gate_desc, dtype, arithmetic, layout=choice("layout", layout, LAYOUTS),
        normalize=_checks.flag("normalize", normalize),
        **{name: _checks.text(name, text).encode() for name, text in texts.items()})
    sizes = measured(context, "gate", desc)
    columns = {"x": sizes.x, "y": sizes.y, "z": sizes.y}
    op = Gate(context, dtype, arithmetic, desc, columns, "xz")
    op.irreps_x, op.irreps_y = sizes.irreps_x.decode(), sizes.irreps_y.decode()
    return op


class NormActivation(Op, name="norm_activation"):
    """y[n][D] of x[n][D] and, with bias, w[n][W] or w[W].  columns: of x, w and z, which y and g are
    shaped like."""


@_checks.exact_keywords
def norm_activation(irreps: str, act: str, normalize: bool = True, epsilon: float = 0.0,
                    bias: bool = False, layout: str = "mul_ir", dtype: Optional[str] = None,
                    arithmetic: Optional[str] = None,
                    device: Union[str, Context] = "") -> NormActivation:
    """e3nn's NormActivation: act(|x| + w) x in each channel, divided by |x| with normalize.

    act: as of gate.  epsilon: the least |x|, with normalize; 0: 1e-8.  bias: w is a number for each
    channel.  dtype, arithmetic: as for spherical_harmonics."""
    context = context_of(device)
    desc = described(
        s.norm_activation_desc, dtype, arithmetic, irreps=_checks.text("irreps", irreps).encode(),
        act=_checks.text("act", act).encode(), layout=choice("layout", layout, LAYOUTS),
        normalize=_checks.flag("normalize", normalize),
        epsilon=_checks.number("epsilon", epsilon, 0), bias=_checks.flag("bias", bias))
    sizes = measured(context, "rms_norm", s.rms_norm_desc(irreps=desc.irreps, passes=1))
    columns = {"x": sizes.x, "w": sizes.w if bias else 0, "z": sizes.x}
    return NormActivation(context, dtype, arithmetic, desc, columns, "xwz")
