"""Writes the measurements in README.md and docs/ from bench/results:

    python3 bench/tables.py [--check]

A table is between the lines "<!-- table NAME -->" and "<!-- end -->", a single number is in
"<!-- n:NAME ARGUMENTS -->4.80<!-- / -->" (runs.py has the names), and docs/peers.svg is a chart.
--check writes nothing.  It fails if a file differs from what would be written, or if a page has a
time, a speed or a percentage that was typed by hand."""
import math
import re
import sys

import chart
import scaling
from runs import (LIBRARIES, PASSES, ROOT, best_of_peers, found, geometric_mean, milliseconds,
                  number, read, results, version)

SHARES = "ms, forward / backward / double backward (% of the floor)"
MODELS = ("mace", "nequi", "sevennet")


def table(head, rows):
    def line(cells):
        return "| " + " | ".join(cells) + " |"
    return "\n".join([line(head), line(["---"] * len(head))] + [line(r) for r in rows])


def times(runs):
    cells = [milliseconds(r["seconds"]) if r and r.get("correct") else "-" for r in runs]
    return " / ".join(cells) if any(runs) else "-"


def shares(runs):
    """Milliseconds of each pass, and the percentage of the floor's speed that it reaches."""
    def percent(r):
        ok = r and r.get("correct")
        return f"{100 * r['floor_seconds'] / r['seconds']:.0f}" if ok else "-"
    return times(runs) + (f" ({' / '.join(map(percent, runs))} %)" if any(runs) else "")


def passes_of(by, device, dtype):
    return [by.get((device, dtype, q)) for q in PASSES]


def name_of(*parts):
    return ", ".join(str(x).replace("_", " ") for x in parts if x)


def with_later(works, **keys):
    """Of f32 in CUDA, what a later version took."""
    run = results("h200_f32.json")
    for key, by in found(run, **keys).items():
        works.setdefault(key, {}).update(by)
    return works


def drivers_of_one_card(run):
    cuda, opencl = (next(d["name"] for d in run["devices"] if d["backend"] == b)
                    for b in ("cuda", "opencl"))
    return ("CUDA, f32", cuda, "f32"), ("NVIDIA's OpenCL, f32, 0.1.0", opencl, "f32"), \
           ("CUDA, f64, 0.1.0", cuda, "f64")


def harmonics():
    """Spherical harmonics of a million points, from `bench --suite standard`."""
    run = results("h200_standard.json")
    cuda = run["devices"][0]["name"]
    works = found(run, op="spherical_harmonics", rows=1000000, device=cuda)
    rows = [[p.split()[0]] + [shares(passes_of(by, cuda, t)) for t in ("f32", "f64")]
            for (p, _, _), by in works.items()]
    return table([SHARES, "f32", "f64"], rows)


def options():
    """Convolutions on carbon that `graphs` does not have: f64, splines, and the layout mul_ir."""
    run = results("h200_standard.json")
    columns = drivers_of_one_card(run)
    named = {"table": "splines", None: "", "mul_ir": "mul_ir"}
    works = with_later(found(run, op="convolution", graph="carbon"), op="convolution", graph="carbon")
    rows = [[f"{p} {named[o]}".strip()] + [times(passes_of(by, d, t)) for _, d, t in columns]
            for (p, _, o), by in works.items()]
    return table(["carbon: ms, forward / backward / double backward"] + [c[0] for c in columns],
                 rows)


