"""Activations of scalars, and gates."""
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
