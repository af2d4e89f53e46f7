"""OpenMM: system.addForce(clebsch.openmm.force("model.safetensors", topology))

OpenMM 8.4 or newer, which has PythonForce."""
import os

import numpy as np
from openmm import PythonForce, unit

from .model import Model, file_state, reopen

KJ_PER_EV = 96.48533212331001  # e N_A, exact in SI
ANGSTROM_PER_NM = 10


class Computation:
    """What PythonForce calls: energy (kJ/mol) and forces (kJ/mol/nm) of a state's particles."""

    def __init__(self, numbers, periodic, **settings):
        self.settings = {"numbers": numbers, "periodic": periodic, **settings}
        self.numbers, self.periodic, self.state = numbers, periodic, file_state(settings["path"])
        self.model = Model(**settings)
        self.model.species(numbers)

    def __call__(self, state):
        positions = state.getPositions(asNumpy=True).value_in_unit(unit.angstrom)
        cell = None
        if self.periodic:
            cell = state.getPeriodicBoxVectors(asNumpy=True).value_in_unit(unit.angstrom)
        found = self.model.compute(self.numbers, positions, cell)
        return found.energy * KJ_PER_EV, found.forces * (KJ_PER_EV * ANGSTROM_PER_NM)

    def __reduce__(self):
        return reopen, (type(self), self.settings, self.settings["path"], self.state)


def force(model, atoms, particles=None, periodic=None, device="", dtype="f64", knots=0, skin=0.3,
          atomics=False, head=None, modality=None):
    """A force for all particles of a system, or for some.

    atoms: the system's openmm.app.Topology, or its particles' atomic numbers.  particles: indices
    of those to which the model applies; None: all.  periodic: None: as the topology is, without
    one not.  The others are clebsch.Model's.  A saved or copied force opens the file again."""
    if hasattr(atoms, "atoms"):
        if periodic is None:
            periodic = atoms.getPeriodicBoxVectors() is not None
        atoms = [atom.element.atomic_number if atom.element else 0 for atom in atoms.atoms()]
    numbers = np.asarray(atoms, int)
    some = [] if particles is None else [int(i) for i in particles]
    if particles is not None and not some:
        raise ValueError("particles: none are given; None means all")
    computation = Computation(numbers[some] if some else numbers, bool(periodic),
                              path=os.path.abspath(model), device=device, dtype=dtype, knots=knots,
                              skin=skin, atomics=atomics, head=head, modality=modality)
    made = PythonForce(computation)
    made.setUsesPeriodicBoundaryConditions(bool(periodic))
    made.setParticles(some)
    made.setName("clebsch")
    return made