def products():
    """Tensor products of `bench --suite standard` with both drivers of one GPU."""
    run = results("h200_standard.json")
    columns = drivers_of_one_card(run)
    works = with_later(found(run, op="tensor_product"), op="tensor_product")
    rows = [[p + (f" {o}" if o else "")] + [shares(passes_of(by, d, t)) for _, d, t in columns]
            for (p, _, o), by in works.items()]
    means = ["geometric mean of mace, nequip, nequix and sevennet"]
    for _, d, t in columns:
        models = [by for (p, _, o), by in works.items() if not o and p.startswith(MODELS)]
        shared = [[r["floor_seconds"] / r["seconds"] for by in models for r in [by.get((d, t, q))]
                   if r and r["seconds"]] for q in PASSES]
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
        cells.setdefault((problem, graph), {})[options] = \
            shares(passes_of(by, run["devices"][0]["name"], "f32"))
    rows = [[f"{problem}, {graph}"] + [of.get(o, "") for o in columns]
            for (problem, graph), of in cells.items() if "vectors" in of]
    return table([SHARES] + list(columns.values()), rows)


def bounds():
    """Devices that were not measured: a lower bound of the time, from the bytes and flops of the
    compiled code, and the bytes that it spills."""
    run = results("bounds.json")
    works, rows = {}, []
    for r in run["results"]:
        if not r["options"]:
            work = works.setdefault((r["op"], r["problem"], r["graph"]), {})
            work[r["device"], r["pass"]] = r
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
    rows = [[name_of(*work)] + [" / ".join(str(by[d][c]) for c in counts) if d in by else "-" for d in devices]
            for work, by in works.items()]
    return table(["instructions / accesses of memory / registers / bytes spilled"] + devices, rows) \
        + f"\n\n*Clebsch {run['clebsch']}*"


def of_peers(wanted):
    """The shortest time of each library, forward / backward, of ops for which `wanted` is true."""
    best = best_of_peers()
    works = [*dict.fromkeys(key[:3] for key in best if wanted(key[0]))]
    libraries = [n for n in LIBRARIES if any(key[3] == n and key[:3] in works for key in best)]
    rows = [[name_of(*work)] + [" / ".join(milliseconds(best.get(work + (library, p)))
                                           for p in PASSES[:2]) for library in libraries]
            for work in works]
    return table(["ms, forward / backward"] + libraries, rows)


def peers():
    return of_peers(lambda op: op != "spherical_harmonics")


def peers_harmonics():
    return of_peers(lambda op: op == "spherical_harmonics")


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
    rows = [[name_of(*work)] + [times([by.get((d, p)) for p in PASSES]) for d in names]
            for work, by in works.items()]
    return table(["ms, forward / backward / double backward"] + list(names.values()), rows)


def ablation():
    """The time without an optimisation divided by the time with it: geometric mean over cases, and
    the number of cases."""
    files = sorted((ROOT / "bench" / "results").glob("ablation_*.json"))
    devices = [(run, d) for run in (results(f.name) for f in files) for d in run["devices"]]
    names, ratios = [], {}
    for i, (run, d) in enumerate(devices):
        mine = [r for r in run["results"] if r["device"] == d["name"]]
        for way in (w for r in mine for w in r["ways"]):
            if way["without"] not in names:
                names.append(way["without"])
            ratios.setdefault((i, way["without"]), []).append(way["ratio"])
    names.sort(key=lambda name: name == "all of them")

    def cell(r):
        return f"{geometric_mean(r):.3g} ({len(r)})" if r else "-"
    rows = [[name] + [cell(ratios.get((i, name))) for i in range(len(devices))] for name in names]
    return table(["time without / with (cases)"] + [d["description"] for _, d in devices], rows)


def models():
    """Energy, forces and stress of whole networks."""
    rows = []
    for r in results("h200_models.json")["results"]:
        seconds, atomics, memory = (r["seconds_min"], r["seconds_min_with_atomics"],
                                    r["peak_memory_mib"])
        size = f"{r['atoms']:,} atoms, {r['edges']:,} edges"
        rows.append([f"{r['model']}, {r['structure']}: {size}" +
                     (f"; {memory / 1024:.3g} GiB of the device" if memory else ""),
                     f"{seconds * 1e3:.3g}", f"{seconds / r['atoms'] * 1e6:.3g}",
                     f"{atomics / r['atoms'] * 1e6:.3g}" if atomics else "-"])
    return table(["model and structure", "ms a step", "us per atom", "with atomics"], rows)


