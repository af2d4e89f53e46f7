"""Files of atoms between ASE and `clebsch`: what ASE writes is read as ASE has it, and trajectories
that `clebsch md` writes have ASE's velocities."""
import gzip
import json
import os
import pathlib
import subprocess
import tempfile
import unittest
from fractions import Fraction

import numpy as np
from ase import Atoms, units
from ase.build import molecule
from ase.constraints import FixAtoms, FixCartesian
from ase.io import read, write
from ase.spacegroup import Spacegroup

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


def operation(rotation, shift):
    """As a CIF has it: "-x+1/2,y,z"."""
    def row(r, t):
        letters = "".join("+-"[int(n < 0)] + "xyz"[k] for k, n in enumerate(r) if n)
        return letters + (f"+{Fraction(t).limit_denominator(24)}" if t else "")
    return ",".join(row(r, t) for r, t in zip(rotation, shift))


SITE = ["label", "type_symbol", "fract_x", "fract_y", "fract_z", "occupancy"]
CRYSTALS = [
    (194, [4.5, 4.5, 7.3, 90, 90, 120], ["O1 O 0.3333 0.6667 0.0620(2) 1", "H1 H 0.4550(3) 0.910(1) 0.02 1.0"]),
    (227, [6.4, 6.4, 6.4, 90, 90, 90], ["O1 O2- 0.125 0.125 0.125 ?", "H1 H 0.20 0.20 0.20 ."]),
    (14, [5, 6, 7, 90, 100, 90], ["O1 O 0.1 0.2 0.3 1", "H1 H1+ 0.2 0.3 0.3 1", "H2 H 0 .5 0 1"]),
]
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

    def one(self, name, *words):
        """What `clebsch` has read of a file."""
        run("energy", "--model", str(WATER), "--structure", name, "--repeat", "1", "--out", "out.xyz", *words)
        return read("out.xyz")

    def alike(self, found, wanted, tolerance):
        """The same crystal: the same cell, and the same atoms but for order and vectors of the cell."""
        self.assertEqual(sorted(found.numbers), sorted(wanted.numbers))
        np.testing.assert_allclose(found.cell.cellpar(), wanted.cell.cellpar(), 1e-6)
        x, y = found.get_scaled_positions(), wanted.get_scaled_positions()
        d = x[:, None] - y[None]
        d = np.linalg.norm((d - d.round()) @ found.cell.array, axis=2)
        d[found.numbers[:, None] != wanted.numbers[None]] = np.inf
        self.assertLess(d.min(axis=1).max(), tolerance)
        self.assertEqual(len(set(d.argmin(axis=1))), len(wanted))

    def test_poscar(self):
        """Files that ASE writes, and ways of VASP, as ASE reads them."""
        tilted = water(cell=[[5, 0, 0.3], [1, 6, 0], [-2, 0.7, 7]])
        for i, how in enumerate(({"direct": True}, {}, {"sort": True}, {"direct": True, "sort": True})):
            atoms = tilted.copy()
            atoms.set_constraint(FixAtoms([i % 3]) if i % 2 else None)
            name = ("POSCAR", "CONTCAR_2", "a.vasp", "a.poscar")[i]
            write(name, atoms, format="vasp", **how)
            self.same(self.one(name), read(name, format="vasp"), 1e-12)
        for scale in "2", "-50", "1.1 0.9 1.2":
            for mode in "Direct", "Cartesian":
                pathlib.Path("POSCAR.scaled").write_text(
                    f"title\n{scale}\n2 .1 0\n0 3 .2\n.3 0 4\nO H\n1 2\nSelective\n{mode}\n"
                    "0.1 0.2 0.3 T T F\n.4 .5 .6 F F F H\n.7 .8 .9 T T T\n\n0 0 0\n1 1 1\n1 1 1\n")
                self.same(self.one("POSCAR.scaled"), read("POSCAR.scaled", format="vasp"), 1e-10)

    def test_lammps(self):
        """Files that ASE writes, of each style, as ASE reads them."""
        atoms = water(cell=[[5, 0, 0], [1, 6, 0], [-2, 0.7, 7]])
        atoms.set_initial_charges([-1, 0.5, 0.5])
        atoms.set_array("mol-id", np.array([1, 1, 1]))
        atoms.positions[1] += 3 * atoms.cell[0] - atoms.cell[2]
        for style in "atomic", "charge", "full":
            for images in False, True:
                write("a.data", atoms, format="lammps-data", specorder=["O", "H"], atom_style=style, masses=True,
                      write_image_flags=images)
                found = self.one("a.data")
                self.same(found, read("a.data", format="lammps-data", Z_of_type={1: 8, 2: 1}), 1e-10)
                self.alike(found, atoms, 1e-8)
        text = pathlib.Path("a.data").read_text()
        start, masses = text.index("Masses"), text.index("Atoms")
        pathlib.Path("data.unnamed").write_text(text[:start] + text[masses:].replace("# full", ""))
        self.same(self.one("data.unnamed", "--elements", "1=O,2=H"), found, 1e-10)

    def test_cif(self):
        """Crystals that ASE writes in P1, and some with the operations of their space groups."""
        atoms = water(cell=[[5, 0, 0], [1, 6, 0], [-2, 0.7, 7]])
        write("a.cif", atoms)
        self.alike(self.one("a.cif"), read("a.cif"), 1e-4)
        self.alike(self.one("a.cif"), atoms, 1e-4)
        for group, cell, sites in CRYSTALS:
            parts = zip(("length_a", "length_b", "length_c", "angle_alpha", "angle_beta", "angle_gamma"), cell)
            pathlib.Path("b.cif").write_text("\n".join([
                "data_b", *(f"_cell_{name} {x}" for name, x in parts), f"_space_group_IT_number {group}",
                "loop_", "_space_group_symop_id", "_space_group_symop_operation_xyz",
                *(f"{i} '{operation(*o)}'" for i, o in enumerate(zip(*Spacegroup(group).get_op()), 1)),
                "loop_", *(f"_atom_site_{name}" for name in SITE), *sites, ""]))
            with self.subTest(group):
                self.alike(self.one("b.cif"), read("b.cif"), 0.02)

    def test_compressed(self):
        atoms = water(cell=[[5, 0, 0], [1, 6, 0], [-2, 0.7, 7]])
        for name, kind in ("a.xyz", "extxyz"), ("POSCAR", "vasp"), ("a.cif", "cif"), ("a.pdb", "proteindatabank"):
            write(name, atoms, format=kind)
            packed = pathlib.Path(name + ".gz")
            packed.write_bytes(gzip.compress(pathlib.Path(name).read_bytes()))
            self.same(self.one(name + ".gz"), self.one(name), 0)
        packed = pathlib.Path("a.xyz.gz").read_bytes()
        for wrong, words in (packed[:-20], "not complete"), (packed[:20] + b"\xff" * 20 + packed[40:], "damaged"):
            pathlib.Path("wrong.xyz.gz").write_bytes(wrong)
            self.assertIn(words, run("energy", "--model", str(WATER), "--structure", "wrong.xyz.gz", status=1))

    def test_standard_input(self):
        write("a.xyz", water())
        words = [COMMAND, "energy", "--model", str(WATER), "--structure", "-", "--out", "out.xyz"]
        subprocess.run(words, input=pathlib.Path("a.xyz").read_bytes(), check=True, capture_output=True)
        self.same(read("out.xyz"), water(), 1e-8)
        done = subprocess.run(words, input=b"1\n\nQ 0 0 0\n", capture_output=True)
        self.assertIn(b"standard input, line 3: 'Q' is not a chemical symbol", done.stderr)

    def test_results(self):
        """ASE has energy, forces and stress of --out by their names; a crystal has one energy in all formats."""
        atoms = water(cell=[[5, 0, 0], [1, 6, 0], [-2, 0.7, 7]])
        for name, kind, how in (("a.xyz", "extxyz", {}), ("POSCAR", "vasp", {}), ("a.cif", "cif", {}),
                                ("a.data", "lammps-data", {"masses": True})):
            write(name, atoms, format=kind, **how)
            done = subprocess.run([COMMAND, "energy", "--model", str(WATER), "--structure", name, "--exact", "--json", "--repeat",
                                   "1", "--out", "out.xyz"], capture_output=True, check=True)
            said, found = json.loads(done.stdout), read("out.xyz")
            self.assertEqual(found.get_potential_energy(), said["energy"])
            np.testing.assert_array_equal(found.get_forces(), said["forces"])
            np.testing.assert_allclose(found.get_stress(voigt=False).ravel(), said["stress"], 1e-9, 1e-12)
            wanted = said["energy"] if name == "a.xyz" else wanted
            self.assertAlmostEqual(said["energy"], wanted, delta=1e-3 if kind == "cif" else 1e-6)

    def test_slices(self):
        """Frames are counted as ASE does."""
        atoms = [water((5 + i, 6, 7)) for i in range(5)]
        write("in.xyz", atoms)
        pathlib.Path("in.xyz.gz").write_bytes(gzip.compress(pathlib.Path("in.xyz").read_bytes()))
        for one in 0, 3, -2:
            self.same(self.one("in.xyz.gz", f"--frame={one}"), read("in.xyz", one), 1e-8)
        for several in ":", "1:4:2", "-3:", ":-3":
            run("energy", "--model", str(WATER), "--structure", "in.xyz.gz", f"--frames={several}", "--out", "out.xyz")
            found, wanted = read("out.xyz", ":"), read("in.xyz", several)
            self.assertEqual(len(found), len(wanted))
            for a, b in zip(found, wanted):
                self.same(a, b, 1e-8)

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
        atoms = water()
        for heavy in (0, 2):
            atoms.set_masses([15.999] + [1.008 + (i < heavy) for i in range(2)])
            write("masses.xyz", atoms, columns=["symbols", "masses", "positions"])
            said = run("md", "--model", str(WATER), "--structure", "masses.xyz", "--steps", "0", "--dt", "1")
            self.assertEqual("2 atoms have other masses than the standard weights" in said, heavy == 2)

    def test_fixed(self):
        """Constraints, which nothing holds to, are told of."""
        commands = ["md", "--steps", "0", "--dt", "1"], ["relax", "--steps", "0", "--out", "out.xyz"]
        one, direction = FixAtoms([1]), FixCartesian([1], (False, True, False))
        for constraint, names in ((one, ("fixed.xyz", "fixed.vasp")), (direction, ("fixed.xyz",)), (None, ("fixed.xyz", "fixed.vasp"))):
            atoms = water()
            atoms.set_constraint(constraint)
            write("fixed.xyz", atoms, columns=["symbols", "positions", *(["move_mask"] if constraint else [])])
            write("fixed.vasp", atoms)
            for name in names:
                for words in commands:
                    said = subprocess.run([COMMAND, *words, "--model", str(WATER), "--structure", name],
                                          capture_output=True, text=True).stderr
                    self.assertEqual(f"{name}: 1 atoms are fixed, but here all atoms move" in said, constraint is not None)

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
