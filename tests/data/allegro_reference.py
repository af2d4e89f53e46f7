#!/usr/bin/env python3
"""Writes small Allegro models of random weights, and the results of their own program.

Run with nequip-allegro 0.8.3, nequip 0.19.1, e3nn 0.6.0, torch 2.8.0 and lightning 2.6.6:
  allegro_reference.py tests/data                 writes allegro/* and allegro_reference.json
  allegro_reference.py FOLDER NAME STRUCTURE.xyz  writes one model, and its results for a structure
Packages and checkpoints are as nequip_models.py makes them, and model files are written here, without
what converts the former.  Structures are those of mace_kinds_reference.json, an atom alone, and a slab.
"""
import json, math, pathlib, sys

import numpy as np
import torch
from nequip.data import AtomicDataDict, compute_neighborlist_, from_dict
from nequip.utils.global_state import set_global_state
from allegro.model import AllegroModel

import nequip_models

BESSEL = {"_target_": "allegro.nn.TwoBodyBesselScalarEmbed", "num_bessels": 5,
          "polynomial_cutoff_p": 6}
SPLINE = {"_target_": "allegro.nn.TwoBodySplineScalarEmbed", "num_splines": 8, "spline_span": 5}
SMALL = dict(seed=1, type_names=["H", "O", "Si"], r_max=4.0, l_max=2, parity=True, radial_chemical_embed=BESSEL,
             num_layers=2, num_scalar_features=8, num_tensor_features=4, scalar_embed_mlp_hidden_layers_width=6,
             allegro_mlp_hidden_layers_width=10, readout_mlp_hidden_layers_width=5, avg_num_neighbors=11.3,
             per_type_energy_scales={"H": 1.2, "O": 0.8, "Si": 0.9},
             per_type_energy_shifts={"H": -3.5, "O": -7.25, "Si": 1.5})
MODELS = {
    "bessel": SMALL,
    # as deep as a latent network gets, and linear ones; one weight of a path for all channels
    "deep": dict(SMALL, seed=2, l_max=1, num_layers=3, allegro_mlp_hidden_layers_depth=2, parity=False,
                 scalar_embed_mlp_hidden_layers_depth=2, scalar_embed_mlp_nonlinearity=None,
                 readout_mlp_hidden_layers_depth=0, tp_path_channel_coupling=False, radial_chemical_embed_dim=6,
                 forward_normalize=False, per_type_energy_scales_trainable=True,
                 radial_chemical_embed=dict(BESSEL, bessel_trainable=True)),
    # cutoffs of pairs of types, and repulsion of nuclei
    "pairs": dict(SMALL, seed=5, l_max=1, num_layers=1,
                     per_edge_type_cutoff={"H": 2.5, "O": {"H": 3.0, "Si": 3.5}},
                     pair_potential={"_target_": "nequip.nn.pair_potential.ZBL", "units": "metal",
                                     "chemical_species": ["H", "O", "Si"]}),
    # the spline embedding, neighbours of types, cutoffs of pairs, and repulsion
    "spline": dict(SMALL, seed=6, l_max=1, avg_num_neighbors={"H": 4.5, "O": 9.0, "Si": 12.5}, num_layers=1, radial_chemical_embed=SPLINE,
                   radial_chemical_embed_dim=5, per_edge_type_cutoff={"H": 2.5, "O": {"H": 3.0}},
                   pair_potential={"_target_": "nequip.nn.pair_potential.ZBL", "units": "metal",
                                   "chemical_species": ["H", "O", "Si"]}),
    "odd": dict(SMALL, seed=3, l_max=3, num_layers=1, num_tensor_features=3, r_max=3.5),
}
ORIGINALS = {"deep": True, "pairs": False, "spline": False}  # kept as the program has them; with moving averages?
# By hand, too large to be kept: hyperparameters as in the documentation's large models.
BY_HAND = {
    "large": dict(SMALL, seed=4, r_max=6.0, l_max=3, num_layers=3, num_scalar_features=128, num_tensor_features=64,
                  scalar_embed_mlp_hidden_layers_width=128, allegro_mlp_hidden_layers_depth=2,
                  allegro_mlp_hidden_layers_width=128, readout_mlp_hidden_layers_width=64,
                  radial_chemical_embed=dict(BESSEL, num_bessels=8)),
}


def irreps(mul, terms):
    return "+".join(f"{mul}x{ir.l}{'e' if ir.p > 0 else 'o'}" for _, ir in terms)