def memory():
    """What models need of a device, and how many atoms fit: as a whole, and in blocks of atoms."""
    def million(fit):
        return " / ".join(f"{n / 1e6:.2g}" for n in fit.values())
    rows = [[f"{r['model']}, {r['structure']}", f"{r['edges'] / r['atoms']:.0f}",
             f"{r['bytes_per_atom']} + {r['bytes_per_edge']}", million(r["atoms_that_fit"]),
             f"{r['block_bytes_per_atom']} + {r['block_bytes_per_edge']}",
             million(r["atoms_that_fit_in_blocks"])] for r in results("memory.json")["results"]]
    return table(["model and structure", "edges an atom", "bytes: an atom + an edge",
                  "million atoms in 16 / 48 / 80 GB", "in blocks: bytes", "million atoms"], rows)


def steps():
    """Recorded steps of small systems."""
    rows = [[r["model"], f"{r['system']}, {r['atoms']:,}", str(r["launches"]), f"{r['seconds'] * 1e3:.3g}",
             f"{r['seconds'] / r['atoms'] * 1e6:.3g}"] for r in results("h100_steps.json")["steps"]]
    return table(["model", "atoms", "launches", "ms", "us per atom"], rows)


def skins():
    """Steps of dynamics with skins of several lengths."""
    rows = results("h100_skins.json")["rows"]
    lengths = [*rows[0]["seconds"]]
    return table(["ms a step of md", "atoms", *(f"skin {x}" for x in lengths)],
                 [[r["model"], f"{r['system']}, {r['atoms']:,}", *(milliseconds(r["seconds"][x]) for x in lengths)] for r in rows])


def counters():
    """The longest launch of each kernel of a step, by the hardware's counters."""
    rows = []
    for run in results("h100_counters.json")["runs"]:
        longest = {}
        for k in run["kernels"]:
            if k["seconds"] > longest.get(k["kernel"], {"seconds": 0})["seconds"]:
                longest[k["kernel"]] = k
        rows += [[run["name"], name, f"{k['seconds'] * 1e6:.0f}", f"{k['instructions'] / run['edges']:.0f}",
                  f"{k['issue']:.0%}", f"{k['warps']:.1f}", f"{k['l1_hits']:.0%}",
                  f"{k['l2_bytes_per_second'] / 1e12:.1f}", f"{k['dram_bytes'] / k['seconds'] / 1e12:.1f}"]
                 for name, k in longest.items()]
    return table(["model", "kernel", "us", "instructions an edge", "of issue slots", "warps a scheduler",
                  "L1 hits", "L2, TB/s", "DRAM, TB/s"], rows)


def dynamics():
    """A step of md beside the model alone."""
    rows = [[f"{r['system']}, {r['atoms']:,}", r["skin"], r["thermostat"] or "-",
             f"{r['energy_seconds'] * 1e3:.4g}", f"{r['md_seconds'] * 1e3:.4g}",
             f"{r['md_seconds'] / r['energy_seconds']:.3g}"]
            for r in results("h100_steps.json")["md"]]
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
    return table(["ms a step (of the model alone)", *columns],
                 [[host] + [of.get(c, "-") for c in columns] for host, of in cells.items()])


def of_ideal(seconds, ideal):
    return f"{milliseconds(seconds)} ({100 * ideal / seconds:.0f} %)"


