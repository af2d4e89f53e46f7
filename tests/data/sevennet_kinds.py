"""sevennet_kinds.py - small SevenNet models of random weights, and their results:  sevennet_kinds.py FOLDER [NAME ...]

Writes FOLDER/NAME.pth, checkpoints as sevenn saves them, and prints energies, forces and stress of
some structures in float64 as JSON, by sevenn's own modules. Was run with sevenn 0.13.0, e3nn 0.6.0,
torch 2.8.0 and numpy 2.4.6 for sevennet/ and sevennet_kinds_reference.json. Between them the models
have what the published ones of 2024 lack: parity, self-connections by species, several modalities in
each place that may have them, biases, a readout with activations, denominators of each layer, other
activations, irreps that are not listed, all 119 kinds of atoms."""
import copy
import json
import sys

import numpy as np
import torch
from ase.neighborlist import primitive_neighbor_list

import sevenn
import sevenn._const as const
import sevenn.nn.node_embedding as node_embedding
from sevenn.model_build import build_E3_equivariant_model
from sevenn.util import chemical_species_preprocess

XPLOR = {"cutoff_function_name": "XPLOR", "cutoff_on": 3.0}
MODAL = ["use_modal_self_inter_intro", "use_modal_self_inter_outro", "use_modal_output_block"]
KINDS = {
    # as SevenNet-MF-ompa: features of both parities, which not all layers have
    "parity": {
        "cutoff": 3.6, "cutoff_function": XPLOR, "is_parity": True, "lmax": 2, "modal": ["mpa", "omat24"],
        "irreps_manual": ["4x0e", "4x0e+3x1o+2x2e", "4x0e+2x1o+3x1e+2x2o", "5x0o+4x0e+3x1o+2x1e+2x2e", "4x0e"],
        "self_connection_type": "nequip", "shift": {"mpa": [-3.0, -5.5, -4.25], "omat24": [-2.5, -6.0, -4.5]}, "scale": 1.75,
        **{key: True for key in MODAL}, "use_modal_wise_shift": True},
    # all kinds of atoms, modalities everywhere, no parity
    "modal": {
        "cutoff": 3.2, "species": "univ", "is_parity": False, "lmax": 1, "modal": ["pbe", "scan", "hse"],
        "irreps_manual": ["4x0e", "4x0e+3x1e", "3x0e"], "self_connection_type": "linear",
        "shift": {"pbe": -1.5, "scan": -2.5, "hse": -3.25}, "scale": {"pbe": 30.0, "scan": 15.5, "hse": 40.0},
        **{key: True for key in MODAL}, "use_modal_node_embedding": True, "use_modal_wise_shift": True, "use_modal_wise_scale": True},
    # irreps by sevenn's rule, biases, a readout with activations, self-connections of both kinds
    "inferred": {
        "cutoff": 3.4, "cutoff_function": {"cutoff_function_name": "poly_cut", "poly_cut_p_value": 5}, "is_parity": True,
        "radial_basis": {"radial_basis_name": "bessel", "bessel_basis_num": 5}, "channel": 3, "lmax": 1, "lmax_edge": 2,
        "num_convolution_layer": 4, "self_connection_type": ["linear", "nequip", "nequip", "linear"], "use_bias_in_linear": True,
        "readout_as_fcn": True, "readout_fcn_hidden_neurons": [6, 5], "readout_fcn_activation": "tanh", "act_radial": "ssp",
        "act_scalar": {"e": "ssp", "o": "abs"}, "act_gate": {"e": "ssp", "o": "tanh"},
        "weight_nn_hidden_neurons": [7], "conv_denominator": [6.5, 4.25, 5.0, 3.5], "shift": -2.5, "scale": 1.25},
    # biases and modalities with a linear readout, shifts of elements
    "bias": {
        "cutoff": 3.4, "is_parity": True, "lmax": 1, "use_bias_in_linear": True, "modal": ["a", "b"],
        "irreps_manual": ["4x0e", "3x0e+2x1o", "4x0e+2x1o"], "self_connection_type": "nequip", "act_radial": "tanh",
        "shift": [-1.0, -2.0, -3.0], "scale": [1.0, 1.5, 0.5], **{key: True for key in MODAL}},
}
STRUCTURES = {
    "molecule": {"Z": [8, 1, 1], "pos": [[0.1, 0, 0], [0.2, 0.96, 0.1], [-0.9, -0.3, 0.2]]},
    "crystal": {
        "Z": [14, 8, 1, 14, 8], "cell": [[4.1, 0.2, -0.3], [0.9, 3.8, 0.1], [-0.4, 0.6, 3.1]],
        "pos": [[0.1, 0.2, 0.3], [1.7, 0.4, 0.8], [0.6, 2.1, 0.4], [2.2, 2.3, 1.9], [3.6, 1.2, 2.2]]},
    "atom": {"Z": [8], "pos": [[0, 0, 0]]},
}


