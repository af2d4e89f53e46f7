#!/usr/bin/env python3
"""make_torch_models.py - writes tiny models of SevenNet and MACE that the fuzzers and tests start from:  make_torch_models.py corpus

torch/sevennet.pth: a checkpoint (torch.save of a dict); torch/mace.model: MACE's module (torch.save of an object), with density, ZBL, Agnesi
and two heads, and with atomic numbers as old versions save them; torch/mace.pth: the same as TorchScript, wrapped, without them. Tensors of a file are views of one storage."""
import io, math, struct, sys, zipfile

from make_models import Global, Pickler


class Tensor:
    """Of small numbers that are easily told apart; kind: "Float", "Double" or "Long"."""

    def __init__(self, *shape, data=None, kind="Double"):
        self.shape, self.data, self.kind = shape, data, kind


class Record:
    """An object of a global: made of arguments (by a call or as a new object), built from a state."""

    def __init__(self, name, arguments=(), state=None, call=False):
        self.name, self.arguments, self.state, self.call = Global(name), arguments, state, call


class Ordered(dict):
    pass


class TorchPickler(Pickler):
    CODES = {"Float": "f", "Double": "d", "Long": "q"}

    def __init__(self):
        super().__init__("data")
        self.stored = {kind: [] for kind in self.CODES}

    def remembered(self, text):
        if isinstance(text, Global) or len(self.memo) < 256:
            return super().remembered(text)
        self.out.write(b"X" + struct.pack("<I", len(text)) + text.encode())

    def tensor(self, t):
        numbers, n = self.stored[t.kind], math.prod(t.shape)
        first = len(numbers)
        numbers += t.data or [((7 * i + first) % 31 - 15) / 16 for i in range(n)]
        assert len(numbers) == first + n, t.shape
        strides = tuple(math.prod(t.shape[i + 1:]) for i in range(len(t.shape)))
        self.put(Global("torch._utils\n_rebuild_tensor_v2"))
        self.out.write(b"(")
        self.tuple(("storage", Global(f"torch\n{t.kind}Storage"), t.kind, "cpu", 1))
        self.out.write(b"Q")
        for item in (first, tuple(t.shape), strides, False):
            self.put(item)
        self.put(Global("collections\nOrderedDict"))
        self.out.write(b")RtR")

    def items(self, d):
        self.out.write(b"(")
        for key, item in d.items():
            self.put(key)
            self.put(item)
        self.out.write(b"u")

    def put(self, v):
        if isinstance(v, Global):
            self.remembered(v)
        elif isinstance(v, Ordered):
            self.put(Global("collections\nOrderedDict"))
            self.out.write(b")R")
            self.items(v)
        elif isinstance(v, dict):
            self.out.write(b"}")
            self.items(v)
        elif isinstance(v, Tensor):
            self.tensor(v)
        elif isinstance(v, Record):
            self.put(v.name)
            self.tuple(v.arguments)
            self.out.write(b"R" if v.call else b"\x81")
            if v.state is not None:
                self.put(v.state)
                self.out.write(b"b")
        else:
            super().put(v)


def write(path, root, more=()):
    pickler = TorchPickler()
    pickle = pickler.whole_pickle(root)
    with zipfile.ZipFile(path, "w") as z:
        def add(name, content):
            z.writestr(zipfile.ZipInfo(f"tiny/{name}"), content)
        add("data.pkl", pickle)
        for kind, numbers in pickler.stored.items():
            if numbers:
                add(f"data/{kind}", struct.pack(f"<{len(numbers)}{pickler.CODES[kind]}", *numbers))
        for name, content in more:
            add(name, content)


# ---- SevenNet ----


