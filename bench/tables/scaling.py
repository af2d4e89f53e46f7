"""A step of molecular dynamics on many GPUs, on paper: python3 bench/tables/scaling.py [INPUTS.json] prints the table `on_paper`
of docs/performance.md, of the inputs in bench/results/scaling_inputs.json.

Each GPU has a cube of atoms and the ghosts within `reach_angstrom` of its six sides, all of other GPUs. The model takes the
time that was measured of so many atoms. Between layers, and backward, the rows of all ghosts go from GPU to GPU within a
host, whose GPUs together have a cube, too; those of ghosts of other hosts then go over the bus, the network and another bus,
with a latency for each neighbour. Nothing is computed meanwhile. Positions and forces
of atoms and ghosts cross the bus once each, and those of ghosts the network. What LAMMPS does itself is left out.

Of training, `training_on_paper`: each GPU has so many structures. A device's own gradient, the wait for the slowest one, the
optimizer and its parameters take what was measured on the most GPUs of one host; adding up is a line through what that took
on the most and on half as many. Between hosts the gradient is summed and copied to all, and so are the parameters, all in f64: three times
two passes of all numbers over the network, and a latency for each halving."""

import json
import math
import pathlib
import sys

from runs import results


def measured(i):
    """Points of (atoms, seconds), ascending."""
    run = results("h100_steps.json")
    of = [
        r
        for r in run["steps"] + run["md"]
        if r["model"] == i["model"] and r["system"] == i["system"]
    ]
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
    far = (
        ghosts_of(i, atoms / hosts) * hosts / gpus if hosts > 1 else 0
    )  # of other hosts, a GPU's share
    latency = i["latency_seconds"] * min(i["neighbours"], gpus - 1)

    def travel(size):
        near = i["link_seconds"] + size * ghosts / i["link_bytes_per_second"]
        return near + (hosts > 1) * (
            latency
            + size * far * (2 / i["bus_bytes_per_second"] + 1 / i["network_bytes_per_second"])
        )

    exchange = 2 * i["exchanges"] * travel(row) + 2 * (
        latency + 24 * ghosts / i["network_bytes_per_second"]
    )
    return (
        model_seconds(points, own),
        exchange if gpus > 1 else 0,
        2 * 24 * (own + ghosts) / i["bus_bytes_per_second"],
    )


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
    head = [
        f"ms ({i['model']}, {i['system']}: model + exchange + positions and forces; of the ideal)"
    ]
    return head + [f"{n:,} atoms" for n in i["atoms"]], [
        [f"{g} GPU{'s' * (g > 1)}"] + [cell(i, points, n, g) for n in i["atoms"]] for g in i["gpus"]
    ]


def beside_measured(i):
    """The head and rows: steps of a few GPUs on paper, and as measured last."""
    points = measured(i)
    runs, rows = results("h200_lammps.json")["results"], {}
    for r in runs:
        if (
            r["model"] == i["model"]
            and r["system"] == i["system"]
            and r["p2p"] != "no"
            and r["run"] == runs[-1]["run"]
        ):
            parts, shares = step(i, points, r["atoms"], r["gpus"]), r["shares"]
            took = [shares[k] * r["seconds"] for k in ("model", "exchange")]
            rows[r["atoms"], r["gpus"]] = [
                f"{r['atoms']:,}",
                str(r["gpus"]),
                f"{milliseconds(sum(parts))} ({' + '.join(map(milliseconds, parts))})",
                f"{milliseconds(r['seconds'])} ({' + '.join(map(milliseconds, [*took, r['seconds'] - sum(took)]))})",
                f"{sum(parts) / r['seconds']:.2f}",
            ]
    return [
        "atoms",
        "GPUs",
        "ms on paper (model + exchange + positions and forces)",
        "measured (model + exchange + rest)",
        "paper / measured",
    ], [row for _, row in sorted(rows.items())]


def inputs():
    return results("scaling_inputs.json")


