"""equflash_kinds.py - small EquFlash models of random weights, and their results:  equflash_kinds.py EQUFLASH FOLDER

EQUFLASH: a folder with the unpacked wheel of equflash. Writes FOLDER/equflash_NAME.pth, in the layout
of its trainer, and prints energies, forces and stress in float64 as JSON, by its own modules; what
they take of fairchem (a register of names) stands in here. Was run with equflash 0.0.2, e3nn 0.6.0,
cuequivariance 0.6.0, torch 2.8.0 and numpy 2.4.6."""
import copy
import json
import sys
import types

import numpy as np
import torch
from ase.neighborlist import primitive_neighbor_list

from sevennet_kinds import STRUCTURES

COMMON = {"name": "equflash", "cutoff": 3.5, "radial_basis": {"radial_basis_name": "bessel", "bessel_basis_num": 4}, "type_map": {1: 0, 8: 1, 14: 2},
          "act_scalar": {"e": "silu", "o": "tanh"}, "act_gate": {"e": "silu", "o": "tanh"}, "act_radial": "silu", "weight_nn_hidden_neurons": [8],
          "conv_denominator": 4.5, "scale": 1.5, "shift": -2.25, "normalize_sph": True, "self_connection": "linear"}
KINDS = {
    "even": {"channel": 4, "lmax": 2, "num_convolution_layer": 2, "is_parity": False, "conv_kwargs": {"conv_type": "e3nn"},
             "cutoff_function": {"cutoff_function_name": "XPLOR", "cutoff_on": 3.0}},
    "feed_forward": {"channel": 3, "lmax": 1, "num_convolution_layer": 4, "is_parity": True, "feed_forward": True, "use_bias_in_linear": True,
                     "conv_kwargs": {"conv_type": "e3nn"}, "cutoff_function": {"cutoff_function_name": "poly_cut", "poly_cut_p_value": 6}},
}
FULL, COMMON_V2 = {"weight_nn_layers": [6], "denominator": 4.5}, {key: COMMON[key] for key in ("cutoff", "radial_basis", "type_map", "scale", "shift")}
KINDS_V2 = {
    "v2_gate": {"channel": 4, "lmax": 2, "num_convolution_layer": 2, "is_parity": False,
                "interaction_kwargs": {"sc_type": "identity", "conv_type": "full", "conv_kwargs": FULL, "nonlinear_type": "gate",
                                       "nonlinear_kwargs": {"irreps_scale": 1.5}},
                "feedforward_kwargs": {"nonlinear_type": "gate", "nonlinear_kwargs": {"irreps_scale": 2}},
                "cutoff_function": {"cutoff_function_name": "poly_cut", "poly_cut_p_value": 6}},
    "v2_bilinear": {"channel": 3, "lmax": 1, "num_convolution_layer": 4, "is_parity": True,
                    "interaction_kwargs": {"sc_type": "identity", "conv_type": "full", "conv_kwargs": FULL, "nonlinear_type": "bilinear_gate"},
                    "feedforward_kwargs": {"sc_type": "linear", "nonlinear_type": "bilinear_gate", "nonlinear_kwargs": {"irreps_scale": 2}},
                    "cutoff_function": {"cutoff_function_name": "XPLOR", "cutoff_on": 3.0}},
    "v2_nequip": {"channel": 3, "lmax": 1, "num_convolution_layer": 2, "is_parity": True, "interaction_type": "nequip",
                  "interaction_kwargs": {"sc_type": "linear", "conv_kwargs": FULL, "nonlinear_type": "gate"},
                  "feedforward_kwargs": {"nonlinear_type": "gate"},
                  "cutoff_function": {"cutoff_function_name": "poly_cut", "poly_cut_p_value": 6}},
    "v2_efficient": {"channel": 3, "lmax": 2, "num_convolution_layer": 2, "is_parity": True, "feedforward_type": "identity",
                     "interaction_kwargs": {"sc_type": "linear", "conv_type": "efficient", "conv_kwargs": FULL, "nonlinear_type": "gate"},
                     "cutoff_function": {"cutoff_function_name": "poly_cut", "poly_cut_p_value": 6}},
}


def stand_ins(folder):
    """Modules of the wheel without its trainer, and without fairchem."""
    for name in ("fairchem", "fairchem.core", "fairchem.core.common"):
        sys.modules[name] = types.ModuleType(name)
    registry, utils = types.ModuleType("registry"), types.ModuleType("utils")
    registry.registry = types.SimpleNamespace(register_model=lambda name: lambda cls: cls)
    utils.conditional_grad = lambda decorator: lambda function: function
    sys.modules.update({"fairchem.core.common.registry": registry, "fairchem.core.common.utils": utils})
    for name in ("GGNN", "GGNN.model", "GGNN.model.EquFlash", "GGNN.model.EquFlashV2"):
        module = sys.modules[name] = types.ModuleType(name)
        module.__path__ = [f"{folder}/{name.replace('.', '/')}"]


