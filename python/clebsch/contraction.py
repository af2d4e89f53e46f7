"""The symmetric contraction of MACE."""
from __future__ import annotations

import ctypes as c
from typing import Optional, Sequence, Union

import numpy as np

from . import _checks
from . import _structs as s
from ._checks import choice
from ._context import Context
from ._op import LAYOUTS, Op, bits_of, context_of, described


class SymmetricContraction(Op, name="symmetric_contraction", last=("species",)):
    """z[n][Z] of x[n][X] and w[n_species][W], of which row r has those of species[r]; a row of w is
    [paths][channels]."""

    def paths(self, degree: int, nu: int) -> range:
        """The numbers of the paths of nu factors to that degree."""
        found = s.symmetric_paths()
        self.context._call("symmetric_contraction_paths", c.byref(self._desc),
                           _checks.count("degree", degree), _checks.count("nu", nu),
                           c.byref(found))
        return range(found.first, found.first + found.count)

    def basis(self, degree: int, nu: int, path: int) -> np.ndarray:
        """The tensor [2 degree + 1][d]...[d] (nu times) of one of those paths, d = (ell + 1)^2."""
        if path not in self.paths(degree, nu):
            raise ValueError(f"path: {path!r}; it must be one of {self.paths(degree, nu)}")
        tensor = np.empty((2 * degree + 1,) + nu * ((self._desc.ell + 1) ** 2,))
        self.context._call("symmetric_contraction_basis", c.byref(self._desc), path,
                           tensor.ctypes.data_as(c.POINTER(c.c_double)), tensor.size)
        return tensor


@_checks.exact_keywords
def symmetric_contraction(ell: int, correlation: int, degrees: Sequence[int], channels: int,
                          n_species: int = 1, layout: str = "mul_ir", gradients: str = "xwz",
                          dtype: Optional[str] = None, arithmetic: Optional[str] = None,
                          device: Union[str, Context] = "") -> SymmetricContraction:
    """Products of up to `correlation` features of an atom, as in MACE.

    x: `channels` times all degrees 0 ... ell.  degrees: of z.  w: by species, of which passes take
    one for each row, species= (none where there is one).  layout: "mul_ir", "ir_mul" or
    "by_channel" (MACE's own).  dtype, arithmetic: as for spherical_harmonics.  gradients: those that
    derivative passes compute; the others are None.  clebsch.h has the formula."""
    of_z = [int(degree) for degree in _checks.whole("degrees", degrees)]
    kind = choice("layout", layout, {**LAYOUTS, "by_channel": s.BY_CHANNEL})
    context, n = context_of(device), _checks.count("n_species", n_species, 1)
    desc = described(
        s.symmetric_contraction_desc, dtype, arithmetic, ell=_checks.count("ell", ell),
        correlation=_checks.count("correlation", correlation),
        degrees=(c.c_int * max(1, len(of_z)))(*of_z), n_degrees=len(of_z),
        channels=_checks.count("channels", channels), n_species=n, layout_x=kind, layout_z=kind,
        gradients=bits_of(gradients, "xwz"))
    paths = s.symmetric_paths()
    context._call("symmetric_contraction_paths", c.byref(desc), of_z[0] if of_z else 0, 1,
                  c.byref(paths))
    columns = {"x": (desc.ell + 1) ** 2 * desc.channels, "w": paths.all * desc.channels,
               "z": sum(2 * degree + 1 for degree in of_z) * desc.channels}
    op = SymmetricContraction(context, dtype, arithmetic, desc, columns, gradients, {"w": n})
    op.n_species = n
    return op
