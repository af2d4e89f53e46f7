"""Ops on arrays: by mathematical property, in others' memory, on PoCL, and what is refused."""
import os
import subprocess
import unittest

import numpy as np

import clebsch

RNG = np.random.default_rng(3)
ODD = clebsch.paths("channel_wise", "3x0e+5x1o", "0e+1o+2e", "0e+1o+1e+2e")


def opencl():
    """The first device of OpenCL that runs here."""
    said = subprocess.run([os.environ["CLB_COMMAND"], "devices"], check=True, capture_output=True, text=True).stdout
    return next((line.split()[0] for line in said.splitlines() if line.startswith("opencl:") and line.split()[1] == "runs"), None)


class Foreign:
    """An array that others made: nothing but DLPack."""

    def __init__(self, array, device=None):
        self.array, self.device = array, device

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.device or self.array.__dlpack_device__()


def normal(*shape, dtype=np.float64):
    return RNG.normal(size=shape).astype(dtype)


def slope(function, at, along, h=1e-5):
    return (function(at + h * along) - function(at - h * along)) / (2 * h)


class Ops(unittest.TestCase):
    def near(self, a, b, tolerance=1e-12):
        a, b = np.asarray(a), np.asarray(b)
        self.assertTrue(np.isfinite(a).all())
        self.assertEqual(a.shape, b.shape)
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(1, np.abs(b).max(initial=0)))

    def test_ops_harmonics(self):
        op = clebsch.spherical_harmonics([0, 1, 3], device="cpu", normalize=True)
        x, g, h = normal(7, 3), normal(7, 11), normal(7, 3)
        y = op.forward(x)
        self.near(y[:, 0], np.ones(7))
        self.near(y[:, 1:4], np.sqrt(3) * x / np.linalg.norm(x, axis=1)[:, None])
        self.near((y[:, 4:] ** 2).sum(1), np.full(7, 7.0))
        along = normal(7, 3)
        self.near((op.backward(x, g) * along).sum(), slope(lambda x: (g * op.forward(x)).sum(), x, along), 1e-8)
        d_x, d_g = op.double_backward(x, g, h)
        self.near((d_x * along).sum(), slope(lambda x: (h * op.backward(x, g)).sum(), x, along), 1e-7)
        self.near((d_g * g).sum(), (h * op.backward(x, g)).sum())

    def test_ops_norm(self):
        for options in ({}, {"variant": "degree", "centre": True, "bias": True, "layout": "ir_mul"}):
            op = clebsch.rms_norm("5x0e+3x1o", device="cpu", **options)
            W = op.columns["w"]
            x, w, g, a, c, along = normal(4, 14), normal(W), normal(4, 14), normal(4, 14), normal(W), normal(4, 14)
            g_x, g_w = op.backward(x, w, g)
            self.near((g_x * along).sum(), slope(lambda x: (g * op.forward(x, w)).sum(), x, along), 1e-8)
            self.near((g_w * w).sum(), slope(lambda w: (g * op.forward(x, w)).sum(), w, w), 1e-8)
            d_x, d_w, d_g = op.double_backward(x, w, g, a, c)

            def value(x, w, g):
                g_x, g_w = op.backward(x, w, g)
                return (a * g_x).sum() + (c * g_w).sum()
            self.near((d_x * along).sum(), slope(lambda x: value(x, w, g), x, along), 1e-7)
            self.near((d_w * w).sum(), slope(lambda w: value(x, w, g), w, w), 1e-7)
            self.near((d_g * g).sum(), slope(lambda g: value(x, w, g), g, g), 1e-7)
        plain = clebsch.rms_norm("77x0e", device="cpu", epsilon=0)
        x = normal(3, 77, dtype=np.float32)
        self.near(plain.forward(x, np.ones(77, np.float32)), x / np.sqrt((x ** 2).mean(1, keepdims=True)), 1e-6)

    def test_ops_gate(self):
        for options in ({}, {"layout": "ir_mul", "normalize": False}):
            op = clebsch.gate("5x0e+2x0o", "silu,tanh", "3x0e", "1.5*sigmoid", "3x1o", device="cpu", **options)
            self.assertEqual((op.irreps_x, op.irreps_y), ("2x0o+8x0e+3x1o", "5x0e+2x0o+3x1o"))
            x, g, a, along = normal(4, 19), normal(4, 16), normal(4, 19), normal(4, 19)
            self.near((op.backward(x, g) * along).sum(), slope(lambda x: (g * op.forward(x)).sum(), x, along), 1e-8)
            d_x, d_g = op.double_backward(x, g, a)
            self.near((d_x * along).sum(), slope(lambda x: (a * op.backward(x, g)).sum(), x, along), 1e-7)
            self.near((d_g * g).sum(), (a * op.backward(x, g)).sum())
        self.near(op.forward(x)[:, :5], x[:, 2:7] / (1 + np.exp(-x[:, 2:7])))
        with self.assertRaisesRegex(clebsch.Error, "silu of 2x0o would have no parity"):
            clebsch.gate("5x0e+2x0o", "silu")

    def test_ops_linear(self):
        for options in ({"biases": True}, {"weights_per_row": True, "layout": "ir_mul"},
                        {"instructions": [(1, 1), (0, 0), (1, 1)], "biases": [True, False], "path_normalization": "path"}):
            with self.subTest(**options):
                op = clebsch.linear("5x0e+3x1o", "4x0e+2x1o", device="cpu", **options)
                rows = 6 if op.weights_per_row else 1
                x, a, g = normal(6, 14), normal(6, 14), normal(6, 10)
                w, c = (normal(rows, op.columns["w"]) for _ in range(2))
                value = lambda x, w: (g * op.forward(x, w)).sum()
                g_x, g_w = op.backward(x, w, g)
                self.near((g_x * a).sum(), slope(lambda x: value(x, w), x, a), 1e-8)
                self.near((g_w * c).sum(), slope(lambda w: value(x, w), w, c), 1e-8)
                d_x, d_w, d_g = op.double_backward(x, w, g, a, c)
                self.near((d_g * g).sum(), (a * g_x).sum() + (c * g_w).sum())
                self.near((d_x * x).sum() + (d_w * w).sum(), (a * g_x).sum() + (c * (g_w - op.backward(0 * x, w, g)[1])).sum())
        op = clebsch.linear("2x0e+1x1o", "3x0e+1x1o", biases=True, device="cpu")
        x, w = normal(4, 5), normal(10)
        wanted = np.hstack([x[:, :2] @ w[:6].reshape(2, 3) / np.sqrt(2) + w[7:], x[:, 2:] * w[6]])
        self.near(op.forward(x, w), wanted)
        for words, options in (("instruction 0 joins", {"instructions": [(0, 1)]}), ("only 0e", {"biases": [False, True]}),
                               ("instructions.0.", {"instructions": [(0, 1, 2)]})):
            with self.assertRaisesRegex((clebsch.Error, ValueError), words):
                clebsch.linear("2x0e+1x1o", "3x0e+1x1o", device="cpu", **options)

    def test_ops_norm_activation(self):
        for options in ({}, {"bias": True, "layout": "ir_mul", "normalize": False}):
            op = clebsch.norm_activation("5x0e+3x1o", "silu", device="cpu", **options)
            biased = "bias" in options
            x, g, a, along, w = normal(4, 14), normal(4, 14), normal(4, 14), normal(4, 14), normal(8)
            w, c = (w, normal(4, 8)) if biased else (None, None)
            total = lambda x, g: sum((i * o).sum() for i, o in zip((a, c), op.backward(x, w, g)) if i is not None)
            self.near((op.backward(x, w, g)[0] * along).sum(), slope(lambda x: (g * op.forward(x, w)).sum(), x, along), 1e-8)
            d_x, d_w, d_g = op.double_backward(x, w, g, a, c)
            self.near((d_x * along).sum(), slope(lambda x: total(x, g), x, along), 1e-7)
            self.near((d_g * g).sum(), total(x, g))
            self.assertEqual(d_w is not None, biased)

    def test_ops_product_of_vectors(self):
        x, y = normal(6, 3), normal(6, 3)
        for out, wanted in (("0e", (x * y).sum(1)[:, None] / np.sqrt(3)), ("1e", np.cross(x, y) / np.sqrt(2))):
            op = clebsch.tensor_product("1o", "1o", out, [(0, 0, 0, "uvu", False)], device="cpu")
            z = op.forward(x, y)
            self.near(z * np.sign((z * wanted).sum()), wanted)

    def product(self, device="cpu", n=6, **options):
        op = clebsch.tensor_product(*ODD, device=device, **options)
        rows = [1 if options.get("shared_weights") and kind == "w" else n for kind in "xywzxyw"]
        return op, [normal(r, op.columns[kind]) for r, kind in zip(rows, "xywzxyw")]

    def test_ops_product_passes(self):
        """z is linear in each operand, and each pass the derivative of the one before."""
        for options in ({}, {"layout": "ir_mul"}, {"shared_weights": True}):
            with self.subTest(**options):
                op, (x, y, w, g, a, b, c) = self.product(**options)
                value = (g * op.forward(x, y, w)).sum()
                self.assertGreater(abs(value), 1e-3)
                gradients = op.backward(x, y, w, g)
                for operand, gradient in zip((x, y, w), gradients):
                    self.near((operand * gradient).sum(), value)
                incoming = (a, b, c)
                total = lambda *of: sum((i * d).sum() for i, d in zip(incoming, op.backward(*of)))
                second = op.double_backward(x, y, w, g, a, b, c)
                for k, gradient in enumerate(second):
                    along = normal(*gradient.shape)
                    of = lambda at: total(*[at if i == k else o for i, o in enumerate((x, y, w, g))])
                    self.near((gradient * along).sum(), slope(of, (x, y, w, g)[k], along), 1e-7)

    def test_ops_convolution(self):
        n, m, senders, receivers = 5, 4, np.array([0, 4, 2, 2, 2, 1, 3]), np.array([3, 3, 0, 0, 1, 1, 3])
        op = clebsch.convolution(*ODD, scale=0.5, device="cpu")
        product = clebsch.tensor_product(*ODD, device="cpu")
        x, y, w, g = normal(n, 18), normal(7, 9), normal(7, op.columns["w"]), normal(m, op.columns["z"])
        expected = np.zeros((m, op.columns["z"]))
        np.add.at(expected, receivers, 0.5 * product.forward(x[senders], y, w))
        of_edges = product.backward(x[senders], y, w, 0.5 * g[receivers])
        g_x = np.zeros_like(x)
        np.add.at(g_x, senders, of_edges[0])
        for kind in (np.int32, np.int64):
            graph = clebsch.Graph(m, senders.astype(kind), receivers.astype(kind), n, device="cpu")
            self.near(op.forward(graph, x, y, w), expected)
            for mine, theirs in zip(op.backward(graph, x, y, w, g), (g_x, *of_edges[1:])):
                self.near(mine, theirs)
        a, b, c = normal(*x.shape), normal(*y.shape), normal(*w.shape)
        d_g = op.double_backward(graph, x, y, w, g, a, b, c)[3]
        self.near((d_g * g).sum(), sum((i * d).sum() for i, d in zip((a, b, c), op.backward(graph, x, y, w, g))))
        empty = clebsch.Graph(m, senders[:0], receivers[:0], n, device="cpu")
        self.near(op.forward(empty, x, y[:0], w[:0]), np.zeros_like(expected))
        with self.assertRaisesRegex(ValueError, "y has 6 rows; it must have 7"):
            op.forward(graph, x, y[1:], w)
        with self.assertRaisesRegex(clebsch.Error, "graph is of another context"):
            op.forward(clebsch.Graph(m, senders, receivers, n, device=clebsch.Context("cpu")), x, y, w)
        with self.assertRaisesRegex(clebsch.Error, "senders"):
            clebsch.Graph(m, senders + 1, receivers, n, device="cpu")

    def test_ops_in_place(self):
        """Rows with gaps, rows at odd addresses, one row for all, and results where they are wanted."""
        op, (x, y, w, *_) = self.product()
        z = op.forward(x, y, w)
        for offset in (0, 1, 3):
            wide = normal(6, 40)
            wide[:, offset:offset + 18] = x
            around = np.full((6, z.shape[1] + 5), np.nan)
            target = around[:, offset:offset + z.shape[1]]
            self.assertIs(op.forward(wide[:, offset:offset + 18], y, w, out=target), target)
            self.near(target, z)
            self.assertEqual(np.isnan(around).sum(), 6 * 5)
        self.near(op.forward(x, y[0], w), op.forward(x, np.tile(y[0], (6, 1)), w))
        self.near(op.forward(x, np.broadcast_to(y[0], y.shape), w), op.forward(x, np.tile(y[0], (6, 1)), w))
        self.near(op.forward(x[::2], y[::2], w[::2]), z[::2])
        self.assertEqual(op.forward(x[:0], y[:0], w[:0]).shape, (0, z.shape[1]))
        only = clebsch.tensor_product(*ODD, gradients="y", device="cpu").backward(x, y, w, z)
        self.assertIsNone(only[0])
        self.assertIsNone(only[2])
        self.near(only[1], op.backward(x, y, w, z)[1])

    def test_ops_dlpack(self):
        op, (x, y, w, *_) = self.product()
        z, target = op.forward(x, y, w), np.full((6, op.columns["z"]), np.nan)
        made = op.forward(Foreign(x), Foreign(y), w, out=Foreign(target))
        self.assertIs(made.array, target)
        self.near(target, z)
        self.near(op.forward(Foreign(x[:, :]), Foreign(y), Foreign(w)), z)
        wide = np.zeros((6, 20))
        wide[:, 1:19] = x
        self.near(op.forward(Foreign(wide[:, 1:19]), y, w), z)
        with self.assertRaisesRegex(clebsch.Error, "x is on a GPU: make the context with the stream"):
            op.forward(Foreign(x, (2, 0)), y, w)
        with self.assertRaisesRegex(clebsch.Error, "device type 7 is not known"):
            op.forward(Foreign(x, (7, 0)), y, w)

    def test_ops_on_a_device_without_the_hosts_memory(self):
        device = opencl()
        if device is None:
            self.skipTest("no device of OpenCL")
        op, arrays = self.product()
        there = clebsch.tensor_product(*ODD, device=device)
        self.near(there.forward(*arrays[:3]), op.forward(*arrays[:3]))
        for mine, theirs in zip(there.double_backward(*arrays), op.double_backward(*arrays)):
            self.near(mine, theirs)

    def test_ops_types(self):
        x = normal(9, 3, dtype=np.float32)
        exact = clebsch.spherical_harmonics([2], device="cpu").forward(x.astype(np.float64))
        for dtype, kind, tolerance in (("f32", np.float32, 1e-6), ("f16", np.float16, 1e-2)):
            y = clebsch.spherical_harmonics([2], dtype=dtype, device="cpu").forward(x.astype(kind))
            self.assertEqual(y.dtype, kind)
            self.near(y.astype(np.float64), exact, tolerance)

    def test_ops_take_the_type_of_the_arrays(self):
        """Each call's, that of its first operand, unless dtype is given."""
        op, arrays = self.product()
        for kind, tolerance in ((np.float64, 1e-12), (np.float32, 1e-5)):
            of = [array.astype(kind) for array in arrays]
            z, second = op.forward(*of[:3]), op.double_backward(*of)
            self.assertEqual({z.dtype, *(array.dtype for array in second)}, {np.dtype(kind)})
            for mine, exact in zip((z, *second), (op.forward(*arrays[:3]), *op.double_backward(*arrays))):
                self.near(mine, exact, tolerance)
        op.compile("backward")
        self.assertEqual([dtype for name, dtype in op._ops if name == "backward"], ["f32"])
        with self.assertRaisesRegex(TypeError, "y holds float64; the op takes f32"):
            op.forward(arrays[0].astype(np.float32), *arrays[1:3])
        with self.assertRaisesRegex(TypeError, "x holds int64; the op takes f32 or f64"):
            op.forward(arrays[0].astype(np.int64), *arrays[1:3])
        with self.assertRaisesRegex(ValueError, "dtype: 'f8'"):
            self.product(dtype="f8")

    def test_ops_refusals(self):
        op, (x, y, w, *_) = self.product(dtype="f64")
        frozen = np.zeros((6, op.columns["z"]))
        frozen.flags.writeable = False
        for error, said, call in (
                (TypeError, "x holds float32; the op takes f64", lambda: op.forward(x.astype(np.float32), y, w)),
                (TypeError, "x: float is not an array", lambda: op.forward(0.5, y, w)),
                (ValueError, r"y has the shape \[6, 8\]; it must be \[n, 9\]", lambda: op.forward(x, y[:, :8], w)),
                (ValueError, "y has 5 rows; it must have 6", lambda: op.forward(x, y[1:], w)),
                (ValueError, "w is missing", lambda: op.forward(x, y)),
                (ValueError, "z has 5 rows", lambda: op.forward(x, y, w, out=np.zeros((5, op.columns["z"])))),
                (clebsch.Error, "z is read-only", lambda: op.forward(x, y, w, out=frozen)),
                (clebsch.Error, "x: the elements of a row must be adjacent", lambda: op.forward(np.asfortranarray(x), y, w)),
                (clebsch.Error, "x: rows go backward", lambda: op.forward(x[::-1], y, w)),
                (clebsch.Error, "z: rows overlap", lambda: op.forward(x, y, w, out=np.lib.stride_tricks.as_strided(
                    np.zeros(op.columns["z"]), (6, op.columns["z"]), (0, 8)))),
                (ValueError, "out: it must be a tuple of g_x, g_y, g_w", lambda: op.backward(x, y, w, op.forward(x, y, w), out=(x,))),
                (ValueError, "layout: 'row'; there are 'mul_ir', 'ir_mul'", lambda: self.product(layout="row")),
                (ValueError, "mode: 'xyz'", lambda: clebsch.tensor_product("0e", "0e", "0e", [(0, 0, 0, "xyz", True)])),
                (clebsch.Error, "irreps_x", lambda: clebsch.paths("full", "1x", "0e")),
                (clebsch.Error, "degrees", lambda: clebsch.spherical_harmonics([99], device="cpu").forward(x[:, :3]))):
            with self.subTest(said), self.assertRaisesRegex(error, said):
                call()
