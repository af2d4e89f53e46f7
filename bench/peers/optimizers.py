#!/usr/bin/env python3
"""optimizers.py - steps of optimizers beside torch's: a loop over tensors, foreach, fused, compiled
(torch.compile), and CUDA graphs of the last two.  Device time with cold caches, time to return to
the host, time of one of many steps; in one process on one stream.

The floor is the time of a copy of as many bytes as a step reads and writes at least.  APEX, whose
fused optimizers these replaced, has no wheel and is not here.  --json is written after each row;
what it has is not measured again, so that a run that was cut off goes on.  On a GPU start with
--prepare 14, which compiles in so many processes into torch's caches."""
import argparse
import importlib.metadata
import os
import subprocess
import sys
import time

RULES = ["adam", "adamw", "amsgrad", "sgd", "whole", "muon"]
PEERS = ["clebsch", "arena", "loop", "foreach", "fused", "graph", "compile", "compile-graph",
         "reduce-overhead"]
# Bytes that a step reads and writes for each number, in f32: p, g and the state.
BYTES = {"adam": 28, "adamw": 28, "amsgrad": 36, "sgd": 20, "whole": 40, "muon": 20}
LR, BETAS, DECAY, EMA, MOMENTUM = 1e-3, (0.9, 0.999), 1e-2, 0.999, 0.9
TOLERANCE = {"muon": 0.2}  # of the update, relative; torch's Muon multiplies in bf16


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.replace("\n\n", " "))
    words = lambda text: [word for word in text.split(",") if word]  # noqa: E731
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--list", type=words, default=["nequix", "mace", "dcgan", "ghostnet"],
                        help="nequix, mace, dcgan, ghostnet, bert, xglm (default: the first four)")
    parser.add_argument("--rule", type=words, default=["adam", "sgd"], help=", ".join(RULES)
                        + " (default: adam,sgd); whole: clipping, AdamW and a moving average")
    parser.add_argument("--peer", type=words, default=PEERS[:-1], help=", ".join(PEERS)
                        + " (default: all but the last); arena: ours in one buffer")
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--seconds", type=float, help="starts no measurement after so many")
    parser.add_argument("--prepare", type=int, metavar="PROCESSES",
                        help="first compile in as many processes")
    parser.add_argument("--only", help=argparse.SUPPRESS)  # of --prepare: RULE/LIST
    parser.add_argument("--kernels", action="store_true", help="count the kernels of a step, too")
    parser.add_argument("--clebsch", metavar="PATH",
                        help="libclebsch.so (default: $CLB_LIBRARY, else the system's)")
    parser.add_argument("--json", metavar="FILE")
    a = parser.parse_args()
    if not set(a.rule) <= set(RULES) or not set(a.peer) <= set(PEERS):
        parser.error(f"--rule is of {', '.join(RULES)}, --peer of {', '.join(PEERS)}")
    return a


args = arguments()
here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "..", "..", "python")]
sys.dont_write_bytecode = True

import torch  # noqa: E402

import clebsch  # noqa: E402
import lists  # noqa: E402
import ours  # noqa: E402
import timing  # noqa: E402


