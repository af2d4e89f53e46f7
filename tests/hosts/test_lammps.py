"""LAMMPS with the pair style clebsch on 1, 2 and 4 processes against the command `energy`:
python3 tests/hosts/test_lammps.py LAMMPS_PYTHON PLUGIN COMMAND MAKE_MODEL

All cases of a number of processes are one run of LAMMPS, with `clear` between them."""
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

    def write(self, folder):
        lx, ly, lz, xy, xz, yz = self.cell
        lines = [f"{self.name}\n\n{len(self.atoms)} atoms\n3 atom types\n"]
        lines += [f"0 {lx} xlo xhi\n0 {ly} ylo yhi\n0 {lz} zlo zhi\n{xy} {xz} {yz} xy xz yz\n"]
        lines += ["Masses\n\n1 1.008\n2 15.999\n3 39.95\n\nAtoms\n"]
        lines += [f"{i + 1} {kind} {x[0]:.17g} {x[1]:.17g} {x[2]:.17g}" for i, (kind, x) in enumerate(self.atoms)]
        (folder / f"{self.name}.data").write_text("\n".join(lines) + "\n")
        known = [atom for atom in self.atoms if atom[0] < 3]
        lines = [str(len(known)), f'Lattice="{lx} 0 0 {xy} {ly} 0 {xz} {yz} {lz}" '
                 'Properties=species:S:1:pos:R:3 pbc="T T T"']
        lines += [f"{' HO'[kind]} {x[0]:.17g} {x[1]:.17g} {x[2]:.17g}" for kind, x in known]
        (folder / f"{self.name}.xyz").write_text("\n".join(lines) + "\n")

    def reference(self, folder):
        """What `clebsch energy` says, in f64."""
        out = subprocess.run([COMMAND, "energy", "--model", folder / "model.safetensors", "--structure",
                              folder / f"{self.name}.xyz", "--device", "cpu", "--json", "--repeat", "1"],
                             check=True, capture_output=True, text=True).stdout
        found = json.loads(out)
        at, energies, forces = 0, [], []
        for kind, _ in self.atoms:
            energies.append(found["atom_energies"][at] if kind < 3 else 0.0)
            forces.append(found["forces"][at] if kind < 3 else [0.0] * 3)
            at += kind < 3
        s = found["stress"]
        return {"energy": found["energy"], "energies": energies, "forces": forces,
                "stress": [s[0], s[4], s[8], s[1], s[2], s[5]]}


SMALL = Structure("small", (4.2, 3.9, 2.6, 0.7, -0.4, 0.5), 9)  # cells smaller than the cutoff
CORNER = Structure("corner", (16, 15, 14, 0, 0, 0), 12, spread=0.25)  # most processes have no atoms
LARGE = Structure("large", (11, 10.5, 12, 1.5, 0, -1), 110, spread=0.999)
MIXED = Structure("mixed", (9, 9, 9, 0, 0, 0), 60, strangers=9)
STRUCTURES = SMALL, CORNER, LARGE, MIXED
PLAIN = "pair_style clebsch device cpu precision f64\npair_coeff * * model.safetensors H O O"
OVERLAY = ("pair_style hybrid/overlay clebsch device cpu precision f64 zero 4.0\n"
           "pair_coeff * * clebsch model.safetensors H O NULL\npair_coeff * * zero")
HYBRID = ("pair_style hybrid clebsch device cpu precision f64 zero 4.0\n"
          "pair_coeff * * clebsch model.safetensors H O NULL\npair_coeff * 3 zero")
CASES = {  # name: structure, pair style, lines before and after the atoms are read
    "small": (SMALL, PLAIN, "", ""),
    "newton_off": (SMALL, PLAIN, "newton off", ""),
    "corner": (CORNER, PLAIN, "", ""),
    "large": (LARGE, PLAIN, "", ""),
    "tiled": (LARGE, PLAIN, "comm_style tiled", "balance 1.0 rcb"),
    "balanced": (LARGE, PLAIN, "newton off", "balance 1.0 shift xyz 5 1.02"),
    "overlay": (MIXED, OVERLAY, "", ""),
    "hybrid": (MIXED, HYBRID, "", ""),
}


