#!/usr/bin/env python3
"""make_models.py - writes the tiny models of other programs that the fuzzers start from:  make_models.py corpus

torch/tiny.pth: two layers as NequIP deploys them; pickle/tiny: its pickles; nqx/tiny: two layers as Nequix saves them."""
import io, json, math, random, struct, sys, zipfile

random.seed(1)


def floats(n):
    return struct.pack(f"<{n}f", *(random.gauss(0, 1) for _ in range(n)))


# ---- pickles of protocol 2, with what TorchScript's need ----


class Global(str):
    pass


class Tensor:
    def __init__(self, *shape, data=None):
        self.shape, self.data = shape, data


class Object:
    def __init__(self, name, **attributes):
        self.name, self.attributes = Global(f"__torch__.{name}"), attributes


class Pickler:
    def __init__(self, folder):
        self.out, self.memo, self.folder, self.storages = io.BytesIO(), {}, folder, {}

    def whole(self, x):
        self.out.write(b"K" + bytes([x]) if 0 <= x < 256 else b"J" + struct.pack("<i", x))

    def remembered(self, text):
        if text in self.memo:
            self.out.write(b"h" + bytes([self.memo[text]]))
        elif isinstance(text, Global):
            self.out.write(b"c" + text.encode() + b"\n")
        else:
            self.out.write(b"X" + struct.pack("<I", len(text)) + text.encode())
        if text not in self.memo and len(self.memo) < 256:
            self.memo[text] = len(self.memo)
            self.out.write(b"q" + bytes([self.memo[text]]))

    def tuple(self, items):
        if len(items) > 3 or not items:
            self.out.write(b"(" if items else b")")
        for item in items:
            self.put(item)
        if items:
            self.out.write({1: b"\x85", 2: b"\x86", 3: b"\x87"}.get(len(items), b"t"))

    def tensor(self, t):
        n, key = math.prod(t.shape), str(len(self.storages))
        self.storages[f"{self.folder}/{key}"] = t.data or floats(n)
        strides = tuple(math.prod(t.shape[i + 1:]) for i in range(len(t.shape)))
        self.put(Global("torch._utils\n_rebuild_tensor_v2"))
        self.out.write(b"(")
        self.tuple(("storage", Global("torch\nFloatStorage"), key, "cpu", n))
        self.out.write(b"Q")
        for item in (0, tuple(t.shape), strides, False):
            self.put(item)
        self.put(Global("collections\nOrderedDict"))
        self.out.write(b")RtR")

    def object(self, o):
        self.put(Global(o.name))
        self.out.write(b")\x81}(")
        for key, item in o.attributes.items():
            self.put(key)
            self.put(item)
        self.out.write(b"ub")

    def put(self, v):
        if v is None:
            self.out.write(b"N")
        elif isinstance(v, bool):
            self.out.write(b"\x88" if v else b"\x89")
        elif isinstance(v, int):
            self.whole(v)
        elif isinstance(v, float):
            self.out.write(b"G" + struct.pack(">d", v))
        elif isinstance(v, str):
            self.remembered(v)
        elif isinstance(v, tuple):
            self.tuple(v)
        elif isinstance(v, list):
            self.out.write(b"](")
            for item in v:
                self.put(item)
            self.out.write(b"e")
        elif isinstance(v, Tensor):
            self.tensor(v)
        else:
            self.object(v)

    def whole_pickle(self, v):
        self.out.write(b"\x80\x02")
        self.put(v)
        self.out.write(b".")
        return self.out.getvalue()


# ---- NequIP ----

SILU = "e3nn.math._normalize_activation\nnormalize2mom"
E0, O1 = (0, 1), (1, -1)