def config_of(kind):
    """All settings, as sevenn makes them of input.yaml."""
    config = copy.deepcopy(const.DEFAULT_E3_EQUIVARIANT_MODEL_CONFIG)
    config.update({"version": sevenn.__version__, "conv_denominator": 5.5, "shift": 0.0, "scale": 1.0})
    config.update({"use_modal_wise_shift": False, "use_modal_wise_scale": False, "use_modality": False})
    config["radial_basis"] = {"radial_basis_name": "bessel", "bessel_basis_num": 4}
    config["weight_nn_hidden_neurons"] = [8]
    kind = dict(kind)
    species, modal = kind.pop("species", ["H", "O", "Si"]), kind.pop("modal", None)
    config.update(kind)
    if kind.get("irreps_manual"):
        config["num_convolution_layer"] = len(kind["irreps_manual"]) - 1
    config.update(chemical_species_preprocess([] if species == "univ" else species, universal=species == "univ"))
    if modal:
        names = {name: i for i, name in enumerate(modal)}
        config.update({"use_modality": True, "_modal_map": names, "_number_of_modalities": len(names)})
        for key in ("shift", "scale"):
            if isinstance(config[key], dict):
                for name, values in config[key].items():
                    if isinstance(values, list):
                        config[key][name] = [values[config["_type_map"][z]] if z in config["_type_map"] else 0.0 for z in range(119)]
    return config


def make(config, seed):
    torch.manual_seed(seed)
    model = build_E3_equivariant_model(copy.deepcopy(config))
    state = model.state_dict()
    for key, value in state.items():
        if key.endswith("bias"):
            value.copy_(torch.randn_like(value))
        if key.endswith("coeffs"):
            value.mul_(1 + 0.05 * torch.randn_like(value))
    return state


def one_hot(self, data):
    """OnehotEmbedding.forward, but for float()."""
    index = data[self.key_x]
    data[self.key_output] = torch.nn.functional.one_hot(index, self.num_classes).double()
    if self.key_additional_output is not None:
        data[self.key_additional_output] = data[self.key_output]
    if self.key_save is not None:
        data[self.key_save] = index
    return data


def in_double(config, state):
    torch.set_default_dtype(torch.float64)
    node_embedding.OnehotEmbedding.forward = one_hot
    model = build_E3_equivariant_model(copy.deepcopy(config)).double()
    missing, unused = model.load_state_dict({k: v for k, v in state.items() if "_w3j_" not in k}, strict=False)
    assert not unused and all("_w3j_" in key for key in missing), (missing, unused)
    torch.set_default_dtype(torch.float32)
    model.set_is_batch_data(True)
    model.eval_modal_map = False
    return model.eval()


def evaluate(model, config, structure, modality):
    z, pos = structure["Z"], np.array(structure["pos"], dtype=float)
    periodic = "cell" in structure
    cell = np.array(structure["cell"] if periodic else 100 * np.eye(3), dtype=float)
    i, j, shift = primitive_neighbor_list("ijS", [periodic] * 3, cell, pos, config["cutoff"], self_interaction=False)
    vectors = pos[j] - pos[i] + shift @ cell
    edges = torch.tensor(vectors.reshape(-1, 3), requires_grad=True)
    volume = abs(np.linalg.det(cell))
    data = {"atomic_numbers": torch.tensor(z), "x": torch.tensor(z), "pos": torch.tensor(pos), "edge_vec": edges,
            "edge_index": torch.tensor(np.array([i, j])), "num_atoms": torch.tensor([len(z)]), "batch": torch.zeros(len(z), dtype=torch.long),
            "cell_volume": torch.tensor([volume])}
    if modality:
        data["modal_type"] = torch.tensor([config["_modal_map"][modality]])
    out = model(data)
    result = dict(structure, pbc=[periodic] * 3, n_edges=len(i), E=out["inferred_total_energy"].item(),
                  E_atom=out["atomic_energy"].flatten().tolist(), F=out["inferred_force"].tolist() if len(i) else [[0.0] * 3] * len(z))
    if periodic:
        xx, yy, zz, xy, yz, zx = (-out["inferred_stress"].flatten()).tolist()
        result["stress"] = [[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]]
    return result


def main():
    folder, names = sys.argv[1], sys.argv[2:] or list(KINDS)
    results = {}
    for name in names:
        config = config_of(KINDS[name])
        state = make(config, 1 + list(KINDS).index(name))
        torch.save({"model_state_dict": state, "config": config, "epoch": 1}, f"{folder}/{name}.pth")
        model = in_double(config, state)
        for modality in config.get("_modal_map", {"": 0}) if config["use_modality"] else [""]:
            results[f"{name}:{modality}" if modality else name] = {
                key: evaluate(model, config, s, modality) for key, s in STRUCTURES.items()}
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
