"""LAMMPS with the pair style clebsch on 1, 2 and 4 processes against the command `energy`:
python3 tests/hosts/test_lammps.py LAMMPS_PYTHON PLUGIN COMMAND MAKE_MODEL

All cases of a number of processes are one run of LAMMPS, with `clear` between them."""
import os
import pathlib
import re
import subprocess

from lammps_cases import (COMMAND, COMPUTES, PLAIN, Structure, begin, close, compare, dump, expect, flat, main, results, run)

SMALL = Structure("small", (4.2, 3.9, 2.6, 0.7, -0.4, 0.5), 9)  # cells smaller than the cutoff
CORNER = Structure("corner", (16, 15, 14, 0, 0, 0), 12, spread=0.25)  # most processes have no atoms
LARGE = Structure("large", (11, 10.5, 12, 1.5, 0, -1), 110, spread=0.999)
MIXED = Structure("mixed", (9, 9, 9, 0, 0, 0), 60, strangers=9)
STRUCTURES = SMALL, CORNER, LARGE, MIXED
LISTED = PLAIN.replace("knots 0", "knots 0 list yes")  # pairs are LAMMPS' own, which the model finds otherwise
MPI = PLAIN.replace("knots 0", "knots 0 p2p no")  # rows of ghosts by messages alone
OVERLAY = ("pair_style hybrid/overlay clebsch device cpu dtype f64 knots 0 zero 4.0\n"
           "pair_coeff * * clebsch model.safetensors H O NULL\npair_coeff * * zero")
HYBRID = ("pair_style hybrid clebsch device cpu dtype f64 knots 0 zero 4.0\n"
          "pair_coeff * * clebsch model.safetensors H O NULL\npair_coeff * 3 zero")
CASES = {  # name: structure, pair style, lines before and after the atoms are read
    "small": (SMALL, PLAIN, "", ""),
    "newton_off": (SMALL, PLAIN, "newton off", ""),
    "corner": (CORNER, PLAIN, "", ""),
    "large": (LARGE, PLAIN, "", ""),
    "tiled": (LARGE, PLAIN, "comm_style tiled", "balance 1.0 rcb"),
    "balanced": (LARGE, PLAIN, "newton off", "balance 1.0 shift xyz 5 1.02"),
    "small_list": (SMALL, LISTED, "", ""),
    "corner_list": (CORNER, LISTED, "newton off", ""),
    "large_list": (LARGE, LISTED, "", ""),
    "far_ghosts": (LARGE, PLAIN, "", "comm_modify cutoff 9"),
    "corner_mpi": (CORNER, MPI, "", ""),
    "large_mpi": (LARGE, MPI, "", ""),
    "overlay": (MIXED, OVERLAY, "", ""),
    "hybrid": (MIXED, HYBRID, "", ""),
}


def dynamics(n):
    """NVE, a restart in the middle, a minimum, and a box that changes."""
    line = 'print "$(pe:%.17g) $(etotal:%.17g)" append dynamics.out\n'
    state = "write_dump all custom end.dump id x y z vx vy vz modify sort id format float %.17g\n"
    pair = LISTED if n == 2 else PLAIN
    return (begin(LARGE, pair) + "timestep 0.0005\nvelocity all create 900 7 loop all\nfix 1 all nve\n"
            "thermo_style custom step pe ke etotal\nrun 0\n" + line + "run 10\nwrite_restart half.restart\nrun 10\n"
            + line + state + f"clear\nbox tilt large\nread_restart half.restart\n{pair}\nneighbor 0.4 bin\n"
            "neigh_modify every 1 delay 0 check yes\ntimestep 0.0005\nfix 1 all nve\nrun 10\n" + line
            + state.replace("end.dump", "again.dump")
            + "unfix 1\nminimize 0 1e-6 8 20\n" + line
            + "reset_timestep 0\nfix 1 all npt temp 300 300 0.1 iso 0 0 1\nrun 3\n" + line)


