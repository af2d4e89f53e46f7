"""Models of the original programs with the hyperparameters of published ones, and random weights, for originals.py.

open_NAME(model, folder) gives the program's model, the file that it was saved in, and what `clebsch convert` needs besides.
Of EquFlashV2 and Allegro no hyperparameters are published: sizes are chosen here."""
import copy
import pathlib
import sys

import numpy as np
import torch

TESTS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data"
HEAVY = list(range(1, 84)) + list(range(89, 95))

# ---- MACE ----

GATED = "RealAgnosticResidualNonLinearInteractionBlock"
HEADS = ["omat_pbe", "matpes_r2scan", "oc20_usemppbe", "omol", "spice_wB97M", "mp_pbe_refit_add"]
STATE = {"type": "categorical", "per": "graph", "emb_dim": 1024}
MACE = {
    "MACE-OMOL-0": dict(
        num_interactions=3, hidden_irreps="1024x0e+1024x1o+1024x2e", edge_irreps="128x0e+128x1o+128x2e", elements=HEAVY[:83], correlation=2,
        num_bessel=8, radial_MLP=[128] * 3, avg_num_neighbors=30.0, heads=["omol"], apply_cutoff=False, use_agnostic_product=True,
        use_last_readout_only=True, use_embedding_readout=True, readout_cls="NonLinearBiasReadoutBlock",
        embedding_specs={"total_charge": dict(STATE, num_classes=201, offset=100), "total_spin": dict(STATE, num_classes=101, offset=0)}),
    "MACE-MH-1": dict(
        num_interactions=2, hidden_irreps="512x0e+512x1o", edge_irreps="128x0e+128x1o", elements=HEAVY, correlation=2, num_bessel=10,
        radial_MLP=[64] * 3, avg_num_neighbors=45.0, heads=HEADS, distance_transform="Agnesi", pair_repulsion=True, use_agnostic_product=True),
    "MACE-MH-0": dict(
        num_interactions=2, hidden_irreps="128x0e+128x1o", elements=HEAVY, correlation=3, num_bessel=10, radial_MLP=[64] * 3,
        avg_num_neighbors=45.0, heads=HEADS, distance_transform="Agnesi", pair_repulsion=True),
}


def open_mace(name, folder):
    from e3nn import o3
    from mace import modules
    s = dict(MACE[name])
    rng, elements, heads = np.random.RandomState(1), s.pop("elements"), s["heads"]
    for key in ("hidden_irreps", "edge_irreps"):
        if key in s:
            s[key] = o3.Irreps(s[key])
    if "readout_cls" in s:
        s["readout_cls"] = getattr(modules.blocks, s["readout_cls"])
    interaction = modules.interaction_classes[GATED]
    torch.manual_seed(1)
    model = modules.ScaleShiftMACE(
        r_max=6.0, interaction_cls=interaction, interaction_cls_first=interaction, num_elements=len(elements), atomic_numbers=elements,
        MLP_irreps=o3.Irreps("16x0e"), gate=torch.nn.functional.silu, max_ell=3, num_polynomial_cutoff=5, use_reduced_cg=False,
        atomic_energies=np.round(-rng.uniform(1, 12, (len(heads), len(elements))), 4), atomic_inter_scale=[0.8] * len(heads),
        atomic_inter_shift=[0.1] * len(heads), **s).eval()
    file = folder / f"{name}.model"
    torch.save(model, file)
    return model, file, ["--head", heads[0]] if len(heads) > 1 else []


# ---- SevenNet: MF-ompa's and Omni's layers, and Omni-i12's ----

NATURAL = "128x0e+64x1o+32x2e+32x3o"
BOTH = "128x0e+64x1o+64x1e+32x2o+32x2e+32x3o+32x3e"
SEVENNET = {"SevenNet-Omni": ["128x0e", NATURAL, BOTH, "128x0o+" + BOTH, NATURAL, "128x0e"],
            "SevenNet-Omni-i12": ["128x0e"] + [NATURAL] * 11 + ["128x0e"]}
MODALITIES = [f"m{i}" for i in range(13)]


