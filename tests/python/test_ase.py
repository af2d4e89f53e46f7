"""The calculator of ASE beside `clebsch energy`, finite differences, and itself opened afresh."""
import copy
import hashlib
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import ase.db
import numpy as np
from ase import Atoms, units
from ase.build import molecule
from ase.calculators.calculator import PropertyNotImplementedError
from ase.calculators.fd import calculate_numerical_forces, calculate_numerical_stress
from ase.io import read, write
from ase.md.velocitydistribution import MaxwellBoltzmannDistribution
from ase.md.verlet import VelocityVerlet
from ase.phonons import Phonons
from ase.stress import full_3x3_to_voigt_6_stress

import clebsch
from clebsch.ase import Calculator

WATER = pathlib.Path("/usr/share/cp2k/NequIP/water.pth")
DATA = pathlib.Path(os.environ.get("CLB_TEST_DATA", "/nonexistent"))
MACE = pathlib.Path(os.environ.get("CLB_TEST_MACE", "/nonexistent"), "tiny_b.model")


def box(seed=1):
    """Eight molecules of water in a skewed box."""
    rng = np.random.default_rng(seed)
    one = molecule("H2O")
    one.set_cell([3.1, 3.2, 3.3])
    atoms = one.repeat(2)
    atoms.pbc = True
    atoms.set_cell(atoms.cell.array + [[0, 0.4, 0], [0, 0, -0.3], [0.2, 0, 0]])
    atoms.positions += rng.normal(0, 0.05, atoms.positions.shape)
    return atoms


def fresh(atoms, **settings):
    other = atoms.copy()
    exact = not {"dtype", "knots"} & set(settings)
    other.calc = Calculator(WATER, "cpu", exact=exact, **settings)
    return other


