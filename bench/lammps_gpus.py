"""LAMMPS on several GPUs of one host: the time of a step of water or diamond at constant energy, on one GPU, two, ...,
each a process of its own, and what it is made of.  Rows of ghosts go from GPU to GPU, or with --p2p no through the host.
For example

    python3 bench/lammps_gpus.py --knots 512 \\
        --model "SevenNet-0 (11 July 2024)=sevennet.safetensors" --gpus 1 2 4 8 --json h200_lammps.json

Strong scaling: as many atoms on any number of GPUs (--strong); weak: so many atoms for each (--weak).  Water is the grid
of molecules of bench/peers/models.py, repeated; numbers of atoms are rounded to what a box of it has."""
import argparse
import pathlib
import re
import sys

import lammps_run
from rows import Rows

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
from models import water  # noqa: E402

SIDE = 4  # molecules along a box


def boxes(n, times):
    """About n boxes or cells along x, y and z, nearly as many along each, and so many times as many in all."""
    side = max(1, round(n ** (1 / 3)))
    counts = [side, side, max(1, round(n / side**2))]
    while times > 1:
        factor = next(k for k in range(2, times + 1) if times % k == 0)
        counts[counts.index(min(counts))] *= factor
        times //= factor
    return tuple(counts)


def step(a, system, model, counts, gpus):
    numbers, positions, length = water(SIDE)
    data = lammps_run.data_file(["H" if z == 1 else "O" for z in numbers], positions, [length] * 3)
    if system == "water":
        text = f"read_data atoms.data\nreplicate {' '.join(map(str, counts))}"
    else:
        x, y, z = counts
        text = (f"lattice diamond 3.567\nregion all block 0 {x} 0 {y} 0 {z}\ncreate_box 1 all\n"
                f"create_atoms 1 box\nmass 1 {lammps_run.MASSES['C']}\ndisplace_atoms all random 0.02 0.02 0.02 1")
    options = argparse.Namespace(**{**vars(a), "model": model, "list": False})
    said = lammps_run.dynamics(options, data, text, ["H", "O"] if system == "water" else ["C"], gpus, f"run {a.steps}")
    seconds, n = re.findall(r"^Loop time of (\S+) on \d+ procs for \d+ steps with (\d+) atoms", said, re.M)[-1]
    parts = re.findall(r"^Clebsch: .*", said, re.M)[-1]
    shares = {name: float(x) / 100 for name, x in re.findall(r"(\w+) ([\d.]+) %", parts)}
    way = re.search(r"exchange \S+ % \((.*?)\)", parts)
    return {"atoms": int(n), "seconds": float(seconds) / a.steps, "shares": shares,
            "p2p": {"": "-", "p2p": "yes", "MPI": "no"}.get(way[1] if way else "", "partly")}


def shown(r):
    return f"{r['atoms']} atoms, {r['seconds'] * 1e3:.4g} ms a step: " + ", ".join(
        f"{k} {100 * x:.3g} %" for k, x in r["shares"].items()) + f"; p2p {r['p2p']}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", action="append", required=True, metavar="NAME=FILE")
    p.add_argument("--gpus", type=int, nargs="+", default=[1, 2])
    p.add_argument("--strong", type=int, nargs="*", default=[13824, 93312, 995328], help="atoms of water in all")
    p.add_argument("--weak", type=int, nargs="*", default=[248832], help="atoms of water for each GPU")
    p.add_argument("--crystal", type=int, nargs="*", default=[110592], help="atoms of diamond in all")
    p.add_argument("--steps", type=int, default=20)
    lammps_run.add_options(p)
    p.add_argument("--device", default="cuda")
    p.add_argument("--json", type=pathlib.Path)
    a = p.parse_args()
    cases = ([("strong", "water", n) for n in a.strong] + [("strong", "diamond", n) for n in a.crystal]
             + [("weak", "water", n) for n in a.weak])
    rows = Rows(a.json)
    for name, model in (m.rsplit("=", 1) for m in a.model):
        for kind, system, atoms in cases:
            for gpus in a.gpus:
                counts = boxes(atoms / (3 * SIDE**3 if system == "water" else 8), gpus if kind == "weak" else 1)
                rows.add(f"{name}, {kind}, {system}, {gpus} GPUs", (name, system, counts, gpus), lambda: step(a, system, model, counts, gpus),
                         shown, model=name, kind=kind, system=system, gpus=gpus)
    rows.end()


if __name__ == "__main__":
    main()
