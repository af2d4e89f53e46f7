"""The library's passes as operators of PyTorch, torch.ops.clebsch.*: for the CPU and GPUs, for
shapes alone (Meta), and differentiable.

NAME_PASS(str op, str gradients, ..., operands) -> results.  op: what `describe` made, a text that
holds all of the op, so that a graph kept on disk is understood in another process.  gradients: the
letters of operands (x, y, w, z) whose gradients are wanted; the other results have no elements.
The operands of a pass are those of the one before and then the gradients of its results, so that
one function differentiates all of them.  known: a convolution before compared these edges, unless
PyTorch has counted a write to them since."""
from __future__ import annotations

import ctypes as c
import functools
import inspect
import json
import os

import torch
from torch.autograd import forward_ad
from torch.multiprocessing.reductions import StorageWeakRef

import clebsch

from .. import _structs as s
from .._context import Context
from .._library import Error
from .._op import PASSES, Op, context_of, rows_of
from .._usual import TORCH, Buffers

SHORT = {getattr(torch, long): short for short, long in TORCH.items()}
OPS = {kind._name: kind for kind in Op.__subclasses__()}
MAKERS = {name: getattr(clebsch, name) for name in OPS}
EXTRAS = {"convolution": "Tensor senders, Tensor receivers, SymInt n_receivers, bool known, ",
          "symmetric_contraction": "Tensor? species, ", "linear": "Tensor? species, "}
N_EXTRAS = {name: text.count(",") for name, text in EXTRAS.items()}
N_INDICES = {name: text.count("Tensor") for name, text in EXTRAS.items()}
CHOOSE = {name for name in OPS if "gradients" in inspect.signature(MAKERS[name]).parameters}
WHOLE = torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64
MOST_GRAPHS = 4
operators: dict = {}
"""By "NAME_PASS": what to call."""


def describe(name, options):
    """The text of an op, for the operators; what is wrong with its options is said here."""
    text = json.dumps([name, options], separators=(",", ":"))
    described(text)
    return text


@functools.lru_cache(maxsize=None)
def described(text):
    return Description(*json.loads(text))


class Description:
    """What a text describes: lengths of rows, and the op on each device that has called it."""

    def __init__(self, name, options):
        self.name, self.options = name, options
        self.op = MAKERS[name](**options, device="cpu:interpreter")  # where nothing is compiled
        self.columns, self.fixed = self.op.columns, self.op._fixed
        self.one_row = {kind: (self.columns[kind],) for kind, n in self.fixed.items() if n == 1}
        self.n_extras, self.passes, self.last = N_EXTRAS.get(name, 0), {}, {}

    def pass_of(self, name, gradients, like):
        """A pass for tensors like this, in the current stream of their device."""
        key = name, gradients, like.dtype, _place(like)
        found = self.passes.get(key)
        if found is None:
            found = self.passes[key] = Pass(self, name, gradients, like.dtype, context_for(like))
        return found

    def wanted(self, gradients, kind):
        return bool(self.columns[kind]) and (self.name not in CHOOSE or kind in gradients)

    def counts(self, of, extras, tensors):
        """Of each kind of operand its number of rows."""
        if self.name == "convolution":
            n_edges = extras[0].shape[0]
            return {"x": tensors[0].shape[0], "z": extras[2], "y": n_edges, "w": n_edges,
                    **self.fixed}
        shape = tensors[0].shape  # the first operand of all these has a row of its own
        n = shape[0] if shape else 1
        if type(n) is int and n == self.last.get("x"):
            return self.last
        counted = {**dict.fromkeys(self.columns, n), **self.fixed}
        if type(n) is int:
            self.last = counted
        return counted

    def results(self, name, gradients, extras, tensors):
        """(Counts, new tensors for results); what is wrong with operands is said here."""
        of, like, columns = self.op._passes[name], tensors[0], self.columns
        counts, dtype, place = self.counts(of, extras, tensors), like.dtype, like.get_device()
        for kind, tensor in zip(of.kinds, tensors):
            width = columns[kind]
            if width and (tensor is None or tensor.dtype is not dtype or
                          tensor.get_device() != place or tensor.shape != (counts[kind], width) and
                          tensor.shape != self.one_row.get(kind)):
                self._check(of, counts, tensors)
        if of.forward:
            kind = of.kinds[-1]
            return counts, [like.new_empty((counts[kind], columns[kind]))]
        return counts, [
            torch.empty_like(tensor, memory_format=torch.contiguous_format)
            if self.wanted(gradients, kind) else like.new_empty(0)
            for tensor, kind in zip(tensors, of.kinds[of.n_inputs:])]

    def _check(self, of, counts, tensors):
        like = tensors[0]
        for what, kind, tensor in zip(of.inputs, of.kinds, tensors):
            n, width = counts[kind], self.columns[kind]
            if not width:
                continue
            if tensor is None:
                raise ValueError(f"{self.name}: {what} is missing")
            if tensor.dtype is not like.dtype or tensor.device != like.device:
                raise TypeError(f"{self.name}: {what} is {tensor.dtype} on {tensor.device}, "
                                f"{of.inputs[0]} {like.dtype} on {like.device}")
            if tensor.shape != (n, width) and tensor.shape != self.one_row.get(kind):
                raise ValueError(f"{self.name}: {what} has the shape {list(tensor.shape)}; it must "
                                 f"be [{n}, {width}]")


