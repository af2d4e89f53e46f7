#!/usr/bin/env python3
"""compare.py - times Clebsch and whichever other libraries are installed on the same data, in one process, on one stream, and compares their results.

--json writes a run that `clebsch compare` reads, each library a device of its own.  Exit status 1: something was asked for and not timed."""
import argparse
import ctypes
import datetime
import gc
import json
import math
import os
import platform
import sys
import time

PASSES = ["forward", "backward", "double_backward"]
TOLERANCE = {"f32": 2e-5, "f64": 1e-12}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.replace("\n\n", " "))
    words = lambda text: [word for word in text.split(",") if word]
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--op", type=words, default=["spherical_harmonics", "tensor_product", "convolution"])
    parser.add_argument("--problem", type=words, default=["mace-large", "nequix-main"], help="of products and convolutions: the names that `clebsch bench` has")
    parser.add_argument("--graph", type=words, default=["carbon"], help="carbon (or carbon:N, NxNxN cells), flashtp, hub")
    parser.add_argument("--lmax", type=words, default=["4"], help="of spherical harmonics")
    parser.add_argument("--pass", dest="passes", type=words, default=["forward", "backward"], help=", ".join(PASSES))
    parser.add_argument("--library", type=words, help="others than Clebsch, of those installed (default: all)")
    parser.add_argument("--dtype", choices=["f32", "f64"], default="f32")
    parser.add_argument("--rows", type=int, help="of products and harmonics (default: 50,000, double backward 20,000, and 1,000,000; on the cpu a fiftieth)")
    parser.add_argument("--repeats", type=int, default=31)
    parser.add_argument("--threads", type=int, help="on the cpu: every library keeps to as many (default: all)")
    parser.add_argument("--clebsch", metavar="PATH", help="libclebsch.so (default: $CLB_LIBRARY, else the system's)")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--append", action="store_true", help="keep what is in that file; of the same work, what is faster")
    a = parser.parse_args()
    if a.append and not a.json:
        parser.error("--append is of --json")
    if a.repeats < 1 or not set(a.passes) <= set(PASSES):
        parser.error("--repeats is positive and --pass of " + ", ".join(PASSES))
    a.passes = [p for p in PASSES if p in a.passes]
    return a


args = arguments()
if args.device == "cpu" and args.threads:  # before any library starts its threads
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:args.threads])
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(args.threads)
here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "..", "..", "python")]
sys.dont_write_bytecode = True

import torch  # noqa: E402
from clebsch import _structs as structs  # noqa: E402

import ours  # noqa: E402
import peers  # noqa: E402
import problems  # noqa: E402

# ---- what is to be done -----------------------------------------------------------------------------------------------------------


class Work:
    """One op on some rows: operands and incoming gradients as standard tensors (see peers.py), and what each pass reads and writes."""

    def __init__(self, op, problem, graph, rows, passes):
        self.op, self.problem, self.graph, self.rows, self.passes = op, problem, graph, rows, passes
        self.device, self.dtype = args.device, {"f32": torch.float32, "f64": torch.float64}[args.dtype]
        self.clb_dtype = {"f32": structs.F32, "f64": structs.F64}[args.dtype]

    def arguments(self, name):
        """Names of a pass's inputs, and of the tensors that its outputs are like, in the order of Clebsch's and of autograd's."""
        if name == "forward":
            return self.operands, ("g",)
        if name == "backward":
            return self.operands + ("g",), self.operands
        return self.operands + ("g",) + self.incoming, self.operands + ("g",)

    def bytes(self, name):
        inputs, outputs = self.arguments(name)
        return sum(self.tensors[i].numel() * self.tensors[i].element_size() for i in inputs + outputs)

    def fill(self, sizes, rows):
        """Random numbers: of each kind its columns and rows."""
        self.operands = tuple(k for k in sizes if k != "z")
        self.incoming = ("a", "b", "c")[:len(self.operands)]
        self.kinds = {**{k: k for k in self.operands}, "g": "z", **dict(zip(self.incoming, self.operands))}
        needed = set().union(*(self.arguments(p)[0] for p in self.passes)) | {"g"}
        generator = torch.Generator(self.device).manual_seed(1)
        self.tensors = {name: torch.randn(rows[kind], sizes[kind], generator=generator, dtype=self.dtype, device=self.device)
                        for name, kind in self.kinds.items() if name in needed}


