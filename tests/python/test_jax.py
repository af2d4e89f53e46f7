"""clebsch.jax: values and derivatives of e3nn, derivatives by differences, jit, vmap, threads, and what is refused."""
import copy
import ctypes as c
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

import clebsch
from clebsch import _functions

try:
    import jax
    import jax.numpy as jnp
    from jax.test_util import check_grads

    import clebsch.jax as functions
    jax.config.update("jax_enable_x64", True)
except ImportError as missing:
    raise unittest.SkipTest(f"no JAX: {missing}") from None

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
DEVICE = os.environ.get("CLB_TEST_JAX_DEVICE", "cpu")  # or cuda
RNG = np.random.default_rng(5)
PRODUCT = clebsch.paths("channel_wise", "3x0e+2x1o", "0e+1o", "0e+1o+1e")
MODES = ["uvw", "uvu", "uvv", "uuw", "uuu", "uvuv", "uvu<v", "u<vw"]
# An instance of each op that has passes, and the indices that it takes.
OPS = {
    "spherical_harmonics": (dict(degrees=[0, 1, 3], normalize=True), {}),
    "tensor_product": (PRODUCT._asdict(), {}),
    "convolution": ({**PRODUCT._asdict(), "scale": 0.5}, {"senders": [0, 2, 1, 0, 2], "receivers": [1, 0, 0, 1, 1], "n_receivers": 2}),
    "symmetric_contraction": (dict(ell=1, correlation=2, degrees=[0, 1], channels=3, n_species=2), {"species": [0, 1, 1, 0, 1]}),
    "linear": (dict(irreps_in="3x0e+2x1o", irreps_out="2x0e+3x1o", biases=True), {}),
    "rms_norm": (dict(irreps="3x0e+2x1o", variant="degree"), {}),
    "gate": (dict(irreps_scalars="3x0e", act_scalars="silu", irreps_gates="2x0e", act_gates="sigmoid", irreps_gated="2x1o"), {}),
    "norm_activation": (dict(irreps="3x0e+2x1o", act="tanh", bias=True), {}),
}


class Mallinfo(c.Structure):
    """The C library's mallinfo2."""
    _fields_ = [("numbers", c.c_size_t * 10)]


def normal(*shape):
    return RNG.normal(size=shape)


def made(name, n=5, **options):
    """The function of JAX, the op of NumPy, operands and indices."""
    chosen = {**OPS[name][0], **options}
    f, op = (getattr(module, name)(**chosen, device=DEVICE) for module in (functions, clebsch))
    counts = {**dict.fromkeys("xywz", n), **({"x": 3} if name == "convolution" else {}), **op._fixed}
    of = op._passes["forward"]
    return f, op, [normal(counts[kind], op.columns[kind]) for kind in of.kinds[:of.n_inputs]], dict(OPS[name][1])


def golden_products():
    """Of the file the products of all modes: instructions, normalizations, and vectors by their letters."""
    found = []
    for line in (DATA / "golden_tensor_product.txt").read_text().splitlines():
        letter, *words = line.split()
        if letter == "P":
            found.append((words[0].split("|"), [], words[1:], {}))
        elif letter == "I" and len(words) == 6:
            i, j, k, mode, weighted = map(int, words[:5])
            found[-1][1].append((i, j, k, MODES[mode], bool(weighted), float(words[5])))
        elif letter == "N":
            break
        elif letter != "#":
            found[-1][3][letter] = np.array([list(map(float, words))])
    return found


