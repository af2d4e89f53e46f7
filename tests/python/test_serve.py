"""`clebsch serve` with the programs that it is for: ASE's SocketIOCalculator over UNIX and TCP
sockets, and i-PI with four beads."""
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

import ase.io
import ase.units
import numpy as np
from ase.build import molecule
from ase.calculators.socketio import SocketIOCalculator

MODEL = os.environ.get("CLB_TEST_NEQUIP", "/usr/share/cp2k/NequIP/water.pth")
COMMAND = os.environ.get("CLB_COMMAND", "clebsch")
BEADS, STEPS = 4, 4
# CODATA 2018, as in Clebsch; ASE's are of 2014 and differ in the ninth digit.
BOHR, HARTREE = 0.529177210903, 27.211386245988

INPUT = """<simulation verbosity='low'>
  <output prefix='run'>
    <properties stride='1' filename='out'> [step, potential, virial_cv] </properties>
    <trajectory filename='pos' stride='1' format='xyz'> positions{angstrom} </trajectory>
  </output>
  <total_steps>%d</total_steps>
  <prng><seed>7</seed></prng>
  <ffsocket mode='unix' name='clebsch' pbc='false'><address>%s</address></ffsocket>
  <system>
    <initialize nbeads='%d'>
      <file mode='xyz'>beads.xyz</file>
      <velocities mode='thermal' units='kelvin'>300</velocities>
    </initialize>
    <forces><force forcefield='clebsch'></force></forces>
    <motion mode='dynamics'>
      <dynamics mode='nvt'>
        <timestep units='femtosecond'>0.5</timestep>
        <thermostat mode='pile_g'><tau units='femtosecond'>100</tau></thermostat>
      </dynamics>
    </motion>
    <ensemble><temperature units='kelvin'>300</temperature></ensemble>
  </system>
</simulation>
"""


def water():
    """Eight molecules in a skewed box, turned at random."""
    random = np.random.default_rng(1)
    atoms = ase.Atoms(cell=[[6.2, 0, 0], [0.3, 6.3, 0], [-0.2, 0.4, 6.4]], pbc=True)
    for i in range(8):
        one = molecule("H2O")
        one.rotate(random.uniform(0, 360), random.normal(size=3))
        one.translate(np.array([i & 1, i >> 1 & 1, i >> 2]) * 3.1)
        atoms += one
    return atoms


@contextlib.contextmanager
def serving(*arguments):
    """`clebsch serve`, which must end well when the block has ended."""
    words = [COMMAND, "serve", "--model", MODEL, "--structure", "water.xyz", *arguments]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    if process.returncode or err:
        raise AssertionError(f"clebsch serve: exit status {process.returncode}: {err}")
    serving.said = out


@contextlib.contextmanager
def units_of_2018():
    """ASE with the units of Clebsch, to compare all digits."""
    before = ase.units.Bohr, ase.units.Ha
    ase.units.Bohr, ase.units.Ha = BOHR, HARTREE
    yield
    ase.units.Bohr, ase.units.Ha = before


@unittest.skipUnless(os.path.exists(MODEL), f"no {MODEL} (package cp2k-data, or CLB_TEST_NEQUIP)")
class Serve(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder.name)
        self.atoms = water()
        self.write()
        self.name = os.path.basename(self.folder.name)

    def write(self):
        """The file has eight digits: the atoms become those of the file."""
        ase.io.write("water.xyz", self.atoms, format="extxyz")
        self.atoms = ase.io.read("water.xyz")
        self.atoms.calc = None

    def wanted(self):
        words = [COMMAND, "energy", "--json", "--repeat", "1", "--model", MODEL,
                 "--structure", "water.xyz"]
        return json.loads(subprocess.run(words, check=True, capture_output=True).stdout)

    def compare(self, want, tolerance):
        np.testing.assert_allclose(self.atoms.get_potential_energy(), want["energy"], tolerance, 0)
        np.testing.assert_allclose(self.atoms.get_forces(), want["forces"], 0, tolerance)
        stress = self.atoms.get_stress(voigt=False)
        np.testing.assert_allclose(stress.ravel(), want["stress"], 0, tolerance)
        self.assertGreater(abs(stress).max(), 1e-4)

    def test_ase_unix(self):
        want = self.wanted()
        with units_of_2018(), serving("--unix", self.name):
            with SocketIOCalculator(unixsocket=self.name, timeout=60) as self.atoms.calc:
                self.compare(want, 1e-10)
                self.strain()

    def strain(self):
        """The stress is the derivative of the energy."""
        cell, stress, h = self.atoms.cell.array.copy(), self.atoms.get_stress(voigt=False), 1e-4
        for i, j in (0, 0), (0, 1), (2, 1):
            energies = []
            for side in h, -h:
                strain = np.eye(3)
                strain[i, j] += side / 2
                strain[j, i] += side / 2
                self.atoms.set_cell(cell @ strain, scale_atoms=True)
                energies.append(self.atoms.get_potential_energy())
            self.atoms.set_cell(cell, scale_atoms=True)
            slope = (energies[0] - energies[1]) / (2 * h) / self.atoms.get_volume()
            self.assertAlmostEqual(slope, stress[i, j], delta=1e-6)

    def test_ase_tcp(self):
        want = self.wanted()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with serving("--host", "127.0.0.1", "--port", str(port)):
            with SocketIOCalculator(port=port, timeout=60) as self.atoms.calc:
                self.compare(want, 1e-7)

    def run_ipi(self):
        """Potentials, virials and the positions of all beads."""
        path = pathlib.Path("input.xml")
        path.write_text(INPUT % (STEPS, self.name, BEADS))
        program = [sys.executable, str(pathlib.Path(sys.executable).parent / "i-pi"), str(path)]
        with serving("--unix", self.name, "--clients", str(BEADS)):
            subprocess.run(program, check=True, capture_output=True, timeout=120)
        self.assertIn(f"connected  {BEADS} clients", serving.said)
        self.assertIn(f"served     {BEADS * (STEPS + 1)} computations", serving.said)
        files = [f"run.pos_{b}.xyz" for b in range(BEADS)]
        return [pathlib.Path(f).read_text() for f in ["run.out", *files]]

    def test_ipi(self):
        # i-PI wants the first lattice vector along x and the second in the plane of x and y.
        self.atoms.set_cell(self.atoms.cell.standard_form()[0], scale_atoms=True)
        self.write()
        want = self.wanted()["energy"]
        cell = " ".join(f"{x:.10f}" for x in self.atoms.cell.cellpar())
        comment = f"# CELL(abcABC): {cell} positions{{angstrom}} cell{{angstrom}}"
        ase.io.write("beads.xyz", self.atoms, format="xyz", comment=comment, fmt="%.10f")
        first, again = self.run_ipi(), self.run_ipi()
        self.assertEqual(first, again)
        table = np.loadtxt("run.out")
        self.assertLess(abs(table[0, 1] * HARTREE - want), 2e-5)  # i-PI writes nine digits
        self.assertGreater(abs(table[-1, 1] - table[0, 1]), 1e-3)


if __name__ == "__main__":
    unittest.main()
