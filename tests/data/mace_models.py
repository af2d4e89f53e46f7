#!/usr/bin/env python3
"""mace_models.py [NAME...] - makes models of MACE with random weights, mace/NAME.model, and what MACE's own program computes with them in float64, in
mace_kinds_reference.json and, of gradients, in mace_gradient_reference.json. Run with mace-torch 0.3.16, e3nn 0.4.4, PyTorch 2.8.0, ASE 3.26; TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1.

The files are what torch.save writes of the module, less what no reader of the weights needs: compiled code, and attributes that repeat others. Weights
are numbers of single precision, so that they are short."""
import json, pathlib, sys, warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "fuzz"))
warnings.filterwarnings("ignore")
import ase, numpy as np, torch
from e3nn import o3
from mace import data, modules
from mace.tools import torch_geometric, utils
from make_torch_models import Global, Ordered, Record, Tensor, write

torch.set_default_dtype(torch.float64)
ELEMENTS = [1, 8, 14]
GATED = "RealAgnosticResidualNonLinearInteractionBlock"
MODELS = {
    # the sent features have other channels and degrees than the others
    "gated": dict(hidden_irreps="4x0e+4x1o", edge_irreps="3x0e+3x1o+3x2e", use_edge_irreps_first=True, max_ell=2, correlation=2, r_max=4.5, num_bessel=4,
                  num_polynomial_cutoff=5, radial_MLP=[6, 5], apply_cutoff=False),
    # one readout, with biases, of two heads; products without species; the cutoff in the basis, of transformed distances; repulsion
    "readouts": dict(hidden_irreps="3x0e+3x1o", max_ell=1, correlation=2, r_max=4.0, num_bessel=3, num_polynomial_cutoff=6, radial_MLP=[5],
                     heads=["first", "second"], readout_cls=modules.blocks.NonLinearBiasReadoutBlock, use_last_readout_only=True,
                     use_agnostic_product=True, distance_transform="Agnesi", pair_repulsion=True),
    # charge and spin, which have energies of their own
    "charged": dict(hidden_irreps="3x0e", max_ell=1, correlation=2, r_max=4.0, num_bessel=3, num_polynomial_cutoff=5, radial_MLP=[5], apply_cutoff=False, use_embedding_readout=True,
                    embedding_specs={"total_spin": dict(type="categorical", per="graph", num_classes=4, emb_dim=3),
                                     "total_charge": dict(type="categorical", per="graph", num_classes=5, offset=2, emb_dim=2)}),
    # weights in cuEquivariance's basis, and in MACE's
    "reduced": dict(cue=True, use_reduced_cg=True, hidden_irreps="3x0e+3x1o", max_ell=2, correlation=3, r_max=4.5, num_bessel=3, num_polynomial_cutoff=5,
                    radial_MLP=[5], apply_cutoff=False),
    "projected": dict(cue=True, interaction="RealAgnosticResidualInteractionBlock", hidden_irreps="4x0e+4x1o", max_ell=2, correlation=3, r_max=4.0,
                      num_bessel=3, num_polynomial_cutoff=5, radial_MLP=[5]),
}
KEPT = {"avg_num_neighbors", "use_sc", "heads", "apply_cutoff", "irreps_in", "irreps_in1", "irreps_in2", "irreps_out", "normalize", "normalization", "eps",
        "_act_scalar", "_scalar_cst", "_act_gate", "_gate_cst", "f", "cst", "var_in", "var_out", "use_so3", "use_agnostic_product", "use_last_readout_only",
        "specs", "contraction_degree", "num_paths", "num_operands", "operations", "path_indices", "path_coefficients", "buffer_num_segments"}
DROPPED = ("_compiled", "_lin3d", "graph_opt", "contractions_w", "transpose_", "fallback", "graphs")


