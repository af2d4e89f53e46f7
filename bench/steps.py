"""Steps of models: how long energy, forces and stress take, copies and Python included, while atoms
move as in dynamics, and how many launches a step has; and steps of `clebsch md` beside it.  For
example

    PYTHONPATH=python CLB_LIBRARY=build/libclebsch.so python3 bench/steps.py --device cuda --json h100_steps.json \\
        --model "SevenNet-0 (11 July 2024)=sevennet.safetensors" --model "Nequix mp-1=nequix.safetensors"

With --before, a file of an earlier run, its times are kept as `seconds_before`, and what this run
does not measure is kept as it is."""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

import clebsch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
from models import KINDS, SYMBOLS, water, write  # noqa: E402

MASSES = {1: 1.008, 6: 12.011, 8: 15.999}
SYSTEMS = ["carbon:1", "carbon:2", "water:4", "carbon:3", "water:6", "carbon:5", "water:15"]
THERMOSTATS = [None, "Langevin", "Bussi"]
OPTIONS = {"Langevin": ["--langevin", "1"], "Bussi": ["--bussi", "100"]}


def program(a, *arguments):
    done = subprocess.run([a.clebsch, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"clebsch {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


def step(a, model, numbers, positions, length, path):
    """Of dynamics: straight paths of 0.5 fs a step at 300 K, so that neighbours are searched when
    due.  seconds: the median, which is a step between two searches; seconds_mean has them, too."""
    rng = np.random.default_rng(1)
    masses = np.array([MASSES[z] for z in numbers])
    velocity = rng.normal(size=positions.shape) * np.sqrt(0.02585 / masses)[:, None]
    velocity = (velocity - velocity.mean(0)) * 0.09822694788 * 0.5
    m = clebsch.Model(model, a.device, knots=a.knots, skin="auto")
    count, times = max(20, min(a.repeat, 1_000_000 // len(numbers))), []
    for i in range(-10, count):
        places = positions + i * velocity
        start = time.perf_counter()
        m.compute(numbers, places, np.eye(3) * length)
        times.append(time.perf_counter() - start)
    times, found = times[10:], m.neighbours()
    run = json.loads(program(a, "energy", "--device", a.device, "--knots", a.knots, "-m", model,
                             "-s", path, "--repeat", 1, "--profile", "--json"))
    return {"seconds": float(np.median(times)), "seconds_mean": float(np.mean(times)),
            "searches": found.rebuilds, "steps": count + 10, "edges": run["edges"],
            "edges_with_skin": found.n_edges,
            "launches": sum(k["launches"] for k in run["profile"])}


def dynamics(a, model, path, thermostat, steps):
    text = program(a, "md", "--device", a.device, "--knots", a.knots, "-m", model, "-s", path,
                   "--dt", 0.5, "--steps", steps, "--temperature", 300, "--every", steps // 2,
                   *OPTIONS.get(thermostat, []))
    return float(re.search(r"([0-9.e+-]+) ms a step", text).group(1)) / 1e3


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--clebsch", default="build/tools/clebsch")
    p.add_argument("--device", default="cuda")
    p.add_argument("--model", action="append", default=[], metavar="NAME=FILE")
    p.add_argument("--knots", type=int, default=512)
    p.add_argument("--repeat", type=int, default=300)
    p.add_argument("--largest", type=int, default=20000, help="systems of more atoms are left out")
    p.add_argument("--systems", nargs="+", metavar="NAME:SIZE", default=SYSTEMS,
                   help="in place of the usual ones, such as carbon:9, of 8 x 9^3 atoms, and water:12, of 3 x 12^3")
    p.add_argument("--md", action="store_true", help="steps of md of the first model, too")
    p.add_argument("--before", type=pathlib.Path, help="a file of an earlier run")
    p.add_argument("--json", type=pathlib.Path)
    a = p.parse_args()
    systems = [(name, int(size)) for name, size in (x.split(":") for x in a.systems)]
    out = json.loads(a.before.read_text()) if a.before else {}
    known = {(r["model"], r["system"], r["atoms"]): r for r in out.get("steps", [])}
    devices = json.loads(program(a, "devices", "--json"))
    device = next(d for d in devices if d["name"].split(":")[0] == a.device.split(":")[0])
    out.update(clebsch=program(a, "--version").split()[-1], device=device)
    with tempfile.TemporaryDirectory() as folder:
        for name, model in (m.rsplit("=", 1) for m in a.model):
            elements = json.loads(program(a, "info", "--json", "--device", a.device, "-m", model))["elements"]
            for system, size in systems:
                numbers, positions, length = KINDS[system](size)
                if len(numbers) > a.largest or not {SYMBOLS[z] for z in numbers} <= set(elements):
                    continue
                path = pathlib.Path(folder) / f"{system}{size}.xyz"
                write(path, numbers, positions, length)
                row = {"model": name, "system": system, "atoms": len(numbers)}
                row.update(step(a, model, numbers, positions, length, path))
                old = known.get((name, system, len(numbers)))
                if old:
                    row["seconds_before"] = old["seconds"]
                known[name, system, len(numbers)] = row
                print(f"{name}, {system}, {len(numbers)} atoms: {row['seconds'] * 1e3:.4g} ms, "
                      f"with searches {row['seconds_mean'] * 1e3:.4g}, {row['launches']} launches"
                      + (f", before {row['seconds_before'] * 1e3:.4g}" if old else ""), flush=True)
        if a.md:
            name, model = a.model[0].rsplit("=", 1)
            out["md"] = []
            for system, make, size in (("water", water, 15), ("water", water, 32)):
                path = pathlib.Path(folder) / f"md{size}.xyz"
                write(path, *make(size))
                energy = step(a, model, *make(size), path)["seconds"]
                for thermostat in THERMOSTATS:
                    row = {"model": name, "system": system, "atoms": 3 * size**3, "skin": "auto",
                           "energy_seconds": energy, "thermostat": thermostat,
                           "md_seconds": dynamics(a, model, path, thermostat, 200 if size < 20 else 40)}
                    out["md"].append(row)
                    print(f"md, {row['atoms']} atoms, {thermostat}: {row['md_seconds'] * 1e3:.4g} ms, "
                          f"{row['md_seconds'] / energy:.3g} of the model", flush=True)
    out["steps"] = list(known.values())
    if a.json:
        a.json.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
