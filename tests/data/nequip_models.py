"""Small NequIP models with random weights, and their energies, forces and stress in float64.

Run with nequip 0.19.1, e3nn 0.6.0, torch 2.8.0, lightning 2.6.6 (Python 3.11):

    python tests/data/nequip_models.py tests/data

Writes nequip/NAME.nequip.zip and nequip/NAME.ckpt, and nequip_reference.json.  Packages are as
`nequip-package` makes them, but without source code, which is not read: neither NequIP's and e3nn's
modules nor what e3nn generates.  Those called `pairs` are not compressed.  The smallest ones are
for fuzzers, fuzz/corpus/torch/nequip.ckpt and .zip.  With other arguments, PRESET FILE, it writes a
package and a reference of a preset (S, M, L, XL) of 89 elements, in full."""
import io
import json
import pathlib
import sys
import warnings
import zipfile

warnings.filterwarnings("ignore")
import lightning
import numpy as np
import torch
import yaml
from e3nn.util.codegen import CodeGenMixin
from nequip.data import AtomicDataDict as keys
from nequip.scripts._package_utils import _EXTERNAL_MODULES, _INTERNAL_MODULES, _MOCK_MODULES
from nequip.train import EMALightningModule, NequIPLightningModule
from nequip.utils.global_state import set_global_state

TYPES = ["H", "O", "Si"]
ZBL = {"_target_": "nequip.nn.pair_potential.ZBL", "units": "metal", "chemical_species": TYPES}
SHIFTS = {"H": -1.25, "O": -2.5, "Si": -3.125}
COMMON = dict(model_dtype="float64", type_names=TYPES, radial_mlp_width=6, avg_num_neighbors=11.5)
MODELS = {  # builder, arguments, whether the checkpoint has moving averages
    "parity": ("NequIPGNNModel", dict(
        seed=1, r_max=3.5, num_layers=2, l_max=2, parity=True, num_features=[4, 2, 3],
        radial_mlp_depth=2, polynomial_cutoff_p=5, num_bessels=5, per_type_energy_scales=1.5,
        per_type_energy_shifts=SHIFTS), False),
    "degree4": ("NequIPGNNModel", dict(
        seed=2, r_max=4.0, num_layers=3, l_max=4, parity=False, num_features=[5, 3, 2, 1, 2],
        type_embed_num_features=3, pair_potential=dict(ZBL, polynomial_cutoff_p=4),
        per_type_energy_scales={"H": 0.75, "O": 1.5, "Si": 1.25}), False),
    "pairs": ("FullNequIPGNNModel", dict(
        seed=3, r_max=4.0, irreps_edge_sh=2, type_embed_num_features=4,
        feature_irreps_hidden=["4x0e+2x1o+2x0o+1x2e+1x1e", "5x0e"], radial_mlp_depth=[1, 1],
        radial_mlp_width=[6, 5], avg_num_neighbors={"H": 4.0, "O": 9.0, "Si": 12.5},
        per_edge_type_cutoff={"H": 2.5, "O": {"H": 3.0, "O": 3.75}}, bessel_trainable=True,
        readout_mlp_hidden_layers_depth=1, readout_mlp_hidden_layers_width=3,
        learnable_shift=True, pair_potential=ZBL, per_type_energy_shifts=SHIFTS,
        per_type_energy_scales=2.0, per_type_energy_scales_trainable=True), True)}
HEAVY = [z for z in range(1, 84)] + [89, 90, 91, 92, 93, 94]