def begin(structure, pair, before="", after=""):
    return f"""clear
units metal
atom_style atomic
box tilt large
{before}
read_data {structure.name}.data
{after}
neighbor 0.4 bin
neigh_modify every 1 delay 0 check yes
{pair}
"""


def case(name, structure, pair, before, after):
    return begin(structure, pair, before, after) + f"""compute ea all pe/atom pair
compute sa all stress/atom NULL virial
compute sums all reduce sum c_sa[1] c_sa[2] c_sa[3] c_sa[4] c_sa[5] c_sa[6]
compute p all pressure NULL virial
thermo_style custom step pe c_p[1] c_p[2] c_p[3] c_p[4] c_p[5] c_p[6] c_sums[1]
dump d all custom 1 {name}.dump id fx fy fz c_ea
dump_modify d sort id format float %.17g
run 0 post no
print "$(pe:%.17g) $(vol:%.17g)" file {name}.out
print "$(c_p[1]:%.17g) $(c_p[2]:%.17g) $(c_p[3]:%.17g) $(c_p[4]:%.17g) $(c_p[5]:%.17g) $(c_p[6]:%.17g)" append {name}.out
print "$(c_sums[1]:%.17g) $(c_sums[2]:%.17g) $(c_sums[3]:%.17g) $(c_sums[4]:%.17g) $(c_sums[5]:%.17g) $(c_sums[6]:%.17g)" append {name}.out
"""


def dynamics(n):
    """NVE, a restart in the middle, a minimum, and a box that changes."""
    line = 'print "$(pe:%.17g) $(etotal:%.17g)" append dynamics.out\n'
    state = "write_dump all custom end.dump id x y z vx vy vz modify sort id format float %.17g\n"
    return (begin(LARGE, PLAIN) + "timestep 0.0005\nvelocity all create 900 7 loop all\nfix 1 all nve\n"
            "thermo_style custom step pe ke etotal\nrun 0\n" + line + "run 10\nwrite_restart half.restart\nrun 10\n"
            + line + state + f"clear\nbox tilt large\nread_restart half.restart\n{PLAIN}\nneighbor 0.4 bin\n"
            "neigh_modify every 1 delay 0 check yes\ntimestep 0.0005\nfix 1 all nve\nrun 10\n" + line
            + state.replace("end.dump", "again.dump")
            + "unfix 1\nminimize 0 1e-6 8 20\n" + line
            + "reset_timestep 0\nfix 1 all npt temp 300 300 0.1 iso 0 0 1\nrun 3\n" + line)


def run(folder, n, script, timeout=240):
    """(status, output) of n processes."""
    (folder / "in.lmp").write_text(script)
    command = [PREFIX / "bin" / "mpiexec", "-n", str(n), LMP, "-in", "in.lmp", "-log", "none"]
    try:
        done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=timeout)
    except subprocess.TimeoutExpired as late:
        return None, f"still there after {timeout} s: {late.stdout}"
    return done.returncode, done.stdout


def dump(path):
    lines = path.read_text().split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("ITEM: ATOMS"))
    return [[float(x) for x in line.split()[1:]] for line in lines[start + 1:] if line]


def close(what, found, wanted, tolerance):
    size = max([abs(x) for x in wanted] + [1e-12])
    off = max(abs(x - y) for x, y in zip(found, wanted)) / size if len(found) == len(wanted) else None
    expect(off is not None and off <= tolerance, f"{what}: off by {off} of {size}, allowed {tolerance}")


def flat(rows):
    return [x for row in rows for x in row]


