"""The same atoms in every host: `clebsch energy` (the model alone), `clebsch md`, LAMMPS on some processes, ASE, `clebsch
serve` behind a socket, and OpenMM, each with its time a step of dynamics at constant energy beside that of
`clebsch energy`: the least and the median of some chunks of steps, and the time of processors, which others on the machine
disturb less; below LAMMPS' lines what its steps are made of. For example

    python3 bench/hosts.py --model model.safetensors --structure water.xyz --device cuda --processes 1 2 --copies 1 16

Structures are extended XYZ of orthorhombic, periodic cells; with --copies they are repeated so often. Each process has a
device of its own if there are as many: --device names a backend, as in docs/lammps.md. --json writes a file for
bench/results, of which `bench/tables` makes the table `hosts`."""
import argparse
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import lammps_run
from lammps_run import run

ROOT = pathlib.Path(__file__).resolve().parent.parent


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


def repeat(path, copies, folder):
    """The path of a structure of so many copies along the shortest sides."""
    elements, positions, cell = read(path)
    if copies == 1:
        return path
    while copies > 1:
        factor = next(f for f in range(2, copies + 1) if copies % f == 0)
        k = cell.index(min(cell))
        moved = [[x[d] + i * cell[k] * (d == k) for d in range(3)] for i in range(factor) for x in positions]
        elements, positions, cell[k], copies = elements * factor, moved, cell[k] * factor, copies // factor
    lines = [str(len(elements)), f'Lattice="{cell[0]} 0 0 0 {cell[1]} 0 0 0 {cell[2]}" Properties=species:S:1:pos:R:3 pbc="T T T"']
    lines += [f"{e} {x[0]:.10g} {x[1]:.10g} {x[2]:.10g}" for e, x in zip(elements, positions)]
    made = folder / f"{len(elements)}.xyz"
    made.write_text("\n".join(lines) + "\n")
    return made


def energy(a, structure):
    """The least and the median of computations of atoms that moved, and what the command says of device and model."""
    said = json.loads(run([a.clebsch, "energy", "--json", "--repeat", a.steps * a.chunks, *common(a, structure)]))
    return [said["seconds_min"], said["seconds"], said["seconds"]], said


def md(a, structure):
    """A line comes after each chunk."""
    command = [a.clebsch, "md", "--steps", a.steps * (a.chunks + 1), "--dt", 0.5, "--temperature", 300, "--every", a.steps,
               *common(a, structure)]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        times = [time.perf_counter() for line in process.stdout if line.startswith("step ")]
    if process.returncode:
        raise SystemExit(f"clebsch md: status {process.returncode}")
    return [(t - s) / a.steps for s, t in zip(times[1:], times[2:])], None


def python_host(host):
    """With the python that has the host's package; None where it has not."""
    def measure(a, structure):
        package = {"openmm": "openmm"}.get(host, "ase")
        if subprocess.run([a.python, "-c", f"import {package}, ase"], capture_output=True).returncode:
            return [], None
        environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"), CLB_LIBRARY=str(pathlib.Path(a.library).resolve()))
        script = pathlib.Path(__file__).parent / "python_hosts.py"
        said = run([a.python, script, host, "--steps", a.steps, "--chunks", a.chunks, "--clebsch", a.clebsch, *common(a, structure)], env=environment)
        return json.loads(said.splitlines()[-1]), None
    return measure


def common(a, structure):
    knots = [] if a.knots is None else ["--knots", a.knots]
    return ["--model", a.model, "--structure", structure, "--device", a.device, *knots]


def lammps(processes):
    """Seconds of a step in each chunk, and the lines of what steps are made of."""
    def measure(a, structure):
        elements, positions, cell = read(structure)
        runs = f"run {a.steps} pre no post no\n" * a.chunks + f"run {a.steps}"
        said = lammps_run.dynamics(a, lammps_run.data_file(elements, positions, cell), "read_data atoms.data",
                                   sorted(set(elements)), processes, runs)
        loops = [float(s) / a.steps for s in re.findall(r"^Loop time of ([\d.e+-]+)", said, re.M)]
        return loops[1:-1], re.findall(r"^(?:Clebsch: .*|Pair .*|Neigh .*|Comm .*)", said, re.M)[-4:]
    return measure


