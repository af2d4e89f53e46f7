"""The force of OpenMM beside the model itself."""
import copy
import importlib.util
import os
import pathlib
import unittest

import numpy as np
from ase.build import molecule

import clebsch

WATER = pathlib.Path("/usr/share/cp2k/NequIP/water.pth")
EV, ANGSTROM = 96.48533212331001, 0.1  # kJ/mol, nm


@unittest.skipUnless(importlib.util.find_spec("openmm"), "no OpenMM")
@unittest.skipUnless(WATER.exists(), f"no {WATER} (package cp2k-data)")
class OpenMM(unittest.TestCase):
    def setUp(self):
        atoms = molecule("H2O")
        atoms.set_cell([3.1, 3.2, 3.3])
        self.atoms = atoms.repeat(2)
        self.atoms.positions += np.random.default_rng(4).normal(0, 0.05, self.atoms.positions.shape)
        self.numbers = self.atoms.numbers

    def context(self, *forces):
        import openmm
        system = openmm.System()
        for mass in self.atoms.get_masses():
            system.addParticle(mass)
        system.setDefaultPeriodicBoxVectors(*(self.atoms.cell.array * ANGSTROM))
        for force in forces:
            system.addForce(force)
        made = openmm.Context(system, openmm.VerletIntegrator(0.00025), openmm.Platform.getPlatformByName("Reference"))
        made.setPositions(self.atoms.positions * ANGSTROM)
        return made

    def compare(self, context, found, particles=slice(None)):
        from openmm import unit
        state = context.getState(getEnergy=True, getForces=True)
        energy = state.getPotentialEnergy().value_in_unit(unit.kilojoule_per_mole) / EV
        forces = state.getForces(asNumpy=True).value_in_unit(unit.kilojoule_per_mole / unit.nanometer) * ANGSTROM / EV
        self.assertTrue(np.isfinite(forces).all())
        # OpenMM's positions come back in nm: the last digit may differ.
        self.assertLess(abs(energy - found.energy), 1e-11 * abs(found.energy))
        expected = np.zeros_like(forces)
        expected[particles] = found.forces
        np.testing.assert_allclose(forces, expected, rtol=0, atol=1e-10)

    def test_openmm_periodic_and_not(self):
        import clebsch.openmm
        model = clebsch.Model(WATER, "cpu", exact=True)
        for periodic in (True, False):
            force = clebsch.openmm.force(WATER, self.numbers, periodic=periodic, device="cpu", exact=True)
            self.assertEqual(force.usesPeriodicBoundaryConditions(), periodic)
            cell = self.atoms.cell.array if periodic else None
            found = model.compute(self.numbers, self.atoms.positions, cell)
            again = copy.deepcopy(force)  # first, as a system takes the force with it when it goes
            self.compare(self.context(force), found)
            self.compare(self.context(again), found)

    def test_openmm_some_particles_and_a_topology(self):
        import clebsch.openmm
        from openmm import app
        topology = app.Topology()
        chain = topology.addChain()
        for number in self.numbers:
            residue = topology.addResidue("X", chain)
            topology.addAtom("X", app.Element.getByAtomicNumber(int(number)), residue)
        topology.setPeriodicBoxVectors(self.atoms.cell.array * ANGSTROM)
        some = [3, 4, 5, 9, 10, 11]
        force = clebsch.openmm.force(WATER, topology, particles=some, device="cpu", exact=True)
        self.assertTrue(force.usesPeriodicBoundaryConditions())
        found = clebsch.Model(WATER, "cpu", exact=True).compute(self.numbers[some], self.atoms.positions[some], self.atoms.cell.array)
        self.compare(self.context(force), found, some)

    def test_openmm_charge_and_spin(self):
        """Of some particles, and in a copied force."""
        import clebsch.openmm
        file = pathlib.Path(os.environ["CLB_TEST_DATA"]) / "mace" / "charged.model"
        model, some = clebsch.Model(file, "cpu", exact=True), [0, 1, 2]
        force = clebsch.openmm.force(file, self.numbers, some, device="cpu", exact=True, charge=-1, spin=2)
        found, neutral = (model.compute(self.numbers[some], self.atoms.positions[some], charge=charge, spin=spin)
                          for charge, spin in ((-1, 2), (0, 1)))
        self.assertGreater(abs(found.energy - neutral.energy), 1e-3)
        self.compare(self.context(copy.deepcopy(force)), found, some)

    def test_openmm_dynamics_keep_energy(self):
        import clebsch.openmm
        from openmm import unit
        context = self.context(clebsch.openmm.force(WATER, self.numbers, periodic=True, device="cpu", exact=True))
        context.setVelocitiesToTemperature(200, 7)

        def energies():
            state = context.getState(getEnergy=True)
            return [e.value_in_unit(unit.kilojoule_per_mole) for e in (state.getPotentialEnergy(), state.getKineticEnergy())]
        before = energies()
        context.getIntegrator().step(60)
        after = energies()
        self.assertGreater(abs(after[1] - before[1]), 1)
        self.assertLess(abs(sum(after) - sum(before)), 0.02 * before[1])

    def test_openmm_refusals(self):
        import clebsch.openmm
        with self.assertRaisesRegex(clebsch.Error, "no element of atomic number 29"):
            clebsch.openmm.force(WATER, [8, 1, 29], device="cpu", exact=True)
        with self.assertRaisesRegex(ValueError, "particles: none are given"):
            clebsch.openmm.force(WATER, self.numbers, particles=[], device="cpu", exact=True)
        for error, said, settings in ((ValueError, r"atoms\[0\] is 8.9", {"atoms": [8.9, 1, 1]}), (TypeError, "truth values", {"atoms": [True] * 3}),
                                      (ValueError, r"particles\[1\] is 1.5", {"particles": [0, 1.5]}), (ValueError, "different numbers from 0 to 23", {"particles": [0, -1]}),
                                      (ValueError, "different numbers", {"particles": [24]}), (ValueError, "different numbers", {"particles": [1, 1]}),
                                      (TypeError, "periodic: 'FFF'", {"periodic": "FFF"}), (TypeError, "the word is 'dtype'", {"precision": "f32"}),
                                      (TypeError, "the word is 'modality'", {"modal": "PBE"}), (TypeError, "the word is 'periodic'", {"pbc": True})):
            with self.subTest(said), self.assertRaisesRegex(error, said):
                clebsch.openmm.force(**{"model": WATER, "atoms": self.numbers, "device": "cpu", "exact": True, **settings})
        self.atoms.positions[1] = self.atoms.positions[0]
        context = self.context(clebsch.openmm.force(WATER, self.numbers, device="cpu", exact=True))
        with self.assertRaisesRegex(Exception, "are one place"):
            context.getState(getEnergy=True)
