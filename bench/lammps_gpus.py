"""LAMMPS on several GPUs of one host: the time of a step of water or diamond at constant energy, on one GPU, two, ...,
each a process of its own, and what it is made of.  Rows of ghosts go from GPU to GPU, or with --p2p no through the host.
For example, with the environment of ci/lammps.sh,

    LAMMPS_PLUGIN_PATH=build/hosts/lammps python3 bench/lammps_gpus.py --lammps .lammps/bin/lmp \\
        --model "SevenNet-0 (11 July 2024)=sevennet.safetensors" --gpus 1 2 4 8 --json h200_lammps.json

Strong scaling: as many atoms on any number of GPUs (--strong); weak: so many atoms for each (--weak).  Water is the grid
of molecules of bench/peers/models.py, repeated; numbers of atoms are rounded to what a box of it has."""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
from models import water  # noqa: E402

SIDE = 4  # molecules along a box
INPUT = """units metal
atom_style atomic
{atoms}
neighbor 0.5 bin
neigh_modify every 1 delay 0 check yes
pair_style clebsch device {device} knots 512 p2p {p2p}
pair_coeff * * {model} {elements}
velocity all create 300 1
timestep 0.0005
fix 1 all nve
thermo {steps}
run 3
run {steps}
"""


def write_box(path):
    numbers, positions, length = water(SIDE)
    rows = [f"{i + 1} {1 if z == 1 else 2} {x:.8f} {y:.8f} {w:.8f}"
            for i, (z, (x, y, w)) in enumerate(zip(numbers, positions))]
    path.write_text(f"water\n\n{len(rows)} atoms\n2 atom types\n" + "".join(f"0 {length} {d}lo {d}hi\n" for d in "xyz")
                    + "\nMasses\n\n1 1.008\n2 15.999\n\nAtoms # atomic\n\n" + "\n".join(rows) + "\n")


def boxes(atoms):
    """Three factors, nearly equal, of the number of boxes."""
    side = max(1, round((atoms / (3 * SIDE**3))**(1 / 3)))
    return side, side, max(1, round(atoms / (3 * SIDE**3) / side**2))


def step(a, system, model, atoms, gpus):
    with tempfile.TemporaryDirectory() as folder:
        if system == "water":
            write_box(pathlib.Path(folder, "box.data"))
            text = f"read_data {folder}/box.data\nreplicate {' '.join(map(str, boxes(atoms)))}"
        else:
            side = max(1, round((atoms / 8)**(1 / 3)))
            text = (f"lattice diamond 3.567\nregion all block 0 {side} 0 {side} 0 {side}\ncreate_box 1 all\n"
                    "create_atoms 1 box\nmass 1 12.011\ndisplace_atoms all random 0.02 0.02 0.02 1")
        script = pathlib.Path(folder, "in")
        script.write_text(INPUT.format(atoms=text, device=a.device, p2p=a.p2p, model=model, steps=a.steps,
                                       elements="H O" if system == "water" else "C"))
        done = subprocess.run([a.mpiexec, "-n", str(gpus), a.lammps, "-in", script, "-log", "none"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"LAMMPS on {gpus} GPUs: status {done.returncode}\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
    seconds, n = re.findall(r"^Loop time of (\S+) on \d+ procs for \d+ steps with (\d+) atoms", done.stdout, re.M)[-1]
    parts = re.findall(r"^Clebsch: .*", done.stdout, re.M)[-1]
    shares = {name: float(x) / 100 for name, x in re.findall(r"(\w+) ([\d.]+) %", parts)}
    return {"atoms": int(n), "seconds": float(seconds) / a.steps, "shares": shares}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", action="append", required=True, metavar="NAME=FILE")
    p.add_argument("--gpus", type=int, nargs="+", default=[1, 2])
    p.add_argument("--strong", type=int, nargs="*", default=[13824, 93312, 995328], help="atoms of water in all")
    p.add_argument("--weak", type=int, nargs="*", default=[248832], help="atoms of water for each GPU")
    p.add_argument("--crystal", type=int, nargs="*", default=[110592], help="atoms of diamond in all")
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--p2p", choices=["auto", "yes", "no"], default="auto")
    p.add_argument("--device", default="cuda")
    p.add_argument("--lammps", default="lmp")
    p.add_argument("--mpiexec", default="mpiexec")
    p.add_argument("--json", type=pathlib.Path)
    a = p.parse_args()
    cases = ([("strong", "water", n) for n in a.strong] + [("strong", "crystal", n) for n in a.crystal]
             + [("weak", "water", n) for n in a.weak])
    rows = []
    for name, model in (m.rsplit("=", 1) for m in a.model):
        for kind, system, atoms in cases:
            for gpus in a.gpus:
                r = step(a, system, model, atoms * (gpus if kind == "weak" else 1), gpus)
                rows.append({"model": name, "kind": kind, "system": system, "gpus": gpus, "p2p": a.p2p, **r})
                print(f"{name}, {kind}, {system}, {r['atoms']} atoms, {gpus} GPUs: {r['seconds'] * 1e3:.4g} ms a step", flush=True)
    if a.json:
        a.json.write_text(json.dumps({"results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
