"""Files of atoms between ASE and `clebsch`: what ASE writes is read as ASE has it, and trajectories
that `clebsch md` writes have ASE's velocities."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
from ase import Atoms, units
from ase.build import molecule
from ase.constraints import FixAtoms, FixCartesian
from ase.io import read, write

WATER = pathlib.Path("/usr/share/cp2k/NequIP/water.pth")
COMMAND = os.environ.get("CLB_COMMAND", "clebsch")


def run(*words, status=0):
    """What the command wrote on standard error."""
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True)
    if done.returncode != status:
        raise AssertionError(f"{words}: exit status {done.returncode}: {done.stderr}")
    return done.stderr


def water(cell=(5, 6, 7), pbc=True):
    atoms = molecule("H2O", cell=cell, pbc=pbc)
    atoms.positions += [0.123456789, -0.2, 0.3]
    return atoms


INFO = [
    {"config_type": "", "z": 1}, {"empty": None, "flag": True, "off": False}, {"quoted": "it's \"so\""},
    {"braces": "{a} [b] (c)", "backslash": "a\\b"}, {"my key": 3, "a=b": 4, "say \"x\"": 5},
    {"matrix": np.arange(6.0).reshape(2, 3), "flags": np.array([True, False])},
    {"virial": np.eye(3), "stress": np.ones((3, 3))}, {"nested": {"cell": [1, 2], "pbc": "T"}, "list": ["a", 1]},
    {"cell": "5 5 5", "box": 3, "periodic": "yes", "note": "positions in bohr, say"}, {"lattice_constant": 5.43, "unit_cell": "conventional"},
    {"energy_unit": "Hartree", "time": 0.5, "uid": "007"}, {"text": "a=1 Lattice=0 pbc=F"}, {"long": "x" * 200000},
    {"unicode": "\u00c5ngstr\u00f6m", "comma": "a,b", "semi;colon": 1},
]


@unittest.skipUnless(WATER.exists(), f"no {WATER} (package cp2k-data)")
class Structures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def frames(self, wanted, tolerance=1e-8, **how):
        """Writes the frames with ASE, and compares what `clebsch` has read with them."""
        write("in.xyz", wanted, **how)
        run("energy", "--model", str(WATER), "--structure", "in.xyz", "--frames", "all", "--out", "out.xyz")
        found = read("out.xyz", ":")
        self.assertEqual(len(found), len(wanted))
        for i, (a, b) in enumerate(zip(found, wanted)):
            with self.subTest(i):
                self.same(a, b, tolerance)

    def same(self, a, b, tolerance):
        self.assertEqual(list(a.numbers), list(b.numbers))
        self.assertEqual(list(a.pbc), list(b.pbc))
        np.testing.assert_allclose(a.positions, b.positions, 0, tolerance)
        if b.pbc.any():
            np.testing.assert_allclose(a.cell.array, b.cell.array, 0, 1e-12)

    def test_infos(self):
        atoms = [water(pbc=pbc) for pbc in (True, False, [True, True, False]) for _ in INFO]
        for one, info in zip(atoms, 3 * INFO):
            one.info.update(info)
        self.frames(atoms)

    def test_arrays(self):
        atoms = [water() for _ in range(7)]
        atoms[0].set_tags([1, 2, 3])
        atoms[1].set_constraint(FixAtoms([0]))
        atoms[2].set_constraint(FixCartesian(1, [True, False, True]))
        atoms[3].set_array("smiles", np.array(["C" * 90, "N", "[O-]"]))
        atoms[4].set_array("Z_is_not_this", np.arange(12.0).reshape(3, 4))
        atoms[4].set_momenta(np.ones((3, 3)))
        atoms[5].set_array("flag", np.array([True, False, True]))
        atoms[5].set_masses([16, 2, 3])
        atoms[6].set_initial_charges([0.1, 0.2, -0.3])
        self.frames(atoms)
        self.frames([water(cell=[[5, 0, 0], [1, 0, 6], [0, 7, 1]])])  # left-handed
        self.frames([water(cell=[[5, 0, 0], [0, 6, 0], [0, 0, 0]], pbc=[True, True, False])])
        self.frames([Atoms(cell=[5, 5, 5], pbc=True), water()])

    def test_other_writers(self):
        self.frames([water(cell=None, pbc=False)], format="xyz", comment=" i = 1, time = 0.500, E = -17.2")
        self.frames([water(), water(pbc=[True, True, False], cell=[5, 6, 0])], vec_cell=True)
        for name, tolerance in ("a.gro", 1e-2), ("a.pdb", 1e-3):
            for atoms in water(), water(cell=None, pbc=False):
                with self.subTest(name, pbc=atoms.pbc):
                    write(name, atoms)
                    run("energy", "--model", str(WATER), "--structure", name, "--out", "out.xyz")
                    self.same(read("out.xyz"), atoms, tolerance)

    def test_velocities(self):
        """The velocities of a trajectory, in A/fs, are those that ASE has, and so is the energy."""
        write("in.xyz", water())
        words = ["--model", str(WATER), "--steps", "4", "--dt", "0.5", "--temperature", "300", "--every", "2"]
        run("md", "--structure", "in.xyz", *words, "--trajectory", "t.xyz", "--csv", "t.csv", "--forces")
        frames, rows = read("t.xyz", ":"), np.genfromtxt("t.csv", delimiter=",", names=True)
        self.assertEqual(len(frames), 3)
        for atoms, row in zip(frames, rows):
            velocities = atoms.get_velocities() * units.fs
            self.assertGreater(abs(velocities).max(), 1e-3)
            np.testing.assert_allclose(velocities, atoms.arrays["velo"], 1e-8)
            self.assertAlmostEqual(atoms.get_kinetic_energy(), row["kinetic_eV"], delta=1e-8)
            self.assertAlmostEqual(atoms.get_potential_energy(), row["potential_eV"], delta=1e-8)

    def test_isotopes(self):
        pathlib.Path("heavy.xyz").write_text("3\n\nO 0 0 0\nD 0 0.76 0.59\nT 0 -0.76 0.59\n")
        said = run("md", "--model", str(WATER), "--structure", "heavy.xyz", "--steps", "0", "--dt", "1")
        self.assertIn("2 atoms are called D or T, and move with the mass of H", said)

    def test_elements(self):
        """--elements reaches every command that reads a structure."""
        pathlib.Path("names.xyz").write_text("3\n\nOw 0 0 0\nHw 0 0.76 0.59\nHw 0 -0.76 0.59\n")
        words = ["--model", str(WATER), "--structure", "names.xyz"]
        self.assertIn("line 3: 'Ow' is not a chemical symbol; --elements NAME=SYMBOL", run("energy", *words, status=1))
        told = ["--elements", "Ow=O,Hw=H"]
        run("energy", *words, *told, "--frames", "all", "--out", "out.xyz")
        self.assertEqual(str(read("out.xyz").symbols), "OH2")
        run("md", *words, *told, "--steps", "0", "--dt", "1")
        self.assertIn("nobody listened", run("serve", *words, *told, "--unix", "./nobody", "--wait", "0", status=1))
        self.assertIn("--elements: 'Ow' is not a name of an atom, = and the symbol", run("energy", *words, "--elements", "Ow", status=2))
