"""Reads bench/results for the tables and the chart: times and single numbers."""

import json
import math
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PASSES = ("forward", "backward", "double_backward")
# The columns of the comparison with other libraries; those without results are left out.
LIBRARIES = (
    "clebsch",
    "e3nn",
    "openequivariance",
    "flashtp",
    "cuequivariance",
    "lunaequivariance",
    "sphericart",
    "equitriton",
)


read = set()  # the names of all files that `results` has read


def results(name):
    read.add(name)
    return json.loads((ROOT / "bench" / "results" / name).read_text())


def milliseconds(seconds):
    return "-" if seconds is None else f"{seconds * 1e3:.3g}"


def geometric_mean(x):
    return math.exp(sum(map(math.log, x)) / len(x)) if x else math.nan


def found(run, **wanted):
    """Results with the wanted fields, in the file's order: a dict by (problem, graph, options) of
    dicts by (device, dtype, pass)."""
    works = {}
    for r in run["results"]:
        if all(r.get(k) == v for k, v in wanted.items()):
            work = works.setdefault((r["problem"], r["graph"], r["options"]), {})
            work[r["device"], r["dtype"], r["pass"]] = r
    return works


def best_of_peers():
    """The shortest time of each library over its layouts and options, by op, problem, graph,
    library and pass.  Leaves out Clebsch with atomics."""
    best = {}
    for r in results("h200_peers.json")["results"]:
        if r.get("seconds") is None or not r.get("correct") or "atomics" in r["device"]:
            continue
        key = r["op"], r["problem"], r.get("graph"), r["device"].split()[0], r["pass"]
        best[key] = min(best.get(key, math.inf), r["seconds"])
    return best


# ---- numbers in the text: <!-- n:NAME ARGUMENTS -->4.80<!-- / --> ----


def peers(op, problem, graph, library, which):
    return milliseconds(
        best_of_peers()[op, problem, None if graph == "-" else graph, library, which]
    )


def atomics(which):
    return next(
        milliseconds(r["seconds"])
        for r in results("h200_peers.json")["results"]
        if r["device"].endswith(" atomics") and r["pass"] == which
    )


def copy(file, backend):
    """Bandwidth of a copy, read plus written, in TB/s."""
    device = next(d for d in results(file)["devices"] if d["backend"] == backend)
    return f"{device['copy_bytes_per_second'] / 1e12:.3g}"


def launch(host_or_all, submitted_or_replayed):
    times = results("h200_models.json")["launches"]["nequip-water, 64 rows"]
    return f"{times[2 * (host_or_all == 'all') + (submitted_or_replayed == 'replayed')]:.2g}"


def drift(dtype, knots, field, structure="spc216"):
    """Of a run at constant energy; drifts in micro-eV per atom and ps."""
    runs = results("h200_models.json")["constant_energy"]
    run = next(
        r
        for r in runs
        if r["dtype"] == dtype and r["knots"] == int(knots) and structure in r["structure"]
    )
    return f"{run[field] * 1e6:.2g}" if field != "ms_per_step" else f"{run[field]:.3g}"


def version(*files):
    """Of Clebsch, as the files say it."""
    runs = [run for run in map(results, files) if isinstance(run, dict)]
    return ", ".join(sorted({run["clebsch"] for run in runs}))


NUMBERS = {f.__name__: f for f in (peers, atomics, copy, launch, drift, version)}


def number(key):
    name, *arguments = key.split()
    return NUMBERS[name](*arguments)
