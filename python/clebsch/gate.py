"""Activations of scalars, gates, and activations of norms."""
from __future__ import annotations

import ctypes as c
from typing import Any, Optional, Tuple, Union

from . import _checks
from . import _structs as s
from ._checks import choice
from ._context import Context
from ._op import Op, context_of
from .ops import LAYOUTS, _types

_OPERANDS = {"forward": (["x"], ["y"]), "backward": (["x", "g"], ["g_x"]),
             "double_backward": (["x", "g", "a"], ["d_x", "d_g"])}
_NORM = {"forward": (["x", "w"], ["y"]), "backward": (["x", "w", "g"], ["g_x", "g_w"]),
         "double_backward": (["x", "w", "g", "a", "c"], ["d_x", "d_w", "d_g"])}
_NORM_KINDS = {"x": "x", "w": "w", "y": "z", "g": "z", "g_x": "x", "g_w": "w", "a": "x", "c": "w",
               "d_x": "x", "d_w": "w", "d_g": "z"}
_KINDS = {"x": "x", "y": "y", "g": "y", "g_x": "x", "a": "x", "d_x": "x", "d_g": "y"}


class Gate(Op):
    """columns: of x and y.  irreps_x, irreps_y: theirs."""

    irreps_x: str
    irreps_y: str

    def forward(self, x: Any, out: Any = None) -> Any:
        """y[n][Y] of x[n][X]."""
        return self._run("forward", (x,), out)

    def backward(self, x: Any, g: Any, out: Any = None) -> Any:
        """g_x[n][X], the gradient of sum g y."""
        return self._run("backward", (x, g), out)

    def double_backward(self, x: Any, g: Any, a: Any, out: Any = None) -> Tuple[Any, ...]:
        """d_x[n][X] and d_g[n][Y], the gradients of sum a g_x."""
        return self._run("double_backward", (x, g, a), out)


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
    context, (storage, working) = context_of(device), _types(dtype or "f32", arithmetic)
    texts = {"irreps_scalars": irreps_scalars, "act_scalars": act_scalars,
             "irreps_gates": irreps_gates, "act_gates": act_gates, "irreps_gated": irreps_gated}
    if irreps_x is not None:
        texts["irreps_x"] = irreps_x
    desc = s.gate_desc(
        **{name: _checks.text(name, text).encode() for name, text in texts.items()},
        layout=choice("layout", layout, LAYOUTS), normalize=_checks.flag("normalize", normalize),
        storage=storage, arithmetic=working, passes=1)
    sizes = s.gate_sizes()
    context._call("gate_measure", c.byref(desc), c.byref(sizes))

    def describe(dtype, passes):
        desc.storage, desc.arithmetic = _types(dtype, arithmetic)
        desc.passes = passes
        return desc
    op = Gate("gate", context, dtype, describe, {"x": sizes.x, "y": sizes.y}, _OPERANDS, _KINDS,
              "xy")
    op.irreps_x, op.irreps_y = sizes.irreps_x.decode(), sizes.irreps_y.decode()
    return op


class NormActivation(Op):
    """columns: of x, w and z (y and its like)."""

    def forward(self, x: Any, w: Any = None, out: Any = None) -> Any:
        """y[n][D] of x[n][D] and, with bias, w[n][W] or w[W]."""
        return self._run("forward", (x, w), out)

    def backward(self, x: Any, w: Any, g: Any, out: Any = None) -> Tuple[Any, ...]:
        """g_x[n][D] and g_w[n][W] (None without bias), the gradients of sum g y."""
        return self._run("backward", (x, w, g), out)

    def double_backward(self, x: Any, w: Any, g: Any, a: Any, c: Any = None,
                        out: Any = None) -> Tuple[Any, ...]:
        """d_x, d_w and d_g, the gradients of sum a g_x + c g_w."""
        return self._run("double_backward", (x, w, g, a, c), out)


@_checks.exact_keywords
def norm_activation(irreps: str, act: str, normalize: bool = True, epsilon: float = 0.0,
                    bias: bool = False, layout: str = "mul_ir", dtype: Optional[str] = None,
                    arithmetic: Optional[str] = None,
                    device: Union[str, Context] = "") -> NormActivation:
    """e3nn's NormActivation: act(|x| + w) x in each channel, divided by |x| with normalize.

    act: as of gate.  epsilon: the least |x|, with normalize; 0: 1e-8.  bias: w is a number for each
    channel.  dtype, arithmetic: as for spherical_harmonics."""
    context, (storage, working) = context_of(device), _types(dtype or "f32", arithmetic)
    desc = s.norm_activation_desc(
        irreps=_checks.text("irreps", irreps).encode(), act=_checks.text("act", act).encode(),
        layout=choice("layout", layout, LAYOUTS), normalize=_checks.flag("normalize", normalize),
        epsilon=_checks.number("epsilon", epsilon, 0), bias=_checks.flag("bias", bias),
        storage=storage, arithmetic=working, passes=1)
    sizes, rows = s.rms_norm_sizes(), s.rms_norm_desc(irreps=desc.irreps, passes=1)
    context._call("rms_norm_measure", c.byref(rows), c.byref(sizes))  # numbers of such rows

    def describe(dtype, passes):
        desc.storage, desc.arithmetic = _types(dtype, arithmetic)
        desc.passes = passes
        return desc
    columns = {"x": sizes.x, "w": sizes.w if bias else 0, "z": sizes.x}
    return NormActivation("norm_activation", context, dtype, describe, columns, _NORM, _NORM_KINDS,
                          "xwz")