def training_runs(i):
    """Of weak scaling: by structures a GPU and GPUs, the seconds of a step's parts."""
    return {
        (r["structures"] // r["gpus"], r["gpus"]): r["times"]
        for r in results("h200_training_gpus.json")["results"]
        if r["model"] == i["training"]["model"] and r["kind"] == "weak"
    }


def training_step(i, runs, structures, gpus, most):
    """Seconds of everything but the sum, of the sum within a host, and between hosts, from a run on `most` GPUs of one."""
    here, hosts = min(gpus, i["gpus_of_a_host"]), max(1, gpus // i["gpus_of_a_host"])
    of, half = runs[structures, most], runs[structures, most // 2]
    halvings = math.ceil(math.log2(hosts))
    between = (
        3
        * 2
        * (
            8 * i["training"]["parameters"] * (1 - 1 / hosts) / i["network_bytes_per_second"]
            + halvings * i["latency_seconds"]
        )
    )
    return (
        of["seconds"] - of["sum"],
        of["sum"] + (of["sum"] - half["sum"]) * (here - most) / (most - most // 2),
        between,
    )


def training_table(i):
    """The head and rows: a step of training, of so many structures a GPU."""
    t, runs = i["training"], training_runs(i)

    def cell(structures, gpus):
        parts = training_step(i, runs, structures, gpus, max(g for n, g in runs if n == structures))
        return f"{milliseconds(sum(parts))} ({' + '.join(map(milliseconds, parts))}; {100 * runs[structures, 1]['seconds'] / sum(parts):.0f} %)"

    head = [f"ms ({t['model']}: a GPU's own + sum within the host + between hosts; of the ideal)"]
    return head + [f"{n} structures a GPU" for n in t["structures"]], [
        [f"{g} GPUs"] + [cell(n, g) for n in t["structures"]] for g in t["gpus"]
    ]


def training_beside_measured(i):
    """The head and rows: what a run on two GPUs says of more, beside what they took."""
    runs, rows = training_runs(i), []
    for (structures, gpus), of in runs.items():
        if gpus > 2:
            parts, took = training_step(i, runs, structures, gpus, 2)[:2], (
                of["seconds"] - of["sum"],
                of["sum"],
            )
            rows.append(
                [str(structures), str(gpus)]
                + [
                    f"{milliseconds(sum(x))} ({' + '.join(map(milliseconds, x))})"
                    for x in (parts, took)
                ]
                + [f"{sum(parts) / sum(took):.2f}"]
            )
    return [
        "structures a GPU",
        "GPUs",
        "ms on paper, from two (a GPU's own + sum)",
        "measured",
        "paper / measured",
    ], rows


def paragraph(i):
    """What the table stands on."""
    ghosts = ghosts_of(i, i["atoms"][0] / i["gpus"][-1])
    return (
        f"A GPU with {i['atoms'][0] // i['gpus'][-1]:,} atoms has {ghosts:,.0f} ghosts. For each of them "
        f"{i['columns'] * i['bytes_of_a_number']:,} bytes travel {2 * i['exchanges']} times a step. A host has {i['gpus_of_a_host']} GPUs, between which an exchange takes "
        f"{i['link_seconds'] * 1e6:.3g} us, as measured, and more for more than {i['link_bytes_per_second'] / 1e9:.3g} GB/s. "
        f"Stated, not measured: a bus of {i['bus_bytes_per_second'] / 1e9:.3g} GB/s, a network of {i['network_bytes_per_second'] / 1e9:.3g} GB/s for each GPU, "
        f"and {i['latency_seconds'] * 1e6:.2g} us for each of {i['neighbours']} neighbours."
    )


def training_paragraph(i):
    """What a library for sums between GPUs could save."""
    t, size = i["training"], 4 * i["training"]["parameters"]
    way = 2 * size / i["bus_bytes_per_second"]

    def ring(rate):
        return " / ".join(f"{2e6 * (n - 1) / n * size / rate:.3g}" for n in t["ring"])

    return (
        f"A gradient of {t['model']} has {t['parameters']:,} numbers, {size / 1e6:.3g} MB in f32. Between devices without peer access each goes "
        f"to the host, and parameters come back, over a bus of its own: {way * 1e6:.3g} us at {i['bus_bytes_per_second'] / 1e9:.3g} GB/s. "
        f"A ring of NCCL or RCCL between {' / '.join(map(str, t['ring']))} devices would take {ring(t['nvlink_bytes_per_second'])} us "
        f"over links of {t['nvlink_bytes_per_second'] / 1e9:.3g} GB/s, {ring(i['bus_bytes_per_second'])} us over the buses. All rates are stated, not measured."
    )


if __name__ == "__main__":
    head, rows = table(
        json.loads(pathlib.Path(sys.argv[1]).read_text()) if len(sys.argv) > 1 else inputs()
    )
    for line in [head, ["---"] * len(head)] + rows:
        print("| " + " | ".join(line) + " |")