class Work:
    """Parameters and gradients of a list.  Muon has the matrices of the list alone."""

    def __init__(self, name, rule, device):
        self.name, self.rule, self.device = name, rule, device
        self.shapes = [s for s in lists.LISTS[name] if rule != "muon" or len(s) == 2]
        self.numbers = sum(torch.Size(s).numel() for s in self.shapes)

    def make(self, one_buffer=False, dtype=torch.float32, only=None):
        """The same numbers at each call.  one_buffer: each tensor begins at a multiple of 16
        bytes.  only: the numbers of the tensors wanted."""
        generator = torch.Generator(self.device).manual_seed(1)
        sizes = [-(-torch.Size(s).numel() // 4) * 4 for s in self.shapes]
        flat = torch.zeros(2, sum(sizes), device=self.device) if one_buffer else None
        parameters, gradients, at = [], [], 0
        for i, shape in enumerate(self.shapes):
            pair = [torch.randn(shape, generator=generator, device=self.device) for _ in range(2)]
            if one_buffer:
                places = [f[at:at + pair[0].numel()].view(shape) for f in flat]
                pair = [place.copy_(t) for place, t in zip(places, pair)]
                at += sizes[i]
            if only is None or i in only:
                parameters.append(pair[0].to(dtype))
                gradients.append(pair[1].to(dtype))
        return parameters, gradients

    def compared(self):
        """Numbers of a few tensors, none of them large."""
        small = [i for i, s in enumerate(self.shapes) if torch.Size(s).numel() <= 1 << 20]
        return set(small[::max(1, len(small) // 8)])


# ---- torch --------------------------------------------------------------------------------------


def torch_optimizer(rule, parameters, **how):
    if rule == "sgd":
        how.pop("capturable", None)
        return torch.optim.SGD(parameters, lr=LR, momentum=MOMENTUM, **how)
    if rule == "muon":
        return torch.optim.Muon(parameters, lr=LR, weight_decay=DECAY)
    kind = torch.optim.AdamW if rule in ("adamw", "whole") else torch.optim.Adam
    decay = {"weight_decay": DECAY} if kind is torch.optim.AdamW else {}
    return kind(parameters, lr=LR, betas=BETAS, amsgrad=rule == "amsgrad", **decay, **how)


def torch_step(rule, parameters, gradients, **how):
    """A call that takes a step."""
    leaves = [torch.nn.Parameter(p) for p in parameters]
    for leaf, gradient in zip(leaves, gradients):
        leaf.grad = gradient
    optimizer = torch_optimizer(rule, leaves, **how)
    if rule != "whole":
        return optimizer.step, leaves
    average = [p.detach().clone() for p in leaves]

    def whole():
        torch.nn.utils.clip_grad_norm_(leaves, 1e30, foreach=True)
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(average, leaves, 1 - EMA)
    return whole, leaves


class Torch:
    def __init__(self, compiled=None, graph=False, **how):
        self.compiled, self.graph, self.how = compiled, graph, how

    def make(self, work):
        """step, parameters, and the number of steps already taken."""
        parameters, gradients = work.make()
        how = dict(self.how)
        if (self.graph or self.compiled) and work.device == "cuda":
            how["capturable"] = True
        step, leaves = torch_step(work.rule, parameters, gradients, **how)
        if self.compiled:
            torch._dynamo.reset()
            step = torch.compile(step, mode=self.compiled)
        if not self.graph:
            return step, leaves, 0
        for _ in range(3):
            step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
            step()
        return graph.replay, leaves, 3


# ---- Clebsch ------------------------------------------------------------------------------------


class Ours:
    def __init__(self, context, one_buffer):
        self.context, self.one_buffer = context, one_buffer

    def make(self, work):
        self.context.release()
        parameters, gradients = work.make(self.one_buffer)
        average = work.make(self.one_buffer)[0] if work.rule == "whole" else None
        rule = {"amsgrad": "adam", "whole": "adamw"}.get(work.rule, work.rule)
        group = {"rule": rule, "lr": LR}
        if work.rule in ("sgd", "muon"):
            group["momentum"] = MOMENTUM if work.rule == "sgd" else 0.95
        else:
            group.update(beta1=BETAS[0], beta2=BETAS[1], amsgrad=work.rule == "amsgrad")
        if work.rule in ("adamw", "whole", "muon"):
            group["weight_decay"] = DECAY
        if work.rule == "muon":
            group["muon"] = "torch"
        whole = {"averages": average, "clip": "torch", "max_norm": 1e30, "ema": "constant",
                 "ema_decay": EMA} if work.rule == "whole" else {}
        optimizer = clebsch.Optimizer(parameters, gradients, group, device=self.context, **whole)
        step = self.context.submit(optimizer._handle, "optimizer_step")
        wait = self.context.wait if work.device == "cpu" else lambda: None

        def call():
            step()
            wait()
        call.keeps = optimizer
        return call, parameters, 0


def peers(context):
    return {"clebsch": Ours(context, False), "arena": Ours(context, True),
            "loop": Torch(foreach=False), "foreach": Torch(foreach=True),
            "fused": Torch(fused=True), "graph": Torch(graph=True, fused=True),
            "compile": Torch("default"), "compile-graph": Torch("default", graph=True),
            "reduce-overhead": Torch("reduce-overhead")}


def takes(name, work):
    if name in ("graph", "compile-graph", "reduce-overhead") and work.device == "cpu":
        return False
    return work.rule != "muon" or (work.shapes and name in ("clebsch", "arena", "loop", "graph"))


# ---- all rows -----------------------------------------------------------------------------------


def error_of(work, parameters, steps):
    """The largest difference from float64 of a few tensors' changes, relative to the largest."""
    few = sorted(work.compared())
    exact, gradients = work.make(dtype=torch.float64, only=set(few))
    before = [p.clone() for p in exact]
    step, _ = torch_step(work.rule, exact, gradients)
    for _ in range(steps):
        step()
    changes = [a - b for a, b in zip(exact, before)]
    return timing.difference([parameters[i].detach().double() - b for i, b in zip(few, before)],
                             changes)


def measure(clock, peer, work):
    step, parameters, steps = peer.make(work)
    for _ in range(3):
        step()
    clock.synchronize()
    error = error_of(work, parameters, steps + 3)
    if not error <= TOLERANCE.get(work.rule, 1e-3):
        return {"failed": f"the update differs by {error:.1e}", "error": error}
    row = {"seconds": clock.device_time(step), "host_seconds": clock.host(step),
           "wall_seconds": clock.wall(step), "error": error,
           "floor_seconds": clock.floor(2, BYTES[work.rule] * work.numbers)}
    if args.kernels and clock.device == "cuda":
        row["kernels"] = timing.kernels_of(step)
    return row


def prepare():
    """Processes with the same arguments, each of which compiles one rule of one list."""
    start, waiting = time.monotonic(), [f"{r}/{n}" for n in reversed(args.list) for r in args.rule]
    mine = [sys.executable, *sys.argv, "--json", "", "--prepare", "0"]
    running = []
    while waiting or running:
        while waiting and len(running) < args.prepare:
            running.append(subprocess.Popen(mine + ["--only", waiting.pop(0)]))
        running = [process for process in running if process.poll() is None]
        time.sleep(0.1)
    print(f"compiled in {time.monotonic() - start:.0f} s", flush=True)


def compile_only(only):
    rule, name = only.split("/")
    work = Work(name, rule, args.device)
    for peer in ("compile", "reduce-overhead"):
        if peer in args.peer and takes(peer, work):
            try:
                step, _, _ = peers(None)[peer].make(work)
                step()
            except Exception as failure:
                print(f"{peer} {only}: {failure}"[:200], file=sys.stderr)


def main():
    if args.prepare and {"compile", "compile-graph", "reduce-overhead"} & set(args.peer):
        prepare()
    stream = torch.cuda.Stream() if args.device == "cuda" else None
    if stream:
        torch.cuda.set_stream(stream)
    if args.only:
        return compile_only(args.only)
    context = ours.Context(args.clebsch, "cuda:0" if stream else "cpu",
                           stream.cuda_stream if stream else None)
    everyone, clock = peers(context), timing.Clock(args.device, args.repeats)
    results = timing.Results(args.json, {
        "device": clock.where(), "versions": {"torch": importlib.metadata.version("torch")}},
        args.seconds)
    for name in args.list:
        for rule in args.rule:
            work = Work(name, rule, args.device)
            for peer in args.peer:
                if takes(peer, work):
                    key = {"list": name, "rule": rule, "peer": peer,
                           "bytes": BYTES[rule] * work.numbers}
                    results.add(key, lambda p=peer: measure(clock, everyone[p], work))
                    if stream:
                        torch.cuda.empty_cache()
            context.release()
    print(f"{results.late} left out for want of time" if results.late else "complete", flush=True)


if __name__ == "__main__":
    main()
