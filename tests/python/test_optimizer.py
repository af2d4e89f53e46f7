"""Optimizers on arrays: against NumPy, states, and what is refused."""
import math
import unittest

import numpy as np

import clebsch

RNG = np.random.default_rng(11)
SHAPES = [(5, 3), (4,), (2, 3, 2), (0, 3), ()]


def made(shapes=SHAPES, dtype=np.float64):
    return [np.array(RNG.normal(size=shape), dtype) for shape in shapes]


class Adam:
    """AdamW in float64."""

    def __init__(self, parameters, lr, weight_decay):
        self.p, self.lr, self.decay, self.t = [np.array(p) for p in parameters], lr, weight_decay, 0
        self.m, self.v = ([np.zeros_like(p) for p in parameters] for _ in "mv")

    def step(self, gradients):
        self.t += 1
        for p, m, v, g in zip(self.p, self.m, self.v, gradients):
            p *= 1 - self.lr * self.decay
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            p -= self.lr * m / (1 - 0.9**self.t) / (np.sqrt(v / (1 - 0.999**self.t)) + 1e-8)


class Optimizers(unittest.TestCase):
    def test_optimizer_adamw(self):
        p, g = made(), made()
        wanted = Adam(p, 0.01, 0.1)
        optimizer = clebsch.Optimizer(p, g, {"rule": "adamw", "lr": 0.01, "weight_decay": 0.1}, device="cpu")
        for step in range(20):
            if step == 10:
                optimizer.set_group(0, {"lr": 0.003})
                wanted.lr = 0.003
            for array in g:
                array[...] = RNG.normal(size=array.shape)
            optimizer.step()
            wanted.step(g)
        for array, other in zip(p, wanted.p):
            np.testing.assert_allclose(array, other, rtol=1e-12, atol=1e-12)
        self.assertEqual(optimizer.progress(), (20, 0, 0))

    def test_optimizer_goes_on(self):
        whole, part = made(), None
        part = [np.array(p) for p in whole]
        g = made()
        settings = {"groups": [{"rule": "adam", "lr": 0.1}, {"rule": "sgd", "lr": 0.1, "momentum": 0.9}],
                    "members": [0, 1, 0, 1, 0], "clip": "torch", "max_norm": 1, "device": "cpu"}
        one = clebsch.Optimizer(whole, g, **settings)
        one.step()
        one.step()
        self.assertAlmostEqual(one.progress().norm, np.sqrt(sum((a**2).sum() for a in g)))
        first = clebsch.Optimizer(part, g, **settings)
        first.step()
        second = clebsch.Optimizer(part, g, **settings)
        second.load_state(first.state())
        second.step()
        for a, b in zip(whole, part):
            np.testing.assert_array_equal(a, b)

    def test_optimizer_copies_and_averages(self):
        p, g = made(dtype=np.float32), made(dtype=np.float16)
        half, average = made(dtype=np.float16), made(dtype=np.float32)
        optimizer = clebsch.Optimizer(p, g, {"rule": "sgd", "lr": 0.1}, copies=half, averages=average,
                                      ema="constant", ema_decay=0.5, device="cpu")
        before = [np.array(a) for a in p]
        optimizer.step()
        for new, old, rounded, mean in zip(p, before, half, average):
            np.testing.assert_array_equal(rounded, new.astype(np.float16))
            np.testing.assert_allclose(mean, (new + old) / 2, rtol=1e-6, atol=1e-6)

    def test_optimizer_muon(self):
        """The step of an orthogonal matrix is five times the polynomial of one number."""
        q = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 4)))[0]
        x = 1 / math.sqrt(4)
        for _ in range(5):
            x = 3.4445 * x - 4.7750 * x**3 + 2.0315 * x**5
        for variant, scale in (("optax", 1), ("nequix", math.sqrt(6 / 4))):
            p, g = [np.zeros((6, 4))], [3 * q]
            clebsch.Optimizer(p, g, {"rule": "muon", "lr": 0.1, "muon": variant}, device="cpu").step()
            np.testing.assert_allclose(p[0], -0.1 * scale * x * q, rtol=1e-6, atol=1e-9)

    def test_optimizer_soap(self):
        """In the bases of its own gradient a step is that of a diagonal matrix of singular values."""
        g = np.random.default_rng(2).normal(size=(5, 5))
        u, _, v = np.linalg.svd(g)
        p = [np.zeros((5, 5))]
        optimizer = clebsch.Optimizer(p, [g], {"rule": "soap", "lr": 0.1}, device="cpu")
        optimizer.step()
        np.testing.assert_array_equal(p[0], np.zeros((5, 5)))
        optimizer.step()
        np.testing.assert_allclose(p[0], -0.1 * u @ v, rtol=1e-5, atol=1e-5)

    def test_optimizer_refuses(self):
        p, g = made(), made()
        group = {"rule": "adamw", "lr": 0.01}

        def refused(error, words, *arguments, **more):
            with self.assertRaisesRegex(error, words):
                clebsch.Optimizer(*arguments, **{"device": "cpu", **more})

        refused(clebsch.Error, "overlap", p, p, group)
        refused(TypeError, r"gradients\[1\] holds f32, gradients\[0\] f64", p, [g[0]] + made(SHAPES[1:], np.float32), group)
        refused(ValueError, "gradients has the shapes", p, g[:2], group)
        refused(ValueError, "lr is missing", p, g, {"rule": "adam"})
        refused(ValueError, "lr: nan", p, g, {"rule": "adam", "lr": float("nan")})
        refused(clebsch.Error, "lr of group 0 is -1", p, g, {"rule": "adam", "lr": -1})
        refused(ValueError, "rule: 'muon2'", p, g, {"rule": "muon2", "lr": 1})
        refused(ValueError, "muon: 'jax'", p, g, {"rule": "muon", "lr": 1, "muon": "jax"})
        refused(TypeError, "there is no 'momentun'", p, g, {"rule": "sgd", "lr": 1, "momentun": 1})
        refused(clebsch.Error, "elements must follow each other", [np.zeros((4, 4))[:, :2]], [np.zeros((4, 2))], group)
        refused(TypeError, "must be a list of arrays", p[0], g[0], group)
        refused(ValueError, r"members: 1 numbers for 5", p, g, group, members=[0])
        with self.assertRaisesRegex(clebsch.Error, "are not a state"):
            clebsch.Optimizer(p, g, group, device="cpu").load_state(b"nothing")


if __name__ == "__main__":
    unittest.main()
