#!/usr/bin/env python3
"""norms.py - RMS norms beside torch eager, torch.compile, Liger and quack: device time with cold
caches, in one process on one stream, of rows of plain numbers (forward and backward) and of irreps
(and double backward).

The floor of a row is the time of a plain kernel that moves the same bytes: a copy for a forward
pass, the sum of two arrays for the others.  --json is written after each row; what it has is not
measured again, so that a run that was cut off goes on.  On a GPU start with
--prepare 14, which compiles for torch and Triton in so many processes, into their caches."""
import argparse
import importlib.metadata
import os
import subprocess
import sys
import time

# rows, width: those of PufferLib's table, B T and H, odd widths first; then rows of 1 GB and more
PLAIN = [(131072, 77), (131072, 91), (32768, 128), (32768, 256), (49152, 256), (65536, 256),
         (131072, 256), (32768, 384), (93184, 384), (98304, 384), (49152, 512), (65536, 512),
         (98304, 512), (118272, 512), (131072, 512), (196608, 512)]
LARGE = {"f32": [(65536, 1024), (16384, 4096), (8192, 8192), (4096, 16384)],
         "bf16": [(131072, 1024), (32768, 4096), (16384, 8192), (8192, 16384)]}
IRREPS = "128x0e+64x1o+32x2e+32x3o"
TERMS = [(128, 0), (64, 1), (32, 2), (32, 3)]  # channels and degree
EPSILON = {"plain": 1e-6, "nequix": 1e-12, "degree": 1e-5}
TOLERANCE = {"f32": 1e-5, "bf16": 2e-2}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.replace("\n\n", " "))
    words = lambda text: [word for word in text.split(",") if word]  # noqa: E731
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--what", type=words, default=["plain", "irreps"],
                        help="plain, large, irreps (default: plain,irreps)")
    parser.add_argument("--dtype", type=words, default=["f32", "bf16"], help="of plain rows")
    parser.add_argument("--peer", type=words, help="clebsch, eager, compile, tuned, liger, quack, "
                        "closed (default: all but tuned)")
    parser.add_argument("--width", type=lambda t: [int(w) for w in words(t)],
                        help="only these widths of plain rows")
    parser.add_argument("--divide", type=int, default=1, help="all numbers of rows, for tests")
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--seconds", type=float, help="starts no measurement after so many")
    parser.add_argument("--prepare", type=int, metavar="PROCESSES",
                        help="first compile in as many processes")
    parser.add_argument("--part", help=argparse.SUPPRESS)  # of --prepare: K/N
    parser.add_argument("--host", action="store_true", help="host time of a small norm, too")
    parser.add_argument("--clebsch", metavar="PATH",
                        help="libclebsch.so (default: $CLB_LIBRARY, else the system's)")
    parser.add_argument("--json", metavar="FILE")
    return parser.parse_args()


args = arguments()
here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "..", "..", "python")]
sys.dont_write_bytecode = True

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import clebsch  # noqa: E402
import ours  # noqa: E402
import timing  # noqa: E402

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


# ---- what is computed -----------------------------------------------------------------------


def by_terms(x, w, variant, epsilon):
    """The norm of irreps as models write it: term by term, mul_ir."""
    parts, first = [], 0
    for channels, degree in TERMS:
        width = 2 * degree + 1
        part = x[:, first:first + channels * width].unflatten(1, (channels, width))
        parts.append(part)
        first += channels * width
    if variant == "degree":
        parts = [p * (p.square().mean(dim=(1, 2), keepdim=True) + epsilon).rsqrt() for p in parts]
    else:
        total = sum(p.square().mean(dim=2).sum(dim=1) / p.shape[2] for p in parts) / len(parts)
        scale = (total + epsilon).rsqrt()[:, None, None]
        parts = [p * scale for p in parts]
    weights = w.split([channels for channels, _ in TERMS])
    return torch.cat([(p * k[:, None]).flatten(1) for p, k in zip(parts, weights)], dim=1)


