"""What the public functions of Python are given: understood exactly, or refused by name."""
import inspect
import pathlib
import typing
import unittest

import numpy as np

import clebsch
from clebsch import _checks

WATER = pathlib.Path("/usr/share/cp2k/NequIP/water.pth")
NUMBERS, PLACES = [8, 1, 1], [[0, 0, 0], [0.96, 0, 0], [-0.24, 0.93, 0]]
BOX = np.diag([3.0, 3.25, 3.5])


class Refusals(unittest.TestCase):
    def refused(self, error, said, function, *arguments, **keywords):
        with self.subTest(said), self.assertRaisesRegex(error, said):
            function(*arguments, **keywords)


@unittest.skipUnless(WATER.exists(), f"no {WATER} (package cp2k-data)")
class OfModels(Refusals):
    @classmethod
    def setUpClass(cls):
        cls.model = clebsch.Model(WATER, "cpu", exact=True)
        cls.open, cls.boxed = (cls.model.compute(NUMBERS, PLACES, cell) for cell in (None, BOX))

    def same(self, found, wanted):
        self.assertEqual(found.energy, wanted.energy)
        for name in ("energies", "forces", "stress"):
            np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))

    def test_arguments_numbers(self):
        for numbers in (np.array(NUMBERS, np.uint8), np.array(NUMBERS, ">u8"), np.array(NUMBERS, float), tuple(NUMBERS),
                        np.array(NUMBERS, np.float16), np.ma.array(NUMBERS), np.repeat(NUMBERS, 2)[::2], np.array(NUMBERS[::-1])[::-1]):
            self.same(self.model.compute(numbers, PLACES), self.open)
        for error, said, numbers in (
                (ValueError, r"numbers\[0\] is 8.9; it must be a whole number", [8.9, 1.6, 1.2]),
                (ValueError, r"numbers\[1\] is 1.00", np.array([8, 1.001, 1], np.float32)),
                (ValueError, r"numbers\[2\] is nan", [8, 1, np.nan]), (ValueError, r"numbers\[2\] is inf", [8, 1, np.inf]),
                (TypeError, "an array of truth values", np.array([True, True, True])), (TypeError, "truth values", [8, True, 1]),
                (TypeError, "numbers: an array of <U1; it must be whole", ["8", "1", "1"]), (TypeError, "<U3", "OHH"),
                (TypeError, "an array of complex128", [8, 1, 1j]), (TypeError, "object", [8, None, 1]), (TypeError, "object", [8, 2**70, 1]),
                (TypeError, "datetime64", np.array([8, 1, 1], "M8[s]")), (ValueError, "masked", np.ma.array(NUMBERS, mask=[0, 0, 1])),
                (ValueError, r"shape \(1, 3\)", [NUMBERS]), (ValueError, r"shape \(\)", 8), (ValueError, "inhomogeneous", [[8], [1, 1]]),
                (ValueError, r"numbers\[0\] is 2\*\*0|4294967304", [2**32 + 8, 1, 1]), (ValueError, "18446744073709551615", np.array([8, 1, 2**64 - 1], np.uint64)),
                (clebsch.Error, "no element of atomic number -1;", [8, -1, 1]), (clebsch.Error, "number 264;", [256 + 8, 1, 1])):
            self.refused(error, said, self.model.compute, numbers, PLACES)
            self.refused(error, said, self.model.species, numbers)

    def test_arguments_many(self):
        many = [(NUMBERS, PLACES), (NUMBERS, PLACES, BOX), ([], np.zeros((0, 3))), (NUMBERS, PLACES, BOX, False)]
        found = self.model.compute_many(iter(many))
        for one, structure in zip(found, many, strict=True):
            single = self.model.compute(*structure)
            for name in ("energy", "energies", "forces", "stress"):
                wanted = getattr(single, name)
                if wanted is not None:
                    np.testing.assert_allclose(getattr(one, name), wanted, rtol=1e-12, atol=1e-11)
                else:
                    self.assertIsNone(getattr(one, name))
        self.assertEqual(self.model.compute_many([]), [])
        self.assertIsNone(self.model.compute_many(many, derivatives=False)[1].forces)
        for error, said, wrong in ((ValueError, "structures: number 1 has 1 entries", [many[0], (NUMBERS,)]),
                                   (TypeError, "structure 2: numbers: an array of <U1", many[:2] + [(["8"], [[0, 0, 0]])]),
                                   (clebsch.Error, "structure 1: clb_model_compute: positions.* are one place", [many[0], ([8, 1], [[0, 0, 0]] * 2)])):
            self.refused(error, said, self.model.compute_many, wrong)

    def test_arguments_blocks(self):
        blocks = clebsch.Model(WATER, "cpu", exact=True, block_atoms=2).compute(NUMBERS, PLACES, BOX)
        for name in ("energy", "energies", "forces", "stress"):
            np.testing.assert_allclose(getattr(blocks, name), getattr(self.boxed, name), rtol=1e-12, atol=1e-11)

    def test_arguments_positions(self):
        places = np.array(PLACES)
        wide = np.full((6, 7), np.nan)
        wide[::2, 1:7:2] = places
        big, fortran, frozen = places.astype(">f8"), np.asfortranarray(places), places.copy()
        frozen.flags.writeable = False
        odd = np.frombuffer(b"x" + places.tobytes(), np.uint8)[1:].view(np.float64).reshape(3, 3)
        for same in (PLACES, tuple(map(tuple, PLACES)), big, fortran, frozen, odd, wide[::2, 1:7:2], places[::-1, ::-1].copy()[::-1, ::-1],
                     places.astype(np.longdouble), np.ma.array(places), np.asmatrix(places)):
            self.same(self.model.compute(NUMBERS, same), self.open)
        self.same(self.model.compute(NUMBERS, places.astype(np.float32)), self.model.compute(NUMBERS, places.astype(np.float32).astype(float)))
        for error, said, wrong in (
                (ValueError, r"positions: an array of shape \(9,\); it must be \(3, 3\)", places.ravel()), (ValueError, r"\(2, 3\)", places[:2]),
                (ValueError, r"\(1, 3\)", places[:1]), (ValueError, r"\(3, 1\)", places[:, :1]), (ValueError, r"\(3,\)", places[0]),
                (ValueError, r"\(\)", 0.0), (ValueError, r"\(1, 3, 3\)", places[None]), (TypeError, "complex128", places + 0j),
                (ValueError, r"positions\[1, 2\] is nan; it must be finite", np.where(np.arange(9).reshape(3, 3) == 5, np.nan, places)),
                (ValueError, "is -inf", places - np.inf), (TypeError, "bool", places > 0), (TypeError, "<U", [["0", "0", "0"]] * 3),
                (TypeError, "object", [[None, 0, 0]] * 3), (ValueError, "masked", np.ma.array(places, mask=places > 0.9)),
                (ValueError, "masked", [np.ma.array(row, mask=[0, 0, 1]) for row in places]),
                (ValueError, "float64 does not hold these numbers of (longdouble|float128) exactly", places.astype(np.longdouble) / 3),
                (ValueError, "inhomogeneous", [[0, 0, 0], [1, 1]])):
            self.refused(error, said, self.model.compute, NUMBERS, wrong)

    def test_arguments_cells(self):
        for same in (BOX.tolist(), np.asfortranarray(BOX), BOX.astype(">f4"), BOX.astype(np.float16)):
            self.same(self.model.compute(NUMBERS, PLACES, same), self.boxed)
        skewed = BOX + [[0, 0.5, 0], [0, 0, 0.25], [0.75, 0, 0]]
        self.assertNotEqual(self.model.compute(NUMBERS, PLACES, skewed).energy, self.model.compute(NUMBERS, PLACES, skewed.T).energy)
        self.same(self.model.compute(NUMBERS, PLACES, np.asfortranarray(skewed)), self.model.compute(NUMBERS, PLACES, skewed))
        for error, said, wrong in (
                (ValueError, r"cell: an array of shape \(3,\); it must be \(3, 3\)", [3, 3.25, 3.5]), (ValueError, r"\(6,\)", [3, 3.25, 3.5, 90, 90, 90]),
                (ValueError, r"\(9,\)", BOX.ravel()), (ValueError, r"\(\)", 4.0), (ValueError, r"cell\[0, 0\] is nan", BOX * np.nan),
                (ValueError, "inf", np.where(BOX > 0, np.inf, 0.0)), (TypeError, "complex", BOX * 1j),
                (TypeError, "bool", BOX > 0), (TypeError, "<U", "4 0 0"), (clebsch.Error, "singular", np.zeros((3, 3))),
                (ValueError, "masked", np.ma.array(BOX, mask=BOX == 0))):
            self.refused(error, said, self.model.compute, NUMBERS, PLACES, wrong)
        self.refused(ValueError, "nan", self.model.compute, NUMBERS, PLACES, BOX * np.nan, False)

    def test_arguments_periodic(self):
        energies = {}
        for flags in ((False,) * 3, (True, True, False), (False, True, True), (True,) * 3):
            energies[flags] = self.model.compute(NUMBERS, PLACES, BOX, flags).energy
            for same in (list(flags), np.array(flags), [np.bool_(f) for f in flags], list(map(int, flags)), np.array(flags, np.uint8)):
                self.assertEqual(self.model.compute(NUMBERS, PLACES, BOX, same).energy, energies[flags])
        self.assertEqual(len(set(energies.values())), 4)
        for one in (True, np.bool_(True), 1, np.array(True), None):
            self.same(self.model.compute(NUMBERS, PLACES, BOX, one), self.boxed)
        for one in (False, np.bool_(False), 0, [False, False, False]):
            self.assertEqual(self.model.compute(NUMBERS, PLACES, BOX, one).energy, self.open.energy)
            self.same(self.model.compute(NUMBERS, PLACES, None, one), self.open)
        for error, wrong in ((TypeError, "FFF"), (TypeError, "TTF"), (TypeError, "F F F"), (TypeError, "False"), (TypeError, ""), (TypeError, ["T", "T", "F"]),
                             (TypeError, [True, True, "F"]), (TypeError, b"FFF"), (TypeError, []), (ValueError, [True]), (ValueError, [True, False]),
                             (ValueError, [True] * 4), (ValueError, [[True, True, False]]), (TypeError, [1, 2, 0]), (TypeError, 2), (TypeError, -1),
                             (TypeError, [1.0, 0.0, 0.0]), (TypeError, np.nan), (TypeError, [True, None, False]), (TypeError, {"x"}),
                             (ValueError, np.ma.array([True, True, False], mask=[0, 0, 1]))):
            self.refused(error, "^periodic: ", self.model.compute, NUMBERS, PLACES, BOX, wrong)
        self.refused(ValueError, "without a cell nothing is periodic", self.model.compute, NUMBERS, PLACES, None, [True, False, False])
        self.refused(TypeError, "derivatives: 'no'; it must be True or False", self.model.compute, NUMBERS, PLACES, derivatives="no")

    def test_arguments_results_are_the_callers(self):
        first = self.model.compute(NUMBERS, PLACES, BOX)
        kept = [np.copy(a) for a in (first.energies, first.forces, first.stress)]
        places, cell = np.array(PLACES), BOX.copy()
        other = self.model.compute(NUMBERS, places, cell)
        places *= 1.1
        cell *= 1.1
        self.same(other, self.boxed)
        moved = self.model.compute(NUMBERS, places, cell)
        self.assertNotEqual(moved.energy, first.energy)
        for array, copy in zip((first.energies, first.forces, first.stress), kept):
            np.testing.assert_array_equal(array, copy)
            array[:] = np.nan
        self.same(self.model.compute(NUMBERS, PLACES, BOX), self.boxed)
        self.model.species(NUMBERS)[:] = 99
        self.same(self.model.compute(NUMBERS, PLACES), self.open)
        self.assertEqual(self.model.compute(NUMBERS, PLACES, derivatives=False).forces, None)
        self.assertIsNone(self.open.stress)

    def test_arguments_of_opening(self):
        for error, said, settings in (
                (ValueError, "dtype: 'float32'; there are 'f64', 'f32'", {"dtype": "float32"}), (ValueError, "dtype: <class", {"dtype": np.float32}),
                (ValueError, r"dtype: \[\]", {"dtype": []}), (ValueError, r"knots: 512\.5", {"knots": 512.5}), (TypeError, "knots: '512'", {"knots": "512"}),
                (ValueError, f"knots: {2**32 + 512}; it must be a whole number", {"knots": 2**32 + 512}), (TypeError, "knots: True", {"knots": True}),
                (ValueError, "knots: -1", {"knots": -1}), (ValueError, "knots: nan", {"knots": np.nan}), (ValueError, "knots: inf", {"knots": np.inf}),
                (ValueError, "skin: -0.1; it must be a finite number, 0 or more", {"skin": -0.1}), (ValueError, "skin: nan", {"skin": np.nan}),
                (TypeError, "skin: '0.3'", {"skin": "0.3"}), (TypeError, "skin: None", {"skin": None}), (TypeError, "atomics: 'no'", {"atomics": "no"}),
                (ValueError, "block_atoms: -1; it must be a whole number from 0", {"block_atoms": -1}),
                (TypeError, "atomics: 2", {"atomics": 2}), (TypeError, "head: 0; it must be a string", {"head": 0}), (TypeError, "modality: True", {"modality": True}),
                (TypeError, "device: 0; it must be a string", {"device": 0}), (ValueError, "null character", {"device": "cpu\0:interpreter"}),
                (TypeError, "no keyword 'precision'; the word is 'dtype'", {"precision": "f32"}), (TypeError, "the word is 'modality'", {"modal": "PBE"})):
            self.refused(error, said, clebsch.Model, WATER, **settings)
        self.refused(ValueError, "null character", clebsch.Model, f"{WATER}\0.safetensors", "cpu")
        self.refused(TypeError, "PathLike", clebsch.Model, 3, "cpu")
        self.refused(TypeError, "the name of a file: b'", clebsch.Model, b"water.pth", "cpu")
        self.refused(TypeError, "no keyword 'pbc'; the word is 'periodic'", self.model.compute, NUMBERS, PLACES, pbc=True)
        self.refused(TypeError, "no keyword 'outpt'", clebsch.convert, WATER, "b", outpt=1)
        self.refused(TypeError, "head: 1; it must be a string", clebsch.convert, WATER, "b", head=1)
        self.refused(TypeError, "stream: 'a'", clebsch.Context, "cuda", stream="a")
        self.refused(ValueError, "stream: -1", clebsch.Context, "cuda", stream=-1)
        self.assertRegex(repr(self.model), "water.pth: nequip on cpu, dtype f64, knots 0, skin 0>")


