"""`clebsch md` and `clebsch relax` beside ASE's dynamics and filters, with the same model in ASE's
calculator."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
from ase import units
from ase.build import molecule
from ase.filters import FrechetCellFilter
from ase.io import read, write
from ase.md.nose_hoover_chain import NoseHooverChainNVT, NoseHooverChainThermostat
from ase.md.verlet import VelocityVerlet
from ase.optimize import BFGS

from clebsch.ase import Calculator

WATER = pathlib.Path("/usr/share/cp2k/NequIP/water.pth")


def run(*words):
    done = subprocess.run([os.environ["CLB_COMMAND"], *words, "--model", str(WATER), "--device", "cpu", "--exact"],
                          capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout


@unittest.skipUnless(WATER.exists(), f"no {WATER} (package cp2k-data)")
class Dynamics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.calculator = Calculator(WATER, "cpu", exact=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(os.chdir, os.getcwd())
        self.addCleanup(folder.cleanup)
        os.chdir(folder.name)
        atoms = molecule("H2O")
        atoms.set_cell([3.2, 3.3, 3.4])
        atoms.pbc = True
        self.atoms = atoms.repeat(2)
        self.atoms.positions += np.random.default_rng(2).normal(0, 0.03, self.atoms.positions.shape)
        write("in.xyz", self.atoms)

    def test_verlet(self):
        """From the same velocities, ASE's velocity Verlet comes to the same places."""
        run("md", "--structure", "in.xyz", "--steps", "20", "--dt", "0.5", "--temperature", "300", "--every", "20",
            "--trajectory", "t.xyz")
        first, last = read("t.xyz", ":")
        first.calc = self.calculator
        VelocityVerlet(first, 0.5 * units.fs).run(20)
        self.assertGreater(abs(first.positions - self.atoms.positions).max(), 0.05)
        np.testing.assert_allclose(first.positions, last.positions, atol=1e-7)
        np.testing.assert_allclose(first.get_velocities(), last.get_velocities(), atol=1e-7)

    def test_nose_hoover(self):
        """ASE's chain of three, for the 3 N - 3 coordinates that have a temperature, comes to the same places: with short
        steps, as its thermostat acts at their ends."""
        run("md", "--structure", "in.xyz", "--steps", "200", "--dt", "0.05", "--temperature", "600", "--nose-hoover", "4",
            "--every", "200", "--trajectory", "t.xyz", "--csv", "t.csv")
        first, last = read("t.xyz", ":")
        free, n = first.copy(), len(first)
        for atoms in (first, free):
            atoms.calc = self.calculator
        VelocityVerlet(free, 0.05 * units.fs).run(200)
        dynamics = NoseHooverChainNVT(first, 0.05 * units.fs, 600, 4 * units.fs)
        dynamics._thermostat = NoseHooverChainThermostat(n - 1, first.get_masses()[:, None], 600, 4 * units.fs)
        before = dynamics.get_conserved_energy()
        dynamics.run(200)
        self.assertGreater(abs(last.get_velocities() - free.get_velocities()).max(), 1e-2)
        np.testing.assert_allclose(first.positions, last.positions, atol=2e-5)
        np.testing.assert_allclose(first.get_velocities(), last.get_velocities(), atol=2e-4)
        conserved = np.loadtxt("t.csv", delimiter=",", skiprows=1)[:, 6]
        self.assertAlmostEqual(dynamics.get_conserved_energy() - before, conserved[1] - conserved[0], delta=1e-3)

    def test_minimum(self):
        """ASE's optimizer finds the same bond lengths and energy of a molecule."""
        atoms = molecule("H2O")
        atoms.positions += np.random.default_rng(3).normal(0, 0.05, atoms.positions.shape)
        write("one.xyz", atoms)
        run("relax", "--structure", "one.xyz", "--out", "out.xyz", "--max-force", "1e-4")
        atoms.calc = self.calculator
        BFGS(atoms, logfile=None).run(fmax=1e-4)
        relaxed = read("out.xyz")
        self.assertAlmostEqual(relaxed.get_potential_energy(), atoms.get_potential_energy(), delta=1e-6)
        np.testing.assert_allclose(relaxed.get_all_distances(), atoms.get_all_distances(), atol=1e-4)

    def test_cell(self):
        """What is relaxed with its cell under a pressure is at rest for ASE's filter of cells."""
        run("relax", "--structure", "in.xyz", "--out", "out.xyz", "--cell", "all", "--pressure", "3", "--max-force",
            "1e-3", "--max-stress", "1e-3")
        relaxed = read("out.xyz")
        relaxed.calc = self.calculator
        left = FrechetCellFilter(relaxed, scalar_pressure=3 * units.GPa, exp_cell_factor=1).get_forces()
        volume = relaxed.get_volume()
        self.assertLess(abs(left[:-3]).max(), 1.1e-3)
        self.assertLess(abs(left[-3:]).max(), 1.1e-3 * units.GPa * volume)
        self.assertLess(volume, 0.95 * self.atoms.get_volume())


if __name__ == "__main__":
    unittest.main()
