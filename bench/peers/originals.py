#!/usr/bin/env python3
"""The original programs of published.py's models beside Clebsch: seconds of energy, forces and stress in single precision.

    python3 bench/peers/originals.py --clebsch build/tools/clebsch --json originals.json \\
        NequIP-OAM-L:openequivariance MACE-MH-1:cuequivariance SevenNet-Omni:openequivariance Allegro:triton

Every MODEL:KERNELS is a process of its own. Edges are found before and not timed; a time is the median of up to 20 calls, each
waited for, after three. Then energies and forces are compared with those of `clebsch energy` for the same file.
KERNELS: eager (the program's own), cuequivariance, openequivariance or triton; with +compile NequIP's models are compiled."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from models import KINDS, write  # noqa: E402

SYSTEMS = ["carbon:2", "carbon:5", "carbon:9", "water:4", "water:7", "water:12"]
FAMILIES = {"MACE": "mace", "SevenNet": "sevennet", "NequIP": "nequip", "Allegro": "nequip", "EquFlashV2": "equflash"}


def atoms_of(system):
    kind, size = system.split(":")
    return KINDS[kind](int(size))


def edges_of(system, cutoff):
    """Receivers, senders, shifts (in cells) and vectors from receiver to sender, sorted by receiver."""
    from matscipy.neighbours import neighbour_list
    _, positions, length = atoms_of(system)
    i, j, s, d = neighbour_list("ijSD", positions=positions, cell=np.eye(3) * length, pbc=[True] * 3, cutoff=float(cutoff))
    order = np.lexsort((j, i))
    return i[order].astype(np.int64), j[order].astype(np.int64), s[order], d[order]


class Original:
    """An original program: prepare(system) gives what call(...) takes, which gives energy and forces."""

    def __init__(self, name, kernels, device, folder, equflash):
        import published
        import torch
        self.torch, self.device, self.name = torch, device, name
        self.kernels, _, compiled = kernels.partition("+")
        family = FAMILIES[name.split("-")[0].split(",")[0]]
        if family == "equflash":
            sys.path.append(str(published.TESTS))
            import equflash_kinds
            equflash_kinds.stand_ins(equflash)
        more = {"compiled": bool(compiled)} if family == "nequip" else {}
        self.model, self.file, self.options = getattr(published, f"open_{family}")(name, folder, **more)
        self.published = published
        getattr(self, f"open_{family}")()
        self.prepare, self.call = getattr(self, f"prepare_{family}"), getattr(self, f"call_{family}")

    def ready(self):
        self.model = self.model.to(self.device).eval()
        for p in self.model.parameters():
            p.requires_grad_(False)

    def tensor(self, x, whole=False):
        return self.torch.as_tensor(np.ascontiguousarray(x), dtype=self.torch.int64 if whole else self.torch.float32, device=self.device)

    def open_mace(self):
        self.elements, self.cutoff = [int(z) for z in self.model.atomic_numbers], float(self.model.r_max)
        if self.kernels != "eager":
            import importlib
            run = importlib.import_module({"cuequivariance": "mace.cli.convert_e3nn_cueq", "openequivariance": "mace.cli.convert_e3nn_oeq"}[self.kernels]).run
            self.model = run(self.model, device=self.device, return_model=True)
        self.model = self.model.float()
        self.ready()

    def prepare_mace(self, system):
        numbers, positions, length = atoms_of(system)
        i, j, s, _ = edges_of(system, self.cutoff)
        hot = np.zeros((len(numbers), len(self.elements)))
        hot[np.arange(len(numbers)), [self.elements.index(z) for z in numbers]] = 1
        given = dict(positions=positions, node_attrs=hot, shifts=-s * length, unit_shifts=-s, cell=np.eye(3) * length, total_charge=[0], total_spin=[1])
        whole = dict(edge_index=[j, i], batch=np.zeros(len(numbers)), ptr=[0, len(numbers)], head=[0])
        return {**{k: self.tensor(x) for k, x in given.items()}, **{k: self.tensor(np.array(x), True) for k, x in whole.items()}}

    def call_mace(self, d):
        y = self.model(dict(d, positions=d["positions"].detach().clone()), compute_force=True, compute_stress=True)
        return y["energy"], y["forces"]

    def open_sevennet(self):
        from sevenn.calculator import SevenNetCalculator
        options = {"cuequivariance": {"enable_cueq": True}, "openequivariance": {"enable_oeq": True}}.get(self.kernels, {})
        self.calculator = SevenNetCalculator(str(self.file), device=self.device, modal=self.options[1], **options)

    def prepare_sevennet(self, system):
        import ase
        import sevenn._keys as keys
        from sevenn.atom_graph_data import AtomGraphData
        from sevenn.train.dataload import unlabeled_atoms_to_graph
        numbers, positions, length = atoms_of(system)
        atoms = ase.Atoms(numbers=numbers, positions=positions, cell=[length] * 3, pbc=True)
        g = AtomGraphData.from_numpy_dict(unlabeled_atoms_to_graph(atoms, self.calculator.cutoff, with_shift=False))
        g[keys.DATA_MODALITY] = self.options[1]
        return g.to(self.device)

    def call_sevennet(self, g):
        import sevenn._keys as keys
        x = g.__class__(**g.to_dict())
        x[keys.EDGE_VEC] = x[keys.EDGE_VEC].detach()
        y = self.calculator.model(x)
        return y[keys.PRED_TOTAL_ENERGY], y[keys.PRED_FORCE]

    def open_nequip(self):
        allegro = self.name == "Allegro"
        modifier = {"openequivariance": "enable_OpenEquivariance", "triton": "enable_TritonContracter",
                    "cuequivariance": "enable_CuEquivarianceContracter" if allegro else "enable_CuEquivariance"}.get(self.kernels)
        if modifier:
            self.model = next(getattr(type(m), modifier) for m in self.model.modules() if hasattr(type(m), modifier))(self.model)
        self.ready()

    def prepare_nequip(self, system):
        from nequip.data import AtomicDataDict as keys
        numbers, positions, length = atoms_of(system)
        i, j, s, _ = edges_of(system, 6.0)
        types = [self.published.HEAVY.index(z) for z in numbers]
        return {keys.POSITIONS_KEY: self.tensor(positions), keys.ATOM_TYPE_KEY: self.tensor(types, True), keys.EDGE_INDEX_KEY: self.tensor(np.array([i, j]), True),
                keys.EDGE_CELL_SHIFT_KEY: self.tensor(s), keys.CELL_KEY: self.tensor(np.eye(3)[None] * length),
                keys.BATCH_KEY: self.tensor(np.zeros(len(numbers)), True), keys.NUM_NODES_KEY: self.tensor([len(numbers)], True)}

    def call_nequip(self, d):
        y = self.model(dict(d))
        return y["total_energy"], y["forces"]

    def open_equflash(self):
        self.ready()

    def prepare_equflash(self, system):
        numbers, _, length = atoms_of(system)
        i, j, _, d = edges_of(system, 6.0)
        return {"atomic_numbers": self.tensor(numbers, True), "natoms": self.tensor([len(numbers)], True), "batch": self.tensor(np.zeros(len(numbers)), True),
                "edge_vec": self.tensor(d), "edge_index": self.tensor(np.array([i, j]), True), "cell": self.tensor(np.eye(3)[None] * length)}

    def call_equflash(self, d):
        y = self.model(dict(d, edge_vec=d["edge_vec"].detach().clone()))
        return y["energy"], y["forces"]


def step(original, system):
    torch = original.torch
    cuda = original.device == "cuda"
    wait = torch.cuda.synchronize if cuda else lambda: None
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    given = original.prepare(system)
    for _ in range(3):
        energy, forces = original.call(given)
    wait()
    times, begin = [], time.perf_counter()
    while len(times) < 20 and (len(times) < 3 or time.perf_counter() - begin < 2):
        start = time.perf_counter()
        original.call(given)
        wait()
        times.append(time.perf_counter() - start)
    row = {"seconds": float(np.median(times)), **({"memory_bytes": torch.cuda.max_memory_allocated()} if cuda else {})}
    return row, float(energy.sum()), forces.detach().double().cpu().numpy()


def compare(a, original, found, folder):
    """Relative differences of energies and forces from those of Clebsch."""
    file, rows = folder / "converted.safetensors", {}
    subprocess.run([a.clebsch, "convert", *original.options, str(original.file), str(file)], check=True, capture_output=True)
    for system, (energy, forces) in found.items():
        numbers, positions, length = atoms_of(system)
        xyz = folder / "atoms.xyz"
        write(xyz, numbers, positions, length)
        done = subprocess.run([a.clebsch, "energy", "--device", a.device, "--knots", "512", "-m", str(file), "-s", str(xyz), "--json", "--repeat", "1"],
                              check=True, capture_output=True, text=True)
        y = json.loads(done.stdout)
        f = np.array(y["forces"])
        rows[system] = {"energy_error": abs(energy - y["energy"]) / abs(y["energy"]), "force_error": float(np.abs(forces - f).max() / np.abs(f).max())}
    return rows


def one(a):
    """A model with one kind of kernels: rows, on lines of their own as soon as they are known."""
    name, kernels = a.runs[0].rsplit(":", 1)
    with tempfile.TemporaryDirectory() as folder:
        original, found = Original(name, kernels, a.device, pathlib.Path(folder), a.equflash), {}
        for system in a.systems:
            row = {"model": f"{name} (random weights)", "kernels": kernels, "system": system.split(":")[0], "atoms": len(atoms_of(system)[0])}
            try:
                times, energy, forces = step(original, system)
                row.update(times)
                if row["atoms"] < 300:
                    found[system] = energy, forces
            except original.torch.OutOfMemoryError:
                row["error"] = "out of memory"
            print("ROW " + json.dumps(row), flush=True)
        for system, errors in compare(a, original, found, pathlib.Path(folder)).items():
            print("ROW " + json.dumps({"model": f"{name} (random weights)", "kernels": kernels, "compared": system, **errors}), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("runs", nargs="+", metavar="MODEL:KERNELS")
    p.add_argument("--clebsch", default="build/tools/clebsch")
    p.add_argument("--device", default="cuda")
    p.add_argument("--equflash", default="", help="a folder with the unpacked wheel of equflash")
    p.add_argument("--systems", nargs="+", default=SYSTEMS, help="carbon:CELLS has 8 CELLS^3 atoms, water:SIDE 3 SIDE^3")
    p.add_argument("--seconds", type=float, default=170, help="a process may take")
    p.add_argument("--json", type=pathlib.Path, help="rows are written here after each process, after those that are there")
    p.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.one:
        return one(a)
    out = json.loads(a.json.read_text()) if a.json and a.json.exists() else {"rows": []}
    for run in a.runs:
        command = [sys.executable, __file__, "--one", run, "--clebsch", a.clebsch, "--device", a.device, "--equflash", a.equflash, "--systems", *a.systems]
        with tempfile.TemporaryFile("w+") as text:
            try:
                subprocess.run(command, stdout=text, stderr=subprocess.STDOUT, timeout=a.seconds, env=dict(os.environ, TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD="1"))
            except subprocess.TimeoutExpired:
                print(f"{run}: longer than {a.seconds:g} s", flush=True)
            text.seek(0)
            lines = text.read().split("\n")
        rows = [json.loads(line[4:]) for line in lines if line.startswith("ROW ")]
        print("\n".join(map(json.dumps, rows)) if rows else f"{run}: " + "\n".join(lines[-5:]), flush=True)
        out["rows"] += rows
        if a.json:
            a.json.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
