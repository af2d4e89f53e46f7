"""Linear maps of irreps."""
from __future__ import annotations

import ctypes as c
from typing import Optional, Sequence, Tuple, Union

from . import _checks
from . import _structs as s
from ._checks import choice
from ._context import Context
from ._op import LAYOUTS, Op, bits_of, context_of, described, measured
from .ops import PATH_NORMALIZATIONS


class Linear(Op, name="linear", last=("species",)):
    """z[n][Z] of x[n][X] and w[W]; with weights_per_row of w[n][W], with n_species of
    w[n_species][W] and species[n], the number of its weights for each row."""


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
           layout: str = "mul_ir", weights_per_row: bool = False, n_species: int = 0,
           gradients: str = "xwz", dtype: Optional[str] = None, arithmetic: Optional[str] = None,
           device: Union[str, Context] = "") -> Linear:
    """e3nn's Linear: each channel of the output mixes those of the input of its irrep.

    instructions: pairs (i_in, i_out) of terms; None: all of equal irrep.  biases: True for all
    terms 0e of the output, or of each term whether it has them.  w: e3nn's weight, then its bias.
    weights_per_row: each row of x has its own.  n_species: weights are w[n_species][W], and passes
    take species=, a number for each row of x.  dtype, arithmetic: as for spherical_harmonics.
    gradients: those that derivative passes compute; the others are None."""
    context, kind = context_of(device), choice("layout", layout, LAYOUTS)
    pairs, n_pairs = _instructions(instructions)
    bias, flags, n_flags = _biases(biases)
    desc = described(
        s.linear_desc, dtype, arithmetic,
        irreps_in=_checks.text("irreps_in", irreps_in).encode(),
        irreps_out=_checks.text("irreps_out", irreps_out).encode(),
        instructions=pairs, n_instructions=n_pairs, bias=bias, biases=flags, n_biases=n_flags,
        path_normalization=choice("path_normalization", path_normalization, PATH_NORMALIZATIONS),
        layout_in=kind, layout_out=kind,
        weights_per_row=_checks.flag("weights_per_row", weights_per_row),
        n_species=_checks.count("n_species", n_species), gradients=bits_of(gradients, "xwz"))
    sizes = measured(context, "linear", desc)
    op = Linear(context, dtype, arithmetic, desc, {o: getattr(sizes, o) for o in "xwz"}, gradients,
                {} if desc.weights_per_row else {"w": desc.n_species or 1})
    op.n_species, op.weights_per_row = desc.n_species, bool(desc.weights_per_row)
    return op
