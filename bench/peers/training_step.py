#!/usr/bin/env python3
"""A training step and an evaluation of SevenNet or MACE in PyTorch, by the package's own program,
plain and with each library's kernels: milliseconds and memory, all in one run.

    python3 bench/peers/training_step.py sevennet checkpoint_sevennet_0.pth --json step.json
    python3 bench/peers/training_step.py mace mace.model --kernels e3nn clebsch cueq

A step is energy, forces and stress of 64 structures of 32 atoms, the loss, its gradient, clipping and
AdamW (fused), f32; an evaluation is energy, forces and stress alone.  `clebsch` is the package's model
after clebsch.torch.patch; its loss of the first step is compared with that of e3nn.  Kernels that are
not there are left out with the reason.  bench/training_step.c times Clebsch without PyTorch on the
same structures."""
import argparse
import gc
import importlib.metadata
import json
import pathlib
import subprocess
import time
import traceback

import numpy as np
import torch
from ase.build import bulk

KERNELS = {"e3nn": "e3nn", "clebsch": "clebsch", "cueq": "cuequivariance",
           "oeq": "openequivariance", "flash": "flashTP_e3nn"}
PACKAGES = {"sevennet": "sevenn", "mace": "mace-torch"}


def structures(n, salt):
    """Rattled diamond and, in turn, rock salt of these elements."""
    rng, out = np.random.default_rng(0), []
    for i in range(n):
        a = bulk("NaCl", "rocksalt", a=5.64, cubic=True) if i % 2 else bulk("C", "diamond", a=3.57, cubic=True)
        a = a.repeat((2, 2, 1))
        if i % 2:
            a.symbols = [salt[s == "Cl"] for s in a.get_chemical_symbols()]
        a.positions += rng.normal(0, 0.05, a.positions.shape)
        out.append(a)
    return out


class SevenNet:
    salt = ("Na", "Cl")

    def __init__(self, path, kernels, device, atoms):
        import sevenn._keys as key
        import sevenn.util
        from sevenn.atom_graph_data import AtomGraphData
        from sevenn.train.dataload import unlabeled_atoms_to_graph
        from torch_geometric.loader.dataloader import Collater
        options = {f"enable_{kernels}": True} if kernels not in ("e3nn", "clebsch") else {}
        self.model = sevenn.util.load_checkpoint(path).build_model(**options).to(device)
        self.model.set_is_batch_data(True)
        graphs = [AtomGraphData.from_numpy_dict(unlabeled_atoms_to_graph(a, 5.0, with_shift=False)) for a in atoms]
        self.edges = sum(g[key.EDGE_IDX].shape[1] for g in graphs)
        self.batch = Collater([graphs[0]], None, None)(graphs).to(device)
        self.results = key.PRED_TOTAL_ENERGY, key.PRED_FORCE, key.PRED_STRESS

    def __call__(self):
        out = self.model(self.batch.clone())
        return [out[k] for k in self.results]


class Mace:
    salt = ("Si", "O")

    def __init__(self, path, kernels, device, atoms):
        from mace import data
        from mace.tools import AtomicNumberTable, torch_geometric
        self.model = torch.load(path, map_location="cpu", weights_only=False).float()
        if kernels == "cueq":
            from mace.cli.convert_e3nn_cueq import run
            self.model = run(self.model, device=device, return_model=True)
        if kernels == "oeq":
            from mace.cli.convert_e3nn_oeq import run
            self.model = run(self.model, device=device, return_model=True)
        self.model = self.model.to(device)
        table = AtomicNumberTable([int(z) for z in self.model.atomic_numbers])
        graphs = [data.AtomicData.from_config(data.config_from_atoms(a), z_table=table,
                                              cutoff=float(self.model.r_max)) for a in atoms]
        self.edges = sum(g.edge_index.shape[1] for g in graphs)
        loader = torch_geometric.dataloader.DataLoader(graphs, batch_size=len(graphs), shuffle=False)
        self.batch = next(iter(loader)).to(device).to_dict()

    def __call__(self):
        batch = {k: v.clone() if torch.is_tensor(v) else v for k, v in self.batch.items()}
        out = self.model(batch, training=self.model.training, compute_stress=True)
        return [out[k] for k in ("energy", "forces", "stress")]


FAMILIES = {"sevennet": SevenNet, "mace": Mace}


def version(package):
    """As it was installed; of one that lies in a folder, as it says itself."""
    try:
        found = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        found = None
    try:
        return found or getattr(importlib.import_module(package.partition("-")[0]), "__version__", "")
    except ImportError:
        return ""


def runs_in(model, kernels, device):
    """Whether the model has modules of that library: programs take e3nn where it is not there."""
    if kernels in ("e3nn", "clebsch"):
        return True
    if kernels == "cueq" and device == "cuda":
        import cuequivariance_ops_torch  # noqa: F401  (without it cuEquivariance computes in torch)
    return any(type(m).__module__.startswith(KERNELS[kernels]) for m in model.modules())


def card(device):
    """Its name and driver."""
    if device == "cpu":
        return {"name": "cpu", "driver": ""}
    told = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                          capture_output=True, text=True, check=False).stdout.split()
    return {"name": torch.cuda.get_device_name(), "driver": told[0] if told else ""}


