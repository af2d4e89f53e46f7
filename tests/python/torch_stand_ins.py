"""Stand-ins for the modules of e3nn, MACE, SevenNet and NequIP that clebsch.torch.patch replaces, and a model of them."""
import types

import torch

import clebsch
import clebsch.torch as ct

UVU = clebsch.paths("channel_wise", "2x0e+3x1o", "0e+1o", "0e+1o")
SENDERS, RECEIVERS = torch.tensor([0, 1, 2, 0, 2, 3]), torch.tensor([1, 0, 0, 2, 1, 1])


def normal(*shape):
    return torch.randn(*shape, dtype=torch.float64)


class Product(torch.nn.Module):
    """e3nn's: path_weight is the whole factor of a path."""

    def __init__(self, shared):
        super().__init__()
        self.irreps_in1, self.irreps_in2, self.irreps_out = UVU[:3]
        self.instructions = [types.SimpleNamespace(i_in1=i, i_in2=j, i_out=k, connection_mode=mode, has_weight=True, path_weight=0.5 + k)
                             for i, j, k, mode, *_ in UVU.instructions]
        self.internal_weights = self.shared_weights = shared
        self.weight_numel = 10
        if shared:
            self.weight = torch.nn.Parameter(normal(10))
        else:
            self.register_buffer("weight", torch.zeros(0))
        self.register_buffer("output_mask", torch.ones(20, dtype=torch.float64))
        steps = [(*path[:5], (0.5 + path[2]) ** 2) for path in UVU.instructions]
        self.op = ct.tensor_product(*UVU[:3], steps, irrep_normalization="none", path_normalization="none", shared_weights=shared)

    def forward(self, x, y, w=None):
        return self.op(x, y, self.weight if w is None else w)


class OneHot(Product):
    """e3nn's FullyConnectedTensorProduct with scalars."""

    def __init__(self):
        torch.nn.Module.__init__(self)
        self.irreps_in1, self.irreps_in2, self.irreps_out, self.internal_weights = "2x0e+3x1o", "2x0e", "4x0e+1x1o", True
        steps = [(0, 0, 0, "uvw", True, 0.25), (1, 0, 1, "uvw", True, 4.0)]
        self.instructions = [types.SimpleNamespace(i_in1=i, i_in2=j, i_out=k, connection_mode=mode, path_weight=weight ** 0.5)
                             for i, j, k, mode, _, weight in steps]
        self.weight, self.shared_weights, self.weight_numel = torch.nn.Parameter(normal(22)), True, 22
        self.register_buffer("output_mask", torch.ones(7, dtype=torch.float64))
        self.op = ct.tensor_product(self.irreps_in1, self.irreps_in2, self.irreps_out, steps, irrep_normalization="none",
                                    path_normalization="none", shared_weights=True)


class Harmonics(torch.nn.Module):
    irreps_in, irreps_out, normalize, normalization = "1x1o", "1x0e+1x1o", True, "component"

    def forward(self, v):
        return torch.cat([torch.ones_like(v[:, :1]), 3 ** 0.5 * torch.nn.functional.normalize(v)], 1)


def summed(product, x, y, w, senders, receivers):
    return torch.zeros(len(x), 20, dtype=x.dtype).index_add(0, receivers, product(x[senders], y, w))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_tp, self.skip_tp = Product(False), OneHot()

    def forward(self, x, y, w, edge_index, z):
        if hasattr(self, "conv_fusion"):
            message = self.conv_tp(x, y, w, edge_index)
        else:
            message = summed(self.conv_tp, x, y, w, *edge_index)
        return message + self.skip_tp(x, z).sum(1, True)


def ssp(x):
    """Normalised as e3nn does, with some factor."""
    return 1.9 * (torch.nn.functional.softplus(x) - torch.log(torch.tensor(2.0, dtype=x.dtype)))


class Layer(torch.nn.Module):
    def __init__(self, h_in, h_out, act, var_in, var_out):
        super().__init__()
        self.h_in, self.h_out, self.act, self.var_in, self.var_out = h_in, h_out, act, var_in, var_out
        self.weight = torch.nn.Parameter(normal(h_in, h_out))

    def forward(self, x):
        x = x @ self.weight / (self.h_in * self.var_in) ** 0.5
        return (self.act(x) if self.act else x) * self.var_out ** 0.5


class Network(torch.nn.Sequential):
    def __init__(self):
        super().__init__()
        self.hs, self.layer0, self.layer1 = [10, 5, 10], Layer(10, 5, ssp, 1, 2), Layer(5, 10, None, 2, 3)


class Linear(torch.nn.Module):
    """Two paths into the first term, of weights by path, and its bias."""

    def __init__(self):
        super().__init__()
        self.irreps_in, self.irreps_out, self.internal_weights = "3x0e+5x0e+4x1o", "2x0e+3x1o", True
        ends = [(0, 0, 6 ** -0.5), (1, 0, 10 ** -0.5), (2, 1, 0.5), (-1, 0, 1.0)]
        self.instructions = [types.SimpleNamespace(i_in=i, i_out=j, path_weight=weight) for i, j, weight in ends]
        self.weight, self.bias = torch.nn.Parameter(normal(28)), torch.nn.Parameter(normal(2))
        self.register_buffer("output_mask", torch.ones(11, dtype=torch.float64))

    def forward(self, x):
        parts = self.weight.split([6, 10, 12])
        one = x[:, :3] @ parts[0].view(3, 2) * 6 ** -0.5 + x[:, 3:8] @ parts[1].view(5, 2) * 10 ** -0.5 + self.bias
        return torch.cat([one, torch.einsum("num,uv->nvm", x[:, 8:].reshape(-1, 4, 3), parts[2].view(4, 3) / 2).flatten(1)], 1)