def structures():
    water = dict(Z=[8, 1, 1], pos=[[0, 0, 0], [0.9572, 0, 0], [-0.239988, 0.926627, 0]], cell=None)
    rng = np.random.RandomState(5)
    cell = np.array([[4.916, 0, 0], [-2.458, 4.2574, 0], [0.1, 0.2, 5.405]])
    parts = np.array([[0.47, 0, 0], [0, 0.47, 0.667], [-0.47, -0.47, 0.333], [0.413, 0.267, 0.119],
                      [0.267, 0.413, 0.548], [-0.267, 0.146, 0.786], [-0.413, -0.146, 0.214],
                      [-0.146, -0.413, 0.881], [0.146, -0.267, 0.452]])
    quartz = dict(Z=[14] * 3 + [8] * 6, pos=parts @ cell + rng.uniform(-0.1, 0.1, (9, 3)), cell=cell)
    five = dict(Z=[14, 8, 1, 1, 8], pos=[[0, 0, 0], [1.6, 0.1, 0], [-0.9, 1.1, 0.3],
                                         [2.1, 0.8, 0.4], [30, 0, 0]], cell=None)
    return {"H2O": water, "SiO2_9": quartz, "five": five}


def graph(atoms, cutoff, types):
    """Edges from every receiver (first row) to all atoms and images nearer than the cutoff."""
    x, cell = np.array(atoms["pos"], float), atoms["cell"]
    images = np.zeros((1, 3), int)
    if cell is not None:
        reach = [int(cutoff / h) + 2 for h in 1 / np.linalg.norm(np.linalg.inv(cell), axis=0)]
        images = np.array(np.meshgrid(*[range(-n, n + 1) for n in reach])).reshape(3, -1).T
    ends, shifts = [], []
    for i in range(len(x)):
        for j in range(len(x)):
            v = x[j] - x[i] + images @ (np.zeros((3, 3)) if cell is None else cell)
            r = np.linalg.norm(v, axis=1)
            for s in images[(r < cutoff) & (r > 1e-9)]:
                ends.append((i, j)), shifts.append(s)
    species = {"H": 1, "O": 8, "Si": 14}
    number = [species[t] for t in types] if types == TYPES else HEAVY
    data = {keys.POSITIONS_KEY: torch.tensor(x),
            keys.ATOM_TYPE_KEY: torch.tensor([number.index(z) for z in atoms["Z"]]),
            keys.EDGE_INDEX_KEY: torch.tensor(ends, dtype=torch.long).reshape(-1, 2).T.contiguous()}
    if cell is not None:
        data[keys.CELL_KEY] = torch.tensor(cell)
        data[keys.EDGE_CELL_SHIFT_KEY] = torch.tensor(np.array(shifts, float))
    return data, len(ends)


def reference(model, cutoff, types):
    out = {}
    for name, atoms in structures().items():
        data, n = graph(atoms, cutoff, types)
        y = model(data)
        flat = atoms["cell"] is None
        out[name] = dict(Z=atoms["Z"], pos=np.array(atoms["pos"], float).tolist(),
                         cell=np.zeros((3, 3)).tolist() if flat else atoms["cell"].tolist(),
                         pbc=[not flat] * 3, n_edges=n, E=y[keys.TOTAL_ENERGY_KEY].item(),
                         E_atom=y[keys.PER_ATOM_ENERGY_KEY].detach().reshape(-1).tolist(),
                         F=y[keys.FORCE_KEY].detach().tolist())
        if not flat:
            out[name]["stress"] = y[keys.STRESS_KEY].detach().reshape(3, 3).tolist()
    return out


def module(target, arguments, averages):
    info = dict(versions={"nequip": "0.19.1"}, data={}, trainer={}, global_options={},
                runs=["train"], training_module={"_target_": "nequip.train.NequIPLightningModule"})
    about = dict(model=dict(arguments, _target_=target), info_dict=info,
                 num_datasets=dict(train=1, val=1, test=0, predict=0))
    if not averages:
        return NequIPLightningModule(**about)
    m = EMALightningModule(ema_decay=0.9, **about)
    for _ in range(2):  # averages that are not the weights
        m.ema.update_parameters(m.model)
        with torch.no_grad():
            for p in m.model.parameters():
                p.add_(0.05 * torch.randn_like(p))
    return m