def sevennet():
    def weight(*shape):
        return Tensor(*shape, kind="Float")
    state = Ordered({"edge_embedding.basis_function.coeffs": weight(2), "onehot_to_feature_x.linear.weight": weight(4)})
    features, gate, messages = [2, 0], [[3, 1], [2, 0]], [[2, 2], [3]]
    for t, (scalars, vectors) in enumerate(gate):
        first, out = [features[0], features[1]], [scalars, vectors]
        paths = [(l1, l2, l3) for l1 in range(2) for l2 in range(2) for l3 in range(2) if first[l1] and out[l3] and abs(l1 - l2) <= l3 <= l1 + l2]
        columns = sum(first[l1] for l1, _, _ in paths)
        merged = [sum(first[l1] for l1, _, l3 in paths if l3 == l) for l in range(2)]
        state.update({f"{t}_self_connection_intro.linear.weight": weight(sum(a * b for a, b in zip(first, out))),
                      f"{t}_self_interaction_1.linear.weight": weight(sum(a * a for a in first)),
                      f"{t}_convolution.weight_nn.layer0.weight": weight(2, 3), f"{t}_convolution.weight_nn.layer1.weight": weight(3, columns),
                      f"{t}_convolution.denominator": Tensor(1, data=[4.0], kind="Float"),
                      f"{t}_self_interaction_2.linear.weight": weight(sum(a * b for a, b in zip(merged, out)))})
        features = [2, 1] if t == 0 else [2, 0]
    state.update({"reduce_input_to_hidden.linear.weight": weight(2), "reduce_hidden_to_energy.linear.weight": weight(1),
                  "rescale_atomic_energy.scale": weight(2), "rescale_atomic_energy.shift": weight(2)})
    config = {"version": "0.9.1", "lmax": 1, "num_convolution_layer": 2, "cutoff": 3.0, "interaction_type": "nequip", "self_connection_type": "linear",
              "act_radial": "silu", "act_scalar": {"e": "silu"}, "act_gate": {"e": "silu"}, "is_parity": False, "_normalize_sph": True,
              "radial_basis": {"radial_basis_name": "bessel", "bessel_basis_num": 2}, "weight_nn_hidden_neurons": [3], "_type_map": {1: 0, 8: 1},
              "cutoff_function": {"cutoff_function_name": "XPLOR", "cutoff_on": 2.5}, "irreps_manual": ["2x0e", "2x0e+1x1e", "2x0e"],
              "device": Record("torch\ndevice", ("cpu",), call=True),
              "shift": Record("numpy.core.multiarray\n_reconstruct", (Global("numpy\nndarray"), (0,), "b"), (1, (2,), None, False, "x"), call=True)}
    return {"model_state_dict": state, "optimizer_state_dict": {}, "config": config, "epoch": 1}


# ---- MACE ----


def numpy_whole(x):
    kind = Record("numpy\ndtype", ("i8", False, True), (3, "<", None, None, None, -1, -1, 0), call=True)
    content = Record("_codecs\nencode", (chr(x) + 7 * chr(0), "latin1"), call=True)
    return Record("numpy.core.multiarray\nscalar", (kind, content), call=True)


RADII = [0.2 + 0.05 * z for z in range(9)]
SILU = "e3nn.math._normalize_activation\nnormalize2mom"


class Module:
    """The tree of modules, from which come both forms of a file."""

    def __init__(self, name, attributes=None, **inside):
        self.name, self.attributes, self.inside = name, attributes or {}, inside

    def saved(self):
        parts = [Ordered(), Ordered(), Ordered()]
        for key, item in self.inside.items():
            parts[2 if isinstance(item, Module) else key != "weight"][key.lstrip("_")] = item.saved() if isinstance(item, Module) else item
        for key in ("weight", "bessel_weights"):
            if key in parts[0]:
                parts[0][key] = Record("torch._utils\n_rebuild_parameter", (parts[0][key], True, Ordered()), call=True)
        state = {"training": False, "_parameters": parts[0], "_buffers": parts[1], **self.attributes, "_modules": parts[2]}
        return Record(self.name, (), state)

    def scripted(self):
        state = {key: item for key, item in self.attributes.items() if key != "f"}
        state.update({key.lstrip("_"): item.scripted() if isinstance(item, Module) else item for key, item in self.inside.items()})
        return Record(f"__torch__.{self.name}", (), state)


def modules(items):
    return Module("torch.nn.modules.container\nModuleList", **{f"_{i}": item for i, item in enumerate(items)})


def irreps(muls, scripted):
    """Of degrees 0, 1, ...; in a saved module objects made of tuples."""
    pairs = [(mul, (l, 1 if l % 2 == 0 else -1)) for l, mul in muls]
    if scripted:
        return tuple(pairs)
    inner = tuple(Record("e3nn.o3._irreps\n_MulIr", ((mul, Record("e3nn.o3._irreps\nIrrep", (ir,))),)) for mul, ir in pairs)
    return Record("e3nn.o3._irreps\nIrreps", (inner,))


