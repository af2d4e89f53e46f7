"""OpenMM: system.addForce(clebsch.openmm.force("model.safetensors", topology))

OpenMM 8.4 or newer, which has PythonForce."""
from __future__ import annotations

from typing import Any, Optional, Sequence, Union

import numpy as np
from openmm import PythonForce, unit

from . import _checks
from ._context import Context
from .model import Model, Path, file_state, model_file, reopen

KJ_PER_EV = 96.48533212331001  # e N_A, exact in SI
ANGSTROM_PER_NM = 10


class Computation:
    """What PythonForce calls: energy (kJ/mol) and forces (kJ/mol/nm) of a state's particles."""

    def __init__(self, numbers, periodic, charge, spin, **settings):
        self.settings = {"numbers": numbers, "periodic": periodic, "charge": charge, "spin": spin,
                         **settings}
        self.charge, self.spin = charge, spin
        self.numbers, self.periodic, self.state = numbers, periodic, file_state(settings["path"])
        self.model = Model(**settings)
        self.model.species(numbers)

    def __call__(self, state):
        positions = state.getPositions(asNumpy=True).value_in_unit(unit.angstrom)
        cell = None
        if self.periodic:
            cell = state.getPeriodicBoxVectors(asNumpy=True).value_in_unit(unit.angstrom)
        found = self.model.compute(self.numbers, positions, cell, charge=self.charge,
                                   spin=self.spin)
        return found.energy * KJ_PER_EV, found.forces * (KJ_PER_EV * ANGSTROM_PER_NM)

    def __reduce__(self):
        return reopen, (type(self), self.settings, self.settings["path"], self.state)


@_checks.exact_keywords
def force(model: Path, atoms: Any, particles: Optional[Sequence[int]] = None,
          periodic: Optional[bool] = None, device: Union[str, Context] = "",
          dtype: Optional[str] = None, knots: Optional[int] = None,
          skin: Union[float, str] = "auto",
          atomics: bool = False, head: Optional[str] = None,
          modality: Optional[str] = None, exact: bool = False, d3: Optional[str] = None,
          d3_cutoff: float = 0.0, charge: int = 0, spin: int = 1) -> PythonForce:
    """A force for all particles of a system, or for some.

    atoms: the system's openmm.app.Topology, or its particles' atomic numbers.  particles: indices
    of those to which the model applies; None: all.  periodic: None: as the topology is, without
    one not.  charge, spin: of these particles together, as of Model.compute.  The others are
    clebsch.Model's.  A saved or copied force opens the file again."""
    if hasattr(atoms, "atoms"):
        if periodic is None:
            periodic = atoms.getPeriodicBoxVectors() is not None
        atoms = [atom.element.atomic_number if atom.element else 0 for atom in atoms.atoms()]
    numbers = _checks.whole("atoms", atoms)
    periodic = periodic is not None and _checks.flag("periodic", periodic)
    some = [] if particles is None else _particles(particles, len(numbers))
    computation = Computation(numbers[some] if some else numbers, periodic, charge, spin,
                              path=model_file(model), device=device,
                              dtype=dtype, knots=knots, skin=skin, atomics=atomics, head=head,
                              modality=modality, exact=exact, d3=d3, d3_cutoff=d3_cutoff)
    made = PythonForce(computation)
    made.setUsesPeriodicBoundaryConditions(periodic)
    made.setParticles(some)
    made.setName("clebsch")
    return made


def _particles(particles, n):
    some = _checks.whole("particles", particles).tolist()
    if not some:
        raise ValueError("particles: none are given; None means all")
    if min(some) < 0 or max(some) >= n or len(set(some)) < len(some):
        raise ValueError(f"particles: they must be different numbers from 0 to {n - 1}")
    return some