def build(spec, fused=True):
    spec = dict(use_reduced_cg=False, **spec) if "use_reduced_cg" not in spec else dict(spec)
    interaction = modules.interaction_classes[spec.pop("interaction", GATED)]
    if spec.pop("cue", False):
        spec["cueq_config"] = modules.wrapper_ops.CuEquivarianceConfig(enabled=True, layout="ir_mul", group="O3_e3nn", optimize_all=True, conv_fusion=fused)
    heads = spec.get("heads") or ["Default"]
    rng = np.random.RandomState(1)
    spec.update(hidden_irreps=o3.Irreps(spec["hidden_irreps"]), edge_irreps=spec.get("edge_irreps") and o3.Irreps(spec["edge_irreps"]),
                interaction_cls=interaction, interaction_cls_first=interaction, num_interactions=2,
                num_elements=len(ELEMENTS), atomic_numbers=ELEMENTS, MLP_irreps=o3.Irreps("5x0e"), gate=torch.nn.functional.silu, avg_num_neighbors=8.0,
                atomic_energies=np.round(-rng.uniform(1, 12, (len(heads), len(ELEMENTS))), 4),
                atomic_inter_scale=np.round(rng.uniform(0.5, 1, len(heads)), 3).tolist(), atomic_inter_shift=np.round(rng.uniform(-0.2, 0.2, len(heads)), 3).tolist())
    model = modules.ScaleShiftMACE(**spec).eval()
    for name, p in sorted(model.named_parameters()):
        x = rng.standard_normal(tuple(p.shape))
        if "symmetric_contractions" in name:
            x /= np.sqrt(p.shape[1])
        elif name.endswith((".alpha", ".beta")):
            x = 1 + 0.2 * x
        elif ".net." in name or name.startswith("joint_embedding"):
            x = x / np.sqrt(p.shape[1]) if x.ndim == 2 else 0.3 * x + name.endswith("weight")
        p.data.copy_(torch.tensor(x.astype(np.float32)))
    return model


# ---- files ----


def plain(x):
    if isinstance(x, torch.Tensor):
        kind = "Long" if not x.is_floating_point() else "Float" if torch.equal(x, x.float().double()) else "Double"
        return Tensor(*x.shape, data=x.detach().reshape(-1).tolist(), kind=kind)
    if hasattr(x, "_mulirreps"):
        term = lambda m, ir: Record("cuequivariance.group_theory.irreps_array.irreps\nMulIrrep", (), {"mul": m, "ir": Record("mace.tools.cg\nO3_e3nn", (), {"l": ir.l, "p": ir.p})})
        return Record("cuequivariance.group_theory.irreps_array.irreps\nIrreps", (), {"_mulirreps": tuple(term(m, ir) for m, ir in x)})
    if isinstance(x, o3.Irreps):
        return tuple((m, (ir.l, ir.p)) for m, ir in x)
    if callable(x):
        return Global(f"torch.nn.functional\n{x.__name__}")
    return {k: plain(v) for k, v in x.items()} if isinstance(x, dict) else list(x) if isinstance(x, (list, tuple)) else x


def record(m):
    state = {k: plain(v) for k, v in vars(m).items() if k in KEPT}
    state["training"] = False
    state["_parameters"] = Ordered((k, plain(v)) for k, v in m._parameters.items() if v is not None)
    state["_buffers"] = Ordered((k, plain(v)) for k, v in m._buffers.items() if v is not None and k != "output_mask")
    state["_modules"] = Ordered((k, record(v)) for k, v in m._modules.items() if not k.startswith(DROPPED))
    return Record(f"{type(m).__module__}\n{type(m).__name__}", (), state)


# ---- references ----


def structures():
    rng = np.random.RandomState(7)
    sites = [(i, j, k) for i in (0, 0.5) for j in (0, 0.5) for k in (0, 0.5)][:5]
    return {"H2O": ase.Atoms("OH2", [[0, 0, 0], [0.9572, 0, 0], [-0.239988, 0.926627, 0]]),
            "five": ase.Atoms("SiO2SiH", scaled_positions=np.array(sites) + rng.uniform(-0.06, 0.06, (5, 3)), cell=[[4.9, 0, 0], [0.7, 4.4, 0], [-0.3, 0.9, 5.1]],
                              pbc=True),
            "apart": ase.Atoms("OHSi", [[0, 0, 0], [1.1, 0.3, 0], [30, 0, 0]])}