class File:
    """A model file, from the modules of a model."""

    def __init__(self, model, arguments):
        self.tensors, self.words = {}, {}
        self.modules = model.model.func  # its dictionary of modules
        self.arguments = arguments
        self.read()

    def say(self, **words):
        self.words.update({k: str(v) for k, v in words.items()})

    def put(self, name, tensor):
        self.tensors[name] = np.ascontiguousarray(tensor.detach().double().numpy())

    def matrices(self, mlp):
        """Matrices that are divided by the root of their rows, and by that of the activation's scale."""
        if hasattr(mlp, "mlp") and hasattr(mlp.mlp, "weights"):  # linear: alpha is that of all
            n = len(mlp.mlp.weights)
            each = [w * mlp.mlp.alpha ** (1 / n) for w in mlp.mlp.weights]
        else:
            each = [m.weight * m.alpha for m in mlp.mlp if hasattr(m, "weight")]
        scale = math.sqrt(2) if mlp.is_nonlinear else 1
        return [w * math.sqrt(w.shape[0]) / (scale if k else 1) for k, w in enumerate(each)]

    def network(self, key, mlp):
        hidden = mlp.num_layers - 1
        self.say(**{f"{key}_layers": hidden})
        if hidden:
            self.say(**{f"{key}_activation": "silu" if mlp.is_nonlinear else "none"})
            if mlp.is_nonlinear:
                self.say(**{f"{key}_activation_scale": repr(math.sqrt(2))})

    def degrees_first(self, w, channels):
        """Columns [channel][degree] become [degree][channel]."""
        return w.reshape(w.shape[0], channels, -1).transpose(1, 2).reshape(w.shape[0], -1)

    def read(self):
        a, m = self.arguments, self.modules
        allegro, channels = m.allegro, a["num_tensor_features"]
        terms = allegro._env_weighter
        sh = m.tensor_embed.sh.irreps_out
        self.say(format="clebsch model", format_version=1, architecture="allegro", species=" ".join(a["type_names"]),
                 r_max=a["r_max"], irreps_sh=irreps(1, sh), l_max=a["l_max"], n_layers=a["num_layers"],
                 n_scalars=a["num_scalar_features"], n_channels=channels, avg_num_neighbors=a["avg_num_neighbors"],
                 energy_scale=1)
        self.two_body(m.radial_chemical_embed)
        embed = m.scalar_embed_mlp.mlp_module
        self.network("two_body", embed)
        *hidden, last = self.matrices(embed)
        for k, w in enumerate(hidden):
            self.put(f"two_body.{k}", w)
        self.put("pairs", last)
        self.put("tensors", self.degrees_first(self.matrices(m.tensor_embed.env_embed_linear)[0], channels))
        n_scalars = a["num_scalar_features"]
        (first,) = self.matrices(allegro.first_layer_env_embed_projection)
        self.put("scalars", first[:, :n_scalars])
        self.put("layers.0.environment", self.degrees_first(first[:, n_scalars:], channels))
        for n, (tp, latent) in enumerate(zip(allegro.tps, allegro.latents)):
            self.layer(n, tp, latent, n_scalars, channels)
        readout = m.edge_readout.mlp_module
        self.network("readout", readout)
        *hidden, last = self.matrices(readout)
        for k, w in enumerate(hidden):
            self.put(f"readout.{k}", w)
        self.put("energy", last)
        scale_shift = m.per_type_energy_scale_shift
        self.put("species_scale", scale_shift.scales.reshape(-1))
        self.put("species_shift", scale_shift.shifts.reshape(-1))

    def two_body(self, embed):
        cutoff = embed.bessel_encode.cutoff
        types = embed.type_embed
        self.say(radial_basis="bessel", n_basis=embed.bessel_encode.num_bessels, cutoff="polynomial",
                 cutoff_p=int(cutoff.p), n_embedding=types.center_embed.weight.shape[1])
        self.put("bessel_frequencies", embed.bessel_encode.bessel_weights.reshape(-1) * math.pi)
        self.put("embedding.receiver", types.center_embed.weight)
        self.put("embedding.sender", types.neighbor_embed.weight)
        self.put("radial", self.matrices(types.basis_linear)[0])

    def layer(self, n, tp, latent, n_scalars, channels):
        paths = [(i, j, k) for k, (_, c) in enumerate(tp.irreps_out) for i, (_, a) in enumerate(tp.irreps_in1)
                 for j, (_, b) in enumerate(tp.irreps_in2) if c in a * b]
        assert len(paths) == tp.num_paths
        self.say(**{f"layers.{n}.irreps_in": irreps(channels, tp.irreps_in1),
                    f"layers.{n}.irreps_out": irreps(channels, tp.irreps_out),
                    f"layers.{n}.paths": " ".join(",".join(map(str, p)) for p in paths)})
        weights = tp.weights.reshape(channels if tp.path_channel_coupling else 1, -1)
        self.put(f"layers.{n}.product", weights.expand(channels, -1).T)
        self.network("latent", latent)
        *hidden, last = self.matrices(latent)
        for k, w in enumerate(hidden):
            self.put(f"layers.{n}.latent.{k}", w)
        self.put(f"layers.{n}.scalars", last[:, :n_scalars])
        if last.shape[1] > n_scalars:
            self.put(f"layers.{n + 1}.environment", self.degrees_first(last[:, n_scalars:], channels))

    def write(self, path):
        header, at = {"__metadata__": self.words}, 0
        for name, x in self.tensors.items():
            header[name] = {"dtype": "F64", "shape": list(x.shape), "data_offsets": [at, at + x.nbytes]}
            at += x.nbytes
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as f:
            f.write(len(text).to_bytes(8, "little") + text)
            for x in self.tensors.values():
                f.write(x.tobytes())


