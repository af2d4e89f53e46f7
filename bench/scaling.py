"""A step of molecular dynamics on many GPUs, on paper: python3 bench/scaling.py [INPUTS.json] prints the table `on_paper`
of docs/performance.md, of the inputs in bench/results/scaling_inputs.json.

Each GPU has a cube of atoms and the ghosts within `reach_angstrom` of its six sides, all of other GPUs. The model takes the
time that was measured of so many atoms. Between layers, and backward, the rows of all ghosts go from GPU to GPU within a
host, whose GPUs together have a cube, too; those of ghosts of other hosts then go over the bus, the network and another bus,
with a latency for each neighbour. Nothing is computed meanwhile. Positions and forces
of atoms and ghosts cross the bus once each, and those of ghosts the network. What LAMMPS does itself is left out."""
import json
import math
import pathlib
import sys

from runs import results


def measured(i):
    """Points of (atoms, seconds), ascending."""
    run = results("h100_steps.json")
    of = [r for r in run["steps"] + run["md"] if r["model"] == i["model"] and r["system"] == i["system"]]
    return sorted({r["atoms"]: r.get("energy_seconds") or r["seconds"] for r in of}.items())


def model_seconds(points, atoms):
    """Between points a power of the number of atoms; below the first its time, beyond the last proportional."""
    if atoms <= points[0][0]:
        return points[0][1]
    for (n, s), (m, t) in zip(points, points[1:]):
        if atoms <= m:
            return s * (t / s) ** (math.log(atoms / n) / math.log(m / n))
    return points[-1][1] * atoms / points[-1][0]


def ghosts_of(i, atoms):
    side = (atoms / i["atoms_per_cubic_angstrom"]) ** (1 / 3)
    return i["atoms_per_cubic_angstrom"] * (side + 2 * i["reach_angstrom"]) ** 3 - atoms


def step(i, points, atoms, gpus):
    """Seconds of the model, of exchanges, and of positions and forces."""
    own, hosts = atoms / gpus, max(1, gpus / i["gpus_of_a_host"])
    ghosts, row = ghosts_of(i, own), i["columns"] * i["bytes_of_a_number"]
    far = ghosts_of(i, atoms / hosts) * hosts / gpus if hosts > 1 else 0  # of other hosts, a GPU's share
    latency = i["latency_seconds"] * min(i["neighbours"], gpus - 1)

    def travel(size):
        near = i["link_seconds"] + size * ghosts / i["link_bytes_per_second"]
        return near + (hosts > 1) * (latency + size * far * (2 / i["bus_bytes_per_second"] + 1 / i["network_bytes_per_second"]))
    exchange = 2 * i["exchanges"] * travel(row) + 2 * (latency + 24 * ghosts / i["network_bytes_per_second"])
    return model_seconds(points, own), exchange if gpus > 1 else 0, 2 * 24 * (own + ghosts) / i["bus_bytes_per_second"]


def milliseconds(seconds):
    return f"{1e3 * seconds:.3g}" if seconds < 0.999 else f"{1e3 * seconds:,.0f}"


def cell(i, points, atoms, gpus):
    if atoms / gpus > i["most_atoms_of_a_gpu"]:
        return "-"
    parts = step(i, points, atoms, gpus)
    alone = model_seconds(points, atoms) / gpus
    return f"{milliseconds(sum(parts))} ({' + '.join(map(milliseconds, parts))}; {100 * alone / sum(parts):.0f} %)"


def table(i):
    """The head and rows."""
    points = measured(i)
    head = [f"ms ({i['model']}, {i['system']}: model + exchange + positions and forces; of the ideal)"]
    return head + [f"{n:,} atoms" for n in i["atoms"]], [
        [f"{g} GPU{'s' * (g > 1)}"] + [cell(i, points, n, g) for n in i["atoms"]] for g in i["gpus"]]


def inputs():
    return results("scaling_inputs.json")


def paragraph(i):
    """What the table stands on."""
    ghosts = ghosts_of(i, i["atoms"][0] / i["gpus"][-1])
    return (f"A GPU with {i['atoms'][0] // i['gpus'][-1]:,} atoms has {ghosts:,.0f} ghosts. For each of them "
            f"{i['columns'] * i['bytes_of_a_number']:,} bytes travel {2 * i['exchanges']} times a step. A host has {i['gpus_of_a_host']} GPUs, between which an exchange takes "
            f"{i['link_seconds'] * 1e6:.3g} us, as measured, and more for more than {i['link_bytes_per_second'] / 1e9:.3g} GB/s. "
            f"Stated, not measured: a bus of {i['bus_bytes_per_second'] / 1e9:.3g} GB/s, a network of {i['network_bytes_per_second'] / 1e9:.3g} GB/s for each GPU, "
            f"and {i['latency_seconds'] * 1e6:.2g} us for each of {i['neighbours']} neighbours.")


if __name__ == "__main__":
    head, rows = table(json.loads(pathlib.Path(sys.argv[1]).read_text()) if len(sys.argv) > 1 else inputs())
    for line in [head, ["---"] * len(head)] + rows:
        print("| " + " | ".join(line) + " |")