def lammps_gpus():
    """LAMMPS on GPUs of one host."""
    cells = {}
    for r in results("h200_lammps.json")["results"]:
        about = f"about {r['of_a_gpu']:,}" if "of_a_gpu" in r else f"{r['atoms'] // r['gpus']:,}"
        atoms = f"{about} a GPU" if r["kind"] == "weak" else f"{r['atoms']:,}"
        alone = r["p2p"] == "-"  # on one GPU there are no ways
        for way in ("yes", "no") if alone else (r["p2p"],):
            cells.setdefault((r["model"], r["system"], atoms, r["kind"], way, r["run"]), {})[r["gpus"]] = r
    rows = []
    for (model, system, atoms, _, way, _), of in cells.items():
        if len(of) < 2:
            continue
        least = of[min(of)]
        rows.append([model, f"{system}, {atoms}", {"yes": "GPU to GPU", "no": "through the host"}[way]] + [of_ideal(
            of[g]["seconds"], least["seconds"] * of[g]["atoms"] / g / (least["atoms"] / least["gpus"])) if g in of else "-" for g in (1, 2, 4, 8)])
    return table(["model", "atoms", "rows of ghosts", "ms a step on 1 GPU", "2", "4", "8"], rows)


def training_gpus():
    """Training on GPUs of one host."""
    parts = ["gradient", "waiting", "sum", "optimizer", "parameters"]
    runs = results("h200_training_gpus.json")["results"]
    rows = []

    def what(r):
        weak = r["kind"] == "weak"
        return r["model"], f"{r['structures'] // r['gpus']} a GPU" if weak else f"{r['structures']} in all"
    for r in runs:
        least = min((x for x in runs if what(x) == what(r)), key=lambda x: x["gpus"])
        ideal = least["times"]["seconds"] * r["structures"] / r["gpus"] / (least["structures"] / least["gpus"])
        t, of = r["times"], [r["times"][k] for k in parts]
        rows.append([*what(r), str(r["gpus"]), of_ideal(t["seconds"], ideal)] + [milliseconds(x) for x in (*of, t["seconds"] - sum(of))])
    return table(["model", "structures", "GPUs", "ms a step", *parts, "rest"], rows)


def training_trace():
    """Steps of training on four GPUs, by whether arrays were made anew in them."""
    rows = []
    for text, anew in (("none", False), ("some", True)):
        of = [r for r in results("h200_training_trace.json")["steps"] if (r["allocations"] > 0) == anew]
        slowest, fastest = (sorted(f(r["gradient_ms"]) for r in of) for f in (max, min))
        rows.append([text, str(len(of)), f"{fastest[0]:.3g} to {fastest[-1]:.3g}", f"{slowest[0]:.3g} to {slowest[-1]:.3g}"])
    return table(["arrays made anew", "steps", "ms, the fastest GPU's gradient", "ms, the slowest GPU's"], rows)


def training_on_paper():
    """Training on many GPUs."""
    i = scaling.inputs()
    return table(*scaling.training_table(i)) + "\n\n" + scaling.training_paragraph(i)


def race():
    """Optimizers to the same loss."""
    return table(["optimizer", "learning rate", "steps", "s", "ms a step", "of it the optimizer", "best loss of all steps"],
                 [[r["optimizer"], f"{r['rate']:g}", str(r["steps"]), f"{r['seconds']:.3g}", milliseconds(r["times"]["seconds"]),
                   milliseconds(r["times"]["optimizer"]), f"{r['best_loss']:.3g}"] for r in results("h200_race.json")["results"]])


def moving():
    """Steps while atoms move."""
    rows = [[r["model"], f"{r['system']}, {r['atoms']:,}", r["card"], str(r["launches"]), milliseconds(r["seconds"]),
             milliseconds(r["seconds_mean"])] for r in results("moving_steps.json")["steps"]]
    return table(["model", "atoms", "card", "launches", "ms", "ms, mean"], rows)


def new_models():
    """Steps of models of random weights while atoms move."""
    rows = [[r["model"].replace(" (random weights)", ""), f"{r['system']}, {r['atoms']:,}", str(r["launches"]),
             milliseconds(r["seconds_mean"]), f"{r['seconds_mean'] / r['atoms'] * 1e6:.3g}"]
            for r in results("h100_new_models.json")["steps"]]
    return table(["model", "atoms", "launches", "ms", "us an atom"], rows)


