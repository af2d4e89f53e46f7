"""The gradient of a loss by a model's tensors from Python, against differences of the loss."""
import pathlib
import unittest

import numpy as np

import clebsch

MODEL = pathlib.Path(__file__).resolve().parent.parent / "data" / "mace" / "short.safetensors"


def structures(model):
    """A crystal in a skewed cell and an open cluster, of the model's elements."""
    random = np.random.default_rng(4)
    numbers = [model.numbers[i % len(model.numbers)] for i in range(4)]
    cell = np.array([[4.2, 0.3, 0.1], [0, 4.4, -0.2], [0.2, 0, 4.3]])
    places = np.array([[0, 0, 0], [2, 2, 0], [2, 0, 2], [0, 2, 2.1]]) + 0.1 * random.normal(size=(4, 3))
    labels = [clebsch.Labels(energy=-3.0, forces=random.normal(size=(4, 3)),
                             stress=0.01 * np.eye(3), weight=2.0),
              clebsch.Labels(forces=random.normal(size=(3, 3)))]
    return [(numbers, places, cell), (numbers[:3], places[:3] * 0.9)], labels


class Training(unittest.TestCase):
    def setUp(self):
        self.model = clebsch.Model(MODEL, "cpu", dtype="f64", trains=True)
        self.structures, self.labels = structures(self.model)
        self.loss = clebsch.Loss("huber", energy=1, forces=3, stress=10, delta=0.2)

    def value(self, **tensors):
        self.model.set_tensors(tensors)
        return self.model.gradient(self.structures, self.labels, self.loss).loss

    def test_gradient(self):
        found = self.model.gradient(self.structures, self.labels, self.loss)
        self.assertAlmostEqual(found.loss, found.terms["energy"] + 3 * found.terms["forces"]
                               + 10 * found.terms["stress"], 12)
        before, random, size = self.model.tensors(), np.random.default_rng(1), 1e-4
        self.assertEqual(set(before), set(found.tensors))
        total = np.sqrt(sum((g ** 2).sum() for g in found.tensors.values()))
        for name, values in before.items():
            if name in ("agnesi_radii", "bessel_frequencies") or name.startswith("zbl_"):
                continue
            along = random.normal(size=values.shape)
            ends = [self.value(**{name: values + sign * size * along}) for sign in (1, -1)]
            self.value(**{name: values})
            self.assertAlmostEqual((ends[0] - ends[1]) / (2 * size),
                                   float((found.tensors[name] * along).sum()),
                                   delta=1e-5 * total * np.linalg.norm(along), msg=name)

    def test_descent(self):
        first = self.model.gradient(self.structures, self.labels, self.loss)
        norm = sum((g ** 2).sum() for g in first.tensors.values())
        moved = {name: values - 1e-2 * first.loss / norm * first.tensors[name]
                 for name, values in self.model.tensors().items() if name != "bessel_frequencies"}
        self.assertLess(self.value(**moved), first.loss)

    def test_refusals(self):
        def refused(kind, text, call, *arguments, **keywords):
            with self.assertRaises(kind) as caught:
                call(*arguments, **keywords)
            self.assertIn(text, str(caught.exception))

        plain = clebsch.Model(MODEL, "cpu")
        refused(clebsch.Error, "without trains=True", plain.gradient, self.structures, self.labels)
        refused(clebsch.Error, "without trains=True", plain.tensors)
        refused(ValueError, "there are 1, of 2", self.model.gradient, self.structures, self.labels[:1])
        refused(TypeError, "not a clebsch.Labels", self.model.gradient, self.structures, [1, 2])
        refused(ValueError, "forces of number 0 has shape (2, 3), not (4, 3)", self.model.gradient,
                self.structures, [clebsch.Labels(forces=np.zeros((2, 3))), self.labels[1]])
        refused(ValueError, "the model has no 'none'", self.model.set_tensors, {"none": 1.0})
        refused(ValueError, "'l1'; there are 'mse'", self.model.gradient, self.structures,
                self.labels, clebsch.Loss("l1"))