class Gate(torch.nn.Module):
    irreps_in, irreps_out, irreps_gated = "2x0e+3x0e+3x1o", "2x0e+3x1o", "3x1o"
    act_scalars, act_gates = types.SimpleNamespace(irreps_in="2x0e", acts=[ssp]), types.SimpleNamespace(irreps_in="3x0e", acts=[torch.sigmoid])

    def forward(self, x):
        return torch.cat([ssp(x[:, :2]), (x[:, 5:].reshape(-1, 3, 3) * torch.sigmoid(x[:, 2:5, None])).flatten(1)], 1)


class Activation(torch.nn.Module):
    irreps_in, irreps_out, acts = "1x0e+2x0o", "1x0e+2x0o", [None, torch.tanh]

    def forward(self, x):
        return torch.cat([x[:, :1], torch.tanh(x[:, 1:])], 1)


class Sevennet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.key_edge_idx, self.key_x, self.key_filter, self.key_weight_input, self.is_parallel = "edges", "x", "y", "w", False
        self.convolution, self.weight_nn, self.denominator = Product(False), Network(), torch.nn.Parameter(normal(1))

    def forward(self, data):
        data["x"] = summed(self.convolution, data["x"], data["y"], self.weight_nn(data["w"]), *data["edges"].flip(0)) / self.denominator
        return data


class Scatter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tp = Product(False)

    def forward(self, x, edge_attr, edge_weight, edge_dst, edge_src):
        return summed(self.tp, x, edge_attr, edge_weight, edge_src, edge_dst)


class Part(torch.nn.Module):
    """A contraction to one degree of two factors at most: sums of all products of components."""

    def __init__(self, degree):
        super().__init__()
        op, d = clebsch.symmetric_contraction(1, 2, [degree], 2, device="cpu:interpreter"), 2 * degree + 1
        self.num_features, self.correlation, self.coupling_irreps, self.degree = 2, 2, "1x0e+1x1o", degree
        self.tensors = []
        for nu in (1, 2):
            paths = torch.stack([torch.from_numpy(op.basis(degree, nu, path)) for path in op.paths(degree, nu)], -1)
            self.tensors.append((paths @ normal(paths.shape[-1], 3)).reshape(*(d,) * bool(degree), *(4,) * nu, 3))
        self.weights_max, self.weights = torch.nn.Parameter(normal(2, 3, 2)), torch.nn.ParameterList([torch.nn.Parameter(normal(2, 3, 2))])

    def U_tensors(self, nu):
        return self.tensors[nu - 1]

    def forward(self, x, y):
        one, two = (tensor.reshape(-1, *(4,) * nu, 3) for nu, tensor in enumerate(self.tensors, 1))
        return (torch.einsum("mik,ekc,bci,be->bcm", one, self.weights[0], x, y)
                + torch.einsum("mijk,ekc,bci,bcj,be->bcm", two, self.weights_max, x, x, y)).flatten(1)


class Reshape(torch.nn.Module):
    irreps, muls, dims = "2x0e+2x1o", [2, 2], [1, 3]

    def forward(self, x):
        return torch.cat([x[:, :2].reshape(-1, 2, 1), x[:, 2:].reshape(-1, 2, 3)], -1)


class Contraction(torch.nn.Module):
    irreps_out = "2x0e+2x1o"

    def __init__(self):
        super().__init__()
        self.contractions = torch.nn.ModuleList([Part(0), Part(1)])

    def forward(self, x, y):
        return torch.cat([one(x, y) for one in self.contractions], 1)


for kind, package, name in ((Product, "e3nn.o3", "TensorProduct"), (Harmonics, "e3nn.o3", "SphericalHarmonics"), (Scatter, "nequip.nn", "TensorProductScatter"),
                            (Contraction, "mace.modules", "SymmetricContraction"), (Reshape, "mace.modules", "reshape_irreps"), (Sevennet, "sevenn.nn", "IrrepsConvolution"), (Linear, "e3nn.o3", "Linear"),
                            (Gate, "e3nn.nn", "Gate"), (Activation, "e3nn.nn", "Activation"), (Network, "e3nn.nn", "FullyConnectedNet")):
    kind.__module__, kind.__name__ = package, name
Block.__bases__ = (type("InteractionBlock", (torch.nn.Module,), {"__module__": "mace.modules.blocks"}),)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mace, self.sevennet = Block(), Sevennet()
        self.sph, self.nequip, self.contraction, self.mix = Harmonics(), Scatter(), Contraction(), Product(True)
        self.linear, self.gate, self.activation, self.reshape = Linear(), Gate(), Activation(), Reshape()

    def forward(self, x, y, w, z, v):
        y = y + self.sph(v)
        sums = self.mace(x, y, w, torch.stack([SENDERS, RECEIVERS]), z) + self.sevennet({"x": x, "y": y, "w": w, "edges": torch.stack([RECEIVERS, SENDERS])})["x"]
        sums = sums + self.nequip(x, y, w, RECEIVERS, SENDERS) + self.mix(x, y[:4])
        more = self.linear(sums), self.gate(sums[:, :14]), self.activation(sums[:, :3])
        return torch.cat([sums, self.contraction(self.reshape(sums[:, :8]), z), *more], 1)