def harmonics(l_max, rows, passes):
    work = Work("spherical_harmonics", f"lmax={l_max} component", None, rows, passes)
    work.l_max = l_max
    work.fill({"x": 3, "z": (l_max + 1) ** 2}, {"x": rows, "z": rows})
    return work


def product(context, op, problem, graph, rows, passes):
    work = Work(op, problem, graph, rows, passes)
    x, y, work.filter = problems.PRODUCTS[problem]
    found = work.found = context.channel_wise(x, y, work.filter)
    work.irreps_x, work.irreps_y, work.irreps_z = (text.decode() for text in (found.irreps_x, found.irreps_y, found.irreps_z))
    work.instructions = [(i.in1, i.in2, i.out, "uvu", bool(i.has_weight), i.path_weight) for i in found.instructions[:found.n_instructions]]
    sizes = structs.tensor_product_sizes()
    context._call("tensor_product_measure", ctypes.byref(context.product_desc(found, work.clb_dtype, structs.MUL_IR, [0])), ctypes.byref(sizes))
    many = dict.fromkeys("xywz", rows)
    if op == "convolution":
        work.nodes, senders, receivers = problems.graph(graph)
        work.rows = many["y"] = many["w"] = len(senders)
        many["x"] = many["z"] = work.nodes
        work.handle = context.graph(work.nodes, senders, receivers)
        work.senders, work.receivers = (torch.from_numpy(a).to(args.device) for a in (senders, receivers))
    work.fill({k: getattr(sizes, k) for k in "xywz"}, many)
    return work