def _place(tensor):
    """Of a GPU its number and the current stream."""
    number = tensor.get_device()
    return (number, None) if number < 0 else (number, torch._C._cuda_getCurrentRawStream(number))


def context_for(tensor):
    """That of a tensor's device and of the current stream."""
    return _context(*_place(tensor))


@functools.lru_cache(maxsize=None)
def _context(number, stream):
    if stream is None:  # the CPU, or the interpreter if $CLB_DEVICE says so
        named = os.environ.get("CLB_DEVICE", "")
        return context_of(named if named.startswith("cpu:") else "cpu")
    return Context(f"{'hip' if torch.version.hip else 'cuda'}:{number}", stream=stream)


class Pass:
    """A pass that was compiled, on a device, for tensors of one type."""

    def __init__(self, description, name, gradients, dtype, context):
        if dtype not in SHORT:
            raise TypeError(f"{description.name}: tensors are {dtype}; they must be "
                            f"{', '.join(map(str, SHORT))}")
        options = {**description.options, "device": context}
        if description.name in CHOOSE and name != "forward":
            options["gradients"] = gradients
        self.op = op = MAKERS[description.name](**options)
        self.name, self.context, self.buffers = name, context, Buffers(context)
        of, compiled = op._passes[name], op._compile(name, SHORT[dtype])
        self.handle, self.function = compiled.handle, compiled.function
        rows, self.arguments = rows_of(name, of)
        self.size, self.waits = dtype.itemsize if hasattr(dtype, "itemsize") else \
            torch.empty(0, dtype=dtype).element_size(), context.backend == "cpu"
        n = of.n_inputs
        parts = [(one, op.columns[kind]) for one, kind in zip(rows, of.kinds)]
        self.inputs, self.outputs = parts[:n], [
            (one, columns if of.forward or description.wanted(gradients, kind) else 0)
            for (one, columns), kind in zip(parts[n:], of.kinds[n:])]
        self.weights = rows[of.operands.index("w")] if op.__dict__.get("n_species") else None

    def run(self, n, extras, tensors, results):
        context, kept = self.context, []
        with context._lock:
            made = self.buffers.begin()
            for (rows, columns), tensor in zip(self.inputs, tensors):
                if columns:
                    rows.stride = columns
                    if not tensor.is_contiguous():
                        if tensor.stride() == (0, 1):
                            tensor, rows.stride = tensor[0], s.SAME_ROW
                        else:
                            tensor = tensor.contiguous()
                            kept.append(tensor)
                    span = tensor.data_ptr(), tensor.numel() * self.size
                    rows.buffer = made.get(span) or self.buffers.make(span)
            for (rows, columns), tensor in zip(self.outputs, results):
                if columns:
                    rows.stride = columns
                    span = tensor.data_ptr(), tensor.numel() * self.size
                    rows.buffer = made.get(span) or self.buffers.make(span)
            if self.weights is not None:
                self.weights.index = self._wrapped(self._species(extras[0], n, kept))
            first, last = n, ()
            if self.op._name == "convolution":
                first, last = self._graph(n, extras, kept, results[0])
            context._check(self.function(self.handle, first, *self.arguments, *last))
            if self.waits:
                context._check(context._lib.clb_wait(context))

    def _wrapped(self, tensor):
        span = tensor.data_ptr(), tensor.numel() * tensor.element_size()
        return self.buffers.made.get(span) or self.buffers.make(span)

    def _species(self, species, n, kept):
        if species is None or tuple(species.shape) != (n,):
            raise ValueError(f"species: a number for each of the {n} rows is needed")
        if species.dtype not in WHOLE:
            raise TypeError(f"species: {species.dtype}; they must be whole numbers")
        if self.waits and (int(species.min()) < 0 or int(species.max()) >= self.op.n_species):
            raise ValueError(f"species: they must be numbers from 0 to {self.op.n_species - 1}")
        species = species.to(torch.int32).contiguous()
        kept.append(species)
        return species

    def _graph(self, n_senders, extras, kept, like):
        """The graph, and the workspace, which is PyTorch's memory."""
        graph = graphs_of(self.context).find(self.name != "forward", n_senders, *extras)
        least, most = c.c_uint64(), c.c_uint64()
        self.context._call("convolution_workspace", PASSES[self.name], graph, c.byref(least),
                           c.byref(most), handle=self.handle)
        if not most.value:
            return graph, (None,)
        kept.append(like.new_empty(most.value, dtype=torch.uint8))
        return graph, (self._wrapped(kept[-1]),)


