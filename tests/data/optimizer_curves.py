"""optimizer_curves.py - prints optimizer_curves.json: 100 steps of optimizers of torch, optax,
torch_ema and schedulefree on the CPU.

Parameters, targets and the noise of each step are numbers of one generator, in this order, all
tensors after another: s = 1664525 s + 1013904223 mod 2^32 from s = 1, the number
(s >> 8) / 2^24 - 1/2.  The gradient is (p - target) / 2 + noise: the same bits wherever the
arithmetic is IEEE's, with or without fused multiply-add, so that only the optimizers differ.

A curve has all parameters after the steps of STEPS; "average" is the EMA, or x of the
schedule-free optimizer (whose parameters are y); "norm" is the norm of gradients that clipping saw.

    pip install torch==2.11.0 optax==0.2.8 torch_ema==0.3 schedulefree==1.4.1
    python3 tests/data/optimizer_curves.py > tests/data/optimizer_curves.json"""
import importlib.metadata
import json
import math
import sys

import jax
import numpy as np
import optax
import schedulefree
import torch
import torch_ema

SHAPES = [(4, 4), (3, 5), (6, 4), (1, 5), (7,), (1,)]
STEPS = [1, 2, 10, 100]
DTYPES = {"f32": np.float32, "f64": np.float64}
jax.config.update("jax_enable_x64", True)
torch.set_num_threads(1)


def numbers():
    """Arrays of all tensors' shapes, without end."""
    s = 1
    while True:
        arrays = []
        for shape in SHAPES:
            array = np.empty(math.prod(shape))
            for i in range(array.size):
                s = (1664525 * s + 1013904223) % 2**32
                array[i] = (s >> 8) / 2**24 - 0.5
            arrays.append(array.reshape(shape))
        yield arrays


class Problem:
    def __init__(self, dtype):
        self.numbers, self.dtype = numbers(), DTYPES[dtype]
        self.start, self.targets = self.next(), self.next()

    def next(self):
        return [a.astype(self.dtype) for a in next(self.numbers)]

    def gradients(self, parameters):
        return [(p - t) / 2 + noise
                for p, t, noise in zip(parameters, self.targets, self.next())]


def flat(arrays):
    """Numbers whose shortest decimal forms read back as the same bits."""
    return [float(str(x)) for a in arrays for x in np.asarray(a).ravel()]


class Curve:
    def __init__(self, library, name, dtype, settings):
        self.row = {"name": name, "library": library, "dtype": dtype, "settings": settings}

    def add(self, step, **arrays):
        if step in STEPS:
            for key, value in arrays.items():
                self.row.setdefault(key, {})[step] = value


# ---- torch: optimizer classes with their arguments, for matrices and for the rest ----

def torch_curve(name, dtype, settings, make, clip=None, ema=None):
    problem, curve = Problem(dtype), Curve("torch", name, dtype, settings)
    parameters = [torch.nn.Parameter(torch.from_numpy(a.copy())) for a in problem.start]
    optimizers = make(parameters)
    average = torch_ema.ExponentialMovingAverage(parameters, decay=ema) if ema else None
    for step in range(1, STEPS[-1] + 1):
        values = [p.detach().numpy() for p in parameters]
        for p, g in zip(parameters, problem.gradients(values)):
            p.grad = torch.from_numpy(g)
        if clip:
            norm = torch.nn.utils.clip_grad_norm_(parameters, clip)
            curve.add(step, norm=flat([norm.numpy()])[0])
        for optimizer in optimizers:
            optimizer.step()
        curve.add(step, parameters=flat([p.detach().numpy() for p in parameters]))
        if average:
            average.update()
            curve.add(step, average=flat([a.numpy() for a in average.shadow_params]))
        if isinstance(optimizers[0], schedulefree.AdamWScheduleFree) and step in STEPS:
            optimizers[0].eval()
            curve.add(step, average=flat([p.detach().numpy() for p in parameters]))
            optimizers[0].train()
    return curve.row


def one(kind, **settings):
    """The loop over tensors is what the other implementations are compared with in torch."""
    return lambda parameters: [kind(parameters, foreach=False, **settings)]


def muon(settings, rest):
    def make(parameters):
        return [torch.optim.Muon([p for p in parameters if p.ndim == 2], **settings),
                torch.optim.AdamW([p for p in parameters if p.ndim != 2], foreach=False, **rest)]
    return make


