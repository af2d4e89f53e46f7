"""Labels that ASE writes, in each of its ways, are what `clebsch evaluate` compares with."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
from ase.build import molecule
from ase.calculators.singlepoint import SinglePointCalculator
from ase.io import read, write
from ase.stress import voigt_6_to_full_3x3_stress

WATER = pathlib.Path("/usr/share/cp2k/NequIP/water.pth")
COMMAND = os.environ.get("CLB_COMMAND", "clebsch")


def run(*words):
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True)
    if done.returncode or done.stderr and "compiling" not in done.stderr:
        raise AssertionError(f"{words}: exit status {done.returncode}: {done.stderr}")
    return done.stdout


def frames(seed):
    """Water in cells that are skewed, and a molecule without one."""
    rng = np.random.default_rng(seed)
    for i in range(5):
        atoms = molecule("H2O", cell=[[5, 0.2 * i, 0], [0, 6, 0.3], [0.1 * i, 0, 7]], pbc=True)
        if i == 4:
            atoms.cell, atoms.pbc = None, False
        atoms.positions += 0.05 * rng.normal(size=(3, 3))
        yield atoms


def of_results(atoms, energy, forces, stress):
    """As of a calculator of ASE."""
    wanted = {"stress": stress} if atoms.cell.rank == 3 else {}
    atoms.calc = SinglePointCalculator(atoms, energy=energy, forces=forces, **wanted)


def of_references(matrix):
    """As MACE has them; the stress in Voigt's order or as a matrix."""
    def put(atoms, energy, forces, stress):
        of_results(atoms, energy + 1, forces + 1, stress + 1)  # which do not count
        atoms.info["REF_energy"] = energy
        atoms.arrays["REF_forces"] = forces
        if atoms.cell.rank == 3:
            atoms.info["REF_stress"] = voigt_6_to_full_3x3_stress(stress) if matrix else stress
    return put


def of_virials(atoms, energy, forces, stress):
    """As QUIP has them: a virial is minus the stress times the volume."""
    atoms.info["energy"] = energy
    atoms.arrays["forces"] = forces
    if atoms.cell.rank == 3:
        atoms.info["virial"] = -atoms.get_volume() * voigt_6_to_full_3x3_stress(stress)


@unittest.skipUnless(WATER.exists(), f"no {WATER} (package cp2k-data)")
class Labels(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)

    def predictions(self):
        write("plain.xyz", list(frames(1)), format="extxyz")
        run("energy", "--model", str(WATER), "--exact", "--structure", "plain.xyz", "--frames",
            "all", "--out", "predicted.xyz")
        return read("predicted.xyz", ":")

    def errors(self, put):
        """Labels off by known numbers, written by `put`."""
        rng, offs, labelled = np.random.default_rng(2), [[], [], []], []
        for atoms in self.predictions():
            off = rng.normal(), rng.normal(size=(3, 3)), 0.01 * rng.normal(size=6)
            energy, forces = atoms.get_potential_energy(), atoms.get_forces()
            stress = atoms.get_stress() if atoms.cell.rank == 3 else np.zeros(6)
            atoms.calc = None
            put(atoms, energy + off[0], forces + off[1], stress + off[2])
            labelled.append(atoms)
            offs[0].append([off[0] / 3])
            offs[1].append(off[1].ravel())
            if atoms.cell.rank == 3:
                offs[2].append(voigt_6_to_full_3x3_stress(off[2]).ravel())
        write("labelled.xyz", labelled, format="extxyz")
        return [np.concatenate(o) for o in offs]

    def test_what_ase_writes(self):
        ways = {"results": of_results, "Voigt": of_references(False),
                "matrix": of_references(True), "virial": of_virials}
        for name, put in ways.items():
            with self.subTest(name):
                wanted = self.errors(put)
                found = json.loads(run("evaluate", "--model", str(WATER), "--exact", "--json",
                                       "--structures", "labelled.xyz"))["all"]
                for key, off in zip(("energy_per_atom", "forces", "stress"), wanted):
                    self.assertEqual(found[key]["numbers"], off.size)
                    # ASE writes positions and forces with eight decimals.
                    self.assertAlmostEqual(found[key]["mae"], np.abs(off).mean(), delta=1e-6)
                    self.assertAlmostEqual(found[key]["rmse"], np.sqrt((off**2).mean()), delta=1e-6)
