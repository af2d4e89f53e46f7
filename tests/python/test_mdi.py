"""`clebsch serve --mdi` with a driver of MDI (PyPI's pymdi) over TCP, in a process of its own."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

import ase.io
import mdi
import numpy as np

MODEL = os.environ.get("CLB_TEST_NEQUIP", "/usr/share/cp2k/NequIP/water.pth")
COMMAND = os.environ.get("CLB_COMMAND", "clebsch")
LIBRARY = str(pathlib.Path(mdi.__file__).parent / "libmdi.so")
BOHR, HARTREE = 0.529177210903, 27.211386245988
STRESS = HARTREE / BOHR**3
BEGIN = """
import json, sys
import mdi
import numpy as np
mdi.MDI_Init(f"-role DRIVER -name test -method TCP -port {sys.argv[1]}")
comm, said = mdi.MDI_Accept_Communicator(), {}
def ask(name, n, kind):
    mdi.MDI_Send_Command(name, comm)
    said[name] = mdi.MDI_Recv(n, kind, comm)
    return said[name]
def tell(name, x, kind):
    mdi.MDI_Send_Command(name, comm)
    mdi.MDI_Send(x, len(x), kind, comm)
"""
ALL = BEGIN + """
said["there"] = [mdi.MDI_Check_Command_Exists("@DEFAULT", name, comm) for name in ("<PE", ">ELEMENTS", ">MASSES")]
n = ask("<NATOMS", 1, mdi.MDI_INT)
for name, count, kind in ("<NAME", mdi.MDI_NAME_LENGTH, mdi.MDI_CHAR), ("<@", mdi.MDI_COMMAND_LENGTH, mdi.MDI_CHAR), \\
        ("<ELEMENTS", n, mdi.MDI_INT), ("<CELL", 9, mdi.MDI_DOUBLE), ("<COORDS", 3 * n, mdi.MDI_DOUBLE):
    ask(name, count, kind)
told = json.load(open("told.json"))
said["results"] = []
for step in range(4):
    if step == 1: tell(">COORDS", told["coords"], mdi.MDI_DOUBLE)
    if step == 2: tell(">CELL", told["cell"], mdi.MDI_DOUBLE)
    if step == 3: tell(">ELEMENTS", told["elements"], mdi.MDI_INT)
    mdi.MDI_Send_Command("@DEFAULT", comm)
    said["results"].append([ask("<STRESS", 9, mdi.MDI_DOUBLE), ask("<FORCES", 3 * n, mdi.MDI_DOUBLE),
                            ask("<ENERGY", 1, mdi.MDI_DOUBLE), ask("<PE", 1, mdi.MDI_DOUBLE)])