def works(context):
    """One at a time: each is as large as the device's memory may be."""
    by = 1 if args.device == "cuda" else 50
    groups = [args.passes] if args.rows else list(filter(None, [[p for p in args.passes if p != PASSES[2]], [p for p in args.passes if p == PASSES[2]]]))
    for op in args.op:
        if op == "spherical_harmonics":
            for l_max in args.lmax:
                yield harmonics(int(l_max), args.rows or 1000000 // by, args.passes)
        elif op == "tensor_product":
            for problem in args.problem:
                for group in groups:
                    yield product(context, op, problem, None, args.rows or (20000 if PASSES[2] in group else 50000) // by, group)
        elif op == "convolution":
            for problem in args.problem:
                for graph in args.graph:
                    yield product(context, op, problem, graph, 0, args.passes)
        else:
            raise SystemExit(f"--op {op}: there are spherical_harmonics, tensor_product and convolution")


# ---- time -------------------------------------------------------------------------------------------------------------------------

FLUSHED = {"cuda": 256 << 20, "cpu": 64 << 20}  # bytes: more than the last cache holds


def times_of(call, flush):
    """Seconds of each of the repeats, sorted, caches flushed before each.  On a GPU, flushes are submitted until they last longer than the
    host needs to submit the call: the device never waits for the host between the two events."""
    for _ in range(3):
        call()
    if args.device == "cpu":
        seconds = []
        for _ in range(args.repeats):
            flush.zero_()
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
        return sorted(seconds)
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    host = time.perf_counter() - start
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(10):
        flush.zero_()
    torch.cuda.synchronize()
    fills = min(5000, 1 + math.ceil(2 * host / ((time.perf_counter() - start) / 10)))
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(args.repeats)]
    for before, after in events:
        for _ in range(fills):
            flush.zero_()
        before.record()
        call()
        after.record()
    torch.cuda.synchronize()
    return sorted(before.elapsed_time(after) / 1e3 for before, after in events)


# ---- one library's results --------------------------------------------------------------------------------------------------------


def standard(work, native, name, outputs):
    _, likes = work.arguments(name)
    return [torch.zeros_like(work.tensors[like]) if out is None else native.take(work.kinds[like], out.detach()) for like, out in zip(likes, outputs)]


def difference(ours, theirs):
    """The largest of all numbers, each tensor's relative to its largest."""
    return max(((a - b).abs().max() / a.abs().max().clamp_min(1e-30)).item() for a, b in zip(ours, theirs))


def run(work, library, device, variant, flush, reference, report):
    try:
        start = time.perf_counter()
        native, calls = library.passes(work, variant)
        for name, call, results in calls:
            made = call()
            if args.device == "cuda":
                torch.cuda.synchronize()
            elif results:
                library.context.wait()
            first = time.perf_counter() - start
            outputs = standard(work, native, name, results if results else made)
            del made
            error = None
            if name not in reference:
                reference[name] = outputs
            else:
                error = difference(reference[name], outputs)
            del outputs
            timed = (lambda: (call(), library.context.wait())) if results and args.device == "cpu" else call
            wrong = error is not None and not error <= TOLERANCE[args.dtype]
            report(work, name, native.layout, device, error, None if wrong else times_of(timed, flush), first)
            start = time.perf_counter()
    except Exception as failure:  # one library's trouble is not the others'
        report.failed(work, device, variant, failure)


class Report:
    def __init__(self, about):
        """about: what all devices of the run have in common."""
        self.results, self.ours, self.about, self.refused = [], {}, about, []
        self.started = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.before = {"devices": [], "results": []}
        if args.append and os.path.exists(args.json):
            with open(args.json) as file:
                self.before = json.load(file)

    def save(self, complete):
        kept = {}
        for row in self.before["results"] + self.results:
            same = tuple(row[k] for k in ("op", "problem", "graph", "options", "pass", "dtype", "device", "rows"))
            other = kept.get(same)
            if not other or (row["seconds"] or math.inf) < (other["seconds"] or math.inf):
                kept[same] = row
            if other:  # compiled kernels may have been there the second time
                kept[same]["compile_seconds"] = max(row.get("compile_seconds", 0), other.get("compile_seconds", 0))
        results, known = list(kept.values()), {device["name"]: device for device in self.before["devices"]}
        devices = [known.get(name, {"name": name, **self.about}) for name in dict.fromkeys(row["device"] for row in results)]
        agree(results)
        with open(args.json + ".new", "w") as file:
            json.dump({"format": "clebsch run 1", "clebsch": structs.VERSION, "suite": "peers", "started": self.before.get("started", self.started),
                       "complete": complete and self.before.get("complete", True), "devices": devices, "results": results}, file, indent=1)
            file.write("\n")
        os.replace(args.json + ".new", args.json)

    def row(self, work, name, layout, device):
        product = work.op != "spherical_harmonics"
        return {"op": work.op, "problem": work.problem, "graph": work.graph, "options": "mul_ir" if product and layout == "mul_ir" else None, "pass": name,
                "dtype": args.dtype, "device": device, "rows": work.rows}

    def __call__(self, work, name, layout, device, error, seconds, first):
        row = {**self.row(work, name, layout, device), "compile_seconds": first}
        row.update(bytes=work.bytes(name), error=error, tolerance=TOLERANCE[args.dtype] if error is not None else None,
                   correct=None if error is None else seconds is not None)
        if seconds is None:
            row.update(seconds=None, failed="the results differ from Clebsch's")
            said = f"not compared: results differ from Clebsch's by {error:.1e}"
            self.refused.append(f"{device}, {work.op} {name}: {row['failed']}, by {error:.1e}")
        else:
            n = len(seconds)
            median = seconds[n // 2]
            row.update(seconds=median, seconds_min=seconds[0], spread=(seconds[n - 1 - n // 10] - seconds[n // 10]) / median, repeats=n)
            ours = self.ours.setdefault((work.op, work.problem, work.graph, name, work.rows), median)
            if self.about["copy_bytes_per_second"]:
                row["copy_fraction"] = row["bytes"] / median / self.about["copy_bytes_per_second"]
            said = (f"{median * 1e3:10.4f} ms  +-{row['spread'] * 50:5.1f} %  {row['bytes'] / median / 1e9:8.1f} GB/s  {median / ours:7.2f} x  "
                    + ("" if error is None else f"{error:.1e}"))
        self.results.append(row)
        print(f"{', '.join(filter(None, [work.problem, work.graph])):28} {name:16} {device:36} {row['options'] or '':7} {said}", flush=True)

    def failed(self, work, device, variant, failure):
        text = f"{type(failure).__name__}: {failure}".splitlines()[0]
        this = (device, work.op, work.problem, work.graph, work.rows)
        have = {r["pass"] for r in self.results if tuple(r[k] for k in ("device", "op", "problem", "graph", "rows")) == this}
        for name in [p for p in work.passes if p not in have]:
            self.results.append({**self.row(work, name, variant, device), "seconds": None, "failed": text})
            self.refused.append(f"{device}, {work.op} {name}: {text}")
        print(f"{', '.join(filter(None, [work.problem, work.graph])):28} {'':16} {device:36} {variant:7} failed: {text[:200]}", flush=True)


def agree(results):
    """Our rows' error is what the nearest other library says of it."""
    for row in results:
        if row["device"].startswith("clebsch") and row["seconds"]:
            errors = [r["error"] for r in results if not r["device"].startswith("clebsch") and r.get("error") is not None
                      and all(r[k] == row[k] for k in ("op", "problem", "graph", "pass", "dtype", "rows"))]
            if errors:
                row.update(error=min(errors), tolerance=TOLERANCE[row["dtype"]], correct=min(errors) <= TOLERANCE[row["dtype"]])


def blocking_stream():
    """Unlike those that torch makes, it and the legacy default stream wait for each other: what a library launches there is timed too."""
    torch.zeros(1, device="cuda")  # makes torch's context the current one
    stream = ctypes.c_void_p()
    status = ctypes.CDLL("libcuda.so.1").cuStreamCreate(ctypes.byref(stream), 0)
    if status:
        raise SystemExit(f"cuStreamCreate returns {status}")
    return torch.cuda.ExternalStream(stream.value)


def present():
    """(peer, its name as a device) of those asked for that are there; says why the others are not, which it counts."""
    wanted = [peer for peer in peers.PEERS if not args.library or peer.name in args.library]
    unknown = set(args.library or ()) - {peer.name for peer in wanted}
    if unknown:
        raise SystemExit(f"--library: there is no {', '.join(sorted(unknown))}; there are {', '.join(peer.name for peer in peers.PEERS)}")
    found = []
    for peer in wanted:
        why = f"not on {args.device}" if args.device not in peer.devices else peer.available()
        print(f"{peer.name}: {f'left out, {why}' if why else peer.version()}", flush=True)
        if not why:
            found.append((peer, f"{peer.name} {peer.version()}"))
    if args.library and not found:
        raise SystemExit("none of the libraries asked for is there")
    return found, len(wanted) - len(found)


def main():
    stream = blocking_stream() if args.device == "cuda" else None
    if stream:
        torch.cuda.set_stream(stream)
        torch.backends.cuda.matmul.allow_tf32 = False
        where = f"{torch.cuda.get_device_name()}, torch {torch.__version__}, CUDA {torch.version.cuda}"
    else:
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        where = f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}"
    index = torch.cuda.current_device() if stream else 0
    context = ours.Context(args.clebsch, f"cuda:{index}" if stream else "cpu", stream.cuda_stream if stream else None)
    print(f"{where}; {context.description}", flush=True)
    found, absent = present()
    libraries = [(peers.Clebsch(context), "clebsch " + structs.VERSION)] + found
    flush = torch.zeros(FLUSHED[args.device], dtype=torch.uint8, device=args.device)
    ceilings = zip(("copy_bytes_per_second", "f32_per_second", "f64_per_second"), (value or None for value in context.ceilings()))
    report = Report({"backend": context.backend, "vendor": context.vendor, "description": f"{context.description}; {where}", "driver": context.driver,
                     "memory_bytes": context.device.memory_bytes or None, "runs": True, "f64": context.device.f64, **dict(ceilings)})
    for work in works(context):
        reference = {}
        for library, device in libraries:
            for variant in library.variants:
                apart = device + (f" {variant}" if variant in ("atomics", "deterministic") else "")
                run(work, library, apart, variant, flush, reference, report)
                gc.collect()
                torch.cuda.empty_cache() if stream else None
        del reference, work
        context.release()
        if args.json:
            report.save(complete=False)
    if args.json:
        report.save(complete=True)
    for sentence in report.refused:
        print("not timed:", sentence, file=sys.stderr)
    return bool(report.refused or (args.library and absent))


if __name__ == "__main__":
    sys.exit(main())