@functools.lru_cache(maxsize=None)
def graphs_of(context):
    return Graphs(context)


def _memory(tensor):
    """Equal for tensors of one memory between writes that PyTorch counts; None where it counts
    none."""
    if tensor.is_inference():
        return None
    storage = getattr(tensor, "untyped_storage", tensor.storage)()
    return (StorageWeakRef(storage), tensor.storage_offset(), tensor.stride(), tensor.dtype,
            tensor._version)


class Graphs:
    """The last graphs of a context, found again by their edges: layers of a model share one.

    Edges are compared, for which a GPU waits.  Where they are known (a derivative's, since autograd
    refuses what was changed after the forward pass; those of a patched model's other layers) their
    memory and PyTorch's count of writes to it are enough."""

    def __init__(self, context):
        self.context, self.found = context, []

    def find(self, derivative, n_senders, senders, receivers, n_receivers, known):
        if senders.dtype not in (torch.int32, torch.int64) or senders.dtype != receivers.dtype or (
                senders.dim() != 1 or senders.shape != receivers.shape):
            raise ValueError("senders and receivers must be as many numbers of int32 or int64")
        sizes, lists = (n_senders, n_receivers, senders.shape), (senders, receivers)
        places = [_memory(one) for one in lists]
        captured = senders.is_cuda and torch.cuda.is_current_stream_capturing()
        alike = [one for one in self.found if one.sizes == sizes]
        if (known or derivative or captured) and None not in places:
            for one in alike:
                if one.places == places:
                    return self._first(one, captured)
        if captured:
            raise Error("convolution: a CUDA graph is captured, in which edges cannot be sorted; "
                        "call it before with the same senders and receivers")
        for one in self.found:  # what they were compared with is no longer there
            if one.places == places:
                one.places = None
        graph = next((one for one in alike if one.has(lists)), None) or self._make(sizes, lists)
        graph.places = places
        return self._first(graph, False)

    def _first(self, graph, captured):
        """The last that was used, and so the last that is forgotten."""
        graph.captured |= captured
        if self.found[:1] != [graph]:
            self.found = [graph, *[one for one in self.found if one is not graph]]
        return graph.handle

    def _make(self, sizes, lists):
        """In the memory of one that is forgotten, but what a CUDA graph replays."""
        free = [one for one in self.found if not one.captured]
        graph = free[-1] if len(free) >= MOST_GRAPHS else None
        if graph:
            self.found.remove(graph)
        return Sorted(self.context, sizes, lists, graph and graph.graph)


class Sorted:
    """A graph, what it was made of, and where that was."""

    def __init__(self, context, sizes, lists, graph):
        self.sizes, self.places, self.captured = sizes, None, False
        self.copies = [one.detach().clone(memory_format=torch.contiguous_format) for one in lists]
        self.graph = graph
        if graph:
            graph.update(sizes[1], *self.copies, n_senders=sizes[0])
        else:
            self.graph = clebsch.Graph(sizes[1], *self.copies, n_senders=sizes[0], device=context)
        self.handle = self.graph._handle

    def has(self, lists):
        """Whether they are these edges, by one wait of a GPU."""
        (a, b), (senders, receivers) = self.copies, lists
        return bool(((a == senders) & (b == receivers)).all())


def _compute(name, text, gradients, *rest):
    description = described(text)
    extras, tensors = rest[:description.n_extras], rest[description.n_extras:]
    counts, results = description.results(name, gradients, extras, tensors)
    if not counts["x"] or not counts.get("y", 1) or not counts.get("z", 1):
        for result in results:
            result.zero_()
    else:
        description.pass_of(name, gradients, tensors[0]).run(counts["x"], extras, tensors, results)
    return results[0] if len(results) == 1 else tuple(results)


