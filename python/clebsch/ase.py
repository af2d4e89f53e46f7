"""ASE: atoms.calc = clebsch.ase.Calculator("model.safetensors")"""
from __future__ import annotations

import os
from typing import Optional, Union

from ase.calculators.calculator import (Calculator as Base, PropertyNotImplementedError,
                                        all_changes)
from ase.data import chemical_symbols
from ase.stress import full_3x3_to_voigt_6_stress

from . import _checks
from ._context import Context
from ._library import Error
from ._structs import VERSION
from .model import Model, Path, file_name, file_state, has_volume, reopen, sha256


class Calculator(Base):
    """Energy, forces, stress and energies of atoms; the arguments are those of clebsch.Model.

    Every computation gives all of them; stress where the cell has a volume.  With a `skin`
    (Angstrom), neighbour lists are kept until an atom has moved by half of it.  Copies and unpickled
    calculators open the model's file again; it must not have changed.

    parameters, which ase.db and trajectories keep: the model's file and its SHA-256, the device,
    the settings, and the version of Clebsch."""

    name = "clebsch"
    implemented_properties = ["energy", "free_energy", "energies", "forces", "stress"]
    ignored_changes = {"initial_charges", "initial_magmoms"}

    @_checks.exact_keywords
    def __init__(self, model: Path, device: Union[str, Context] = "",
                 dtype: Optional[str] = None, knots: Optional[int] = None,
                 skin: Union[float, str] = "auto",
                 atomics: bool = False, head: Optional[str] = None,
                 modality: Optional[str] = None, exact: bool = False) -> None:
        super().__init__()
        file = os.path.abspath(file_name(model))
        self._settings = {"model": file, "device": device, "dtype": dtype, "knots": knots,
                          "skin": skin, "atomics": atomics, "head": head, "modality": modality,
                          "exact": exact}
        self._state = file_state(file)
        self.model = Model(model, device, dtype, knots, skin, atomics, head, modality, exact)
        self.parameters.update(
            model=file, model_sha256=sha256(file), architecture=self.model.architecture,
            device=self.model.context.name, device_description=self.model.context.description,
            dtype=self.model.dtype, knots=self.model.knots, skin=self.model.skin,
            atomics=self.model.atomics, head=head, modality=modality, version=VERSION)

    def set(self, **keywords):
        """Refused: the model is open, with the settings it was opened with."""
        if keywords:
            raise TypeError(f"{', '.join(keywords)}: a calculator's settings are those with which "
                            "its model was opened; make a new one")
        return {}

    def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        self.results = {}  # those of other atoms, if what follows fails
        a = self.atoms
        if "stress" in properties and not has_volume(a.cell.array):
            raise PropertyNotImplementedError(
                "stress is dE/dstrain / volume, and the cell has no volume: "
                f"{a.cell.array.tolist()}; a slab needs a third vector, its thickness with vacuum")
        lacking = sorted(set(a.numbers.tolist()) - set(self.model.numbers))
        if lacking:
            raise Error(f"{self.model.path} does not know {', '.join(map(_symbol, lacking))}; it "
                        f"knows {', '.join(self.model.symbols)}")
        found = self.model.compute(a.numbers, a.positions, a.cell.array, a.pbc)
        self.results = {"energy": found.energy, "free_energy": found.energy,
                        "energies": found.energies, "forces": found.forces}
        if found.stress is not None:
            self.results["stress"] = full_3x3_to_voigt_6_stress(found.stress)

    def __repr__(self) -> str:
        return repr(self.model).replace("clebsch.Model", "clebsch.ase.Calculator")

    def __reduce__(self):
        return reopen, (type(self), self._settings, self._settings["model"], self._state)


def _symbol(number):
    return chemical_symbols[number] if 0 < number < len(chemical_symbols) else str(number)
