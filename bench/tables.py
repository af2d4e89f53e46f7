"""Writes the tables of README.md that come from bench/results: python3 bench/tables.py [--check]

A table stands between the lines "<!-- table NAME -->" and "<!-- end -->"."""
import json
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PASSES = ("forward", "backward", "double_backward")
LIBRARIES = ("clebsch", "e3nn", "openequivariance", "flashtp", "cuequivariance", "sphericart", "equitriton")  # the columns, of those that have results


def results(name):
    return json.loads((ROOT / "bench" / "results" / name).read_text())


def table(head, rows):
    line = lambda cells: "| " + " | ".join(cells) + " |"
    return "\n".join([line(head), line(["---"] * len(head))] + [line(r) for r in rows])


def milliseconds(seconds):
    return "-" if seconds is None else f"{seconds * 1e3:.3g}"


def times(runs):
    return " / ".join(milliseconds(r["seconds"]) if r and r.get("correct") else "-" for r in runs) if any(runs) else "-"


def shares(runs):
    """Milliseconds of each pass, and what share of the floor's speed that is."""
    percent = lambda r: f"{100 * r['floor_seconds'] / r['seconds']:.0f}" if r and r.get("correct") else "-"
    return times(runs) + (" (" + " / ".join(map(percent, runs)) + " %)" if any(runs) else "")


def found(run, **wanted):
    """Results by (problem, graph, options), then device, dtype and pass, in the order of the file."""
    works = {}
    for r in run["results"]:
        if all(r.get(k) == v for k, v in wanted.items()):
            works.setdefault((r["problem"], r["graph"], r["options"]), {})[r["device"], r["dtype"], r["pass"]] = r
    return works


def geometric_mean(x):
    return math.exp(sum(map(math.log, x)) / len(x)) if x else math.nan


def harmonics():
    """A million points of `bench --suite standard`."""
    run = results("h200_standard.json")
    works = found(run, op="spherical_harmonics", rows=1000000, device=run["devices"][0]["name"])
    rows = [[p.split()[0]] + [shares([by.get((run["devices"][0]["name"], t, q)) for q in PASSES]) for t in ("f32", "f64")] for (p, _, _), by in works.items()]
    return table(["ms, forward / backward / double backward (% of the floor)", "f32", "f64"], rows)


def options():
    """Convolutions on carbon: f64, splines and the other layout beside what `graphs` has."""
    run = results("h200_standard.json")
    cuda, opencl = (next(d["name"] for d in run["devices"] if d["backend"] == b) for b in ("cuda", "opencl"))
    columns = [("CUDA, f32", cuda, "f32"), ("CUDA, f64", cuda, "f64"), ("NVIDIA's OpenCL, f32", opencl, "f32")]
    named = {"table": "splines", None: "", "mul_ir": "mul_ir"}
    works = found(run, op="convolution", graph="carbon")
    rows = [[f"{p} {named[o]}".strip()] + [times([by.get((d, t, q)) for q in PASSES]) for _, d, t in columns] for (p, _, o), by in works.items()]
    return table(["carbon: ms, forward / backward / double backward"] + [c[0] for c in columns], rows)


def products():
    """Tensor products of `bench --suite standard` through both drivers of one card."""
    run = results("h200_standard.json")
    cuda, opencl = (next(d["name"] for d in run["devices"] if d["backend"] == b) for b in ("cuda", "opencl"))
    columns = [("CUDA, f32", cuda, "f32"), ("NVIDIA's OpenCL, f32", opencl, "f32"), ("CUDA, f64", cuda, "f64")]
    works = found(run, op="tensor_product")
    rows = [[p + (f" {o}" if o else "")] + [shares([by.get((d, t, q)) for q in PASSES]) for _, d, t in columns] for (p, _, o), by in works.items()]
    means = ["geometric mean of mace, nequip, nequix and sevennet"]
    for _, d, t in columns:
        models = [by for (p, _, o), by in works.items() if not o and p.startswith(("mace", "nequi", "sevennet"))]
        shared = [[r["floor_seconds"] / r["seconds"] for by in models for r in [by.get((d, t, q))] if r and r["seconds"]] for q in PASSES]
        means.append(" / ".join(f"{100 * geometric_mean(x):.0f}" for x in shared) + " %")
    return table(["ms, forward / backward / double backward (% of the floor)"] + [c[0] for c in columns], rows + [means])


def graphs():
    """Convolutions of `bench --suite graphs`: every problem on every graph."""
    run = results("h200_graphs.json")
    works, cells = found(run, op="convolution"), {}
    for (problem, graph, _), by in works.items():
        cells[problem, graph] = shares([by.get((run["devices"][0]["name"], "f32", q)) for q in PASSES])
    problems, names = list(dict.fromkeys(p for p, _ in cells)), list(dict.fromkeys(g for _, g in cells))
    return table(["ms, forward / backward / double backward (% of the floor)"] + names, [[p] + [cells.get((p, g), "") for g in names] for p in problems])


