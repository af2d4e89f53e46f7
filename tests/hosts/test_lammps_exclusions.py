"""Atoms that LAMMPS excludes from all pairs are not there for the pair style clebsch: energies, forces and stress are
those of `clebsch energy` without them: python3 tests/hosts/test_lammps_exclusions.py (arguments: lammps_cases.py)

An excluded atom looks like one that is far from all others, which has the energy of a single atom."""
import math

from lammps_cases import COMPUTES, PLAIN, Structure, begin, compare, expect, main, results, run

MIXED = Structure("mixed", (9, 9, 9, 0, 0, 0), 60, strangers=9)
MIXED.elements = " HOO"
LONE = Structure("lone", (40, 40, 40, 0, 0, 0), 3, spread=0.05)  # a fourth atom is far away
LONE.atoms.append((1, [25.0, 25.0, 25.0]))
EX, THIRD = (14, 15, 16, 30), tuple(range(1, 10))  # atoms of a group, and of type 3
MOLECULES = [20 + i if i + 1 in EX else 1 for i in range(60)]
GROUPS = "group ex id 14 15 16 30\ngroup rest subtract all ex\ngroup third type 3\n"
HYBRID = ("pair_style hybrid clebsch device cpu dtype f64 knots 0 zero 4.0\n"
          "pair_coeff * * clebsch model.safetensors H O O\npair_coeff * 3 zero")
# name: pair style, line before the atoms are read, exclusion, and the numbers of atoms that are not there
CASES = {
    "group": (PLAIN, "", "neigh_modify exclude group ex all", EX),
    "two_groups": (PLAIN, "newton off", "neigh_modify exclude group ex ex exclude group ex rest", EX),
    "molecules": (PLAIN, "", "neigh_modify exclude molecule/inter all", EX),
    "types": (PLAIN, "", "neigh_modify exclude type 3 1 exclude type 3 2 exclude type 3 3", THIRD),
    "include": (PLAIN, "", "atom_modify first rest\nneigh_modify include rest", EX),
    "given_away": (HYBRID, "", "", THIRD),
}


def totals(folder):
    MIXED.write(folder, MOLECULES)
    references = {out: MIXED.reference(folder, out) for out in (EX, THIRD, ())}
    script, must = "", {}
    for name, (pair, before, exclusion, out) in CASES.items():
        script += begin(MIXED, pair, before, GROUPS, "bond") + COMPUTES + exclusion + "\n"
        script += results(name, "rest" if name == "include" else "all")
        must[name] = references[out]
        if exclusion.startswith("neigh_modify exclude"):
            script += "neigh_modify exclude none\n" + results(name + "_lifted")
            must[name + "_lifted"] = references[()]
    # LAMMPS does not clear the forces on atoms that are not included.
    rest = [i for i in range(60) if i + 1 not in EX]
    must["include"] = dict(references[EX], **{key: [references[EX][key][i] for i in rest] for key in ("energies", "forces")})
    for n in (1, 2):
        status, said = run(folder, n, script)
        expect(status == 0, f"{n} processes: status {status}\n{said[-3000:]}")
        expect("are excluded" not in said, f"{n} processes: a warning, though no atom has only some of its pairs")
        for name in must if status == 0 else ():
            compare(folder, name, f"{name}, {n} processes", must[name])


def some_pairs(folder):
    """Atoms that lack only some pairs: one warning. All atoms without pairs: nothing is there."""
    script = begin(MIXED, PLAIN, "", GROUPS, "bond") + "neigh_modify exclude group third third\nrun 0\nrun 0\n"
    status, out = run(folder, 2, script)
    expect(status == 0 and out.count("are excluded") == 1, f"some pairs are excluded: status {status}\n{out[-1500:]}")
    status, out = run(folder, 2, begin(MIXED, PLAIN, "", "set group all mol 7", "bond")
                      + 'neigh_modify exclude molecule/intra all\nrun 0\nprint "energy $(pe)"\n')
    expect(status == 0 and "energy 0\n" in out, f"all pairs are excluded: status {status}\n{out[-1500:]}")


