"""Ops as functions of tensors that autograd differentiates."""
from __future__ import annotations

import json
from typing import Any, Optional, Sequence, Tuple

import torch

from ._ops import OPS, describe, described, operators


class Function:
    """An op.  Called with its operands, [n][columns] each, it gives its result.

    columns: the length of rows of x, y, w and z."""

    def __init__(self, name, options):
        self.text = describe(name, options)
        self.columns = dict(described(self.text).columns)
        self._call = operators[f"{name}_forward"]
        self._n = len(OPS[name]._passes["forward"].inputs)

    def __call__(self, *operands: Any) -> Any:
        return self._call(self.text, "", *operands, *(None,) * (self._n - len(operands)))

    def __reduce__(self):  # for copies and files
        return type(self), tuple(json.loads(self.text))

    def __repr__(self) -> str:
        return f"clebsch.torch.Function({self.text})"


class _OfSpecies(Function):
    def __call__(self, x, w, species=None):
        return self._call(self.text, "", species, x, w)


class _OfEdges(Function):
    def __call__(self, x, y, w, senders, receivers, n_receivers=None, known=False):
        """known: a function before compared these edges; unless PyTorch has counted a write to
        them since, they are not compared again."""
        return self._call(self.text, "", senders, receivers,
                          x.shape[0] if n_receivers is None else n_receivers, known, x, y, w)


def spherical_harmonics(degrees: Sequence[int], **options: Any) -> Function:
    """f(x): as clebsch.spherical_harmonics, with its options."""
    return Function("spherical_harmonics", {"degrees": [int(d) for d in degrees], **options})


def _product(irreps, instructions, options):
    steps = [list(path) for path in instructions]
    return {**dict(zip(("irreps_x", "irreps_y", "irreps_z"), map(str, irreps))),
            "instructions": steps, **options}


def tensor_product(irreps_x: Any, irreps_y: Any, irreps_z: Any, instructions: Sequence[Tuple],
                   **options: Any) -> Function:
    """f(x, y, w): as clebsch.tensor_product, with its options; w is None where there are no
    weights."""
    return Function("tensor_product", _product((irreps_x, irreps_y, irreps_z), instructions,
                                               options))


def convolution(irreps_x: Any, irreps_y: Any, irreps_z: Any, instructions: Sequence[Tuple],
                **options: Any) -> Function:
    """f(x, y, w, senders, receivers, n_receivers=None, known=False): as clebsch.convolution, with
    its options.  Of edges there are lists of int32 or int64; n_receivers: None is as many as rows
    of x.  known: they were compared before, by the layer above."""
    return _OfEdges("convolution", _product((irreps_x, irreps_y, irreps_z), instructions, options))


def symmetric_contraction(ell: int, correlation: int, degrees: Sequence[int], channels: int,
                          **options: Any) -> Function:
    """f(x, w, species=None): as clebsch.symmetric_contraction, with its options."""
    return _OfSpecies("symmetric_contraction", {
        "ell": ell, "correlation": correlation, "degrees": [int(d) for d in degrees],
        "channels": channels, **options})


def linear(irreps_in: Any, irreps_out: Any,
           instructions: Optional[Sequence[Tuple[int, int]]] = None, **options: Any) -> Function:
    """f(x, w, species=None): as clebsch.linear, with its options."""
    pairs = None if instructions is None else [[int(i) for i in pair] for pair in instructions]
    return _OfSpecies("linear", {"irreps_in": str(irreps_in), "irreps_out": str(irreps_out),
                                 "instructions": pairs, **options})


def rms_norm(irreps: Any, **options: Any) -> Function:
    """f(x, w): as clebsch.rms_norm, with its options."""
    return Function("rms_norm", {"irreps": str(irreps), **options})


def gate(irreps_scalars: Any, act_scalars: str, irreps_gates: Any = "", act_gates: str = "",
         irreps_gated: Any = "", **options: Any) -> Function:
    """f(x): as clebsch.gate, with its options."""
    return Function("gate", {
        "irreps_scalars": str(irreps_scalars), "act_scalars": act_scalars,
        "irreps_gates": str(irreps_gates), "act_gates": act_gates,
        "irreps_gated": str(irreps_gated), **options})


def norm_activation(irreps: Any, act: str, **options: Any) -> Function:
    """f(x, w=None): as clebsch.norm_activation, with its options; with bias w is [n][W]."""
    return Function("norm_activation", {"irreps": str(irreps), "act": act, **options})
