"""Molecular dynamics of about 200 atoms, as boards of models time it: water, a crystal and an alloy with each model,
through ASE and through `clebsch md`, at constant energy from 300 K. For each: milliseconds a step, the hours that
80,000 steps take, and how far the energy was from the start at the end. For example

    PYTHONPATH=python CLB_LIBRARY=build/libclebsch.so python3 bench/md_board.py --device cuda \\
        --models l3i5.safetensors nequix.safetensors mace.safetensors --json board.json

Needs ASE. Searches for neighbours, copies and what the program itself does are in the times; opening the model and the
first steps, in which kernels are compiled and the step is recorded, are not in those of ASE."""
import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
from ase import Atoms, units
from ase.build import bulk
from ase.io import write
from ase.md.velocitydistribution import MaxwellBoltzmannDistribution
from ase.md.verlet import VelocityVerlet

from clebsch.ase import Calculator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
from models import water  # noqa: E402

BOARD = 80000  # steps of a run
WARM = 20


def box():
    numbers, positions, length = water(4)
    return Atoms(numbers=numbers, positions=positions, cell=[length] * 3, pbc=True)


def crystal():
    return bulk("NaCl", "rocksalt", a=5.64, cubic=True).repeat(3)


def alloy():
    """Five metals at random on the sites of a face-centred cubic crystal."""
    atoms = bulk("Ni", "fcc", a=3.6, cubic=True).repeat((4, 4, 3))
    atoms.symbols = np.random.default_rng(0).permutation((["Cr", "Mn", "Fe", "Co", "Ni"] * len(atoms))[:len(atoms)])
    return atoms


SYSTEMS = {"water": (box, 0.5), "crystal": (crystal, 1.0), "alloy": (alloy, 1.0)}  # and fs a step


def through_ase(a, model, atoms, fs):
    """Milliseconds a step, and the change of energy (meV an atom)."""
    atoms = atoms.copy()
    atoms.calc = Calculator(model, a.device)
    MaxwellBoltzmannDistribution(atoms, temperature_K=300, rng=np.random.default_rng(1))
    run = VelocityVerlet(atoms, fs * units.fs)
    run.run(WARM)
    energy, start = atoms.get_total_energy(), time.perf_counter()
    run.run(a.steps)
    seconds = time.perf_counter() - start
    return 1e3 * seconds / a.steps, 1e3 * (atoms.get_total_energy() - energy) / len(atoms)


def through_md(a, model, atoms, fs):
    with tempfile.TemporaryDirectory() as folder:
        structure, energies = pathlib.Path(folder, "atoms.extxyz"), pathlib.Path(folder, "energies.csv")
        write(structure, atoms)
        command = [a.clebsch, "md", "--model", model, "--structure", structure, "--device", a.device, "--steps", a.steps,
                   "--dt", fs, "--temperature", 300, "--every", max(1, a.steps // 10), "--csv", energies]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr[-2000:]}")
        rows = list(csv.DictReader(line for line in energies.read_text().split("\n") if line and line[0] != "#"))
    number, unit = re.search(r"^time +([\d.e+-]+) (ms|us|s) a step", done.stdout, re.M).groups()
    column = next(name for name in rows[0] if name.startswith("total"))
    change = float(rows[-1][column]) - float(rows[0][column])
    return float(number) * {"s": 1e3, "ms": 1, "us": 1e-3}[unit], 1e3 * change / len(atoms)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", required=True, nargs="+", help="of `clebsch convert`")
    p.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))
    p.add_argument("--device", default="cuda")
    p.add_argument("--steps", type=int, default=BOARD, help=f"of each run (default: {BOARD})")
    p.add_argument("--json", type=pathlib.Path, help="write the results to this file, too")
    p.add_argument("--clebsch", default="build/tools/clebsch")
    a = p.parse_args()
    results = []
    print("| model | system | atoms | through | ms a step | hours of 80,000 steps | meV an atom off |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for model in a.models:
        for name in a.systems:
            make, fs = SYSTEMS[name]
            atoms = make()
            for through, run in (("ASE", through_ase), ("md", through_md)):
                ms, off = run(a, model, atoms, fs)
                print(f"| {pathlib.Path(model).stem} | {name} | {len(atoms)} | {through} | {ms:.3g} | "
                      f"{ms * BOARD / 3.6e6:.3g} | {off:.2g} |", flush=True)
                results.append({"model": pathlib.Path(model).stem, "system": name, "atoms": len(atoms),
                                "through": through, "steps": a.steps, "fs": fs, "ms": ms, "mev_per_atom": off})
    if a.json:
        a.json.write_text(json.dumps({"device": a.device, "runs": results}, indent=1) + "\n")


main()