class Jax(unittest.TestCase):
    def near(self, a, b, within=1e-12):
        a, b = np.asarray(a), np.asarray(b)
        self.assertEqual(a.shape, b.shape)
        np.testing.assert_allclose(a, b, rtol=within, atol=within)

    def test_jax_all_ops_are_there(self):
        self.assertEqual({name.rpartition("_forward")[0] for name in _functions.OPERANDS if name.endswith("_forward")}, set(OPS))

    def test_jax_harmonics_of_e3nn(self):
        f = functions.spherical_harmonics([0, 1, 2, 3], device=DEVICE)
        derivative = jax.jit(jax.jacrev(f))
        lines = [line.split() for line in (DATA / "golden_sh_lmax12.txt").read_text().splitlines()[1:41]]
        vectors = {}
        for letter, *words in lines:
            vectors.setdefault(letter, []).append([float(word) for word in words[:16]])
        self.near(jax.vmap(f)(jnp.array(vectors["P"])), vectors["Y"])
        found = jax.vmap(derivative)(jnp.array(vectors["P"]))
        for axis in range(3):
            self.near(found[:, :, axis], vectors[f"D{axis}"])

    def test_jax_products_of_e3nn_three_derivatives(self):
        for irreps, steps, norms, v in golden_products()[1:2]:
            f = functions.tensor_product(*irreps, steps, irrep_normalization=norms[0], path_normalization=norms[1], device=DEVICE)

            def backward(x, y, w, g):
                return jax.vjp(f, x, y, w)[1](g)

            def double(*operands):
                return jax.vjp(backward, *operands[:4])[1](operands[4:])

            def triple(*operands):
                return jax.vjp(double, *operands[:7])[1](operands[7:])
            self.near(f(v["x"], v["y"], v["w"]), v["z"])
            for function, n, names in ((backward, 4, "g_x g_y g_w"), (double, 7, "d_x d_y d_w d_g"), (triple, 11, "e_x e_y e_w e_g e_a e_b e_c")):
                found = jax.jit(function)(*(v[letter] for letter in "xywgabcpqrs"[:n]))
                for name, gradient in zip(names.split(), found):
                    with self.subTest(irreps=irreps, name=name):
                        self.near(gradient, v[name], 1e-11)

    def test_jax_values_and_two_derivatives(self):
        for name in OPS:
            with self.subTest(name):
                f, op, operands, last = made(name)
                first = [clebsch.Graph(2, last["senders"], last["receivers"], 3, device=DEVICE)] if name == "convolution" else []
                named = {"species": last["species"]} if "species" in last else {}
                self.near(f(*operands, **last), op.forward(*first, *operands, **named), 0)
                check_grads(jax.jit(lambda *given: f(*given, **last)), operands, 2, modes=["rev"])

    def test_jax_forward_mode(self):
        """Of functions, and of their gradients: products of second derivatives and vectors."""
        for name in ("spherical_harmonics", "convolution", "symmetric_contraction", "linear"):
            with self.subTest(name):
                f, _, operands, last = made(name)
                gradient = jax.grad(lambda those: jnp.sum(jnp.sin(f(*those, **last))))
                for function in (lambda those: f(*those, **last), gradient):
                    check_grads(jax.jit(function), (operands,), 1, modes=["fwd"])
        f, _, operands, _ = made("spherical_harmonics")

        def energy(x):
            return jnp.sum(jnp.sin(f(x)))
        self.near(jax.jit(jax.hessian(energy))(operands[0]), jax.jit(jax.jacrev(jax.jacrev(energy)))(operands[0]))

    def test_jax_gradients_of_some_operands(self):
        f, op, (x, y, w), _ = made("tensor_product")
        g = normal(5, op.columns["z"])
        all_of_them = op.backward(x, y, w, g)
        energy = jax.jit(lambda *operands: jnp.vdot(g, f(*operands)))
        for places in (0, (0, 2)):
            found = jax.grad(energy, places)(x, y, w)
            for i, gradient in zip(np.atleast_1d(places), found if isinstance(places, tuple) else [found]):
                self.near(gradient, all_of_them[i], 1e-13)

    def test_jax_vmap(self):
        """As a loop over the batch: of all operands, of some, with rows or without, and of the gradients."""
        for name in OPS:
            f, _, operands, last = made(name)
            batch = [np.stack([operand, normal(*operand.shape), normal(*operand.shape)]) for operand in operands]

            def value(*those):
                return f(*those, **last)

            def gradients(*those):
                return jax.grad(lambda *inner: jnp.sum(jnp.sin(value(*inner))), tuple(range(len(those))))(*those)
            first = (True,) + (False,) * (len(batch) - 1)
            cases = [(value, first)] if name in ("linear", "rms_norm") else [(value, (True,) * len(batch))]
            if name in ("convolution", "linear"):
                cases += [(gradients, (True,) * len(batch)), (gradients, first)]
            for function, mask in cases:
                with self.subTest(name=name, mask=mask, function=function.__name__):
                    given = [many if of_batch else one for many, one, of_batch in zip(batch, operands, mask)]
                    found = jax.tree.leaves(jax.jit(jax.vmap(function, tuple(0 if of_batch else None for of_batch in mask)))(*given))
                    loop = jax.jit(function)
                    loop = [jax.tree.leaves(loop(*(one[i] if of_batch else one for one, of_batch in zip(given, mask)))) for i in range(3)]
                    for leaf, expected in zip(found, zip(*loop)):
                        self.near(leaf, expected, 1e-11)

    def test_jax_vmap_is_one_call(self):
        f, _, operands, _ = made("tensor_product")
        stacked = [jnp.stack([operand] * 4) for operand in operands]
        text = jax.jit(jax.vmap(jax.vmap(f))).lower(*stacked).as_text()
        self.assertEqual((text.count("@clebsch("), "n_x = 20 " in text, "while" in text), (1, True, False))
        self.near(jax.vmap(jax.vmap(f))(*stacked), np.stack([f(*operands)] * 4), 0)
        found = jax.vmap(f, (0, None, 0))(*[one[0] for one in stacked[:2]], operands[2])
        self.near(found, np.stack([f(x, y, w) for x, y, w in zip(operands[0], [operands[1]] * 5, operands[2])]), 0)

    def test_jax_vmap_of_edges_and_species(self):
        f, _, (x, y, w), last = made("convolution")
        senders, receivers = (np.stack([np.array(last[word]), np.array(last[word])[::-1]]) for word in ("senders", "receivers"))
        found = jax.jit(jax.vmap(lambda y, s, r: f(x, y, w, s, r, 2)))(np.stack([y, -y]), senders, receivers)
        self.near(found, np.stack([f(x, s * y, w, *edges, 2) for s, *edges in zip((1, -1), senders, receivers)]), 1e-13)
        f, _, (x, w), last = made("symmetric_contraction")
        species = np.array([last["species"], [1] * 5])
        self.near(jax.vmap(lambda s: f(x, w, s))(species), np.stack([f(x, w, s) for s in species]), 0)

    def test_jax_one_row(self):
        """An operand without an axis of rows is that row for all, and a result has none if no operand has."""
        f, op, (x, y, w), _ = made("tensor_product")
        self.near(f(x[0], y[0], w[0]), op.forward(x[:1], y[:1], w[:1])[0], 0)
        self.near(f(x, y[0], w), op.forward(x, y[0], w), 0)
        g_y = jax.grad(lambda y: f(x, y, w).sum())(y[0])
        self.near(g_y, op.backward(x, y[0], w, np.ones((5, op.columns["z"])))[1].sum(0))
        f, op, (x, w), _ = made("linear")
        self.near(f(x, w[0]), op.forward(x, w), 0)
        self.assertEqual(jax.grad(lambda w: f(x, w).sum())(w[0]).shape, w[0].shape)

    def test_jax_energy_forces_and_training(self):
        """A small model: forces are its slope, and the gradient of a loss of forces by parameters is the loss's."""
        harmonics = functions.spherical_harmonics([0, 1], normalize=True, device=DEVICE)
        convolution = functions.convolution("2x0e", "0e+1o", "2x0e+2x1o", [(0, 0, 0, "uvu", True), (0, 1, 1, "uvu", True)], device=DEVICE)
        linear = functions.linear("2x0e+2x1o", "4x0e+2x1o", device=DEVICE)
        gate = functions.gate("2x0e", "tanh", "2x0e", "sigmoid", "2x1o", device=DEVICE)
        product = functions.tensor_product("2x0e+2x1o", "2x0e+2x1o", "0e", [(0, 0, 0, "uvw", True), (1, 1, 0, "uvw", True)], shared_weights=True, device=DEVICE)
        senders, receivers = np.array([(i, j) for i in range(4) for j in range(4) if i != j]).T
        parameters = {"embed": normal(1, 2), "radial": normal(3, convolution.columns["w"]), "mix": normal(linear.columns["w"]), "out": normal(product.columns["w"])}

        def energy(parameters, positions):
            edges = positions[receivers] - positions[senders]
            lengths = jnp.linalg.norm(edges, axis=1, keepdims=True)
            weights = jnp.exp(-lengths * jnp.arange(1, 4)) @ parameters["radial"]
            features = convolution(jnp.broadcast_to(parameters["embed"], (4, 2)), harmonics(edges), weights, senders, receivers)
            features = gate(linear(features, parameters["mix"]))
            return product(features, features, parameters["out"]).sum()

        def loss(parameters, positions):
            return jnp.sum(jax.grad(energy, 1)(parameters, positions) ** 2)
        positions, h = 2 * normal(4, 3), 1e-5
        energy, forces, gradients, loss = map(jax.jit, (energy, jax.grad(energy, 1), jax.grad(loss, (0, 1)), loss))
        turn = np.linalg.qr(normal(3, 3))[0]
        self.near(energy(parameters, positions @ turn.T), energy(parameters, positions))
        along = normal(4, 3)
        slope = (energy(parameters, positions + h * along) - energy(parameters, positions - h * along)) / (2 * h)
        self.near(jnp.vdot(forces(parameters, positions), along), slope, 1e-8)
        gradient, forces_of_loss = gradients(parameters, positions)
        steps = {name: normal(*value.shape) for name, value in parameters.items()}

        def moved(h):
            return loss({name: value + h * steps[name] for name, value in parameters.items()}, positions + h * along)
        expected = sum(np.vdot(gradient[name], step) for name, step in steps.items()) + np.vdot(forces_of_loss, along)
        self.near(expected, (moved(h) - moved(-h)) / (2 * h), 1e-7)

    def test_jax_types(self):
        f, op, operands, _ = made("tensor_product")
        exact = op.forward(*operands)
        for dtype, within in ((jnp.float32, 1e-5), (jnp.float16, 2e-2), (jnp.bfloat16, 1e-1)):
            z = f(*(jnp.asarray(operand, dtype) for operand in operands))
            self.assertEqual(z.dtype, dtype)
            self.near(z.astype(np.float64), exact, within)
        if DEVICE == "cpu":
            self.near(functions.tensor_product(*PRODUCT, device="cpu:interpreter")(*operands), exact)
        with jax.disable_jit():
            self.near(f(*operands), exact, 0)

    def test_jax_copies(self):
        """A function is what was made alike, copied or pickled; lists that it was made of may change."""
        f = made("tensor_product")[0]
        for again in (copy.deepcopy(f), pickle.loads(pickle.dumps(f)), made("tensor_product")[0]):
            self.assertIs(f, again)
        self.assertIsNot(f, made("tensor_product", layout="ir_mul")[0])
        degrees, x = np.array([0, 1]), normal(2, 3)
        f = functions.spherical_harmonics(degrees, device=DEVICE)
        degrees[1] = 0
        self.near(jax.grad(lambda x: f(x).sum())(x), np.full((2, 3), np.sqrt(3)))

    def test_jax_empty(self):
        for name in ("convolution", "symmetric_contraction", "linear"):  # sums over no rows
            f, op, operands, last = made(name, n=0)
            last = {word: value if word == "n_receivers" else [] for word, value in last.items()}
            n = 2 if name == "convolution" else 0
            with self.subTest(name):
                self.near(f(*operands, **last), np.zeros((n, op.columns["z" if "z" in op.columns else "y"])), 0)
                found = jax.grad(lambda those: f(*those, **last).sum())(operands)
                for gradient, operand in zip(found, operands):
                    self.near(gradient, np.zeros_like(operand), 0)

    def test_jax_threads(self):
        """Calls of several threads, by JAX and by methods of the op, give what one gives."""
        f, _, (x, w), _ = made("linear", n=300)
        many, wrong = [x * (i + 1) for i in range(4)], []
        compiled = jax.jit(jax.value_and_grad(lambda x, w: jnp.sum(f(x, w) ** 2), (0, 1)))
        expected = [jax.tree.map(np.asarray, compiled(one, w)) for one in many]
        by_hand = [f.op.forward(one, w) for one in many]

        def work(i):
            for _ in range(50):
                same = jax.tree.all(jax.tree.map(np.array_equal, compiled(many[i], w), expected[i]))
                if not same or not np.array_equal(f.op.forward(many[i], w), by_hand[i]):
                    wrong.append(i)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_jax_calls_leave_no_memory(self):
        f, _, operands, last = made("convolution")
        step = jax.jit(jax.grad(lambda x, senders: f(x, *operands[1:], senders, last["receivers"], 2).sum()))
        mallinfo = c.CDLL(None).mallinfo2
        mallinfo.restype = Mallinfo

        def held(n):
            for i in range(n):  # other edges each time: they are sorted
                step(operands[0], np.array([0, 1, 2, i % 3, i // 3 % 3])).block_until_ready()
            return mallinfo().numbers[7]  # bytes that are allocated
        before = held(100)
        self.assertLess(held(1000) - before, 20000)  # 20 bytes a call

    def test_jax_programs_name_ops_by_what_they_are(self):
        """So that programs that JAX keeps on disk find them."""
        f, _, operands, _ = made("tensor_product")
        again, other = made("tensor_product")[0], made("tensor_product", path_normalization="path")[0]

        def name(f, dtype=np.float64):
            text = jax.jit(f).lower(*(operand.astype(dtype) for operand in operands)).as_text()
            return re.search(r"\bid = (-?\d+)", text)[1]
        self.assertEqual(name(f), name(again))
        self.assertEqual(len({name(f), name(other), name(f, np.float32)}), 3)

    def test_jax_refusals(self):
        f, _, (x, y, w), _ = made("tensor_product")
        convolution, _, (cx, cy, cw), last = made("convolution")
        contraction, _, (sx, sw), _ = made("symmetric_contraction")
        harmonics = made("spherical_harmonics")[0]
        jax.ffi.register_ffi_target("clebsch_elsewhere", jax.ffi.pycapsule(functions._native.load().clebsch_jax_elsewhere), platform=DEVICE.replace("cuda", "CUDA"))
        like = jax.ShapeDtypeStruct((1,), np.float32)
        refused = jax.errors.JaxRuntimeError, ValueError  # by XLA; the latter where the function was compiled before
        for error, said, call in (
                (ValueError, r"tensor_product: y has the shape \[5, 3\]; it must be \[n, 4\]", lambda: f(x, y[:, :3], w)),
                (ValueError, r"y has the shape \[4, 4\]; it must be \[5, 4\]", lambda: f(x, y[1:], w)),
                (ValueError, "w is missing", lambda: f(x, y)),
                (TypeError, "tensor_product takes x, y, w", lambda: f(x, y, w, weights=w)),
                (TypeError, "x is float64, y is float32, w is float64; they must be of one type", lambda: f(x, np.float32(y), w)),
                (TypeError, "x is int64", lambda: harmonics([[1, 2, 3]])),
                (ValueError, "device: 'opencl:0:0'; arrays of JAX are on its CPU", lambda: functions.linear("0e", "0e", device="opencl:0:0")),
                (ValueError, "device: 'cudax'", lambda: functions.linear("0e", "0e", device="cudax")),
                (ValueError, "knots: splines have a table", lambda: functions.convolution(*PRODUCT, knots=8, last_knot=5.0)),
                (ValueError, "gradients: those of what JAX differentiates", lambda: functions.linear("0e", "0e", gradients="x")),
                (TypeError, "there is no keyword 'gradient'", lambda: functions.linear("0e", "0e", gradient="x")),
                (ValueError, "species is missing", lambda: contraction(sx, sw)),
                (ValueError, r"species has the shape \[3\]; it must be \[5\]", lambda: contraction(sx, sw, [0, 1, 0])),
                (TypeError, "senders is float64", lambda: convolution(cx, cy, cw, cy[:, 0], last["receivers"])),
                (refused, r"species\[2\] is 2; it must be a number below 2", lambda: contraction(sx, sw, [0, 1, 2, 0, 0])),
                (refused, "senders.*7", lambda: convolution(cx, cy, cw, [7, 0, 0, 0, 0], last["receivers"])),
                (refused, "senders.*-1", lambda: convolution(cx, cy, cw, np.array([2**32, 0, 0, 0, 0]), last["receivers"])),
                (refused, "senders.*-1", lambda: jax.vmap(lambda s: convolution(cx, cy, cw, s, last["receivers"]))(np.array([[7, 0, 0, 0, 0], [0] * 5]))),
                (refused, "computes on JAX's CPU and with CUDA", lambda: jax.ffi.ffi_call("clebsch_elsewhere", like)()),
                (refused, "compiled in another process", lambda: jax.ffi.ffi_call("clebsch", like)(id=np.int64(1), n_each=np.int64(1))),
                (clebsch.Error, "spherical_harmonics: double_backward has derivatives in reverse mode only",
                 lambda: jax.eval_shape(jax.jit(jax.jacfwd(jax.jacfwd(harmonics))), x[0, :3])),
                (clebsch.Error, "spherical_harmonics: there is no derivative of order 3", lambda: jax.eval_shape(jax.jacrev(jax.jacrev(jax.jacrev(harmonics))), x[0, :3]))):
            if DEVICE != "cpu" and "species" in said and error is refused:
                self.near(call(), contraction(sx, sw, [0, 1, 1, 0, 0]), 0)
                continue
            with self.subTest(said), self.assertRaisesRegex(error, said):
                jax.block_until_ready(call())
        self.near(convolution(cx, cy, cw, **last), made("convolution")[1].forward(
            clebsch.Graph(2, last["senders"], last["receivers"], 3, device=DEVICE), cx, cy, cw), 0)  # after a refusal

    def test_jax_another_process(self):
        """It finds a program that JAX keeps on disk, with ops made in another order, and may end while XLA computes."""
        program = """
import sys, jax, numpy as np, clebsch.jax
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event) if event.endswith("cache_hits") else None)
linear = {p: clebsch.jax.linear("3x0e", "2x0e", path_normalization=p) for p in sys.argv[2:]}
w = np.arange(6.0)
z = jax.jit(lambda x: linear["path"](x, w))(np.ones((2, 3)))
print(np.array_equal(z, linear["path"].op.forward(np.ones((2, 3)), w)), len(hits))
many = clebsch.jax.linear("64x0e", "64x0e")
f = jax.jit(lambda x, w: many(many(many(many(x, w), w), w), w))
f(np.ones((50000, 64)), np.ones(4096))
"""
        with tempfile.TemporaryDirectory() as folder:
            for order, said in (("path", "none"), "True 0"), (("none", "path"), "True 1"):
                done = subprocess.run([sys.executable, "-c", program, folder, *order], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                                      capture_output=True, text=True, check=False)
                self.assertEqual((done.stdout.strip(), done.returncode), (said, 0), done.stderr)

    def test_jax_page_runs(self):
        blocks = re.findall(r"^```python\n(.*?)^```", (DATA.parents[1] / "docs" / "jax.md").read_text(), re.M | re.S)
        self.assertGreater(len(blocks), 1)
        names = {}
        exec(compile("".join(blocks), "docs/jax.md", "exec"), names)
        self.assertEqual({name: value.shape for name, value in names["gradient"].items()}, names["shapes"])

    def test_jax_without_a_compiler(self):
        with tempfile.TemporaryDirectory() as folder:
            program = "import clebsch.jax as j; j.gate('0e', 'silu', device='cpu')"
            done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PATH": folder, "CLB_CACHE_DIR": folder, "PYTHONPATH": os.pathsep.join(sys.path)},
                                  capture_output=True, text=True, check=False)
        self.assertIn("there is no compiler: none of cc, gcc, clang is in PATH", done.stderr)