def linear(inputs, outputs):
    """Of irreps ((channels, irrep), ...): one matrix for each irrep that both have."""
    pairs = [(i, j) for j, (_, b) in enumerate(outputs) for i, (_, a) in enumerate(inputs) if a == b]
    shapes = [(inputs[i][0], outputs[j][0]) for i, j in pairs]
    return Object("e3nn.o3._linear\nLinear", irreps_in=inputs, irreps_out=outputs, bias_numel=0, weight=Tensor(sum(a * b for a, b in shapes)),
                  instructions=[(i, j, s, 1 / math.sqrt(s[0])) for (i, j), s in zip(pairs, shapes)])


def activation():
    return Object("e3nn.nn._activation\nActivation", acts=Object("torch.nn.modules.container\nModuleList", **{"0": Object(SILU)}))


def product(features, paths, messages):
    """Paths (x, y, z)."""
    instructions = [(x, y, z, "uvu", True, math.sqrt(2 * messages[z][1][0] + 1)) for x, y, z in paths]
    return Object("e3nn.o3._tensor_product\nTensorProduct", irreps_in1=features, irreps_in2=((1, E0), (1, O1)), irreps_out=messages, instructions=instructions)


def radial(n_weights):
    def part(rows, columns, act):
        return Object("e3nn.nn._fc\n_Layer", h_in=float(rows), var_in=1.0, var_out=1.0, weight=Tensor(rows, columns), act=act)
    return Object("e3nn.nn._fc\nFullyConnectedNet", layer0=part(2, 3, Object(SILU)), layer1=part(3, n_weights, None))


def self_connection(features, outputs):
    pairs = [(i, j) for i, (_, a) in enumerate(features) for j, (_, b) in enumerate(outputs) if a == b]
    scale = [math.sqrt((2 * outputs[j][1][0] + 1) / (2 * features[i][0])) for i, j in pairs]
    return Object("e3nn.o3._tensor_product\nFullyConnectedTensorProduct", irreps_in1=features, irreps_in2=((2, E0),), irreps_out=outputs,
                  weight=Tensor(sum(2 * features[i][0] * outputs[j][0] for i, j in pairs)),
                  instructions=[(i, 0, j, "uvw", True, s) for (i, j), s in zip(pairs, scale)])


def layer(features, paths, messages, merged):
    gate_in, out = ((3, E0), (1, O1)), ((2, E0), (1, O1))
    conv = Object("nequip.nn._interaction_block\nInteractionBlock", use_sc=True, avg_num_neighbors=4.0, linear_1=linear(features, features),
                  linear_2=linear(merged, gate_in), tp=product(features, paths, messages), sc=self_connection(features, gate_in),
                  fc=radial(sum(features[x][0] for x, _, _ in paths)))
    gate = Object("e3nn.nn._gate\nGate", irreps_scalars=((2, E0),), irreps_gates=((1, E0),), irreps_gated=((1, O1),), _irreps_in=gate_in, _irreps_out=out,
                  act_scalars=activation(), act_gates=activation())
    return Object("nequip.nn._convnetlayer\nConvNetLayer", resnet=False, conv=conv, equivariant_nonlin=gate)