def bounds():
    """What is not at hand: the least time that bytes and flops of the compiled code take, and what it spills."""
    run = results("bounds.json")
    works, rows = {}, []
    for r in run["results"]:
        if r["options"]:
            continue
        works.setdefault((r["op"].replace("_", " "), r["problem"], r["graph"]), {})[r["device"], r["pass"]] = r
    for work, by in works.items():
        cells = []
        for d in run["devices"]:
            runs = [by.get((d["name"], q)) for q in PASSES]
            spills = [str(r["spills"]) if r and r["spills"] is not None else "-" for r in runs]
            cells.append(" / ".join(milliseconds(r["bound_seconds"]) if r else "-" for r in runs) + ("" if set(spills) == {"0"} else f" ({' / '.join(spills)} B)"))
        rows.append([", ".join(x for x in work if x)] + cells)
    return table(["bound, ms, forward / backward / double backward (bytes spilled)"] + [f"{d['name']}: {d['published']['name']}" for d in run["devices"]], rows)


def peers():
    """Least time of each library over its layouts and options, forward / backward."""
    run = results("h200_peers.json")
    best, works = {}, []
    for r in run["results"]:
        library = r["device"].split()[0]
        work = (r["op"], r["problem"], r.get("graph"))
        if r.get("seconds") is None or not r.get("correct") or "atomics" in r["device"]:
            continue
        if work not in works:
            works.append(work)
        key = work + (library, r["pass"])
        best[key] = min(best.get(key, math.inf), r["seconds"])
    libraries = [name for name in LIBRARIES if any(name in key for key in best)]
    rows = []
    for work in works:
        name = ", ".join(x for x in (work[0].replace("_", " "), work[1], work[2]) if x)
        cells = [" / ".join(milliseconds(best.get(work + (library, p))) for p in PASSES[:2]) for library in libraries]
        rows.append([name] + cells)
    return table(["ms, forward / backward"] + libraries, rows)


def drivers():
    """One processor through three drivers: milliseconds, forward / backward / double backward."""
    run = results("cpu_quick.json")
    names = {}
    for d in run["devices"]:
        maker = "cpu, " if d["backend"] == "cpu" else "PoCL " if "pthread" in d["description"] else d["vendor"] + ", "
        names[d["name"]] = maker + d["driver"]
    works, seconds = [], {}
    for r in run["results"]:
        work = (r["op"], r["problem"], r.get("graph"), r.get("options"), r["rows"])
        if work not in works:
            works.append(work)
        seconds[work + (r["device"], r["pass"])] = r.get("seconds") if r.get("correct") else None
    rows = []
    for work in works:
        name = ", ".join(str(x) for x in (work[0].replace("_", " "), work[1], work[2], work[3], f"{work[4]} rows") if x)
        rows.append([name] + [" / ".join(milliseconds(seconds.get(work + (d, p))) for p in PASSES) for d in names])
    return table(["ms, forward / backward / double backward"] + list(names.values()), rows)


def ablation():
    """Geometric mean over cases of the time without an optimisation over the time with it, and the number of cases."""
    runs = [results(f.name) for f in sorted((ROOT / "bench" / "results").glob("ablation_*.json"))]
    devices = [(run, d) for run in runs for d in run["devices"]]
    names, ratios = [], {}
    for i, (run, d) in enumerate(devices):
        for way in (w for r in run["results"] if r["device"] == d["name"] for w in r["ways"]):
            if way["without"] not in names:
                names.append(way["without"])
            ratios.setdefault((i, way["without"]), []).append(way["ratio"])
    names.sort(key=lambda name: name == "all of them")
    cell = lambda r: f"{math.exp(sum(map(math.log, r)) / len(r)):.2f} ({len(r)})" if r else "-"
    rows = [[name] + [cell(ratios.get((i, name))) for i in range(len(devices))] for name in names]
    return table(["time without / with (cases)"] + [d["description"] for _, d in devices], rows)


def main():
    readme = ROOT / "README.md"
    before = readme.read_text()
    made = {"harmonics": harmonics, "options": options, "products": products, "graphs": graphs, "peers": peers, "drivers": drivers, "ablation": ablation, "bounds": bounds}
    after = re.sub(r"<!-- table (\w+) -->\n.*?<!-- end -->", lambda m: f"<!-- table {m[1]} -->\n{made[m[1]]()}\n<!-- end -->", before, flags=re.S)
    if "--check" in sys.argv and after != before:
        sys.exit("README.md: its tables are not those of bench/results; run python3 bench/tables.py")
    if "--check" not in sys.argv:
        readme.write_text(after)


main()