def with_processor(host, a, structure):
    """Also the seconds of processors in a step: those of a run beyond one with a single chunk."""
    def used():
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        return now.ru_utime + now.ru_stime
    start = used()
    host(argparse.Namespace(**{**vars(a), "chunks": 1}), structure)
    begun = used()
    seconds, said = host(a, structure)
    return seconds, said, (used() - begun - (begun - start)) / (a.steps * (a.chunks - 1))


def measure(a, structure):
    """Rows of the file: hosts by turns, so that what disturbs one round disturbs all of them."""
    hosts = {"clebsch energy": energy, "clebsch md": md,
             **{f"LAMMPS, {n} process{'es' * (n > 1)}": lammps(n) for n in a.processes},
             "ASE": python_host("ase"), "ASE, atoms on the device": python_host("ase_device"),
             "clebsch serve, ASE": python_host("serve"), "OpenMM": python_host("openmm")}
    times, processors, said = {name: [] for name in hosts}, {name: [] for name in hosts}, {}
    for _ in range(a.rounds):
        for name, host in hosts.items():
            seconds, said[name], processor = with_processor(host, a, structure)
            times[name] += seconds
            processors[name].append(processor)
    rows = [{"host": name, "seconds_min": min(t), "seconds": statistics.median(t),
             "processor_seconds": statistics.median(processors[name]), **({"parts": said[name]} if name.startswith("LAMMPS") else {})} for name, t in times.items() if t]
    return rows, said["clebsch energy"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", required=True, help="of `clebsch convert`")
    p.add_argument("--structure", required=True, nargs="+", help="extended XYZ")
    p.add_argument("--copies", type=int, nargs="+", default=[1], help="of each structure in one (default: 1)")
    p.add_argument("--name", help="of the model in the table (default: its file's)")
    p.add_argument("--device", default="cuda")
    lammps_run.add_options(p)
    p.add_argument("--processes", type=int, nargs="*", default=[1], help="of LAMMPS (default: 1)")
    p.add_argument("--steps", type=int, default=10, help="of a chunk (default: 10)")
    p.add_argument("--chunks", type=int, default=10, help="each timed by itself; 2 at least (default: 10)")
    p.add_argument("--rounds", type=int, default=2, help="in each of which every host runs (default: 2)")
    p.add_argument("--list", action="store_true", help="LAMMPS makes a neighbour list")
    p.add_argument("--clebsch", default="build/tools/clebsch")
    p.add_argument("--library", default="build/libclebsch.so")
    p.add_argument("--python", default=sys.executable, help="with ase and openmm (ci/python.sh); hosts without are left out")
    p.add_argument("--json", help="a file for bench/results")
    a = p.parse_args()
    file = {"format": "clebsch hosts 1", "model": a.name or pathlib.Path(a.model).stem, "systems": []}
    print("| host | atoms | ms a step, least / median | least, of energy | ms of processors |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for path, copies in ((s, c) for s in a.structure for c in a.copies):
            rows, said = measure(a, repeat(path, copies, pathlib.Path(folder)))
            file.update({key: said[key] for key in ("clebsch", "device", "description", "driver", "dtype", "knots")})
            file["systems"].append({"structure": pathlib.Path(path).stem, "atoms": said["atoms"], "edges": said["edges"], "hosts": rows})
            for r in rows:
                print(f"| {r['host']} | {said['atoms']} | {r['seconds_min'] * 1e3:.3g} / {r['seconds'] * 1e3:.3g} | "
                      f"{r['seconds_min'] / rows[0]['seconds_min']:.2f} | "
                      f"{r['processor_seconds'] * 1e3:.3g} |")
            print("\n".join(["", *(part for r in rows for part in r.get("parts", [])), ""]), flush=True)
            if a.json:
                pathlib.Path(a.json).write_text(json.dumps(file, indent=1) + "\n")


main()
