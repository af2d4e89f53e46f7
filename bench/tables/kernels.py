"""Tables of kernels: measured, and from what compilers make of them."""

from layout import name_of, passes_of, shares, table, times
from runs import PASSES, found, geometric_mean, milliseconds, results

SHARES = "ms, forward / backward / double backward (% of the floor)"
MODELS = ("mace", "nequi", "sevennet")


def with_later(works, **keys):
    """Of f32 in CUDA, what a later version took."""
    run = results("h200_f32.json")
    for key, by in found(run, **keys).items():
        works.setdefault(key, {}).update(by)
    return works


def drivers_of_one_card(run):
    cuda, opencl = (
        next(d["name"] for d in run["devices"] if d["backend"] == b) for b in ("cuda", "opencl")
    )
    return (
        ("CUDA, f32", cuda, "f32"),
        ("NVIDIA's OpenCL, f32, 0.1.0", opencl, "f32"),
        ("CUDA, f64, 0.1.0", cuda, "f64"),
    )


def harmonics():
    """Spherical harmonics of a million points, from `bench --suite standard`."""
    run = results("h200_standard.json")
    cuda = run["devices"][0]["name"]
    works = found(run, op="spherical_harmonics", rows=1000000, device=cuda)
    rows = [
        [p.split()[0]] + [shares(passes_of(by, cuda, t)) for t in ("f32", "f64")]
        for (p, _, _), by in works.items()
    ]
    return table([SHARES, "f32", "f64"], rows)


def options():
    """Convolutions on carbon that `graphs` does not have: f64, splines, and the layout mul_ir."""
    run = results("h200_standard.json")
    columns = drivers_of_one_card(run)
    named = {"table": "splines", None: "", "mul_ir": "mul_ir"}
    works = with_later(
        found(run, op="convolution", graph="carbon"), op="convolution", graph="carbon"
    )
    rows = [
        [f"{p} {named[o]}".strip()] + [times(passes_of(by, d, t)) for _, d, t in columns]
        for (p, _, o), by in works.items()
    ]
    return table(
        ["carbon: ms, forward / backward / double backward"] + [c[0] for c in columns], rows
    )


def products():
    """Tensor products of `bench --suite standard` with both drivers of one GPU."""
    run = results("h200_standard.json")
    columns = drivers_of_one_card(run)
    works = with_later(found(run, op="tensor_product"), op="tensor_product")
    rows = [
        [p + (f" {o}" if o else "")] + [shares(passes_of(by, d, t)) for _, d, t in columns]
        for (p, _, o), by in works.items()
    ]
    means = ["geometric mean of mace, nequip, nequix and sevennet"]
    for _, d, t in columns:
        models = [by for (p, _, o), by in works.items() if not o and p.startswith(MODELS)]
        shared = [
            [
                r["floor_seconds"] / r["seconds"]
                for by in models
                for r in [by.get((d, t, q))]
                if r and r["seconds"]
            ]
            for q in PASSES
        ]
        means.append(" / ".join(f"{100 * geometric_mean(x):.0f}" for x in shared) + " %")
    return table([SHARES] + [c[0] for c in columns], rows + [means])


def on_graphs(wanted):
    """Convolutions of `bench --suite graphs` with y given: every problem on each graph for whose
    name `wanted` is true."""
    run = results("h200_graphs.json")
    cells = {}
    for (problem, graph, _), by in found(run, op="convolution", options=None).items():
        if wanted(graph):
            cells[problem, graph] = shares(passes_of(by, run["devices"][0]["name"], "f32"))
    problems, names = ([*dict.fromkeys(k[i] for k in cells)] for i in (0, 1))
    return table([SHARES] + names, [[p] + [cells.get((p, g), "") for g in names] for p in problems])


def graphs():
    return on_graphs(lambda graph: graph != "flashtp")


def flashtp():
    return on_graphs(lambda graph: graph == "flashtp")


