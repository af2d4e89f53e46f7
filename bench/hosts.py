"""The same atoms in every host: `clebsch energy`, `clebsch md`, and LAMMPS on some processes, each with its time a
step beside that of `clebsch energy`; below LAMMPS' lines what its steps are made of. For example

    python3 bench/hosts.py --model model.safetensors --structure water.xyz --device cuda --processes 1 2

Structures are extended XYZ of orthorhombic, periodic cells. Each process has a device of its own if there are as
many: --device names a backend, as in docs/lammps.md."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile

MASSES = {"H": 1.008, "C": 12.011, "N": 14.007, "O": 15.999, "Na": 22.99, "Si": 28.085, "Cl": 35.45, "Cu": 63.546}


def read(path):
    """Elements and positions, and the lengths of the cell."""
    lines = pathlib.Path(path).read_text().split("\n")
    found = re.search(r'Lattice="([^"]*)"', lines[1])
    cell = [float(x) for x in found[1].split()] if found else []
    if len(cell) != 9 or any(cell[i] for i in (1, 2, 3, 5, 6, 7)):
        raise SystemExit(f"{path}: Lattice must be three vectors along x, y and z")
    if "species:S:1:pos:R:3" not in lines[1]:
        raise SystemExit(f"{path}: columns must begin with species:S:1:pos:R:3")
    rows = [line.split()[:4] for line in lines[2:2 + int(lines[0])]]
    return [r[0] for r in rows], [[float(x) for x in r[1:]] for r in rows], cell[0::4]


def write_data(path, elements, positions, cell, kinds):
    lines = [f"atoms\n\n{len(elements)} atoms\n{len(kinds)} atom types\n"]
    lines += [f"0 {length} {d}lo {d}hi" for length, d in zip(cell, "xyz")]
    lines += ["\nMasses\n"] + [f"{i + 1} {MASSES.get(k, 20.0)}" for i, k in enumerate(kinds)] + ["\nAtoms # atomic\n"]
    lines += [f"{i + 1} {kinds.index(e) + 1} {x[0]} {x[1]} {x[2]}"
              for i, (e, x) in enumerate(zip(elements, positions))]
    path.write_text("\n".join(lines) + "\n")


def run(command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout


def energy(a, structure):
    said = run([a.clebsch, "energy", "--json", "--repeat", a.repeat, *common(a, structure)])
    return json.loads(said)["seconds"]


def md(a, structure):
    said = run([a.clebsch, "md", "--steps", a.steps, "--dt", 0.5, "--temperature", 300, "--every", a.steps,
                *common(a, structure)])
    number, unit = re.search(r"^time +([\d.e+-]+) (ms|us|s) a step", said, re.M).groups()
    return float(number) * {"s": 1, "ms": 1e-3, "us": 1e-6}[unit]


def common(a, structure):
    knots = [] if a.knots is None else ["--knots", a.knots]
    return ["--model", a.model, "--structure", structure, "--device", a.device, *knots]


def lammps(a, structure, processes, folder):
    """Seconds a step, and the line of what steps are made of."""
    elements, positions, cell = read(structure)
    kinds = sorted(set(elements))
    write_data(folder / "atoms.data", elements, positions, cell, kinds)
    knots = "" if a.knots is None else f" knots {a.knots}"
    (folder / "in.lmp").write_text(f"""units metal
atom_style atomic
boundary p p p
read_data atoms.data
neighbor 0.5 bin
neigh_modify every 1 delay 0 check yes
pair_style clebsch device {a.device}{knots}{" list yes" if a.list else ""}
pair_coeff * * {pathlib.Path(a.model).resolve()} {" ".join(kinds)}
velocity all create 300 1
timestep 0.0005
fix 1 all nve
thermo {a.steps}
run 20
run {a.steps}
""")
    prefix = pathlib.Path(a.lammps).resolve()
    binary = next(prefix.glob("lib/python3*/site-packages/lammps/lmp"))
    paths = [prefix / "lib", prefix / "lib" / "mpich", os.environ.get("LD_LIBRARY_PATH", "")]
    environment = dict(os.environ, LAMMPS_PLUGIN_PATH=str(pathlib.Path(a.plugin).resolve()), OMP_NUM_THREADS="1",
                       LD_LIBRARY_PATH=":".join(map(str, paths)))
    said = run([prefix / "bin" / "mpiexec", "-n", processes, binary, "-in", "in.lmp", "-log", "none"], cwd=folder,
               env=environment)
    time = float(re.findall(r"^Loop time of ([\d.e+-]+)", said, re.M)[-1])
    return time / a.steps, re.findall(r"^(?:Clebsch: .*|Pair .*|Neigh .*|Comm .*)", said, re.M)[-4:]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", required=True, help="of `clebsch convert`")
    p.add_argument("--structure", required=True, nargs="+", help="extended XYZ")
    p.add_argument("--device", default="cuda")
    p.add_argument("--knots", type=int)
    p.add_argument("--processes", type=int, nargs="*", default=[1], help="of LAMMPS (default: 1)")
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--repeat", type=int, default=20, help="of `clebsch energy` (default: 20)")
    p.add_argument("--list", action="store_true", help="LAMMPS makes a neighbour list")
    p.add_argument("--clebsch", default="build/tools/clebsch")
    p.add_argument("--plugin", default="build/hosts/lammps", help="folder of clebschplugin.so")
    p.add_argument("--lammps", default=".lammps", help="environment of ci/lammps.sh")
    a = p.parse_args()
    print("| host | atoms | ms a step | of energy |\n| --- | --- | --- | --- |")
    for structure in a.structure:
        n, base, notes = len(read(structure)[0]), energy(a, structure), []
        rows = [("energy", base), ("md", md(a, structure))]
        for processes in a.processes:
            with tempfile.TemporaryDirectory() as folder:
                seconds, said = lammps(a, structure, processes, pathlib.Path(folder))
            rows.append((f"LAMMPS, {processes} process{'es' * (processes > 1)}", seconds))
            notes += said
        for name, seconds in rows:
            print(f"| {name} | {n} | {seconds * 1e3:.3g} | {seconds / base:.2f} |", flush=True)
        print("\n".join(["", *notes, ""]), flush=True)


main()