def beside_originals():
    """Steps of models of random weights, and of their original programs where these ran."""
    rows = []
    for r in results("h200_new_models.json")["steps"]:
        by = r.get("original_seconds")
        rows.append([r["model"].replace(" (random weights)", ""), f"{r['system']}, {r['atoms']:,}", milliseconds(r["seconds"]),
                     f"{r['seconds'] / r['atoms'] * 1e6:.3g}", f"{milliseconds(by)} ({by / r['seconds']:.1f})" if by else "-"])
    return table(["model", "atoms", "ms", "us an atom", "ms, the original (of ours)"], rows)


def dispersion():
    """A step with dispersion and without."""
    rows = [[f"{r['system']}, {r['atoms']:,}", r["d3"], milliseconds(r["seconds_without"]), milliseconds(r["seconds"]),
             f"{(r['seconds'] - r['seconds_without']) / r['atoms'] * 1e6:.3g}"]
            for r in results("h100_dispersion.json")["results"]]
    return table(["atoms", "`d3`", "ms without", "ms with", "us an atom for it"], rows)


def on_paper():
    """Many GPUs."""
    i = scaling.inputs()
    return table(*scaling.table(i)) + "\n\n" + scaling.paragraph(i)


def paper_beside_measured():
    """What was said on paper of a few GPUs, beside what they took."""
    return table(*scaling.beside_measured(scaling.inputs()))


def training_beside_measured():
    """What two GPUs said of training on more, beside what they took."""
    return table(*scaling.training_beside_measured(scaling.inputs()))


def largest():
    """The largest systems that ran, in blocks of atoms."""
    rows = [[r["model"], f"{r['system']}, {r['atoms']:,}", f"{r['edges']:,}",
             f"{r['peak_memory_mib'] / 1024:.3g}", f"{r['seconds']:.3g}",
             f"{r['seconds'] / r['atoms'] * 1e6:.3g}"]
            for r in results("h100_steps.json")["largest"]]
    return table(["model", "atoms", "edges", "GiB", "s a step", "us per atom"], rows)


def models_peers():
    """A whole network in several programs: a row for each system, a column for each program."""
    cells, programs = {}, {}
    for r in results("h100_models_peers.json")["results"]:
        program = f"{r['program']} {r['version']}"
        programs[program] = True
        system = f"{r['system'].split(':')[0]}, {r['atoms']:,} atoms"
        error = f" ({r['force_error']:.0e})" if r.get("force_error") else ""
        cells.setdefault(system, {})[program] = f"{r['ms']:.3g}{error}"
    return table(["ms (largest error of a force, eV/A)", *programs],
                 [[system] + [of.get(p, "-") for p in programs] for system, of in cells.items()])


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
    head = [f"{b.get('model', m)}, {b['structures']} structures, {b['atoms']:,} atoms, {b['edges']:,} edges"
            for m, b in batches.items()]
    return table(["ms a step", *head],
                 [[program] + [of.get(m, "-") for m in batches] for program, of in cells.items()])


def training_cpu():
    """A small network trained on a CPU."""
    rows = [[f"{r['frames']}", f"{r['epochs']} ({r['steps']} steps)", f"{r['seconds']:.3g}", f"{r['energy_mae'] * 1e3:.3g}",
             f"{r['force_mae'] * 1e3:.3g} / {r['force_rmse'] * 1e3:.3g}"] for r in results("training_cpu.json")["rows"]]
    return table(["frames", "epochs", "s", "energies, MAE, meV an atom", "forces, MAE / RMSE, meV/A"], rows)


KERNELS = {"e3nn": "e3nn", "cueq": "cuEquivariance", "oeq": "OpenEquivariance", "flash": "FlashTP",
           "clebsch": "patched with clebsch.torch"}


