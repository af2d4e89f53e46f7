"""esen_models.py - small eSEN models of random weights, and their results:  esen_models.py FAIRCHEM FOLDER

FAIRCHEM: a folder with the unpacked wheel of fairchem-core. Writes FOLDER/NAME.pt, in the layout of its
inference checkpoints, and prints energies, forces and stress in float64 as JSON, by its own modules; what
these take of its trainer stands in here. Was run with fairchem-core 2.24.0, e3nn 0.5.1, ase 3.26.0 and
torch 1.13.0."""
import json
import pickle
import sys
import types

import numpy as np
import torch
from ase.neighborlist import primitive_neighbor_list

STRUCTURES = {
    "molecule": {"charge": -1, "spin": 2, "Z": [8, 1, 1], "pos": [[0.1, 0, 0], [0.2, 0.96, 0.1], [-0.9, -0.3, 0.2]]},
    "crystal": {
        "charge": 0, "spin": 1, "Z": [14, 8, 1, 14, 8], "cell": [[4.1, 0.2, -0.3], [0.9, 3.8, 0.1], [-0.4, 0.6, 3.1]],
        "pos": [[0.1, 0.2, 0.3], [1.7, 0.4, 0.8], [0.6, 2.1, 0.4], [2.2, 2.3, 1.9], [3.6, 1.2, 2.2]]},
    "poles": {"charge": 1, "spin": 1, "Z": [8, 1, 1, 14], "pos": [[0, 0, 0], [0, 1.0, 0], [0, -1.1, 0], [1e-7, 2.4, 0]]},
    "atom": {"charge": 2, "spin": 3, "Z": [8], "pos": [[0, 0, 0]]},
}
COMMON = {"max_num_elements": 20, "cutoff": 3.5, "use_pbc": True, "otf_graph": False, "direct_forces": False, "regress_forces": True,
          "regress_stress": True, "norm_type": "rms_norm_sh", "act_type": "gate", "distance_function": "gaussian"}
KINDS = {
    "spectral": {"sphere_channels": 8, "hidden_channels": 6, "edge_channels": 5, "num_distance_basis": 12, "lmax": 2, "mmax": 2, "num_layers": 2,
                 "ff_type": "spectral", "chg_spin_emb_type": "pos_emb", "use_dataset_embedding": False},
    "cut": {"sphere_channels": 4, "hidden_channels": 5, "edge_channels": 6, "num_distance_basis": 70, "lmax": 3, "mmax": 1, "num_layers": 2,
            "ff_type": "spectral", "chg_spin_emb_type": "rand_emb", "dataset": "omat", "dataset_mapping": {"omat": "omat", "omol": "omol"}},
    "grid": {"sphere_channels": 4, "hidden_channels": 5, "edge_channels": 6, "num_distance_basis": 9, "lmax": 2, "mmax": 1, "num_layers": 1,
             "ff_type": "grid", "chg_spin_emb_type": "pos_emb", "dataset_mapping": {"omol": "omol"}},
}


def stand_ins(root):
    """The package without its trainer, graphs and parallel runs."""
    def module(name, path=None, **contents):
        m = sys.modules[name] = types.ModuleType(name)
        m.__dict__.update(contents)
        m.__path__ = [f"{root}/{name.replace('.', '/')}" if path is None else path]
        parent, _, child = name.rpartition(".")
        if parent in sys.modules:
            setattr(sys.modules[parent], child, m)

    core = "fairchem.core"
    for name in ("fairchem", core, f"{core}.common", f"{core}.models", f"{core}.models.uma"):
        module(name)
    for name in (f"{core}.common.parallelism", f"{core}.graph", f"{core}.units", f"{core}.units.mlip_unit", f"{core}.units.mlip_unit.api"):
        module(name, "")
    register = types.SimpleNamespace(register_model=lambda name: lambda cls: cls)
    module(f"{core}.common.gp_utils", "", initialized=lambda: False)
    module(f"{core}.common.parallelism.graph_parallel_a2a", "", GPContext=object, all_to_all_collect=None, build_gp_context=None,
           compute_a2a_partition=None)
    module(f"{core}.common.parallelism.graph_partition", "", PartitionStrategy=object)
    module(f"{core}.common.registry", "", registry=register)
    module(f"{core}.common.utils", "", conditional_grad=lambda decorator: lambda function: function)
    module(f"{core}.graph.compute", "", generate_graph=None)
    module(f"{core}.models.base", "", HeadInterface=object)
    checkpoint = type("MLIPInferenceCheckpoint", (), {"__module__": f"{core}.units.mlip_unit.api.inference"})
    module(f"{core}.units.mlip_unit.api.inference", "", validate_uma_atoms_data=None, MLIPInferenceCheckpoint=checkpoint)
    module(f"{core}.units.mlip_unit.mlip_unit", "", OutputSpec=object, Task=object)
    if not hasattr(torch, "compiler"):
        module("torch.compiler", "", disable=lambda function: function)