class Work:
    """x, w, the gradient g of y, and for double backward u, that of dx.  Weights' double gradient
    is zero: that of a loss of forces."""

    def __init__(self, variant, rows, width, dtype, device):
        self.variant, self.rows, self.width, self.dtype = variant, rows, width, dtype
        self.epsilon, self.device = EPSILON[variant], device
        generator = torch.Generator(device).manual_seed(1)
        make = lambda *shape: torch.randn(*shape, generator=generator, device=device,  # noqa: E731
                                          dtype=torch.float32).to(DTYPES[dtype])
        self.x, self.g = make(rows, width), make(rows, width)
        self.w = make(width if variant == "plain" else sum(c for c, _ in TERMS))
        self.u = make(rows, width) if variant != "plain" else None

    @property
    def irreps(self):
        return f"{self.width}x0e" if self.variant == "plain" else IRREPS

    def passes(self):
        return ["forward", "backward"] + ([] if self.variant == "plain" else ["double_backward"])

    def bytes(self, which):
        arrays = {"forward": 2, "backward": 3, "double_backward": 5}[which]
        return arrays, arrays * self.x.numel() * self.x.element_size()

    def function(self):
        """y of x and w, in torch."""
        if self.variant == "plain":
            return lambda x, w: F.rms_norm(x, (self.width,), w, self.epsilon)
        return lambda x, w: by_terms(x, w, self.variant, self.epsilon)

    def reference(self, which, rows=2048):
        """In float64, in torch: of the first rows; but gradients by weights are of all."""
        exact = [t.double() for t in (self.x, self.w, self.g)]
        x, w, g = (t.requires_grad_() for t in exact)
        if which == "forward":
            with torch.no_grad():
                return [self.function()(x[:rows], w)]
        y = self.function()(x, w)
        if which == "backward":
            dx, dw = torch.autograd.grad(y, (x, w), g)
            return [dx[:rows], dw]
        dx, = torch.autograd.grad(y, x, g, create_graph=True)
        found = torch.autograd.grad(dx, (x, g, w), self.u.double())
        return [found[0][:rows], found[1][:rows], found[2]]


def cut(which, found, rows=2048):
    """What reference has, of results."""
    if which == "forward":
        return [found[:rows]]
    return [f[:rows] if f.dim() == 2 and f.shape[0] > 1 else f.flatten() for f in found]


# ---- who computes it: make(work, pass) returns a call, and what it returns are the results ------


def ordinary(work, which, function):
    """A function of torch, differentiated by autograd."""
    if which == "forward":
        def forward():
            with torch.no_grad():
                return function(work.x, work.w)
        return forward
    x, w, g = (t.detach().clone().requires_grad_() for t in (work.x, work.w, work.g))
    y = function(x, w)
    if which == "backward":
        return lambda: torch.autograd.grad(y, (x, w), g.detach(), retain_graph=True)
    dx, = torch.autograd.grad(y, x, g, create_graph=True)
    return lambda: torch.autograd.grad(dx, (x, g, w), work.u, retain_graph=True)


class Eager:
    package = "torch"

    def make(self, work, which):
        return ordinary(work, which, work.function())


class Compile:
    package = "torch"

    def __init__(self, mode=None):
        self.mode = mode

    def make(self, work, which):
        if which == "double_backward":
            raise NotImplementedError("torch.compile has no double backward")
        torch._dynamo.reset()
        return ordinary(work, which,
                        torch.compile(work.function(), dynamic=False, mode=self.mode))