def naive_products():
    """cuEquivariance's products without its kernels, which need a GPU."""
    import cuequivariance_torch as cuet
    original = cuet.SegmentedPolynomial

    def naive(polynomial, math_dtype=None, method=None):
        product = original(polynomial, math_dtype=math_dtype, method="naive")
        product.m.buffer_num_segments, product.m.operand_extent = [0], 0  # the models multiply these, and use them for nothing
        return product
    cuet.SegmentedPolynomial = naive


def one_hot(self, batch):
    """OneHotNodeEmbedding.forward, but for float()."""
    mapper = self.type_map[batch["atomic_numbers"].long()]
    batch["x"] = self.input_linear(torch.nn.functional.one_hot(mapper, self.num_species).double())
    batch["atom_mapper"] = mapper
    return batch


def evaluate(model, config, structure):
    z, pos = structure["Z"], np.array(structure["pos"], dtype=float)
    periodic = "cell" in structure
    cell = np.array(structure["cell"] if periodic else 100 * np.eye(3), dtype=float)
    i, j, shift = primitive_neighbor_list("ijS", [periodic] * 3, cell, pos, config["cutoff"], self_interaction=False)
    vectors = (pos[j] - pos[i] + shift @ cell).reshape(-1, 3)
    out = model({"atomic_numbers": torch.tensor(z), "natoms": torch.tensor([len(z)]), "batch": torch.zeros(len(z), dtype=torch.long),
                 "edge_vec": torch.tensor(vectors), "edge_index": torch.tensor(np.array([i, j])), "cell": torch.tensor(cell[None])})
    result = dict(structure, pbc=[periodic] * 3, n_edges=len(i), E=out["energy"].item(), E_atom=out["atomic_energy"].flatten().tolist(),
                  F=out["forces"].tolist())
    if periodic:
        result["stress"] = out["stress"].reshape(3, 3).tolist()
    return result


def perturb(state):
    """What the program initializes to zeros or ones is moved, so that it counts."""
    for key, value in state.items():
        if key.endswith(("bias", "affine_weight")):
            value.add_(0.3 * torch.randn_like(value) if key.endswith("weight") else torch.randn_like(value))
        if key.endswith("coeffs"):
            value.mul_(1 + 0.05 * torch.randn_like(value))


def results_of(seed, name, config, EquFlash, folder):
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(seed)
    # without constants of cuEquivariance's products, which only naive ones have, and in single precision
    state = {key: value for key, value in EquFlash(copy.deepcopy(config)).state_dict().items() if ".graphs." not in key}
    perturb(state)
    torch.save({"state_dict": {f"module.{key}": value for key, value in state.items()}, "normalizers": {}, "elementrefs": {},
                "config": {"trainer": "default", "model": config}, "val_metrics": None, "amp": None}, f"{folder}/equflash_{name}.pth")
    torch.set_default_dtype(torch.float64)
    model = EquFlash(copy.deepcopy(config)).double()
    constants = ("_w3j_", "balance_degree", ".graphs.")
    missing, unused = model.load_state_dict({key: value for key, value in state.items() if not any(c in key for c in constants)}, strict=False)
    assert not unused and all(any(c in key for c in constants) for key in missing), (missing, unused)
    return {key: evaluate(model.eval(), config, s) for key, s in STRUCTURES.items()}


def main():
    stand_ins(sys.argv[1])
    naive_products()
    from GGNN.model.EquFlash.equflash import EquFlash
    from GGNN.model.EquFlash.nn.node_embedding import OneHotNodeEmbedding
    from GGNN.model.EquFlashV2.equflash_v2 import EquFlashV2
    OneHotNodeEmbedding.forward = one_hot
    kinds = [(name, {**COMMON, **kind}, EquFlash) for name, kind in KINDS.items()]
    kinds += [(name, {"name": "equflashv2", **COMMON_V2, **kind}, EquFlashV2) for name, kind in KINDS_V2.items()]
    results = {f"equflash_{kinds[i][0]}": results_of(i, *kinds[i], sys.argv[2]) for i in range(len(kinds))}
    print(json.dumps(results, separators=(",", ":")))


if __name__ == "__main__":
    main()
