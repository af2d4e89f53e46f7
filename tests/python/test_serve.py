"""`clebsch serve` with the programs that it is for: ASE's SocketIOCalculator over UNIX and TCP
sockets, and i-PI with four beads."""
import contextlib
import io
import json
import os
import pathlib
import re
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


def block(language):
    """The first block of this language in docs/ipi.md."""
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "ipi.md"
    return re.search(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)[1]


def replace_once(text, old, new):
    if text.count(old) != 1:
        raise AssertionError(f"docs/ipi.md has '{old}' {text.count(old)} times")
    return text.replace(old, new)


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
def serving(*arguments, structure="water.xyz"):
    """`clebsch serve`, which must end well when the block has ended."""
    words = [COMMAND, "serve", "--exact", "--model", MODEL, "--structure", structure, *arguments]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    complaints = [line for line in err.splitlines() if ": compiling " not in line]
    if process.returncode or complaints:
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

    def wanted(self, structure="water.xyz"):
        words = [COMMAND, "energy", "--exact", "--json", "--repeat", "1", "--model", MODEL,
                 "--structure", structure]
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
            with SocketIOCalculator(unixsocket=self.name, timeout=300) as self.atoms.calc:
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
            with SocketIOCalculator(port=port, timeout=300) as self.atoms.calc:
                self.compare(want, 1e-7)

    def run_ipi(self):
        """Potentials, virials and the positions of all beads."""
        path = pathlib.Path("input.xml")
        text = replace_once(block("xml"), "<total_steps>1000<", f"<total_steps>{STEPS}<")
        path.write_text(replace_once(text, "<address>clebsch<", f"<address>{self.name}<"))
        program = [sys.executable, str(pathlib.Path(sys.executable).parent / "i-pi"), str(path)]
        with serving("--unix", self.name, "--clients", str(BEADS), structure="beads.xyz"):
            subprocess.run(program, check=True, capture_output=True, timeout=300)
        self.assertIn(f"connected  {BEADS} clients", serving.said)
        self.assertIn(f"served     {BEADS * (STEPS + 1)} computations", serving.said)
        files = [f"water.pos_{b}.xyz" for b in range(BEADS)]
        return [pathlib.Path(f).read_text() for f in ["water.out", *files]]

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
        table = np.loadtxt("water.out")
        self.assertLess(abs(table[0, 1] * HARTREE - want), 2e-5)  # i-PI writes nine digits
        self.assertGreater(abs(table[-1, 1] - table[0, 1]), 1e-3)
        # The first frame that i-PI writes, in Angstrom with a cell in bohr, as `energy` reads it.
        again = self.wanted("water.pos_0.xyz")["energy"]
        self.assertLess(abs(again - want), 1e-2)

    def test_page(self):
        """The Python of docs/ipi.md."""
        words = [COMMAND, "convert", MODEL, "model.safetensors"]
        subprocess.run(words, check=True, capture_output=True)
        os.rename("water.xyz", "box.xyz")
        path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        os.environ["PATH"] = f"{os.path.dirname(COMMAND)}:{path}"
        text = block("python").replace('"clebsch"]', f'"{self.name}"]')
        text = replace_once(text, 'unixsocket="clebsch"', f'unixsocket="{self.name}"')
        names = {}
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile(text, "docs/ipi.md", "exec"), names)
        self.assertEqual(names["server"].returncode, 0)
        self.assertTrue(said.getvalue().startswith("-37"))