class OfOps(Refusals):
    def test_arguments_lists(self):
        rows = np.random.default_rng(1).normal(size=(4, 3))
        for dtype, kind in (("f64", np.float64), ("f32", np.float32)):
            op = clebsch.spherical_harmonics([1, 2], dtype=dtype, device="cpu")
            y = op.forward(rows.astype(kind))
            made = op.forward(rows.tolist())
            self.assertEqual(made.dtype, kind)
            np.testing.assert_array_equal(made, y)
            np.testing.assert_array_equal(op.backward(rows.tolist(), y), op.backward(rows.astype(kind), y.tolist()))
            of_any = clebsch.spherical_harmonics([1, 2], device="cpu")  # lists take the arrays' type, or are float64
            self.assertEqual(of_any.backward(rows.tolist(), y).dtype, kind)
            self.assertEqual(of_any.forward(rows.tolist()).dtype, np.float64)
        for degrees in (np.array([1, 2]), (1, 2), range(1, 3), [1.0, 2.0]):
            self.assertEqual(clebsch.spherical_harmonics(degrees, device="cpu").columns["y"], 8)
        listed, arrays = (clebsch.Graph(2, kind([0, 1, 1]), kind([1, 0, 0]), device="cpu") for kind in (list, np.array))
        op = clebsch.convolution("1x0e", "0e", "0e", [(0, 0, 0, "uvu", False)], device="cpu")
        x, y = [[1.0], [2.0]], [[1.0], [3.0], [5.0]]
        np.testing.assert_array_equal(op.forward(listed, x, y), op.forward(arrays, np.array(x), np.array(y)))
        self.assertEqual(op.forward(listed, x, y).tolist(), [[16.0], [1.0]])
        self.assertEqual(clebsch.Graph(2, [], [], device="cpu").n_edges, 0)

    def test_arguments_of_ops(self):
        harmonics = clebsch.spherical_harmonics
        for error, said, call in (
                (TypeError, r"degrees: 4; it must be a list of degrees, such as \[0, 1, 2\]", lambda: harmonics(4)),
                (TypeError, "degrees: 2.0;", lambda: harmonics(2.0)), (TypeError, "degrees: None", lambda: harmonics(None)),
                (TypeError, "instructions: 3; it must be a list", lambda: clebsch.tensor_product("0e", "0e", "0e", 3)),
                (TypeError, "degrees: '012'", lambda: harmonics("012")), (ValueError, r"degrees\[0\] is 1.5", lambda: harmonics([1.5])),
                (TypeError, "truth values", lambda: harmonics([True])), (TypeError, "normalize: 'no'", lambda: harmonics([1], normalize="no")),
                (ValueError, "dtype: <class", lambda: harmonics([1], dtype=np.float32)), (TypeError, "the word is 'dtype'", lambda: harmonics([1], precision="f32")),
                (TypeError, "the word is 'degrees'", lambda: harmonics(l_max=2)), (TypeError, "the word is 'normalization'", lambda: harmonics([1], normalisation="norm")),
                (TypeError, "irreps_x: 3", lambda: clebsch.paths("full", 3, "0e")), (ValueError, "irreps_x: .* null", lambda: clebsch.paths("full", "0e\0", "0e")),
                (ValueError, "order: None", lambda: clebsch.paths("channel_wise", "0e", "0e", "0e", None)),
                (TypeError, "gradients: 3", lambda: self.product(gradients=3)), (ValueError, "gradients: 'q'", lambda: self.product(gradients="xq")),
                (TypeError, "shared_weights: 'no'", lambda: self.product(shared_weights="no")), (TypeError, "the word is 'layout'", lambda: self.product(layouts="ir_mul")),
                (TypeError, r"instructions\[0\]: \(0, 0\); it must be \(in1", lambda: self.product((0, 0))),
                (TypeError, r"instructions\[0\]: \(0, 0, 0, 'uvu', True, 1, 2\)", lambda: self.product((0, 0, 0, "uvu", True, 1, 2))),
                (ValueError, r"instructions\[0\]: 4294967296", lambda: self.product((2**32, 0, 0, "uvu", True))),
                (ValueError, r"instructions\[0\]: 0.5", lambda: self.product((0.5, 0, 0, "uvu", True))),
                (TypeError, "has_weight: 'no'", lambda: self.product((0, 0, 0, "uvu", "no"))), (ValueError, "path_weight: nan", lambda: self.product((0, 0, 0, "uvu", True, np.nan))),
                (ValueError, "scale: inf", lambda: clebsch.convolution("0e", "0e", "0e", [], scale=np.inf)),
                (TypeError, "atomics: 'no'", lambda: clebsch.convolution("0e", "0e", "0e", [], atomics="no")),
                (TypeError, "the word is 'atomics'", lambda: clebsch.convolution("0e", "0e", "0e", [], atomic=True)),
                (ValueError, "n_receivers: 1.5", lambda: clebsch.Graph(1.5, [0], [0])), (ValueError, "n_receivers: 18446744073709551617", lambda: clebsch.Graph(2**64 + 1, [0], [0])),
                (ValueError, "n_senders: -1", lambda: clebsch.Graph(1, [0], [0], -1)), (ValueError, r"senders\[1\] is 0.5", lambda: clebsch.Graph(1, [0, 0.5], [0, 0])),
                (TypeError, "senders holds bool", lambda: clebsch.Graph(2, np.array([True]), np.array([True]))), (TypeError, "senders holds >i8", lambda: clebsch.Graph(1, np.zeros(1, ">i8"), np.zeros(1, ">i8"))),
                (ValueError, "as many", lambda: clebsch.Graph(1, [0], [0, 0])), (ValueError, "masked", lambda: clebsch.Graph(1, np.ma.array([0], mask=[1]), np.array([0])))):
            self.refused(error, said, call)

    def product(self, instruction=(0, 0, 0, "uvu", True), **options):
        return clebsch.tensor_product("0e", "0e", "0e", [instruction], device="cpu", **options)

    def test_arguments_operands(self):
        op = clebsch.spherical_harmonics([1], device="cpu")
        x = np.random.default_rng(2).normal(size=(5, 3))
        odd = np.frombuffer(b"x" + x.tobytes(), np.uint8)[1:].view(np.float64).reshape(5, 3)
        for error, said, wrong in (
                (ValueError, "x: elements are masked", np.ma.array(x, mask=x > 1)), (TypeError, "x holds complex128", x + 0j),
                (TypeError, "x holds >f8", x.astype(">f8")), (TypeError, "x holds (longdouble|float128)", x.astype(np.longdouble)), (TypeError, "x holds int64", x.astype(int)),
                (TypeError, "x holds bool", x > 0), (TypeError, "x holds object", x.astype(object)), (clebsch.Error, "not a multiple of an element's size", odd),
                (clebsch.Error, "adjacent", np.asfortranarray(x)), (clebsch.Error, "backward", x[::-1]), (clebsch.Error, "adjacent", x[:, ::-1]),
                (ValueError, r"shape \[15\]", x.ravel()), (ValueError, r"shape \[1, 5, 3\]", x[None]), (ValueError, r"shape \[\]", np.array(1.0)),
                (ValueError, r"x\[0, 1\] is nan", [[0, np.nan, 1]]), (TypeError, "x: an array of <U", [["1", "2", "3"]]), (ValueError, "inhomogeneous", [[1, 2, 3], [1]]),
                (ValueError, "x is missing", None)):
            self.refused(error, said, op.forward, wrong)
        first = op.forward(x)
        kept = first.copy()
        op.forward(2 * x)
        np.testing.assert_array_equal(first, kept)
        np.testing.assert_array_equal(op.forward(np.ma.array(x)), kept)

    def test_arguments_results_apart(self):
        """Results are not written over what is still read; columns of one array may be apart."""
        op = clebsch.spherical_harmonics([1], device="cpu")
        wide = np.random.default_rng(3).normal(size=(6, 8))
        x, expected = wide[:5, :3], op.forward(wide[:5, :3].copy())
        op.forward(x, out=wide[:5, 4:7])
        np.testing.assert_array_equal(wide[:5, 4:7], expected)
        for out in (x, wide[:5, 1:4], wide[1:6, :3], wide[:5, 2:5], wide[1:6, 1:4]):
            self.refused(clebsch.Error, "y is in the memory of x", op.forward, x, out=out)
        x, g, h = (np.random.default_rng(4).normal(size=(5, 3)) for _ in range(3))
        both = np.empty((5, 3))
        self.refused(clebsch.Error, "d_g_y is in the memory of d_x", op.double_backward, x, g, h, out=(both, both))