def open_sevennet(name, folder):
    """The file alone: its calculator opens it."""
    import sevenn._const as const
    from sevenn.model_build import build_E3_equivariant_model
    from sevenn.util import chemical_species_preprocess
    import sevenn
    config = copy.deepcopy(const.DEFAULT_E3_EQUIVARIANT_MODEL_CONFIG)
    config.update({
        "version": sevenn.__version__, "cutoff": 6.0, "channel": 128, "lmax": 3, "lmax_edge": -1, "lmax_node": -1, "is_parity": True,
        "irreps_manual": SEVENNET[name], "num_convolution_layer": len(SEVENNET[name]) - 1,
        "radial_basis": {"radial_basis_name": "bessel", "bessel_basis_num": 8},
        "cutoff_function": {"cutoff_function_name": "XPLOR", "cutoff_on": 5.5}, "weight_nn_hidden_neurons": [64, 64], "act_radial": "silu",
        "act_scalar": {"e": "silu", "o": "tanh"}, "act_gate": {"e": "silu", "o": "tanh"}, "conv_denominator": 35.0, "shift": -3.0, "scale": 1.7,
        "self_connection_type": "nequip", "use_bias_in_linear": False, "use_modal_node_embedding": False, "use_modal_self_inter_intro": True,
        "use_modal_self_inter_outro": True, "use_modal_output_block": True, "use_modal_wise_shift": False, "use_modal_wise_scale": False,
        "use_modality": True, "_modal_map": {m: i for i, m in enumerate(MODALITIES)}, "_number_of_modalities": len(MODALITIES)})
    config.update(chemical_species_preprocess([], universal=True))
    torch.manual_seed(1)
    file = folder / f"{name}.pth"
    torch.save({"model_state_dict": build_E3_equivariant_model(copy.deepcopy(config)).state_dict(), "config": config, "epoch": 1}, file)
    return None, file, ["--modality", MODALITIES[1]]


# ---- NequIP's presets, and Allegro ----

def nequip_arguments(name):
    from ase.data import chemical_symbols
    types = [chemical_symbols[z] for z in HEAVY]
    common = dict(seed=7, model_dtype="float32", r_max=6.0, type_names=types, avg_num_neighbors=60.0, per_type_energy_scales=0.9,
                  per_type_energy_shifts={t: -0.1 * i for i, t in enumerate(types)})
    if name == "Allegro":
        return "allegro.model.AllegroModel", dict(
            common, l_max=3, parity=True, num_layers=3, num_scalar_features=128, num_tensor_features=64, scalar_embed_mlp_hidden_layers_width=128,
            allegro_mlp_hidden_layers_depth=2, allegro_mlp_hidden_layers_width=128, readout_mlp_hidden_layers_width=64,
            radial_chemical_embed={"_target_": "allegro.nn.TwoBodyBesselScalarEmbed", "num_bessels": 8, "polynomial_cutoff_p": 6})
    zbl = {"_target_": "nequip.nn.pair_potential.ZBL", "units": "metal", "chemical_species": types}
    return "nequip.model.PresetNequIPGNNModel", dict(common, preset=name.rsplit("-")[-1], pair_potential=zbl)


def open_nequip(name, folder, compiled=False):
    from hydra.utils import get_method
    from nequip.utils.global_state import set_global_state
    sys.path.append(str(TESTS))
    import nequip_models
    set_global_state()
    target, arguments = nequip_arguments(name)
    file = folder / f"{name}.ckpt"
    nequip_models.save_checkpoint(nequip_models.module(target, arguments, False), str(file))
    return get_method(target)(**arguments, **({"compile_mode": "compile"} if compiled else {})), file, []


# ---- EquFlashV2 ----

def open_equflash(name, folder):
    from GGNN.model.EquFlashV2.equflash_v2 import EquFlashV2
    gate = "bilinear_gate" if "bilinear" in name else "gate"
    config = {
        "name": "equflashv2", "cutoff": 6.0, "radial_basis": {"radial_basis_name": "bessel", "bessel_basis_num": 8},
        "type_map": {z: i for i, z in enumerate(HEAVY)}, "scale": 1.5, "shift": -3.0, "channel": 128, "lmax": 3, "num_convolution_layer": 6,
        "is_parity": False, "cutoff_function": {"cutoff_function_name": "poly_cut", "poly_cut_p_value": 6},
        "interaction_kwargs": {"sc_type": "identity", "conv_type": "full", "conv_kwargs": {"weight_nn_layers": [64, 64], "denominator": 35.0},
                               "nonlinear_type": gate},
        "feedforward_kwargs": {"nonlinear_type": gate, "nonlinear_kwargs": {"irreps_scale": 2}}}
    torch.manual_seed(1)
    model = EquFlashV2(copy.deepcopy(config))
    file = folder / f"{name}.pth"
    state = {f"module.{key}": value for key, value in model.state_dict().items() if ".graphs." not in key}
    torch.save({"state_dict": state, "normalizers": {}, "elementrefs": {}, "config": {"trainer": "default", "model": config}, "val_metrics": None,
                "amp": None}, file)
    return model, file, []