def save_checkpoint(m, path):
    trainer = lightning.Trainer(accelerator="cpu", logger=False, max_epochs=1,
                                enable_progress_bar=False, enable_model_summary=False)
    trainer.strategy.connect(m)
    trainer.strategy._lightning_module = m
    trainer.save_checkpoint(path, weights_only=True)
    repack(path, lambda name: True)


def repack(path, keep):
    old = zipfile.ZipFile(io.BytesIO(pathlib.Path(path).read_bytes()))
    how = zipfile.ZIP_STORED if "pairs" in str(path) else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(path, "w", how, compresslevel=9) as new:
        for entry in old.infolist():
            if keep(entry.filename):
                new.writestr(zipfile.ZipInfo(entry.filename), old.read(entry), how)


def save_package(model, path, types):
    about = dict(versions={"nequip": "0.19.1"}, package_version_id=2, available_models=["eager"],
                 atom_types=dict(enumerate(types)))
    with torch.package.PackageExporter(str(path), debug=True) as exporter:
        exporter.mock([f"{name}.**" for name in _MOCK_MODULES])
        exporter.extern([f"{name}.**" for name in _EXTERNAL_MODULES])
        exporter.intern([f"{name}.**" for name in _INTERNAL_MODULES])
        exporter.save_text("model", "package_metadata.txt", yaml.dump(about))
        exporter.save_pickle("model", "eager_model.pkl", model, dependencies=True)


def without_code():
    state = CodeGenMixin.__getstate__

    def stripped(self):
        out = state(self)
        out["__codegen__"] = {name: (kind, b"") for name, (kind, _) in out["__codegen__"].items()}
        return out

    CodeGenMixin.__getstate__ = stripped


def make_seeds(folder):
    few = dict(COMMON, seed=4, type_names=["H", "O"], r_max=3.0, l_max=1, parity=False,
               num_features=[2, 1], radial_mlp_width=2, num_bessels=2)
    two, one = [module("nequip.model.NequIPGNNModel", dict(few, num_layers=n), False) for n in (2, 1)]
    save_checkpoint(two, folder / "nequip.ckpt")
    save_package(one.model, folder / "nequip.zip", ["H", "O"])
    repack(folder / "nequip.zip", lambda entry: not entry.endswith(".py"))


def save(m, path):
    """PATH.ckpt and PATH.nequip.zip; returns the model of the latter."""
    save_checkpoint(m, f"{path}.ckpt")
    model = m.evaluation_model
    save_package(model, f"{path}.nequip.zip", TYPES)
    repack(f"{path}.nequip.zip", lambda entry: not entry.endswith(".py"))
    return model["sole_model"]


def make_all(folder):
    out = {}
    without_code()
    for name, (builder, arguments, averages) in MODELS.items():
        m = module(f"nequip.model.{builder}", dict(COMMON, **arguments), averages)
        out[name] = reference(save(m, folder / "nequip" / name), arguments["r_max"], TYPES)
    make_seeds(folder.parent / "fuzz" / "corpus" / "torch")
    (folder / "nequip_reference.json").write_text(json.dumps(out, separators=(",", ":")) + "\n")


def make_preset(size, path):
    from ase.data import chemical_symbols

    types = [chemical_symbols[z] for z in HEAVY]
    arguments = dict(seed=7, model_dtype="float64", r_max=6.0, type_names=types, preset=size,
                     avg_num_neighbors=60.0, per_type_energy_scales=0.9,
                     per_type_energy_shifts={t: -0.1 * i for i, t in enumerate(types)},
                     pair_potential=dict(ZBL, chemical_species=types))
    m = module("nequip.model.PresetNequIPGNNModel", arguments, False)
    model = m.evaluation_model
    save_package(model, path, types)
    out = reference(model["sole_model"], 6.0, types)
    pathlib.Path(str(path) + ".json").write_text(json.dumps(out))


if __name__ == "__main__":
    set_global_state()
    if len(sys.argv) == 2:
        make_all(pathlib.Path(sys.argv[1]))
    else:
        make_preset(sys.argv[1], pathlib.Path(sys.argv[2]))
