"""Tables of whole models: steps, memory, hosts, many GPUs."""

import scaling
from layout import of_ideal, table
from runs import ROOT, milliseconds, results


def models():
    """Energy, forces and stress of whole networks."""
    rows = []
    for r in results("h200_models.json")["results"]:
        seconds, atomics, memory = (
            r["seconds_min"],
            r["seconds_min_with_atomics"],
            r["peak_memory_mib"],
        )
        size = f"{r['atoms']:,} atoms, {r['edges']:,} edges"
        rows.append(
            [
                f"{r['model']}, {r['structure']}: {size}"
                + (f"; {memory / 1024:.3g} GiB of the device" if memory else ""),
                f"{seconds * 1e3:.3g}",
                f"{seconds / r['atoms'] * 1e6:.3g}",
                f"{atomics / r['atoms'] * 1e6:.3g}" if atomics else "-",
            ]
        )
    return table(["model and structure", "ms a step", "us per atom", "with atomics"], rows)


def memory():
    """What models need of a device, and how many atoms fit: as a whole, and in blocks of atoms."""

    def million(fit):
        return " / ".join(f"{n / 1e6:.2g}" for n in fit.values())

    rows = [
        [
            f"{r['model']}, {r['structure']}",
            f"{r['edges'] / r['atoms']:.0f}",
            f"{r['bytes_per_atom']} + {r['bytes_per_edge']}",
            million(r["atoms_that_fit"]),
            f"{r['block_bytes_per_atom']} + {r['block_bytes_per_edge']}",
            million(r["atoms_that_fit_in_blocks"]),
        ]
        for r in results("memory.json")["results"]
    ]
    return table(
        [
            "model and structure",
            "edges an atom",
            "bytes: an atom + an edge",
            "million atoms in 16 / 48 / 80 GB",
            "in blocks: bytes",
            "million atoms",
        ],
        rows,
    )


def steps():
    """Recorded steps of small systems."""
    rows = [
        [
            r["model"],
            f"{r['system']}, {r['atoms']:,}",
            str(r["launches"]),
            f"{r['seconds'] * 1e3:.3g}",
            f"{r['seconds'] / r['atoms'] * 1e6:.3g}",
        ]
        for r in results("h100_steps.json")["steps"]
    ]
    return table(["model", "atoms", "launches", "ms", "us per atom"], rows)


def skins():
    """Steps of dynamics with skins of several lengths."""
    rows = results("h100_skins.json")["rows"]
    lengths = [*rows[0]["seconds"]]
    return table(
        ["ms a step of md", "atoms", *(f"skin {x}" for x in lengths)],
        [
            [
                r["model"],
                f"{r['system']}, {r['atoms']:,}",
                *(milliseconds(r["seconds"][x]) for x in lengths),
            ]
            for r in rows
        ],
    )


def dynamics():
    """A step of md beside the model alone."""
    rows = [
        [
            f"{r['system']}, {r['atoms']:,}",
            r["skin"],
            r["thermostat"] or "-",
            f"{r['energy_seconds'] * 1e3:.4g}",
            f"{r['md_seconds'] * 1e3:.4g}",
            f"{r['md_seconds'] / r['energy_seconds']:.3g}",
        ]
        for r in results("h100_steps.json")["md"]
    ]
    return table(["atoms", "skin", "thermostat", "ms, the model", "ms, md", "of the model"], rows)


def hosts():
    """Steps of the same atoms in each host, beside the model alone."""
    columns, cells = [], {}
    for path in sorted((ROOT / "bench" / "results").glob("hosts_*.json")):
        run = results(path.name)
        for s in run["systems"]:
            columns.append(f"{run['model']}, {s['atoms']:,} atoms, {run['description']}")
            for h in s["hosts"]:
                key = "processor_seconds" if run["device"] == "cpu" else "seconds_min"
                ratio = f" ({h[key] / s['hosts'][0][key]:.2f})" if h != s["hosts"][0] else ""
                cells.setdefault(h["host"], {})[columns[-1]] = milliseconds(h[key]) + ratio
    return table(
        ["ms a step (of the model alone)", *columns],
        [[host] + [of.get(c, "-") for c in columns] for host, of in cells.items()],
    )