def schedule_free(**settings):
    def make(parameters):
        optimizer = schedulefree.AdamWScheduleFree(parameters, foreach=False, **settings)
        optimizer.train()
        return [optimizer]
    return make


def torch_curves(dtype):
    sgd = {"sgd": {}, "sgd decay": {"weight_decay": 0.1}, "sgd momentum": {"momentum": 0.9},
           "sgd dampening": {"momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1},
           "sgd nesterov": {"momentum": 0.9, "nesterov": True}}
    for name, more in sgd.items():
        settings = {"lr": 0.05, **more}
        yield torch_curve(name, dtype, settings, one(torch.optim.SGD, **settings))
    adam = {"adam": (torch.optim.Adam, {}),
            "adam decay": (torch.optim.Adam, {"weight_decay": 0.1, "betas": [0.8, 0.95]}),
            "adam amsgrad": (torch.optim.Adam, {"amsgrad": True, "betas": [0.9, 0.9]}),
            "adamw": (torch.optim.AdamW, {"weight_decay": 0.1}),
            "adamw amsgrad": (torch.optim.AdamW, {"weight_decay": 0.1, "amsgrad": True,
                                                  "betas": [0.9, 0.9]})}
    for name, (kind, more) in adam.items():
        settings = {"lr": 0.01, **more}
        yield torch_curve(name, dtype, settings, one(kind, **settings))
    settings = {"lr": 0.01}
    yield torch_curve("adam clip", dtype, {**settings, "max_norm": 2.5},
                      one(torch.optim.Adam, **settings), clip=2.5)
    yield torch_curve("adam ema", dtype, {**settings, "decay": 0.9},
                      one(torch.optim.Adam, **settings), ema=0.9)
    settings = {"lr": 0.02, "weight_decay": 0.1, "momentum": 0.95}
    rest = {"lr": 0.01, "weight_decay": 0.05}
    for adjust in ("original", "match_rms_adamw"):
        both = {**settings, "adjust_lr_fn": adjust}
        yield torch_curve(f"muon {adjust}", dtype, {**both, "rest": rest}, muon(both, rest))
    for name, more in {"schedule-free": {"weight_decay": 0.1},
                       "schedule-free warm-up": {"warmup_steps": 20}}.items():
        settings = {"lr": 0.02, **more}
        yield torch_curve(name, dtype, settings, schedule_free(**settings))


# ---- optax ----

def optax_curve(name, dtype, settings, optimizer, clip=None):
    problem, curve = Problem(dtype), Curve("optax", name, dtype, settings)
    parameters = [jax.numpy.asarray(a) for a in problem.start]
    state = optimizer.init(parameters)
    update = jax.jit(optimizer.update)
    for step in range(1, STEPS[-1] + 1):
        gradients = problem.gradients([np.asarray(p) for p in parameters])
        gradients = [jax.numpy.asarray(g) for g in gradients]
        if clip:
            curve.add(step, norm=flat([optax.global_norm(gradients)])[0])
        updates, state = update(gradients, state, parameters)
        parameters = optax.apply_updates(parameters, updates)
        curve.add(step, parameters=flat(parameters))
    return curve.row


def optax_curves(dtype):
    settings = {"learning_rate": 0.01}
    for name, more in {"adam": {}, "adam nesterov": {"nesterov": True}}.items():
        yield optax_curve(name, dtype, {**settings, **more}, optax.adam(**settings, **more))
    clipped = optax.chain(optax.clip_by_global_norm(2.5), optax.adam(**settings))
    yield optax_curve("adam clip", dtype, {**settings, "max_norm": 2.5}, clipped, clip=2.5)
    settings = {"learning_rate": 0.02, "weight_decay": 1e-3, "beta": 0.95}
    yield optax_curve("muon", dtype, settings, optax.contrib.muon(**settings))


def main():
    curves = [row for dtype in DTYPES for rows in (torch_curves, optax_curves)
              for row in rows(dtype)]
    versions = {p: importlib.metadata.version(p)
                for p in ("torch", "torch_ema", "schedulefree", "optax", "jax")}
    head = {"versions": versions, "shapes": SHAPES, "steps": STEPS}
    lines = ",\n".join("  " + json.dumps(c, separators=(",", ":")) for c in curves)
    sys.stdout.write(json.dumps(head)[:-1] + ',\n "curves": [\n' + lines + "\n]}\n")


main()