def check_costs(out, n):
    """A line after each run with steps, and after the minimum: its parts make up the whole."""
    costs = re.findall(r"^Clebsch: ([\d.e+-]+) ms a computation: (.*)$", out, re.M)
    expect(len(costs) == 5, f"{n} processes: {len(costs)} lines of costs, not 5")
    for time, parts in costs:
        percents = dict(re.findall(r"(\w+) (-?[\d.]+) %", parts))
        total = sum(map(float, percents.values()))
        expect(float(time) > 0 and abs(total - 100) < 0.3 and list(percents) == ["model", "exchange", "search", "copies", "host"]
               and all(float(p) >= 0 for p in percents.values()), f"{n} processes: costs {time} ms, {parts}")


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
    "not dtype f16": begin(SMALL, PLAIN.replace("f64", "f16")),
    "not thermostat": begin(SMALL, PLAIN.replace("device cpu", "thermostat 3")),
    "units must be metal, not real": begin(SMALL, PLAIN).replace("units metal", "units real") + "run 0\n",
    "run_style respa would need": begin(SMALL, PLAIN) + "fix 1 all nve\nrun_style respa 2 2 pair 1\nrun 1\n",
    "not p2p maybe": begin(SMALL, PLAIN.replace("knots 0", "p2p maybe")),
    "d3 needs all pairs of atoms, without exclusions": begin(MIXED, OVERLAY.replace("knots 0", "d3 pbe")) + "run 0\n",
    "there are no parameters for 'pbe1'": begin(SMALL, PLAIN.replace("knots 0", "d3 pbe1")),
    "not list maybe": begin(SMALL, PLAIN.replace("knots 0", "list maybe")),
    "pairs were excluded after the run was set up": begin(LARGE, PLAIN) + "neigh_modify check no\nfix 1 all nve\n"
        "run 0\nneigh_modify exclude type 1 1\nrun 1 pre no\n",
    # Only the process that has these two atoms fails, between others that wait for it.
    "they must be finite, and at least": begin(LARGE, PLAIN)
        + f"create_atoms 1 single {' '.join(f'{x:.17g}' for x in LARGE.atoms[0][1])}\nrun 0\n",
}


def changes(pair, hosts):
    """Atoms gather at one place and spread again, so that rows of ghosts outgrow their memory, and who has which
    neighbours changes between steps; then the model is opened again. MPI that takes one host for several may wait
    forever where LAMMPS receives from any process, as it does there: for that only steps."""
    line = 'print "$(pe:%.17g)" append changes.out\n'
    start = "timestep 0.001\nfix 1 all nve/limit 0.25\nthermo_style custom step pe\nrun 6\n" + line
    if hosts > 1:
        return begin(LARGE, pair) + start
    boxes = [f"change_box all x final 0 {x} remap units box\nrun 6\n{line}" for x in (19, 9.5, 13)]
    return (begin(LARGE, pair, "comm_style tiled") + start + "fix 2 all balance 3 1.0 rcb\n" + "".join(boxes)
            + "pair_coeff * * model.safetensors H O O\nrun 6\n" + line)


def check_ways(folder, references):
    """How rows of ghosts travel, which a line after a run tells: MPI can take the processes of this host for those of
    several. Results are those of `clebsch energy`, and steps those of one process."""
    first, bits = None, {}
    for n, p2p, hosts, way in ((1, "yes", 1, ""), (2, "yes", 1, "p2p"), (4, "auto", 1, "p2p"), (2, "auto", 2, "MPI"),
                               (4, "yes", 2, "p2p and MPI"), (4, "no", 1, "MPI")):
        what = f"{n} processes, {hosts} hosts, p2p {p2p}"
        for old in [*folder.glob("*.out"), *folder.glob("*.dump")]:
            old.unlink()
        pair = PLAIN.replace("knots 0", f"knots 0 guard no p2p {p2p}")
        status, out = run(folder, n, begin(LARGE, pair) + COMPUTES + results("ways") + changes(pair, hosts), 120,
                          MPIR_CVAR_NUM_CLIQUES=str(hosts))
        expect(status == 0, f"{what}: status {status}\n{out[-3000:]}")
        if status == 0:
            said = re.findall(r"exchange [\d.]+ %(?: \((.*?)\))?,", out)
            expect(said == [way] * (5 if hosts == 1 else 1), f"{what}: rows went by {said}, not {way}")
            compare(folder, "ways", what, references[LARGE.name])
            bits[n, p2p] = (folder / "ways.dump").read_text()
            energies = [float(x) for x in (folder / "changes.out").read_text().split()]
            first = first or energies
            close(f"{what}: energies", energies, first[:len(said)], 1e-8)
    expect(bits.get((4, "auto")) == bits.get((4, "no")) is not None, "forces differ with the way of the rows")