@unittest.skipUnless(WATER.exists(), f"no {WATER} (package cp2k-data)")
class Water(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.calculator = Calculator(WATER, "cpu", skin=0.4, exact=True)

    def setUp(self):
        self.atoms = box()
        self.atoms.calc = self.calculator

    def near(self, a, b, tolerance=1e-12):
        self.assertTrue(np.isfinite(a).all())
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1, np.abs(b).max()))

    def test_ase_agrees_with_the_command(self):
        models = [WATER] + [MACE] * MACE.exists()
        for model in models:
            with tempfile.TemporaryDirectory() as folder:
                file = os.path.join(folder, "box.extxyz")
                write(file, box())
                atoms = read(file)
                said = subprocess.run([os.environ["CLB_COMMAND"], "energy", "--exact", "-j", "-d", "cpu", "-m", model, "-s", file],
                                      check=True, capture_output=True, text=True).stdout
            said = json.loads(said)
            atoms.calc = Calculator(model, "cpu", skin=0, exact=True)
            self.near(atoms.get_potential_energy(), said["energy"])
            self.near(atoms.get_potential_energies(), said["atom_energies"])
            self.near(atoms.get_forces(), said["forces"])
            self.near(atoms.get_stress(voigt=False).ravel(), said["stress"])

    def test_ase_forces_are_derivatives(self):
        some = [0, 5, 23]
        slow = calculate_numerical_forces(self.atoms, eps=1e-4, iatoms=some)
        self.near(self.atoms.get_forces()[some], slow, 1e-6)

    def test_ase_stress_is_a_derivative(self):
        slow = calculate_numerical_stress(self.atoms, eps=1e-5)
        self.assertGreater(np.abs(slow).max(), 1e-3)
        np.testing.assert_allclose(self.atoms.get_stress(), slow, rtol=0, atol=1e-7)

    def test_ase_stresses_add_up_to_the_stress(self):
        stresses = self.atoms.get_stresses()
        self.assertEqual(stresses.shape, (len(self.atoms), 6))
        self.assertGreater(np.ptp(stresses[:, 0]), 1e-6)
        self.near(stresses.sum(0), self.atoms.get_stress())
        self.near(full_3x3_to_voigt_6_stress(self.atoms.get_stresses(voigt=False)), stresses)
        alone = molecule("H2O")
        alone.calc = self.calculator
        with self.assertRaisesRegex(PropertyNotImplementedError, "no volume"):
            alone.get_stresses()

    def test_ase_adds_dispersion(self):
        """What the command adds; forces and stress are its derivatives."""
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "box.extxyz")
            write(file, box())
            atoms = fresh(read(file), d3="PBE", d3_cutoff=9.0)
            said = json.loads(subprocess.run(
                [os.environ["CLB_COMMAND"], "energy", "--exact", "-j", "-d", "cpu", "-m", WATER, "-s", file, "--d3", "pbe", "--d3-cutoff", "9"],
                check=True, capture_output=True, text=True).stdout)
        self.assertEqual((said["d3"], said["d3_cutoff"]), ("pbe", 9))
        self.near(atoms.get_potential_energy(), said["energy"])
        self.near(atoms.get_forces(), said["forces"])
        self.assertLess(said["energy"], self.atoms.get_potential_energy() - 0.1)
        self.near(atoms.get_forces()[[7]], calculate_numerical_forces(atoms, eps=1e-4, iatoms=[7]), 1e-6)
        self.near(atoms.get_stresses().sum(0), atoms.get_stress())
        self.assertEqual(copy.deepcopy(atoms.calc).parameters["d3"], "PBE")
        with self.assertRaisesRegex(clebsch.Error, "no parameters for 'no'; there are for b1b95"):
            fresh(self.atoms, d3="no")
        with self.assertRaisesRegex(ValueError, "d3_cutoff: 9.0; it is of d3, which is None"):
            fresh(self.atoms, d3_cutoff=9.0)

    def test_ase_hessian(self):
        water, rows = molecule("H2O"), []
        water.calc = self.calculator
        model = clebsch.Model(WATER, "cpu", exact=True)
        found = model.hessian(water.numbers, water.positions).reshape(9, 9)
        for atom, axis in np.ndindex(3, 3):
            for step in (0.01, -0.02):  # to both sides
                water.positions[atom, axis] += step
                rows.append(water.get_forces().ravel())
            water.positions[atom, axis] += 0.01
        wanted = -(np.array(rows[::2]) - rows[1::2]) / 0.02
        self.near(found, (wanted + wanted.T) / 2, 1e-9)
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "water.extxyz")
            write(file, water)
            subprocess.run([os.environ["CLB_COMMAND"], "hessian", "--exact", "-d", "cpu", "-m", WATER, "-s", file, "-o", file + ".npy"], check=True, capture_output=True)
            self.near(np.load(file + ".npy"), found, 1e-6)

    def test_ase_phonons(self):
        """Force constants of a crystal by ASE's displacements in a supercell, and the command's of
        that supercell, in whose matrix they repeat."""
        cell = molecule("H2O")
        cell.set_cell([3.1, 3.2, 3.3])
        cell.pbc = True
        shape, n = (2, 1, 2), 3 * len(cell)
        with tempfile.TemporaryDirectory() as folder:
            phonons = Phonons(cell, self.calculator, supercell=shape, delta=0.01, name=os.path.join(folder, "moved"))
            plots = {name: unittest.mock.MagicMock() for name in ("matplotlib", "matplotlib.axes", "matplotlib.pyplot")}
            with unittest.mock.patch.dict(sys.modules, plots):  # which ASE imports, and needs for plots alone
                phonons.run()
            phonons.read(acoustic=False)
            from_first = phonons.get_force_constant()
            cells = list(np.ndindex(shape))  # in the order of repeat, as ASE has them
            wanted = np.zeros((len(cells) * n, len(cells) * n))
            for a, i in enumerate(cells):
                for b, j in enumerate(cells):
                    apart = cells.index(tuple((np.array(j) - i) % shape))
                    wanted[a * n:a * n + n, b * n:b * n + n] = from_first[apart]
            file = os.path.join(folder, "crystal.extxyz")
            write(file, cell.repeat(shape))
            subprocess.run([os.environ["CLB_COMMAND"], "hessian", "--exact", "-d", "cpu", "-m", WATER, "-s", file, "-o", file + ".npy"], check=True, capture_output=True)
            found = np.load(file + ".npy")
        self.assertGreater(np.abs(from_first[1:]).max(), 0.01 * np.abs(wanted).max())  # cells know each other
        self.near(found, (wanted + wanted.T) / 2, 1e-6)
        self.near(found.reshape(n * len(cells), -1, 3).sum(1), 0, 1e-3 * np.abs(wanted).max())  # of all atoms moved

    def test_ase_dynamics_keep_energy_and_lists(self):
        MaxwellBoltzmannDistribution(self.atoms, temperature_K=200, rng=np.random.default_rng(2))
        before = self.atoms.get_total_energy()
        kinetic, rebuilds = self.atoms.get_kinetic_energy(), self.calculator.model.neighbours().rebuilds
        VelocityVerlet(self.atoms, 0.25 * units.fs).run(80)
        self.assertGreater(abs(self.atoms.get_kinetic_energy() - kinetic), 0.05)
        self.assertLess(abs(self.atoms.get_total_energy() - before), 0.01 * kinetic)
        self.assertLess(self.calculator.model.neighbours().rebuilds - rebuilds, 40)
        again = fresh(self.atoms)
        self.near(self.atoms.get_forces(), again.get_forces())
        self.near(self.atoms.get_stress(), again.get_stress())

    def test_ase_atoms_that_change(self):
        a = self.atoms
        a.get_forces()

        def pop():
            del a[[3, 4, 5]]

        def append():
            a.extend(Atoms("OH", [[1, 1, 1], [1, 1, 1.97]]))

        def swap():
            a.numbers[[0, 1]] = a.numbers[[1, 0]]

        def strain():
            a.set_cell(a.cell.array * 1.02, scale_atoms=True)

        def open_one_direction():
            a.pbc = [True, False, True]

        def free():
            a.pbc, a.cell = False, None

        def move_by_cells():
            a.positions[1] += 3 * a.cell.array[0]

        energies = [a.get_potential_energy()]
        for change in (pop, append, swap, strain, move_by_cells, open_one_direction, free):
            change()
            with self.subTest(change.__name__):
                again = fresh(a, skin=0)
                self.near(a.get_potential_energy(), again.get_potential_energy())
                self.near(a.get_potential_energies(), again.get_potential_energies())
                self.near(a.get_forces(), again.get_forces())
                energies.append(a.get_potential_energy())
        self.assertEqual(len({round(e, 6) for e in energies}), 7)  # all but the move by cells

    def test_ase_one_computation_gives_all(self):
        again, calls = fresh(self.atoms, skin=0.4), []
        compute = again.calc.model.compute
        again.calc.model.compute = lambda *arguments, **keywords: calls.append(1) or compute(*arguments, **keywords)
        energy = again.get_potential_energy()
        self.assertEqual(set(again.calc.results), {"energy", "free_energy", "energies", "forces", "stress"})
        self.near(again.get_forces(), self.atoms.get_forces())
        self.near(again.get_stress(), self.atoms.get_stress())
        self.near(energy, self.atoms.get_potential_energy())
        self.assertEqual(len(calls), 1)

    def test_ase_stress_of_slabs_and_molecules(self):
        """A derivative wherever the cell has a volume, whatever is periodic, in left-handed cells, too; else refused with a sentence."""
        vacuum, left = self.atoms.copy(), self.atoms.copy()
        vacuum.cell[2] = [0.3, -0.2, 20]
        left.set_cell(left.cell.array[[1, 0, 2]])
        for atoms, pbc in ((vacuum, [True, True, False]), (self.atoms, [True, False, False]), (self.atoms, False), (left, [True, True, False])):
            atoms.calc, atoms.pbc = self.calculator, pbc
            stress = atoms.get_stress()
            slow = calculate_numerical_stress(atoms, eps=1e-5)
            self.assertGreater(np.abs(slow).max(), 1e-4)
            np.testing.assert_allclose(stress, slow, rtol=0, atol=1e-7)
            found = self.calculator.model.compute(atoms.numbers, atoms.positions, atoms.cell.array, atoms.pbc)
            self.near(full_3x3_to_voigt_6_stress(found.stress), stress)
        # An open system: the virial is that of forces on positions, so that stress does not know what the box is.
        molecule, forces = self.atoms, (self.atoms.set_pbc(False), self.atoms.get_forces())[1]
        self.near(molecule.get_stress(voigt=False) * molecule.get_volume(), -molecule.positions.T @ forces, 1e-10)
        a, b = vacuum.cell.array[:2].copy()
        for cell, pbc in (([a, b, 0 * a], [True, True, False]), ([a, b, a + b], [True, True, False]), (np.zeros((3, 3)), False)):
            vacuum.cell, vacuum.pbc = cell, pbc
            with self.assertRaisesRegex(PropertyNotImplementedError, "the cell has no volume"):
                vacuum.get_stress()
            vacuum.get_forces()
            self.assertNotIn("stress", vacuum.calc.results)

    def test_ase_provenance(self):
        """ase.db and trajectories say with what a result was computed."""
        wanted = {"model": str(WATER), "model_sha256": hashlib.sha256(WATER.read_bytes()).hexdigest(), "architecture": "nequip", "device": "cpu",
                  "device_description": clebsch.Context("cpu").description, "dtype": "f64", "knots": 0, "skin": 0.4, "atomics": False,
                  "head": None, "modality": None, "d3": None, "d3_cutoff": 0, "version": clebsch.__version__}
        self.atoms.get_forces()
        self.assertEqual((self.calculator.name, self.calculator.parameters, self.calculator.todict()), ("clebsch", wanted, wanted))
        self.assertRegex(repr(self.calculator), r"^<clebsch.ase.Calculator .*water.pth: nequip on cpu, dtype f64, knots 0, skin 0.4>$")
        with tempfile.TemporaryDirectory() as folder:
            write(os.path.join(folder, "a.traj"), self.atoms)
            calculator = read(os.path.join(folder, "a.traj")).calc
            self.assertEqual((calculator.name, calculator.parameters), ("clebsch", wanted))
            with ase.db.connect(os.path.join(folder, "a.json")) as database:
                database.write(self.atoms)
                row = database.get(1)
            self.assertEqual((row.calculator, row.calculator_parameters), ("clebsch", wanted))
            self.near(row.forces, self.atoms.get_forces())
        self.assertEqual(pickle.loads(pickle.dumps(self.calculator)).parameters, wanted)
        other = Calculator(WATER, "cpu", dtype="f32", knots=64).parameters
        self.assertEqual((other["dtype"], other["knots"], other["skin"]), ("f32", 64, "auto"))

    def test_ase_keywords(self):
        for word, right in {"precision": "dtype", "default_dtype": "dtype", "dtyp": "dtype", "Dtype": "dtype", "modal": "modality", "task_name": "modality",
                            "model_paths": "model", "model_path": "model", "file_name": "model", "path": "model", "heads": "head", "skinn": "skin",
                            "map_location": "device", "devices": "device", "n_knots": "knots", "atomic": "atomics"}.items():
            with self.subTest(word), self.assertRaisesRegex(TypeError, f"Calculator: there is no keyword '{word}'; the word is '{right}'"):
                Calculator(WATER, **{"device": "cpu", word: "f32"})
        with self.assertRaisesRegex(TypeError, "no keyword 'model_paths'; the word is 'model'"):
            Calculator(model_paths=WATER)
        with self.assertRaisesRegex(TypeError, "no keyword 'enable_cueq'; there are 'model', 'device', 'dtype', 'knots', "):
            Calculator(WATER, enable_cueq=True)
        for word in ("atoms", "label", "directory", "restart"):
            with self.assertRaisesRegex(TypeError, f"no keyword '{word}'; there are"):
                Calculator(WATER, **{word: None})
        with self.assertRaisesRegex(TypeError, "model"):
            Calculator()
        with self.assertRaisesRegex(TypeError, "dtype: a calculator's settings are those with which its model was opened"):
            self.calculator.set(dtype="f32")

    def test_ase_failure_leaves_no_results(self):
        """Not even those of other atoms, which would be taken for the new ones'."""
        self.atoms.get_forces()
        wrong = self.atoms.copy()
        wrong.numbers[3] = 29
        with self.assertRaisesRegex(clebsch.Error, "does not know Cu"):
            self.calculator.calculate(wrong)
        self.assertEqual(self.calculator.results, {})
        with self.assertRaisesRegex(clebsch.Error, "does not know Cu"):
            self.calculator.get_potential_energy(wrong)

    def test_ase_f32_and_splines_are_near(self):
        for settings in ({"dtype": "f32"}, {"knots": 256}, {"atomics": True}):
            self.near(fresh(self.atoms, **settings).get_forces(), self.atoms.get_forces(), 2e-4)

    def test_ase_copies(self):
        forces = self.atoms.get_forces()
        for other in (copy.deepcopy(self.atoms), pickle.loads(pickle.dumps(self.atoms))):
            self.assertIsNot(other.calc, self.calculator)
            self.assertIsNot(other.calc.model, self.calculator.model)
            self.near(other.get_forces(), forces)
            other.positions[0] += 0.1
            other.get_forces()
            self.near(self.atoms.get_forces(), forces)
        with self.assertRaisesRegex(TypeError, "cannot be copied or pickled"):
            pickle.dumps(self.calculator.model)
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "water.pth")
            shutil.copy(WATER, file)
            saved = pickle.dumps(Calculator(file, "cpu"))
            pickle.loads(saved)
            os.utime(file, (1, 1))
            with self.assertRaisesRegex(clebsch.Error, "water.pth has changed"):
                pickle.loads(saved)

    def test_ase_names(self):
        """A model by its name, as the library and the command find it."""
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, CLB_MODELS_DIR=folder):
            clebsch.convert(WATER, os.path.join(folder, "water-1.safetensors"))
            named = fresh(self.atoms)
            named.calc = Calculator("Water-1", "cpu", exact=True)
            self.near(named.get_potential_energy(), self.atoms.get_potential_energy())
            self.assertEqual(named.calc.parameters["model"], os.path.join(folder, "water-1.safetensors"))
            said = clebsch.Model("Water-1", "cpu", exact=True).compute(named.numbers, named.positions, named.cell)
            self.near(said.energy, named.get_potential_energy())
            self.near(pickle.loads(pickle.dumps(named.calc)).get_potential_energy(named), said.energy)

    def test_ase_refusals(self):
        copper = Atoms("CuOAu", np.eye(3), calculator=self.calculator)
        with self.assertRaisesRegex(clebsch.Error, "water.pth does not know Cu, Au; it knows H, O"):
            copper.get_forces()
        with self.assertRaisesRegex(clebsch.Error, "no element of atomic number 29, 200"):
            self.calculator.model.species([1, 29, 200])
        self.atoms.positions[0] = self.atoms.positions[1]
        with self.assertRaisesRegex(clebsch.Error, r"positions\[0\] and positions\[1\] are one place"):
            self.atoms.get_forces()
        with self.assertRaisesRegex(ValueError, "dtype: 'f16'; there are 'f64', 'f32'"):
            Calculator(WATER, "cpu", dtype="f16")
        with self.assertRaisesRegex(clebsch.Error, "nowhere"):
            Calculator(WATER, "nowhere")
        with self.assertRaises(FileNotFoundError):
            Calculator("nosuch.safetensors")
        with self.assertRaisesRegex(FileNotFoundError, "no model in .*`clebsch fetch` gets a model: 'no-such'"):
            Calculator("no-such")
        with self.assertRaisesRegex(clebsch.Error, "run.py"):
            Calculator(pathlib.Path(__file__).with_name("run.py"), "cpu")
        with self.assertRaisesRegex(clebsch.Error, "it has no modalities"):
            Calculator(WATER, "cpu", modality="PBE")
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "water.safetensors")
            clebsch.convert(WATER, file)
            with self.assertRaisesRegex(clebsch.Error, "head was chosen when it was converted"):
                Calculator(file, "cpu", head="default")
            again = self.atoms.copy()
            again.positions[0] += 0.7
            again.calc = Calculator(file, "cpu", exact=True)
            self.near(again.get_forces(), fresh(again).get_forces())
        with self.assertRaisesRegex(ValueError, r"positions: an array of shape \(2, 3\)"):
            self.calculator.model.compute([1, 1, 8], np.zeros((2, 3)))

    def test_ase_warns_of_the_interpreter(self):
        """Where no compiler is found; not where the interpreter is asked for by name."""
        program = "import warnings, sys; warnings.simplefilter('error'); import clebsch; clebsch.Context(sys.argv[1])"
        environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(clebsch.__file__).parents[1]), "PATH": "/nonexistent", "CLB_CACHE_DIR": "off"}
        for device, warns in (("cpu", True), ("cpu:interpreter", False)):
            done = subprocess.run([sys.executable, "-c", program, device], env=environment, capture_output=True, text=True, check=False)
            self.assertEqual("RuntimeWarning: Clebsch: cpu runs on the interpreter" in done.stderr, warns, done.stderr)
            self.assertEqual(done.returncode, int(warns))


