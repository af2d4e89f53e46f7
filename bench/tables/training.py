"""Tables of training."""

import scaling
from layout import of_ideal, table
from runs import milliseconds, results


def training_gpus():
    """Training on GPUs of one host."""
    parts = ["gradient", "waiting", "sum", "optimizer", "parameters"]
    runs = results("h200_training_gpus.json")["results"]
    rows = []

    def what(r):
        weak = r["kind"] == "weak"
        return r["model"], (
            f"{r['structures'] // r['gpus']} a GPU" if weak else f"{r['structures']} in all"
        )

    for r in runs:
        least = min((x for x in runs if what(x) == what(r)), key=lambda x: x["gpus"])
        ideal = (
            least["times"]["seconds"]
            * r["structures"]
            / r["gpus"]
            / (least["structures"] / least["gpus"])
        )
        t, of = r["times"], [r["times"][k] for k in parts]
        rows.append(
            [*what(r), str(r["gpus"]), of_ideal(t["seconds"], ideal)]
            + [milliseconds(x) for x in (*of, t["seconds"] - sum(of))]
        )
    return table(["model", "structures", "GPUs", "ms a step", *parts, "rest"], rows)


def training_trace():
    """Steps of training on four GPUs, by whether arrays were made anew in them."""
    rows = []
    for text, anew in (("none", False), ("some", True)):
        of = [
            r
            for r in results("h200_training_trace.json")["steps"]
            if (r["allocations"] > 0) == anew
        ]
        slowest, fastest = (sorted(f(r["gradient_ms"]) for r in of) for f in (max, min))
        rows.append(
            [
                text,
                str(len(of)),
                f"{fastest[0]:.3g} to {fastest[-1]:.3g}",
                f"{slowest[0]:.3g} to {slowest[-1]:.3g}",
            ]
        )
    return table(
        ["arrays made anew", "steps", "ms, the fastest GPU's gradient", "ms, the slowest GPU's"],
        rows,
    )


def training_on_paper():
    """Training on many GPUs."""
    i = scaling.inputs()
    return table(*scaling.training_table(i)) + "\n\n" + scaling.training_paragraph(i)


def race():
    """Optimizers to the same loss."""
    return table(
        [
            "optimizer",
            "learning rate",
            "steps",
            "s",
            "ms a step",
            "of it the optimizer",
            "best loss of all steps",
        ],
        [
            [
                r["optimizer"],
                f"{r['rate']:g}",
                str(r["steps"]),
                f"{r['seconds']:.3g}",
                milliseconds(r["times"]["seconds"]),
                milliseconds(r["times"]["optimizer"]),
                f"{r['best_loss']:.3g}",
            ]
            for r in results("h200_race.json")["results"]
        ],
    )


def training_beside_measured():
    """What two GPUs said of training on more, beside what they took."""
    return table(*scaling.training_beside_measured(scaling.inputs()))


def training_steps():
    """A training step in several programs: a row for each, a column of each batch."""
    run = results("h100_training.json")
    batches, cells = run["batches"], {}
    for r in run["steps"]:
        memory = f", {r['memory_gib']:.3g} GiB" if r.get("memory_gib") else ""
        waiting = f" ({r['ms_waiting']:.3g})" if r.get("ms_waiting") else ""
        by_atom = f"{r['us_an_atom']:.3g} us an atom" if r.get("us_an_atom") else ""
        times = ", ".join(x for x in (f"{r['ms']:.3g}{waiting}" if "ms" in r else "", by_atom) if x)
        cells.setdefault(r["program"], {})[r["model"]] = times + memory
    head = [
        f"{b.get('model', m)}, {b['structures']} structures, {b['atoms']:,} atoms, {b['edges']:,} edges"
        for m, b in batches.items()
    ]
    return table(
        ["ms a step", *head],
        [[program] + [of.get(m, "-") for m in batches] for program, of in cells.items()],
    )


def training_cpu():
    """A small network trained on a CPU."""
    rows = [
        [
            f"{r['frames']}",
            f"{r['epochs']} ({r['steps']} steps)",
            f"{r['seconds']:.3g}",
            f"{r['energy_mae'] * 1e3:.3g}",
            f"{r['force_mae'] * 1e3:.3g} / {r['force_rmse'] * 1e3:.3g}",
        ]
        for r in results("training_cpu.json")["rows"]
    ]
    return table(
        ["frames", "epochs", "s", "energies, MAE, meV an atom", "forces, MAE / RMSE, meV/A"], rows
    )