def vectors():
    """The same with y made from vectors, as models run them, and with gradients of x by atomics."""
    run = results("h200_graphs.json")
    columns = {None: "y given", "vectors": "vectors", "vectors atomic": "vectors, atomics"}
    cells = {}
    for (problem, graph, options), by in found(run, op="convolution").items():
        cells.setdefault((problem, graph), {})[options] = shares(
            passes_of(by, run["devices"][0]["name"], "f32")
        )
    rows = [
        [f"{problem}, {graph}"] + [of.get(o, "") for o in columns]
        for (problem, graph), of in cells.items()
        if "vectors" in of
    ]
    return table([SHARES] + list(columns.values()), rows)


def bounds():
    """Devices that were not measured: a lower bound of the time, from the bytes and flops of the
    compiled code, and the bytes that it spills."""
    run = results("bounds.json")
    works, rows = {}, []
    for r in run["results"]:
        options = {"table": "splines"}.get(r["options"], r["options"])
        works.setdefault((r["problem"], options), {})[r["device"], r["pass"]] = r
    for work, by in works.items():
        cells = []
        for d in run["devices"]:
            runs = [by.get((d["name"], q)) for q in PASSES]
            spills = [str(r["spills"]) if r and r["spills"] is not None else "-" for r in runs]
            least = " / ".join(milliseconds(r["bound_seconds"]) if r else "-" for r in runs)
            cells.append(least + ("" if set(spills) == {"0"} else f" ({' / '.join(spills)} B)"))
        rows.append([name_of(*work)] + cells)
    devices = [f"{d['name']}: {d['published']['name']}" for d in run["devices"]]
    head = "bound, ms, forward / backward / double backward (bytes spilled)"
    return table([head] + devices, rows)


def machine_code():
    """What the vendors' compilers make of kernels in f32, from `bench --suite quick`."""
    run = results("machine_code.json")
    devices = [d["name"] for d in run["devices"]]
    works = {}
    for r in run["results"]:
        key = r["op"], r["problem"], r["graph"], r["options"], r["pass"]
        works.setdefault(key, {})[r["device"]] = r
    counts = ("instructions", "accesses", "registers", "spills")
    rows = [
        [name_of(*work)]
        + [" / ".join(str(by[d][c]) for c in counts) if d in by else "-" for d in devices]
        for work, by in works.items()
    ]
    return table(["instructions / accesses of memory / registers / bytes spilled"] + devices, rows)


def drivers():
    """One CPU with three drivers: milliseconds, forward / backward / double backward."""
    run = results("cpu_quick.json")
    names = {}
    for d in run["devices"]:
        pocl = "pthread" in d["description"]
        maker = "cpu, " if d["backend"] == "cpu" else "PoCL " if pocl else d["vendor"] + ", "
        names[d["name"]] = maker + d["driver"]
    works = {}
    for r in run["results"]:
        work = r["op"], r["problem"], r.get("graph"), r.get("options"), f"{r['rows']} rows"
        works.setdefault(work, {})[r["device"], r["pass"]] = r
    rows = [
        [name_of(*work)] + [times([by.get((d, p)) for p in PASSES]) for d in names]
        for work, by in works.items()
    ]
    return table(["ms, forward / backward / double backward"] + list(names.values()), rows)


def counters():
    """The longest launch of each kernel of a step, by the hardware's counters."""
    rows = []
    for run in results("h100_counters.json")["runs"]:
        longest = {}
        for k in run["kernels"]:
            if k["seconds"] > longest.get(k["kernel"], {"seconds": 0})["seconds"]:
                longest[k["kernel"]] = k
        rows += [
            [
                run["name"],
                name,
                f"{k['seconds'] * 1e6:.0f}",
                f"{k['instructions'] / run['edges']:.0f}",
                f"{k['issue']:.0%}",
                f"{k['warps']:.1f}",
                f"{k['l1_hits']:.0%}",
                f"{k['l2_bytes_per_second'] / 1e12:.1f}",
                f"{k['dram_bytes'] / k['seconds'] / 1e12:.1f}",
            ]
            for name, k in longest.items()
        ]
    return table(
        [
            "model",
            "kernel",
            "us",
            "instructions an edge",
            "of issue slots",
            "warps a scheduler",
            "L1 hits",
            "L2, TB/s",
            "DRAM, TB/s",
        ],
        rows,
    )