def compare(folder, n, references):
    for name, (structure, *_) in CASES.items():
        must, what = references[structure.name], f"{name}, {n} processes"
        (energy, volume), pressure, sums = (
            [float(x) for x in line.split()] for line in (folder / f"{name}.out").read_text().split("\n")[:3])
        atoms = dump(folder / f"{name}.dump")
        close(f"{what}: energy", [energy], [must["energy"]], 1e-12)
        close(f"{what}: energies of atoms", [a[3] for a in atoms], must["energies"], 1e-11)
        close(f"{what}: forces", flat(a[:3] for a in atoms), flat(must["forces"]), 1e-9)
        close(f"{what}: stress", [-p / NKTV2P for p in pressure], must["stress"], 1e-9)
        close(f"{what}: stress of atoms", [s / NKTV2P / volume for s in sums], must["stress"], 1e-9)


def check_dynamics(folder, n, first):
    lines = [[float(x) for x in line.split()] for line in (folder / "dynamics.out").read_text().split("\n") if line]
    (pe, total), (pe_end, total_end), (_, total_again), (pe_low, _), _ = lines
    moved, what = abs(pe_end - pe), f"dynamics, {n} processes"
    expect(moved > 1e-5 and abs(total_end - total) < 0.05 * moved,
           f"{what}: total energy from {total} to {total_end}, while the potential's moved by {moved}")
    expect(abs(total_again - total_end) < 1e-9, f"{what}: {total_again} after a restart, not {total_end}")
    expect(pe_low < pe_end, f"{what}: the minimum, {pe_low}, is above {pe_end}")
    end, again = (flat(dump(folder / name)) for name in ("end.dump", "again.dump"))
    close(f"{what}: after a restart", again, end, 1e-9)
    if first:
        close(f"{what}: against one process", end, first[0], 1e-8)
        close(f"{what}: energies against one process", flat(lines), first[1], 1e-8)
    return first or (end, flat(lines))


REFUSED = {  # what to say, and the script
    "model.safetensors does not know the element Xe of atom type 2; it knows H O":
        begin(SMALL, PLAIN.replace("H O O", "H Xe O")),
    "pair_coeff must be * * MODEL and 3 elements": begin(SMALL, PLAIN.replace("H O O", "H O")),
    "absent.safetensors": begin(SMALL, PLAIN.replace("model.s", "absent.s")),
    "not precision f16": begin(SMALL, PLAIN.replace("f64", "f16")),
    "not thermostat": begin(SMALL, PLAIN.replace("device cpu", "thermostat 3")),
    "units must be metal, not real": begin(SMALL, PLAIN).replace("units metal", "units real") + "run 0\n",
    "run_style respa would need": begin(SMALL, PLAIN) + "fix 1 all nve\nrun_style respa 2 2 pair 1\nrun 1\n",
    # Only the process that has these two atoms fails, between others that wait for it.
    "they must be finite, and at least": begin(LARGE, PLAIN)
        + f"create_atoms 1 single {' '.join(f'{x:.17g}' for x in LARGE.atoms[0][1])}\nrun 0\n",
}


def refusals(folder):
    for sentence, script in REFUSED.items():
        status, out = run(folder, 2, script, 60)
        said = [line for line in out.split("\n") if sentence in line]
        expect(status not in (0, None) and said, f"2 processes, '{sentence}': status {status}\n{out[-1500:]}")


def main():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="clebsch-lammps-"))
    subprocess.run([MAKE_MODEL, folder / "model.safetensors"], check=True)
    for structure in STRUCTURES:
        structure.write(folder)
    references = {structure.name: structure.reference(folder) for structure in STRUCTURES}
    first = None
    for n in (1, 2, 4):
        for old in [*folder.glob("*.out"), *folder.glob("*.dump")]:
            old.unlink()
        script = "".join(case(name, *rest) for name, rest in CASES.items()) + dynamics(n)
        status, out = run(folder, n, script)
        expect(status == 0, f"{n} processes: status {status}\n{out[-3000:]}")
        if status == 0:
            compare(folder, n, references)
            first = check_dynamics(folder, n, first)
    refusals(folder)
    subprocess.run(["rm", "-r", folder], check=True)
    sys.exit(bool(wrong))


main()
