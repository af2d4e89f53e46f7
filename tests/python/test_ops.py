"""Ops on arrays: by mathematical property, in others' memory, on PoCL, and what is refused."""
import ctypes as c
import inspect
import os
import subprocess
import threading
import time
import types
import unittest
import unittest.mock

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


class Tensor(c.Structure):
    """DLTensor."""
    _fields_ = [("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32), ("ndim", c.c_int32), ("code", c.c_uint8),
                ("bits", c.c_uint8), ("lanes", c.c_uint16), ("shape", c.c_void_p), ("strides", c.c_void_p), ("byte_offset", c.c_uint64)]


class Exchanged(Foreign):
    """The same, with DLPack's functions for C."""
    calls = 0

    def __init__(self, array, refuses=False, device=None):
        super().__init__(array, device)
        self.refuses, self.numbers = refuses, (c.c_int64 * 4)(*array.shape, *(step // 8 for step in array.strides))

    @c.PYFUNCTYPE(c.c_int, c.py_object, c.POINTER(Tensor))
    def tensor_from(self, out):
        if self.refuses:
            return -1
        Exchanged.calls += 1
        at = c.addressof(self.numbers)
        out[0] = Tensor(self.array.ctypes.data - 8, *self.__dlpack_device__(), 2, 2, 64, 1, at, at + 16, 8)
        return 0

    api = (c.c_void_p * 7)(1 | 3 << 32, None, None, None, None, c.cast(tensor_from, c.c_void_p), c.cast(tensor_from, c.c_void_p))


NAME = b"dlpack_exchange_api"  # which the capsule does not copy
new_capsule = c.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = c.py_object, [c.c_void_p, c.c_char_p, c.c_void_p]
Exchanged.__dlpack_c_exchange_api__ = new_capsule(c.addressof(Exchanged.api), NAME, None)


def normal(*shape, dtype=np.float64):
    return RNG.normal(size=shape).astype(dtype)


def slope(function, at, along, h=1e-5):
    return (function(at + h * along) - function(at - h * along)) / (2 * h)


def stand_in():
    """Of PyTorch what the package asks for."""
    torch = types.ModuleType("torch")

    class Tensor(Foreign):
        is_cpu, is_cuda, requires_grad, contiguous, ndim = True, False, False, True, 2

        def __init__(self, array):
            super().__init__(array)
            self.dtype, self.shape = getattr(torch, array.dtype.name), array.shape
            self.data_ptr, self.is_contiguous = lambda: array.ctypes.data, lambda: self.contiguous
            self.is_neg = lambda: False

        def new_empty(self, shape):
            return Tensor(np.empty(shape, self.array.dtype))

    Tensor.__module__ = "torch"
    torch.Tensor, torch.float32, torch.float64 = Tensor, "float32", "float64"
    torch.device = lambda *words: words
    torch.cuda = types.SimpleNamespace()
    torch.empty = lambda *shape, dtype, device: Tensor(np.full(shape, np.nan, dtype))
    torch.empty_like = lambda like: Tensor(np.full_like(like.array, np.nan))
    return torch


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
        x = normal(4, 14)
        y = clebsch.rms_norm("5x0e+3x1o", "terms", epsilon=0, factors=[0.5, 0.2], device="cpu").forward(x, np.ones(8))
        self.near(y, x / np.sqrt(0.5 * (x[:, :5] ** 2).sum(1) + 0.2 * (x[:, 5:] ** 2).sum(1))[:, None])
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
        empty.update(m, senders, receivers, n)
        self.near(op.forward(empty, x, y, w), expected)
        with self.assertRaisesRegex(clebsch.Error, r"receivers\[0\] is 4"):
            empty.update(m, senders, receivers + 1, n)
        with self.assertRaisesRegex(ValueError, "x has 5 rows; it must have 0"):
            op.forward(empty, x, y, w)
        with self.assertRaisesRegex(ValueError, "y has 6 rows; it must have 7"):
            op.forward(graph, x, y[1:], w)
        with self.assertRaisesRegex(clebsch.Error, "graph is of another context"):
            op.forward(clebsch.Graph(m, senders, receivers, n, device=clebsch.Context("cpu")), x, y, w)
        with self.assertRaisesRegex(clebsch.Error, "senders"):
            clebsch.Graph(m, senders + 1, receivers, n, device="cpu")

    def test_ops_convolution_of_vectors(self):
        """Harmonics and splines in the op are those outside of it; at a knot weights are the table's."""
        senders, receivers = np.array([0, 2, 2, 1, 3]), np.array([1, 1, 0, 0, 2])
        graph = clebsch.Graph(4, senders, receivers, device="cpu")
        parts = clebsch.paths("channel_wise", "3x0e+2x1o", "0e+1o+2e", "0e+1o+2e")
        given = clebsch.convolution(*parts, scale=0.5, device="cpu")
        harmonics = clebsch.spherical_harmonics([0, 1, 2], normalize=True, device="cpu")
        op = clebsch.convolution(*parts, scale=0.5, vectors=True, knots=9, first_knot=0.5, last_knot=4, break_at=1.5, device="cpu")
        at, table = op.knots(), normal(9, op.weights)
        self.assertTrue((np.diff(at) > 0).all() and at[0] == 0.5 and at[-1] == 4 and np.isclose(at, 1.5).any())
        x, v, g = normal(4, op.columns["x"]), normal(5, 3), normal(4, op.columns["z"])
        v *= at[2:7, None] / np.linalg.norm(v, axis=1)[:, None]
        with self.assertRaisesRegex(clebsch.Error, "set_table"):
            op.forward(graph, x, v)
        for values in (table, 2 * table):
            op.set_table(values)
            self.near(op.forward(graph, x, v), given.forward(graph, x, harmonics.forward(v), values[2:7]))
        values[:] = np.nan  # the op has its own
        v *= 1.03  # at a break slopes may jump
        g_x, g_v, g_w = op.backward(graph, x, v, None, g)
        self.assertIsNone(g_w)
        self.near((g_v * v[::-1]).sum(), slope(lambda v: (g * op.forward(graph, x, v)).sum(), v, v[::-1]), 1e-6)
        self.near((g_x * x).sum(), (g * op.forward(graph, x=x, y=v)).sum())
        lengths = clebsch.convolution(*parts, scale=0.5, knots=9, first_knot=0.5, last_knot=4, device="cpu")
        lengths.set_table(table)
        v /= 1.03
        self.near(lengths.forward(graph, x, harmonics.forward(v), lengths.knots()[2:7, None]),
                  given.forward(graph, x, harmonics.forward(v), table[2:7]))
        at, ones = np.linspace(0.1, 0.9, 5)[:, None], np.ones((1, lengths.weights))
        lengths.set_table((np.arange(9) / 8)[:, None]**3 * ones)  # splines are cubic in a knot's number
        self.near(lengths.forward(graph, x, harmonics.forward(v), 0.5 + 3.5 * at / (3 - 2 * at)),
                  given.forward(graph, x, harmonics.forward(v), at**3 * ones))
        with self.assertRaisesRegex(ValueError, r"values: an array of shape \(9, 1\); it must be \(9, "):
            lengths.set_table(table[:, :1])
        with self.assertRaisesRegex(ValueError, "made without knots"):
            given.set_table(table)
        with self.assertRaisesRegex(TypeError, "graph: nothing; it must be a clebsch.Graph"):
            op.forward()

    def test_ops_species(self):
        """Rows with weights of their species are those of an op that has one species."""
        one, all_ = (clebsch.linear("3x0e+2x1o", "2x0e+5x1o", biases=True, n_species=n, device="cpu") for n in (0, 3))
        x, w, g, a = normal(7, 9), normal(3, one.columns["w"]), normal(7, 17), normal(7, 9)
        c, species = normal(*w.shape), np.array([2, 0, 2, 2, 0, 0, 2])
        for kind in (np.int32, np.int64, list):
            of = species.tolist() if kind is list else species.astype(kind)
            z = all_.forward(x, w, species=of)
        g_w = all_.backward(x, w, g, species=species)[1]
        d_w = all_.double_backward(x, w, g, a, c, species=species)[1]
        self.assertEqual(g_w.shape, w.shape)
        self.near(g_w[1], 0 * g_w[1])
        for kind in (0, 2):
            here = species == kind
            self.near(z[here], one.forward(x[here], w[kind]))
            self.near(g_w[kind], one.backward(x[here], w[kind], g[here])[1][0])
            self.near(d_w[kind], one.double_backward(x[here], w[kind], g[here], a[here], c[kind])[1][0])
        for words, call in ((r"species\[3\] is 3; it must be a number below 3", lambda: all_.forward(x, w, species=[0, 1, 2, 3, 0, 0, 0])),
                            (r"species has the shape \[2\]; it must be \[7\]", lambda: all_.forward(x, w, species=[0, 1])),
                            ("species is missing", lambda: all_.forward(x, w)), ("w has 1 row; it must have 3", lambda: all_.forward(x, w[0], species=species)),
                            ("w has 2 rows; it must have 3", lambda: all_.forward(x, w[:2], species=species)),
                            ("species: this op has one set of weights", lambda: one.forward(x, w[0], species=species))):
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                call()

    def test_ops_species_that_only_the_call_holds(self):
        """They exist until the call ends, of each size; those of other libraries are checked, too."""
        op, w = clebsch.linear("1x0e", "1x0e", n_species=3, device="cpu"), np.array([[1.], [2.], [3.]])
        for n in (1, 3, 100, 5000, 300000):
            species = RNG.integers(0, 3, n)
            self.near(op.forward(np.ones((n, 1)), w, species=species.tolist())[:, 0], species + 1)
        foreign = Foreign(np.array([0, 2, 1], np.int32))
        self.near(op.forward(np.ones((3, 1)), w, species=foreign)[:, 0], [1, 3, 2])
        foreign.array[1] = 5
        with self.assertRaisesRegex(ValueError, r"species\[1\] is 5; it must be a number below 3"):
            op.forward(np.ones((3, 1)), w, species=foreign)

    def test_ops_compile_in_threads(self):
        """Passes and types that are called first at the same time are each compiled as what they are."""
        context = clebsch.Context("cpu")
        op, x, w, found = clebsch.linear("3x0e", "5x0e", device=context), normal(7, 3), normal(15), {}
        calls = [(name, kind) for name in ("forward", "backward") for kind in "fd"]

        def call(name, kind):
            arrays = x.astype(kind), w.astype(kind), np.ones((7, 5), kind)
            found[name, kind] = getattr(op, name)(*arrays[:2 if name == "forward" else 3])
        with context._lock:
            threads = [threading.Thread(target=call, args=one) for one in calls]
            for one in threads:
                one.start()
            time.sleep(0.1)
        for one in threads:
            one.join()
        for kind in "fd":
            z, (g_x, _) = found["forward", kind], found["backward", kind]
            self.near(z, x @ w.reshape(3, 5) / np.sqrt(3), 1e-5)
            self.near((g_x * x).sum(), z.sum(), 1e-5)

    def test_ops_without_an_input(self):
        """An input without columns still says how many rows there are."""
        op = clebsch.linear("0x0e", "2x0e", biases=True, device="cpu")
        self.near(op.forward(np.ones((3, 0)), [1., 2.]), [[1, 2]] * 3)
        self.near(op.forward(None, np.array([1., 2.])), [[1, 2]])
        with self.assertRaisesRegex(ValueError, "gradients: ''; it must name one of x, w, z at least"):
            clebsch.linear("1x0e", "2x0e", gradients="", device="cpu")

    def test_ops_contraction(self):
        """A form of its degree in x, made of the tensors of its paths."""
        op = clebsch.symmetric_contraction(1, 2, [0, 1], 3, n_species=2, layout="by_channel", device="cpu")
        x, w, g, species = normal(5, op.columns["x"]), normal(2, op.columns["w"]), normal(5, op.columns["z"]), np.array([0, 1, 1, 0, 1])
        weights, A, wanted = w.reshape(2, -1, 3)[species], x.reshape(5, 3, 4), []
        for degree in (0, 1):
            of = np.zeros((5, 3, 2 * degree + 1))
            for path in op.paths(degree, 1):
                of += weights[:, path, :, None] * np.einsum("mi,nki->nkm", op.basis(degree, 1, path), A)
            for path in op.paths(degree, 2):
                of += weights[:, path, :, None] * np.einsum("mij,nki,nkj->nkm", op.basis(degree, 2, path), A, A)
            wanted.append(of)
        self.near(op.forward(x, w, species=species), np.concatenate(wanted, axis=2).reshape(5, -1))
        g_x, g_w = op.backward(x, w, g, species=species)
        along = normal(*x.shape)
        self.near((g_w * w).sum(), (g * op.forward(x, w, species=species)).sum())
        self.near((g_x * along).sum(), slope(lambda x: (g * op.forward(x, w, species=species)).sum(), x, along), 1e-8)
        alone = clebsch.symmetric_contraction(1, 2, [0, 1], 3, layout="by_channel", device="cpu")
        self.near(alone.forward(x, w[1]), op.forward(x, w, species=5 * [1]))
        with self.assertRaisesRegex(ValueError, r"path: 99; it must be one of range\("):
            op.basis(1, 2, 99)

    def test_ops_triple_backward(self):
        op, (x, y, w, g, a, b, c) = self.product()
        p, q, r, s = normal(*x.shape), normal(*y.shape), normal(*w.shape), normal(*g.shape)
        e_x, e_y, e_w, e_g, e_a, e_b, e_c = op.triple_backward(x, y, w, g, a, b, c, p, q, r, s)

        def value(x, a):
            return sum((i * d).sum() for i, d in zip((p, q, r, s), op.double_backward(x, y, w, g, a, b, c)))
        self.near((e_a * a).sum(), value(x, a) - value(x, 0 * a))
        self.near((e_x * p).sum(), slope(lambda x: value(x, a), x, p), 1e-7)

    def test_ops_arguments(self):
        """Operands have names, in the order of the library's call, and `out` may follow them."""
        op, (x, y, w, g, *_) = self.product()
        z = op.forward(x, y, w)
        self.near(op.forward(w=w, x=x, y=y), z)
        self.near(op.forward(x, y, w=w, out=0 * z), z)
        self.assertEqual(str(inspect.signature(op.backward)), "(x: Any, y: Any, w: Any, g: Any, *, out: Any = None)")
        for words, call in (("TensorProduct.forward: there is no keyword 'v'; there are 'x', 'y', 'w'", lambda: op.forward(x, y, v=w)),
                            ("TensorProduct.forward: y is given twice", lambda: op.forward(x, y, y=y)),
                            ("TensorProduct.forward takes x, y, w", lambda: op.forward(x, y, w, g, g))):
            with self.subTest(words), self.assertRaisesRegex(TypeError, words):
                call()
        with self.assertRaisesRegex(ValueError, "pass: 'triple_backward'; there are 'forward', 'backward', 'double_backward'"):
            clebsch.rms_norm("4x0e", device="cpu").compile("triple_backward")

    def test_ops_use_the_array_of_each_call(self):
        """Not one that lay at the same place before, or had another size."""
        op, x = clebsch.spherical_harmonics([0, 1], device="cpu"), normal(300, 3)
        for n in (5, 300, 0, 7, *range(100)):
            made = op.forward(x[n // 2:n])
            self.near(made[:, 1:], np.sqrt(3) * x[n // 2:n])
            x += 1

    def test_ops_prepare_once(self):
        """A call like the one before makes nothing in the library."""
        for op, arrays in (self.product(), (clebsch.rms_norm("4x0e", device="cpu"), [normal(3, 4), normal(4)])):
            arrays = arrays[:op._passes["forward"].n_inputs]
            z = op.forward(*arrays)
            make, clebsch.Context._make = clebsch.Context._make, None
            try:
                self.near(op.forward(*arrays, out=z), z)
            finally:
                clebsch.Context._make = make

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
        calls = Exchanged.calls
        op.forward(Exchanged(x), Exchanged(y), w, out=Exchanged(target))
        self.near(target, z)
        self.assertEqual(Exchanged.calls, calls + 3)
        wide = np.zeros((6, 20))
        wide[:, 1:19] = x
        self.near(op.forward(Exchanged(wide[:, 1:19]), y, w), z)
        self.near(op.forward(Exchanged(x, refuses=True), y, w), z)
        self.assertEqual(Exchanged.calls, calls + 4)
        for device, said in ((2, "x is on a GPU: make the context"), (7, "device type 7 is not known")):
            with self.assertRaisesRegex(clebsch.Error, said):
                op.forward(Exchanged(x, device=(device, 0)), y, w)
        target[:] = np.nan
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
        self.assertEqual([dtype for name, dtype in op._compiled if name == "backward"], ["f32"])
        with self.assertRaisesRegex(TypeError, "y holds float64; the op takes f32"):
            op.forward(arrays[0].astype(np.float32), *arrays[1:3])
        with self.assertRaisesRegex(TypeError, "x holds int64; the op takes f32 or f64"):
            op.forward(arrays[0].astype(np.int64), *arrays[1:3])
        with self.assertRaisesRegex(ValueError, "dtype: 'f8'"):
            self.product(dtype="f8")

    def test_ops_usual_calls(self):
        """A call like most takes the short way, to the same bits; what is unusual does not."""
        op = clebsch.tensor_product(*ODD, device="cpu", shared_weights=True)
        for name, of in op._passes.items():
            arrays = [normal(op._fixed.get(kind, 6), op.columns[kind]) for kind in of.kinds[:of.n_inputs]]
            wide = [np.hstack([array, array]) for array in arrays]
            apart = [array[:, :array.shape[1] // 2] for array in wide]
            call = getattr(op, name)
            wanted = call(*apart)
            with unittest.mock.patch.object(clebsch._op, "Operand", side_effect=AssertionError):
                found = call(*arrays)
                again = tuple(np.full_like(array, np.nan) for array in (found if type(found) is tuple else (found,)))
                call(*arrays, out=again if type(found) is tuple else again[0])
                flat = [array[0] if kind in op._fixed else array for kind, array in zip(of.kinds, arrays)]
                of_flat = call(*flat)
                self.assertRaises(AssertionError, call, *apart)
                self.assertRaises(AssertionError, call, *arrays[:-1], arrays[-1].astype(np.float32))
                self.assertRaises(AssertionError, call, *arrays, out=again[::-1] if len(again) > 1 else again[0][:5])
                self.assertRaises(AssertionError, call, *arrays[:-1], arrays[-1][:-1] if len(arrays[-1]) > 1 else arrays[-1][:, :-1])
            for some in (found, again if type(found) is tuple else again[0], of_flat):
                np.testing.assert_array_equal(np.hstack([np.ravel(a) for a in some]), np.hstack([np.ravel(a) for a in wanted]))
        many = [normal(6, op.columns["x"]) for _ in range(200)]  # more than are remembered
        y, w = normal(6, op.columns["y"]), normal(1, op.columns["w"])
        self.near([op.forward(x, y, w) for x in many], [op.forward(x[::-1][::-1], y, w) for x in many], 0)

    def test_ops_usual_tensors(self):
        """A stand-in for PyTorch: the short way to the same bits, of tensors as they should be."""
        torch = stand_in()
        with unittest.mock.patch.dict("sys.modules", torch=torch):
            op = clebsch.tensor_product(*ODD, device="cpu")
            for name, of in op._passes.items():
                arrays = [normal(6, op.columns[kind], dtype=np.float32) for kind in of.kinds[:of.n_inputs]]
                call, tensors = getattr(op, name), [torch.Tensor(array) for array in arrays]
                wanted, first = call(*arrays), call(*tensors)
                with unittest.mock.patch.object(clebsch._op, "Operand", side_effect=AssertionError):
                    found = call(*tensors)
                    call(*tensors, out=first)
                    for spoil in ({"requires_grad": True}, {"is_cpu": False}, {"dtype": torch.float64}, {"shape": (5, 3)},
                                  {"contiguous": False}, {"data_ptr": lambda: 0}):
                        strange = torch.Tensor(arrays[-1])
                        vars(strange).update(spoil)
                        self.assertRaises(AssertionError, call, *tensors[:-1], strange)
                for some in (first, found):
                    self.assertEqual(type(some), tuple if len(of.outputs) > 1 else torch.Tensor)
                    for a, b in zip(*((x if type(x) is tuple else (x,)) for x in (some, wanted))):
                        np.testing.assert_array_equal(a.array, b)
            context = unittest.mock.Mock(backend="cuda", stream=5)
            context.name = "cuda:1"
            way, at = clebsch._usual.way_of(torch.Tensor(arrays[0]), context, "f32"), torch.Tensor(arrays[0])
            for stream, device, there in ((5, 1, True), (6, 1, False), (5, 0, False)):
                torch.cuda.current_stream = lambda number: unittest.mock.Mock(cuda_stream=stream if number == 1 else None)
                vars(at).update(is_cpu=False, is_cuda=True, get_device=lambda: device)
                self.assertEqual(way.ready() and way.span(at, *at.shape) is not None, there)
            context.stream = None
            self.assertFalse(clebsch._usual.OfTorch(context, "f32").ready())
            self.assertIsNone(clebsch._usual.way_of(arrays[0], context, "f32"))

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