mdi.MDI_Send_Command("EXIT", comm)
print(json.dumps(said))
"""


def free_port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


@unittest.skipUnless(os.path.exists(MODEL), f"no {MODEL} (package cp2k-data, or CLB_TEST_NEQUIP)")
class Mdi(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        random = np.random.default_rng(3)
        grid = np.array([[i % 3, i // 3, 0] for i in range(6)]) * 2.1
        self.atoms = ase.Atoms("OHHOHH", cell=[[6.2, 0, 0], [0.3, 4.3, 0], [-0.2, 0.4, 3.4]], pbc=True,
                               positions=grid + random.uniform(-0.2, 0.2, (6, 3)))

    def engine(self, options, library=LIBRARY):
        ase.io.write("atoms.xyz", self.atoms, format="extxyz")
        words = [COMMAND, "serve", "--exact", "--model", MODEL, "--structure", "atoms.xyz", "--mdi", options]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "CLB_MDI_LIBRARY": library})

    def driven(self, driver):
        """What the driver prints, and the engine's exit status, output and errors."""
        port, err = free_port(), ""
        words = [sys.executable, "-c", driver, str(port)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process, \
                self.engine(f"-role ENGINE -name clebsch -method TCP -port {port} -hostname localhost") as engine:
            try:
                out, err = engine.communicate(timeout=200)
                said, complaint = process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                self.fail(f"the engine or its driver does not end: {err}")
            finally:
                process.kill()
                engine.kill()
        return said or complaint, engine.returncode, out, err

    def wanted(self):
        ase.io.write("wanted.xyz", self.atoms, format="extxyz")
        words = [COMMAND, "energy", "--exact", "--json", "--repeat", "1", "--model", MODEL, "--structure", "wanted.xyz"]
        return json.loads(subprocess.run(words, check=True, capture_output=True).stdout)

    def read_back(self):
        """Files have eight digits."""
        ase.io.write("written.xyz", self.atoms, format="extxyz")
        self.atoms = ase.io.read("written.xyz")

    def test_results(self):
        self.read_back()
        first, wants = self.atoms.copy(), [self.wanted()]
        self.atoms.positions += np.random.default_rng(4).uniform(-0.1, 0.1, (6, 3))
        self.read_back()
        told = {"coords": list(self.atoms.positions.ravel() / BOHR)}
        wants.append(self.wanted())
        self.atoms.cell[:] *= 1.02
        self.read_back()
        told["cell"] = list(self.atoms.cell.array.ravel() / BOHR)
        wants.append(self.wanted())
        self.atoms.numbers = [1, 8, 1, 1, 8, 1]
        told["elements"] = self.atoms.numbers.tolist()
        wants.append(self.wanted())
        self.atoms = first
        pathlib.Path("told.json").write_text(json.dumps(told))
        text, status, out, err = self.driven(ALL)
        self.assertEqual(status, 0, f"{text}\n{err}")
        said = json.loads(text)
        self.assertEqual(said["there"], [1, 1, 0])
        self.assertEqual([said["<NAME"].rstrip("\0"), said["<@"].rstrip("\0")], ["clebsch", "@DEFAULT"])
        self.assertEqual(said["<ELEMENTS"], first.numbers.tolist())
        np.testing.assert_allclose(said["<CELL"], first.cell.array.ravel() / BOHR, 0, 1e-12)
        np.testing.assert_allclose(said["<COORDS"], first.positions.ravel() / BOHR, 0, 1e-12)
        for (stress, forces, energy, pe), want in zip(said["results"], wants, strict=True):
            self.assertEqual(energy, pe)
            np.testing.assert_allclose(energy * HARTREE, want["energy"], 0, 1e-9)
            np.testing.assert_allclose(np.reshape(forces, (-1, 3)) * HARTREE / BOHR, want["forces"], 0, 1e-9)
            np.testing.assert_allclose(np.array(stress) * -STRESS, want["stress"], 0, 1e-9)
        self.assertIn("served     4 computations", out)

    def test_refusals(self):
        cases = [("tell('>ELEMENTS', [54, 1, 1, 8, 1, 1], mdi.MDI_INT)", "does not know the element 54 of atom 1"),
                 ("tell('>COORDS', [float('nan')] * 18, mdi.MDI_DOUBLE)", "a number of the positions is not finite"),
                 ("tell('>CELL', [0.0] * 3 + [float('inf')] * 6, mdi.MDI_DOUBLE)", "a number of the cell is not finite"),
                 ("ask('<NATOMS', 1, mdi.MDI_INT)", "the driver is gone, without EXIT")]
        for driver, words in cases:
            text, status, _, err = self.driven(BEGIN + driver)
            self.assertEqual(status, 1, f"{driver}: {text}\n{err}")
            self.assertIn(words, err)

    def test_options(self):
        engine = "-role ENGINE -name clebsch -method TCP -port 1 -hostname localhost"
        for options, library, words in [(engine, "absent.so", "CLB_MDI_LIBRARY names MDI's library"),
                                        (engine, "libc.so.6", "has no MDI_Init"),
                                        ("-role ENGINE -name clebsch -method PIGEON", LIBRARY, "does not take the options"),
                                        (f"-role DRIVER -name clebsch -method TCP -port {free_port()}", LIBRARY,
                                         "must have -role ENGINE")]:
            with self.engine(options, library) as process:
                _, err = process.communicate(timeout=200)
            self.assertEqual(process.returncode, 1)
            self.assertIn(words, err)