def moving():
    """Steps while atoms move."""
    rows = [
        [
            r["model"],
            f"{r['system']}, {r['atoms']:,}",
            r["card"],
            str(r["launches"]),
            milliseconds(r["seconds"]),
            milliseconds(r["seconds_mean"]),
        ]
        for r in results("moving_steps.json")["steps"]
    ]
    return table(["model", "atoms", "card", "launches", "ms", "ms, mean"], rows)


def new_models():
    """Steps of models of random weights while atoms move."""
    rows = [
        [
            r["model"].replace(" (random weights)", ""),
            f"{r['system']}, {r['atoms']:,}",
            str(r["launches"]),
            milliseconds(r["seconds_mean"]),
            f"{r['seconds_mean'] / r['atoms'] * 1e6:.3g}",
        ]
        for r in results("h100_new_models.json")["steps"]
    ]
    return table(["model", "atoms", "launches", "ms", "us an atom"], rows)


def dispersion():
    """A step with dispersion and without."""
    rows = [
        [
            f"{r['system']}, {r['atoms']:,}",
            r["d3"],
            milliseconds(r["seconds_without"]),
            milliseconds(r["seconds"]),
            f"{(r['seconds'] - r['seconds_without']) / r['atoms'] * 1e6:.3g}",
        ]
        for r in results("h100_dispersion.json")["results"]
    ]
    return table(["atoms", "`d3`", "ms without", "ms with", "us an atom for it"], rows)


def largest():
    """The largest systems that ran, in blocks of atoms."""
    rows = [
        [
            r["model"],
            f"{r['system']}, {r['atoms']:,}",
            f"{r['edges']:,}",
            f"{r['peak_memory_mib'] / 1024:.3g}",
            f"{r['seconds']:.3g}",
            f"{r['seconds'] / r['atoms'] * 1e6:.3g}",
        ]
        for r in results("h100_steps.json")["largest"]
    ]
    return table(["model", "atoms", "edges", "GiB", "s a step", "us per atom"], rows)


def lammps_gpus():
    """LAMMPS on GPUs of one host."""
    cells = {}
    for r in results("h200_lammps.json")["results"]:
        about = f"about {r['of_a_gpu']:,}" if "of_a_gpu" in r else f"{r['atoms'] // r['gpus']:,}"
        atoms = f"{about} a GPU" if r["kind"] == "weak" else f"{r['atoms']:,}"
        alone = r["p2p"] == "-"  # on one GPU there are no ways
        for way in ("yes", "no") if alone else (r["p2p"],):
            cells.setdefault((r["model"], r["system"], atoms, r["kind"], way, r["run"]), {})[
                r["gpus"]
            ] = r
    rows = []
    for (model, system, atoms, _, way, _), of in cells.items():
        if len(of) < 2:
            continue
        least = of[min(of)]
        rows.append(
            [model, f"{system}, {atoms}", {"yes": "GPU to GPU", "no": "through the host"}[way]]
            + [
                (
                    of_ideal(
                        of[g]["seconds"],
                        least["seconds"] * of[g]["atoms"] / g / (least["atoms"] / least["gpus"]),
                    )
                    if g in of
                    else "-"
                )
                for g in (1, 2, 4, 8)
            ]
        )
    return table(["model", "atoms", "rows of ghosts", "ms a step on 1 GPU", "2", "4", "8"], rows)


def on_paper():
    """Many GPUs."""
    i = scaling.inputs()
    return table(*scaling.table(i)) + "\n\n" + scaling.paragraph(i)


def paper_beside_measured():
    """What was said on paper of a few GPUs, beside what they took."""
    return table(*scaling.beside_measured(scaling.inputs()))