def build(arguments):
    return AllegroModel(model_dtype="float64", **arguments)


NUMBERS = {"H": 1, "O": 8, "Si": 14}


def results(model, arguments, z, pos, cell, pbc):
    types = {NUMBERS[s]: t for t, s in enumerate(arguments["type_names"])}
    data = dict(pos=np.array(pos, dtype=float), atom_types=np.array([types[i] for i in z]),
                pbc=torch.tensor(pbc))
    if cell is not None:
        data["cell"] = np.array(cell, dtype=float)
    data = compute_neighborlist_(from_dict(data), arguments["r_max"])
    n_edges = int(data[AtomicDataDict.EDGE_INDEX_KEY].shape[1])
    out = model(data)
    r = dict(Z=list(map(int, z)), pos=np.array(pos).tolist(), cell=None if cell is None else np.array(cell).tolist(),
             pbc=list(map(bool, pbc)), n_edges=n_edges, E=float(out["total_energy"].reshape(())),
             E_atom=out["atomic_energy"].reshape(-1).tolist(), F=out["forces"].tolist())
    if any(pbc):
        r["stress"] = out["stress"].reshape(3, 3).tolist()
    return r


def structures(folder):
    given = json.loads((folder / "mace_kinds_reference.json").read_text())["heads"]
    found = {name: (s["Z"], s["pos"], s["cell"], s["pbc"]) for name, s in given.items()}
    found["alone"] = ([8], [[0.1, 0.2, 0.3]], None, [False] * 3)
    z, pos, cell, _ = found["SiO2_9"]
    found["slab"] = (z, pos, (np.array(cell) * [[1], [1], [2.5]]).tolist(), [True, True, False])
    return found


def main():
    set_global_state()
    torch.set_default_dtype(torch.float64)
    folder = pathlib.Path(sys.argv[1])
    if len(sys.argv) > 2:
        import ase.io

        name, atoms = sys.argv[2], ase.io.read(sys.argv[3])
        arguments = {**MODELS, **BY_HAND}[name]
        m = nequip_models.module("allegro.model.AllegroModel", dict(arguments, model_dtype="float64"), False)
        model = nequip_models.save(m, folder / name)
        r = results(model, arguments, atoms.numbers, atoms.positions, atoms.cell.array, atoms.pbc)
        (folder / f"{name}.json").write_text(json.dumps(r))
        return
    all_results = {}
    nequip_models.without_code()
    (folder / "allegro").mkdir(exist_ok=True)
    for name, arguments in MODELS.items():
        if name in ORIGINALS:
            target = "allegro.model.AllegroModel"
            m = nequip_models.module(target, dict(arguments, model_dtype="float64"), ORIGINALS[name])
            model = nequip_models.save(m, folder / "allegro" / name)
        else:
            model = build(arguments)
            File(model, arguments).write(folder / "allegro" / f"{name}.safetensors")
        all_results[name] = {s: results(model, arguments, *of) for s, of in structures(folder).items()}
    (folder / "allegro_reference.json").write_text(json.dumps(all_results))


if __name__ == "__main__":
    main()