class Data(dict):
    def get(self, key, default=None):
        return dict.get(self, key, default)


def perturb(state):
    """What the program initializes to zeros or ones, or to little, is moved, so that it counts."""
    for key, value in state.items():
        if "norm" in key or "rad_func.net.1." in key or "rad_func.net.4." in key:
            value.add_(0.3 * torch.randn_like(value))
        elif key.endswith("bias") or "source_embedding" in key or "target_embedding" in key:
            value.copy_(torch.randn_like(value))


def evaluate(backbone, head, config, task, structure):
    if task["datasets"] != ["omol"]:
        structure = dict(structure, charge=0, spin=0)
    z, pos = structure["Z"], np.array(structure["pos"], dtype=float)
    periodic = "cell" in structure
    cell = np.array(structure["cell"] if periodic else 100 * np.eye(3), dtype=float)
    i, j, shift = primitive_neighbor_list("ijS", [periodic] * 3, cell, pos, config["cutoff"], self_interaction=False)
    data = Data(atomic_numbers=torch.tensor(z), natoms=torch.tensor([len(z)]), batch=torch.zeros(len(z), dtype=torch.long),
                pos=torch.tensor(pos), cell=torch.tensor(cell[None]), edge_index=torch.tensor(np.array([j, i])),
                cell_offsets=torch.tensor(shift.reshape(-1, 3)), nedges=torch.tensor([len(i)]), dataset=task["datasets"],
                charge=torch.tensor([float(structure["charge"])]), spin=torch.tensor([float(structure["spin"])]))
    out = head(data, backbone(data))
    rmsd, references = task["normalizer"]["rmsd"], task["element_references"]["element_references"]["_args_"][0]
    result = dict(structure, pbc=[periodic] * 3, n_edges=len(i), F=(rmsd * out["forces"]).tolist(),
                  E=rmsd * out["energy"].item() + task["normalizer"]["mean"] + sum(references[k] for k in z))
    if periodic:
        result["stress"] = (rmsd * out["stress"]).reshape(3, 3).tolist()
    return result


def results_of(seed, name, kind, folder):
    from fairchem.core.models.uma.escn_md import MLP_EFS_Head, eSCNMDBackbone
    from fairchem.core.units.mlip_unit.api.inference import MLIPInferenceCheckpoint
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(seed)
    config = dict(COMMON, **kind)
    dataset = config.pop("dataset", "omol")
    backbone = eSCNMDBackbone(**config)
    head = MLP_EFS_Head(backbone, wrap_property=False)
    state = {f"backbone.{key}": value for key, value in backbone.state_dict().items() if "Jd_" not in key}
    state.update({f"output_heads.efs.{key}": value for key, value in head.state_dict().items()})
    perturb(state)
    for value in state.values():
        value.copy_(value.float().double())
    references = [0.0] + [round(-1.5 * k, 2) for k in range(1, 20)]
    spec = "fairchem.core."
    task = {"_target_": f"{spec}units.mlip_unit.mlip_unit.Task", "name": f"{dataset}_energy", "level": "system", "property": "energy",
            "datasets": [dataset], "normalizer": {"_target_": f"{spec}modules.normalization.normalizer.Normalizer", "mean": 0.0, "rmsd": 1.75},
            "element_references": {"_target_": f"{spec}modules.normalization.element_references.ElementReferences",
                                   "element_references": {"_target_": "torch.DoubleTensor", "_args_": [references]}}}
    models = f"{spec}models.uma.escn_md"
    saved = MLIPInferenceCheckpoint()
    saved.model_config = {"_target_": f"{spec}models.base.HydraModel", "backbone": dict(config, model=f"{models}.eSCNMDBackbone"),
                          "heads": {"efs": {"module": f"{models}.MLP_EFS_Head"}}}
    saved.model_state_dict = {}
    saved.ema_state_dict = {"n_averaged": torch.tensor(1)}
    saved.ema_state_dict.update({f"module.{key}": value.float() for key, value in state.items()})
    saved.tasks_config = [task]
    torch.save(saved, f"{folder}/{name}.pt", pickle_module=pickle)
    return {key: evaluate(backbone, head, config, task, s) for key, s in STRUCTURES.items()}


def main():
    folder = sys.argv[2]
    stand_ins(sys.argv[1])
    print(json.dumps({name: results_of(seed, name, kind, folder) for seed, (name, kind) in enumerate(KINDS.items())}, indent=1))


if __name__ == "__main__":
    main()