def nequip():
    hidden, r_max = ((2, E0), (1, O1)), 3.0
    basis = Object("nequip.nn.radial_basis\nBesselBasis", r_max=r_max, num_basis=2, prefactor=2 / r_max, bessel_weights=Tensor(2))
    cutoff = Object("nequip.nn.cutoffs\nPolynomialCutoff", p=6.0, _factor=1 / r_max)
    harmonics = Object("e3nn.o3._spherical_harmonics\nSphericalHarmonics", normalize=True, normalization="component")
    atomwise = "nequip.nn._atomwise\nAtomwiseLinear"
    network = Object(
        "nequip.nn._graph_mixin\nSequentialGraphNetwork", one_hot=Object("nequip.nn.embedding._one_hot\nOneHotAtomEncoding", num_types=2),
        spharm_edges=Object("nequip.nn.embedding._edge\nSphericalHarmonicEdgeAttrs", irreps_edge_sh=((1, E0), (1, O1)), sh=harmonics),
        radial_basis=Object("nequip.nn.embedding._edge\nRadialBasisEdgeEncoding", basis=basis, cutoff=cutoff),
        chemical_embedding=Object(atomwise, linear=linear(((2, E0),), ((2, E0),))),
        layer0_convnet=layer(((2, E0),), [(0, 0, 0), (0, 1, 1)], ((2, E0), (2, O1)), ((2, E0), (2, O1))),
        layer1_convnet=layer(hidden, [(0, 0, 0), (0, 1, 2), (1, 0, 3), (1, 1, 1)], ((2, E0), (1, E0), (2, O1), (1, O1)), ((3, E0), (3, O1))),
        conv_to_output_hidden=Object(atomwise, linear=linear(hidden, ((2, E0),))), output_hidden_to_scalar=Object(atomwise, linear=linear(((2, E0),), ((1, E0),))),
        per_species_rescale=Object("nequip.nn._atomwise\nPerSpeciesScaleShift", has_scales=True, scales=Tensor(2), has_shifts=True, shifts=Tensor(2)),
        total_energy_sum=Object("nequip.nn._atomwise\nAtomwiseReduce", reduce="sum", constant=1.0))
    gradient = Object("nequip.nn._grad_output\nGradientOutput", func=network)
    return Object("nequip.nn._rescale\nRescaleOutput", has_scale=True, has_shift=False, scale_by=Tensor(1, data=struct.pack("<f", 0.7)), model=gradient)


def write_nequip(folder):
    data, constants = Pickler("data"), Pickler("constants")
    pickles = [("data.pkl", data.whole_pickle(nequip())), ("constants.pkl", constants.whole_pickle((Tensor(1, data=struct.pack("<f", 1.7)),)))]
    code = "def forward(self, x):\n  return torch.mul(torch.silu(x), CONSTANTS.c0)\n"
    entries = list(data.storages.items()) + pickles + list(constants.storages.items())
    with zipfile.ZipFile(f"{folder}/torch/tiny.pth", "w") as z:
        def add(name, content, how=zipfile.ZIP_STORED):
            z.writestr(zipfile.ZipInfo(f"tiny/{name}"), content, how)
        for name, content in entries:
            add(name, content)
        add("code/__torch__/e3nn/math/_normalize_activation.py", code, zipfile.ZIP_DEFLATED)
        add("extra/type_names", "H O")
    with open(f"{folder}/pickle/tiny", "wb") as f:
        f.write(struct.pack("<I", len(pickles[0][1])) + pickles[0][1] + pickles[1][1])


# ---- Nequix ----


def npy(*shape):
    text = str({"descr": "<f4", "fortran_order": False, "shape": shape}).replace("}", ", }").encode()
    text += b" " * ((-11 - len(text)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + floats(math.prod(shape))


def write_nequix(folder):
    header = {"cutoff": 3.0, "atomic_numbers": [1, 8], "hidden_irreps": "2x0e + 1x1o", "lmax": 1, "n_layers": 2, "radial_basis_size": 2, "radial_mlp_size": 3,
              "radial_mlp_layers": 1, "radial_polynomial_p": 6.0, "index_weights": False, "layer_norm": True, "shift": 0.0, "scale": 1.0, "avg_n_neighbors": 10.0}
    first = [(2, 3), (3, 4), (2, 2), (2, 3), (2, 1), (2, 3), (3,), (1,)]
    last = [(2, 3), (3, 3), (2, 2), (1, 1), (3, 2), (2, 2), (2,)]
    with open(f"{folder}/nqx/tiny", "wb") as f:
        f.write(json.dumps(header).encode() + b"\n" + b"".join(npy(*shape) for shape in [(2,)] + first + last + [(2, 1)]))


if __name__ == "__main__":
    write_nequip(sys.argv[1])
    write_nequix(sys.argv[1])
