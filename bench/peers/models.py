#!/usr/bin/env python3
"""Whole models beside others: milliseconds a step of MACE in several programs, through ASE.

A step is one call of a calculator: positions in, energy, forces and stress out, neighbour lists and
all copies included.  Every program gets the same model (written by make_mace.py) and the same path
of positions, straight lines of 0.5 fs at 300 K, and runs as its documentation says is fast, in a
process of its own.  Forces are compared with those of Clebsch in f64 without splines."""
import argparse
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np


def carbon(cells):
    """Diamond of cells^3 cubic cells (8 atoms each), displaced at random by 0.02 Angstrom."""
    a = 3.567
    basis = np.array([[0, 0, 0], [0, 2, 2], [2, 0, 2], [2, 2, 0], [1, 1, 1], [1, 3, 3], [3, 1, 3],
                      [3, 3, 1]]) * a / 4
    grid = np.indices((cells,) * 3).reshape(3, -1).T * a
    positions = (grid[:, None] + basis).reshape(-1, 3)
    positions += np.random.default_rng(0).normal(0, 0.02, positions.shape)
    return np.full(len(positions), 6), positions, cells * a


def water(side):
    """side^3 molecules at 1 g/cm^3, on a cubic grid, each turned at random."""
    a, rng = 3.104, np.random.default_rng(0)
    bond, half = 0.9572, np.radians(104.52 / 2)
    molecule = bond * np.array([[0, 0, 0], [np.sin(half), 0, np.cos(half)],
                                [-np.sin(half), 0, np.cos(half)]])
    turns = np.linalg.qr(rng.normal(size=(side**3, 3, 3)))[0]
    positions = np.einsum("nij,aj->nai", turns, molecule)
    positions += (np.indices((side,) * 3).reshape(3, -1).T * a)[:, None]
    return np.tile([8, 1, 1], side**3), positions.reshape(-1, 3), side * a


SYMBOLS, KINDS = {1: "H", 6: "C", 8: "O"}, {"carbon": carbon, "water": water}


def write(path, numbers, positions, length):
    """Extended XYZ of a periodic cube."""
    rows = [f"{SYMBOLS[n]} {x:.8f} {y:.8f} {z:.8f}" for n, (x, y, z) in zip(numbers, positions)]
    path.write_text(f'{len(rows)}\nLattice="{length} 0 0 0 {length} 0 0 0 {length}" Properties=species:S:1:pos:R:3 pbc="T T T"\n'
                    + "\n".join(rows) + "\n")


def system(name):
    from ase import Atoms
    kind, size = name.split(":")
    numbers, positions, length = {"carbon": carbon, "water": water}[kind](int(size))
    return Atoms(numbers=numbers, positions=positions, cell=[length] * 3, pbc=True)


def clebsch(folder, **options):
    from clebsch.ase import Calculator
    return Calculator(f"{folder}/mace.safetensors", device="cuda", **options)


def symmetrix(folder):
    from symmetrix import Symmetrix
    return Symmetrix(f"{folder}/mace.json", dtype="float32", execution_profile="speed",
                     neighbor_skin=0.5)


def mace(folder, **options):
    from mace.calculators import MACECalculator
    return MACECalculator(model_paths=f"{folder}/mace.model", device="cuda",
                          default_dtype="float32", **options)


# Name in tables, the package whose version is printed, and the calculator.
PROGRAMS = {
    "reference": ("clebsch", lambda f: clebsch(f, dtype="f64", knots=0)),
    "clebsch": ("clebsch", lambda f: clebsch(f, dtype="f32", knots=512)),
    "clebsch networks": ("clebsch", lambda f: clebsch(f, dtype="f32", knots=0)),
    "symmetrix-xl": ("symmetrix-xl", symmetrix),
    "mace": ("mace-torch", mace),
    "mace cuequivariance": ("mace-torch", lambda f: mace(f, enable_cueq=True)),
}


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        import clebsch as imported
        return imported.__version__


def measure(program, name, folder, seconds):
    """One program on one system: a row of the results."""
    package, calculator = PROGRAMS[program]
    atoms = system(name)
    start = atoms.positions.copy()
    rng = np.random.default_rng(1)
    velocity = rng.normal(size=start.shape) * np.sqrt(0.02585 / atoms.get_masses())[:, None]
    path = (velocity - velocity.mean(0)) * 0.09822694788 * 0.5  # of one step of 0.5 fs
    wanted = ["energy", "forces", "stress"]
    calc = calculator(folder)
    calc.calculate(atoms, wanted, ["positions", "numbers", "cell", "pbc"])
    energy, forces = float(calc.results["energy"]), np.array(calc.results["forces"])
    known = pathlib.Path(folder) / f"reference-{name.replace(':', '-')}.npz"
    if program == "reference":
        np.savez(known, energy=energy, forces=forces)
    row = {"model": "MACE 128x0e+128x1o", "system": name, "atoms": len(atoms), "program": program,
           "version": version(package)}
    if known.exists():
        reference = np.load(known)
        row["force_error"] = float(np.abs(forces - reference["forces"]).max())
        row["largest_force"] = float(np.abs(reference["forces"]).max())
        row["energy_error_per_atom"] = abs(energy - float(reference["energy"])) / len(atoms)
    times, step, begin = [], 0, time.perf_counter()
    while step < 203 and (step < 6 or time.perf_counter() - begin < seconds):
        step += 1
        atoms.positions = start + step * path
        now = time.perf_counter()
        calc.calculate(atoms, wanted, ["positions"])
        calc.results["forces"][0]
        times.append(1e3 * (time.perf_counter() - now))
    row["ms"] = float(np.median(times[3:]))
    row["steps"] = len(times) - 3
    return row


def card():
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.split("\n")[0]
    except OSError:
        return "?"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", required=True,
                        help="has mace.model, mace.safetensors (clebsch convert) and mace.json "
                             "(symmetrix_extract_mace), of one model")
    parser.add_argument("--systems", default="carbon:5,carbon:9,carbon:23,water:6,water:12",
                        help="carbon:CELLS has 8 CELLS^3 atoms, water:SIDE 3 SIDE^3")
    parser.add_argument("--programs", default=",".join(PROGRAMS), help="separated by commas")
    parser.add_argument("--seconds", type=float, default=4, help="of steps, for each row")
    parser.add_argument("--json", default="run.json", help="results are written here after each row")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.one:
        print("ROW " + json.dumps(measure(a.programs, a.systems, a.folder, a.seconds)), flush=True)
        os._exit(0)  # some programs crash when they end
    run = {"device": card(), "clebsch": version("clebsch"), "results": []}
    for name in a.systems.split(","):
        for program in a.programs.split(","):
            command = [sys.executable, __file__, "--one", "--folder", a.folder, "--systems", name,
                       "--programs", program, "--seconds", str(a.seconds)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=120)
                text = done.stdout + done.stderr
            except subprocess.TimeoutExpired:
                text = "longer than 120 s"
            rows = [line[4:] for line in text.split("\n") if line.startswith("ROW ")]
            if rows:
                run["results"].append(json.loads(rows[0]))
                print(rows[0], flush=True)
            else:
                print(f"{program}, {name}: {text.strip()[-300:]}", flush=True)
            pathlib.Path(a.json).write_text(json.dumps(run, indent=1) + "\n")


if __name__ == "__main__":
    main()