@unittest.skipUnless(DATA.exists(), "CLB_TEST_DATA names no folder")
class Charged(unittest.TestCase):
    def test_ase_charge_and_spin(self):
        """Those of atoms.info, also where nothing else changes."""
        wanted = json.loads((DATA / "mace_kinds_reference.json").read_text())["charged"]
        calculator = Calculator(DATA / "mace" / "charged.model", "cpu", exact=True)
        for r in wanted.values():
            atoms = Atoms(r["Z"], r["pos"], cell=r["cell"], pbc=r["pbc"])
            atoms.calc = calculator
            neutral = atoms.get_potential_energy()
            atoms.info.update(charge=r["charge"], spin=r["spin"])
            self.assertAlmostEqual(atoms.get_potential_energy(), r["E"], delta=1e-8)
            self.assertEqual(neutral == atoms.get_potential_energy(), (r["charge"], r["spin"]) == (0, 1))
        many = calculator.model.compute_many([(r["Z"], r["pos"], r["cell"] if any(r["pbc"]) else None, None, r["charge"], r["spin"]) for r in wanted.values()])
        np.testing.assert_allclose([one.energy for one in many], [r["E"] for r in wanted.values()], atol=1e-8, rtol=0)
        with self.assertRaisesRegex(clebsch.Error, "the spin .multiplicity. is 7; this model knows 0 ... 3"):
            calculator.model.compute([8], np.zeros((1, 3)), spin=7)