class Closed:
    """The derivatives written as formulas and compiled, which models do not do."""
    package = "torch"

    def make(self, work, which):
        if work.variant != "nequix" or which != "double_backward":
            raise NotImplementedError("written for Nequix' double backward only")
        torch._dynamo.reset()
        a, k = [], []
        for number, (channels, degree) in enumerate(TERMS):
            width = 2 * degree + 1
            a += [1 / (len(TERMS) * width**2)] * (channels * width)
            first = sum(c for c, _ in TERMS[:number])
            k += [first + i // width for i in range(channels * width)]
        a = torch.tensor(a, device=work.device)
        k = torch.tensor(k, device=work.device)

        def double(x, w, g, u):
            weights = w[k]
            h = weights * g
            r = ((a * x * x).sum(1, keepdim=True) + work.epsilon).rsqrt()
            c, p, q = ((t).sum(1, keepdim=True) for t in (h * x, u * h, a * u * x))
            b = r * u - r**3 * q * x
            dx = a * x * (3 * r**5 * c * q - r**3 * p) - r**3 * (q * h + c * a * u)
            dw = torch.zeros_like(w).index_add(0, k, (g * b).sum(0))
            return dx, weights * b, dw
        call = torch.compile(double, dynamic=False)
        return lambda: call(work.x, work.w, work.g, work.u)


class Liger:
    package = "liger-kernel"

    def make(self, work, which):
        from liger_kernel.ops.rms_norm import LigerRMSNormFunction
        return ordinary(work, which, lambda x, w: LigerRMSNormFunction.apply(
            x, w, work.epsilon, 0.0, "llama", False))


class Quack:
    package = "quack-kernels"

    def make(self, work, which):
        from quack import rmsnorm
        return ordinary(work, which, lambda x, w: rmsnorm(x, w, eps=work.epsilon))


class Ours:
    package = None

    def __init__(self, context):
        self.context = context

    def make(self, work, which):
        self.context.release()
        variant = "degree" if work.variant == "degree" else work.variant
        norm = clebsch.rms_norm(work.irreps, variant=variant, epsilon=work.epsilon,
                                dtype=work.dtype, device=self.context)
        op, rows, empty = norm._compiled(which, work.dtype), self.context.rows, torch.empty_like
        w = work.w[None]
        if which == "forward":
            arrays, results = [work.x, w], [empty(work.x)]
        elif which == "backward":
            arrays, results = [work.x, w, work.g], [empty(work.x), empty(w)]
        else:
            c = torch.zeros_like(w)
            arrays = [work.x, w, work.g, work.u, c]
            results = [empty(work.x), empty(w), empty(work.g)]
        submit = self.context.submit(op, f"rms_norm_{which}", work.rows,
                                     *map(rows, arrays + results))
        if which == "double_backward":
            results = [results[0], results[2], results[1]]  # as autograd is asked
        returned = results[0] if which == "forward" else results
        wait = self.context.wait if work.device == "cpu" else lambda: None

        def call():
            submit()
            wait()
            return returned
        return call


def peers(context):
    return {"clebsch": Ours(context), "eager": Eager(), "compile": Compile(),
            "tuned": Compile("max-autotune-no-cudagraphs"), "liger": Liger(), "quack": Quack(),
            "closed": Closed()}


def takes(name, variant, which):
    """Whether a peer has such a pass at all."""
    if name in ("liger", "quack", "tuned"):
        return variant == "plain"
    if name == "closed":
        return variant == "nequix" and which == "double_backward"
    return name != "compile" or which != "double_backward"


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


# ---- all rows -----------------------------------------------------------------------------------


def rows_of():
    """(variant, rows, width, dtype)"""
    for dtype in args.dtype:
        for rows, width in (PLAIN if "plain" in args.what else []) + \
                (LARGE[dtype] if "large" in args.what else []):
            if not args.width or width in args.width:
                yield "plain", rows // args.divide, width, dtype
    if "irreps" in args.what:
        width = sum(channels * (2 * degree + 1) for channels, degree in TERMS)
        for rows in (20000, 200000):
            for variant in ("nequix", "degree"):
                yield variant, rows // args.divide, width, "f32"


def measure(clock, peer, work, which):
    call = peer.make(work, which)
    found = call()
    clock.synchronize()
    error = timing.difference(cut(which, found), work.reference(which))
    if not error <= TOLERANCE[work.dtype]:
        return {"failed": f"the result differs by {error:.1e}", "error": error}
    del found
    row = {"seconds": clock.device_time(call), "error": error,
           "floor_seconds": clock.floor(*work.bytes(which))}
    if args.host:
        row["host_seconds"] = clock.host(call)
    return row


def compile_part(everyone, part, names):
    """Every Nth work of --prepare: it is run once, so that it is in the caches of compilers."""
    index, count = map(int, part.split("/"))
    for number, (variant, rows, width, dtype) in enumerate(rows_of()):
        if number % count != index:
            continue
        work = Work(variant, rows, width, dtype, args.device)
        for name in names:
            for which in work.passes():
                if name != "clebsch" and takes(name, variant, which):
                    try:
                        everyone[name].make(work, which)()
                    except Exception as failure:
                        print(f"{name} {variant} {width}: {failure}"[:200], file=sys.stderr)


def prepare():
    """Processes with the same arguments, each of which compiles a part of the rows."""
    start = time.monotonic()
    mine = [sys.executable, *sys.argv, "--json", "", "--prepare", "0"]
    running = [subprocess.Popen(mine + ["--part", f"{i}/{args.prepare}"])
               for i in range(args.prepare)]
    for process in running:
        process.wait()
    print(f"compiled in {time.monotonic() - start:.0f} s", flush=True)


def main():
    if args.prepare:
        prepare()
    stream = torch.cuda.Stream() if args.device == "cuda" else None
    if stream:
        torch.cuda.set_stream(stream)
    context = ours.Context(args.clebsch, "cuda:0" if stream else "cpu",
                           stream.cuda_stream if stream else None)
    everyone = peers(context)
    names = args.peer or [name for name in everyone if name != "tuned"]
    there = [name for name, p in everyone.items() if not p.package or version(p.package)]
    names = [name for name in names if name in there]
    if args.part:
        return compile_part(everyone, args.part, names)
    clock = timing.Clock(args.device, args.repeats)
    results = timing.Results(args.json, {
        "device": clock.where(), "versions": {p.package: version(p.package) for n, p in
                                              everyone.items() if n in names and p.package}},
        args.seconds)
    for variant, rows, width, dtype in rows_of():
        if results.is_late():
            continue
        work = Work(variant, rows, width, dtype, args.device)
        for name in names:
            for which in work.passes():
                if takes(name, variant, which):
                    key = {"variant": variant, "rows": rows, "width": width, "dtype": dtype,
                           "pass": which, "peer": name}
                    results.add(key, lambda n=name, p=which: measure(clock, everyone[n], work, p))
        del work
        context.release()
    print(f"{results.late} left out for want of time" if results.late else "complete", flush=True)


if __name__ == "__main__":
    main()