def reference(model, atoms, head, charge, spin):
    config = data.Configuration(atomic_numbers=atoms.numbers, positions=atoms.positions, properties={"total_charge": charge, "total_spin": spin},
                                property_weights={}, cell=np.array(atoms.cell), pbc=tuple(atoms.pbc), head=head)
    one = data.AtomicData.from_config(config, z_table=utils.AtomicNumberTable(ELEMENTS), cutoff=float(model.r_max), heads=model.heads)
    batch = next(iter(torch_geometric.dataloader.DataLoader([one], batch_size=1)))
    y = model(batch.to_dict(), compute_stress=True)
    r = {"Z": atoms.numbers.tolist(), "pos": atoms.positions.tolist(), "cell": np.array(atoms.cell).tolist(), "pbc": [bool(p) for p in atoms.pbc],
         "n_edges": int(batch.edge_index.shape[1]), "E": float(y["energy"]), "F": y["forces"].tolist()}
    if atoms.pbc.all():
        r["stress"] = y["stress"][0].tolist()
    if hasattr(model, "joint_embedding"):
        r.update(charge=charge, spin=spin)
    else:  # MACE's energies of atoms leave that of the embedding out
        r["E_atom"] = y["node_energy"].reshape(-1).tolist()
    return r


def without_kernels(spec, model):
    """The same model of cuEquivariance, on a CPU."""
    import cuequivariance_torch as cuet
    original = cuet.SegmentedPolynomial
    cuet.SegmentedPolynomial = lambda polynomial, method=None, **more: original(polynomial, method="naive", **more)
    naive = build(spec, fused=False)
    cuet.SegmentedPolynomial = original
    missing, unused = naive.load_state_dict(model.state_dict(), strict=False)
    assert all(".graphs." in name for name in missing + unused), (missing, unused)
    return naive


def states_of(k):
    return k - 1, 2 - k % 2  # charge and spin


def gradient(model):
    """Of mean (E / atoms)^2 + mean F^2 over all structures at once, by rows of charges and spins before silu."""
    z_table, all = utils.AtomicNumberTable(ELEMENTS), list(structures().values())
    graphs = [data.AtomicData.from_config(
        data.Configuration(atomic_numbers=a.numbers, positions=a.positions, properties=dict(zip(("total_charge", "total_spin"), states_of(k))),
                           property_weights={}, cell=np.array(a.cell), pbc=tuple(a.pbc), head=model.heads[-1]), z_table=z_table,
        cutoff=float(model.r_max), heads=model.heads) for k, a in enumerate(all)]
    batch = next(iter(torch_geometric.dataloader.DataLoader(graphs, batch_size=len(graphs))))
    kept = []
    hook = model.joint_embedding.project[0].register_forward_hook(lambda module, x, y: kept.append(y))
    y = model(batch.to_dict(), training=True, compute_stress=False)
    hook.remove()
    loss = ((y["energy"] / torch.tensor([len(a) for a in all])) ** 2).mean() + (y["forces"] ** 2).mean()
    rows = torch.autograd.grad(loss, kept[0])[0]
    found = {"loss": float(loss)}
    for i, (name, spec) in enumerate((("charge", "total_charge"), ("spin", "total_spin"))):
        spec = MODELS["charged"]["embedding_specs"][spec]
        table = torch.zeros(spec["num_classes"], rows.shape[1])
        for row, g in zip(rows, batch.batch if len(rows) > len(all) else range(len(all))):
            table[states_of(int(g))[i] + spec.get("offset", 0)] += row
        found[f"embedding_{name}"] = table.tolist()
    return found


def main():
    path = HERE / "mace_kinds_reference.json"
    all = json.loads(path.read_text())
    for name in sys.argv[1:] or MODELS:
        model = build(MODELS[name])
        write(HERE / "mace" / f"{name}.model", record(model))
        model = without_kernels(MODELS[name], model) if MODELS[name].get("cue") else model
        all[name] = {k: reference(model, a, model.heads[-1], *states_of(i)) for i, (k, a) in enumerate(structures().items())}
        if name == "charged":
            (HERE / "mace_gradient_reference.json").write_text(json.dumps({name: gradient(model)}, separators=(",", ":")) + "\n")
        print(name, {k: (round(r["E"], 3), float(np.abs(r["F"]).max())) for k, r in all[name].items()})
    path.write_text(json.dumps(all, separators=(",", ":")))


main()