def bonds(folder):
    """special_bonds hide bonded pairs unless they are told not to."""
    near = min(range(20, 60), key=lambda j: MIXED.distance(MIXED.atoms[19][1], MIXED.atoms[j][1])) + 1
    start = begin(MIXED, PLAIN, "bond_style zero", f"bond_coeff *\ncreate_bonds single/bond 1 20 {near}", "bond") \
        + COMPUTES
    for deleted in "", "delete_bonds all bond 1\n":
        status, out = run(folder, 2, start + deleted + "run 0\n")
        said = f"the bonded atoms 20 and {near}" in out or f"the bonded atoms {near} and 20" in out
        expect(status and said, f"a hidden bond: status {status}\n{out[-1500:]}")
    must = MIXED.reference(folder)
    status, out = run(folder, 2, start + "special_bonds lj/coul 1e-50 1e-50 1e-50\n" + results("weak") +
                      "special_bonds lj/coul 0 0 0\ndelete_bonds all bond 1 remove special\n" + results("deleted"))
    expect(status == 0, f"bonds: status {status}\n{out[-1500:]}")
    for name in ("weak", "deleted") if status == 0 else ():
        compare(folder, name, f"bonds, {name}", must)


def energy_of(folder, structure, out):
    return structure.reference(folder, out)["energy"]


def far_away(folder):
    """A single atom has its energy as long as it is not excluded."""
    LONE.write(folder)
    must = LONE.reference(folder), LONE.reference(folder, (4,))
    script = begin(LONE) + COMPUTES + "group far id 4\n" + results("far") + "neigh_modify exclude group far all\n" \
        + results("gone")
    status, out = run(folder, 2, script)
    expect(status == 0, f"far away: status {status}\n{out[-1500:]}")
    for name, reference in zip(("far", "gone"), must):
        compare(folder, name, name, reference)


# ---- ideal gases: fix gcmc excludes the atoms that it tries to delete

BOLTZMANN, PLANCK, MVV2E = 8.617343e-5, 4.135667403e-3, 1.0364269e-4  # of units metal
TEMPERATURE, SIDE, MEAN = 2000.0, 200.0, 30.0


def potential(mass):
    """The chemical potential of MEAN particles, each of energy 0."""
    length = math.sqrt(PLANCK**2 / (2 * math.pi * mass * MVV2E * BOLTZMANN * TEMPERATURE))
    return BOLTZMANN * TEMPERATURE * math.log(MEAN * length**3 / SIDE**3)


def gas(folder, n, name, style, particle, kind, keywords, mass, size, energy):
    """The mean number of particles of which no two ever meet."""
    script = f"""clear
units metal
atom_style {style}
region b block 0 {SIDE} 0 {SIDE} 0 {SIDE}
create_box 2 b
mass 1 1.008
mass 2 15.999
{particle}
pair_style clebsch device cpu dtype f64 knots 0
pair_coeff * * model.safetensors H O
variable n equal atoms/{size}
fix 1 all gcmc 1 15 0 {kind} 29494 {TEMPERATURE} {potential(mass) + energy:.10f} 0.5 &
  full_energy overlap_cutoff 12 {keywords}
fix mean all ave/time 1 80 120 v_n file {name}.mean
run 120
"""
    status, out = run(folder, n, script)
    expect(status == 0, f"gas of {name}, {n} processes: status {status}\n{out[-1500:]}")
    mean = float((folder / f"{name}.mean").read_text().split()[-1]) if status == 0 else math.nan
    expect(abs(mean - MEAN) < 8, f"gas of {name}, {n} processes: {mean} particles, not {MEAN}")


def gases(folder):
    atom = Structure("atom", (SIDE,) * 3 + (0,) * 3, 0)
    atom.atoms = [(1, [1.0] * 3)]
    for n in (1, 2):
        gas(folder, n, "atoms", "atomic", "create_atoms 1 single 9 9 9", "1", "", 1.008, 1, energy_of(folder, atom, ()))
    water = Structure("water", (SIDE,) * 3 + (0,) * 3, 0)
    water.atoms = [(2, [9.0, 9.0, 9.0]), (1, [9.9, 9.2, 9.0]), (1, [8.8, 9.9, 9.0])]
    lines = ["water", "3 atoms", "", "Coords", ""]
    lines += [f"{i + 1} {x[0]} {x[1]} {x[2]}" for i, (_, x) in enumerate(water.atoms)]
    lines += ["", "Types", ""] + [f"{i + 1} {kind}" for i, (kind, _) in enumerate(water.atoms)]
    (folder / "water.molecule").write_text("\n".join(lines) + "\n")
    energy = energy_of(folder, water, ())
    gas(folder, 1, "molecules", "bond", "molecule water water.molecule\ncreate_atoms 0 single 9 9 9 mol water 7", "0",
        f"mol water intra_energy {energy:.12f}", 18.015, 3, 0)


def test(folder):
    totals(folder)
    some_pairs(folder)
    bonds(folder)
    far_away(folder)
    gases(folder)


main(test)
