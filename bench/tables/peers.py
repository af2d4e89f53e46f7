"""Tables of Clebsch beside other programs."""

from layout import name_of, table
from runs import LIBRARIES, PASSES, best_of_peers, milliseconds, results


def of_peers(wanted):
    """The shortest time of each library, forward / backward, of ops for which `wanted` is true."""
    best = best_of_peers()
    works = [*dict.fromkeys(key[:3] for key in best if wanted(key[0]))]
    libraries = [n for n in LIBRARIES if any(key[3] == n and key[:3] in works for key in best)]
    rows = [
        [name_of(*work)]
        + [
            " / ".join(milliseconds(best.get(work + (library, p))) for p in PASSES[:2])
            for library in libraries
        ]
        for work in works
    ]
    return table(["ms, forward / backward"] + libraries, rows)


def peers():
    return of_peers(lambda op: op != "spherical_harmonics")


def peers_harmonics():
    return of_peers(lambda op: op == "spherical_harmonics")


def models_peers():
    """A whole network in several programs: a row for each system, a column for each program."""
    cells, programs = {}, {}
    for r in results("h100_models_peers.json")["results"]:
        program = f"{r['program']} {r['version']}"
        programs[program] = True
        system = f"{r['system'].split(':')[0]}, {r['atoms']:,} atoms"
        error = f" ({r['force_error']:.0e})" if r.get("force_error") else ""
        cells.setdefault(system, {})[program] = f"{r['ms']:.3g}{error}"
    return table(
        ["ms (largest error of a force, eV/A)", *programs],
        [[system] + [of.get(p, "-") for p in programs] for system, of in cells.items()],
    )


def beside_originals():
    """Steps of models of random weights, and of their original programs where these ran."""
    rows = []
    for r in results("h200_new_models.json")["steps"]:
        by = r.get("original_seconds")
        rows.append(
            [
                r["model"].replace(" (random weights)", ""),
                f"{r['system']}, {r['atoms']:,}",
                milliseconds(r["seconds"]),
                f"{r['seconds'] / r['atoms'] * 1e6:.3g}",
                f"{milliseconds(by)} ({by / r['seconds']:.1f})" if by else "-",
            ]
        )
    return table(["model", "atoms", "ms", "us an atom", "ms, the original (of ours)"], rows)


KERNELS = {
    "e3nn": "e3nn",
    "cueq": "cuEquivariance",
    "oeq": "OpenEquivariance",
    "flash": "FlashTP",
    "clebsch": "patched with clebsch.torch",
}


def patched():
    """The models' own programs in PyTorch with each library's kernels."""
    run = results("h100_patched.json")
    heads, cells = {}, {}
    for r in sorted(run["rows"], key=lambda r: [*KERNELS].index(r["kernels"])):
        model = {"sevennet": "SevenNet-0, sevenn", "mace": "MACE 128x0e+128x1o, mace-torch"}[
            r["family"]
        ]
        heads[r["family"]] = f"{model} {r['package']}, {r['edges']:,} edges"
        name = KERNELS[r["kernels"]] + (
            "" if r["kernels"] in ("e3nn", "clebsch") else f" {r['version']}"
        )
        cells.setdefault(name, {})[
            r["family"]
        ] = f"{r['step_ms']:.3g} / {r['evaluate_ms']:.3g}, {r['step_gib']:.3g} / {r['evaluate_gib']:.3g} GiB"
    card = f"{run['device']['name']}, driver {run['device']['driver']}, PyTorch {run['torch']}"
    return (
        table(
            ["ms, a step / an evaluation", *heads.values()],
            [[name] + [of.get(f, "-") for f in heads] for name, of in cells.items()],
        )
        + f"\n\n{card}."
    )


def microseconds(row, key="seconds"):
    return f"{row[key] * 1e6:.4g}" if row and row.get(key) else "-"


def of_passes(by, peer, passes):
    """Microseconds of each pass."""
    if not any((peer, p) in by for p in passes):
        return "-"
    return " / ".join(microseconds(by.get((peer, p))) for p in passes)


def floor_and_share(by, passes):
    """Microseconds of the plain kernels, and the share of their speed that we reach."""
    mine = [by.get(("clebsch", p)) for p in passes]
    floors = " / ".join(microseconds(r, "floor_seconds") for r in mine)
    reached = [
        f"{100 * r['floor_seconds'] / r['seconds']:.0f}" if r and r.get("seconds") else "-"
        for r in mine
    ]
    return floors, " / ".join(reached)


def beside(file, wanted, title, name, passes, programs):
    """Rows of norms: floor, Clebsch with its share, and the other programs."""
    works = {}
    for r in results(file)["results"]:
        if wanted(r):
            works.setdefault(name(r), {})[r["peer"], r["pass"]] = r
    rows = []
    for work, by in works.items():
        floors, reached = floor_and_share(by, passes)
        rows.append(
            [work, floors, f"{of_passes(by, 'clebsch', passes)} ({reached} %)"]
            + [of_passes(by, program, passes) for program in programs]
        )
    return table([title, "plain kernel", "Clebsch (% of it)", *programs.values()], rows)


def norms():
    """RMS norms of plain rows beside torch, Liger and quack."""
    return beside(
        "h100_norms.json",
        lambda r: r["variant"] == "plain",
        "us, forward / backward",
        lambda r: f"{r['dtype']} {r['rows']:,} x {r['width']:,}",
        PASSES[:2],
        {"eager": "torch", "compile": "torch.compile", "liger": "Liger", "quack": "quack"},
    )


def norms_irreps():
    """RMS norms of irreps beside torch."""
    return beside(
        "h100_norms.json",
        lambda r: r["variant"] != "plain",
        "us, forward / backward / double backward",
        lambda r: f"{r['variant']}, {r['rows']:,} rows",
        PASSES,
        {"eager": "torch", "compile": "torch.compile", "closed": "formulas in torch.compile"},
    )


def optimizers():
    """Steps of optimizers: time to return, of one of many steps, and on the device."""
    names = {
        "clebsch": "Clebsch",
        "arena": "in one buffer",
        "foreach": "foreach",
        "fused": "fused",
        "graph": "graph of fused",
        "compile": "torch.compile",
        "compile-graph": "graph of it",
    }
    works = {}
    for r in results("h100_optimizers.json")["results"]:
        works.setdefault((r["rule"], r["list"]), {})[r["peer"]] = r

    def cell(r):
        keys = "host_seconds", "wall_seconds", "seconds"
        return " / ".join(microseconds(r, k) for k in keys) if r and r.get("seconds") else "-"

    rows = [
        [
            f"{rule}, {name}: {by['clebsch']['bytes'] / 1e6:.0f} MB",
            microseconds(by["clebsch"], "floor_seconds"),
        ]
        + [cell(by.get(n)) for n in names]
        for (rule, name), by in works.items()
        if "clebsch" in by
    ]
    return table(["us: host / wall / device", "copy", *names.values()], rows)
