"""Ops as functions and modules of PyTorch: against e3nn's numbers, by differences, and what is refused."""
import contextlib
import copy
import io
import os
import pathlib
import pickle
import re
import unittest
import unittest.mock

import torch
from torch.autograd import forward_ad
from torch.multiprocessing.reductions import StorageWeakRef

import clebsch
import clebsch.torch as ct
from clebsch.torch import _ops
from torch_stand_ins import RECEIVERS, SENDERS, UVU, Model, normal

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
MODES = ["uvw", "uvu", "uvv", "uuw", "uuu", "uvuv", "uvu<v", "u<vw"]


def golden_products():
    """(irreps x|y|z, normalisations, instructions, vectors by name) of e3nn's products in tests/data."""
    found = []
    for line in open(DATA / "golden_tensor_product.txt", encoding="ascii"):
        word, *rest = line.split()
        if word == "P":
            found.append((rest[0].split("|"), rest[1:], [], {}))
        elif word == "I" and len(rest) == 6:
            ends = [int(number) for number in rest[:5]]
            found[-1][2].append((*ends[:3], MODES[ends[3]], bool(ends[4]), float(rest[5])))
        elif word not in "#NI":
            found[-1][3][word] = torch.tensor([[float(number) for number in rest]], dtype=torch.float64)
    return found