def check_devices(folder, references):
    """A process on OpenCL has no memory that others open: what it sends and receives are messages."""
    listed = subprocess.run([COMMAND, "devices"], check=True, capture_output=True, text=True).stdout
    opencl = re.search(r"^(opencl:\S+) +runs", listed, re.M)
    if not opencl:
        return
    pair = PLAIN.replace("device cpu", f"device cpu {opencl[1]} cpu cpu")
    status, out = run(folder, 4, begin(LARGE, pair) + COMPUTES + results("devices") + "fix 1 all nve\nrun 1\n")
    expect(status == 0 and " (p2p and MPI), " in out, f"a process on OpenCL: status {status}\n{out[-3000:]}")
    if status == 0:
        compare(folder, "devices", "a process on OpenCL", references[LARGE.name])
    status, out = run(folder, 2, begin(LARGE, pair).replace("knots 0", "knots 0 p2p yes") + "run 0\n")
    expect(status not in (0, None) and re.search(
        "p2p yes, but rows cannot go from device to device between this process and process "
        "(1, whose device has no such memory|0: clb_buffer_create_ipc: opencl:\\S+ has no memory)", out),
        f"p2p yes with a process on OpenCL: status {status}\n{out[-1500:]}")


def check_dispersion(folder):
    """All processes' atoms and their images: also of cells that are smaller than the dispersion's cutoff, and of processes
    without atoms."""
    pair = PLAIN.replace("knots 0", "knots 0 d3 PBE-ATM d3_cutoff 6")
    wanted = {x: x.reference(folder, options=("--d3", "pbe-atm", "--d3-cutoff", "6")) for x in (SMALL, CORNER, LARGE)}
    script = "".join(begin(x, pair) + COMPUTES + results(f"d3_{x.name}") for x in wanted)
    end = 'fix 1 all nve\nrun 4\nprint "$(pe:%.17g)" file d3_end.out\n'
    energies = []
    for n in (1, 2, 4):
        status, out = run(folder, n, script + end)
        expect(status == 0, f"d3, {n} processes: status {status}\n{out[-3000:]}")
        for x in wanted if status == 0 else ():
            compare(folder, f"d3_{x.name}", f"d3 of {x.name}, {n} processes", wanted[x])
        energies += [float((folder / "d3_end.out").read_text())] if status == 0 else []
    expect(wanted[LARGE]["energy"] < LARGE.reference(folder)["energy"] - 0.01, "d3: there is none")
    close("d3: energies after 4 steps", energies, energies[:1] * 3, 1e-10)


def check_charge(folder):
    """A model that reads the charge and the spin of all atoms."""
    converted = pathlib.Path(os.environ["CLB_TEST_DATA"]) / "mace" / "charged.model"
    subprocess.run([COMMAND, "convert", converted, folder / "charged.safetensors"], check=True, capture_output=True)
    pair = PLAIN.replace("model.saf", "charged.saf").replace("knots 0", "knots 0 charge -1 spin 2")
    status, out = run(folder, 2, begin(LARGE, pair) + COMPUTES + results("charge"))
    expect(status == 0, f"charge: status {status}\n{out[-3000:]}")
    if status == 0:
        compare(folder, "charge", "charge", LARGE.reference(folder, options=(
            "--model", folder / "charged.safetensors", "--charge", "-1", "--spin", "2")))


def refusals(folder):
    for sentence, script in REFUSED.items():
        status, out = run(folder, 2, script, 60)
        said = [line for line in out.split("\n") if sentence in line]
        expect(status not in (0, None) and said, f"2 processes, '{sentence}': status {status}\n{out[-1500:]}")


def test(folder):
    for structure in STRUCTURES:
        structure.write(folder)
    references = {structure.name: structure.reference(folder) for structure in STRUCTURES}
    first = None
    for n in (1, 2, 4):
        for old in [*folder.glob("*.out"), *folder.glob("*.dump")]:
            old.unlink()
        script = "".join(begin(*rest) + COMPUTES + results(name) for name, rest in CASES.items()) + dynamics(n)
        status, out = run(folder, n, script)
        expect(status == 0, f"{n} processes: status {status}\n{out[-3000:]}")
        lists, wanted = out.count("pair clebsch, perpetual"), sum("list" in name for name in CASES) + 2  # and of hybrids
        expect(n == 2 or lists == wanted, f"{n} processes: LAMMPS made {lists} lists, not {wanted}")
        if status == 0:
            for name, (structure, *_) in CASES.items():
                compare(folder, name, f"{name}, {n} processes", references[structure.name])
            check_costs(out, n)
            first = check_dynamics(folder, n, first)
    check_ways(folder, references)
    check_devices(folder, references)
    check_dispersion(folder)
    check_charge(folder)
    refusals(folder)


main(test)
