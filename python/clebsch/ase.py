"""ASE: atoms.calc = clebsch.ase.Calculator("model.safetensors")"""
import os

from ase.calculators.calculator import (Calculator as Base, PropertyNotImplementedError,
                                        all_changes)
from ase.data import chemical_symbols
from ase.stress import full_3x3_to_voigt_6_stress

from ._library import Error
from .model import Model, file_state, reopen


class Calculator(Base):
    """Energy, forces, stress and energies of atoms; the arguments are those of clebsch.Model.

    Neighbour lists are kept between steps until an atom has moved by half of `skin` (Angstrom).
    Copies and unpickled calculators open the model's file again; it must not have changed."""

    implemented_properties = ["energy", "free_energy", "energies", "forces", "stress"]
    ignored_changes = {"initial_charges", "initial_magmoms"}

    def __init__(self, model, device="", dtype="f64", knots=0, skin=0.3, atomics=False,
                 head=None, modality=None, **kwargs):
        super().__init__(**kwargs)
        self._settings = {"model": os.path.abspath(model), "device": device, "dtype": dtype,
                          "knots": knots, "skin": skin, "atomics": atomics, "head": head,
                          "modality": modality}
        self._state = file_state(model)
        self.model = Model(model, device, dtype, knots, skin, atomics, head, modality)

    def calculate(self, atoms=None, properties=("energy",), system_changes=all_changes):
        super().calculate(atoms, properties, system_changes)
        a = self.atoms
        if "stress" in properties and not a.pbc.all():
            raise PropertyNotImplementedError("stress is there only where all three directions are "
                                              f"periodic; pbc is {a.pbc.tolist()}")
        lacking = sorted(set(a.numbers.tolist()) - set(self.model.numbers))
        if lacking:
            raise Error(f"{self.model.path} does not know "
                        f"{', '.join(chemical_symbols[z] for z in lacking)}; it knows "
                        f"{', '.join(self.model.symbols)}")
        found = self.model.compute(a.numbers, a.positions, a.cell.array, a.pbc,
                                   derivatives=bool({"forces", "stress"} & set(properties)))
        self.results = {"energy": found.energy, "free_energy": found.energy,
                        "energies": found.energies}
        if found.forces is not None:
            self.results["forces"] = found.forces
        if found.stress is not None:
            self.results["stress"] = full_3x3_to_voigt_6_stress(found.stress)

    def __reduce__(self):
        return reopen, (type(self), self._settings, self._settings["model"], self._state)