class Torch(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.on("cpu:interpreter")  # which compiles nothing

    def on(self, device):
        named = unittest.mock.patch.dict(os.environ, CLB_DEVICE=device)
        named.start()
        self.addCleanup(named.stop)
        _ops._context.cache_clear()
        _ops.described.cache_clear()
        _ops.graphs_of.cache_clear()

    def near(self, a, b, tolerance=1e-12):
        self.assertEqual(tuple(a.shape), tuple(b.shape))
        self.assertTrue(torch.isfinite(a).all())
        self.assertLess((a - b).abs().max().item() if a.numel() else 0, tolerance * max(1, b.abs().max().item() if b.numel() else 0))

    def test_torch_products_of_e3nn(self):
        """With three derivatives, each by autograd of the one before."""
        for irreps, norms, instructions, v in golden_products()[:2]:
            product = ct.TensorProduct(*irreps, instructions, *norms, shared_weights=False)
            v = {name: one.requires_grad_() for name, one in v.items()}
            z = product(v["x"], v["y"], v["w"])
            self.near(z, v["z"])
            total = (z * v["g"]).sum()
            for letter, by, along in ("g", "xyw", "abc"), ("d", "xywg", "pqrs"), ("e", "xywgabc", ""):
                results = torch.autograd.grad(total, [v[name] for name in by], create_graph=True)
                for name, result in zip(by, results):
                    self.near(result, v[f"{letter}_{name}"])
                total = sum((result * v[name]).sum() for result, name in zip(results, along))

    def test_torch_harmonics_of_e3nn(self):
        rows = [line.split() for line in open(DATA / "golden_sh_lmax12.txt", encoding="ascii") if line[0] in "PYD"][:5]
        at, y, *d = [torch.tensor([float(number) for number in row[1:]], dtype=torch.float64) for row in rows]
        at = at[None].requires_grad_()
        found = ct.SphericalHarmonics([0, 1, 2, 3], False, "component")(at)
        self.near(found[0], y[:16])
        for i in range(1, 16):
            slope, = torch.autograd.grad(found[0, i], at, retain_graph=True)
            self.near(slope[0], torch.stack([one[i] for one in d]))

    def test_torch_gradcheck(self):
        species = torch.tensor([0, 1, 1])
        contraction = ct.symmetric_contraction(1, 2, [0, 1], 2, n_species=2)
        linear = ct.linear("2x0e+1x1o", "3x0e+2x1o", n_species=2)
        convolution = ct.convolution(*UVU, scale=0.5)
        for function, *shapes in (
                (ct.spherical_harmonics([0, 1, 2], normalize=True), (4, 3)),
                (ct.tensor_product(*UVU), (2, 11), (2, 4), (2, 10)),
                (ct.tensor_product(*UVU, shared_weights=True), (2, 11), (2, 4), (10,)),
                (ct.tensor_product("5x0e+2x1o", "2x0e", "7x0e+4x1o", [(0, 0, 0, "uvw", True), (1, 0, 1, "uvw", True)],
                                   shared_weights=True), (2, 11), (2, 2), (86,)),  # the first path is a matrix product
                (lambda x, y, w: convolution(x, y, w, SENDERS, RECEIVERS), (4, 11), (6, 4), (6, 10)),
                (lambda x, w: contraction(x, w, species), (3, 8), (2, contraction.columns["w"])),
                (ct.linear("2x0e+1x1o", "3x0e+2x1o", biases=True), (3, 5), (11,)),
                (lambda x, w: linear(x, w, species), (3, 5), (2, 8)),
                (ct.rms_norm("2x0e+1x1o"), (3, 5), (3,)),
                (ct.gate("2x0e", "silu", "1x0e", "sigmoid", "1x1o"), (3, 6)),
                (ct.norm_activation("2x0e+1x1o", "sigmoid"), (3, 5)),
                (ct.norm_activation("2x0e+1x1o", "sigmoid", bias=True), (3, 5), (3, 3))):
            operands = [normal(*shape).requires_grad_() for shape in shapes]
            self.assertTrue(torch.autograd.gradcheck(function, operands))
            self.assertTrue(torch.autograd.gradgradcheck(function, operands))

    def test_torch_third_derivative(self):
        product, convolution = ct.tensor_product(*UVU), ct.Convolution(*UVU)
        x, y, w = (normal(2, n).requires_grad_() for n in (11, 4, 10))

        def slopes(x, y, w):
            return torch.autograd.grad(product(x, y, w).pow(3).sum(), (x, y, w), create_graph=True)
        self.assertTrue(torch.autograd.gradgradcheck(slopes, (x, y, w)))
        total = convolution(normal(4, 11), normal(6, 4), w[:1].expand(6, -1), SENDERS, RECEIVERS).pow(4).sum()
        with self.assertRaisesRegex(clebsch.Error, "convolution: there is no derivative of order 3"):
            for _ in range(3):
                total, = torch.autograd.grad(total, w, create_graph=True)
                total = total.sum()

    def convolved(self, product, x, y, w, senders=SENDERS, receivers=RECEIVERS):
        return torch.zeros_like(x[:, :1]).repeat(1, product.columns["z"]).index_add(0, receivers, product(x[senders], y, w)) / 2

    def test_torch_convolution(self):
        """Equal to the product of gathered rows, whatever wants gradients, and however rows lie."""
        product, convolution = ct.TensorProduct(*UVU, shared_weights=False), ct.Convolution(*UVU, scale=0.5)
        self.on("cpu")
        for wanted in (2, 5, 7):
            given = [normal(11, 4).t(), normal(6, 8)[:, ::2], normal(1, 10).expand(6, 10)]
            operands = [one.detach().requires_grad_(bool(wanted >> i & 1)) for i, one in enumerate(given)]
            by = [one for one in operands if one.requires_grad]
            found, other = convolution(*operands, SENDERS, RECEIVERS), self.convolved(product, *operands)
            self.near(found, other)
            for _ in range(2):
                found, other = (torch.autograd.grad(one.pow(2).sum(), by, create_graph=True) for one in (found, other))
                for a, b in zip(found, other):
                    self.near(a, b, 1e-11)
                found, other = (torch.cat([one.flatten() for one in many]) for many in (found, other))
        x, y, w = normal(4, 11), normal(6, 4), normal(6, 10)
        for count in range(6):  # more graphs than are kept, and two of them again
            many = torch.roll(RECEIVERS, count % 5)
            self.near(convolution(x, y, w, SENDERS.int(), many.int()), self.convolved(product, x, y, w, SENDERS, many))
        index = SENDERS.clone()
        for place in range(4):  # the same memory
            index[0] = place
            self.near(convolution(x, y, w, index, RECEIVERS), self.convolved(product, x, y, w, index))
        self.near(convolution(x, y, w, SENDERS, RECEIVERS, 7)[4:], torch.zeros(3, 20, dtype=torch.float64))

    def test_torch_empty(self):
        none = torch.zeros(0, dtype=torch.int64)
        for function, *operands in ((ct.tensor_product(*UVU, shared_weights=True), normal(0, 11), normal(0, 4), normal(10)),
                                    (ct.Convolution(*UVU), normal(4, 11), normal(0, 4), normal(0, 10), none, none),
                                    (ct.Convolution(*UVU), normal(0, 11), normal(0, 4), normal(0, 10), none, none),
                                    (ct.gate("2x0e", "silu"), normal(0, 2)),
                                    (ct.Gate("2x0e", ["silu"]), normal(0, 3, 2)), (ct.Linear("2x0e", "3x0e").double(), normal(0, 3, 2))):
            by = [one.requires_grad_() for one in operands if one.is_floating_point()]
            z = function(*operands)
            self.assertEqual(z.shape[0], operands[0].shape[0])
            for gradient, one in zip(torch.autograd.grad(z.pow(2).sum(), by), by):
                self.near(gradient, torch.zeros_like(one))
            self.near(z, torch.zeros_like(z))
        for module in (ct.Linear("2x0e+1x1o", "3x0e"), ct.RMSNorm("2x0e+1x1o"), ct.Gate("5x0e", [torch.tanh])):
            z = module.double()(normal(2, 0, 5))
            self.assertEqual(tuple(z.shape), (2, 0, {ct.Linear: 3}.get(type(module), 5)))
        z = ct.TensorProduct(*UVU, shared_weights=False)(normal(0, 11), normal(0, 4), [normal(0, 5, 1), normal(0, 5, 1)])
        self.assertEqual(tuple(z.shape), (0, 20))

    def test_torch_modules(self):
        """State of e3nn's modules, whose own code is left out; leading dimensions; types."""
        for module, shapes in (
                (ct.FullyConnectedTensorProduct("2x0e+1x1o", "1x0e+1x1o", "3x0e+2x1o+1x2e"), {"weight": (16,), "output_mask": (14,)}),
                (ct.FullTensorProduct("2x0e", "1x1o"), {"weight": (0,), "output_mask": (6,)}),
                (ct.ElementwiseTensorProduct("2x0e", "2x1o"), {"weight": (0,), "output_mask": (6,)}),
                (ct.Linear("2x0e+1x1o", "3x0e+1x1o+1x2e", biases=True), {"weight": (7,), "bias": (3,), "output_mask": (11,)}),
                (ct.Linear("2x0e", "3x0e", shared_weights=False), {"weight": (0,), "bias": (0,), "output_mask": (3,)}),
                (ct.Gate("2x0e", [torch.tanh], "1x0e", [torch.sigmoid], "1x1o"), {}),
                (ct.SphericalHarmonics("1x0e+1x1o", True), {}),
                (ct.SymmetricContraction(1, 2, [0], 3, n_species=2), {"weight": (2, 3, 3)}),
                (ct.RMSNorm("2x0e+1x1o", bias=True, variant="degree"), {"weight": (3,), "bias": (2,)})):
            state = module.state_dict()
            self.assertEqual({name: tuple(one.shape) for name, one in state.items()}, shapes)
            foreign = "mul.weight" if isinstance(module, ct.Gate) else "_compiled_main_left_right._w3j_0_1_1"
            module.load_state_dict({**state, foreign: torch.zeros(0)})
            with self.assertRaisesRegex(RuntimeError, "wrong"):
                module.load_state_dict({**state, "wrong": torch.zeros(0)})
        self.assertEqual(ct.Linear("1x0e", "1x0e+1x2e").output_mask.tolist(), [1] + 5 * [0])
        self.assertEqual(ct.FullyConnectedTensorProduct("1x0e", "1x0e", "1x0e+1x1o").output_mask.tolist(), [1, 0, 0, 0])
        product = ct.TensorProduct(*UVU, shared_weights=False)
        x, y, w = torch.randn(3, 1, 11), torch.randn(2, 4), torch.randn(10)
        z = product(x, y, w)
        self.assertEqual((z.dtype, tuple(z.shape)), (torch.float32, (3, 2, 20)))
        self.near(z[2, 1], product(x[2], y[1:], w[None])[0], 1e-5)
        with torch.no_grad():
            self.near(product(x[2].double(), y[1:].double(), w[None].double())[0], z[2, 1].double(), 1e-5)
        silu = ct.Gate("1x0e", [torch.nn.functional.silu])(torch.ones(1, 1, dtype=torch.float64))
        self.near(silu, torch.tensor([[1.6791767923989418 / (1 + 2.718281828459045 ** -1)]], dtype=torch.float64))

    def test_torch_autocast(self):
        with torch.autocast("cpu", torch.bfloat16):
            y = ct.SphericalHarmonics([1], True)(torch.randn(2, 3).bfloat16().requires_grad_())
            self.assertEqual(y.dtype, torch.float32)
        y.sum().backward()

    def test_torch_refused(self):
        product = ct.TensorProduct(*UVU, shared_weights=False)
        x, y, w = normal(3, 11), normal(3, 4), normal(3, 10)
        tanh = clebsch.gate("1x0e", "tanh", device="cpu:interpreter")
        for kind, said, call in (
                (ValueError, "weight is missing", lambda: product(x, y)),
                (ValueError, r"tensor_product: x has the shape \[3, 12\]; it must be \[3, 11\]", lambda: product(normal(3, 12), y, w)),
                (TypeError, "y is torch.float32 on cpu, x torch.float64 on cpu", lambda: product(x, y.float(), w)),
                (TypeError, "tensors are torch.int32", lambda: ct.spherical_harmonics([1])(torch.ones(2, 3, dtype=torch.int32))),
                (ValueError, "it must be 1x1o or 1x1e", lambda: ct.SphericalHarmonics("1x1o", True, irreps_in="2x0e")),
                (ValueError, "degree 2 and this parity", lambda: ct.SphericalHarmonics("1x2o", True)),
                (ValueError, "no activation of clebsch.gate", lambda: ct.Gate("1x0e", [torch.exp])),
                (ValueError, "no activation of clebsch.gate", lambda: ct.Gate("1x0e", [torch.nn.functional.relu6])),
                (ValueError, "no activation of clebsch.gate", lambda: ct.Gate("1x0e", [torch.nn.Hardshrink(0.1)])),
                (ValueError, "senders and receivers", lambda: ct.Convolution(*UVU)(x, y, w, SENDERS[:3].float(), RECEIVERS[:3])),
                (ValueError, "numbers from 0 to 1", lambda: ct.linear("1x0e", "1x0e", n_species=2)(normal(1, 1), normal(2, 1), torch.tensor([2]))),
                (TypeError, "species: torch.float32; they must be whole", lambda: ct.linear("1x0e", "1x0e", n_species=2)(normal(1, 1), normal(2, 1), torch.tensor([0.5]))),
                (clebsch.Error, "tensor_product: it has no tangents", lambda: product(forward_ad.make_dual(x, x), y, w)),
                (clebsch.Error, "x: its numbers are still to be negated", lambda: [tanh.forward(one) for one in (torch.ones(2, 1), torch._neg_view(torch.ones(2, 1)))]),
                (TypeError, "there is no keyword 'lmax'", lambda: ct.rms_norm("1x0e", lmax=3)),
                (clebsch.Error, r"senders\[1\] is 3", lambda: ct.Convolution(*UVU)(x, y, w, torch.tensor([0, 3, 1]), torch.tensor([0, 1, 2])))):
            with self.assertRaisesRegex(kind, said), forward_ad.dual_level():
                call()

    def test_torch_indices_that_change(self):
        """Before the derivative: PyTorch says so, as of operands."""
        edges, species = torch.zeros(2, 3, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
        w = normal(2, 1).requires_grad_()
        convolution, linear = ct.convolution(*UVU), ct.linear("1x0e", "1x0e", n_species=2)
        for z, index in ((convolution(normal(3, 11).requires_grad_(), normal(3, 4), normal(3, 10), *edges), edges),
                         (linear(normal(1, 1), w, species), species)):
            index.add_(1)
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                z.sum().backward()

    def test_torch_known_edges(self):
        """They are compared where nothing else says that they are the same; the other graphs' memory is used again."""
        convolution, x, y = ct.convolution(*UVU), normal(4, 11).requires_grad_(), normal(6, 4)
        product, w = ct.TensorProduct(*UVU, shared_weights=False), normal(6, 10)
        memory = torch.stack([SENDERS, RECEIVERS]).numpy()

        def check(edges, compared, known=False, turns=2):
            with unittest.mock.patch.object(_ops.Sorted, "has", autospec=True, side_effect=_ops.Sorted.has) as has, torch.set_grad_enabled(turns > 0):
                found, other = convolution(x, y, w, *edges, 4, known) / 2, self.convolved(product, x, y, w, *edges)
                self.near(found, other)
                for _ in range(turns):
                    (found,), (other,) = (torch.autograd.grad(one.pow(2).sum(), x, create_graph=True) for one in (found, other))
                    self.near(found, other, 1e-11)
            self.assertEqual(has.call_count, compared)
        edges = torch.from_numpy(memory)
        check(edges, 0)  # there is no graph yet
        check(edges, 1)
        check(edges, 0, True)
        check(edges.clone(), 1, True)  # elsewhere
        check(edges, 1, True)
        edges[0, 0] = 2
        check(edges, 1, True)  # PyTorch has counted this write
        memory[0, 1] = 0
        check(edges, 2)  # and not this one, which is why it is never known at first
        check(edges, 0, True)
        with torch.inference_mode():
            hidden = edges.clone()
        for _ in range(2):
            check(hidden, 1, True, 0)
        graphs = _ops.graphs_of(_ops.context_for(x))
        for place in range(5):
            handles = {one.handle.value for one in graphs.found}
            check(edges.roll(place + 1, 1).clone(), len(graphs.found))
        self.assertEqual(({one.handle.value for one in graphs.found}, len(handles)), (handles, _ops.MOST_GRAPHS))
        with self.assertRaisesRegex(clebsch.Error, r"senders\[0\] is 9"):
            convolution(x, y, w, SENDERS + 9, RECEIVERS)
        check(edges, 3)
        check(torch.stack([SENDERS, RECEIVERS]), 4)

    def test_torch_copies(self):
        linear = ct.Linear("2x0e+1x1o", "3x0e+1x1o")
        x = torch.randn(2, 5)
        held = io.BytesIO()
        torch.save(linear.function, held)
        held.seek(0)
        again = pickle.loads(pickle.dumps(linear.function))
        for one in (copy.deepcopy(linear), lambda x: again(x, linear.weight)):
            self.near(one(x), linear(x))

    def test_torch_patch(self):
        """Stand-ins for the modules of e3nn, MACE, SevenNet and NequIP, with their names and attributes."""
        model = Model()
        x, y, w, z, v = normal(4, 11), normal(6, 4), normal(6, 10), torch.eye(2, dtype=torch.float64)[[0, 1, 1, 0]], normal(6, 3)
        names, tensors = zip(*model.named_parameters())
        state = {**model.state_dict(), "mace.skip_tp._compiled_main_left_right._w3j": torch.zeros(1)}
        before = model(x, y, w, z, v)
        slopes = torch.autograd.grad(before.pow(2).sum(), tensors)
        self.assertEqual(ct.patch(model), [
            "mace.conv_tp: Convolution for the product and sum of Block", "mace.skip_tp: Linear of each species for OneHot", "sevennet.convolution: Convolution for the product and sum of IrrepsConvolution",
            "sevennet.weight_nn: Gate for FullyConnectedNet", "sph: SphericalHarmonics for SphericalHarmonics", "nequip: Convolution for TensorProductScatter",
            "contraction: SymmetricContraction for SymmetricContraction", "mix: TensorProduct for TensorProduct",
            "linear: Linear for Linear", "gate: Gate for Gate", "activation: Gate for Activation", "reshape: cat for reshape_irreps"])
        self.assertEqual([one.known for one in model.modules() if isinstance(one, ct.Convolution)], [False, True, True])
        model.load_state_dict(state)
        after = model(x, y, w, z, v)
        self.near(after, before)
        network, = (one for one in model.modules() if type(one).__name__ == "_Network")
        self.assertEqual(tuple(network(normal(0, 10)).shape), (0, 10))  # of atoms that are alone
        self.assertEqual(tuple(name for name, _ in model.named_parameters()), names)
        for a, b in zip(torch.autograd.grad(after.pow(2).sum(), tensors), slopes):
            self.near(a, b)
        self.assertEqual(tuple(model.sevennet.weight_nn(normal(2, 0, 10)).shape), (2, 0, 10))
        weights, again = [], model.eval().sevennet.weight_nn
        held = again.register_forward_hook(lambda module, given, w: weights.append(StorageWeakRef(getattr(w, "untyped_storage", w.storage)())))
        for slope in (lambda z: torch.autograd.grad(z.pow(2).sum(), tensors),
                      lambda z: torch.autograd.grad(sum(g.sum() for g in torch.autograd.grad(z.pow(2).sum(), tensors, create_graph=True)), tensors)):
            before, after = model.train()(x, y, w, z, v), model.eval()(x, y, w, z, v)
            self.assertEqual([one.expired() for one in weights[-2:]], [False, True])  # these are made again
            for a, b in zip(slope(after), slope(before)):
                self.near(a, b)
        held.remove()
        with self.assertRaisesRegex(ValueError, "patch: the model has no convolution"):
            ct.patch(torch.nn.Linear(1, 1))
        wrong = Model()
        wrong.mix.forward = lambda x, y: torch.zeros(len(x), 20, dtype=x.dtype)
        with self.assertRaisesRegex(clebsch.Error, "what would replace it differ"):
            ct.patch(wrong)

    def test_torch_optimizer(self):
        """Parameters are those of PyTorch's optimizers, with two groups, another rate, and state that is read again."""
        start, goals = [normal(3, 2), normal(5), normal(1)], [normal(3, 2), normal(5)]

        def run(make, again=None):
            at = [torch.nn.Parameter(one.clone()) for one in start]  # no gradient for the last
            optimizer = make([{"params": at[:1]}, {"params": at[1:], "weight_decay": 0.5}])
            rates = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
            for step in range(6):
                optimizer.zero_grad(set_to_none=step % 2 == 0)
                sum(((p - goal) ** 4).sum() for p, goal in zip(at, goals)).backward()
                optimizer.step()
                rates.step()
                if again and step == 2:
                    held, optimizer = copy.deepcopy(optimizer.state_dict()), again([{"params": at[:1]}, {"params": at[1:]}])
                    optimizer.load_state_dict(held)
                    rates.optimizer = optimizer
            return at, optimizer
        for rule, other in (("adamw", torch.optim.AdamW), ("sgd", torch.optim.SGD)):
            more = {"momentum": 0.9} if rule == "sgd" else {"weight_decay": 0.1}
            theirs, _ = run(lambda groups: other(groups, lr=1e-2, **more))
            for again in (None, lambda groups: ct.Optimizer(groups, rule)):
                ours, optimizer = run(lambda groups: ct.Optimizer(groups, rule, lr=1e-2, **more), again)
                for a, b in zip(ours, theirs):
                    self.near(a.detach(), b.detach())
                self.assertEqual(optimizer.progress().steps, 6)
        with self.assertRaisesRegex(TypeError, "there is no keyword 'betas'"):
            ct.Optimizer(ours, betas=(0.9, 0.99))
        with self.assertRaisesRegex(ValueError, "no parameter has a gradient"):
            ct.Optimizer([torch.nn.Parameter(normal(1))]).step()
        ours[2].grad = torch.ones(1, dtype=torch.float64)
        with self.assertRaisesRegex(ValueError, "a parameter that had no gradient in the first step has one"):
            optimizer.step()

    def test_torch_optimizer_groups(self):
        """The state of before the first step is a state, too; words of PyTorch's optimizers are not passed over."""
        at = [torch.nn.Parameter(torch.ones(2, dtype=torch.float64)) for _ in range(2)]
        optimizers = [kind([one], lr=0.1, weight_decay=0.1) for kind, one in zip((ct.Optimizer, torch.optim.AdamW), at)]
        for one, optimizer in zip(at, optimizers):
            fresh = copy.deepcopy(optimizer.state_dict())
            for step in range(4):
                if step == 2:
                    optimizer.load_state_dict(fresh)
                optimizer.zero_grad()
                (one ** 4).sum().backward()
                optimizer.step()
        self.near(at[0].detach(), at[1].detach())
        self.assertEqual(optimizers[0].progress().steps, 2)
        with self.assertRaisesRegex(ValueError, "the state of another class of optimizer"):
            optimizers[0].load_state_dict(optimizers[1].state_dict())
        optimizers[0].param_groups[0]["eps"] = 1e-3
        for wrong in (optimizers[0], ct.Optimizer([{"params": at[:1], "betas": (0.9, 0.99)}])):
            with self.assertRaisesRegex(TypeError, "a group has '(eps|betas)'; here that is"):
                wrong.step()

    def test_torch_documents(self):
        """The blocks of docs/torch.md, but those of other packages, and of torch.compile where there is none."""
        blocks = re.findall(r"^```python\n(.*?)^```", (DATA.parents[1] / "docs" / "torch.md").read_text(), re.M | re.S)
        names = {}
        with contextlib.redirect_stdout(io.StringIO()) as said:
            for block in blocks:
                if "mace.model" not in block and (hasattr(torch, "compile") or "torch.compile" not in block):
                    exec(compile(block, "docs/torch.md", "exec"), names)
        self.assertEqual(said.getvalue().split("\n")[:2], ["torch.Size([6, 3])", "['weight', 'bias', 'output_mask']"])

    if int(torch.__version__[0]) >= 2:
        def test_torch_compiled(self):
            product, linear, harmonics = ct.Convolution(*UVU), ct.Linear("2x0e+3x1o", "2x0e+3x1o").double(), ct.SphericalHarmonics([0, 1], True)

            def whole(x, v, w):
                return product(linear(x), harmonics(v), w, SENDERS, RECEIVERS)
            operands = [normal(4, 11).requires_grad_(), normal(6, 3).requires_grad_(), normal(6, 10).requires_grad_()]
            for a, b in zip(*(torch.autograd.grad(f(*operands).pow(2).sum(), operands) for f in (whole, torch.compile(whole, fullgraph=True)))):
                self.near(a, b)
            x, y, w = operands[0], normal(6, 4).requires_grad_(), operands[2]
            torch.library.opcheck(_ops.operators["convolution_forward"], (product.function.text, "", SENDERS, RECEIVERS, 4, False, x, y, w))


if __name__ == "__main__":
    unittest.main()