def _shapes(name, text, gradients, *rest):
    description = described(text)
    n = description.n_extras
    _, results = description.results(name, gradients, rest[:n], rest[n:])
    return results[0] if len(results) == 1 else tuple(results)


def _differentiable(op, name, called):
    """The function of the Autograd key: the operator below, and the next pass as its derivative."""
    of, fixed = OPS[op]._passes[name], 2 + N_EXTRAS.get(op, 0)
    indices = 2 + N_INDICES.get(op, 0)
    kinds, kinds_of_results = of.kinds[:of.n_inputs], of.kinds[of.n_inputs:]
    below_autograd = torch._C._AutoDispatchBelowAutograd

    def forward(ctx, *arguments):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*arguments[2:indices], *arguments[fixed:])
        ctx.arguments = arguments[:2], arguments[indices:fixed]
        guard = below_autograd()  # until it is deleted; in 1.13 not for `with`
        try:
            return called(*arguments)
        finally:
            del guard

    def backward(ctx, *gradients):
        n = len(kinds)
        needed = ctx.needs_input_grad[fixed:]
        if of.following is None:
            raise Error(f"{op}: there is no derivative of order {list(PASSES).index(name) + 1}")
        saved, ((text, letters), sizes) = ctx.saved_tensors, ctx.arguments
        tensors, extras = saved[indices - 2:], (*saved[:indices - 2], *sizes)
        if all(g is None for g in gradients):
            return (None,) * (fixed + n)
        description, given = described(text), list(gradients)
        wanted = "".join(sorted({kind for kind, need in zip(kinds, needed) if need}))
        for i, kind in enumerate(kinds_of_results):
            absent = given[i] is None or name != "forward" and not description.wanted(letters, kind)
            if absent and description.columns[kind]:  # a row of zeros for all
                given[i] = tensors[0].new_zeros(description.columns[kind]).expand(
                    tensors[kinds.index(kind)].shape)
        results = operators[f"{op}_{of.following}"](text, wanted, *extras, *tensors, *given)
        results = results if isinstance(results, (tuple, list)) else (results,)
        return (None,) * fixed + tuple(result if need else None
                                       for result, need in zip(results, needed))

    function = type(f"{op}_{name}", (torch.autograd.Function,),
                    {"forward": staticmethod(forward), "backward": staticmethod(backward)})

    def differentiable(*arguments):
        if forward_ad._current_level >= 0 and any(
                forward_ad.unpack_dual(one).tangent is not None
                for one in arguments[fixed:] if one is not None):
            raise Error(f"{op}: it has no tangents (torch.func.jvp, forward_ad); torch.autograd "
                        "differentiates it in reverse mode")
        if torch.is_grad_enabled():
            for one in arguments[fixed:]:
                if one is not None and one.requires_grad:
                    return function.apply(*arguments)
        guard = below_autograd()
        try:
            return called(*arguments)
        finally:
            del guard
    return differentiable


def _autocast(called, kind):
    """As torch.cuda.amp.custom_fwd with float32: operands of 16 bits are cast."""
    def cast(*arguments):
        with torch.autocast(kind, enabled=False):
            return called(*[one.float() if isinstance(one, torch.Tensor) and one.dtype in (
                torch.float16, torch.bfloat16) else one for one in arguments])
    return cast


_library = torch.library.Library("clebsch", "DEF")


def _define(op, name):
    full, of = f"{op}_{name}", OPS[op]._passes[name]
    operands = ", ".join(f"Tensor? {what}" if i else f"Tensor {what}"
                         for i, what in enumerate(of.inputs))
    results = ", ".join(["Tensor"] * len(of.outputs))
    _library.define(f"{full}(str op, str gradients, {EXTRAS.get(op, '')}{operands}) -> "
                    + (results if len(of.outputs) == 1 else f"({results})"))
    called = operators[full] = getattr(torch.ops.clebsch, full).default
    for key in ("CPU", "CUDA"):
        _library.impl(full, functools.partial(_compute, name), key)
        _library.impl(full, _autocast(called, key.lower()), f"Autocast{key}")
    _library.impl(full, functools.partial(_shapes, name), "Meta")
    _library.impl(full, _differentiable(op, name, called), "Autograd")


for _op, _kind in OPS.items():
    for _name in _kind._passes:
        _define(_op, _name)