def patched():
    """The models' own programs in PyTorch with each library's kernels."""
    run = results("h100_patched.json")
    heads, cells = {}, {}
    for r in sorted(run["rows"], key=lambda r: [*KERNELS].index(r["kernels"])):
        model = {"sevennet": "SevenNet-0, sevenn", "mace": "MACE 128x0e+128x1o, mace-torch"}[r["family"]]
        heads[r["family"]] = f"{model} {r['package']}, {r['edges']:,} edges"
        name = KERNELS[r["kernels"]] + ("" if r["kernels"] in ("e3nn", "clebsch") else f" {r['version']}")
        cells.setdefault(name, {})[r["family"]] = (
            f"{r['step_ms']:.3g} / {r['evaluate_ms']:.3g}, {r['step_gib']:.3g} / {r['evaluate_gib']:.3g} GiB")
    card = f"{run['device']['name']}, driver {run['device']['driver']}, PyTorch {run['torch']}"
    return table(["ms, a step / an evaluation", *heads.values()],
                 [[name] + [of.get(f, "-") for f in heads] for name, of in cells.items()]) + f"\n\n{card}."


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
    reached = [f"{100 * r['floor_seconds'] / r['seconds']:.0f}" if r and r.get("seconds") else "-"
               for r in mine]
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
        rows.append([work, floors, f"{of_passes(by, 'clebsch', passes)} ({reached} %)"] +
                    [of_passes(by, program, passes) for program in programs])
    return table([title, "plain kernel", "Clebsch (% of it)", *programs.values()], rows)


def norms():
    """RMS norms of plain rows beside torch, Liger and quack."""
    return beside("h100_norms.json", lambda r: r["variant"] == "plain",
                  "us, forward / backward",
                  lambda r: f"{r['dtype']} {r['rows']:,} x {r['width']:,}", PASSES[:2],
                  {"eager": "torch", "compile": "torch.compile", "liger": "Liger",
                   "quack": "quack"})


def norms_irreps():
    """RMS norms of irreps beside torch."""
    return beside("h100_norms.json", lambda r: r["variant"] != "plain",
                  "us, forward / backward / double backward",
                  lambda r: f"{r['variant']}, {r['rows']:,} rows", PASSES,
                  {"eager": "torch", "compile": "torch.compile",
                   "closed": "formulas in torch.compile"})


def optimizers():
    """Steps of optimizers: time to return, of one of many steps, and on the device."""
    names = {"clebsch": "Clebsch", "arena": "in one buffer", "foreach": "foreach",
             "fused": "fused", "graph": "graph of fused", "compile": "torch.compile",
             "compile-graph": "graph of it"}
    works = {}
    for r in results("h100_optimizers.json")["results"]:
        works.setdefault((r["rule"], r["list"]), {})[r["peer"]] = r

    def cell(r):
        keys = "host_seconds", "wall_seconds", "seconds"
        return " / ".join(microseconds(r, k) for k in keys) if r and r.get("seconds") else "-"
    rows = [[f"{rule}, {name}: {by['clebsch']['bytes'] / 1e6:.0f} MB",
             microseconds(by["clebsch"], "floor_seconds")] + [cell(by.get(n)) for n in names]
            for (rule, name), by in works.items() if "clebsch" in by]
    return table(["us: host / wall / device", "copy", *names.values()], rows)


SWITCHES = {"without wide accesses": "wide aligned accesses",
            "without persistent reductions": "accumulators in registers",
            "without split reductions": "split of long reductions"}