class Mace:
    """Elements H and O, two layers, K = 2 channels, degrees up to 1, correlation 2."""

    K, BASIS, R_MAX = 2, 2, 3.0

    def __init__(self, scripted, heads, density, extras):
        self.scripted, self.heads, self.density, self.extras = scripted, heads, density, extras

    def irreps(self, *degrees):
        return irreps([(l, self.K) for l in degrees], self.scripted)

    def linear(self, inputs, outputs, weights):
        return Module("e3nn.o3._linear\nLinear", {"irreps_in": inputs, "irreps_out": outputs, "bias_numel": 0}, weight=Tensor(weights))

    def scalars(self, n):
        return irreps([(0, n)], self.scripted)

    def silu(self):
        return Module(SILU, {} if self.scripted else {"f": Global("torch.nn.functional\nsilu"), "cst": 1.6791767923989418, "_is_id": False})

    def net(self, *widths):
        parts = {}
        for i, (a, b) in enumerate(zip(widths, widths[1:])):
            inside = {"weight": Tensor(a, b)}
            if i + 2 < len(widths):
                inside["act"] = self.silu()
            parts[f"layer{i}"] = Module("e3nn.nn._fc\n_Layer", {"h_in": float(a), "var_in": 1.0, "var_out": 1.0}, **inside)
        return Module("e3nn.nn._fc\nFullyConnectedNet", {}, **parts)

    def interaction(self, residual, degrees, out):
        K = self.K
        paths = [(l1, l2, l3) for l3 in range(2) for l1 in degrees for l2 in range(2) if abs(l1 - l2) <= l3 <= l1 + l2 and (l1 + l2 + l3) % 2 == 0]
        target, features, harmonics = self.irreps(0, 1), self.irreps(*degrees), irreps([(0, 1), (1, 1)], self.scripted)
        inside = {"linear_up": self.linear(features, features, len(degrees) * K * K),
                  "conv_tp": Module("e3nn.o3._tensor_product._tensor_product\nTensorProduct",
                                    {"irreps_in1": features, "irreps_in2": harmonics, "irreps_out": self.irreps(*(p[2] for p in paths))}),
                  "conv_tp_weights": self.net(self.BASIS, 3, len(paths) * K), "linear": self.linear(features, target, len(paths) * K * K)}
        ends = (degrees, out) if residual else ((0, 1), (0, 1))
        inside["skip_tp"] = Module("e3nn.o3._tensor_product._sub\nFullyConnectedTensorProduct",
                                   {"irreps_in1": self.irreps(*ends[0]), "irreps_in2": self.scalars(2), "irreps_out": self.irreps(*ends[1])},
                                   weight=Tensor(2 * K * K * len(set(ends[0]) & set(ends[1]))))
        if self.density:
            inside["density_fn"] = self.net(self.BASIS, 1)
        name = f"RealAgnostic{'Density' if self.density else ''}{'Residual' if residual else ''}InteractionBlock"
        return Module(f"mace.modules.blocks\n{name}", {"avg_num_neighbors": 4.0}, **inside)

    def product(self, residual, out):
        third = 1 / math.sqrt(3)
        one = {0: Tensor(4, 1, data=[1.0, 0.0, 0.0, 0.0]), 1: Tensor(3, 4, 1, data=[float(m + 1 == i) for m in range(3) for i in range(4)])}
        two = {0: Tensor(4, 4, 2, data=[float(i == j == 0) if k == 0 else third * (i == j > 0) for i in range(4) for j in range(4) for k in range(2)]),
               1: Tensor(3, 4, 4, 2, data=[float((i, j)[k] == 0 and (j, i)[k] == m + 1) for m in range(3) for i in range(4) for j in range(4) for k in range(2)])}
        contractions = [Module("mace.modules.symmetric_contraction\nContraction", {}, weights_max=Tensor(2, 2, self.K), U_matrix_1=one[l], U_matrix_2=two[l],
                               weights=Module("torch.nn.modules.container\nParameterList", {}, _0=Tensor(2, 1, self.K))) for l in out]
        basis = Module("mace.modules.symmetric_contraction\nSymmetricContraction", {}, contractions=modules(contractions))
        return Module("mace.modules.blocks\nEquivariantProductBasisBlock", {"use_sc": residual, "cueq_config": None}, symmetric_contractions=basis,
                      linear=self.linear(self.irreps(*out), self.irreps(*out), len(out) * self.K**2))

    def network(self):
        K, n = self.K, len(self.heads)
        radial = {"bessel_fn": Module("mace.modules.radial\nBesselBasis", {}, bessel_weights=Tensor(2, data=[math.pi / 3, math.tau / 3]),
                                      prefactor=Tensor(data=[math.sqrt(2 / self.R_MAX)])),
                  "cutoff_fn": Module("mace.modules.radial\nPolynomialCutoff", {}, p=Tensor(data=[5], kind="Long"))}
        if self.extras:
            radial["distance_transform"] = Module("mace.modules.radial\nAgnesiTransform", {}, q=Tensor(data=[0.9183]), p=Tensor(data=[4.5791]),
                                                  a=Tensor(data=[1.0805]), covalent_radii=Tensor(9, data=RADII))
        hidden = Module("mace.modules.blocks\nNonLinearReadoutBlock", {}, linear_1=self.linear(self.irreps(0), self.scalars(2 * n), 2 * n * K),
                        non_linearity=Module("e3nn.nn._activation\nActivation", {}, acts=modules([self.silu()])),
                        linear_2=self.linear(self.scalars(2 * n), self.scalars(n), 2 * n * n))
        readout = Module("mace.modules.blocks\nLinearReadoutBlock", {}, linear=self.linear(self.irreps(0, 1), self.scalars(n), n * K))
        inside = {"r_max": Tensor(data=[self.R_MAX]),
                  "node_embedding": Module("mace.modules.blocks\nLinearNodeEmbeddingBlock", {}, linear=self.linear(self.scalars(2), self.irreps(0), 2 * K)),
                  "radial_embedding": Module("mace.modules.blocks\nRadialEmbeddingBlock", {"apply_cutoff": not self.extras}, **radial),
                  "spherical_harmonics": Module("e3nn.o3._spherical_harmonics\nSphericalHarmonics",
                                                {"normalize": True, "normalization": "component", "irreps_out": irreps([(0, 1), (1, 1)], self.scripted)}),
                  "atomic_energies_fn": Module("mace.modules.blocks\nAtomicEnergiesBlock", {}, atomic_energies=Tensor(n, 2)),
                  "interactions": modules([self.interaction(False, (0,), (0, 1)), self.interaction(True, (0, 1), (0,))]),
                  "products": modules([self.product(False, (0, 1)), self.product(True, (0,))]), "readouts": modules([readout, hidden]),
                  "scale_shift": Module("mace.modules.blocks\nScaleShiftBlock", {}, scale=Tensor(n), shift=Tensor(n))}
        if self.extras:
            inside["pair_repulsion_fn"] = Module("mace.modules.radial\nZBLBasis", {}, c=Tensor(4, data=[0.1818, 0.5099, 0.2802, 0.02817]),
                                                 p=Tensor(data=[5], kind="Long"), covalent_radii=Tensor(9, data=RADII), a_exp=Tensor(data=[0.3]),
                                                 a_prefactor=Tensor(data=[0.4543]))
        attributes = {"heads": self.heads, "use_so3": False, "edge_irreps": None}
        if self.scripted:
            inside.update(atomic_numbers=Tensor(2, data=[1, 8], kind="Long"), num_interactions=Tensor(data=[2], kind="Long"))
        else:
            attributes["atomic_numbers"] = [numpy_whole(1), numpy_whole(8)]
        return Module("mace.modules.models\nScaleShiftMACE", attributes, **inside)


def write_maces(folder):
    write(f"{folder}/torch/mace.model", Mace(False, ["bulk", "cluster"], True, True).network().saved())
    wrapped = Record("__torch__\nWRAPPED_MACE", (), {"model": Mace(True, ["Default"], False, False).network().scripted()})
    code = "def forward(self, x):\n  return torch.mul(torch.silu(x), CONSTANTS.c0)\n"
    constants = TorchPickler()
    pickle = constants.whole_pickle((Tensor(1, data=[1.6791767923989418]),))
    more = [("constants.pkl", pickle), ("constants/Double", struct.pack("<d", *constants.stored["Double"])),
            ("code/__torch__/e3nn/math/_normalize_activation.py", code)]
    write(f"{folder}/torch/mace.pth", wrapped, more)


if __name__ == "__main__":
    write(f"{sys.argv[1]}/torch/sevennet.pth", sevennet())
    write_maces(sys.argv[1])