def timed(call, device, repeats):
    """Median and least milliseconds, of 3 calls that are not counted and `repeats` that are."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    times = []
    for _ in range(3 + repeats):
        wait()
        start = time.perf_counter()
        call()
        wait()
        times.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times[3:])), min(times[3:])


def profile(call):
    """Prints how long the GPU works in a call and how much is launched, and most of it."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as found:
        call()
        torch.cuda.synchronize()
    rows = sorted(found.key_averages(), key=lambda row: -row.self_device_time_total)
    rows = [row for row in rows if row.self_device_time_total]
    print(f"  the GPU works {sum(r.self_device_time_total for r in rows) / 1e3:.4g} ms in {sum(r.count for r in rows)} launches")
    for row in rows[:12]:
        print(f"  {row.self_device_time_total / 1e3:8.3f} ms {row.count:5d}  {row.key[:90]}")


def measure(a, kernels):
    family = FAMILIES[a.family]
    atoms = structures(a.structures, family.salt)
    start = time.perf_counter()
    run = family(a.model, kernels, a.device, atoms)
    replaced = []
    if kernels == "clebsch":
        import clebsch.torch
        replaced = clebsch.torch.patch(run.model)
    n, rng = sum(map(len, atoms)), torch.Generator().manual_seed(0)
    energies, forces = (torch.randn(*s, generator=rng).to(a.device) for s in ((len(atoms),), (n, 3)))
    parameters = [p for p in run.model.parameters() if p.requires_grad_(True) is p]
    optimizer = torch.optim.AdamW(parameters, lr=1e-5, fused=a.device == "cuda")

    def step():
        optimizer.zero_grad()
        e, f, s = run()
        loss = ((e.flatten() - energies) / 32).square().mean() + (f - forces).square().mean() + 0.01 * s.square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 10.0)
        optimizer.step()
        return float(loss.detach())

    run.model.train()
    loss = step()
    if not runs_in(run.model, kernels, a.device):
        raise RuntimeError(f"{PACKAGES[a.family]} does not use {KERNELS[kernels]} here")
    row = {"family": a.family, "package": version(PACKAGES[a.family]), "kernels": kernels,
           "version": version(KERNELS[kernels]), "atoms": n, "edges": run.edges,
           "structures": len(atoms), "replaced": len(replaced), "loss": loss}
    row["opened_s"] = time.perf_counter() - start
    if a.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    row["step_ms"], row["step_least_ms"] = timed(step, a.device, a.repeats)
    if a.device == "cuda":
        row["step_gib"] = torch.cuda.max_memory_allocated() / 2**30
        torch.cuda.reset_peak_memory_stats()
    if a.profile:
        profile(step)
    run.model.eval()
    for p in parameters:
        p.requires_grad_(False)
    row["evaluate_ms"], row["evaluate_least_ms"] = timed(run, a.device, a.repeats)
    if a.device == "cuda":
        row["evaluate_gib"] = torch.cuda.max_memory_allocated() / 2**30
    if a.profile:
        profile(run)
    return row


def write(file, rows, device):
    """Rows of other families and kernels that the file has stay."""
    known = json.loads(file.read_text())["rows"] if file.exists() else []
    new = {(r["family"], r["kernels"]) for r in rows}
    known = [r for r in known if (r["family"], r["kernels"]) not in new]
    file.write_text(json.dumps({"clebsch": version("clebsch"), "device": card(device),
                                "torch": torch.__version__, "rows": known + rows}, indent=1) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("family", choices=list(FAMILIES))
    p.add_argument("model", help="a checkpoint of SevenNet, or a MACE model as its package saves it")
    p.add_argument("--kernels", nargs="+", default=list(KERNELS), choices=list(KERNELS))
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cuda", "cpu"])
    p.add_argument("--structures", type=int, default=64)
    p.add_argument("--repeats", type=int, default=12)
    p.add_argument("--profile", action="store_true", help="print which kernels of a GPU take the time of a step and of an evaluation")
    p.add_argument("--json", type=pathlib.Path, help="write the results to this file, too; rows of other runs in it stay")
    a = p.parse_args()
    torch.set_default_dtype(torch.float32)
    rows = []
    for kernels in a.kernels:
        try:
            row = measure(a, kernels)
        except Exception as e:  # whatever a library does
            print(f"{kernels}: left out: {str(e).splitlines()[0] if str(e) else type(e).__name__}", flush=True)
            if kernels in ("e3nn", "clebsch"):
                traceback.print_exc()
            continue
        rows.append(row)
        off = abs(row["loss"] / rows[0]["loss"] - 1)
        print(f"{a.family}, {kernels} {row['version']}: step {row['step_ms']:.4g} ms (least {row['step_least_ms']:.4g}), "
              f"{row.get('step_gib', 0):.3g} GiB; evaluation {row['evaluate_ms']:.4g} ms, {row.get('evaluate_gib', 0):.3g} GiB; "
              f"{row['edges']} edges; loss {row['loss']:.6g}, off by {off:.1e}", flush=True)
        if a.json:  # now: a library may end the process
            write(a.json, rows, a.device)
        gc.collect()  # of one library's model, so that the next has the memory, and no such pauses
        if a.device == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
