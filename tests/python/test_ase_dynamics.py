"""Dynamics of clebsch.ase, whose atoms move on the device, beside ASE's own and `clebsch md`."""
import os
import pathlib
import subprocess
import tempfile
import unittest
import unittest.mock

import numpy as np
from ase import Atoms, units
from ase.build import molecule
from ase.calculators.singlepoint import SinglePointCalculator
from ase.constraints import FixAtoms
from ase.io import Trajectory, read, write
from ase.md import verlet

from clebsch.ase import Bussi, Calculator, Langevin, VelocityVerlet

WATER = pathlib.Path("/usr/share/cp2k/NequIP/water.pth")
FS = units.fs


def box():
    atoms = molecule("H2O")
    atoms.set_cell([3.2, 3.3, 3.4])
    atoms.pbc = True
    atoms = atoms.repeat(2)
    random = np.random.default_rng(2)
    atoms.positions += random.normal(0, 0.03, atoms.positions.shape)
    atoms.set_velocities(random.normal(0, 0.02, atoms.positions.shape))
    return atoms


def gas(n):
    """Atoms that do not interact, at rest."""
    atoms = Atoms("OH" * (n // 2), positions=[[i % 10, i // 10 % 10, i // 100] for i in range(n)])
    atoms.positions *= 100
    return atoms


@unittest.skipUnless(WATER.exists(), f"no {WATER} (package cp2k-data)")
class Dynamics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.calculator = Calculator(WATER, "cpu", exact=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "t.traj")
        self.atoms = box()
        self.atoms.calc = self.calculator

    def test_follows_ase(self):
        """Frames and results of a trajectory are those of ASE's class."""
        frames = []
        for kind in (verlet.VelocityVerlet, VelocityVerlet):
            atoms = box()
            atoms.calc = self.calculator
            kind(atoms, 0.5 * FS, trajectory=self.file, loginterval=6).run(20)
            frames.append(read(self.file, ":") + [atoms])
        self.assertEqual([len(some) for some in frames], [5, 5])
        for theirs, ours in zip(*frames):
            np.testing.assert_allclose(ours.positions, theirs.positions, atol=1e-9)
            np.testing.assert_allclose(ours.get_velocities(), theirs.get_velocities(), atol=1e-9)
            np.testing.assert_allclose(ours.get_forces(), theirs.get_forces(), atol=1e-8)
            np.testing.assert_allclose(ours.get_stress(), theirs.get_stress(), atol=1e-9)
            self.assertAlmostEqual(ours.get_total_energy(), theirs.get_total_energy(), delta=1e-9)

    def test_computes_once_a_step(self):
        """The calculator itself is not asked, also where an observer wants results."""
        seen = []
        dynamics = VelocityVerlet(self.atoms, 0.5 * FS)
        dynamics.attach(lambda: seen.append(self.atoms.get_potential_energy()), 5)
        with unittest.mock.patch.object(Calculator, "calculate", side_effect=AssertionError):
            self.assertTrue(dynamics.run(12))
        self.assertEqual((len(seen), len(set(seen)), dynamics.nsteps), (3, 3, 12))
        self.assertGreater(np.ptp(self.atoms.get_potential_energies()), 0)  # which it must compute

    def test_parts_are_the_whole(self):
        """Runs, steps and irun, with the model used for others between them: the same bits."""
        for kind, more in ((VelocityVerlet, {}), (Langevin, {"temperature_K": 300, "friction": 0.01 / FS, "seed": 3}),
                           (Bussi, {"temperature_K": 300, "taut": 20 * FS, "seed": 3})):
            ends = []
            for parts in (False, True):
                atoms = box()
                atoms.calc = self.calculator
                dynamics = kind(atoms, 0.5 * FS, **more)
                if not parts:
                    dynamics.run(10)
                else:
                    dynamics.run(3)
                    other = box()
                    other.calc = self.calculator
                    other.get_forces()
                    self.assertEqual(len(list(dynamics.irun(4))), 5)
                    VelocityVerlet(other, 0.5 * FS).run(2)
                    for _ in range(3):
                        dynamics.step()
                ends.append((atoms.positions, atoms.get_velocities(), atoms.get_forces()))
            np.testing.assert_array_equal(*ends)
            self.assertGreater(abs(ends[0][0] - box().positions).max(), 1e-3)

    def test_changes_are_seen(self):
        """Atoms that are changed between runs, or by an observer, go on from there."""
        frames = []
        for kind in (verlet.VelocityVerlet, VelocityVerlet):
            atoms = box()
            atoms.calc = self.calculator
            dynamics = kind(atoms, 0.5 * FS)
            dynamics.attach(lambda: atoms.set_velocities(atoms.get_velocities() * 0.9), 4)
            dynamics.run(6)
            atoms.positions[0] += 0.02
            atoms.set_cell(atoms.cell.array * 1.01)
            dynamics.dt = 0.3 * FS
            dynamics.run(6)
            frames.append(atoms)
        np.testing.assert_allclose(frames[1].positions, frames[0].positions, atol=1e-9)
        np.testing.assert_allclose(frames[1].get_velocities(), frames[0].get_velocities(), atol=1e-9)

    def test_observers_use_the_model(self):
        """Forces are those of the atoms, whatever the model computes between steps."""
        model, ends = self.calculator.model, []
        for observer in (lambda: None, lambda: model.compute([8, 1, 1], [[0, 0, 0], [1.2, 0, 0], [0, 1.3, 0]]),
                         lambda: model.hessian([8, 1], [[0, 0, 0], [1, 0, 0]])):
            atoms = box()
            atoms.calc = self.calculator
            dynamics = VelocityVerlet(atoms, 0.5 * FS)
            dynamics.attach(observer, 2)
            dynamics.run(6)
            ends.append(atoms.positions)
        for end in ends[1:]:
            np.testing.assert_array_equal(end, ends[0])

    def test_langevin_is_that_of_md(self):
        """Of `clebsch md`: the same noise, friction and order."""
        write(self.file + ".xyz", self.atoms)
        done = subprocess.run(
            [os.environ["CLB_COMMAND"], "md", "--model", str(WATER), "--device", "cpu", "--exact", "--structure", self.file + ".xyz",
             "--steps", "10", "--dt", "0.5", "--temperature", "300", "--langevin", "20", "--seed", "5", "--every", "10",
             "--trajectory", self.file + ".out.xyz"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        first, last = read(self.file + ".out.xyz", ":")
        first.calc = self.calculator
        masses = read(self.file + ".out.xyz").get_masses()
        Langevin(first, 0.5 * FS, 300, 0.02 / FS, seed=5).run(10)
        np.testing.assert_allclose(first.get_masses(), masses)
        np.testing.assert_allclose(first.positions, last.positions, atol=1e-7)
        np.testing.assert_allclose(first.get_velocities(), last.get_velocities(), atol=1e-6)

    def test_trajectories_tell(self):
        """What it was made with, as ASE's classes do."""
        Langevin(self.atoms, 0.5 * FS, 300, 0.01 / FS, seed=2, trajectory=self.file).run(1)
        with Trajectory(self.file) as trajectory:
            self.assertEqual(trajectory.description, {
                "type": "molecular-dynamics", "md-type": "Langevin", "timestep": 0.5 * FS, "temperature_K": 300.0,
                "friction": 0.01 / FS, "seed": 2, "interval": 1})

    def test_thermostats(self):
        """Atoms that do not interact come to the temperature; energy and heat are conserved."""
        for kind, more in ((Langevin, {"friction": 0.02 / FS}), (Bussi, {"taut": 10 * FS})):
            atoms = gas(1000)
            atoms.calc = Calculator(WATER, "cpu", skin=1)
            atoms.set_velocities(np.random.default_rng(1).normal(0, 0.001, (1000, 3)))
            dynamics = kind(atoms, 2 * FS, 400, seed=1, **more)
            before = atoms.get_total_energy()
            dynamics.run(60)
            self.assertLess(abs(atoms.get_temperature() - 400), 4.5 * 400 * (2 / 3000)**0.5)
            self.assertAlmostEqual(atoms.get_total_energy() + dynamics.heat, before, delta=1e-8)
            self.assertGreater(-dynamics.heat, 40)

    def test_refusals(self):
        for spoil, error, words in (
                (lambda a: setattr(a, "calc", None), TypeError, "it must be a clebsch.ase.Calculator"),
                (lambda a: setattr(a, "calc", SinglePointCalculator(a)), TypeError, "it must be a clebsch.ase.Calculator"),
                (lambda a: a.set_constraint(FixAtoms([0])), ValueError, "all atoms move freely")):
            atoms = self.atoms.copy()
            atoms.calc = self.calculator
            spoil(atoms)
            with self.assertRaisesRegex(error, words):
                VelocityVerlet(atoms, FS)
        atoms.set_constraint()
        dynamics = VelocityVerlet(atoms, FS)
        atoms.set_constraint(FixAtoms([0]))
        with self.assertRaisesRegex(ValueError, "all atoms move freely"):
            dynamics.run(1)
        with self.assertRaisesRegex(ValueError, "friction: -1"):
            Langevin(self.atoms, FS, 300, -1)
        with self.assertRaisesRegex(ValueError, "taut: 0; it must be above 0"):
            Bussi(self.atoms, FS, 300, 0)
        with self.assertRaisesRegex(ValueError, "a temperature needs two"):
            Bussi(Atoms("H", calculator=self.calculator), FS, 300, FS)
        self.atoms.set_masses([0] + [1] * (len(self.atoms) - 1))
        with self.assertWarns(UserWarning), self.assertRaisesRegex(Exception, "masses.0. is 0"):
            VelocityVerlet(self.atoms, FS).run(1)


if __name__ == "__main__":
    unittest.main()