class OfAll(unittest.TestCase):
    def test_arguments_are_typed_and_exact(self):
        """Every public function has a hint for each argument, and no **keywords."""
        checked = 0
        for name in clebsch.__all__:
            thing = getattr(clebsch, name)
            functions = [thing] if inspect.isfunction(thing) else []
            if inspect.isclass(thing) and issubclass(thing, (clebsch.Model, clebsch.Context, clebsch.Graph, clebsch.SphericalHarmonics, clebsch.TensorProduct)):
                functions = [f for n, f in inspect.getmembers(thing, inspect.isfunction) if n == "__init__" or not n.startswith("_")]
            for function in functions:
                if function.__qualname__.startswith("Op."):
                    continue
                parameters = inspect.signature(function).parameters.values()
                lacking = [p.name for p in parameters if p.name != "self" and (p.annotation is p.empty or p.kind is p.VAR_KEYWORD)]
                self.assertEqual(lacking, [], function.__qualname__)
                self.assertIn("return", typing.get_type_hints(function), function.__qualname__)
                checked += 1
        self.assertGreater(checked, 20)
        self.assertTrue(pathlib.Path(clebsch.__file__).with_name("py.typed").exists())

    def test_arguments_of_others_have_a_word(self):
        """Each word that is translated becomes one of a public function's."""
        functions = (clebsch.Model, clebsch.Model.compute, clebsch.spherical_harmonics, clebsch.convolution)
        names = {name for function in functions for name in inspect.signature(function).parameters} | {"model", "atoms"}
        for word, right in _checks.WORDS.items():
            self.assertLessEqual(set(right), names, word)

    def test_arguments_devices(self):
        found = clebsch.devices()
        cpu = next(device for device in found if device.name == "cpu")
        self.assertTrue(cpu.runs and cpu.f64 and cpu.description)
        self.assertEqual(clebsch.Context("cpu").device, cpu)
        self.assertTrue(all(isinstance(size, int) and size > 0 for device in found for size in device.sub_group_sizes))
        self.assertGreater(len({device.name for device in found}), 1)