def suites():
    """Speed over a naive kernel by device and suite: with all optimisations, without each, without
    all, and what the last would be if each cost alone what it costs with the others."""
    files = sorted((ROOT / "bench" / "results").glob("suites_*.json"))
    columns = {}
    for run, d in ((run, d) for run in (results(f.name) for f in files) for d in run["devices"]):
        for r in run["results"]:
            if r["device"] == d["name"]:
                columns.setdefault((d["description"], r["suite"]), []).append(r)

    def ratio(case, without):
        return next((w["ratio"] for w in case["ways"] if w["without"] == without), 1)

    def line(title, loss):
        return [title] + [f"""{geometric_mean([r['naive_seconds_min'] / r['seconds_min'] / loss(r)
                                               for r in cases]):.3g}"""
                          for cases in columns.values()]
    rows = [line("all on", lambda r: 1)]
    rows += [line(title, lambda r, w=without: ratio(r, w)) for title, without in SWITCHES.items()]
    rows.append(line("without any", lambda r: ratio(r, "all of them")))
    rows.append(line("the three losses multiplied",
                     lambda r: math.prod(ratio(r, w) for w in SWITCHES.values())))
    return table(["speed over a naive kernel (cases)"] +
                 [f"{device}: {suite} ({len(cases)})"
                  for (device, suite), cases in columns.items()], rows)


def suite_cases():
    """The same case by case: how many times slower it is without each and without any."""
    files = sorted((ROOT / "bench" / "results").glob("suites_*.json"))
    rows = []
    for run, d in ((run, d) for run in (results(f.name) for f in files) for d in run["devices"]):
        for r in (r for r in run["results"] if r["device"] == d["name"]):
            of = {w["without"]: f"{w['ratio']:.2f}" for w in r["ways"]}
            where = r["graph"] or (f"{r['rows']:,} rows" if r["rows"] > 1 else None)
            name = name_of(r["work"], r["problem"], r["layout"], where, r["pass"])
            rows.append([name, f"{r['naive_seconds_min'] / r['seconds_min']:.3g}"] +
                        [of.get(w, "-") for w in [*SWITCHES.values(), "all of them"]])
    return table(["case", "speed over naive", "time without / with wide", "persistent", "split",
                  "all three"], rows)


TABLES = {f.__name__: f for f in (counters, norms, norms_irreps, optimizers, suites, suite_cases,
                                  harmonics, options, products, graphs, flashtp, vectors, bounds, machine_code,
                                  peers, peers_harmonics, drivers, ablation, models, models_peers,
                                  memory, steps, skins, training_steps, training_cpu, patched, dynamics, hosts, lammps_gpus, training_gpus, training_trace, training_on_paper, race,
                                  moving, new_models, beside_originals, dispersion, on_paper, paper_beside_measured, training_beside_measured, largest)}
GENERATED = re.compile(r"<!-- table (\w+) -->\n.*?<!-- end -->", re.S)
NUMBER = re.compile(r"<!-- n:([^>]+) -->.*?<!-- / -->", re.S)
MEASURED = re.compile(r"\d[\d.,]*\s*(?:ms|us|ns|%|[GT]B/s|GiB|eV)(?!\w)")


def with_version(name):
    """A table, and below it the version that it is of."""
    read.clear()
    rows, of = TABLES[name](), version(*read)
    return f"<!-- table {name} -->\n{rows}\n\n" + (f"*Clebsch {of}*\n\n" if of else "") + \
        "<!-- end -->"


def written(text):
    text = GENERATED.sub(lambda m: with_version(m[1]), text)
    return NUMBER.sub(lambda m: f"<!-- n:{m[1]} -->{number(m[1])}<!-- / -->", text)


def typed_by_hand(text):
    """Measurements outside of the generated tables and numbers."""
    return MEASURED.findall(NUMBER.sub("", GENERATED.sub("", text)))


def main():
    bad, check = [], "--check" in sys.argv
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    made = {page: written(page.read_text()) for page in pages}
    made[ROOT / "docs" / "peers.svg"] = chart.svg()
    for path, after in made.items():
        name = path.relative_to(ROOT)
        if not check:
            path.write_text(after)
        elif not path.exists() or path.read_text() != after:
            bad.append(f"{name} is not made of bench/results; run python3 bench/tables.py")
        by_hand = typed_by_hand(after) if path in pages else []
        if by_hand:
            bad.append(f"{name}: typed by hand: {', '.join(by_hand)}")
    sys.exit("\n".join(bad) if bad else 0)


main()
